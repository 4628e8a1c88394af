"""Parameters that several stages share are trained like those of the unsplit model."""

import pickle

import pytest

import retrograd as rg
from retrograd import nn
from retrograd.nn.functional import mse_loss
from retrograd.pipelining import (
    MultiUseParameterConfig,
    Pipeline,
    pipe_split,
    pipeline,
    sum_replicated_gradients,
)

TRANSMIT, REPLICATE = MultiUseParameterConfig.TRANSMIT, MultiUseParameterConfig.REPLICATE


class Tied(nn.Module):
    """A model that shares the embedding's weight with the output layer, under another name; two stages share a bias."""

    def __init__(self):
        super().__init__()
        self.embed, self.mix = nn.Embedding(7, 5), nn.Linear(5, 5)
        self.head = nn.Linear(5, 7, bias=False)
        self.head.weight = self.embed.weight
        self.shift = nn.Parameter(rg.randn(5))

    def forward(self, ids):
        h = self.embed(ids) + self.shift
        pipe_split()
        h = self.mix(h).tanh() * self.shift
        pipe_split()
        return self.head(h)


SPECS = [TRANSMIT, REPLICATE, {"head.weight": TRANSMIT}, {"embed.weight": REPLICATE, "shift": TRANSMIT}, None]


def unsplit(model, ids, y):
    model.zero_grad()
    mse_loss(model(ids), y).backward()
    found = {name: p.grad.clone() for name, p in model.named_parameters()}
    model.zero_grad()
    return found


def assert_gradients(model, expected):
    for name, p in model.named_parameters():
        assert (p.grad - expected[name]).abs().max().item() <= 1e-6 * max(1.0, expected[name].abs().max().item()), name


@pytest.mark.parametrize("spec", SPECS)
def test_a_pipe_trains_shared_parameters_as_the_model_does(spec):
    model, ids, y = Tied(), rg.randint(7, (6,)), rg.randn(6, 7)
    expected = unsplit(model, ids, y)
    pipe = pipeline(model, (ids,), multi_use_param_spec=spec)
    mse_loss(pipe(ids)[0], y).backward()
    assert_gradients(model, expected)


@pytest.mark.parametrize("spec", SPECS)
@pytest.mark.parametrize("schedule", ["gpipe", "1f1b"])
def test_steps_train_shared_parameters_as_the_model_does(spec, schedule):
    model, ids, y = Tied(), rg.randint(7, (8,)), rg.randn(8, 7)
    expected = unsplit(model, ids, y)
    trainer = Pipeline(model, micro_batches=4, schedule=schedule, loss_fn=mse_loss, multi_use_param_spec=spec)
    trainer.step(ids, target=y)
    assert_gradients(model, expected)


def test_a_transmitted_parameter_is_that_of_the_first_stage_alone():
    pipe = pipeline(Tied(), (rg.randint(7, (6,)),), multi_use_param_spec=TRANSMIT)
    names = [sorted(dict(pipe.get_stage_module(i).named_parameters())) for i in range(3)]
    assert names == [["embed.weight", "shift"], ["mix.bias", "mix.weight"], []]
    assert pipe.carried() == {(0, 1): ["add", "shift"], (0, 2): ["embed_weight"], (1, 2): ["mul"]}
    assert pipe.replicated_params == []


def test_replicated_parameters_are_listed_with_their_stages():
    pipe = pipeline(Tied(), (rg.randint(7, (6,)),), multi_use_param_spec={"shift": TRANSMIT})
    assert pipe.replicated_params == [{0: "embed.weight", 2: "embed.weight"}]


def test_gradients_of_copies_are_summed():
    model, ids, y = Tied(), rg.randint(7, (6,)), rg.randn(6, 7)
    expected = unsplit(model, ids, y)
    pipe = pipeline(model, (ids,))
    copies = {i: pickle.loads(pickle.dumps(pipe.get_stage_module(i))) for i in range(3)}
    values = pipe.named_inputs((ids,), {})
    for i, stage in enumerate(pipe.stages):
        values.update(zip(stage.outputs, copies[i](*[values[v.name] for v in stage.inputs]), strict=True))
    mse_loss(pipe.restored_output(values), y).backward()
    sum_replicated_gradients(pipe.replicated_params, copies)
    for module in copies.values():
        assert_gradients(module, expected)
    assert copies[0].embed.weight.grad is not copies[2].embed.weight.grad


def test_shared_parameters_are_not_summed_twice():
    model, ids, y = Tied(), rg.randint(7, (6,)), rg.randn(6, 7)
    expected = unsplit(model, ids, y)
    pipe = pipeline(model, (ids,))
    mse_loss(pipe(ids)[0], y).backward()
    sum_replicated_gradients(pipe.replicated_params, dict(enumerate(map(pipe.get_stage_module, range(3)))))
    assert_gradients(model, expected)


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"embed.wieght": TRANSMIT}, r"the model has no parameter 'embed.wieght'; it has 'shift', 'embed"),
        ({"shift": "transmit"}, r"expected a MultiUseParameterConfig for 'shift', got 'transmit'"),
        ("transmit", r"expected a MultiUseParameterConfig for .*, got 'transmit'"),
    ],
)
def test_other_specs_are_refused(spec, message):
    with pytest.raises(ValueError, match=message):
        pipeline(Tied(), (rg.randint(7, (6,)),), multi_use_param_spec=spec)


def test_a_stage_without_its_module_is_refused_before_any_gradient_changes():
    a, b = nn.Linear(2, 2), nn.Linear(2, 2)
    a.weight.grad, b.weight.grad = rg.ones(2, 2), rg.ones(2, 2)
    with pytest.raises(ValueError, match=r"no module is given for stages \[2\]; there are \[0, 1\]"):
        sum_replicated_gradients([{0: "weight", 1: "weight"}, {1: "bias", 2: "bias"}], {0: a, 1: b})
    assert a.weight.grad.sum().item() == 4

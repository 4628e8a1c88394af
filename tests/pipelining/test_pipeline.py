"""Training through a pipeline gives the results of the unsplit model, and errors that name the stage."""

import inspect
from itertools import pairwise

import numpy as np
import pytest

import retrograd as rg
from retrograd import nn, pipelining
from retrograd.core import Definition, op, registry
from retrograd.nn.functional import cross_entropy, mse_loss
from retrograd.pipelining import (
    Kind,
    Pipe,
    Pipeline,
    PipelineError,
    Replicate,
    SplitPoint,
    TensorChunkSpec,
    pipe_split,
    pipeline,
    split_into_equal_size,
)

from ..case_groups import group_cases

SCHEDULES = sorted(pipelining.schedules.SCHEDULES)


class Skipping(nn.Module):
    """A model of four stages; the first one's value is used by the second and the third."""

    def __init__(self):
        super().__init__()
        self.a, self.b, self.c, self.d = nn.Linear(4, 8), nn.Linear(8, 8), nn.Linear(8, 8), nn.Linear(8, 3)

    def forward(self, x):
        first = self.a(x).relu()
        pipe_split()
        second = self.b(first).tanh()
        pipe_split()
        third = self.c(second) + first
        pipe_split()
        return self.d(third)


class Tied(nn.Module):
    """A model of four stages, whose first and last one share a weight."""

    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(7, 5)
        self.mix = nn.Linear(5, 5)

    def forward(self, ids):
        x = self.embed(ids)
        pipe_split()
        x = self.mix(x)
        pipe_split()
        x = x.tanh()
        pipe_split()
        return x @ self.embed.weight.T


class Several(nn.Module):
    """A model with several inputs, a keyword, integer inputs for a later stage, and a dictionary of outputs."""

    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(3, 4), nn.Linear(4, 4)

    def forward(self, x, y, *, ids, scale=2.0):
        h = self.a(x)
        pipe_split()
        h = self.b(h) * scale + y
        picked = h.gather(1, ids)
        return {"h": h, "picked": (picked,)}


def unsplit(model, loss_fn, x, y):
    model.zero_grad()
    loss = loss_fn(model(x), y)
    loss.backward()
    return loss.item(), {name: p.grad.clone() for name, p in model.named_parameters()}


def assert_same_gradients(model, expected, factor=1.0):
    for name, p in model.named_parameters():
        difference = (p.grad - expected[name] * factor).abs().max().item()
        assert difference <= 1e-6 * max(1.0, expected[name].abs().max().item()), name


@group_cases
@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("micro_batches", [1, 2, 3, 4, 8, 11])
def test_loss_and_gradients_are_those_of_the_unsplit_step(schedule, micro_batches):
    model, x, y = Skipping(), rg.randn(11, 4), rg.randint(3, (11,))
    loss, gradients = unsplit(model, cross_entropy, x, y)
    model.zero_grad()
    pipeline = Pipeline(model, schedule=schedule, micro_batches=micro_batches, loss_fn=cross_entropy)
    assert pipeline.step(x, target=y).item() == pytest.approx(loss, rel=1e-6)
    assert_same_gradients(model, gradients)


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_two_steps_without_zero_grad_add_up(schedule):
    model, x, y = Skipping(), rg.randn(6, 4), rg.randint(3, (6,))
    _, gradients = unsplit(model, cross_entropy, x, y)
    model.zero_grad()
    pipeline = Pipeline(model, schedule=schedule, micro_batches=3, loss_fn=cross_entropy)
    pipeline.step(x, target=y)
    pipeline.step(x, target=y)
    assert_same_gradients(model, gradients, factor=2.0)


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_tied_weights_get_the_gradients_of_all_their_uses(schedule):
    model, ids, y = Tied(), rg.randint(7, (6,)), rg.randn(6, 7)
    _, gradients = unsplit(model, mse_loss, ids, y)
    model.zero_grad()
    pipeline = Pipeline(model, schedule=schedule, micro_batches=2, loss_fn=mse_loss)
    pipeline.step(ids, target=y)
    assert_same_gradients(model, gradients)


def test_any_input_feeds_any_stage_and_outputs_keep_their_structure():
    model = Several()
    x, y, ids = rg.randn(6, 3), rg.randn(6, 4), rg.randint(4, (6, 2))
    expected = model(x, y, ids=ids)
    out = Pipeline(model, micro_batches=4).predict(x, y, ids=ids)
    assert (out["h"] - expected["h"]).abs().max().item() < 1e-6
    assert (out["picked"][0] - expected["picked"][0]).abs().max().item() < 1e-6
    assert not out["h"].requires_grad


def test_a_model_is_split_automatically_into_as_many_stages_as_requested():
    model = nn.Sequential(*[nn.Sequential(nn.Linear(6, 6), nn.Tanh()) for _ in range(8)])
    x, y = rg.randn(8, 6), rg.randn(8, 6)
    _, gradients = unsplit(model, mse_loss, x, y)
    model.zero_grad()
    pipeline = Pipeline(model, stages=4, micro_batches=4, loss_fn=mse_loss)
    pipeline.step(x, target=y)
    assert pipeline.pipe.num_stages == 4
    assert [len(stage.parameters()) for stage in pipeline.pipe.stages] == [4, 4, 4, 4]
    assert_same_gradients(model, gradients)


def test_split_points_by_path_leave_the_module_as_it_was():
    model = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 4))
    hooks = [len(m._call_hooks) for m in model.modules()]
    spec = {"0": SplitPoint.END, "2": SplitPoint.BEGINNING}
    pipeline = Pipeline(model, split_spec=spec, micro_batches=2)
    pipeline.predict(rg.randn(4, 4))
    assert pipeline.pipe.num_stages == 3
    assert [len(m._call_hooks) for m in model.modules()] == hooks


def test_a_path_that_does_not_exist_names_the_missing_part():
    model = nn.Sequential(nn.Linear(4, 4))
    with pytest.raises(AttributeError, match="5"):
        Pipeline(model, split_spec={"5": SplitPoint.END}).predict(rg.randn(4, 4))


def test_a_split_point_of_another_kind_is_refused():
    with pytest.raises(ValueError, match="SplitPoint"):
        Pipeline(nn.Sequential(nn.Linear(4, 4)), split_spec={"0": "end"}).predict(rg.randn(4, 4))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"schedule": "2f2b"}, "2f2b"),
        ({"stages": 0}, "stages must be an integer of at least 1"),
        ({"micro_batches": 1.5}, "micro_batches must be an integer"),
        ({"transport": "pigeons"}, "pigeons"),
    ],
)
def test_bad_options_are_refused_at_once(arguments, message):
    with pytest.raises(ValueError, match=message):
        Pipeline(nn.Linear(2, 2), **arguments)


def test_more_micro_batches_than_examples_are_refused():
    with pytest.raises(ValueError, match="3 examples can't make 4 microbatches"):
        Pipeline(nn.Linear(2, 2), micro_batches=4, loss_fn=mse_loss).step(rg.ones(3, 2), target=rg.ones(3, 2))


def test_an_argument_that_can_not_be_split_must_be_declared():
    class Scaled(nn.Module):
        def forward(self, x, scale):
            return x * scale

    x, scale = rg.ones(4, 2), rg.tensor(3.0)
    with pytest.raises(ValueError, match="Replicate"):
        Pipeline(Scaled(), micro_batches=2).predict(x, scale)
    specs = (TensorChunkSpec(0), Replicate())
    assert Pipeline(Scaled(), micro_batches=2, args_chunk_spec=specs).predict(x, scale).shape == (4, 2)


class Failing(nn.Module):
    """A model that fails in the second stage, on the microbatch with large values."""

    def __init__(self, fuse):
        super().__init__()
        self.a, self.b = nn.Linear(2, 2), nn.Linear(2, 2)
        self.fuse = fuse

    def forward(self, x):
        h = self.a(x)
        pipe_split()
        return self.fuse(self.b(h), x)


@pytest.fixture
def fuse():
    """An operator, defined for one test only, that refuses large values."""

    @op("fuse(Tensor x, Tensor watched) -> Tensor")
    class fuse(Definition):
        def impl(xp, x, watched):
            if watched.max() > 10:
                raise RuntimeError("the fuse is blown")
            return x

        def shape(x, watched):
            return x

        def vjp_x(g):
            return g

    yield fuse
    del registry["fuse"]


def test_a_failing_stage_ends_the_step_with_one_error_that_names_the_stage(fuse):
    pipeline = Pipeline(Failing(fuse), micro_batches=4, loss_fn=mse_loss)
    good, bad = rg.ones(8, 2), rg.ones(8, 2)
    bad[4:6] = 99.0
    pipeline.step(good, target=good)
    with pytest.raises(
        PipelineError, match=r"rank 1, stage 1, microbatch 2, action F1\.2: RuntimeError: the fuse is blown"
    ):
        pipeline.step(bad, target=good)
    assert pipeline.step(good, target=good).shape == ()


def test_the_loss_must_be_a_scalar_tensor():
    pipeline = Pipeline(nn.Linear(2, 2), loss_fn=lambda out, y: out - y)
    with pytest.raises(PipelineError, match="0-d tensor"):
        pipeline.step(rg.ones(2, 2), target=rg.ones(2, 2))


def test_measured_and_planned_timelines_hold_every_action():
    model, x, y = Skipping(), rg.randn(8, 4), rg.randint(3, (8,))
    pipeline = Pipeline(model, micro_batches=4, loss_fn=cross_entropy)
    pipeline.step(x, target=y)
    ran = {event.action for event in pipeline.timeline.events}
    assert ran == {action for rank in pipeline.program() for action in rank}
    costs = pipeline.costs(x, target=y)
    assert set(costs) == {(kind, stage) for kind in (Kind.F, Kind.B) for stage in range(4)}
    assert {event.action for event in pipeline.planned(costs).events} == ran


def test_costs_are_taken_one_computation_at_a_time_and_its_gradients_count():
    model, x, y = Skipping(), rg.randn(8, 4), rg.randint(3, (8,))
    _, gradients = unsplit(model, cross_entropy, x, y)
    model.zero_grad()
    pipeline = Pipeline(model, micro_batches=4, loss_fn=cross_entropy)
    pipeline.costs(x, target=y)
    spans = sorted((e.start, e.end) for e in pipeline.timeline.events if e.action.kind.is_compute)
    assert all(end <= start for (_, end), (start, _) in pairwise(spans))
    assert_same_gradients(model, gradients)


def test_the_captured_model_in_training_and_in_evaluation_differ():
    model = nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.5), nn.Linear(4, 4))
    pipeline = Pipeline(model, stages=2, micro_batches=2, loss_fn=mse_loss)
    x = rg.randn(4, 4)
    pipeline.step(x, target=x)
    model.eval()
    assert (pipeline.predict(x) - model(x)).abs().max().item() < 1e-6


def test_the_mode_of_every_module_counts_not_only_the_root_s():
    model = nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.5), nn.Linear(4, 4))
    pipeline = Pipeline(model, stages=2, micro_batches=2, loss_fn=mse_loss)
    x = rg.randn(4, 4)
    pipeline.step(x, target=x)
    model[1].eval()
    assert model.training
    assert (pipeline.predict(x) - model(x)).abs().max().item() < 1e-6


class Scaling(nn.Module):
    """A model with a factor that is no tensor: a number, or a list of numbers."""

    def __init__(self):
        super().__init__()
        self.a = nn.Linear(3, 3)

    def forward(self, x, scale=1.0):
        h = self.a(x)
        pipe_split()
        return h * (sum(scale) if isinstance(scale, list) else scale)


@pytest.mark.parametrize("scales", [[2.0, 3.0, 2.0], [1, True, 1.0], [[1.0, 2.0], [1.0, 3.0], [1.0, 2.0, 3.0]]])
def test_another_value_of_an_argument_that_is_no_tensor_is_captured_again(scales):
    model, x = Scaling(), rg.randn(4, 3)
    pipeline = Pipeline(model, micro_batches=2)
    for scale in scales:
        assert (pipeline.predict(x, scale) - model(x, scale)).abs().max().item() < 1e-6
        assert (pipeline.predict(x, scale=scale) - model(x, scale)).abs().max().item() < 1e-6


def test_constants_that_have_no_hash_are_distinguished_and_captured_once_each():
    class Choosing(nn.Module):
        def forward(self, x, chosen):
            return x * len(chosen)

    pipeline, x = Pipeline(Choosing()), rg.ones(2, 2)
    outputs = [pipeline.predict(x, chosen)[0, 0].item() for chosen in ({1}, {1, 2}, {1})]
    assert outputs == [1.0, 2.0, 1.0]
    assert len(pipeline._captures) == 2


# ------------------------------------------------------------------------------------------- splitting of arguments


def test_a_chunk_spec_of_the_arguments_holds_for_step_and_for_predict():
    class Scaled(nn.Module):
        def __init__(self):
            super().__init__()
            self.a = nn.Linear(2, 2)

        def forward(self, x, scale):
            return self.a(x) * scale

    model, x, scale, y = Scaled(), rg.randn(4, 2), rg.tensor(3.0), rg.randn(4, 2)
    specs = (TensorChunkSpec(0), Replicate())
    pipeline = Pipeline(model, micro_batches=2, args_chunk_spec=specs, loss_fn=mse_loss)
    assert pipeline.step(x, scale, target=y).item() == pytest.approx(mse_loss(model(x, scale), y).item(), rel=1e-6)
    assert (pipeline.predict(x, scale) - model(x, scale)).abs().max().item() < 1e-6


def test_the_target_has_a_chunk_spec_of_its_own():
    model, x, y = nn.Linear(2, 2), rg.randn(4, 2), rg.randn(2, 4)
    expected = mse_loss(model(x), y.T).item()

    def loss_fn(out, y):
        return mse_loss(out, y.T)

    options = {"micro_batches": 2, "loss_fn": loss_fn}
    pipeline = Pipeline(model, target_chunk_spec=TensorChunkSpec(1), **options)
    assert pipeline.step(x, target=y).item() == pytest.approx(expected, rel=1e-6)
    whole = Pipeline(model, micro_batches=2, loss_fn=lambda out, y: (out * y).mean(), target_chunk_spec=Replicate())
    assert whole.step(x, target=rg.ones(2)).item() == pytest.approx(model(x).mean().item(), rel=1e-5)
    with pytest.raises(ValueError, match=r"argument 'target': 2"):
        Pipeline(model, **options).step(x, target=y)


def test_a_chunk_spec_of_no_keyword_argument_is_refused_by_name():
    model, x = Scaling(), rg.randn(4, 3)
    pipeline = Pipeline(model, kwargs_chunk_spec={"scael": Replicate()}, loss_fn=mse_loss)
    with pytest.raises(ValueError, match="names 'scael', but the keyword arguments are 'scale'"):
        pipeline.predict(x, scale=2.0)
    with pytest.raises(ValueError, match="'scael'"):
        pipeline.step(x, scale=2.0, target=x)
    with pytest.raises(ValueError, match="target_chunk_spec"):
        Pipeline(model, kwargs_chunk_spec={"target": Replicate()})


# ------------------------------------------------------------------------------------------------------- pipeline()


def test_pipeline_is_the_function_and_no_public_name_is_a_module():
    model, example = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4)), (rg.ones(2, 4),)
    for split in ({"split_spec": {"1": SplitPoint.BEGINNING}}, {"split_policy": split_into_equal_size(2)}):
        pipe = pipeline(model, example, **split)
        assert isinstance(pipe, Pipe)
        assert pipe.info()[:3] == (pipe.split_gm.graph, 2, False)
    assert not [name for name in pipelining.__all__ if inspect.ismodule(getattr(pipelining, name))]


def test_marks_in_the_code_and_a_policy_are_refused_together():
    with pytest.raises(ValueError, match=r"pipe_split\(\), and split_policy would ignore them"):
        pipeline(Skipping(), (rg.ones(2, 4),), split_policy=split_into_equal_size(2))


def test_marks_in_the_code_win_over_a_number_of_stages():
    x = rg.randn(4, 4)
    p = Pipeline(Skipping(), stages=4)
    p.predict(x)
    assert p.pipe.num_stages == 4
    with pytest.raises(ValueError, match="split into 4 stages, not 2"):
        Pipeline(Skipping(), stages=2).predict(x)


# ------------------------------------------------------------------------------------------------------ surroundings


def test_errstate_around_a_step_holds_on_every_rank():
    class Inverse(nn.Module):
        def __init__(self):
            super().__init__()
            self.a = nn.Linear(2, 2)

        def forward(self, x):
            h = self.a(x)
            pipe_split()
            return h / (x - x)

    p = Pipeline(Inverse(), micro_batches=2, loss_fn=lambda out, y: out.mean())
    x = rg.ones(4, 2)
    with np.errstate(all="ignore"):
        p.step(x, target=x)  # a warning would be an error
    with np.errstate(all="warn"), pytest.raises(PipelineError, match="divide by zero"):
        p.step(x, target=x)


def test_a_parameter_that_was_replaced_is_the_one_that_trains():
    model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
    pipeline = Pipeline(model, stages=2, micro_batches=2, loss_fn=mse_loss)
    x = rg.randn(4, 2)
    pipeline.step(x, target=x)
    model[0].weight = nn.Parameter(rg.zeros(2, 2))
    pipeline.step(x, target=x)
    assert model[0].weight.grad is not None


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_gradients_continue_into_the_graphs_of_the_inputs(schedule):
    before, model, x, y = nn.Linear(4, 4), Skipping(), rg.randn(6, 4), rg.randint(3, (6,))
    cross_entropy(model(before(x)), y).backward()
    expected = before.weight.grad.clone()
    before.zero_grad()
    Pipeline(model, schedule=schedule, micro_batches=3, loss_fn=cross_entropy).step(before(x), target=y)
    assert (before.weight.grad - expected).abs().max() <= 1e-6


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        (lambda nodes: {}, "no stage to linear"),
        (lambda nodes: {node: len(nodes) - i for i, node in enumerate(nodes)}, "but what it uses, linear"),
        (lambda nodes: {node: 2 * i for i, node in enumerate(nodes)}, r"without gaps, got \[0, 2, 4\]"),
    ],
)
def test_a_policy_that_makes_no_sense_is_refused_by_name(policy, message):
    model = nn.Sequential(nn.Linear(2, 2), nn.ReLU(), nn.Linear(2, 2))
    with pytest.raises(ValueError, match=message):
        pipeline(model, (rg.ones(1, 2),), split_policy=lambda c: policy(c.graph.find_nodes(op="call_function")))

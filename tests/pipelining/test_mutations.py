"""Writes of split models: to buffers and parameters microbatch by microbatch, to inputs at the end."""

import copy

import pytest

import retrograd as rg
from retrograd import nn
from retrograd.pipelining import (
    DetachExecutor,
    MultiUseParameterConfig,
    Pipeline,
    SplitPoint,
    TrivialLossWrapper,
    pipe_split,
    pipeline,
)

from .splits import assert_close, cut_after


def loss_and_gradients(run, model, *args):
    model.zero_grad()
    output = run(*args)
    output = output[0] if isinstance(output, tuple) else output
    (output * output).sum().backward()
    return output, {name: p.grad.clone() for name, p in model.named_parameters()}


class BatchNorm(nn.Module):
    """Normalize by the batch; update a running mean in place and a running variance by assignment, and count."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(rg.rand(4) + 0.5)
        self.register_buffer("mean", rg.zeros(4))
        self.register_buffer("variance", rg.ones(4))
        self.register_buffer("count", rg.tensor(0))

    def forward(self, x):
        mean, variance = x.mean(0), x.var(0)
        with rg.no_grad():
            self.count += 1
            self.mean.mul_(0.9).add_(mean * 0.1)
            self.variance = self.variance * 0.9 + variance * 0.1
        return (x - mean) / (variance + 1e-5).sqrt() * self.weight


def normalizing():
    return nn.Sequential(nn.Linear(4, 4), BatchNorm(), nn.Tanh(), BatchNorm(), nn.Linear(4, 2))


@pytest.mark.parametrize("cut_at", ["1", "2", "3", "4"])
def test_each_stage_writes_the_statistics_of_its_batch_norms(cut_at):
    model, x = normalizing(), rg.randn(6, 4)
    initial = {name: buffer.clone() for name, buffer in model.named_buffers()}
    expected, gradients = loss_and_gradients(model, model, x)
    written = {name: buffer.clone() for name, buffer in model.named_buffers()}
    with rg.no_grad():
        for name, buffer in model.named_buffers():
            buffer.copy_(initial[name])
    pipe = pipeline(model, (x,), split_spec={cut_at: SplitPoint.BEGINNING})
    assert all((b == initial[name]).all() for name, b in model.named_buffers())
    found, split_gradients = loss_and_gradients(pipe, model, x)
    assert_close(found, expected)
    for name, gradient in gradients.items():
        assert_close(split_gradients[name], gradient)
    for name, buffer in model.named_buffers():
        assert_close(buffer * 1.0, written[name] * 1.0)


def test_steps_update_statistics_micro_batch_after_micro_batch():
    model, x, y = normalizing(), rg.randn(8, 4), rg.randn(8, 2)
    initial = {name: buffer.clone() for name, buffer in model.named_buffers()}
    for part in x.split(2):
        model(part)
    written = {name: buffer.clone() for name, buffer in model.named_buffers()}
    with rg.no_grad():
        for name, buffer in model.named_buffers():
            buffer.copy_(initial[name])
    Pipeline(model, stages=3, micro_batches=4, loss_fn=nn.functional.mse_loss).step(x, target=y)
    for name, buffer in model.named_buffers():
        assert_close(buffer * 1.0, written[name] * 1.0)


def test_a_batch_norm_that_two_stages_run_is_written_once_both_have():
    norm, x = BatchNorm(), rg.randn(5, 4)
    pipe = pipeline(nn.Sequential(norm, nn.Linear(4, 4), norm), (x,), split_spec={"1": SplitPoint.END})
    pipe(x)
    assert norm.count.item() == 2


class Writing(nn.Module):
    """A linear layer and a buffer, and a program that writes to them."""

    def __init__(self, program):
        super().__init__()
        self.program = program
        with rg.random.fork_rng():
            rg.manual_seed(1)
            self.a = nn.Linear(4, 4)
        self.register_buffer("k", rg.arange(4.0))
        self.register_buffer("m", rg.ones(4))
        self.register_buffer("count", rg.tensor(0))

    def forward(self, x):
        return self.program(self, x)


def in_place(self, x):
    self.count += 1
    self.k.mul_(2.0)
    return self.a(x * self.k) + self.k + self.count


def the_old_value_later(self, x):
    old = self.k.clone()
    self.k.copy_(x[0].detach() * 2)
    return self.a(x) * old + self.k


def a_view_of_the_old_later(self, x):
    v = self.k[:2]
    h = self.a(x)[:, :2] + v + v
    self.k.add_(1)
    return h + self.k[0]


def a_swap(self, x):
    h = self.a(x)
    self.k, self.m = self.m, self.k
    return h * self.k + self.m


def remembering(self, x):
    h = x[0] + self.k
    with rg.no_grad():
        self.k.copy_(h * 2)
    return self.a(h)


def the_buffer_itself(self, x):
    self.k += x[0].detach()
    return x * self.k + self.a(x)


def clamped_weights(self, x):
    with rg.no_grad():
        self.a.weight.clamp_(-0.1, 0.1)
    return self.a(self.a(x))


def weights_after_use(self, x):
    h = self.a(x)
    with rg.no_grad():
        self.a.weight.copy_(self.a.weight * 0.5)
    return h + self.a(h.detach())


def a_decay_before_much(self, x):
    decayed = self.k * 0.9
    h = self.a(x).tanh()
    self.k.copy_(decayed + h.detach().sum(0))
    return h


@pytest.mark.parametrize(
    "program",
    [in_place, the_old_value_later, a_view_of_the_old_later, a_swap, remembering, a_decay_before_much,
     the_buffer_itself, clamped_weights,
     weights_after_use],
)  # fmt: skip
def test_a_model_that_writes_may_be_cut_between_any_two_operators(program):
    whole, x = Writing(program), rg.randn(3, 4)
    count = len(rg.fx.trace(whole, x).graph.find_nodes(op="call_function"))
    pipes = [(m := Writing(program), pipeline(m, (x,), split_policy=cut_after(n))) for n in range(1, count)]
    for _ in range(2):
        expected, gradients = loss_and_gradients(whole, whole, x)
        for model, pipe in pipes:
            found, split_gradients = loss_and_gradients(pipe, model, x)
            assert_close(found, expected)
            for name, gradient in gradients.items():
                assert_close(split_gradients[name], gradient)
            for name, value in whole.state_dict().items():
                assert_close(model.state_dict()[name] * 1.0, value * 1.0)


@pytest.mark.parametrize("config", MultiUseParameterConfig)
def test_a_parameter_is_written_once_however_stages_share_it(config):
    whole, x = Writing(clamped_weights), rg.randn(4, 4)
    model = Writing(lambda self, x: marked_after_one(self, x))
    pipe = pipeline(model, (x,), multi_use_param_spec=config)
    assert pipe.num_stages == 2
    found, split_gradients = loss_and_gradients(pipe, model, x)
    expected, gradients = loss_and_gradients(whole, whole, x)
    assert_close(found, expected)
    assert_close(split_gradients["a.weight"], gradients["a.weight"])
    assert_close(model.a.weight, whole.a.weight)


@pytest.mark.parametrize("schedule", ["gpipe", "1f1b"])
def test_steps_write_parameters_micro_batch_after_micro_batch(schedule):
    model, whole, x = Writing(marked_after_one), Writing(clamped_weights), rg.randn(8, 4)
    for part in x.split(2):
        ((whole(part) ** 2).mean() / 4).backward()
    options = {"schedule": schedule, "micro_batches": 4, "loss_fn": lambda out, target: (out**2).mean()}
    Pipeline(model, **options).step(x, target=x)
    assert_close(model.a.weight.grad, whole.a.weight.grad)
    assert_close(model.a.weight, whole.a.weight)


def marked_after_one(self, x):
    with rg.no_grad():
        self.a.weight.clamp_(-0.1, 0.1)
    h = self.a(x)
    pipe_split()
    return self.a(h)


def test_values_of_later_stages_read_by_earlier_ones_are_refused():
    def program(self, x):
        h = self.a(x + self.k).tanh()
        pipe_split()
        with rg.no_grad():
            self.k.copy_(self.a(h).sum(0))
        return h

    with pytest.raises(RuntimeError, match=r"stage 1 writes to 'k', which add in stage 0 reads; cut the model so"):
        pipeline(Writing(program), (rg.ones(3, 4),))


def test_random_steps_do_not_move_to_where_a_buffer_is_read():
    def program(self, x):
        h = self.a(x + self.k)
        pipe_split()
        self.k.copy_(rg.rand(4))
        return h

    with pytest.raises(RuntimeError, match=r"stage 1 writes to 'k', which add in stage 0 reads"):
        pipeline(Writing(program), (rg.ones(3, 4),))


def test_an_attribute_that_is_made_by_running_is_refused_by_name():
    def program(self, x):
        self.cache = self.a(x)
        return self.cache * 2

    with pytest.raises(RuntimeError, match=r"assigns a tensor to its attribute 'cache'.*register_buffer\(\)"):
        pipeline(Writing(program), (rg.ones(3, 4),))


# ------------------------------------------------------------------------------------------------------- inputs


class ToInputs(nn.Module):
    """Write to all of one input and to a part of another, and return the first itself."""

    def __init__(self):
        super().__init__()
        self.a = nn.Linear(4, 4)

    def forward(self, x, y):
        h = self.a(x)
        x.mul_(2)
        z = self.a(x) + h
        y[0] = x[0]
        return {"z": z, "x": x, "y": y * 2}


@pytest.mark.parametrize("run", [lambda p: p, lambda p: p.split_gm, lambda p: DetachExecutor(p.split_gm).run])
def test_inputs_are_written_to_when_all_stages_have_run(run):
    model, x, y = ToInputs(), rg.randn(3, 4), rg.randn(3, 4)
    count = len(rg.fx.trace(model, x, y).graph.find_nodes(op="call_function"))
    for after in range(1, count):
        here, there = (x.clone(), y.clone()), (x.clone(), y.clone())
        pipe = pipeline(model, here, split_policy=cut_after(after))
        assert all((a == b).all() for a, b in zip(here, (x, y), strict=True))
        found, expected = run(pipe)(*here), model(*there)
        if isinstance(found, tuple):  # a call of the pipe returns a tuple, in the order of the model's dict
            found = dict(zip(expected, found, strict=True))
        assert found["x"] is here[0]
        for a, b in zip((*here, found["z"], found["y"]), (*there, expected["z"], expected["y"]), strict=True):
            assert_close(a, b)


def test_a_loss_is_found_in_a_model_that_writes_to_its_input():
    class Doubling(TrivialLossWrapper):
        def forward(self, x, targets):
            x.mul_(2)
            return super().forward(x, targets)

    model, x, y = Doubling(nn.Linear(4, 2), nn.functional.mse_loss), rg.randn(3, 4), rg.randn(3, 2)
    expected = copy.deepcopy(model)(x.clone(), y)
    pipe = pipeline(model, (x.clone(), y), split_policy=cut_after(1))
    assert pipe.has_loss_and_backward
    assert_close(DetachExecutor(pipe.split_gm).run(x.clone(), y), expected)
    assert model.module.weight.grad is not None


def test_a_pipeline_refuses_a_model_that_writes_to_its_input_before_anything_runs():
    def program(self, x):
        self.count += 1
        x.mul_(2.0)
        return self.a(x)

    model, x = Writing(program), rg.ones(4, 4)
    with pytest.raises(RuntimeError, match="the model writes to its input 'x'; a Pipe that is called does so"):
        Pipeline(model, stages=2, micro_batches=2).predict(x)
    assert (model.count.item(), x[0, 0].item()) == (0, 1.0)

"""Users' Functions and custom operators are nodes of graphs, with their own derivatives."""

import pytest

import retrograd as rg
from retrograd import fx, nn
from retrograd.autograd import Function
from retrograd.pipelining import Pipeline, SplitPoint, pipeline
from retrograd.testing import assert_close

from ..case_groups import group_cases
from ..functions import Steep

SLOPE = 7.0  # the gradients below are 7 g, while the forward doubles: code that differentiates the forward gets 2 g


class SteepInForward(Function):
    """Double; save and mark in forward itself."""

    @staticmethod
    def forward(ctx, x, slope):
        ctx.slope = slope
        return x * 2

    @staticmethod
    def backward(ctx, g):
        return g * ctx.slope, None


@rg.library.custom_op("function_nodes::steep", mutates_args=())
def steep_op(x: rg.Tensor, slope: float) -> rg.Tensor:
    return x * 2


steep_op.register_autograd(lambda ctx, g: (g * ctx.slope, None), setup_context=Steep.setup_context)

lib = rg.library.Library("function_nodes", "FRAGMENT")
lib.define("defined(Tensor x, float slope) -> Tensor")
lib.impl("defined", lambda x, slope: x * 2, "CPU")
rg.library.register_autograd(
    "function_nodes::defined", lambda ctx, g: (g * ctx.slope, None), setup_context=Steep.setup_context
)
lib.define("keyed(Tensor x, float slope) -> Tensor")
lib.impl("keyed", lambda x, slope: x * 2, "CPU")
lib.impl("keyed", Steep.apply, "Autograd")
lib.define("composed(Tensor x, float slope) -> Tensor")
lib.impl("composed", Steep.apply, "CompositeImplicitAutograd")

CALLS = {
    "Function": SteepInForward.apply,
    "Function with setup_context": Steep.apply,
    "custom_op": steep_op,
    "define and impl": rg.ops.function_nodes.defined,
    "the key Autograd": rg.ops.function_nodes.keyed,
    "the key CompositeImplicitAutograd": rg.ops.function_nodes.composed,
}


class Model(nn.Module):
    """Two layers with a call between, which a pipeline cuts apart before the second layer."""

    def __init__(self, call):
        super().__init__()
        rg.manual_seed(0)
        self.first, self.second = nn.Linear(3, 3), nn.Linear(3, 2)
        self._call = call

    def forward(self, x):
        return self.second(self._call(self.first(x), SLOPE).tanh())


def assert_all_close(found, expected):
    for a, b in zip(found, expected, strict=True):
        assert_close(a, b)


def gradients_of(run, x, parameters):
    """Return the gradients of x and of the parameters, after the sum of squares of `run(x)` is differentiated."""
    for p in parameters:
        p.grad = None
    x = x.detach().requires_grad_()
    out = run(x)
    (out[0] if isinstance(out, tuple) else out).square().sum().backward()
    return [x.grad] + [p.grad.clone() for p in parameters]


def by_trace(model, x):
    return fx.trace(model, x)


def by_symbolic_trace(model, x):
    return fx.symbolic_trace(model)


def by_export(model, x):
    return rg.export.export(model, (x,)).module()


def by_pipe(model, x):
    pipe = pipeline(model, (x,), split_spec={"second": SplitPoint.BEGINNING})
    assert pipe.num_stages == 2
    return pipe


GRAPHS = {"fx.trace": by_trace, "symbolic_trace": by_symbolic_trace, "export": by_export, "Pipe": by_pipe}


@group_cases
@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
@pytest.mark.parametrize("capture", GRAPHS.values(), ids=GRAPHS)
def test_a_graph_keeps_the_derivative_that_a_user_wrote(capture, call):
    model, x = Model(call), rg.randn(4, 3)
    expected = gradients_of(model, x, [*model.parameters()])
    captured = capture(model, x)
    named = dict(captured.named_parameters())
    assert_all_close(gradients_of(captured, x, [named[name] for name, _ in model.named_parameters()]), expected)


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_a_pipeline_over_threads_keeps_the_derivative_that_a_user_wrote(call):
    model, x = Model(call), rg.randn(4, 3)
    run = Pipeline(model, stages=2, ranks=2, micro_batches=2, loss_fn=lambda y, target: y.square().mean())
    expected = [g / 8 for g in gradients_of(model, x, [*model.parameters()])[1:]]
    model.zero_grad()
    run.step(x, target=x)
    assert_all_close([p.grad for p in model.parameters()], expected)


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_a_stage_of_a_pipe_keeps_the_derivative_that_a_user_wrote(call):
    model, x = Model(call), rg.randn(4, 3)
    expected = gradients_of(model, x, [*model.parameters()])
    stages = [by_pipe(model, x).build_stage(i).submod for i in range(2)]
    named = {name: p for stage in stages for name, p in stage.named_parameters()}

    def run(x):
        for stage in stages:
            x = stage(x)
            x = x[0] if isinstance(x, tuple) else x
        return x

    assert_all_close(gradients_of(run, x, [named[name] for name, _ in model.named_parameters()]), expected)

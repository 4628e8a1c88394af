"""Writes in traced code: the graph contains them, and running it has the same effects as the code."""

import copy
import pickle
from collections.abc import Callable
from typing import Any

import pytest

import retrograd as rg
from retrograd import func, fx, nn
from retrograd.testing import assert_close

from ..case_groups import group_cases


def same(actual, expected):
    assert_close(actual, expected, rtol=0.0, atol=0.0)


class Norm(nn.Module):
    """Batch normalization as in PyTorch: running statistics and a counter, written in training."""

    def __init__(self, size, replaces=False):
        super().__init__()
        self.weight = nn.Parameter(rg.linspace(0.5, 1.5, size))
        self.register_buffer("running_mean", rg.zeros(size))
        self.register_buffer("running_var", rg.ones(size))
        self.register_buffer("num_batches_tracked", rg.tensor(0))
        self.replaces = replaces

    def forward(self, x):
        if not self.training:
            return (x - self.running_mean) / (self.running_var + 1e-5).sqrt() * self.weight
        mean, var = x.mean(0), x.var(0, unbiased=False)
        with rg.no_grad():
            self.num_batches_tracked += 1
            if self.replaces:
                self.running_mean = 0.9 * self.running_mean + 0.1 * mean
            else:
                self.running_mean.mul_(0.9).add_(0.1 * mean)
            self.running_var.copy_(0.9 * self.running_var + 0.1 * var)
        return (x - mean) / (var + 1e-5).sqrt() * self.weight


def state(module):
    return {name: t.detach().clone() for name, t in module.state_dict().items()}


def same_state(a, b):
    assert list(a) == list(b)
    for name in a:
        same(a[name], b[name])


@pytest.mark.parametrize("replaces", [False, True], ids=["in place", "replaced"])
@pytest.mark.parametrize("runner", ["module", "interpreter", "again", "pickled"])
def test_running_statistics_move_as_those_of_the_module(replaces, runner):
    net = nn.Sequential(nn.Linear(3, 4), Norm(4, replaces), nn.Tanh())
    twin = copy.deepcopy(net)
    before = state(net)
    module = fx.trace(net, rg.randn(5, 3))
    same_state(state(net), before)
    module.graph.lint()
    if runner == "again":
        again = fx.trace(module, rg.randn(5, 3))
        assert [n.target for n in again.graph.nodes] == [n.target for n in module.graph.nodes]
        assert again.graph.signature.mutations == module.graph.signature.mutations
        module = again
    if runner == "pickled":
        module = pickle.loads(pickle.dumps(module))
    run = fx.Interpreter(module).run if runner == "interpreter" else module
    for _ in range(3):
        x, y = rg.randn(5, 3), None
        x.requires_grad_()
        y, expected = run(x), twin(x)
        same(y, expected)
        wanted = list(module.parameters())
        grads = rg.autograd.grad(y.square().sum(), [x, *wanted])
        for g, e in zip(grads, rg.autograd.grad(expected.square().sum(), [x, *twin.parameters()]), strict=True):
            same(g, e)
        same_state(state(module), state(twin))
        assert not module.get_buffer("1.running_mean").requires_grad
    assert module.get_buffer("1.num_batches_tracked").item() == 3
    if runner != "pickled":  # the buffers are shared with the module that was traced
        same_state(state(net), state(twin))


def test_the_signature_lists_the_target_of_each_output():
    module = fx.trace(Norm(2), rg.ones(3, 2))
    mutations = module.graph.signature.mutations
    assert mutations == [
        ("buffer", "running_mean", False),
        ("buffer", "running_var", False),
        ("buffer", "num_batches_tracked", True),
    ]
    outputs = module.graph.output_node().args[0]
    assert len(outputs) == len(mutations) + 1
    for mutation, node in zip(mutations, outputs, strict=False):
        assert node.meta["val"] == module.get_buffer(mutation.target).aval
    assert not module.graph.find_nodes(op="call_function", target=rg.core.operator_named("view_scatter"))


def test_evaluation_writes_nothing():
    module = fx.trace(Norm(2).eval(), rg.ones(3, 2))
    assert module.graph.signature.mutations == []
    assert module.graph.output_node().args[0].op == "call_function"


# ----------------------------------------------------------------------------------------------------- arguments


def in_place(x, w):
    x.mul_(w)
    return x.sum()


def into_a_view(x, w):
    x[0].add_(w[0])
    x[1:, 1] = 7.0
    return x * w


def through_views(x, w):
    row = x[1]
    x.mul_(2)
    row += w[1]
    return row.sum(), x


def returned(x, w):
    x += w
    return {"same": x, "also": x, "part": x[0], "w": w}


def all_new(x, w):
    old = x.clone()
    x.copy_(w)
    return old * x


def without_grad(x, w):
    with rg.no_grad():
        x.clamp_(-0.5, 0.5)
        x[0] = 2.0
    return (x * w).sum()


def without_grad_then_with(x, w):
    with rg.no_grad():
        x.clamp_(-0.5, 0.5)
    x *= w
    return x * 3


def by_detach(x, w):
    x.detach().mul_(2)
    return (x * x * w).sum()


def swapped(x, w):
    old = x.clone()
    x.copy_(w)
    w.copy_(old)
    return (x - 2 * w).sum()


def filled(x, w):
    x.zero_()
    w.fill_(2.0)


def out_argument(x, w):
    with rg.no_grad():
        rg.mul(x, w, out=x)
    return x + 1


def masked(x, w):
    x[x > 0] = 0.0
    return x * w


WRITES: list[Callable[..., Any]] = [
    in_place, into_a_view, through_views, returned, all_new, without_grad, without_grad_then_with, by_detach, swapped,
    filled, out_argument, masked,
]  # fmt: skip
UNRECORDED = (without_grad, without_grad_then_with, out_argument)


def leaves_of(out):
    if isinstance(out, rg.Tensor):
        return [out]
    if isinstance(out, dict):
        out = list(out.values())
    return [leaf for o in out or () for leaf in leaves_of(o)]


@group_cases
@pytest.mark.parametrize("runner", ["module", "interpreter", "again"])
@pytest.mark.parametrize("f", WRITES, ids=lambda f: f.__name__)
def test_a_run_of_the_graph_changes_the_same_tensors_as_the_code(f, runner):
    examples = rg.randn(3, 3), rg.randn(3, 3)
    before = [x.clone() for x in examples]
    module = fx.trace(f, *examples)
    module.graph.lint()
    for x, b in zip(examples, before, strict=True):
        same(x, b)
    if runner == "again":
        again = fx.trace(module, *examples)
        assert again.graph.signature.mutations == module.graph.signature.mutations
        module = again
    run = fx.Interpreter(module).run if runner == "interpreter" else module
    sources = [rg.randn(3, 3, requires_grad=True) for _ in range(2)]
    found = []
    for g in (run, f):
        inputs = [x * 1 for x in sources]
        leaves = [*leaves_of(g(*inputs)), *inputs]
        total = sum((i + 1.5) * (leaf * leaf).sum() for i, leaf in enumerate(leaves))
        grads = rg.autograd.grad(total, sources, allow_unused=True)
        found.append([*leaves, *[rg.zeros(3, 3) if d is None else d for d in grads]])
    for actual, expected in zip(*found, strict=True):
        assert_close(actual.detach(), expected.detach(), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("f", WRITES, ids=lambda f: f.__name__)
def test_transforms_of_the_graph_are_those_of_the_code(f):
    module = fx.trace(f, rg.randn(3, 3), rg.randn(3, 3))
    x, w = rg.randn(3, 3), rg.randn(3, 3)

    def total(g):
        def closed(x, w):
            x, w = x * 1, w * 1
            return sum((leaf * leaf).sum() for leaf in [*leaves_of(g(x, w)), x, w])

        return closed

    for transform in (
        lambda g: func.grad(g, argnums=(0, 1))(x, w),
        lambda g: (func.vmap(g)(rg.stack([x, w]), rg.stack([w, x])),),
        *[lambda g: func.jvp(g, (x, w), (w, x))] * (f not in UNRECORDED),  # where tangents continue in eager code
    ):
        for actual, expected in zip(transform(total(module)), transform(total(f)), strict=True):
            assert_close(actual, expected, rtol=1e-6, atol=1e-6)


def test_an_argument_that_is_returned_after_a_write_is_itself():
    module = fx.trace(returned, rg.ones(3), rg.ones(3))
    x, w = rg.ones(3), rg.ones(3)
    out = module(x, w)
    assert out["same"] is x
    assert out["also"] is x
    assert out["w"] is w


def test_writing_to_a_leaf_is_refused_as_in_eager_and_allowed_under_no_grad():
    module = fx.trace(in_place, rg.ones(2), rg.ones(2))
    with pytest.raises(RuntimeError, match="leaf Variable"):
        module(rg.ones(2, requires_grad=True), rg.ones(2))
    module = fx.trace(without_grad, rg.ones(2), rg.ones(2))
    x = rg.tensor([3.0, 0.25], requires_grad=True)
    (g,) = rg.autograd.grad(module(x, rg.tensor([5.0, 6.0])), x)
    same(g, rg.tensor([5.0, 6.0]))
    same(x.detach(), rg.tensor([2.0, 0.25]))


def test_arguments_that_share_memory_are_refused_if_one_is_written_to():
    x = rg.ones(2, 3)
    with pytest.raises(ValueError, match="x is written to, and shares memory with w"):
        fx.trace(in_place, x, x[0])
    module = fx.trace(in_place, rg.ones(2, 3), rg.ones(3))
    with pytest.raises(ValueError, match="clone one of them"):
        module(x, x[0])
    same(x, rg.ones(2, 3))
    fx.trace(lambda x, w: x * w, x, x)(x, x)


# ---------------------------------------------------------------------------------------------------- attributes


class Clipped(nn.Module):
    """Weights clipped by writes without grad, as those of Embedding with max_norm."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(rg.tensor([2.0, 0.5]))

    def forward(self, x):
        with rg.no_grad():
            self.weight.clamp_(-1, 1)
        return x * self.weight


def test_parameters_written_without_grad_keep_their_gradient():
    net, x = Clipped(), rg.tensor([3.0, 4.0])
    module = fx.trace(net, x)
    same(net.weight.detach(), rg.tensor([2.0, 0.5]))
    (g,) = rg.autograd.grad(module(x).sum(), net.weight)
    same(g, x)
    same(net.weight.detach(), rg.tensor([1.0, 0.5]))


class Remembering(nn.Module):
    """Plain tensors as attributes: one replaced, one created, one written through another name."""

    def __init__(self):
        super().__init__()
        self.hidden = rg.zeros(2)
        self.alias = [self.hidden]
        self.last = None
        self.steps = 0

    def forward(self, x):
        self.steps += 1
        self.last = x * 2
        self.hidden = self.hidden * 0.5 + x
        return self.hidden + 1


def test_tensors_assigned_to_attributes_are_assigned_when_the_graph_runs():
    net, twin = Remembering(), Remembering()
    module = fx.trace(net, rg.ones(2))
    assert (net.last, net.steps, net.hidden.tolist()) == (None, 0, [0.0, 0.0])
    assert net.hidden is net.alias[0]
    assert {m.kind for m in module.graph.signature.mutations} == {"constant", "attribute"}
    for k in range(3):
        x = rg.full((2,), float(k))
        same(module(x), twin(x))
        same(net.hidden, twin.hidden)
        same(module.last, twin.last)


def test_graphs_computed_from_a_replaced_buffer_can_be_differentiated():
    class Decaying(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("rate", rg.tensor([2.0, 3.0]))

        def forward(self, x):
            y = x * self.rate
            old = self.rate
            self.rate = self.rate * 0.5
            return y, old

    net = Decaying()
    module = fx.trace(net, rg.ones(2))
    x = rg.ones(2, requires_grad=True)
    y, old = module(x)
    same(rg.autograd.grad(y.sum(), x)[0], rg.tensor([2.0, 3.0]))
    same(old, rg.tensor([2.0, 3.0]))
    same(net.rate, rg.tensor([1.0, 1.5]))


def test_a_buffer_that_changes_its_shape_is_refused_by_name():
    class Growing(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("cache", rg.zeros(1, 2))

        def forward(self, x):
            self.cache = rg.cat([self.cache, x])
            return self.cache.sum()

    net = nn.Sequential(Growing())
    cache = net[0].cache
    with pytest.raises(NotImplementedError, match=r"replaced 0\.cache, float32\[1, 2\], by float32\[2, 2\]"):
        fx.trace(net, rg.ones(1, 2))
    assert net[0].cache is cache


def test_an_error_in_the_code_puts_the_module_back():
    class Failing(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("mean", rg.zeros(2))

        def forward(self, x):
            self.mean += x
            self.more = self.mean * 2
            raise KeyError("mine")

    net = Failing()
    attributes, mean = list(vars(net)), net.mean
    with pytest.raises(KeyError, match="mine"):
        fx.trace(net, rg.ones(2))
    assert list(vars(net)) == attributes
    assert net.mean is mean
    same(mean, rg.zeros(2))


def test_a_tied_buffer_replaced_under_one_name_only_is_refused():
    net = nn.Sequential(Norm(2, replaces=True), Norm(2))
    net[1].running_mean = net[0].running_mean
    with pytest.raises(NotImplementedError, match="goes by other names too"):
        fx.trace(net, rg.ones(3, 2))


def test_a_value_read_from_a_buffer_is_guarded():
    class Switch(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("on", rg.tensor(True))

        def forward(self, x):
            return x * 2 if self.on else x

    net = Switch()
    module = fx.trace(net, rg.ones(2))
    same(module(rg.ones(2)), rg.full((2,), 2.0))
    net.on.fill_(False)
    with pytest.raises(RuntimeError, match="in forward read the value True"):
        module(rg.ones(2))


def test_a_write_to_a_tensor_that_is_neither_argument_nor_attribute_is_refused():
    total = rg.zeros(2)
    with pytest.raises(RuntimeError, match="clone it there"):
        fx.trace(lambda x: total.add_(x), rg.ones(2))
    same(total, rg.zeros(2))


def test_a_graph_that_writes_gives_its_result_only_when_it_has_written():
    signature = fx.trace(in_place, rg.ones(2), rg.ones(2)).graph.signature
    with pytest.raises(NotImplementedError, match="writes to x"):
        signature.restore((rg.ones(2), rg.ones(())))


def test_functions_that_name_a_module_or_are_its_methods_write_to_it_too():
    class Wrapped(Norm):
        def loss(self, x):
            return self(x).square().sum()

    net, x = Wrapped(3, replaces=True), rg.randn(5, 3)
    for f in (lambda x: net.loss(x), net.loss):
        twin, before = copy.deepcopy(net), state(net)
        module = fx.trace(f, rg.randn(5, 3))
        same_state(state(net), before)
        same(module(x).detach(), twin.loss(x).detach())
        same_state(state(net), state(twin))

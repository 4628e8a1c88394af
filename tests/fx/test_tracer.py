"""Tracing: the graph contains the operators that ran, and computes the same as the code."""

from collections import namedtuple

import optree
import pytest

import retrograd as rg
from retrograd import func, fx, nn
from retrograd.core import current, op, registry
from retrograd.core.definition import Definition
from retrograd.nn.members import all_attributes
from retrograd.testing import assert_close

Pair = namedtuple("Pair", "first second")


class Net(nn.Module):
    """Two layers, with a tied weight, a persistent and a non-persistent buffer, and a plain tensor."""

    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(3, 3), nn.GELU(), nn.Linear(3, 3))
        self.layers[2].weight = self.layers[0].weight
        self.register_buffer("mean", rg.full((3,), 0.5))
        self.register_buffer("cache", rg.full((3,), 2.0), persistent=False)
        self.unused = nn.Parameter(rg.ones(2))
        self.plain = rg.full((3,), 0.25)

    def forward(self, x):
        return self.layers(x - self.mean) * self.cache + self.plain


def same(actual, expected):
    assert_close(actual, expected, rtol=0.0, atol=0.0)


def test_a_traced_module_agrees_with_the_module_for_other_inputs():
    net = Net()
    module = fx.trace(net, rg.randn(4, 3))
    x = rg.randn(4, 3)
    same(module(x), net(x))
    module.graph.lint()


def test_gradients_through_a_traced_module_are_the_eager_ones():
    net = Net()
    module = fx.trace(net, rg.randn(4, 3))
    x = rg.randn(4, 3, requires_grad=True)
    wanted = [x, *(p for name, p in net.named_parameters() if name != "unused")]
    eager = rg.autograd.grad(net(x).square().sum(), wanted)
    for actual, expected in zip(rg.autograd.grad(module(x).square().sum(), wanted), eager, strict=True):
        same(actual, expected)


def test_transforms_apply_to_a_traced_function():
    module = fx.trace(lambda x: (x**3).sum(), rg.ones(2))
    x, t = rg.tensor([1.0, 2.0]), rg.tensor([1.0, 0.5])
    same(func.grad(module)(x), rg.tensor([3.0, 12.0]))
    same(func.jvp(module, (x,), (t,))[1], rg.tensor(9.0))
    same(func.jvp(func.grad(module), (x,), (t,))[1], rg.tensor([6.0, 6.0]))


def test_transforms_inside_the_traced_function_are_traced():
    module = fx.trace(func.grad(lambda x: (x**3).sum()), rg.ones(2))
    same(module(rg.tensor([1.0, 2.0])), rg.tensor([3.0, 12.0]))


def test_a_backward_pass_inside_the_traced_function_is_traced():
    def slope(x):
        x = x.detach().requires_grad_()
        return rg.autograd.grad((x**3).sum(), x)[0]

    same(fx.trace(slope, rg.ones(2))(rg.tensor([1.0, 2.0])), rg.tensor([3.0, 12.0]))


def test_tracing_a_traced_module_again_gives_the_same_graph():
    def f(x, *rest, scale, **more):
        y = rg.cat([x, *rest]) * scale
        if y.sum() > 0:
            y = y[1:]
        with rg.no_grad():
            return {"y": y * more["offset"], "noise": rg.rand(2)}

    inputs = (rg.ones(2), rg.ones(3)), {"scale": 2.0, "offset": rg.ones(4)}
    once = fx.trace(f, *inputs[0], **inputs[1])
    twice = fx.trace(once, *inputs[0], **inputs[1])
    assert str(twice.graph) == str(once.graph)
    assert twice.code == once.code
    net = fx.trace(Net(), rg.ones(1, 3))
    again = fx.trace(net, rg.ones(1, 3))
    assert again.code == net.code
    assert list(again.state_dict()) == list(net.state_dict())


def test_a_graph_without_signature_is_traced_again_under_the_names_of_its_inputs():
    graph = fx.Graph()
    a, b = graph.placeholder("a"), graph.placeholder("b")
    graph.output(graph.call_function(registry["sub"], (a, b)))
    module = fx.GraphModule(nn.Module(), graph)
    same(module(rg.ones(2), b=rg.ones(2)), rg.zeros(2))
    assert str(fx.trace(module, rg.ones(2), rg.ones(2)).graph) == str(graph)


# -------------------------------------------------------------------------------------------- recorded nodes


def test_nodes_know_shapes_dtypes_and_the_users_line():
    def f(x):
        return rg.relu(x) > 0

    nodes = list(fx.trace(f, rg.ones(2, 3)).graph.nodes)
    assert [str(n.meta["val"]) for n in nodes[:-1]] == ["float32[2, 3]", "float32[2, 3]", "bool[2, 3]"]
    line = f.__code__.co_firstlineno + 1
    assert [n.meta["stack_trace"] for n in nodes[1:-1]] == [f"{__file__}:{line} in f"] * 2


def test_the_users_line_survives_tracing_again():
    once = fx.trace(lambda x: x.exp(), rg.ones(2))
    twice = fx.trace(once, rg.ones(2))
    assert [n.meta for n in twice.graph.nodes] == [n.meta for n in once.graph.nodes]
    assert "<lambda>" in twice.graph.find_nodes(op="call_function")[0].meta["stack_trace"]


def test_factories_and_random_operators_are_part_of_the_graph():
    module = fx.trace(lambda x: x + rg.rand(2) + rg.ones(2), rg.zeros(2))
    assert [n.name for n in module.graph.find_nodes(op="call_function")] == ["rand", "add", "ones", "add_1"]
    rg.manual_seed(1)
    first, second = module(rg.zeros(2)), module(rg.zeros(2))
    assert first.tolist() != second.tolist()
    rg.manual_seed(1)
    same(first, 1 + rg.rand(2))


def test_tensors_from_outside_are_constants_of_the_module_each_once():
    outside, array = rg.tensor([1.0, 2.0]), rg.tensor([3.0, 4.0]).numpy()
    module = fx.trace(lambda x: x * outside + outside * array, rg.ones(2))
    read = [n.target for n in module.graph.find_nodes(op="get_attr")]
    assert read == ["_tensor_constant0", "_tensor_constant1"]
    assert module._tensor_constant0 is outside
    assert list(module.state_dict()) == []
    same(module(rg.ones(2)), rg.tensor([4.0, 10.0]))


def test_arguments_are_recorded_as_the_operator_takes_them_without_defaults():
    module = fx.trace(lambda x: (x.sum(), x.sum(0), x.sum(0, keepdim=True)), rg.ones(2, 3))
    kwargs = [n.kwargs for n in module.graph.find_nodes(op="call_function")]
    assert kwargs == [{}, {"dim": (0,)}, {"dim": (0,), "keepdim": True}]


def test_operations_under_no_grad_stay_out_of_the_gradient():
    def f(x):
        with rg.no_grad():
            y = x * 3
        return (y * x).sum()

    module = fx.trace(f, rg.ones(2))
    for g in (f, module, fx.trace(module, rg.ones(2))):
        x = rg.tensor([1.0, 2.0], requires_grad=True)
        same(rg.autograd.grad(g(x), x)[0], rg.tensor([3.0, 6.0]))


def test_nothing_is_recorded_for_autograd_while_tracing():
    net, seen = Net(), []

    def f(x):
        y = net(x)
        seen.append(y.value)
        return y

    fx.trace(f, rg.ones(1, 3, requires_grad=True))
    assert seen[0].grad_fn is None
    assert not seen[0].requires_grad


def test_an_operator_of_several_results_is_followed_by_a_pick_of_each_that_is_used():
    @op("test_halves(Tensor x, int at) -> (Tensor, Tensor)")
    class halves(Definition, linear="x"):
        """Return the parts before and after a position."""

        def impl(xp, x, *, at):
            return x[:at], x[at:]

    try:
        module = fx.trace(lambda x: halves(x, 2)[1] * 2, rg.arange(4))
        assert [n.name for n in module.graph.nodes] == ["x", "test_halves", "test_halves_1", "mul", "output"]
        module.graph.lint()
        same(module(rg.arange(4)), rg.tensor([4, 6]))
        again = fx.trace(module, rg.arange(4))
        assert again.code == module.code
    finally:
        del registry["test_halves"]


# ------------------------------------------------------------------------------------------------- the module


def test_the_graph_module_owns_the_same_parameters_under_the_same_names():
    net = Net()
    module = fx.trace(net.eval(), rg.ones(1, 3))
    assert list(module.state_dict()) == list(net.state_dict())
    for list_of in (nn.Module.named_parameters, nn.Module.named_buffers):
        assert [(n, id(t)) for n, t in list_of(module)] == [(n, id(t)) for n, t in list_of(net)]
    assert module.training is False


def test_shared_tensors_keep_all_names_and_are_read_under_the_first():
    net = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
    net[1].bias = net[0].bias
    net.append(net[0])
    module = fx.trace(net, rg.ones(1, 2))
    assert list(module.state_dict()) == list(net.state_dict())
    assert len(list(module.parameters())) == 3
    read = [n.target for n in module.graph.find_nodes(op="get_attr")]
    assert read == ["0.weight", "0.bias", "1.weight"]


def test_the_users_module_is_left_as_it_is():
    net = Net()

    def state():
        attributes = [(n, k, id(v)) for n, m in net.named_modules() for k, v in all_attributes(m).items()]
        return attributes, {n: v.tolist() for n, v in net.state_dict().items()}

    before = state()
    fx.trace(net, rg.ones(1, 3))
    assert state() == before
    assert all(p.requires_grad and p.grad is None for p in net.parameters())


# ---------------------------------------------------------------------------------------------------- pytrees


def test_arguments_and_results_are_pytrees():
    def f(batch, pair, scale=2.0, *, mask=None):
        total = batch["x"][0] * scale + pair.second
        return Pair(total, {"n": len(batch["x"]), "none": mask, "same": batch["x"][1]})

    def arguments(k):
        return {"x": [rg.full((2,), k), rg.full((2,), 2 * k)]}, Pair(None, rg.full((), 3 * k))

    module = fx.trace(f, *arguments(1.0))
    assert [n.name for n in module.graph.find_nodes(op="placeholder")] == ["batch_x_0", "batch_x_1", "pair_1"]
    result = module(*arguments(2.0))
    assert isinstance(result, Pair)
    same(result.first, rg.full((2,), 10.0))
    assert (result.second["n"], result.second["none"]) == (2, None)
    same(result.second["same"], rg.full((2,), 4.0))


def test_calls_may_name_arguments_and_give_or_leave_out_defaults():
    module = fx.trace(lambda x, y, k=2: x - k * y, rg.ones(2), rg.ones(2))
    x, y = rg.full((2,), 5.0), rg.full((2,), 1.0)
    for result in (module(x, y), module(x, y=y), module(y=y, x=x), module(x, y, 2), module(x, y, k=2)):
        same(result, rg.full((2,), 3.0))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda m: m({"a": rg.ones(2), "b": rg.ones(2)}, 1), "batch: traced with the structure"),
        (lambda m: m({"b": rg.ones(2)}, 1), "batch: traced with the structure"),
        (lambda m: m({"a": rg.ones(2)}, 2), "k: traced with 1, got 2"),
        (lambda m: m({"a": rg.ones(2)}, True), "k: traced with 1, got True"),
        (lambda m: m({"a": rg.ones(3)}, 1), r"batch_a: traced with float32\[2\], got float32\[3\]"),
        (lambda m: m({"a": rg.arange(2)}, 1), r"batch_a: traced with float32\[2\], got int64\[2\]"),
        (lambda m: m({"a": 3.0}, 1), r"batch_a: traced with float32\[2\], got 3.0"),
    ],
)
def test_arguments_unlike_the_example_are_refused(call, message):
    module = fx.trace(lambda batch, k: batch["a"] * k, {"a": rg.ones(2)}, 1)
    with pytest.raises(ValueError, match=message):
        call(module)


def test_missing_and_surplus_arguments_are_type_errors_as_in_python():
    module = fx.trace(lambda x: x, rg.ones(2))
    for call in (lambda: module(), lambda: module(rg.ones(2), 1), lambda: module(rg.ones(2), y=1)):
        with pytest.raises(TypeError, match="argument"):
            call()


def test_results_may_be_constants_inputs_parameters_or_nothing():
    weight = rg.ones(2)
    module = fx.trace(lambda x: (3, x, weight, "s"), rg.ones(2))
    three, x, w, s = module(rg.zeros(2))
    assert (three, s, w) == (3, "s", weight)
    same(x, rg.zeros(2))
    assert fx.trace(lambda x: None, rg.ones(2))(rg.ones(2)) is None
    assert fx.trace(lambda x: 7, rg.ones(2))(rg.ones(2)) == 7


def test_arrays_among_the_arguments_are_refused():
    with pytest.raises(TypeError, match="x is an array, ndarray; pass a tensor"):
        fx.trace(lambda x: x * 2, rg.ones(2).numpy())


# ----------------------------------------------------------------------------------------------------- guards


def branch(x):
    if x.sum() > 0:
        return x * 2
    return x - 1


READS = {
    "bool": (branch, rg.ones(2), -rg.ones(2)),
    "int": (lambda x: x * int(x[0]), rg.tensor([2, 3]), rg.tensor([3, 3])),
    "float": (lambda x: x * float(x[0]), rg.tensor([2.0, 3.0]), rg.tensor([3.0, 3.0])),
    "item": (lambda x: x * x[0].item(), rg.tensor([2.0, 3.0]), rg.tensor([3.0, 3.0])),
    "tolist": (lambda x: x * x.tolist()[0], rg.tensor([2, 3]), rg.tensor([2, 4])),
    "numpy": (lambda x: x * x.numpy()[0], rg.tensor([2, 3]), rg.tensor([2, 4])),
    "index": (lambda x: rg.arange(5)[x[0] :], rg.tensor([2, 3]), rg.tensor([1, 3])),
}


@pytest.mark.parametrize("read", READS)
def test_a_value_that_the_code_read_is_guarded(read):
    function, example, other = READS[read]
    module = fx.trace(function, example)
    assert len(module.graph.guards) == 1
    same(module(example), function(example))
    name, line = function.__name__, function.__code__.co_firstlineno
    for run in (module, fx.trace(module, example), fx.Interpreter(module).run):
        with pytest.raises(RuntimeError, match=rf"tracer.py:({line}|{line + 1}) in {name} read the value"):
            run(other)


def test_other_inputs_on_the_same_way_pass_the_guard():
    module = fx.trace(branch, rg.ones(2))
    same(module(rg.tensor([5.0, -1.0])), rg.tensor([10.0, -2.0]))


def test_a_value_that_is_read_twice_is_guarded_once_and_nan_equals_nan():
    module = fx.trace(lambda x: x * x.item() + x.item(), rg.tensor(float("nan")))
    assert len(module.graph.guards) == 1
    assert repr(module(rg.tensor(float("nan")))) == "tensor(nan)"


# --------------------------------------------------------------------------------------------- levels, errors


def test_traces_nest():
    def outer(x):
        inner = fx.trace(lambda y: (y * 2 + x).sum(), x + 1)
        return inner(x), branch(x)

    module = fx.trace(outer, rg.ones(2))
    module.graph.lint()
    assert len(module.graph.guards) == 1
    same(module(rg.tensor([1.0, 3.0]))[0], rg.tensor(12.0))


def test_a_value_read_in_an_inner_trace_is_guarded_in_both():
    inner = []

    def outer(x):
        inner.append(fx.trace(branch, x * 2))
        return inner[0](x)

    module = fx.trace(outer, rg.ones(2))
    assert len(inner[0].graph.guards) == 1
    with pytest.raises(RuntimeError, match="in branch read the value"):
        module(-rg.ones(2))


def test_a_tensor_that_escapes_its_trace_is_an_error():
    escaped = []

    def f(x):
        escaped.append(x * 2)
        return x

    fx.trace(f, rg.ones(2))
    for use in (
        lambda: escaped[0] + 1,
        lambda: escaped[0].tolist(),
        lambda: fx.trace(lambda x: x + escaped[0], rg.ones(2)),
        lambda: fx.trace(lambda x: escaped[0], rg.ones(2)),
    ):
        with pytest.raises(RuntimeError, match="escaped"):
            use()


def test_an_error_in_the_code_leaves_the_levels_as_they_were():
    def fail(x):
        with rg.no_grad():
            raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        fx.trace(fail, rg.ones(2))
    assert current().level is None
    assert current().grad_enabled
    assert (rg.ones(2, requires_grad=True) * 2).requires_grad


def test_the_grad_mode_of_the_caller_is_back_after_tracing():
    with rg.no_grad():
        fx.trace(branch, rg.ones(2))
        assert not current().grad_enabled


# -------------------------------------------------------------------------------------- user-defined modules


class Scaled(nn.Module):
    """Keyword arguments with defaults, extra ones of both kinds, and an unused one."""

    def forward(self, x, *rest, scale=2.0, unused=None, **more):
        return {"y": x * scale + sum(rest), "twice": (more["a"], more["a"]), "none": None, "text": "t", "row": x[0]}


def test_the_same_tensor_twice_views_of_inputs_and_constants_are_returned():
    module = fx.trace(Scaled(), rg.ones(2), rg.ones(2), unused=rg.ones(3), a=rg.zeros(1))
    x, a = rg.tensor([1.0, 3.0], requires_grad=True), rg.tensor([5.0])
    out = module(x, rg.ones(2), unused=rg.zeros(3), a=a)
    same(out["y"].detach(), rg.tensor([3.0, 7.0]))
    assert out["twice"][0] is out["twice"][1] is a
    assert (out["none"], out["text"]) == (None, "t")
    same(rg.autograd.grad(out["y"].sum() + out["row"], x)[0], rg.tensor([3.0, 2.0]))
    plain = fx.trace(lambda x: x[1:], rg.ones(3))
    y = rg.zeros(3)
    plain(y).fill_(4.0)
    same(y, rg.tensor([0.0, 4.0, 4.0]))


def test_classes_that_are_registered_with_optree_are_pytrees():
    class Box:
        def __init__(self, inside):
            self.inside = inside

    optree.register_pytree_node(
        Box, lambda b: ((b.inside,), None), lambda _, c: Box(*c), namespace=optree.registry.__GLOBAL_NAMESPACE
    )
    try:
        module = fx.trace(lambda box: Box([box.inside * 2]), Box(rg.ones(2)))
        out = module(Box(rg.full((2,), 3.0)))
        assert isinstance(out, Box)
        same(out.inside[0], rg.full((2,), 6.0))
    finally:
        optree.unregister_pytree_node(Box, namespace=optree.registry.__GLOBAL_NAMESPACE)


def test_random_operators_draw_as_the_code_does_under_the_same_seed():
    net = nn.Sequential(nn.Dropout(0.5), nn.Linear(4, 4), nn.Dropout(0.25))

    def f(x):
        return net(x + rg.randn(4)) * rg.rand(4) + rg.randperm(4)

    module = fx.trace(f, rg.ones(4))
    for g in (module, fx.Interpreter(module).run):
        rg.manual_seed(3)
        expected = f(rg.ones(4))
        rg.manual_seed(3)
        same(g(rg.ones(4)), expected)


def test_checkpointed_functions_are_traced_as_their_operators():
    w = rg.tensor([2.0, 3.0], requires_grad=True)

    def f(x):
        return rg.utils.checkpoint.checkpoint(lambda x: (x * w).exp(), x, use_reentrant=False) + 1

    module = fx.trace(f, rg.ones(2))
    x = rg.tensor([0.5, 0.25], requires_grad=True)
    for actual, expected in zip(*[rg.autograd.grad(g(x).sum(), (x, w)) for g in (module, f)], strict=True):
        same(actual, expected)


def test_hooks_on_tensors_are_refused_since_a_graph_would_lose_them():
    def f(x):
        y = x * 2
        y.register_hook(lambda g: g * 3)
        return y

    with pytest.raises(RuntimeError, match="trace"):
        fx.trace(f, rg.ones(2, requires_grad=True))

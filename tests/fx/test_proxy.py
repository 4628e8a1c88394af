"""Symbolic tracing: the recorded nodes, refused operations, and equal results of the graph."""

import copy
import math
import pickle

import pytest

import retrograd as rg
from retrograd import fx, nn
from retrograd.testing import assert_close

fx.wrap("len")


def hypot(x, y):
    return math.hypot(x.item(), y)


fx.wrap("hypot")

NUMBER = 3


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(3, 3)
        self.scale = nn.Parameter(rg.full((3,), 2.0))
        self.layers = nn.ModuleList([nn.Linear(3, 3), nn.ReLU()])
        self.register_buffer("mean", rg.full((3,), 0.5))

    def forward(self, x, *rest, factor=2, **named):
        x = self.lin(x - self.mean) * (self.scale * factor)
        for layer in self.layers:
            x = layer(x)
        return x.view(x.shape[0], -1), rest, named


@pytest.fixture
def block() -> Block:
    return Block()


def test_modules_methods_and_operators_are_nodes_of_their_kinds(block):
    module = fx.symbolic_trace(block)
    module.graph.lint()
    assert [(n.op, n.name) for n in module.graph.nodes if n.op not in ("placeholder", "output")] == [
        ("get_attr", "mean"),
        ("call_function", "sub"),
        ("call_module", "lin"),
        ("get_attr", "scale"),
        ("call_function", "mul"),
        ("call_function", "mul_1"),
        ("call_module", "layers_0"),
        ("call_module", "layers_1"),
        ("call_function", "getattr_1"),
        ("call_function", "getitem"),
        ("call_method", "view"),
    ]
    assert [n.target for n in module.graph.find_nodes(op="placeholder")] == ["x", "factor", "*rest", "**named"]


def test_the_result_shares_the_parameters_and_computes_the_same(block):
    module = fx.symbolic_trace(block)
    x = rg.randn(2, 3)
    for run in (module, fx.Interpreter(module).run, pickle.loads(pickle.dumps(module)), copy.deepcopy(module)):
        out, rest, named = run(x, 2)
        assert_close(out, block(x)[0], rtol=0, atol=0)
        assert (rest, named) == ((), {})
    assert module.scale is block.scale
    module(x)[0].sum().backward()
    assert block.scale.grad is not None
    with rg.no_grad():
        block.scale.zero_()
    assert_close(module(x)[0], block(x)[0], rtol=0, atol=0)


def test_the_module_is_as_it_was_after_the_trace(block):
    fx.symbolic_trace(block)
    assert type(block) is Block
    assert {type(m) for m in block.modules()} == {Block, nn.Linear, nn.ModuleList, nn.ReLU}
    with pytest.raises(RuntimeError):
        fx.symbolic_trace(nn.Sequential(Failing()))
    broken = nn.Sequential(Failing())
    with pytest.raises(RuntimeError, match="no"):
        fx.symbolic_trace(broken)
    assert type(broken[0]) is Failing


class Failing(nn.Module):
    def forward(self, x):
        raise RuntimeError("no")


REFUSED = {
    "bool": (lambda x: x if x.sum() > 0 else -x, fx.TraceError),
    "iteration": (lambda x: list(x), fx.TraceError),
    "contains": (lambda x: 1 in x, fx.TraceError),
    "len": (lambda x: x.__len__(), RuntimeError),
    "int": (lambda x: int(x), TypeError),
    "float": (lambda x: float(x), TypeError),
    "index": (lambda x: range(x), TypeError),
}


@pytest.mark.parametrize("name", REFUSED)
def test_uses_of_unknown_values_are_refused_with_the_users_line(name):
    function, kind = REFUSED[name]
    with pytest.raises(kind, match=rf"test_proxy\.py:{function.__code__.co_firstlineno} in "):
        fx.symbolic_trace(function)


def test_unpacking_into_names_knows_the_number():
    def halves(x):
        a, b = rg.chunk(x, 2)
        return a - b

    assert fx.symbolic_trace(halves)(rg.tensor([5.0, 3.0])).tolist() == [2.0]


def test_writes_in_place_are_preserved():
    def f(x):
        y = x.clone()
        y[0] = 7.0
        z = y
        z += 1
        return y

    module = fx.symbolic_trace(f)
    module.graph.eliminate_dead_code()
    module.recompile()
    assert module(rg.zeros(2)).tolist() == [8.0, 1.0]


def test_reflected_operators_and_constants():
    weight = rg.tensor([1.0, 2.0])
    module = fx.symbolic_trace(lambda x: 2 - x + weight * x)
    assert module(rg.ones(2)).tolist() == [2.0, 3.0]
    assert module._tensor_constant0 is weight


def test_concrete_arguments_decide_branches_and_are_checked():
    def f(flag, x, mode="a"):
        return x * 2 if flag and mode == "b" else x

    module = fx.symbolic_trace(f, {"flag": True, "mode": "b"})
    assert module(True, rg.ones(1), "b").tolist() == [2.0]
    with pytest.raises(AssertionError, match="flag has been specialized to have value True but got another value"):
        module(False, rg.ones(1), "b")
    with pytest.raises(AssertionError, match="mode has been specialized to have value b but got another value"):
        module(True, rg.ones(1))  # whose default is another one
    with pytest.raises(ValueError, match=r"\['other'\], which are no arguments"):
        fx.symbolic_trace(f, {"other": 1})


def test_subclasses_choose_the_leaf_modules(block):
    class OnlyBlocks(fx.Tracer):
        def is_leaf_module(self, m, module_qualified_name):
            return isinstance(m, Block)

    outer = nn.Sequential(block, nn.Flatten())
    graph = OnlyBlocks().trace(nn.Sequential(block))
    assert [n.target for n in graph.find_nodes(op="call_module")] == ["0"]
    graph = OnlyBlocks().trace(outer[1])
    assert graph.find_nodes(op="call_module") == []


def test_tracers_decide_by_the_class_of_a_module(block):
    seen = []

    class ByClass(fx.Tracer):
        def is_leaf_module(self, m, module_qualified_name):
            seen.append(type(m))
            return type(m) is Block

        def call_module(self, m, forward, args, kwargs):
            seen.append(type(m))
            return super().call_module(m, forward, args, kwargs)

    graph = ByClass().trace(nn.Sequential(block))
    assert [n.target for n in graph.find_nodes(op="call_module")] == ["0"]
    assert seen == [Block, Block]


def test_a_tracer_and_its_proxies_can_be_copied(block):
    class Named(fx.Tracer):
        name = "mine"

    tracer = Named()
    x = tracer.trace(block).find_nodes(op="placeholder")[0]
    copied = copy.deepcopy(fx.Proxy(x, tracer))
    assert copied.tracer is not tracer
    assert copied.tracer.name == "mine"
    assert str(copied.tracer.graph) == str(tracer.graph)


def test_nodes_know_their_modules_and_lines(block):
    class Inside(fx.Tracer):
        def is_leaf_module(self, m, module_qualified_name):
            return False

    graph = Inside().trace(block)
    [linear, _] = graph.find_nodes(op="call_function", target=rg.nn.functional.linear)
    assert linear.meta["nn_module_stack"] == {"lin": ("lin", nn.Linear)}
    assert "test_proxy.py" in linear.meta["stack_trace"]


def test_wrapped_functions_stay_calls():
    module = fx.symbolic_trace(lambda x: hypot(x, 4) + len(x.shape))
    assert [n.name for n in module.graph.nodes if n.op == "call_function"] == ["hypot", "getattr_1", "len_1", "add"]
    assert module(rg.tensor(3.0)) == 5.0
    assert pickle.loads(pickle.dumps(module))(rg.tensor(3.0)) == 5.0
    assert hypot(rg.tensor(3.0), 4) == 5.0
    with pytest.raises(RuntimeError, match="Must be either a callable or string name, got int"):
        fx.wrap(3)
    with pytest.raises(NameError, match=r"'NUMBER' of .*test_proxy is no function, but 3"):
        exec('fx.wrap("NUMBER")', globals())  # as a module calls it


@pytest.mark.parametrize("argument", ["len", hypot])
def test_functions_and_classes_can_not_wrap_globals(argument):
    with pytest.raises(NotImplementedError, match=r"at the top level of a module, not in .*can_not_wrap_globals"):
        fx.wrap(argument)
    with pytest.raises(NotImplementedError, match=r"not in .*Holder"):

        class Holder:
            fx.wrap(argument)


def test_proxies_of_two_traces_do_not_mix():
    kept = []
    fx.symbolic_trace(lambda x: kept.append(x) or x)
    with pytest.raises(ValueError, match="another trace"):
        fx.symbolic_trace(lambda x: x + kept[0])
    with pytest.raises(TypeError, match="expected a function or a module"):
        fx.symbolic_trace(3)


def test_a_transformer_writes_a_new_graph(block):
    class Halved(fx.Transformer):
        def call_module(self, target, args, kwargs):
            out = super().call_module(target, args, kwargs)
            return out / 2 if target == "lin" else out

        def call_function(self, target, args, kwargs):
            return super().call_function(target, args, kwargs)

    module = fx.symbolic_trace(block)
    text = str(module.graph)
    new = Halved(module).transform()
    new.graph.lint()
    assert str(module.graph) == text
    x = rg.randn(2, 3)
    with rg.no_grad():
        halved = copy.deepcopy(block)
        halved.lin.weight.div_(2)
        halved.lin.bias.div_(2)
    assert_close(new(x)[0], halved(x)[0])


def test_a_transformer_keeps_the_code_generator():
    class OfList(fx.graph.CodeGen):
        def gen_fn_def(self, free_vars, maybe_return_annotation):
            return f"def forward(self, args):\n    {', '.join(free_vars)} = args"

        def process_inputs(self, *inputs):
            return inputs[0]

        def generate_output(self, output_args):
            return f"return list({output_args!r})"

        def process_outputs(self, outputs):
            return list(outputs)

    module = fx.symbolic_trace(lambda x, y: (x - y, x + y))
    module.graph.set_codegen(OfList())
    module.recompile()
    for run in (module, fx.Interpreter(module).run, fx.Transformer(module).transform()):
        assert run([5, 3]) == [2, 8]


def test_a_transformer_keeps_the_signature_of_traced_modules():
    module = fx.trace(lambda x: {"a": x["b"].exp() * rg.tensor(2.0)}, {"b": rg.ones(2)})
    new = fx.Transformer(module).transform()
    assert str(new.graph) == str(module.graph)
    assert_close(new({"b": rg.zeros(2)})["a"], rg.full((2,), 2.0))


CONSTANT = rg.arange(6.0).reshape(2, 3)
BY_SIZE = {
    "one size": lambda x: rg.zeros(x.shape[0]),
    "sizes one by one": lambda x: rg.ones(x.shape[0], 3) + x,
    "a shape": lambda x: rg.zeros(x.shape),
    "a size among numbers": lambda x: rg.reshape(x, (x.shape[0], -1)),
    "arithmetic": lambda x: rg.arange(x.shape[0] * x.size(1) // 2, device=x.device, dtype=x.dtype),
    "divmod": lambda x: rg.full(divmod(x.numel(), 4), x.ndim),
    "a dimension": lambda x: rg.sum(x, dim=(x.ndim - 1,)) + CONSTANT.sum(x.ndim - 1),
    "a list of tensors": lambda x: rg.cat([CONSTANT, CONSTANT], dim=x.ndim - 1),
    "where a default is a tuple": lambda x: rg.rot90(x, 1, (x.ndim - 2, x.ndim - 1)),
    "a dtype": lambda x: rg.zeros(2, dtype=x.dtype),
    "a tensor's dtype": lambda x: rg.arange(2).to(x.dtype) + rg.arange(2).to(x).new_zeros(2),
    "an index of a constant": lambda x: CONSTANT[x.shape[0] - 1, : x.shape[1] - 1],
    "a constant's shape": lambda x: CONSTANT.view(x.shape[1], -1) + CONSTANT.view(x.shape).T,
}


@pytest.mark.parametrize("name", BY_SIZE)
def test_proxies_of_numbers_can_be_parameters_of_an_operator(name):
    function = BY_SIZE[name]
    module = fx.symbolic_trace(function)
    module.graph.lint()
    assert not [n for n in module.graph.nodes if not n.users and n.op != "output" and n.op != "placeholder"]
    for x in (rg.ones(2, 3), rg.ones(1, 6)) if name == "a shape" else (rg.ones(2, 3),):
        for run in (module, fx.Interpreter(module).run, pickle.loads(pickle.dumps(module))):
            out, expected = run(x), function(x)
            assert out.dtype == expected.dtype
            assert_close(out, expected, rtol=0, atol=0)


def test_a_parameter_that_is_no_proxy_is_still_checked():
    with pytest.raises(TypeError, match="dim must be int"):
        fx.symbolic_trace(lambda x: rg.cat([x, x], dim="one"))
    with pytest.raises(TypeError, match="keepdim must be bool"):
        fx.symbolic_trace(lambda x: rg.sum(CONSTANT, dim=x.ndim, keepdim=3))


def test_placeholders_in_concrete_arguments_stay_open():
    def f(d, y, *, mode):
        return sum(d["a"]) * d["k"] + (y if mode == "plus" else -y)

    given = {"d": {"a": [fx.PH, fx.PH], "k": 2}, "mode": "plus", "y": fx.PH}
    module = fx.symbolic_trace(f, given)
    for run in (module, fx.Interpreter(module).run, pickle.loads(pickle.dumps(module)), copy.deepcopy(module)):
        assert run({"a": [1.0, 2.0], "k": 2}, 10.0, "plus") == 16.0
    assert module({"a": [1.0, 2.0], "k": 2}, 10.0, mode="plus") == 16.0
    for wrong in ({"a": [1.0, 2.0], "k": 3}, {"a": [1.0], "k": 2}, {"a": [1.0, 2.0]}, 5):
        with pytest.raises(AssertionError, match="d has been specialized"):
            module(wrong, 1.0, mode="plus")
    with pytest.raises(TypeError):  # what is open has no default
        module(y=1.0)
    with pytest.raises(ValueError, match=r"\['other'\], which are no arguments"):
        fx.symbolic_trace(f, {"other": fx.PH})


def test_arguments_with_members_keep_their_defaults():
    module = fx.symbolic_trace(lambda pair=(1, 2), k=3: {"sum": pair[0] + pair[1] * k}, {"pair": (fx.PH, fx.PH)})
    for run in (module, fx.Interpreter(module).run, copy.deepcopy(module), fx.symbolic_trace(module)):
        assert run() == {"sum": 7}
        assert run((4, 5)) == {"sum": 19}
        assert run((4, 5), 1) == {"sum": 9}


def test_tensors_can_be_defaults_and_concrete_arguments():
    two = rg.full((2,), 2.0)
    x = rg.ones(2)
    module = fx.symbolic_trace(lambda x, k=two: x * k)
    for run in (module, fx.Interpreter(module).run, pickle.loads(pickle.dumps(module))):
        assert run(x).tolist() == [2.0, 2.0]
    with pytest.warns(UserWarning, match="Was not able to add assertion to guarantee correct input k"):
        module = fx.symbolic_trace(lambda x, k: x * k, {"k": two})
    assert module(x, None).tolist() == [2.0, 2.0]


def test_arrays_next_to_proxies_are_constants():
    array = two_by_two().numpy()
    module = fx.symbolic_trace(lambda x: array * x + x * array)
    assert module(rg.ones(2, 2)).tolist() == (two_by_two() * 2).tolist()


def two_by_two():
    return rg.arange(4.0).reshape(2, 2)


def test_a_copy_of_a_proxy_into_a_constant_is_a_node():
    traced = fx.symbolic_trace(lambda x: rg.zeros(3).copy_(x) * 2)
    for values in ([1.0, 2.0, 3.0], [4.0, 5.0, 6.0]):
        assert traced(rg.tensor(values)).tolist() == [2 * value for value in values]


@pytest.mark.parametrize("write", [lambda x: rg.zeros(3).__setitem__(0, x), lambda x: rg.tensor(x.shape[0])])
def test_numbers_of_a_proxy_are_refused_with_the_users_line(write):
    with pytest.raises(TypeError, match=r"numbers are needed here, at .*:\d+ in "):
        fx.symbolic_trace(write)


def test_params_that_are_given_by_position_stay_in_the_node():
    traced = fx.symbolic_trace(lambda a, b: rg.max(a, b) + rg.min(a, 0, True)[0])
    a, b = rg.tensor([1.0, 5.0]), rg.tensor([3.0, 4.0])
    assert traced(a, b).tolist() == [4.0, 6.0]


def test_methods_of_tracers_read_the_traced_module_and_make_placeholders():
    class Reading(fx.Tracer):
        def create_proxy(self, kind, target, *args, **kwargs):
            seen.append((kind, self.root is module))
            return super().create_proxy(kind, target, *args, **kwargs)

    seen, module = [], nn.Sequential(nn.ReLU())
    Reading().trace(module)
    assert seen == [("placeholder", True), ("call_module", True)]


def test_arguments_before_tensors_stay_before_them_in_nodes():
    def f(x, y):
        return rg.einsum("i,j->ij", x, y), rg.einsum("i,j->ij", [x, y]), rg.polygamma(2, x), rg.special.expn(n=1, x=y)

    traced = fx.symbolic_trace(f)
    x, y, *calls = list(traced.graph.nodes)[:-1]
    equation = "i,j->ij"
    assert [(node.args, node.kwargs) for node in calls] == [
        ((equation, x, y), {}),
        ((equation, x, y), {}),
        ((2, x), {}),
        ((1, y), {}),
    ]
    a, b = rg.tensor([0.5, 2.0]), rg.tensor([1.0, 3.0])
    for got, expected in zip(traced(a, b), f(a, b), strict=True):
        assert_close(got, expected)
    assert traced.code.count(equation) == 2

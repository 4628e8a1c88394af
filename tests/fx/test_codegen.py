"""The Python code of graphs: it is readable, and gives the same results when run."""

import traceback

import pytest

import retrograd as rg
from retrograd import fx, nn
from retrograd.core import registry
from retrograd.fx import codegen
from retrograd.testing import assert_close


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(3, 4)
        self.rest = nn.Sequential(nn.ReLU(), nn.Linear(4, 2))

    def forward(self, x, y):
        h = self.first(x)
        return self.rest(h + y)


GOLDEN_CODE = """\
def forward(self, x, y):
    # x: float32[5, 3], y: float32[4]
    # test_codegen.py:{first} in forward
    linear = ops.linear(x, self.first.weight, self.first.bias)  # float32[5, 4]
    # test_codegen.py:{second} in forward
    add = ops.add(linear, y);  del linear  # float32[5, 4]
    relu = ops.relu(add);  del add  # float32[5, 4]
    linear_1 = ops.linear(relu, getattr(self.rest, '1').weight, getattr(self.rest, '1').bias);  del relu  # float32[5, 2]
    return linear_1
"""  # noqa: E501

GOLDEN_GRAPH = """\
graph():
    %x : [num_users=1] = placeholder[target=x]
    %y : [num_users=1] = placeholder[target=y]
    %first_weight : [num_users=1] = get_attr[target=first.weight]
    %first_bias : [num_users=1] = get_attr[target=first.bias]
    %linear : [num_users=1] = call_function[target=linear](args = (%x, %first_weight, %first_bias), kwargs = {})
    %add : [num_users=1] = call_function[target=add](args = (%linear, %y), kwargs = {})
    %relu : [num_users=1] = call_function[target=relu](args = (%add,), kwargs = {})
    %rest_1_weight : [num_users=1] = get_attr[target=rest.1.weight]
    %rest_1_bias : [num_users=1] = get_attr[target=rest.1.bias]
    %linear_1 : [num_users=1] = call_function[target=linear](args = (%relu, %rest_1_weight, %rest_1_bias), kwargs = {})
    return linear_1"""


def test_a_small_network_prints_as_expected(capsys):
    module = fx.trace(Block(), rg.ones(5, 3), rg.ones(4))
    line = Block.forward.__code__.co_firstlineno
    code = GOLDEN_CODE.format(first=line + 1, second=line + 2)
    assert module.code == code
    assert str(module.graph) == GOLDEN_GRAPH
    module.print_readable()
    shown = "class GraphModule(Module):\n" + "".join(f"    {text}\n" for text in code.splitlines())
    assert capsys.readouterr().out == shown


def test_printed_code_executes_to_the_same_results():
    block, inputs = Block(), (rg.randn(5, 3), rg.randn(4))
    module = fx.trace(block, *inputs)
    scope = {"ops": codegen.Operators()}
    exec(module.code, scope)
    assert_close(scope["forward"](block, *inputs), block(*inputs), rtol=0, atol=0)


CONSTANTS = [
    (1, True, "s", None, ...),
    (1.5, -0.0, float("inf"), complex(1, float("-inf")), 2j),
    [slice(None, 2), {"k": (1,)}, ()],
    rg.float32,
]


@pytest.mark.parametrize("constant", CONSTANTS, ids=repr)
def test_constants_print_as_python_that_gives_them_back(constant):
    graph = fx.Graph()
    graph.output(constant)
    code = graph.python_code()
    assert code.globals == {}
    result = code.compile()(None)
    assert repr(result) == repr(str(constant) if constant is rg.float32 else constant)


def test_nan_prints_as_python():
    graph = fx.Graph()
    graph.output(float("nan"))
    assert str(graph.python_code().compile()(None)) == "nan"


def test_objects_without_a_literal_are_named():
    generator = rg.Generator().manual_seed(3)
    module = fx.trace(lambda _generator: rg.rand(2, generator=generator) * _generator, rg.ones(2))
    assert "ops.rand(size=(2,), generator=_generator_)" in module.code
    generator.manual_seed(3)
    first = module(rg.ones(2))
    generator.manual_seed(3)
    assert_close(first, rg.rand(2, generator=generator))


def test_objects_are_named_once_each():
    one, two = object(), object()
    graph = fx.Graph()
    graph.output((one, two, one))
    assert graph.python_code().src.endswith("return (_object, _object_, _object)\n")
    assert graph.python_code().compile()(None) == (one, two, one)


def test_index_tensors_print_and_run():
    x, i = rg.randn(4, 3), rg.tensor([2, 0])
    module = fx.trace(lambda x, i: x[:, i], x, i)
    assert "spec=(slice(None, None, None), T)" in module.code
    assert_close(module(x, i), x[:, i])


def test_operators_of_packages_are_called_by_their_full_name():
    with pytest.raises(AttributeError, match="no operator named 'nonsense'"):
        codegen.Operators().nonsense  # noqa: B018
    graph = fx.Graph()
    node = graph.output(graph.call_function(registry["add"], (1, 2)))
    node.args[0].target = type("Stub", (), {"name": "package::add"})()
    assert "ops['package::add'](1, 2)" in graph.python_code().src


def test_tracebacks_show_the_generated_source_and_the_users_line():
    module = fx.trace(lambda x: x.log() + x, rg.ones(2))
    add = module.graph.find_nodes(op="call_function")[1]
    add.args = (rg.ones(3), add.args[1])
    module.recompile()
    with pytest.raises(ValueError, match="broadcast") as caught:
        module(rg.ones(2))
    text = "".join(traceback.format_exception(caught.value))
    assert "add = ops.add(" in text
    assert "test_codegen.py" in caught.value.__notes__[0]
    assert "<lambda>" in caught.value.__notes__[0]


@pytest.mark.parametrize("key", ["stack_trace", "val"])
@pytest.mark.parametrize("line_break", ["\n", "\r", "\x0c", "\u2028"])
def test_a_note_can_not_leave_its_comment(key, line_break):
    module = fx.trace(lambda x: x + 1, rg.ones(2))
    for node in module.graph.nodes:
        node.meta[key] = f"a.py:1{line_break}    raise SystemExit"
    module.recompile()
    assert module(rg.ones(2)).tolist() == [2.0, 2.0]


def test_objects_keep_their_own_names():
    module = fx.symbolic_trace(lambda x: (hypot(x, 3), abs(x), hypot(x, 4), pow_of(x)))
    assert [line.split("=")[1].split("(")[0].strip() for line in module.code.splitlines() if " = " in line] == [
        "hypot_", "abs", "hypot_", "pow_of_",  # nodes have the names without _
    ]  # fmt: skip


@fx.wrap
def hypot(x, y):
    return x + y


@fx.wrap
def pow_of(x):
    return x**2


@pytest.mark.parametrize("dtype", [rg.float16, rg.bfloat16, rg.complex64, rg.int8, rg.bool, rg.float8_e5m2])
def test_dtypes_are_written_by_their_names(dtype):
    traced = fx.trace(lambda x: x.to(dtype), rg.ones(2))
    assert f"dtype={str(dtype)!r})" in traced.code
    assert traced(rg.ones(2)).dtype == dtype

"""Tests of the parts that users extend: tracers, code generators, hooks of graphs, and metadata of new nodes."""

import copy
import inspect
import pickle
import typing

import pytest

import retrograd as rg
from retrograd import fx, library, nn


class Pair(metaclass=fx.ProxyableClassMeta):
    """Two values, whose sum is another pair."""

    def __init__(self, left, right):
        self.left, self.right = left, right


def test_a_class_with_the_metaclass_is_constructed_in_the_graph():
    module = fx.symbolic_trace(lambda x: Pair(x, x + 1))
    assert [n.target for n in module.graph.nodes][2] is Pair
    assert module(1).right == 2
    assert not isinstance(Pair(1, 2), fx.Proxy)


def test_a_proxy_of_a_node_alone_appends_to_its_graph_at_the_present_position():
    graph = fx.Graph()
    x = fx.Proxy(graph.placeholder("x"))
    y = x.exp()
    with graph.inserting_before(y.node):
        z = x * 2
    graph.output((y + z).node)
    graph.lint()
    assert [n.name for n in graph.nodes] == ["x", "mul", "exp", "add", "output"]
    with pytest.raises(ValueError, match="of another trace"):
        x + fx.Proxy(fx.Graph().placeholder("x"))


def test_checked_tracers_refuse_operators_that_write():
    @library.custom_op("extension::fill", mutates_args=("x",))
    def fill(x: rg.Tensor) -> None:
        x.fill_(1.0)

    class Checking(fx.Tracer):
        check_mutable_operations = True

    with pytest.raises(RuntimeError, match="Tried to trace mutable operation"):
        Checking().trace(lambda x: fill(x))


def test_source_lines_are_left_out_on_request():
    class Short(fx.Tracer):
        record_stack_traces = False

    [neg] = Short().trace(lambda x: -x).find_nodes(op="call_function")
    assert neg.stack_trace is None
    assert fx.symbolic_trace(lambda x: -x).graph.find_nodes(op="call_function")[0].stack_trace
    neg.stack_trace = "mine.py:1"
    assert neg.meta["stack_trace"] == "mine.py:1"


def test_tracing_is_known_while_it_runs():
    seen = []
    fx.symbolic_trace(lambda x: seen.append(fx.symbolic_tracer.is_fx_tracing()) or x)
    assert (seen, fx.symbolic_tracer.is_fx_tracing()) == ([True], False)


def test_a_failing_trace_ends_the_state_of_tracing():
    with pytest.raises(ZeroDivisionError):
        fx.symbolic_trace(lambda x: 1 / 0)
    assert not fx.symbolic_tracer.is_fx_tracing()


def test_annotations_of_a_function_are_in_its_graph_and_code():
    def f(x: rg.Tensor, y: "int" = 2, *rest: list[int]) -> tuple[rg.Tensor, ...]:
        return (x, y)

    module = fx.symbolic_trace(f)
    assert [n.type for n in module.graph.nodes] == [rg.Tensor, "int", list[int], tuple[rg.Tensor, ...]]
    annotations = inspect.get_annotations(module.flat_forward.__func__)
    assert annotations["x"] is rg.Tensor
    assert annotations["return"] == tuple[rg.Tensor, ...]
    assert pickle.loads(pickle.dumps(module)).code == module.code


ALIASES = [getattr(typing, name) for name in typing.__all__ if hasattr(getattr(typing, name), "__origin__")]
OLDER = [typing.Tuple[rg.Tensor, int], typing.Tuple[()], typing.List[typing.Dict[str, int]], typing.Sequence[int]]  # noqa: UP006


@pytest.mark.parametrize(
    "annotation", [int | None, "Forward", tuple[()], None, dict[str, list[int]], Pair, ..., *ALIASES, *OLDER]
)
def test_any_annotation_gives_code_that_runs(annotation):
    graph = fx.Graph()
    x = graph.placeholder("x", annotation, 3)
    graph.output(x, annotation)
    module = fx.GraphModule({}, graph)
    assert (module(), module(4)) == (3, 4)
    assert [n.type for n in copy.deepcopy(graph).nodes] == [annotation] * 2


def test_annotations_by_local_classes_are_left_out_of_pickles():
    class Local:
        """Unknown to pickle."""

    graph = fx.Graph()
    graph.output(graph.placeholder("x", Local), list[Local])
    assert [n.type for n in pickle.loads(pickle.dumps(graph)).nodes] == [None, None]


def test_lines_that_a_transformation_inserts_keep_the_source_lines_of_others():
    module = fx.symbolic_trace(lambda x: x.no_such_method())
    module.graph.on_generate_code(lambda _: lambda body: ["pass\n", "if True:\n    pass\n", *body])
    module.recompile()
    with pytest.raises(AttributeError, match="no_such_method") as caught:
        module(rg.ones(1))
    assert "test_extension.py" in caught.value.__notes__[0]


def test_hooks_that_cannot_be_called_are_refused():
    module = fx.symbolic_trace(lambda x: x)
    with pytest.raises(TypeError, match="a hook must be callable, got int"):
        module._register_create_node_hook(1)
    assert module._create_node_hooks == []


def test_calls_of_unknown_modules_warn():
    module = fx.symbolic_trace(nn.Sequential(nn.ReLU()))
    with pytest.warns(UserWarning, match="insert a call_module Node with no underlying reference"):
        module.graph.call_module("2")


def test_annotated_code_marks_its_nodes_only_while_metadata_is_preserved():
    @fx.traceback.annotate_fn({"stage": 1})
    def inner(x):
        with fx.traceback.annotate({"part": "a"}):
            x = x + 1
        return x * 2

    def customs(trace):
        return [n.meta.get("custom") for n in trace(inner, rg.ones(1)).graph.find_nodes(op="call_function")]

    def symbolic(f, x):
        return fx.symbolic_trace(f)

    for trace in (symbolic, fx.trace):
        with fx.traceback.preserve_node_meta():
            assert customs(trace) == [{"stage": 1, "part": "a"}, {"stage": 1}]
        assert customs(trace) == [None, None]
    assert not fx.traceback.has_preserved_node_meta()
    assert fx.traceback.get_current_meta() == {}


def test_a_graph_that_is_run_again_hands_its_metadata_on():
    with fx.traceback.preserve_node_meta(), fx.traceback.annotate({"stage": 1}):
        module = fx.symbolic_trace(lambda x: x + 1)
    with fx.traceback.preserve_node_meta():
        again = fx.trace(lambda x: fx.Interpreter(module).run(x), rg.ones(1))
        fx.traceback.set_stack_trace(["mine.py:1"])
        assert fx.traceback.format_stack() == ["mine.py:1"]
    [add] = again.graph.find_nodes(op="call_function")
    assert add.meta["custom"] == {"stage": 1}


def test_the_text_of_a_module_has_its_class_its_code_and_those_of_its_parts():
    module = fx.symbolic_trace(nn.Sequential(nn.Linear(2, 2), nn.ReLU()))
    assert str(module).startswith("Sequential(")
    assert module.code in str(module)
    parts = fx.split_module(module, None, lambda node: int(node.name == "_1"))
    text = parts.print_readable(print_output=False)
    assert text.count("class GraphModule(Module):") == 3
    assert "        def forward(self, input_1):" in text

"""Building and changing graphs compared with torch.fx: names, annotations, code, hooks, tracers, messages."""

import builtins
import copy
import importlib
import math
import operator
import pickle
import re
import typing
import warnings

import pytest
import torch

import retrograd as rg

from .graph_texts import fx, small
from .programs import assert_agreement, cases


def named(m, *candidates):
    """Return the names that nodes get for candidates, each a name or a target."""
    graph = fx(m).Graph()
    made = [
        graph.create_node("placeholder", "x", name=c) if isinstance(c, str) else graph.call_function(c, ())
        for c in candidates
    ]
    return [node.name for node in made]


def of_methods(m, *targets):
    graph = fx(m).Graph()
    return [graph.call_method(target).name for target in targets]


NAMES = {
    "numbers": lambda m: named(m, "foo_1_1", "foo_1", "foo", "foo", "foo_1", "foo_2_2", "foo_7", "foo"),
    "of builtins": lambda m: named(m, "sum", "sum", "sum_1", "input", "max", "len_1", "print_2", "print"),
    "keywords": lambda m: named(m, "class", "def", "if_1", "if", "match", "case", "type", "_"),
    "reserved": lambda m: named(m, "inf", "nan", "NoneType", "device", "pytree", "nan"),
    "illegal": lambda m: named(m, "a.b", "1", "", "a b-c", "ä", "x__y", "_3", "__"),
    "capitals in names": lambda m: named(m, "aB", "AB", "ReLU", "x_Y"),
    "operators": lambda m: named(m, operator.add, operator.add, operator.getitem, math.sqrt, len, getattr),
    "methods": lambda m: of_methods(m, "add_", "__getitem__", "__call__", "relu", "reLU", "sum", "T"),
    "modules": lambda m: [
        fx(m).Graph().call_module(t, ()).name for t in ("layers.0", "a.PascalCase", "a.ALL_CAPS", "x.convBN2d")
    ],
    "of a copy": lambda m: copied_names(m),
    "a node renamed": lambda m: renamed(m),
}  # fmt: skip


def copied_names(m):
    graph = fx(m).Graph()
    a = graph.placeholder("x")
    b = graph.create_node("call_module", "linear_mod", args=(a,), name="foo_1_1")
    c = graph.create_node("get_attr", "y_attr", name="foo_1")
    graph.output(graph.call_function(operator.add, (b, c)))
    other = fx(m).Graph()
    other.graph_copy(graph, {})
    return [n.name for n in other.nodes]


def renamed(m):
    graph = fx(m).Graph()
    x, y = graph.placeholder("x"), graph.placeholder("y")
    y._rename("x")
    x._rename("x")
    return x.name, y.name, graph.placeholder("y").name


def typed(m):
    graph = fx(m).Graph()
    x = graph.placeholder("x", list[int], 3)
    y = graph.create_node("call_function", operator.add, (x, 1), type_expr=int)
    z = graph.call_method("neg", (y,), type_expr=float)
    graph.output(z, type_expr=tuple[int])
    return str(graph), [n.type for n in graph.nodes], [n.type for n in copy.deepcopy(graph).nodes]


def annotated(m):
    def f(x: int, y: list[int] = (), z: "str" = "a") -> tuple[int, ...]:
        return (x, y, z)

    graph = fx(m).symbolic_trace(f).graph
    return [n.type for n in graph.nodes]


def appended(m):
    graph = fx(m).Graph()
    x, y = (fx(m).Proxy(graph.placeholder(name)) for name in "xy")
    z = x + y
    zed = z + z + z
    graph.output(zed.node)
    zed.node.args = (zed.node.args[0], x.node)
    before = [n.name for n in x.node.users]
    z.node.args = (y.node, y.node)
    graph.lint()
    return before, [n.name for n in x.node.users], str(graph), fx(m).GraphModule({}, graph)(1, 10)


def inserted_by_proxies(m):
    graph = fx(m).Graph()
    x = fx(m).Proxy(graph.placeholder("x"))
    relu = x.relu()
    with graph.inserting_before(relu.node):
        z = (-x).tanh()
    graph.output((relu.node, z.node))
    return [n.name for n in graph.nodes]


def deep_copies(m):
    class Local(fx(m).Tracer):
        pass

    graph = fx(m).Graph(tracer_cls=Local)
    x = graph.placeholder("x")
    for _ in range(3000):
        x = graph.call_method("neg", (x,))
    graph.output(x)
    copied = copy.deepcopy(graph)
    pairs = dict(zip(graph.nodes, copied.nodes, strict=True))
    same = all([pairs[u] for u in a.users] == list(b.users) for a, b in pairs.items())
    return copied._tracer_cls is Local, same, len(copied.nodes), copied.output_node().args[0].name


def shared(x):
    return x * 2


def stored(m):
    module = fx(m).symbolic_trace(shared)
    module.meta["note"] = [1]
    loaded = pickle.loads(pickle.dumps(module))
    copied = copy.deepcopy(module)
    copied.meta["note"].append(2)
    return module.meta, copied.meta, copy.copy(module).meta is module.meta, loaded(3), copied(3)


def classes(m):
    module = fx(m).GraphModule({}, small(m)[0], "Small")
    return module._get_name(), repr(module), str(module).startswith("Small()"), module(2)


def listed(m, base=None):
    class OfList(fx(m).graph.CodeGen):
        def gen_fn_def(self, free_vars, maybe_return_annotation):
            return f"def forward(self, args: List[int]){maybe_return_annotation}:\n    {', '.join(free_vars)} = args"

        def additional_globals(self):
            return [("List", list)]

        def generate_output(self, output_args):
            return f"return [{output_args}]"

        def process_inputs(self, *inputs):
            assert len(inputs) == 1
            return inputs[0]

        def process_outputs(self, outputs):
            return [outputs]

    module = fx(m).symbolic_trace(lambda x, y: x - y)
    module.graph.set_codegen(OfList())
    module.recompile()
    graph = module.graph
    flat = graph.process_inputs([5, 3])
    run = fx(m).Interpreter(module)
    return module([5, 3]), flat, graph.process_outputs(2), run.run([5, 3]), run.run(5, 3, enable_io_processing=False), (
        copy.deepcopy(module)([7, 3]), "List" in module.code,
    )  # fmt: skip


def transformed_code(m):
    module = fx(m).symbolic_trace(lambda x: x + 1)
    seen = []

    def noting(word):
        return lambda current: lambda body: [f"noted.append('{word}')\n", *(current(body) if current else body)]

    builtins.noted = seen
    try:
        module.graph.on_generate_code(noting("outer"))
        with module.graph.on_generate_code(noting("inner")):
            module.recompile()
            results = [module(1)]
        results.append(module(2))
        module.recompile()
        results.append(module(3))
        return results, list(seen)
    finally:
        del builtins.noted


def hooked(m):
    module = fx(m).symbolic_trace(lambda x: x.relu() + 1)
    graph, calls = module.graph, []
    create, erase = (lambda n: calls.append(("create", n.name))), (lambda n: calls.append(("erase", n.name)))
    replace = lambda old, new, user: calls.append(("replace", old.name, new, user.name))  # noqa: E731
    module._register_create_node_hook(create)
    module._register_erase_node_hook(erase)
    module._register_deepcopy_hook(lambda copied: calls.append(("copy", len(copied.graph.nodes))))
    [relu] = graph.find_nodes(op="call_method", target="relu")
    with module._set_replace_hook(replace):
        with graph.inserting_after(relu):
            new = graph.call_method("tanh", relu.args)
        relu.replace_all_uses_with(new)
        new.replace_input_with(new.args[0], new.args[0])
        new.name = "changed"
    graph.erase_node(relu)
    new.name = "tanh"
    copy.deepcopy(module)
    module._unregister_create_node_hook(create)
    graph.call_method("sin", (new,))
    return calls


def wrong_hook(m):
    fx(m).symbolic_trace(shared)._unregister_erase_node_hook(len)


def remaining(m):
    module = fx(m).symbolic_trace(lambda x: (x * 2).relu() - x)
    run, whole = fx(m).Interpreter(module), fx(m).Interpreter(module, garbage_collect_values=False)
    run.run(m.ones(2)), whole.run(m.ones(2))
    return [n.name for n in run.env], [n.name for n in whole.env]


def asserted(m):
    class Asserting(fx(m).Tracer):
        trace_asserts = True

    def f(x):
        assert x > 1, "too small"
        return x * 2

    tracer = Asserting()
    module = fx(m).GraphModule({}, tracer.trace(f))
    try:
        module(0)
    except AssertionError:
        return module(2), [n.op for n in module.graph.nodes]


class Ranged:
    """An argument with a form of its own in graphs."""

    def __init__(self, low, high):
        self.low, self.high = low, high

    def __fx_create_arg__(self, tracer):
        parts = tracer.create_arg(self.low), tracer.create_arg(self.high)
        return tracer.create_node("call_function", Ranged, args=parts, kwargs={})


def own_forms(m):
    module = fx(m).symbolic_trace(lambda x, y: [Ranged(x, y), 1])
    found = module(1, 2)[0]
    return [n.name for n in module.graph.nodes], found.low, found.high


def constructed(m):
    class Pair(metaclass=fx(m).ProxyableClassMeta):
        def __init__(self, left, right):
            self.left, self.right = left, right

        def add(self, other):
            return Pair(self.left + other.left, self.right + other.right)

    module = fx(m).symbolic_trace(lambda x, y: x.add(Pair(y, y)).add(Pair(1, 2)))
    found = module(Pair(1, 2), 10)
    return found.left, found.right, Pair(1, 2).right


def keyed(m):
    fx(m).symbolic_trace(lambda x: ({x: x},))


def sized(m):
    class Net(m.nn.Module):
        def __init__(self):
            super().__init__()
            self.w = m.nn.Parameter(m.ones(2, 3))

        def forward(self, x):
            parts = [self.w.shape == (2, 3), self.w.size() == (2, 3), self.w.dim(), self.w.ndim, self.w.numel()]
            return (x if self.w.shape[0] == 2 else -x), [*parts, self.w.nelement()]

    module = fx(m).GraphModule(Net(), fx(m).Tracer(param_shapes_constant=True).trace(Net()))
    return [n.op for n in module.graph.nodes], module(1)


def scopes(m):
    class Net(m.nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = m.nn.Sequential(m.nn.ReLU())

        def forward(self, x):
            return self.inner(x.neg()).exp()

    class Fine(fx(m).Tracer):
        def is_leaf_module(self, m, module_qualified_name):
            return False

    tracer = Fine()
    tracer.trace(Net())
    kinds = {name: (path, getattr(kind, "__name__", None)) for name, (path, kind) in tracer.node_name_to_scope.items()}
    return {name: kind for name, kind in kinds.items() if kind[0]}


def attributes_read(m):
    class Reading(fx(m).Tracer):
        def getattr(self, attr, attr_val, parameter_proxy_cache):
            names.append(attr) if attr in ("w", "b") else None
            return super().getattr(attr, attr_val, parameter_proxy_cache)

    class Net(m.nn.Module):
        def __init__(self):
            super().__init__()
            self.w = m.nn.Parameter(m.ones(2))
            self.b = 3

        def forward(self, x):
            return x * self.w + self.b

    names: list[str] = []
    graph = Reading().trace(Net())
    return names, [n.op for n in graph.nodes]


def concrete(m):
    f = lambda x, y: x * 2 if y else x  # noqa: E731
    by_name = fx(m).symbolic_trace(f, concrete_args={"y": True})
    in_order = fx(m).Tracer().trace(f, concrete_args=(fx(m).PH, True))
    return by_name(3, True), next(iter(in_order.nodes)).op, in_order.output_node().args[0].name


def concrete_function(m):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # functions are not compared
        module = fx(m).symbolic_trace(lambda a, f: f(a), concrete_args={"f": lambda x: x * 2})
    return module(3, lambda x: x * 5)


def traced_again(m):
    return fx(m).symbolic_trace(fx(m).symbolic_trace(m.nn.Sequential(m.nn.ReLU())))._get_name()


def too_few_concrete(m):
    fx(m).Tracer().trace(lambda x, y: x, concrete_args=(1,))


def aggregated(m):
    graph = small(m)[0]
    x = next(iter(graph.nodes))
    mapped = fx(m).node.map_aggregate([1, (2, {"a": 3})], lambda leaf: leaf + 1)
    args = fx(m).node.map_arg(([x, 1], {"k": x}), lambda node: node.name)
    return mapped, args, [type(part).__name__ for part in (mapped, args[0], args[1])]


def normalized(m):
    module = fx(m).symbolic_trace(m.nn.Sequential(m.nn.Linear(2, 2)))
    graph = fx(m).Graph()
    x = graph.placeholder("x")
    call = graph.call_function(keywords, (x,), {"c": 3})
    [linear] = module.graph.find_nodes(op="call_module")
    forms = [call.normalized_arguments(module), call.normalized_arguments(module, normalize_to_only_use_kwargs=True),
             linear.normalized_arguments(module, normalize_to_only_use_kwargs=True),
             linear.normalized_arguments(module), x.normalized_arguments(module)]  # fmt: skip
    return [form and (list(map(str, form.args)), {k: str(v) for k, v in form.kwargs.items()}) for form in forms]


def keywords(a, b=2, *, c=None):
    return a


def error_of(call):
    """Return the class of an error, and which of PyTorch's words are in it."""
    words = ("Expected a Graph instance, but got <class 'int'>", "Must be either a callable or string name",
             "SubgraphMatcher cannot be initialized with an empty pattern")  # fmt: skip
    try:
        call()
    except Exception as error:
        return type(error).__name__, [text for text in words if text in str(error)]
    return None


def refused(m):
    """Return the errors for an object that is no graph, for wrapping a number, and for an empty pattern."""
    graph, rewriter = fx(m).Graph, importlib.import_module(f"{fx(m).__name__}.subgraph_rewriter")
    module = fx(m).symbolic_trace(m.nn.Linear(2, 2))
    return [
        error_of(lambda: setattr(module, "graph", 3)),
        error_of(lambda: fx(m).wrap(3)),
        error_of(lambda: rewriter.replace_pattern(module, graph(), graph())),
    ]


def erased(m):
    """Return whether nodes are marked as erased."""
    graph = fx(m).Graph()
    x, y = (graph.placeholder(name) for name in "xy")
    graph.erase_node(x)
    return x._erased, y._erased


def copied_outputs(m):
    graph, *_ = small(m)
    other = fx(m).Graph()
    value, node = other.graph_copy(graph, {}, return_output_node=True)
    return value.name, node.op, node.graph is graph


BUILT = {
    "annotations": typed,
    "annotations of arguments": annotated,
    "proxies of nodes": appended,
    "proxies that insert": inserted_by_proxies,
    "deep copies of a deep graph": deep_copies,
    "metadata": stored,
    "the name of the class": classes,
    "a code generator": listed,
    "transformations of the code": transformed_code,
    "hooks": hooked,
    "a hook that is not registered": wrong_hook,
    "values that an interpreter keeps": remaining,
    "asserts": asserted,
    "arguments with forms of their own": own_forms,
    "classes constructed": constructed,
    "keys that are proxies": keyed,
    "sizes of parameters": sized,
    "scopes": scopes,
    "attributes": attributes_read,
    "concrete arguments": concrete,
    "a concrete function": concrete_function,
    "the class of a traced graph module": traced_again,
    "too few concrete arguments": too_few_concrete,
    "mapped arguments": aggregated,
    "normalized arguments": normalized,
    "a copy with its output": copied_outputs,
    "refused graphs, wrapped numbers and patterns": refused,
    "erased nodes": erased,
}

CASES = cases({"names": NAMES, "built": BUILT})


@pytest.mark.parametrize("name", CASES)
def test_it_agrees_with_torch(name):
    assert_agreement(CASES[name])


def used(m):
    graph, _, mul, _ = small(m)
    graph.erase_node(mul)


def foreign(m):
    graph, *_ = small(m)
    other = small(m)[0]
    unused = other.call_method("neg", ())
    graph.erase_node(unused)


def copied_unmapped(m):
    graph, *_ = small(m)
    other = fx(m).Graph()
    for node in graph.nodes:
        other.node_copy(node)
    other.lint()


def disordered(m):
    graph, _, mul, add = small(m)
    add.append(mul)
    graph.lint()


def twice_named(m):
    graph, _, mul, add = small(m)
    add.name = mul.name
    graph.lint()


def without_attribute(m):
    module = fx(m).GraphModule({"w": m.ones(2)}, reading(m))
    del module.w
    module.graph.lint()


def reading(m):
    graph = fx(m).Graph()
    graph.output(graph.get_attr("w"))
    return graph


def no_module(m):
    module = fx(m).GraphModule({"w": m.ones(2)}, reading(m))
    for node in module.graph.find_nodes(op="get_attr"):
        node.op = "call_module"
    module.graph.lint()


def without_self(m):
    class Net(m.nn.Module):
        def forward(*args, **kwargs):
            return args[1]

    fx(m).symbolic_trace(Net())


def other_concrete(m):
    fx(m).symbolic_trace(lambda x, y: x * 2 if y else x, {"y": True})(3, False)


def iterated(m):
    fx(m).symbolic_trace(lambda x: [y + 1 for y in x])


# The words of PyTorch's message that ours contains too, and the class that catches both.
MESSAGES = {
    "erasing a node in use": (used, RuntimeError, "Tried to erase Node mul but it still had 1 users in the graph"),
    "erasing a node of another graph": (foreign, RuntimeError, "Attempting to remove neg from wrong graph!"),
    "copies without a mapping": (copied_unmapped, RuntimeError, "does not belong to this Graph"),
    "a wrong order": (disordered, RuntimeError, "was used before it has been defined"),
    "a name twice": (twice_named, RuntimeError, "Node redefined name mul"),
    "no such attribute": (without_attribute, RuntimeError, "Node w target w references nonexistent attribute"),
    "no module": (no_module, RuntimeError, "does not reference an nn.Module"),
    "a target that is no function": (
        lambda m: fx(m).Graph().call_function("foo"), ValueError, "but a Callable is expected",
    ),
    "a target that is no name": (lambda m: fx(m).Graph().call_module(len), ValueError, "but a str is expected"),
    "a branch": (
        lambda m: fx(m).symbolic_trace(lambda x: x if x else 1), ValueError,
        "symbolically traced variables cannot be used as inputs to control flow",
    ),
    "a loop": (iterated, ValueError, "Proxy object cannot be iterated"),
    "a length": (
        lambda m: fx(m).symbolic_trace(lambda x: builtins.len(x)), RuntimeError,
        "'len' is not supported in symbolic tracing by default",
    ),
    "keys that are proxies": (keyed, RuntimeError, "Keys for dictionaries used as an argument cannot contain a Node"),
    "a dict without a target": (
        lambda m: fx(m).GraphModule({}, reading(m)), RuntimeError,
        "referenced target w but that target was not provided in ``root``!",
    ),
    "too few concrete arguments": (
        too_few_concrete, RuntimeError, "Tracing expected 2 arguments but got 1 concrete arguments",
    ),
    "self among *args": (without_self, RuntimeError, "``self`` argument cannot be part of *args expansion!"),
    "another concrete argument": (
        other_concrete, AssertionError, "y has been specialized to have value True but got another value",
    ),
    "an argument too few": (
        lambda m: fx(m).Interpreter(fx(m).symbolic_trace(lambda x, y: x + y)).run(1), RuntimeError,
        "Expected positional argument for parameter y, but one was not passed in!",
    ),
    "a list in place": (
        lambda m: fx(m, "immutable_collections").immutable_list([1]).append(2), TypeError,
        "'immutable_list' object does not support mutation",
    ),
    "a dict in place": (
        lambda m: fx(m, "immutable_collections").immutable_dict(a=1).update(a=2), TypeError,
        "'immutable_dict' object does not support mutation",
    ),
    "an index of arguments": (
        lambda m: small(m)[2].insert_arg(4, 1), (AssertionError, IndexError), "index must be between 0 and len",
    ),
}  # fmt: skip


@pytest.mark.parametrize("m", [rg, torch], ids=lambda m: m.__name__)
@pytest.mark.parametrize("name", MESSAGES)
def test_errors_have_torchs_words(name, m):
    program, kind, words = MESSAGES[name]
    with pytest.raises(kind, match=re.escape(words)):
        program(m)


@pytest.mark.parametrize("m", [rg, torch], ids=lambda m: m.__name__)
def test_nodes_without_a_referent_and_repeated_erasure_warn(m):
    module = fx(m).GraphModule({"w": m.ones(2)}, reading(m))
    with module.graph.inserting_before(module.graph.output_node()):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            fine = module.graph.get_attr("w")
        with pytest.warns(UserWarning, match="insert a get_attr Node with no underlying reference"):
            module.graph.get_attr("v")
    module.graph.erase_node(fine)
    with pytest.warns(UserWarning, match="on an already erased node"):
        module.graph.erase_node(fine)


def lines_of_nodes(m):
    module = fx(m).symbolic_trace(lambda x: (x + 1).neg() * 2)
    lines, names = module.code.split("\n"), [n.name for n in module.graph.nodes]
    start = module._prologue_start - 1
    found = {names[i]: lines[start + offset].split()[0] for offset, i in module._lineno_map.items()
             if i is not None and lines[start + offset].strip()}  # fmt: skip
    return found, lines[start].startswith("def forward")


def test_offsets_from_the_line_of_def_have_the_nodes_that_the_lines_compute():
    assert lines_of_nodes(rg) == lines_of_nodes(torch)
    assert lines_of_nodes(rg) == ({"add": "add", "neg": "neg", "mul": "mul", "output": "return"}, True)


def annotated(m):
    def function(x: m.Tensor, n: int = 3) -> m.Tensor:
        return (x + n).relu()

    module = fx(m).symbolic_trace(function)
    header = next(line for line in module.code.split("\n") if line.startswith("def"))
    return (
        header.replace(m.__name__, "m"),
        str(module.graph).replace(m.__name__, "m").split("\n")[1:3],
        module(m.ones(1)).tolist(),
    )


def header(m, annotation):
    graph = fx(m).Graph()
    graph.output(graph.placeholder("x", annotation), annotation)
    return graph.python_code("self").src.strip().split("\n")[0].replace(m.__name__, "m")


def test_annotations_are_written_by_their_public_names():
    assert annotated(rg) == annotated(torch)
    for written in ("Tuple[m.Tensor, int]", "List[m.Tensor]", "Dict[str, List[int]]", "Set[int]", "List", "Tuple"):
        ours, theirs = (header(m, eval(written, {"m": m, **vars(typing)})) for m in (rg, torch))
        assert ours == theirs
    assert "x : m.Tensor" in annotated(rg)[0]

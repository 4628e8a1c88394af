"""Saved and loaded programs have the same graph, results and derivatives."""

import json
import math
from collections import OrderedDict, defaultdict, deque, namedtuple
from pathlib import Path

import optree
import pytest

import retrograd as rg
from retrograd import fx, library
from retrograd.core import Tensor, registry
from retrograd.export import Dim, export
from retrograd.export.storage import StorageError, load, save
from retrograd.implicit.operator import implicit_solution
from retrograd.pipelining import SplitPoint, pipeline
from retrograd.testing import assert_close, samples_of, seeded

from ..tables import on_tensors, operators_on_arrays

Point = namedtuple("Point", "x y")
DATA = Path(__file__).parent / "data"


class Net(rg.nn.Module):
    """A model with tied weights, buffers of both kinds, a constant, a frozen parameter."""

    def __init__(self):
        super().__init__()
        self.first = rg.nn.Linear(3, 3)
        self.second = rg.nn.Linear(3, 3)
        self.second.weight = self.first.weight
        self.second.bias.requires_grad = False
        self.register_buffer("mean", rg.ones(3))
        self.register_buffer("scratch", rg.zeros(3), persistent=False)
        self.table = rg.tensor([1 + 2j, -0.0 + 1j], dtype=rg.complex128)

    def forward(self, x, *, flag=True, scale=2.0):
        y = self.second(self.first(x) - self.mean) * scale + self.scratch
        return {"y": y, "z": (self.table.abs().sum(), [None])}


@pytest.fixture(params=["folder", "whole.zip"])
def path(request, tmp_path):
    return tmp_path / request.param


def save_and_load(module, path):
    save(module, path)
    return load(path)


# --------------------------------------------------------------------------------------------- round trips


def test_a_loaded_module_has_the_same_code_state_and_results(path):
    module = fx.trace(Net(), rg.randn(2, 3))
    loaded = save_and_load(module, path)
    x = rg.randn(2, 3)
    assert loaded.code == module.code
    assert str(loaded.graph) == str(module.graph)
    assert list(loaded.state_dict()) == list(module.state_dict())
    assert [n for n, _ in loaded.named_buffers()] == [n for n, _ in module.named_buffers()]
    assert loaded.training == module.training
    for a, b in zip(optree.tree_leaves(loaded(x)), optree.tree_leaves(module(x)), strict=True):
        assert_close(a, b, rtol=0.0, atol=0.0)
    with pytest.raises(ValueError, match=r"scale: traced with 2\.0, got 3\.0"):
        loaded(x, scale=3.0)


def test_gradients_are_those_of_the_stored_module(path):
    module = fx.trace(Net(), rg.randn(2, 3))
    loaded = save_and_load(module, path)
    x = rg.randn(2, 3)
    for program in (module, loaded):
        program(x)["y"].sum().backward()
    named = dict(module.named_parameters())
    assert [n for n, _ in loaded.named_parameters()] == list(named)
    for name, parameter in loaded.named_parameters():
        assert parameter.requires_grad == named[name].requires_grad
        if parameter.requires_grad:
            assert_close(parameter.grad, named[name].grad, rtol=0.0, atol=0.0)


def test_tied_parameters_stay_one(path):
    loaded = save_and_load(fx.trace(Net(), rg.randn(2, 3)), path)
    assert loaded.first.weight is loaded.second.weight


def test_stages_of_a_pipeline_are_stored(path):
    model = rg.nn.Sequential(rg.nn.Linear(4, 8), rg.nn.ReLU(), rg.nn.Linear(8, 2))
    pipe = pipeline(model, (rg.ones(3, 4),), split_spec={"2": SplitPoint.BEGINNING})
    x = y = rg.randn(3, 4)
    for index in range(2):
        stage = pipe.get_stage_module(index)
        (y,) = save_and_load(stage, path)(y)
        (x,) = stage(x)
    assert_close(x, y, rtol=0.0, atol=0.0)


REFUSED = {implicit_solution.name: "its problem holds the user's functions"}
OURS = [name for name in operators_on_arrays() if "::" not in name and name not in REFUSED]
CASES = [(name, i) for name in OURS for i in range(len(list(samples_of(registry[name]))))]


@pytest.mark.parametrize("case", CASES[::7], ids=lambda case: f"{case[0]}-{case[1]}")
def test_every_operator_is_stored(case, tmp_path):
    name, i = case
    op = registry[name]
    args, params = list(samples_of(op))[i]
    f, tensors = on_tensors(op, args, params)
    module = fx.trace(f, *tensors)
    loaded = save_and_load(module, tmp_path / "a.zip")
    assert loaded.code == module.code
    assert str(loaded.graph) == str(module.graph)
    assert [n.meta.get("val") for n in loaded.graph.nodes] == [n.meta.get("val") for n in module.graph.nodes]
    with seeded():
        expected = module(*tensors)
    with seeded():
        for a, b in zip(optree.tree_leaves(loaded(*tensors)), optree.tree_leaves(expected), strict=True):
            assert_close(a, b, rtol=0.0, atol=0.0, equal_nan=True)


@pytest.mark.parametrize("name", REFUSED)
def test_an_operator_with_a_function_is_refused_by_name(name, tmp_path):
    args, params = next(iter(samples_of(registry[name])))
    f, tensors = on_tensors(registry[name], args, params)
    with pytest.raises(StorageError, match=f"{name}: .* can't be stored"):
        save_and_load(fx.trace(f, *tensors), tmp_path / "a.zip")


def same(a, b):
    """Return whether two values are equal in type and value, including nan and the sign of zero."""
    if isinstance(a, (tuple, list)):
        return type(a) is type(b) and len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict):
        return type(a) is type(b) and same(list(a.items()), list(b.items()))
    if isinstance(a, complex):
        return same((a.real, a.imag), (b.real, b.imag))
    if isinstance(a, float):
        return type(b) is float and (math.isnan(b) if math.isnan(a) else (a, str(a)) == (b, str(b)))
    return type(a) is type(b) and a == b


VALUES = [
    None, True, 0, 10**50, -1.5, 0.1, -0.0, 5e-324, math.inf, -math.inf, math.nan, complex(-0.0, math.nan), "",
    "\n'\"\\", "é\u2028\0\ud800", b"\0\xff", (), (1,), [], [[1], (2,)], {},
    {"a": 1, 2: (3,), None: 4.0, (1, "b"): b"c"},
    slice(None, 2, -1), ..., rg.float32, rg.complex128, rg.Size([2, 3]),
]  # fmt: skip


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_constants_come_back_exactly(value, path):
    graph = fx.Graph()
    graph.output((graph.placeholder("x"), value))
    loaded = save_and_load(fx.GraphModule(rg.nn.Module(), graph), path)
    assert same(loaded.graph.output_node().args[0][1], graph.output_node().args[0][1])
    assert same(loaded(1)[1], fx.GraphModule(rg.nn.Module(), graph)(1)[1])


def test_structures_of_arguments_and_results_come_back(path):
    def f(a, /, b, *rest, c=3, **more):
        total = a["x"][0] + b.x + sum(rest) + more["d"] * c
        return OrderedDict(z=total, a=[deque([total], maxlen=3), None, Point(total, (2, "text"))]), defaultdict(
            list, k=total
        )

    x = rg.randn(2)
    args, kwargs = ({"x": [x, None], 3: "constant"}, Point(x, -0.0), x, x), {"d": x}
    module = fx.trace(f, *args, **kwargs)
    loaded = save_and_load(module, path)
    expected, actual = module(*args, **kwargs), loaded(*args, **kwargs)
    assert optree.tree_structure(actual) == optree.tree_structure(expected)
    assert isinstance(actual[0]["a"][2], Point)
    with pytest.raises(ValueError, match="traced with the structure"):
        loaded(({"x": [x, x], 3: "constant"}), *args[1:], **kwargs)


class Box:
    """A container that is registered with optree."""

    def __init__(self, inside, label):
        self.inside, self.label = inside, label


@pytest.fixture
def boxes():
    optree.register_pytree_node(
        Box,
        lambda b: ((b.inside,), b.label),
        lambda label, c: Box(c[0], label),
        namespace=optree.registry.__GLOBAL_NAMESPACE,
    )
    yield
    if optree.register_pytree_node.get(Box) is not None:
        optree.unregister_pytree_node(Box, namespace=optree.registry.__GLOBAL_NAMESPACE)


def test_registered_classes_come_back_and_must_be_registered(boxes, path):
    save(fx.trace(lambda b: Box(b.inside * 2, b.label), Box(rg.ones(2), "top")), path)
    assert load(path)(Box(rg.ones(2), "top")).label == "top"
    optree.unregister_pytree_node(Box, namespace=optree.registry.__GLOBAL_NAMESPACE)
    with pytest.raises(StorageError, match=r"the class .*test_storage\.Box is not registered.*before loading"):
        load(path)


def test_a_class_that_has_no_name_of_its_own_is_refused_when_stored(path):
    local = namedtuple("local", "a")
    with pytest.raises(StorageError, match=r"local.* not to be found under that name"):
        save(fx.trace(lambda x: local(x), rg.ones(1)), path)
    assert not path.exists()


def test_nested_tensors_as_arguments_come_back(path):
    nested = rg.nested.nested_tensor([rg.randn(2, 3), rg.randn(4, 3)])
    module = fx.trace(lambda x: (x * 2).sum(-1), nested)
    loaded = save_and_load(module, path)
    assert str(loaded.graph) == str(module.graph)
    for a, b in zip(loaded(nested).unbind(), module(nested).unbind(), strict=True):
        assert_close(a, b, rtol=0.0, atol=0.0)


def test_guards_are_stored(path):
    loaded = save_and_load(fx.trace(lambda x: x * 2 if x.sum() > 0 else x, rg.ones(2)), path)
    with pytest.raises(RuntimeError, match=r"test_storage\.py"):
        loaded(-rg.ones(2))


def test_positions_in_the_code_are_preserved(path):
    module = fx.trace(lambda x: x * 2, rg.ones(2))
    place = next(n.meta["stack_trace"] for n in save_and_load(module, path).graph.nodes if n.name == "mul")
    assert "test_storage.py" in place


def test_a_long_graph_is_stored_without_recursion(tmp_path):
    graph = fx.Graph()
    x = graph.placeholder("x")
    for _ in range(20_000):
        x = graph.call_function(registry["neg"], (x,))
    graph.output(x)
    loaded = save_and_load(fx.GraphModule(rg.nn.Module(), graph), tmp_path / "a")
    assert len(loaded.graph.nodes) == 20_002


def test_equal_programs_make_equal_files(tmp_path):
    module = fx.trace(Net(), rg.ones(1, 3))
    save(module, tmp_path / "a.zip")
    save(load(tmp_path / "a.zip"), tmp_path / "b.zip")
    assert (tmp_path / "a.zip").read_bytes() == (tmp_path / "b.zip").read_bytes()


# ------------------------------------------------------------------------------------------ users' operators


def test_a_users_operator_loads_where_it_is_registered(path):
    @library.custom_op("shop::double", mutates_args=())
    def double(x: Tensor) -> Tensor:
        return x * 2

    try:
        save(fx.trace(lambda x: double(x) + 1, rg.ones(2)), path)
        assert load(path)(rg.ones(2)).tolist() == [3.0, 3.0]
    finally:
        stored = registry.pop("shop::double")
    assert stored.name == "shop::double"
    with pytest.raises(StorageError, match=r"no operator named 'shop::double' is registered: import .*'shop'"):
        load(path)


def edited(path, change):
    """Change the graph.json of a stored folder."""
    file = path / "graph.json"
    document = json.loads(file.read_text())
    change(document)
    file.write_text(json.dumps(document))


def test_a_loaded_call_keeps_a_default_that_has_changed_since(tmp_path):
    save(fx.trace(lambda x: x.sum(0), rg.ones(2, 3)), tmp_path / "a")

    def older(document):
        document["operators"]["sum"] = document["operators"]["sum"].replace("keepdim=False", "keepdim=True")

    edited(tmp_path / "a", older)
    assert load(tmp_path / "a")(rg.ones(2, 3)).shape == (1, 3)


def test_a_loaded_call_of_a_users_operator_keeps_a_default_that_has_changed_since(tmp_path):
    schema = "(Tensor x, int[] shape=[2, 1], *, float by=1.0) -> (Tensor, int)"

    @library.custom_op("shop::grown", mutates_args=(), schema=schema)
    def grown(x, shape, by):
        return (x * by).expand(shape).clone(), 7

    save(fx.trace(lambda x: grown(x)[0], rg.ones(1)), tmp_path / "a")

    def older(document):
        document["operators"]["shop::grown"] = f"shop::grown{schema}".replace("1.0", "3.0").replace("1]", "2]")

    edited(tmp_path / "a", older)
    assert load(tmp_path / "a")(rg.ones(1)).tolist() == [[3.0, 3.0], [3.0, 3.0]]


def test_an_argument_that_is_gone_is_named_with_its_node(tmp_path):
    save(fx.trace(lambda x: x.sum(0, keepdim=True), rg.ones(2, 3)), tmp_path / "a")

    def older(document):
        document["operators"]["sum"] = document["operators"]["sum"].replace("keepdim", "stays")
        (node,) = [n for n in document["nodes"] if n["target"] == "sum"]
        node["kwargs"] = {"stays": True}

    edited(tmp_path / "a", older)
    with pytest.raises(StorageError, match=r"sum.*unexpected keyword argument 'stays'"):
        load(tmp_path / "a")


# --------------------------------------------------------------------------------------------- refused saves


def test_only_programs_are_stored(path):
    with pytest.raises(TypeError, match="expected a GraphModule or an ExportedProgram, got Linear"):
        save(rg.nn.Linear(2, 2), path)


def test_a_constant_that_is_no_data_is_refused_by_its_name(path):
    with pytest.raises(StorageError, match=r"signature: how: .* of type object can't be stored"):
        save(fx.trace(lambda x, how=None: x + 1, rg.ones(2), how=object()), path)
    assert not path.exists()


def test_a_list_that_holds_itself_is_refused(path):
    loop: list = []
    module = fx.trace(lambda x: x + 1, rg.ones(2))
    next(iter(module.graph.nodes)).meta["note"] = loop
    loop.append(loop)
    with pytest.raises((StorageError, RecursionError)):
        save(module, path)
    assert not path.exists()


def test_files_that_are_no_stored_programs_are_not_replaced(tmp_path):
    module = fx.trace(lambda x: x + 1, rg.ones(2))
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "letter.txt").write_text("dear")
    (tmp_path / "a.zip").write_text("no zip")
    (tmp_path / "file").write_text("no folder")
    for name in ("mine", "a.zip", "file"):
        with pytest.raises(FileExistsError, match=f"{name} exists and is no stored program"):
            save(module, tmp_path / name)
    assert (tmp_path / "mine" / "letter.txt").read_text() == "dear"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.zip", "file", "mine"]


def test_a_save_that_fails_keeps_the_previous_program(path, monkeypatch):
    save(fx.trace(lambda x: x + 1, rg.ones(2)), path)

    def fail(*args):
        raise OSError("disk full")

    monkeypatch.setattr("retrograd.export.storage.save_file", fail)
    with pytest.raises(OSError, match="disk full"):
        save(fx.trace(lambda x: x + 2, rg.ones(2)), path)
    assert load(path)(rg.ones(1 + 1)).tolist() == [2.0, 2.0]
    assert [p.name for p in path.parent.iterdir()] == [path.name]


def test_a_stored_program_is_replaced(path):
    save(fx.trace(lambda x: x + 1, rg.ones(2)), path)
    assert save_and_load(fx.trace(lambda x: x + 2, rg.ones(2)), path)(rg.ones(2)).tolist() == [3.0, 3.0]
    assert [p.name for p in path.parent.iterdir()] == [path.name]


# ------------------------------------------------------------------------------------------- earlier versions


@pytest.mark.parametrize("name", ["net_1", "net_1.zip"])
def test_files_of_version_1_load(name):
    loaded = load(DATA / name)
    results = loaded(rg.tensor([[1.0, 2.0, 3.0]]), scale=rg.tensor(2.0))
    assert_close(results["y"], rg.tensor([[4.0, 0.0]]))
    assert_close(results["rest"][0], rg.tensor([[4.0, 0.0]]).T)
    assert_close(loaded._tensor_constant0, rg.tensor([1 + 2j, 3.0], dtype=rg.complex128))
    assert [name for name, _ in loaded.named_parameters()] == ["linear.weight", "linear.bias"]
    assert "def forward" in loaded.graph.python_code().src


# ---------------------------------------------------------------------------------------- exported programs


class Counting(rg.nn.Module):
    """Write to a buffer and return a constant; the input has a symbolic size that the code tests."""

    def __init__(self):
        super().__init__()
        self.linear = rg.nn.Linear(3, 2)
        self.register_buffer("seen", rg.zeros(3))

    def forward(self, x, k=2):
        self.seen.add_(x.detach().sum(0))
        if x.shape[0] > 1:
            x = x - self.seen
        return {"a": self.linear(x).reshape(-1) * k, "b": [x.shape[0] + rg.ones(2), 5]}


def exported():
    shapes = {"x": {0: Dim("batch", min=2, max=64)}, "k": None}
    return export(Counting(), (rg.randn(4, 3),), dynamic_shapes=shapes)


def test_an_exported_program_is_restored_by_load(path):
    program = exported()
    save(program, path)
    loaded = load(path)
    assert str(loaded) == str(program)
    assert list(loaded.state_dict) == list(program.state_dict)
    assert loaded.range_constraints == program.range_constraints
    assert [n.meta.get("shape") for n in loaded.graph.nodes] == [n.meta.get("shape") for n in program.graph.nodes]
    x = rg.randn(7, 3)
    expected, actual = program.module()(x), loaded.module()(x)
    for a, b in zip(optree.tree_leaves(actual), optree.tree_leaves(expected), strict=True):
        assert_close(a, b, rtol=0.0, atol=0.0)
    assert_close(loaded.state_dict["seen"], x.sum(0))
    with pytest.raises(ValueError, match="batch must be in"):
        loaded.module()(rg.randn(65, 3))


def test_a_trace_that_writes_is_restored_by_load(path):
    loaded = save_and_load(fx.trace(Counting(), rg.randn(4, 3)), path)
    x = rg.randn(4, 3)
    loaded(x)
    assert_close(loaded.seen, x.sum(0))


@pytest.mark.parametrize(
    ("place", "value", "message"),
    [
        (("rest", "state"), [], "tensors of the program"),
        (("rest", "state"), ["linear"], "name of a tensor"),
        (("rest", "state"), ["forward"], "name of a tensor"),
        (("rest", "inputs"), [], "an input for each tensor"),
        (("rest", "inputs", 0, 0), "SECRET", "the kind of an input"),
        (("rest", "inputs", 0, 1), "other", "do not fit"),
        (("rest", "outputs", 0, 2), "linear.weight", "the writes of the call"),
        (("rest", "call", "signature", "mutations", 0, 1), "forward", "a target"),
        (("rest", "call", "signature", "mutations", 0, 1), "linear.bias", "the writes of the call"),
        (("rest", "call", "signature", "sizes", "places", 0, 1), 2, "a dimension of an input"),
        (("rest", "call", "signature", "sizes", "ranges", 0, 1), "1", "a range"),
        (("rest",), {}, "the parts of a program"),
    ],
    ids=str,
)
def test_parts_of_a_program_that_do_not_fit_are_refused(tmp_path, place, value, message):
    save(exported(), tmp_path / "a")

    def change(document):
        for key in place[:-1]:
            document = document[key]
        document[place[-1]] = value

    edited(tmp_path / "a", change)
    with pytest.raises(StorageError, match=message):
        load(tmp_path / "a")


def test_an_exported_program_of_version_1_loads():
    loaded = load(DATA / "counting_1.zip").module()
    results = loaded(rg.tensor([[1.0, 2.0, 3.0], [0.0, 0.0, 1.0]]))
    assert_close(results["a"], rg.tensor([0.0, -2.0, 0.0, -2.0]))  # x minus the buffer is [0, 0, -1] and [-1, -2, -3]
    assert_close(loaded.seen, rg.tensor([1.0, 2.0, 4.0]))
    with pytest.raises(ValueError, match="batch must be in"):
        loaded(rg.ones(65, 3))


@pytest.mark.parametrize("name", ["program", "program.zip"])
def test_files_that_another_function_reads_are_named_by_what_they_are(tmp_path, name):
    program = rg.export.export(rg.nn.Linear(2, 1), (rg.ones(1, 2),))
    rg.export.save(program, tmp_path / name)
    with pytest.raises(ValueError, match=r"it is an exported program or a compiled function: export\.load or"):
        rg.load(tmp_path / name)
    rg.save({"weight": rg.ones(1)}, tmp_path / "state.pt")
    with pytest.raises(rg.export.StorageError, match=r"it is a file of rg\.save or torch\.save: rg\.load reads it"):
        rg.export.load(tmp_path / "state.pt")


def test_an_array_in_place_of_a_tensor_is_not_shown_as_a_whole():
    module = rg.export.export(rg.nn.Linear(2, 1), (rg.ones(1, 2),)).module()
    with pytest.raises(TypeError, match=r"input is an array, ndarray; pass a tensor, see rg\.as_tensor"):
        module(rg.ones(1, 2).numpy())

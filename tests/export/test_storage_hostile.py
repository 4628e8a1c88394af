"""Damaged and malicious program files raise a StorageError that names the fault, and execute nothing."""

import copy
import importlib
import json
import os
import pickle
import random
import struct
import warnings
import zipfile

import pytest

import retrograd as rg
from retrograd import export, fx
from retrograd.export.storage import StorageError, load, save
from retrograd.interop import program_files

from ..files.damage import EVIL, mutated


class Net(rg.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = rg.nn.Linear(3, 2)
        self.register_buffer("mean", rg.zeros(2, dtype=rg.complex128))

    def forward(self, x, *, flag="yes", scale=-0.0):
        y = self.linear(x)[:, 0] + self.mean.real.sum()
        top = y.topk(1).values if hasattr(y, "topk") else y.max(dim=0).values
        return {"y": y.to(rg.float64) * scale, "top": [top, None]}


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    folder = tmp_path_factory.mktemp("stored")
    module = fx.trace(Net(), rg.ones(2, 3))
    save(module, folder / "a")
    save(module, folder / "a.zip")
    return folder


@pytest.fixture
def stored(original, tmp_path):
    """Return a copy to be modified: (folder, document)."""
    folder = tmp_path / "a"
    folder.mkdir()
    for name in program_files.NAMES:
        (folder / name).write_bytes((original / "a" / name).read_bytes())
    return folder, json.loads((folder / "graph.json").read_text())


def node_of(document, op):
    return next(node for node in document["nodes"] if node["op"] == op)


def tensor_of(document, name):
    return next(entry for entry in document["tensors"] if entry["name"] == name)


def refuses(stored, message):
    folder, document = stored
    (folder / "graph.json").write_text(document if isinstance(document, str) else json.dumps(document))
    with pytest.raises(StorageError, match=message) as info:
        load(folder)
    assert str(folder) in str(info.value)


# ------------------------------------------------------------------------------------------------ the files


def test_nothing_there_is_a_file_not_found(tmp_path):
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "none")


@pytest.mark.parametrize("name", program_files.NAMES)
def test_a_missing_file_is_named(stored, name):
    (stored[0] / name).unlink()
    with pytest.raises(StorageError, match=f"there is no {name}"):
        load(stored[0])


@pytest.mark.parametrize("name", program_files.NAMES)
@pytest.mark.parametrize("kept", [0, 1, 8, 100, -1])
def test_a_truncated_file_is_named(stored, name, kept):
    file = stored[0] / name
    file.write_bytes(file.read_bytes()[:kept].rstrip(b"}\n"))
    with pytest.raises(StorageError, match=name):
        load(stored[0])


def test_a_pipe_is_not_waited_for(stored):
    (stored[0] / "graph.json").unlink()
    os.mkfifo(stored[0] / "graph.json")
    with pytest.raises(StorageError, match=r"graph\.json is no file"):
        load(stored[0])


def test_a_graph_that_is_too_large_is_not_read(stored, monkeypatch):
    monkeypatch.setattr(program_files, "MAX_GRAPH_BYTES", 100)
    refuses(stored, r"graph\.json: it has \d+ bytes, more than the 100")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[",
        "nan",
        "NaN",
        '{"format": NaN}',
        "[" * 100_000,
        '{"a":' * 100_000,
        '"\ud800"'.encode("utf-8", "surrogatepass").decode("latin1"),
        "9" * 10_000,
        '{"format": "retrograd graph", "format": "retrograd graph"}',
        "null",
        "[]",
        "{}",
    ],
    ids=range(13),
)
def test_invalid_json_is_refused(stored, text):
    refuses((stored[0], text), r"graph\.json: ")


def zipped(path, entries, compression=zipfile.ZIP_STORED):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # zipfile warns of a name that comes twice
        with zipfile.ZipFile(path, "w", compression) as archive:
            for name, content in entries:
                archive.writestr(name, content)


@pytest.fixture
def contents(original):
    return [(name, (original / "a" / name).read_bytes()) for name in program_files.NAMES]


def test_a_zip_made_elsewhere_loads(contents, tmp_path):
    zipped(tmp_path / "b", contents)
    assert load(tmp_path / "b")(rg.ones(2, 3))["y"].shape == (2,)


@pytest.mark.parametrize("name", ["../evil", "/tmp/evil", "a/graph.json", "evil.py", "graph.json"])
def test_other_entries_of_a_zip_are_refused(contents, tmp_path, name):
    zipped(tmp_path / "b.zip", [*contents, (name, b"{}")])
    with pytest.raises(StorageError, match=r"must hold graph\.json and tensors\.safetensors alone"):
        load(tmp_path / "b.zip")
    assert not (tmp_path.parent / "evil").exists()


def test_a_missing_entry_is_refused(contents, tmp_path):
    zipped(tmp_path / "b.zip", contents[:1])
    with pytest.raises(StorageError, match="must hold"):
        load(tmp_path / "b.zip")


def test_a_bomb_is_not_unpacked(contents, tmp_path):
    zipped(tmp_path / "b.zip", [contents[0], ("tensors.safetensors", bytes(10**7))], zipfile.ZIP_DEFLATED)
    with pytest.raises(StorageError, match="compressed"):
        load(tmp_path / "b.zip")


def test_an_entry_that_misstates_its_size_is_refused(contents, tmp_path):
    zipped(tmp_path / "b.zip", contents)
    data = bytearray((tmp_path / "b.zip").read_bytes())
    place = data.rfind(b"PK\x01\x02")
    data[place + 20 : place + 28] = struct.pack("<II", 2**31, 2**31)
    (tmp_path / "b.zip").write_bytes(data)
    with pytest.raises(StorageError, match="longer than the file"):
        load(tmp_path / "b.zip")


# --------------------------------------------------------------------------------------------- the document


def test_a_newer_version_names_both(stored):
    stored[1].update(version=2, retrograd="9.1")
    refuses(stored, r"version 2 .* retrograd '9\.1'; this retrograd, .*, reads up to version 1")


@pytest.mark.parametrize("version", [0, -1, True, 1.0, "1", None])
def test_a_version_that_is_no_number_is_refused(stored, version):
    stored[1]["version"] = version
    refuses(stored, "number of a version")


def test_another_format_is_refused(stored):
    stored[1]["format"] = "pickle"
    refuses(stored, "expected the format 'retrograd graph'")


def test_an_unknown_operator_is_named(stored):
    stored[1]["operators"]["cake::bake"] = "bake(Tensor x) -> Tensor"
    refuses(stored, "no operator named 'cake::bake' is registered: import .* 'cake'")


def test_an_operator_without_a_schema_is_refused(stored):
    node_of(stored[1], "call_function")["target"] = "exp"
    refuses(stored, "an operator that the file gives the schema of")


@pytest.mark.parametrize(
    "schema", ["", "linear", "linear(", "linear(x y z) -> Tensor", "f() -> Tensor", None, 3, "(" * 9999]
)
def test_a_schema_that_is_none_is_refused(stored, schema):
    stored[1]["operators"]["linear"] = schema
    refuses(stored, "linear")


def test_an_argument_too_few_or_too_many_names_the_node(stored):
    before = copy.deepcopy(stored[1])
    node_of(stored[1], "call_function")["args"] = []
    refuses(stored, "linear: .*missing argument 'x'")
    node_of(before, "call_function")["kwargs"] = {"more": 1}
    refuses((stored[0], before), "linear: .*unexpected keyword argument 'more'")


@pytest.mark.parametrize("name", ["nothing", "output", "linear"])
def test_a_reference_to_a_missing_or_later_node_is_refused(stored, name):
    node_of(stored[1], "call_function")["args"][0] = {"node": name}
    refuses(stored, f"linear: there is no node '{name}' before this one")


def test_two_nodes_of_one_name_are_refused(stored):
    stored[1]["nodes"].insert(1, stored[1]["nodes"][0])
    refuses(stored, "node 1: two nodes are called 'x'")


def test_a_tensor_that_the_graph_reads_must_be_there(stored):
    node_of(stored[1], "get_attr")["target"] = "linear.gain"
    refuses(stored, "there is no tensor 'linear.gain'")


def test_missing_and_further_tensors_are_named(stored):
    tensor_of(stored[1], "linear.weight")["stored_as"] = "other"
    refuses(stored, r"tensors\.safetensors: .*\['other'\] are missing, \['linear\.weight'\] are not expected")


@pytest.mark.parametrize(
    "aval", [["float32", [3, 2]], ["int32", [2, 3]], ["complex64", [2, 3]], ["float32", [2, 3, 1]]]
)
def test_a_tensor_unlike_the_graph_is_named(stored, aval):
    entry = tensor_of(stored[1], "linear.weight")
    entry.update(aval={"aval": aval}, kind="constant", requires_grad=False)
    node_of(stored[1], "get_attr")["meta"]["val"] = {"aval": aval}
    refuses(stored, r"linear\.weight is .* by the graph, but float32\[2, 3\] by the tensors' file")


@pytest.mark.parametrize("shape", [[-1], [2**63], [2**40, 2**40], [1.0], [True], [1] * 65, [None]])
def test_sizes_that_can_not_be_are_refused(stored, shape):
    node_of(stored[1], "placeholder")["meta"]["val"] = {"aval": ["float32", shape]}
    refuses(stored, "x: expected a shape")


def test_values_that_are_too_deep_are_refused(stored):
    value = 1
    for _ in range(60):
        value = {"tuple": [value]}
    node_of(stored[1], "call_function")["args"][0] = value
    refuses(stored, "more than 50 deep")


# -------------------------------------------------------------------------------------------- code in names

NAMES = [
    EVIL, "x\nimport os", "x; import os", "x=1", "x)", "a b", "", "X", "é", "self", "ops", "print", "lambda",
    "__import__('os')", "x\r", "x#", "1", "a.b", "x\0", "n" * 2000,
]  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_a_name_of_a_node_can_not_hold_code(stored, name):
    stored[1]["nodes"][0]["name"] = name
    refuses(stored, "node 0: expected a name in snake_case")


@pytest.mark.parametrize("name", [EVIL, "x\ny", "x=1", "x, y", "", "*", "***x", "x\0"])
def test_the_target_of_an_input_can_not_hold_code(stored, name):
    stored[1]["nodes"][0]["target"] = name
    refuses(stored, "expected the name of an input")


@pytest.mark.parametrize("key", [EVIL, "x=1, y", "class", "a b", "", "x\n"])
def test_the_name_of_an_argument_can_not_hold_code(stored, key):
    node_of(stored[1], "call_function")["kwargs"] = {key: 1}
    refuses(stored, "expected the name of an argument")


@pytest.mark.parametrize("note", ["a.py:1 in f\nimport os", "\rimport os", "\x0b", "\u2028x", "\ud800", 3, None])
def test_a_line_of_code_in_a_comment_can_not_end_it(stored, note):
    node_of(stored[1], "call_function")["meta"]["stack_trace"] = note
    refuses(stored, "expected a (note on one line|line of code)")


@pytest.mark.parametrize("val", ["1\nimport os", {"tuple": ["x"]}, 3, [], {"node": "x"}])
def test_a_shape_in_a_comment_is_a_shape(stored, val):
    node_of(stored[1], "call_function")["meta"]["val"] = val
    refuses(stored, "expected (shapes and dtypes|no node in a note|a note on one line)")


BAD_PLACES = [
    "__class__", "a.__dict__", "forward", "graph", "_graph", "_code", "_kinds", "training", "a.forward.b", "", ".",
    "a..b", "linear.bias.x", "x\ny", "load_state_dict", "__signature__",
]  # fmt: skip


@pytest.mark.parametrize("name", BAD_PLACES)
def test_a_tensor_can_not_replace_a_method(stored, name):
    entry = tensor_of(stored[1], "mean")
    node_of(stored[1], "get_attr")["target"] = name
    entry["name"] = name
    refuses(stored, "graph.json: (tensors|.*): ")


@pytest.mark.parametrize(
    "tree",
    [
        {"class": [["os", "system", "true"], ["*"]]},
        {"class": [["builtins", "eval", "1"], ["*"]]},
        {"class": [["builtins", "dict", ["a"]], ["*"]]},
        {"class": [["optree", "registry.sys.exit", None], ["*"]]},
        {"namedtuple": [["os", "system", []], ["*"]]},
        {"namedtuple": [["not_imported_yet", "P", ["a"]], ["*"]]},
        {"default dict": [["eval", ["a"]], ["*"]]},
        {"default dict": [["__class__", ["a"]], ["*"]]},
        {"deque": [0, ["*"]]},
        {"dict": [["a", "a"], ["*", "*"]]},
        {"dict": [[["a"]], ["*"]]},
        {"dict": [["a", "b"], ["*"]]},
        {"none": [None, ["*"]]},
        {"tuple": [None, "*"]},
        ["*"],
        None,
        "x",
    ],
    ids=range(17),
)
def test_structures_that_are_none_and_classes_that_are_no_containers_are_refused(stored, tree):
    stored[1]["signature"]["result"] = tree
    refuses(stored, "signature|results|result")


def test_a_signature_at_odds_with_the_graph_is_refused(stored):
    stored[1]["signature"]["leaves"][0][2] = {"aval": ["float32", [7]]}
    refuses(stored, r"expected float32\[7\] for the input x, got float32\[2, 3\]")


# --------------------------------------------------------------------------------------------------- fuzzing


def loads_or_refuses(path):
    """Return whether a file loads, to a valid graph; the only other permitted outcome is a StorageError."""
    try:
        loaded = load(path)
    except StorageError:
        return False
    loaded.graph.lint()
    assert isinstance(loaded.code, str)
    return True


@pytest.mark.parametrize("seed", range(10))
def test_a_document_with_a_fault_loads_or_is_refused(stored, seed):
    folder, document = stored
    rng = random.Random(seed)
    outcomes = set()
    for _ in range(60):
        (folder / "graph.json").write_text(json.dumps(mutated(document, rng)))
        outcomes.add(loads_or_refuses(folder))
    assert False in outcomes


@pytest.mark.parametrize("name", [*program_files.NAMES, "a.zip"])
def test_a_file_with_bytes_changed_loads_or_is_refused(stored, original, tmp_path, name):
    folder, _ = stored
    path = tmp_path / "b.zip" if name == "a.zip" else folder / name
    data = (original / "a.zip").read_bytes() if name == "a.zip" else path.read_bytes()
    rng = random.Random(1)
    for _ in range(150):
        damaged = bytearray(data)
        for _ in range(rng.randrange(1, 4)):
            damaged[rng.randrange(len(damaged))] = rng.randrange(256)
        if rng.random() < 0.2:
            del damaged[rng.randrange(len(damaged)) :]
        path.write_bytes(damaged)
        loads_or_refuses(path if name == "a.zip" else folder)


# ------------------------------------------------------------------------------------------------- programs


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    """Return a stored program with symbolic sizes, a guard and a buffer that is written to: (folder, its files)."""

    class Writes(Net):
        def forward(self, x):
            self.mean.add_(x.sum())
            return {"y": self.linear(x) * x.shape[0], "large": [x.sum() + (1 if x.shape[0] > 2**40 else 2), 3]}

    path = tmp_path_factory.mktemp("program") / "p"
    save(export.export(Writes(), (rg.ones(2, 3),), dynamic_shapes={"x": {0: export.Dim("batch")}}), path)
    assert '"guards": [[' in (path / "graph.json").read_text()
    return path, {name: (path / name).read_bytes() for name in program_files.NAMES}


def program_loads_or_refuses(path):
    """Check the same as for modules; a program that loads is complete, with its signature."""
    try:
        loaded = load(path)
    except StorageError:
        return False
    loaded.validate()
    assert all(loaded.tensor(name) is not None for name in loaded.graph_signature.lifted.values())
    module = loaded.module()
    assert [*module.state_dict()] == [*loaded.state_dict]
    assert str(loaded)
    return True


@pytest.fixture
def no_code(monkeypatch):
    """Fail if anything named by a file is imported, or executed as text."""

    def refuse(*args, **kwargs):
        raise AssertionError(f"{args[0]!r} was run")

    for owner, name in [(pickle, "loads"), (pickle, "load"), (importlib, "import_module"), (os, "system")]:
        monkeypatch.setattr(owner, name, refuse)
    yield
    assert not os.path.exists("/tmp/evil")


@pytest.mark.parametrize("seed", range(4))
def test_a_program_with_a_fault_in_its_document_loads_whole_or_is_refused(program, tmp_path, no_code, seed):
    _, contents = program
    for name, content in contents.items():
        (tmp_path / name).write_bytes(content)
    document, rng = json.loads(contents["graph.json"]), random.Random(seed)
    outcomes = set()
    for _ in range(60):
        (tmp_path / "graph.json").write_text(json.dumps(mutated(document, rng)))
        outcomes.add(program_loads_or_refuses(tmp_path))
    assert False in outcomes


@pytest.mark.parametrize("name", program_files.NAMES)
def test_a_program_with_bytes_changed_or_cut_off_loads_whole_or_is_refused(program, tmp_path, no_code, name):
    _, contents = program
    rng = random.Random(2)
    for other, content in contents.items():
        (tmp_path / other).write_bytes(content)
    for turn in range(80):
        damaged = bytearray(contents[name])
        damaged[rng.randrange(len(damaged))] ^= 1 << rng.randrange(8)
        (tmp_path / name).write_bytes(damaged[: rng.randrange(len(damaged))] if turn % 4 == 0 else damaged)
        assert program_loads_or_refuses(tmp_path) in (True, False)
        if turn % 4 == 0:
            with pytest.raises(StorageError):
                load(tmp_path)


def test_rows_of_a_program_that_are_swapped_or_missing_are_refused_or_harmless(program, tmp_path, no_code):
    _, contents = program
    (tmp_path / "tensors.safetensors").write_bytes(contents["tensors.safetensors"])
    document = json.loads(contents["graph.json"])
    rows = document["nodes"]
    for i in range(len(rows)):
        for changed in ([*rows[:i], *rows[i + 1 :]], [*rows[:i], *rows[i : i + 2][::-1], *rows[i + 2 :]]):
            (tmp_path / "graph.json").write_text(json.dumps({**document, "nodes": changed}))
            whole = program_loads_or_refuses(tmp_path)
            assert not (whole and len(changed) < len(rows) and rows[i]["op"] != "call_function")


@pytest.mark.parametrize("name", ["linear.weight", "linear.bias", "mean"])
def test_a_program_without_one_of_its_tensors_is_refused(program, tmp_path, name):
    _, contents = program
    document = json.loads(contents["graph.json"])
    document["tensors"] = [entry for entry in document["tensors"] if entry["name"] != name]
    (tmp_path / "graph.json").write_text(json.dumps(document))
    (tmp_path / "tensors.safetensors").write_bytes(contents["tensors.safetensors"])
    with pytest.raises(StorageError, match=name):
        load(tmp_path)

"""PyTorch checkpoints, written here by hand: damaged and malicious ones are refused, and none executes code."""

import os
import pickle
import tracemalloc
import zipfile

import numpy as np
import pytest

import retrograd as rg
from retrograd.interop import pytorch_nested
from retrograd.interop.pytorch import load_file
from retrograd.interop.safe_unpickler import read


def persistent(key="0", kind="Float", count=4):
    """Return the pickle of the storage of that name."""
    text = b"(X\x07\0\0\0storagectorch\n" + kind.encode() + b"Storage\nX" + len(key).to_bytes(4, "little")
    return text + key.encode() + b"X\x03\0\0\0cpuJ" + count.to_bytes(4, "little", signed=True) + b"tQ"


def rebuilt(storage, offset=0, size=(2, 2), stride=(2, 1), function=b"_rebuild_tensor_v2"):
    """Return the pickle of a tensor over a storage."""
    numbers = [pickle.dumps(part, 2)[2:-1] for part in (offset, size, stride)]
    return b"\x80\x02ctorch._utils\n" + function + b"\n(" + storage + b"".join(numbers) + b"\x89NtR."


def checkpoint(path, pickled, data=b"\0\0\x80?" * 4, order=b"little", compression=zipfile.ZIP_STORED, more=()):
    with zipfile.ZipFile(path, "w", compression) as archive:
        for name, content in {"data.pkl": pickled, "byteorder": order, "data/0": data, **dict(more)}.items():
            archive.writestr(f"archive/{name}", content)
    return path


@pytest.fixture
def file(tmp_path):
    return tmp_path / "a.pt"


@pytest.mark.parametrize("mmap", [False, True])
def test_a_tensor_is_read(file, mmap):
    assert load_file(checkpoint(file, rebuilt(persistent())), mmap=mmap).tolist() == [[1.0, 1.0], [1.0, 1.0]]


@pytest.mark.parametrize("order", ["little", "big"])
def test_both_byte_orders_are_read(file, order):
    data = np.arange(4).astype(np.dtype("float32").newbyteorder(order)).tobytes()
    got = load_file(checkpoint(file, rebuilt(persistent()), data, order.encode()))
    assert got.tolist() == [[0.0, 1.0], [2.0, 3.0]]
    assert got.numpy().dtype.isnative


class Call:
    """An object that pickles as a call of a function."""

    def __init__(self, function, *args):
        self.call = function, args

    def __reduce__(self):
        return self.call


class State:
    """An object that pickles with attributes."""

    def __init__(self):
        self.x = 1


def doubled(times, first=b")"):
    """Return the pickle of a tuple that contains itself 2**times times, in a few bytes each."""
    return first + b"q\1" + b"h\1\x86q\1" * times


# Small files that would use much memory or time if loaded without checks.
GREEDY = {
    "a key that is hashed endlessly": b"\x80\x02}" + doubled(60) + b"K\1s.",
    "a key as deep as the stack": b"\x80\x02})" + b"\x85" * 20_000 + b"K\1s.",
    "a member of a set that is hashed endlessly": b"\x80\x04\x8f(" + doubled(60) + b"\x90.",
    "a set by call": b"\x80\x02cbuiltins\nset\n](" + doubled(60) + b"e\x85R.",
    "a frozen set": b"\x80\x04(" + doubled(60) + b"\x91.",
    "a dict by call": b"\x80\x02ccollections\nOrderedDict\n](" + doubled(60) + b"K\1\x86e\x85R.",
    "a device that is shown": b"\x80\x02ctorch\ndevice\n" + doubled(60) + b"\x85R.",
    "a storage that is shown": b"\x80\x02" + doubled(60) + b"Q.",
    "a call that is shown": b"\x80\x02" + doubled(60) + b")R.",
    "a name that is shown": b"\x80\x04" + doubled(60) + b"h\1\x93.",
    "a size that is shown": rebuilt(persistent())[:2] + b"ctorch._utils\n_rebuild_tensor_v2\n(" + persistent()
    + b"K\0" + doubled(60) + b"h\1\x89NtR.",
    "a text that is copied": b"\x80\x02c_codecs\nencode\nq\2X\0\0\1\0" + b"a" * 65536 + b"X\6\0\0\0latin1\x86q\3"
    + b"](" + b"h\2h\3R" * 10_000 + b"e.",
    "a text that is taken apart": b"\x80\x02ctorch\nSize\nq\2X\0\0\1\0" + b"a" * 65536 + b"\x85q\3"
    + b"](" + b"h\2h\3R" * 10_000 + b"e.",
    "a giant view that is written": b"\x80\x02ctorch._utils\n_rebuild_tensor_v2\n(" + persistent()
    + pickle.dumps(0, 2)[2:-1] + pickle.dumps((2**40,), 2)[2:-1] + pickle.dumps((0,), 2)[2:-1]
    + b"\x89N" + b"}(X\4\0\0\0conjK\1X\3\0\0\0negK\1utR.",
}  # fmt: skip

HOSTILE = {
    "system": pickle.dumps(Call(os.system, "touch ran"), 2),
    "system, by stack": pickle.dumps(Call(os.system, "touch ran"), 4),
    "eval": pickle.dumps(Call(eval, "open('ran', 'w')"), 2),
    "getattr": pickle.dumps(Call(getattr, {}, "get"), 2),
    "an object": pickle.dumps(State(), 2),
    "class by opcode": b"\x80\x02(S'touch ran'\nios\nsystem\n.",
    "extension": b"\x80\x02\x82\x01.",
    "persistent by text": b"P0\n.",
    "attributes of a function": b"\x80\x02ctorch._utils\n_rebuild_tensor_v2\n}X\x01\0\0\0aK\x01sb.",
    "a counter of a list": b"\x80\x02ccollections\nCounter\n]\x85R.",
    "slots of a dict": b"\x80\x02ccollections\nOrderedDict\n)RN}\x86b0.",
    "a dotted name": b"\x80\x04X\x05\0\0\0torchX\x10\0\0\0Size.__init_subcl\x93.",
    "a call of an object that is no function": b"\x80\x02ctorch\nfloat32\n)R.",
    "a call of data": b"\x80\x02K\x01)R.",
    "an encoding that runs": b"\x80\x02c_codecs\nencode\nX\x01\0\0\0aX\x05\0\0\0rot13\x86R.",
    "a reference to nothing": b"\x80\x02h\x05.",
    "a mark alone": b"\x80\x02(.",
    "no mark": b"\x80\x02K\x01t.",
    "too few values": b"\x80\x02\x86.",
    "two values": b"\x80\x02K\x01K\x02.",
    "items of a number": b"\x80\x02K\x01K\x02K\x03s.",
    "a key that has no hash": b"\x80\x02}]K\x03s.",
    "half a pair": b"\x80\x02}(K\x01u.",
    "cut off": b"\x80\x02X\xff\0\0\0a",
    "no end": b"\x80\x02K\x01",
    "nothing": b"",
    "not a pickle": b"hello",
    "a giant number": b"\x80\x02r\xff\xff\xff\xff.",
    "a giant text": b"\x80\x04\x8d\xff\xff\xff\xff\xff\xff\xff\x7fa.",
    "beyond the storage": rebuilt(persistent(), size=(5,), stride=(1,)),
    "beyond by stride": rebuilt(persistent(), size=(2, 2), stride=(3, 1)),
    "an offset beyond": rebuilt(persistent(), offset=1),
    "a negative offset": rebuilt(persistent(), offset=-1, size=(1,), stride=(1,)),
    "a negative stride": rebuilt(persistent(), offset=3, size=(4,), stride=(-1,)),
    "a negative size": rebuilt(persistent(), size=(-1,), stride=(1,)),
    "a giant size": rebuilt(persistent(), size=(2**70,), stride=(0,)),
    "one stride": rebuilt(persistent(), size=(2, 2), stride=(1,)),
    "a size of floats": rebuilt(persistent(), size=(2.0,), stride=(1,)),
    "a storage that is none": rebuilt(b"K\x01"),
    "a storage that is not there": rebuilt(persistent("7")),
    "a storage by another path": rebuilt(persistent("../byteorder")),
    "a storage that is smaller": rebuilt(persistent(count=5)),
    "a storage of another size": rebuilt(persistent(count=-1)),
    "a storage that is no tuple": b"\x80\x02K\x01Q.",
    "quantized": rebuilt(persistent(kind="QInt8")),
}


@pytest.mark.parametrize("mmap", [False, True])
@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_file_is_an_error_and_nothing_runs(name, mmap, file, monkeypatch):
    monkeypatch.chdir(file.parent)
    checkpoint(file, HOSTILE[name])
    with pytest.raises((ValueError, TypeError), match=r"a\.pt"):
        load_file(file, mmap=mmap)
    assert os.listdir(file.parent) == ["a.pt"]


@pytest.mark.parametrize("name", GREEDY)
def test_a_greedy_file_takes_memory_and_time_by_its_own_size(name, file):
    checkpoint(file, GREEDY[name])
    tracemalloc.start()
    try:
        if name == "a giant view that is written":
            assert load_file(file).shape == (2**40,)
        else:
            with pytest.raises(ValueError, match=r"a\.pt: .{,600}$"):
                load_file(file)
        assert tracemalloc.get_traced_memory()[1] < 64 * len(GREEDY[name]) + 2**20
    finally:
        tracemalloc.stop()


ARCHIVES = {
    "no pickle": ({"more": {}}, "data.pkl"),
    "an odd byte order": ({"order": b"middle"}, "'middle'"),
    "compressed": ({"compression": zipfile.ZIP_DEFLATED}, "compressed"),
    "a program": ({"more": {"constants.pkl": b""}}, "TorchScript"),
    "odd bytes": ({"data": b"\0" * 15}, "15 bytes of float32"),
}


@pytest.mark.parametrize("name", ARCHIVES)
def test_the_error_of_an_odd_archive_names_it(name, file):
    options, told = ARCHIVES[name]
    checkpoint(file, rebuilt(persistent()), **options)
    if name == "no pickle":
        with zipfile.ZipFile(file, "w") as archive:
            archive.writestr("archive/version", b"3")
    with pytest.raises(ValueError, match=told):
        load_file(file)


def test_a_changed_or_cut_file_is_damaged(file):
    whole = checkpoint(file, rebuilt(persistent())).read_bytes()
    file.write_bytes(whole.replace(b"\0\0\x80?\0\0\x80?", b"\0\0\x80?\0\0\x81?", 1))
    with pytest.raises(ValueError, match="damaged: Bad CRC"):
        load_file(file)
    for size in range(0, len(whole), 40):
        file.write_bytes(whole[:size])
        with pytest.raises(ValueError, match=r"a\.pt"):
            load_file(file)


MARKED = {"retrograd.nested": 1, "values": rg.arange(3.0), "sizes": rg.tensor([[2], [1]]), "axis": 0, "lead": 0}


@pytest.mark.parametrize(
    "wrong",
    [
        {"values": 3},
        {"sizes": [[2], [1]]},
        {"sizes": rg.tensor([2, 1])},
        {"sizes": rg.tensor([[2.0], [1.0]])},
        {"sizes": rg.tensor([[2], [2]])},
        {"sizes": rg.tensor([[-1], [4]])},
        {"sizes": rg.tensor([[2**32, 2**32]])},
        {"axis": 1},
        {"axis": -1},
        {"lead": 2},
        {"lead": "0"},
        {"more": 1},
    ],
    ids=str,
)
def test_a_nested_tensor_that_fits_nothing_is_damaged(wrong, file, monkeypatch):
    monkeypatch.setattr(pytorch_nested, "_marker_entries", lambda array, grad: _call({**MARKED, **wrong}))
    rg.save(rg.nested.nested_tensor([1.0, 2.0]), file)
    with pytest.raises(ValueError, match="damaged"):
        load_file(file)


def _call(fields):
    return "collections OrderedDict", (list(map(list, fields.items())),)


@pytest.mark.parametrize(
    "wrong",
    [
        {"offsets": rg.tensor([0, 9])},
        {"offsets": rg.tensor([2, 0, 3])},
        {"offsets": None},
        {"lengths": rg.tensor([9, 9])},
        {"_ragged_idx": 7},
        {"_ragged_idx": "x"},
        {"values": [1]},
    ],
    ids=str,
)
def test_a_jagged_tensor_that_fits_nothing_is_damaged(wrong, file, monkeypatch):
    x = rg.nested.nested_tensor([[1.0, 2.0], [3.0]], layout=rg.jagged)
    name, (made, kind, (fields,), state) = pytorch_nested.rebuild_call(x)
    monkeypatch.setattr(pytorch_nested, "_jagged", lambda array, _: (name, (made, kind, ({**fields, **wrong},), state)))
    rg.save(x, file)
    with pytest.raises(ValueError, match=r"a\.pt"):
        load_file(file)


def test_components_that_reach_beyond_the_buffer_are_damaged(file, monkeypatch):
    x = rg.nested.nested_tensor([rg.ones(2, 3), rg.ones(1, 4)])
    name, (flat, sizes, strides, offsets) = pytorch_nested.rebuild_call(x)
    for wrong in (
        (flat, sizes * 2, strides, offsets),
        (flat, sizes, strides * 3, offsets),
        (flat, sizes, strides, offsets + 5),
        (flat, sizes, strides, offsets - 1),
        (flat, sizes * 2**20, strides * 0, offsets),
        (flat, sizes[:1], strides, offsets),
    ):
        monkeypatch.setattr(pytorch_nested, "_strided", lambda parts, grad, wrong=wrong: (name, wrong))
        rg.save(x, file)
        with pytest.raises(ValueError, match="damaged"):
            load_file(file)
        monkeypatch.undo()


def test_a_file_that_is_not_there_is_said(file):
    with pytest.raises(FileNotFoundError):
        load_file(file)


def test_plain_data_comes_back_from_every_protocol():
    value = {"a": [1, -5, 2.5, "é", None, True], "b": (1, (2, 3), ()), (1, 2): {3: []}, "long": 10**30}
    value["again"] = value["a"]
    for protocol in range(1, 6):
        got = read(pickle.dumps(value, protocol), {}, None)
        assert got == value
        assert got["again"] is got["a"]
    assert read(pickle.dumps([b"x" * 300, {1}, frozenset([2])], 4), {}, None) == [b"x" * 300, {1}, frozenset([2])]


# ------------------------------------------------------------------------------------ classes and attributes of tensors


@pytest.mark.parametrize("state", [b"K\x03", b"]", b"}K\x01K\x02s", b"(K\x01N\x86N\x87"], ids=repr)
def test_attributes_that_are_no_dict_of_names_are_damaged(file, state):
    plain = rebuilt(persistent()).removeprefix(b"\x80\x02").removesuffix(b".")
    checkpoint(file, b"\x80\x02ctorch._utils\n_rebuild_parameter_with_state\n(" + plain + b"\x88N" + state + b"tR.")
    with pytest.raises(ValueError, match="damaged"):
        load_file(file)


@pytest.mark.parametrize("data", [b"K\x03\x88", b"N\x88", b"]\x88"], ids=repr)
def test_a_parameter_of_anything_but_a_tensor_is_damaged(file, data):
    with pytest.raises(ValueError, match="damaged: a parameter of"):
        load_file(checkpoint(file, b"\x80\x02ctorch._utils\n_rebuild_parameter\n(" + data + b"NtR."))


def test_attributes_of_a_file_do_not_replace_what_a_tensor_is(file):
    x = rg.ones(2)
    x.__dict__.update(shape=(3,), grad=1, _grad_fn=2, value=3, requires_grad=True)
    rg.save({"x": x}, file)
    found = rg.load(file)["x"]
    assert (found.shape, found.grad, found.grad_fn, found.requires_grad) == ((2,), None, None, False)
    assert found.tolist() == [1.0, 1.0]


def test_a_tensor_of_a_subclass_is_written_only_if_it_is_allowed(file):
    class Named(rg.Tensor):
        pass

    x = rg.ones(2).as_subclass(Named)
    for one in (x, rg.nn.Parameter(x)):
        with pytest.raises(TypeError, match=r"a subclass of Tensor, which a file can't hold; save x\.as_subclass"):
            rg.save(one, file)


def test_a_moved_tensor_is_still_a_parameter_or_leaf(file):
    rg.save([rg.nn.Parameter(rg.ones(2)), rg.ones(2, requires_grad=True)], file)
    parameter, leaf = rg.load(file, map_location="meta")
    assert isinstance(parameter, rg.nn.Parameter)
    assert [(str(x.device), x.requires_grad, x.is_leaf) for x in (parameter, leaf)] == [("meta", True, True)] * 2


def test_storages_come_back_and_share_memory_with_tensors(file):
    x = rg.arange(6.0)
    untyped = rg.tensor([1, 2], dtype="int16").untyped_storage()
    rg.save([x[2:4], x.storage(), x.storage(), untyped, rg.FloatStorage(0)], file)
    part, storage, again, loaded, none = rg.load(file)
    part[0] = 9
    assert storage.tolist() == [0, 1, 9, 3, 4, 5]
    assert storage is again
    assert storage.dtype == rg.float32
    assert loaded.tolist() == untyped.tolist()
    assert len(none) == 0


def test_storages_of_parts_of_one_memory_come_back_in_their_sizes(file):
    untyped = rg.arange(2.0).untyped_storage()
    rg.save({"all": untyped, "half": untyped[4:]}, file)
    loaded = rg.load(file)
    assert loaded["all"].tolist() == untyped.tolist()
    assert loaded["half"].tolist() == untyped.tolist()[4:]


def test_a_storage_without_memory_can_not_be_written(file):
    with pytest.raises(TypeError, match=r"obj\[0\] is a storage on the device meta, which a file can't hold"):
        rg.save([rg.ones(2, device="meta").storage()], file)

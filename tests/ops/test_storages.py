"""Storages are the memory that tensors view."""

import copy
import pickle

import numpy as np
import pytest

import retrograd as rg


def test_all_views_of_a_memory_have_its_storage():
    x = rg.arange(12.0).reshape(3, 4)
    for view in (x, x[1:, 2:], x.t(), x[::2], x.detach()):
        storage = view.untyped_storage()
        assert (storage.nbytes(), storage.data_ptr()) == (48, x.data_ptr())
        assert (view.storage().size(), view.storage().tolist()) == (12, list(range(12)))
    assert x.clone().untyped_storage().data_ptr() != x.data_ptr()
    assert rg.empty(0).untyped_storage().nbytes() == 0


def test_a_storage_shares_the_memory():
    x = rg.zeros(3, dtype=rg.int32)
    typed = x[1:].storage()
    x[0] = 7
    assert (typed[0], typed[:2], len(typed), typed.element_size(), typed.dtype) == (7, [7, 0], 3, 4, rg.int32)
    assert typed.untyped().tolist()[:4] == list(np.int32(7).tobytes())


def test_set_makes_a_tensor_another_view_of_memory():
    x, z = rg.arange(12.0).reshape(3, 4), rg.empty(0)
    assert z.set_(x) is z
    assert z.is_set_to(x)
    z.set_(x.untyped_storage(), 1, (2, 2), (1, 4))
    assert z.tolist() == [[1.0, 5.0], [2.0, 6.0]]
    z.fill_(0)
    assert x[0, 1] == 0
    assert z.set_().shape == (0,)


@pytest.mark.parametrize(
    ("source", "more", "error"),
    [
        (rg.ones(2, dtype=rg.int64), (), TypeError),
        ("memory", (), TypeError),
        (rg.ones(4).untyped_storage(), (1, (2, 2)), ValueError),
        (rg.ones(4).untyped_storage(), (-1, (2,)), ValueError),
        (rg.ones(4).untyped_storage(), (0, (2,), (-1,)), ValueError),
    ],
)
def test_memory_that_does_not_fit_is_refused(source, more, error):
    z = rg.empty(0)
    with pytest.raises(error, match="set_: "):
        z.set_(source, *more)
    assert z.shape == (0,)


@pytest.mark.parametrize("shared", [False, True])
def test_a_tensor_of_a_file_writes_to_it_only_if_it_is_shared(tmp_path, shared):
    path = tmp_path / "numbers"
    np.arange(4, dtype=np.int16).tofile(path)
    x = rg.from_file(str(path), shared=shared, size=3, dtype=rg.int16)
    assert x.tolist() == [0, 1, 2]
    x.fill_(9)
    assert np.fromfile(path, np.int16).tolist() == ([9, 9, 9, 3] if shared else [0, 1, 2, 3])


def test_a_shared_file_is_made_and_a_short_one_is_refused(tmp_path):
    assert rg.from_file(tmp_path / "new", shared=True, size=2).tolist() == [0.0, 0.0]
    with pytest.raises(ValueError, match=r"from_file: .*new is shorter than 12 bytes"):
        rg.from_file(tmp_path / "new", size=3)
    with pytest.raises(FileNotFoundError):
        rg.from_file(tmp_path / "none", size=3)


def test_a_storage_of_a_size_or_of_integers_has_memory_of_its_own():
    storage = rg.UntypedStorage(4).fill_(7)
    storage[1:3] = 300
    assert (storage.tolist(), len(storage), storage[-1], storage.device.type) == ([7, 44, 44, 7], 4, 7, "cpu")
    assert rg.UntypedStorage((1, 256)).tolist() == [1, 0]
    assert rg.UntypedStorage().nbytes() == 0
    assert rg.TypedStorage([1, 2], dtype=rg.int16).untyped().tolist() == [1, 0, 2, 0]
    assert rg.TypedStorage(3).fill_(2).tolist() == [2.0] * 3


def test_writes_to_a_storage_reach_tensors_and_are_not_counted():
    x = rg.arange(4.0)
    storage, typed = x.untyped_storage(), x.storage()
    typed[1] = 9
    assert (x.tolist(), x._version) == ([0.0, 9.0, 2.0, 3.0], 0)
    storage.copy_(rg.ones(4).untyped_storage())
    typed[2:4] = 5
    assert (x.tolist(), x._version) == ([1.0, 1.0, 5.0, 5.0], 0)
    assert (storage == x.untyped_storage(), storage == storage.clone(), hash(storage) == hash(x.untyped_storage())) == (
        True,
        False,
        True,
    )


def test_a_storage_that_no_tensor_views_is_resized():
    storage = rg.UntypedStorage([1, 2, 3])
    assert storage.resize_(5) is storage
    assert (len(storage), storage[:3].tolist(), storage.resizable()) == (5, [1, 2, 3], True)
    x = rg.empty(0, dtype=rg.uint8).set_(storage, 0, (2,))
    with pytest.raises(RuntimeError, match="not resizable: tensors view these 5 bytes"):
        storage.resize_(0)
    assert (storage.resize_(5) is storage, x.tolist(), x.untyped_storage().resizable()) == (True, [1, 2], False)


def test_storages_are_copied_and_pickled():
    storage = rg.UntypedStorage([1, 2])
    typed = rg.TypedStorage([1, 2], dtype=rg.float64)
    for made in (copy.copy, copy.deepcopy, lambda s: pickle.loads(pickle.dumps(s))):
        other, other_typed = made(storage), made(typed)
        storage[0] = 9
        assert (other.tolist(), other_typed.tolist(), other_typed.dtype) == ([1, 2], [1.0, 2.0], rg.float64)
        storage[0] = 1


@pytest.mark.parametrize(
    ("use", "error", "message"),
    [
        (lambda s: s[4], IndexError, "index 4 out of range for storage of size 2"),
        (lambda s: s["a"], TypeError, "can't index a UntypedStorage with str"),
        (lambda s: s[0:2:2], RuntimeError, "slice with a step of 2"),
        (lambda s: s.copy_(rg.UntypedStorage(3)), RuntimeError, "size does not match, self was 2 bytes but src was 3"),
        (lambda s: s.copy_([1, 2]), TypeError, "expected a storage, got list"),
        (lambda s: s.fill_(1.5), TypeError, "to an int, not to float"),
        (lambda s: rg.UntypedStorage(-1), RuntimeError, "negative number: -1"),
        (lambda s: rg.UntypedStorage([1.5]), RuntimeError, r"a sequence \(list\), .* of type float instead of int"),
        (lambda s: rg.UntypedStorage(1.5), TypeError, "expected a size or integers, got float"),
        (lambda s: rg.TypedStorage(1, wrap_storage=s, dtype="int8"), RuntimeError, "wrap_storage needs a dtype, and"),
        (lambda s: rg.TypedStorage(wrap_storage=s), RuntimeError, "wrap_storage needs a dtype, and takes no other"),
        (lambda s: rg.TypedStorage(wrap_storage=s, dtype="int8", device="cpu"), RuntimeError, "takes no other"),
        (lambda s: rg.TypedStorage(wrap_storage=[1], dtype="int8"), TypeError, "must be UntypedStorage, got list"),
        (lambda s: rg.TypedStorage(0, 0), RuntimeError, "Too many positional arguments: a size or elements, got 2"),
        (lambda s: rg.TypedStorage(rg.ones(2)), TypeError, "Argument type not recognized: a tensor"),
        (lambda s: rg.FloatStorage([1]).fill_(rg.FloatStorage([1])), RuntimeError, "cannot set item with value type"),
        (lambda s: rg.frombuffer(b"ab", dtype=rg.uint8).storage().fill_(1), RuntimeError, "memory is read-only"),
    ],
)
def test_what_a_storage_cannot_do_is_refused(use, error, message):
    with pytest.raises(error, match=message):
        use(rg.UntypedStorage([1, 2]))


def test_each_dtype_has_a_class_of_storages():
    made = rg.ShortStorage([1, 2])
    assert (type(made), made.dtype, made.tolist()) == (rg.TypedStorage, rg.int16, [1, 2])
    assert (isinstance(made, rg.ShortStorage), isinstance(made, rg.FloatStorage)) == (True, False)
    x = rg.ones(2, dtype=rg.bfloat16)
    assert (x.storage_type(), x.storage().type()) == (rg.BFloat16Storage, "retrograd.BFloat16Storage")
    assert rg.DoubleStorage(3).nbytes() == 24
    wrapped = rg.IntStorage(wrap_storage=rg.UntypedStorage([1, 0, 0, 0]))
    assert wrapped.tolist() == [1]
    for name in ("FloatStorage", "BoolStorage"):
        assert repr(getattr(rg, name)) == f"<class 'retrograd.{name}'>"


def test_a_storage_is_read_from_bytes_of_either_order():
    assert rg.ShortStorage.from_buffer(bytearray([1, 2, 3, 4]), "big").tolist() == [258, 772]
    assert rg.IntStorage.from_buffer(b"\x01\x02\x03\x04", "little").tolist() == [67305985]
    assert rg.ByteStorage.from_buffer(b"abc", count=1, offset=1).tolist() == [98]
    with pytest.raises(ValueError, match="byte_order is 'native', 'little' or 'big', got 'middle'"):
        rg.ByteStorage.from_buffer(b"abc", "middle")


def test_the_bytes_of_each_number_are_reversed():
    storage = rg.UntypedStorage(range(8))
    storage.byteswap(rg.complex64)
    assert storage.tolist() == [3, 2, 1, 0, 7, 6, 5, 4]
    storage.byteswap(rg.int8)
    assert storage.tolist() == [3, 2, 1, 0, 7, 6, 5, 4]


def test_a_storage_is_converted_to_another_dtype():
    storage = rg.IntStorage([-1, 0, 2])
    assert (storage.byte().tolist(), storage.bool().tolist()) == ([255, 0, 2], [True, False, True])
    assert (storage.complex_double().dtype, storage.type("float32").tolist()) == (rg.complex128, [-1.0, 0.0, 2.0])


def test_a_mapped_file_is_named(tmp_path):
    storage = rg.FloatStorage.from_file(tmp_path / "numbers", True, 2)
    storage.fill_(1)
    assert storage.untyped().filename == str(tmp_path / "numbers")
    assert np.fromfile(tmp_path / "numbers", np.float32).tolist() == [1.0, 1.0]
    assert rg.UntypedStorage(1).filename is None


def test_copies_of_tensors_and_storages_share_memory_as_the_originals_do():
    x = rg.arange(6.0).reshape(2, 3)
    copied, storage, typed = copy.deepcopy([x, x.untyped_storage(), x.t().storage()])
    copied.add_(1)
    assert typed.tolist() == [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
    assert (storage == typed.untyped(), x.tolist()) == (True, [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]])


def test_memory_of_the_meta_device_has_a_size_and_no_elements():
    storage = rg.empty(4, 5, device="meta").untyped_storage()
    assert (storage.nbytes(), storage.data_ptr(), storage.device.type) == (80, 0, "meta")
    assert rg.TypedStorage([1, 2, 3], dtype=rg.float64, device="meta").size() == 3
    assert len(rg.UntypedStorage(10, device="meta").resize_(12)) == 12
    assert rg.empty(3, device="meta").data_ptr() == 0
    for use in (lambda: storage[0], storage.tolist, storage.cpu, lambda: rg.UntypedStorage(80).copy_(storage)):
        with pytest.raises(NotImplementedError, match="meta"):
            use()


def test_tensors_of_legacy_classes_view_the_memory_of_a_storage():
    x = rg.arange(3.0)
    assert rg.FloatTensor(x.storage()).data_ptr() == x.data_ptr() == rg.ones(1).new(x.storage()).data_ptr()
    with pytest.raises(RuntimeError, match="expected a tensor or storage of float32"):
        rg.FloatTensor(rg.arange(3).storage())

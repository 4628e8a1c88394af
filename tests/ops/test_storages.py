"""Storages are the memory that tensors view."""

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

"""The kernels of buffers of many arrays copy each element once, and find every overlap of memory."""

import numpy as np
import pytest

from retrograd import kernels
from retrograd.kernels import chosen, reference

IMPLEMENTATIONS = [chosen, reference]


@pytest.mark.parametrize("module", IMPLEMENTATIONS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_vector_is_read_from_arrays_and_written_to_them_one_after_the_other(module, dtype):
    arrays = [np.zeros(shape, dtype) for shape in [(2, 3), (), (0, 4), (5,), (1, 1, 2)]]
    flat = np.arange(sum(a.size for a in arrays), dtype=dtype)
    module.write_flat(flat, arrays)
    np.testing.assert_array_equal(np.concatenate(arrays, axis=None), flat)
    found = module.read_flat(arrays)
    assert found.dtype == dtype
    np.testing.assert_array_equal(found, flat)


@pytest.mark.parametrize("module", IMPLEMENTATIONS)
def test_shared_memory_is_found_wherever_it_is(module):
    block, other = np.zeros((8, 8)), np.zeros(3)
    rows = [block[i] for i in range(8)]
    assert module.are_disjoint(rows, [])
    assert module.are_disjoint([*rows[::-1], other], [np.ones(2), other[:0]])
    assert module.are_disjoint([block[0], block[7]], [block[1:7, 2], block[6, ::-1]])
    assert module.are_disjoint([], [block, block])
    assert not module.are_disjoint([*rows, block[3, 7:]], [])
    assert not module.are_disjoint([*rows, other], [np.ones(1), block[5:, 3]])
    assert not module.are_disjoint([block[2]], [block[::-1, 7]])


@pytest.mark.skipif(not kernels.compiled, reason="the kernels are not compiled")
def test_what_does_not_fit_raises_and_writes_nothing():
    flat, a = np.ones(3), np.zeros(3)
    read_only = np.zeros(3)
    read_only.flags.writeable = False
    sizes = [[a, a[:0], np.zeros(1)], [a[:2]]]
    for wrong in (*sizes, [a.astype(np.float32)], [np.zeros(6)[::2]], [read_only], [3.0], (a,)):
        with pytest.raises(ValueError, match="do not fit"):
            chosen.write_flat(flat, wrong)
    for wrong in ([], [3.0], [a, a.astype(np.float32)], [np.zeros((3, 3)).T], (a,), a):
        with pytest.raises(ValueError, match="do not fit"):
            chosen.read_flat(wrong)
    for vector in (flat.reshape(1, 3), flat[::2], 3.0, flat.astype(np.int64)):
        with pytest.raises(ValueError, match="do not fit"):
            chosen.write_flat(vector, [np.zeros(np.size(vector))])
    with pytest.raises(ValueError, match="do not fit"):
        chosen.are_disjoint([a, 3], [])
    assert not a.any()

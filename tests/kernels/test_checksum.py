"""The checksum of memory is that of the reference, and differs if any byte or the order does."""

import numpy as np
import pytest

from retrograd.kernels import chosen, reference


@pytest.mark.parametrize("size", [0, 1, 7, 8, 9, 31, 32, 33, 70, 4096 * 8, 4096 * 8 + 41])
def test_the_checksum_of_buffers_is_that_of_the_reference(size):
    data = np.random.default_rng(size).integers(0, 256, size, dtype=np.uint8)
    buffers = [data, b"abc", memoryview(b"defg"), np.ones((2, 3), "f")]
    assert chosen.checksum(buffers) == reference.checksum(buffers)
    assert 0 <= chosen.checksum(buffers) < 1 << 32


@pytest.mark.parametrize("dtype", ["f", "d", "i8", "?"])
@pytest.mark.parametrize("rows", [2, 3, 64, 4096])
def test_the_checksum_of_equal_rows_but_one_depends_on_where_that_is(dtype, rows):
    x = np.zeros((rows, 8), dtype)
    found = set()
    for row in range(0, rows, max(1, rows // 64)):
        x[row, 0] = 1
        found.add(chosen.checksum([x]))
        x[row, 0] = 0
    assert len(found) == min(rows, 64)


def test_the_checksum_depends_on_every_byte():
    data = np.random.default_rng(0).integers(0, 256, 75, dtype=np.uint8)
    found = {chosen.checksum([data])}
    for i in range(data.size):
        data[i] ^= 1
        found.add(chosen.checksum([data]))
        data[i] ^= 1
    assert len(found) == 1 + data.size

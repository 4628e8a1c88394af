"""Results of operators that move or gather elements are contiguous for every memory order of the operands."""

import numpy as np
import pytest

import retrograd as rg

X = np.arange(24.0).reshape(2, 3, 4).transpose(2, 1, 0)

OPERATORS = {
    "sort": lambda x: x.sort(0)[0],
    "argsort": lambda x: x.argsort(0),
    "topk": lambda x: x.topk(2, 0)[0],
    "cummax": lambda x: x.cummax(1)[0],
    "cumsum": lambda x: x.cumsum(0),
    "logcumsumexp": lambda x: x.logcumsumexp(1),
    "softmax": lambda x: x.softmax(1),
    "cat": lambda x: rg.cat([x, x], 1),
    "stack": lambda x: rg.stack([x, x], 1),
    "index": lambda x: x[:, rg.tensor([2, 0])],
    "mask": lambda x: x[:, rg.tensor([True, False, True])],
    "roll": lambda x: x.roll(1, 0),
    "prod": lambda x: x.prod(0),
    "var": lambda x: x.var(1),
    "gather": lambda x: x.gather(0, rg.zeros(1, 3, 2, dtype=rg.int64)),
    "tril": lambda x: x.tril(),
    "fftshift": lambda x: rg.fft.fftshift(x),
}


@pytest.mark.parametrize("name", OPERATORS)
def test_a_result_of_transposed_operands_can_be_viewed_as_one_row(name):
    x = rg.from_numpy(X)
    assert not x.is_contiguous()
    out = OPERATORS[name](x)
    assert out.is_contiguous()
    assert out.view(-1).tolist() == OPERATORS[name](rg.tensor(X.copy(order="C"))).view(-1).tolist()


@pytest.mark.parametrize("shape", [(0,), (5, 0), (0, 3), (2, 0, 3)])
def test_empty_arrays_have_no_elements_that_share_memory(shape):
    out = rg.from_numpy(np.zeros(shape))
    assert rg.cos(rg.zeros(shape, dtype="float64"), out=out) is out

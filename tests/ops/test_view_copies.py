"""`expand_copy` and all other copying variants of views return what the view shows, in memory of its own."""

import numpy as np
import pytest

import retrograd as rg
from retrograd.testing import assert_close

CALLS = {
    "expand_copy": ((3, 2, 3),),
    "permute_copy": ((1, 0),),
    "transpose_copy": (0, 1),
    "select_copy": (1, 2),
    "unsqueeze_copy": (0,),
    "t_copy": (),
    "slice_copy": (1, 0, 2),
    "diagonal_copy": (),
    "view_copy": ((3, 2),),
}


def example():
    return rg.tensor(np.arange(6.0).reshape(2, 3), requires_grad=True)


@pytest.mark.parametrize("name", CALLS)
def test_the_copy_shows_the_same_in_row_major_memory_of_its_own(name):
    x = example()
    copy = getattr(rg, name)(x, *CALLS[name])
    assert not np.shares_memory(copy.numpy(force=True), x.numpy(force=True))
    assert copy.is_contiguous()
    if name not in ("slice_copy", "t_copy"):
        shown = getattr(rg, name.removesuffix("_copy"))(x, *CALLS[name])
        assert_close(copy, shown, rtol=0, atol=0)


@pytest.mark.parametrize("name", CALLS)
def test_the_copy_passes_the_gradient_on(name):
    x = example()
    getattr(rg, name)(x, *CALLS[name]).sum().backward()
    assert x.grad.sum().item() == getattr(rg, name)(x, *CALLS[name]).numel()


def test_several_parts_are_each_written_to_out():
    out = [rg.empty(2, dtype="float64") for _ in range(3)]
    rg.unbind_copy(example().detach(), 1, out=out)
    assert [part.tolist() for part in out] == [[0.0, 3.0], [1.0, 4.0], [2.0, 5.0]]


def test_out_of_another_shape_is_refused():
    with pytest.raises(RuntimeError, match=r"t_copy: out has shape \(2, 3\), but the result has shape \(3, 2\)"):
        rg.t_copy(example().detach(), out=rg.empty(2, 3))


def test_out_takes_no_part_in_differentiation():
    with pytest.raises(RuntimeError, match=r"t_copy.*out=\.\.\. arguments"):
        rg.t_copy(example(), out=rg.empty(3, 2))

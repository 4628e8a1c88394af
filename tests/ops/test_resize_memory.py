"""resize_: another shape over the same memory, and refused calls."""

import numpy as np
import pytest

import retrograd as rg


def test_the_memory_stays_and_shows_again():
    x = rg.arange(6)
    address = x.data_ptr()
    assert x.resize_(2, 2) is x
    assert x.tolist() == [[0, 1], [2, 3]]
    assert x.resize_((3, 2)).tolist() == [[0, 1], [2, 3], [4, 5]]
    assert (x.data_ptr(), x._version) == (address, 2)


def test_a_view_is_resized_from_its_first_element_on():
    base = rg.arange(8)
    view = base[2:4]
    view.resize_(2, 2)
    view[1, 1] = 50
    assert (base.tolist(), view.storage_offset()) == ([0, 1, 2, 3, 4, 50, 6, 7], 2)


def test_memory_grows_with_zeros():
    x = rg.arange(4.0)[1:]
    assert x.resize_(5).tolist() == [1, 2, 3, 0, 0]
    assert rg.zeros(0).resize_(2, 1).tolist() == [[0], [0]]
    assert rg.resize_as_(rg.ones(1), rg.zeros(1, 2)).tolist() == [[1, 0]]


def test_gaps_in_memory_of_others_do_not_show():
    class Owner:
        def __init__(self, array):
            self.array, self.__array_interface__ = array, array.__array_interface__

    array = np.asarray(Owner(np.arange(10.0)[::3]))
    assert rg.from_numpy(array).resize_(3).tolist() == [0, 3, 6]


def test_a_saved_value_that_is_resized_is_noticed():
    x, w = rg.ones(3), rg.ones(3, requires_grad=True)
    y = (x * w).sum()
    x.resize_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.backward()


def test_tensors_that_are_part_of_a_graph_are_refused():
    w = rg.ones(3, requires_grad=True)
    for x in (w, w * 2, w.reshape(3, 1)):
        with pytest.raises(RuntimeError, match="cannot resize variables that require grad"):
            x.resize_(2)
    with pytest.raises(RuntimeError, match="outside of function transforms"):
        rg.vmap(lambda x: x.resize_(1))(rg.ones(2, 2))
    assert w.shape == (3,)


@pytest.mark.parametrize("sizes", [(), (-1,), (2.0,), ((1, -2),)])
def test_sizes_are_checked(sizes):
    with pytest.raises(TypeError, match="resize_: expected sizes"):
        rg.ones(3).resize_(*sizes)
    with pytest.raises(RuntimeError, match="Unsupported memory format preserve_format"):
        rg.ones(3).resize_(2, memory_format=rg.preserve_format)
    with pytest.raises(RuntimeError, match="overflowed"):
        rg.ones(3).resize_(2**40, 2**40)


def test_a_resized_tensor_has_a_memory_format():
    x = rg.arange(24.0)
    view = x.view(24)
    view.resize_(2, 3, 2, 2, memory_format=rg.channels_last)
    assert (view.stride(), view[0, :, 0, 0].tolist(), view._base is x) == ((12, 1, 6, 3), [0.0, 1.0, 2.0], True)
    assert view.resize_(2, 3, 2, 2, memory_format=rg.channels_last) is view
    like = rg.empty(2, 3, 2, 2, memory_format=rg.channels_last)
    assert rg.arange(24.0).resize_as_(like, memory_format=rg.preserve_format).stride() == (12, 1, 6, 3)
    assert rg.arange(24.0).resize_as_(like).stride() == (12, 4, 2, 1)


def test_gradients_reach_the_base_of_a_resized_view():
    base, w = rg.zeros(6), rg.ones(2, 2, requires_grad=True)
    view = base[1:3]
    view.resize_(2, 2)
    view.copy_(w * 3)
    (base * rg.arange(6.0)).sum().backward()
    assert base.tolist() == [0, 3, 3, 3, 3, 0]
    assert w.grad.tolist() == [[3, 6], [9, 12]]


def test_recorded_writes_to_views_reach_a_base_that_was_resized_within_its_memory():
    base, w = rg.zeros(6), rg.ones(2, requires_grad=True)
    view = base[:2]
    base.resize_(2, 3)
    view.copy_(w * 2)
    assert base.tolist() == [[2, 2, 0], [0, 0, 0]]
    (base * rg.arange(1.0, 7.0).reshape(2, 3)).sum().backward()
    assert w.grad.tolist() == [2, 4]


def test_recorded_writes_to_views_are_refused_once_the_base_has_other_memory():
    base, w = rg.zeros(6), rg.ones(2, requires_grad=True)
    view = base[:2]
    base.resize_(9)
    with pytest.raises(RuntimeError, match="a view of a tensor that was resized in place"):
        view.copy_(w)
    view.copy_(w.detach())
    assert view.tolist() == [1, 1]


def test_leaves_of_inference_mode_may_be_resized():
    with rg.inference_mode():
        assert rg.ones(2, 3, requires_grad=True).resize_(1, 2).tolist() == [[1, 1]]

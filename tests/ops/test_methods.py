"""Methods that are no operators."""

import copy
import pickle

import numpy as np
import pytest

import retrograd as rg


def test_arrays_share_memory_unless_a_copy_is_asked_for():
    x = rg.zeros(3)
    assert np.shares_memory(np.asarray(x), x.numpy())
    for other in (np.array(x), np.array(x, copy=True), np.asarray(x, dtype=np.float64)):
        other[0] = 99.0
    assert x.tolist() == [0.0, 0.0, 0.0]
    with pytest.raises(ValueError, match="float64 without a copy"):
        np.array(x, dtype=np.float64, copy=False)


def test_numpy_refuses_a_tensor_whose_gradients_would_be_lost():
    with pytest.raises(RuntimeError, match="detach"):
        rg.ones(2, requires_grad=True).numpy()


def test_masks_combine():
    x = rg.arange(6)
    assert ((x > 1) & (x < 4)).tolist() == [False, False, True, True, False, False]
    assert ((x < 1) | (x > 4)).tolist() == [True, False, False, False, False, True]
    assert ((x > 1) ^ (x > 3)).tolist() == [False, False, True, True, False, False]
    assert (~(x > 1)).tolist() == [True, True, False, False, False, False]
    assert (6 & x).tolist() == [0, 0, 2, 2, 4, 4]
    with pytest.raises(TypeError):
        rg.ones(2) & rg.ones(2)


def test_contiguous_works_at_every_level():
    x = rg.arange(6).double().reshape(2, 3)
    assert x.contiguous() is x
    assert x.T.contiguous().numpy().flags.c_contiguous
    assert rg.func.grad(lambda y: (y.T.contiguous() * 2).sum())(x).tolist() == [[2.0] * 3] * 2


@pytest.mark.parametrize(("value", "convert"), [(2.5, float), (3, int), (1 + 2j, complex), (True, bool)])
def test_one_element_converts_to_a_python_number(value, convert):
    assert convert(rg.tensor(value)) == value
    assert rg.tensor([value]).item() == value


def test_several_elements_have_no_truth_and_no_item():
    with pytest.raises(RuntimeError, match="ambiguous"):
        bool(rg.ones(2))
    with pytest.raises(ValueError, match="one element"):
        rg.ones(2).item()


def test_tensors_print_as_they_would_be_written():
    assert repr(rg.tensor([1.5, 2.0])) == "tensor([1.5, 2. ])"
    assert repr(rg.tensor([1.0], dtype=rg.float64, requires_grad=True)) == (
        "tensor([1.], dtype=float64, requires_grad=True)"
    )
    assert repr(rg.tensor([[1], [2]])) == "tensor([[1],\n        [2]])"
    assert "grad_fn=<MulBackward0" in repr(rg.ones(1, requires_grad=True) * 2)


def test_iteration_length_and_membership():
    x = rg.arange(3)
    assert [int(i) for i in x] == [0, 1, 2]
    assert len(x) == 3
    assert 2 in x
    assert 5 not in x
    with pytest.raises(TypeError, match="without dimensions"):
        len(rg.ones(()))


def test_scalars_format_like_numbers():
    assert f"{rg.tensor(1.25):.1f}" == "1.2"
    assert f"{rg.ones(2)}" == "tensor([1., 1.])"


def test_results_of_operators_refuse_to_be_copied_with_their_graph():
    y = rg.ones(2, requires_grad=True) * 2
    with pytest.raises(RuntimeError, match="leaves"):
        copy.deepcopy(y)
    loaded = pickle.loads(pickle.dumps(y))  # the value, as a leaf
    assert (loaded.tolist(), loaded.requires_grad, loaded.is_leaf) == ([2.0, 2.0], True, True)
    x = rg.ones(2, requires_grad=True)
    assert pickle.loads(pickle.dumps(x)).requires_grad
    assert copy.deepcopy(x).tolist() == [1.0, 1.0]

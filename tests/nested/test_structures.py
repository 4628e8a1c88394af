"""Structures of nested tensors are equal if their sizes are, however they were made."""

import numpy as np
import pytest

import retrograd as rg
from retrograd.backend.ragged import Structure
from retrograd.nested import narrow, nested_tensor, nested_tensor_from_jagged, to_padded_tensor


def two():
    """Return nested tensors of the same sizes, constructed separately."""
    return nested_tensor([[1.0, 2.0], [3.0]]), nested_tensor_from_jagged(rg.tensor([10.0, 20.0, 30.0]), [0, 2, 3])


def test_tensors_that_were_made_separately_go_together():
    x, y = two()
    assert (x + y).tolist() == [[11.0, 22.0], [33.0]]
    assert x.shape == y.shape
    assert hash(x.shape) == hash(y.shape)


def test_holes_make_no_difference_to_shapes_and_operators():
    x, _ = two()
    y = nested_tensor_from_jagged(rg.arange(6.0), [0, 3, 6], [2, 1])
    assert x.shape == y.shape
    assert (x + y).tolist() == (y + x).tolist() == [[1.0, 3.0], [6.0]]


def test_padding_and_back_gives_a_structure_that_goes_with_the_first():
    x, _ = two()
    back = narrow(to_padded_tensor(x, 0.0), 1, 0, rg.tensor([2, 1]), layout=rg.jagged)
    assert (back - x).tolist() == [[0.0, 0.0], [0.0]]


@pytest.mark.parametrize(
    ("other", "equal"),
    [
        (lambda: Structure(np.array([[2], [1]])), True),
        (lambda: Structure(np.array([[1], [2]])), False),
        (lambda: Structure(np.array([[2], [1], [0]])), False),
        (lambda: Structure(np.array([[2, 1], [1, 1]])), False),
        (lambda: Structure(np.array([[2], [1]]), np.array([0, 2])), False),
        (lambda: "a structure", False),
    ],
)
def test_equality_is_by_content(other, equal):
    mine = Structure(np.array([[2], [1]]))
    assert (mine == other()) is equal
    if equal:
        assert hash(mine) == hash(other())


def test_the_identity_is_compared_first(monkeypatch):
    structure = Structure(np.array([[2], [1]]))
    monkeypatch.setattr(np, "array_equal", None)
    assert structure == structure


def test_results_share_the_structure_of_their_operands():
    x, _ = two()
    assert (x * 2).exp().value.structure is x.value.structure


def test_a_ragged_size_equals_no_number_and_refuses_arithmetic():
    x, _ = two()
    size = x.shape[1]
    assert size != 2
    for calculate in (lambda: size + 1, lambda: 2 * size, lambda: -size, lambda: size < 3, lambda: range(size)):
        with pytest.raises(RuntimeError, match=r"\(2, 1\) and is no number"):
            calculate()


def test_sizes_in_messages_are_cut_short():
    x = nested_tensor([[1.0] * n for n in range(9)])
    with pytest.raises(RuntimeError, match=r"\(0, 1, 2, 3, 4, 5, \.\.\.\)"):
        x.size(1)


def test_structures_that_differ_name_the_first_component_that_does():
    with pytest.raises(ValueError, match=r"add: .* component 1 has shapes \(2,\) and \(3,\)"):
        nested_tensor([[1.0], [2.0, 3.0], [1.0]]) + nested_tensor([[1.0], [2.0, 3.0, 4.0], [1.0, 2.0]])
    with pytest.raises(ValueError, match="3 and 2 components"):
        nested_tensor([[1.0], [2.0], [3.0]]) + nested_tensor([[1.0], [2.0]])

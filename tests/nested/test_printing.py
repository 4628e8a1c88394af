"""Printing of nested tensors."""

import pytest

import retrograd as rg
from retrograd.nested import nested_tensor, nested_tensor_from_jagged


@pytest.fixture(autouse=True)
def default_options():
    yield
    rg.set_printoptions(profile="default")


def test_components_stand_one_below_the_other():
    x = nested_tensor([[1.0, 2.0], [3.0]], requires_grad=True)
    first, second = "tensor([1., 2.], requires_grad=True)", "tensor([3.], requires_grad=True)"
    assert repr(x) == f"nested_tensor([\n  {first},\n  {second}\n], requires_grad=True)"
    assert f"{x}" == str(x) == repr(x)


def test_lines_of_a_component_stand_below_its_first():
    shown = repr(nested_tensor([[[1, 2], [3, 4]], [[5, 6]]]))
    assert shown == "nested_tensor([\n  tensor([[1, 2],\n          [3, 4]]),\n  tensor([[5, 6]])\n])"


def test_sets_stand_further_in():
    shown = repr(nested_tensor([[[1], [2, 3]], [[4]]]))
    inner = "  nested_tensor([\n    tensor([1]),\n    tensor([2, 3])\n  ]),\n  nested_tensor([\n    tensor([4])\n  ])"
    assert shown == f"nested_tensor([\n{inner}\n])"


def test_dtypes_are_appended_to_components_and_grad_fns_to_the_whole():
    assert repr(nested_tensor([[1.0]], dtype=rg.float64)).endswith("  tensor([1.], dtype=float64)\n])")
    assert "grad_fn=<" in repr(nested_tensor([[1.0]], requires_grad=True) * 2).splitlines()[-1]


def test_empty_components_and_none():
    assert repr(nested_tensor([[], [1.0]])) == "nested_tensor([\n  tensor([]),\n  tensor([1.])\n])"
    assert "tensor([], size=(0, 3))" in repr(nested_tensor([rg.ones(0, 3), rg.ones(1, 3)]))
    assert repr(nested_tensor([])) == "nested_tensor([\n\n])"
    assert repr(nested_tensor([1, 2])) == "nested_tensor([\n  tensor(1),\n  tensor(2)\n])"


def test_rows_in_holes_are_not_shown():
    x = nested_tensor_from_jagged(rg.arange(5), [0, 2, 5], [1, 2])
    assert repr(x) == "nested_tensor([\n  tensor([0]),\n  tensor([2, 3])\n])"


def test_print_options_hold_for_components():
    rg.set_printoptions(precision=2)
    assert "tensor([0.33])" in repr(nested_tensor([[1 / 3], [1.0, 2.0]]))


@pytest.mark.parametrize("components", [[[0]] * 101, [[]] * 5000, [list(range(30))] * 40])
def test_many_components_are_summarised(components):
    lines = repr(nested_tensor(components)).splitlines()
    assert len(lines) == 9
    assert lines[4] == "  ...,"


def test_edges_and_the_threshold_can_be_set():
    x = nested_tensor([[0]] * 101)
    rg.set_printoptions(edgeitems=1)
    assert repr(x) == "nested_tensor([\n  tensor([0]),\n  ...,\n  tensor([0])\n])"
    rg.set_printoptions(threshold=100_000)
    assert len(repr(x).splitlines()) == 103


def test_a_long_component_is_summarised_by_itself():
    assert "..." in repr(nested_tensor([list(range(2000)), [1]])).splitlines()[1]


def test_inside_transforms_the_values_are_shown():
    x, seen = nested_tensor([[1.0, 2.0], [3.0]]), []
    rg.vmap(lambda a: seen.append(repr(x * a)) or a)(rg.ones(2))
    rg.func.grad(lambda a: seen.append(repr(x * a)) or a)(rg.tensor(1.0))
    assert seen[0].startswith("BatchedTensor(lvl=1, bdim=0, value=\n    nested_tensor([")
    assert seen[1].startswith("GradTrackingTensor(lvl=1, value=\n    nested_tensor([")


def test_shapes_number_their_ragged_dimensions():
    assert str(nested_tensor([rg.ones(2, 3), rg.ones(2, 1)]).shape) == "(2, 2, j)"
    assert str(nested_tensor([rg.ones(2, 3), rg.ones(3, 1)]).shape) == "(2, j, j2)"
    assert str(nested_tensor([[[[1], [2, 3]], [[4]]], [[[5]]]]).shape) == "(2, j, j2, j3)"

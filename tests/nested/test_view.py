"""Reshaping nested tensors acts on each component as a batch of one; gradients of two orders."""

from collections.abc import Callable

import numpy as np
import pytest

import retrograd as rg
from retrograd.backend.ragged import Structure, no_components
from retrograd.core import Tensor
from retrograd.nested.buffer import values, wrap_buffer
from retrograd.nested.buffer_layout import get_layout, is_nested
from retrograd.nested.components import components, nest

from ..case_groups import group_cases
from .loops import check, check_examples, derivatives, images, leaf, leaves, numbers, rows


def dense(x: Tensor) -> np.ndarray:
    """Return components of one shape, stacked."""
    return np.stack([numbers(c) for c in components(x)], axis=get_layout(x).lead) if is_nested(x) else numbers(x)


OF_ROWS = {
    "a split dimension behind": lambda x: x.reshape(x.shape[0], x.shape[1], 2, 3),
    "unflatten": lambda x: x.unflatten(2, (2, -1)),
    "flatten": lambda x: x.flatten(1),
    "flatten behind": lambda x: x.unflatten(2, (2, 3)).flatten(2),
    "flatten partly": lambda x: x.unflatten(2, (2, 3)).flatten(1, 2),
    "a ragged dimension split": lambda x: x.flatten(1).unflatten(1, (-1, 6)),
    "a ragged dimension split in front": lambda x: x.flatten(1).unflatten(1, (2, -1)),
    "heads": lambda x: x.unflatten(2, (2, 3)).transpose(1, 2),
    "heads flattened": lambda x: x.unflatten(2, (2, 3)).transpose(1, 2).flatten(1, 3),
    "heads regrouped": lambda x: x.unflatten(2, (2, 3)).transpose(1, 2).flatten(1).unflatten(1, (3, -1)),
    "heads joined again": lambda x: x.unflatten(2, (2, 3)).transpose(1, 2).transpose(1, 2).flatten(2),
    "columns first": lambda x: x.transpose(1, 2).flatten(1),
    "mT": lambda x: x.mT,
    "ones": lambda x: (x.unsqueeze(1), x.unsqueeze(2), x.unsqueeze(-1), x.unsqueeze(0)),
    "ones dropped": lambda x: (x.unsqueeze(1).squeeze(1), x.unsqueeze(2).squeeze((2, 3)), x.unsqueeze(0).squeeze(0)),
    "a dimension before the components": lambda x: (x.movedim(2, 0), x.movedim(-1, 0).movedim(0, 1)),
    "expand": lambda x: (x.unsqueeze(1).expand(-1, 5, -1, -1), x.unsqueeze(3).expand(x.shape[0], x.shape[1], 6, 2)),
    "expand in front": lambda x: x.expand(2, *x.shape),
    "expand to a ragged size": lambda x: x.unsqueeze(2).expand(-1, -1, x.shape[1], -1),
    "expand before": lambda x: x.unsqueeze(1).expand(-1, x.shape[1], -1, -1),
    "windows": lambda x: x.unfold(2, 3, 2),
    "diagonal": lambda x: x.unflatten(2, (2, 3)).diagonal(0, 2, 3),
    "diagonal in front": lambda x: x.unflatten(2, (2, 3)).transpose(1, 2).diagonal(0, 1, 3),
    "as itself": lambda x: (x.view_as(x), x.reshape_as(x), x.expand_as(x)),
}


@group_cases
@pytest.mark.parametrize("name", OF_ROWS)
def test_rows_in_another_shape_are_each_components_in_that_shape(name: str) -> None:
    check(OF_ROWS[name], rows(6))


OF_IMAGES = {
    "pixels in a row": lambda x: x.flatten(1, 2),
    "and back": lambda x: x.flatten(1, 2).reshape(x.shape),
    "everything": lambda x: x.flatten(1),
    "channels first": lambda x: x.permute(0, 3, 1, 2),
    "channels between": lambda x: (x.permute(0, 1, 3, 2), x.permute(0, 3, 1, 2).permute(0, 2, 1, 3)),
    "turned": lambda x: (x.transpose(1, 2), x.permute(0, 3, 2, 1)),
    "ones": lambda x: (x.unsqueeze(1), x.unsqueeze(2), x.unsqueeze(3)),
    "channels split": lambda x: x.unflatten(-1, (2, 2)),
}


@pytest.mark.parametrize("name", OF_IMAGES)
def test_images_in_another_shape_are_each_image_in_that_shape(name: str) -> None:
    check(OF_IMAGES[name], images(4))


WITH_LEAD = {
    "transpose": lambda x: x.transpose(2, 3),
    "heads": lambda x: x.unflatten(3, (2, 2)).transpose(2, 3),
    "flatten": lambda x: x.flatten(2),
    "the lead split": lambda x: x.unflatten(0, (1, 2)),
    "lead and components swapped": lambda x: x.transpose(0, 1),
    "expand": lambda x: x.unsqueeze(0).expand(3, -1, -1, -1, -1),
}


@pytest.mark.parametrize("name", WITH_LEAD)
def test_dimensions_in_front_are_shared_by_all_components(name: str) -> None:
    check(WITH_LEAD[name], leaves([(3, 4), (1, 4), (2, 4)], (2,)), 1)


def test_minus_one_means_the_batch_and_for_ragged_sizes() -> None:
    x = nest(rows(6))
    for shape in [(4, -1, 2, 3), (-1, -1, 2, 3), (-1, x.shape[1], 2, 3), (4, x.shape[1], 2, -1)]:
        out = x.reshape(shape)
        assert out.shape == (4, x.shape[1], 2, 3)
    image = nest(images(4))
    assert image.reshape(3, -1, -1, 2, 2).shape == (*image.shape[:3], 2, 2)


DENSE_SHAPES = [
    *[(3, 24), (3, 6, 4), (3, 3, 2, 4), (-1,), (18, 4), (-1, 4), (9, 2, 4), (1, 3, 6, 4), (3, 1, 6, 4), (2, 36)],
    *[(3, 4, 6), (3, 2, 3, 2, 2), (3, -1), (1, -1, 6, 4)],
]


@pytest.mark.parametrize("shape", DENSE_SHAPES)
def test_components_of_one_shape_reshape_as_the_stacked_tensor_does(shape: tuple) -> None:
    parts = leaves([(6, 4)] * 3)
    np.testing.assert_array_equal(dense(nest(parts).reshape(shape)), numbers(rg.stack(parts).reshape(shape)))


def test_all_elements_come_component_by_component() -> None:
    parts = rows(2, 3)
    x = nest(parts).transpose(1, 2)
    expected = np.concatenate([numbers(p).swapaxes(0, 1).ravel() for p in parts])
    for flat in (x.flatten(), x.reshape(-1), x.ravel()):
        assert not is_nested(flat)
        np.testing.assert_array_equal(numbers(flat), expected)


def test_rows_of_all_components_are_a_plain_view() -> None:
    x = nest(rows(6))
    assert x.flatten(0, 1).shape == (8, 6)
    assert x.reshape(-1, 3).shape == (16, 3)
    np.testing.assert_array_equal(numbers(x.flatten(0, 1)), numbers(values(x)))


def test_heads_become_components_of_their_own() -> None:
    parts = rows(6)
    x = nest(parts).unflatten(2, (2, 3)).transpose(1, 2)
    expected = [numbers(p).reshape(-1, 2, 3)[:, k] for p in parts for k in range(2)]
    for out in (x.flatten(0, 1), x.reshape(8, x.shape[2], 3), x.reshape(-1, x.shape[2], 3)):
        assert [c.shape for c in components(out)] == [e.shape for e in expected]
        for a, b in zip(components(out), expected, strict=True):
            np.testing.assert_array_equal(numbers(a), b)


def test_components_without_dimensions_have_dense_shapes() -> None:
    x = nest([leaf(), leaf(), leaf()])
    shapes = [x.reshape(3, 1).shape, x.unsqueeze(0).shape, x.expand(2, 3).shape, x.flatten().shape, x.squeeze().shape]
    assert shapes == [(3, 1), (1, 3), (2, 3), (3,), (3,)]


def test_squeeze_drops_what_has_size_one_in_every_component() -> None:
    x = nest(leaves([(1, 1, 2), (1, 1, 2)]))
    for out, shape in [(x.squeeze(), (2, 2)), (x.squeeze(1), (2, 1, 2)), (x.squeeze(()), (2, 1, 1, 2))]:
        assert dense(out).shape == shape
        np.testing.assert_array_equal(dense(out).ravel(), numbers(x.flatten()))
    assert nest(leaves([(3, 1)])).squeeze().shape == (3,)
    assert nest(leaves([(3, 1)])).squeeze(0).shape == (3, 1)
    assert nest(rows(2)).squeeze(1).shape == nest(rows(2)).squeeze().shape == nest(rows(2)).shape


def with_holes() -> tuple[Tensor, Tensor, list[Tensor]]:
    buffer = leaf(12, 6)
    structure = Structure(np.array([[3], [2], [0], [4]]), np.array([0, 4, 6, 7]))
    return buffer, wrap_buffer(buffer, structure), [buffer[0:3], buffer[4:6], buffer[6:6], buffer[7:11]]


@pytest.mark.parametrize(
    "f",
    [
        lambda x: x.transpose(1, 2),
        lambda x: x.flatten(1),
        lambda x: x.unflatten(2, (2, 3)).transpose(1, 2),
        lambda x: x.unsqueeze(2).expand(-1, -1, 5, -1),
        lambda x: x.unfold(2, 2, 2),
    ],
)
def test_holes_in_the_buffer_do_not_show(f: Callable) -> None:
    buffer, x, parts = with_holes()
    found, expected = components(f(x)), [f(part.unsqueeze(0))[0] for part in parts]
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_array_equal(numbers(a), numbers(b))
    for a, b in zip(derivatives(list(found), [buffer]), derivatives(expected, [buffer]), strict=True):
        np.testing.assert_allclose(numbers(a), numbers(b))


@pytest.mark.parametrize(
    "f",
    [
        lambda x: x.transpose(1, 2),
        lambda x: x.flatten(1),
        lambda x: x.flatten(),
        lambda x: x.reshape(0, x.shape[1], 2, 3),
        lambda x: x.reshape(0, 2, -1, 3),
        lambda x: x.unsqueeze(1).squeeze(),
        lambda x: x.expand(2, *x.shape),
    ],
)
def test_no_components_have_every_shape(f: Callable) -> None:
    assert f(wrap_buffer(leaf(0, 6), no_components(1))).numel() == 0


def sets() -> Tensor:
    return nest([nest(leaves([(2, 4), (1, 4)])), nest(leaves([(4, 4), (1, 4), (2, 4)]))])


@pytest.mark.parametrize(
    "f",
    [
        lambda x: x.transpose(-1, -2),
        lambda x: x.unflatten(-1, (2, 2)),
        lambda x: x.flatten(-2),
        lambda x: x.unsqueeze(-1),
        lambda x: x.unsqueeze(-1).expand(*x.shape, 3),
        lambda x: x.unsqueeze(1).squeeze(1),
    ],
)
def test_the_tensors_in_sets_of_sets_change_shape_one_by_one(f: Callable) -> None:
    x = sets()
    found = [c for part in components(f(x)) for c in components(part)]
    expected = [f(rg.reshape(c, (1, 1, *c.shape)))[0, 0] for part in components(x) for c in components(part)]
    for a, b in zip(found, expected, strict=True):
        assert a.shape == b.shape
        np.testing.assert_array_equal(numbers(a), numbers(b))


def test_all_elements_of_sets_of_sets_are_one_row() -> None:
    x = sets()
    expected = np.concatenate([numbers(c).ravel() for part in components(x) for c in components(part)])
    np.testing.assert_array_equal(numbers(x.flatten()), expected)


# ------------------------------------------------------------------------------------------------ refusals


@pytest.mark.parametrize(
    "f",
    [
        lambda x: x.reshape(5, 7),
        lambda x: x.reshape(4, x.shape[1], 5),
        lambda x: x.unflatten(1, (-1, 2)),
        lambda x: x.view(3),
    ],
)
def test_a_shape_that_does_not_fit_is_refused(f: Callable) -> None:
    with pytest.raises(
        ValueError, match=r"(reshape|view): the components .* do not fit into .* component 0 has shape \(3, 6\)"
    ):
        f(nest(rows(6)))


@pytest.mark.parametrize("f", [lambda x: x.transpose(0, 1), lambda x: x.T, lambda x: x.movedim(0, -1)])
def test_components_do_not_come_after_a_ragged_dimension(f: Callable) -> None:
    with pytest.raises(RuntimeError, match="can't come behind a ragged dimension; see to_padded_tensor"):
        f(nest(rows(6)))


def test_expand_names_the_first_component_that_differs() -> None:
    x, y = nest(rows(6)), nest(leaves([(3, 6), (2, 6), (0, 6), (4, 6)]))
    with pytest.raises(ValueError, match=r"expand: .* in component 1 .* 1 and 2"):
        x.expand_as(y)


def test_view_refuses_what_needs_a_copy() -> None:
    x = nest(rows(6)).unflatten(2, (2, 3)).transpose(1, 2)
    with pytest.raises(RuntimeError, match=r"view: .* Use \.reshape"):
        x.view(4, -1)


# ---------------------------------------------------------------------------------------------- transforms


SHAPES = [
    lambda x: x.transpose(1, 2),
    lambda x: x.flatten(1),
    lambda x: x.unflatten(2, (2, 3)).transpose(1, 2),
    lambda x: x.transpose(1, 2).flatten(1),
    lambda x: x.unsqueeze(1).expand(-1, 2, -1, -1),
]


@pytest.mark.parametrize("f", SHAPES)
def test_tangents_have_the_shape_of_what_they_belong_to(f: Callable) -> None:
    x, t = nest(rows(6)).detach(), nest(rows(6)).detach()
    out, tangent = rg.func.jvp(lambda x: f(x) * 2, (x,), (t,))
    for a, b in zip(components(tangent), components(f(t)), strict=True):
        np.testing.assert_array_equal(numbers(a), 2 * numbers(b))
    assert out.shape == tangent.shape


@pytest.mark.parametrize("f", SHAPES)
def test_examples_of_a_batch_of_nested_tensors_change_shape(f: Callable) -> None:
    check_examples(f)


@pytest.mark.parametrize(
    "f",
    [
        lambda x: x.transpose(0, 1),
        lambda x: x.flatten(),
        lambda x: x.unflatten(1, (2, 3)).transpose(0, 1),
        lambda x: x.reshape(-1, 2, 3),
        lambda x: x.unsqueeze(0).expand(2, -1, -1),
        lambda x: x.unsqueeze(1).squeeze(1),
    ],
)
def test_vmap_over_the_components_sees_each_in_another_shape(f: Callable) -> None:
    parts = rows(6)
    out = rg.func.vmap(f)(nest(parts))
    assert is_nested(out)
    for a, b in zip(components(out), parts, strict=True):
        np.testing.assert_array_equal(numbers(a), numbers(f(b)))


def test_vmap_over_a_dense_dimension_of_a_nested_tensor() -> None:
    parts = rows(6)
    out = rg.func.vmap(lambda x: x * 2, in_dims=2, out_dims=2)(nest(parts))
    for a, b in zip(components(out), parts, strict=True):
        np.testing.assert_array_equal(numbers(a), 2 * numbers(b))


# ------------------------------------------------------------------------------------------------- writing


def test_a_write_to_a_transposed_view_reaches_the_components() -> None:
    x = nest(rows(6)).detach()
    x.unflatten(2, (2, 3)).transpose(1, 2).fill_(7.0)
    assert all((numbers(c) == 7).all() for c in components(x))


def test_a_write_to_the_buffer_reaches_views_and_the_other_way_round() -> None:
    x = nest(rows(6)).detach()
    seen = x.transpose(1, 2)
    values(x).zero_()
    assert all((numbers(c) == 0).all() for c in components(seen))
    seen.add_(1.0)
    assert (numbers(values(x)) == 1).all()


@pytest.mark.parametrize("made", [lambda p: nest(p), lambda p: nest(p) * 1, lambda p: nest(p).clone()])
def test_gradients_pass_through_writes_to_views(made: Callable) -> None:
    parts = rows(6)
    x = made(parts)
    seen, factor = x.transpose(1, 2), leaf(6, 1)
    seen.mul_(factor)
    expected = [p * factor.reshape(6) for p in parts]
    wanted = list(derivatives(expected, [*parts, factor]))
    for a, b in zip(derivatives(list(components(x)), [*parts, factor]), wanted, strict=True):
        np.testing.assert_allclose(numbers(a), numbers(b))
    for a, b in zip(derivatives([c.mT for c in components(seen)], [*parts, factor]), wanted, strict=True):
        np.testing.assert_allclose(numbers(a), numbers(b))


def test_values_written_into_a_view_of_a_nested_leaf_get_their_gradient() -> None:
    x, y = nest(rows(6)).detach(), nest(rows(6)).detach().requires_grad_()
    x.transpose(1, 2).copy_(y.transpose(1, 2))
    (g,) = rg.autograd.grad(sum((c * c).sum() for c in components(x)), [y])
    for a, b in zip(components(g), components(y), strict=True):
        np.testing.assert_array_equal(numbers(a), 2 * numbers(b))


def test_a_view_of_a_nested_leaf_refuses_recorded_writes() -> None:
    x = nest(rows(6)).detach().requires_grad_()
    with pytest.raises(RuntimeError, match="view of a leaf Variable"):
        x.transpose(1, 2).mul_(2.0)


def test_only_the_size_of_a_ragged_dimension_is_symbolic() -> None:
    assert [isinstance(size, rg.SymInt) for size in nest(rows(6)).shape] == [False, True, False]

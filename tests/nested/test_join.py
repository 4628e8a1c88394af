"""Splitting and joining nested tensors acts on each component, or on the stacked tensor."""

from collections.abc import Callable

import numpy as np
import pytest

import retrograd as rg
from retrograd.backend.ragged import Structure, no_components
from retrograd.core import Tensor
from retrograd.nested.buffer import values, wrap_buffer
from retrograd.nested.components import components, nest
from retrograd.ops.batch_loop import PerformanceWarning

from .loops import agree, check, check_examples, images, leaf, leaves, numbers, rows


def with_holes() -> tuple[Tensor, Tensor, list[Tensor]]:
    buffer = leaf(12, 4)
    structure = Structure(np.array([[3], [2], [0], [4]]), np.array([0, 4, 6, 7]))
    return buffer, wrap_buffer(buffer, structure), [buffer[0:3], buffer[4:6], buffer[6:6], buffer[7:11]]


def sets() -> list[Tensor]:
    return [nest(leaves([(2, 3), (1, 3)])), nest(leaves([(4, 3), (1, 3), (2, 3)]))]


# ----------------------------------------------------------------------------- along dense and ragged dimensions


OF_ROWS = {
    "split": lambda x: x.split(4, 2) + x.split([1, 5], -1) + x.split_with_sizes([2, 4], 2),
    "chunk": lambda x: x.chunk(4, 2),
    "tensor_split": lambda x: x.tensor_split((2, 3), 2) + x.tensor_split(4, 2),
    "unsafe": lambda x: x.unsafe_split(2, 2) + x.unsafe_chunk(3, 2) + x.unsafe_split_with_sizes([1, 5], 2),
    "unbind": lambda x: x.unbind(2),
    "cat": lambda x: (rg.cat([x, x * 2], 2), rg.cat([x.mT, x.mT], 1)),
    "cat, ragged": lambda x: (rg.cat([x, x * 2, x], 1), rg.cat([x.mT, x.mT], 2)),
    "a plain first row": lambda x: rg.cat([rg.ones(x.shape[0], 2, 6, dtype=x.dtype), x], 1),
    "stack": lambda x: (rg.stack([x, x * 2], -1), rg.stack([x, x], 1), rg.stack([x, x], 0), rg.stack([x, x], 2)),
    "stacks": lambda x: (rg.hstack([x, x]), rg.dstack([x, x]), rg.column_stack([x, x])),
    "repeat": lambda x: (x.repeat(1, 1, 2), x.repeat(1, 2, 1), x.repeat(3, 1, 2, 1), x.tile((2,)), x.repeat(1, 0, 1)),
    "repeat_interleave": lambda x: (x.repeat_interleave(2, 1), x.repeat_interleave(rg.tensor([1, 0, 2, 1, 1, 1]), 2)),
    "flip": lambda x: (x.flip(2), x.flip(1), x.flip((1, 2))),
    "roll": lambda x: (x.roll(2, 2), x.roll(1, 1), x.roll((1, 2), (2, 1))),
}


@pytest.mark.parametrize("name", OF_ROWS)
def test_rows_are_cut_and_joined_in_each_component(name: str) -> None:
    check(OF_ROWS[name], rows(6))


OF_IMAGES = {
    "cat": lambda x: (rg.cat([x, x * 2], 1), rg.cat([x, x * 2], 2), rg.cat([x, x * 2], 3)),
    "flip": lambda x: (x.flip(2), x.flip(1), x.flip((1, 2, 3))),
    "roll": lambda x: x.roll((1, 1), (1, 2)),
    "repeat": lambda x: x.repeat(1, 2, 2, 1),
    "split": lambda x: x.split(2, 3),
}


@pytest.mark.parametrize("name", OF_IMAGES)
def test_images_are_cut_and_joined_one_by_one(name: str) -> None:
    check(OF_IMAGES[name], images(4))


WITH_LEAD = {
    "unbind": lambda x: x.unbind(0),
    "split": lambda x: x.split(1, 0),
    "cat": lambda x: (rg.cat([x, x], 0), rg.cat([x, x], 2), rg.cat([x, x], 3)),
    "stack": lambda x: rg.stack([x, x], 0),
    "flip": lambda x: x.flip((0, 2)),
    "repeat": lambda x: x.repeat(2, 1, 1, 1),
}


@pytest.mark.parametrize("name", WITH_LEAD)
def test_dimensions_in_front_are_cut_and_joined(name: str) -> None:
    check(WITH_LEAD[name], leaves([(3, 4), (1, 4), (2, 4)], (2,)), 1)


def test_images_grow_along_the_dimension_in_which_others_differ() -> None:
    a, b = leaves([(2, 3), (1, 4)]), leaves([(2, 5), (1, 1)])
    out = rg.cat([nest(a), nest(b)], 2)
    agree(list(components(out)), [rg.cat([x, y], 1) for x, y in zip(a, b, strict=True)], a + b)


def test_parts_of_a_ragged_dimension_are_mapped() -> None:
    parts = leaves([(3, 2), (5, 2)])
    with pytest.warns(PerformanceWarning, match="tensor_split"):
        first, second = nest(parts).tensor_split(2, 1)
    agree([*components(first), *components(second)], [p.tensor_split(2)[k] for k in range(2) for p in parts], parts)


# ------------------------------------------------------------------------------------------- along the batch


def test_unbind_gives_the_components() -> None:
    for parts in (rows(2), images(), [leaf(), leaf()], leaves([(2, 3, 2), (2, 1, 2)])):
        agree(list(nest(parts).unbind()), parts, parts)
        agree(list(nest(parts)), parts, parts)


def test_components_of_sets_of_sets_are_nested_and_join_again() -> None:
    parts = sets()
    x = nest(parts)
    for a, b in zip(nest(x.unbind()).unbind(), parts, strict=True):
        for c, d in zip(a.unbind(), b.unbind(), strict=True):
            np.testing.assert_array_equal(numbers(c), numbers(d))


def test_sets_with_as_many_members_each_join() -> None:
    parts = [nest(leaves([(2, 3), (1, 3)])), nest(leaves([(4, 3), (1, 3)]))]
    shapes = [[c.shape for c in part.unbind()] for part in nest(parts).unbind()]
    assert shapes == [[(2, 3), (1, 3)], [(4, 3), (1, 3)]]


def test_the_batch_is_split_into_nested_tensors() -> None:
    parts = rows(6)
    x = nest(parts)
    for cut, sizes in [
        (x.split(3), [3, 1]),
        (x.split([1, 0, 3]), [1, 0, 3]),
        (x.chunk(2), [2, 2]),
        (x.tensor_split(3), [2, 1, 1]),
        (x.tensor_split((1, 3)), [1, 2, 1]),
        (x.unsafe_split(3), [3, 1]),
        (x.unsafe_chunk(2), [2, 2]),
    ]:
        assert [c.shape[0] for c in cut] == sizes
        agree([c for part in cut for c in components(part)], parts, parts)


def test_batches_are_joined() -> None:
    parts, others = rows(6), rows(6)
    out = rg.cat([nest(parts), nest(others)])
    agree(list(components(out)), parts + others, parts + others)


@pytest.mark.parametrize("shapes", [[(3, 5), (2, 5)], [(6, 3), (6, 2)], [(6, 6)]])
def test_batches_whose_components_differ_in_other_dimensions_are_joined(shapes: list) -> None:
    parts, others = rows(6), leaves(shapes)
    out = rg.cat([nest(parts), nest(others)])
    agree(list(components(out)), parts + others, parts + others)


def test_a_plain_batch_joins_as_components_of_one_shape() -> None:
    parts, others = rows(6), leaf(2, 5, 6)
    agree(list(components(rg.cat([nest(parts), others]))), [*parts, *others.unbind()], [*parts, others])
    agree(list(components(rg.cat([others, nest(parts)]))), [*others.unbind(), *parts], [*parts, others])


def test_components_may_repeat_and_change_order() -> None:
    parts = rows(6)
    x = nest(parts)
    agree(list(components(x.repeat(2, 1, 1))), parts + parts, parts)
    agree(list(components(x.flip(0))), parts[::-1], parts)
    agree(list(components(x.roll(1, 0))), [parts[-1], *parts[:-1]], parts)
    agree(list(components(x.repeat_interleave(2, 0))), [p for p in parts for _ in range(2)], parts)


@pytest.mark.parametrize(
    "f",
    [
        lambda x: x.unbind(),
        lambda x: [c for part in x.split(3) for c in components(part)],
        lambda x: [c for part in x.tensor_split(2) for c in components(part)],
        lambda x: components(rg.cat(x.chunk(2))),
    ],
)
def test_holes_in_the_buffer_do_not_show(f: Callable) -> None:
    buffer, x, parts = with_holes()
    agree(list(f(x)), parts, [buffer])


def test_components_next_to_holes_are_views() -> None:
    _, x, _ = with_holes()
    with rg.no_grad():
        for part in x.unbind():
            part.fill_(2.0)
    assert numbers(values(x))[[0, 1, 2, 4, 5, 7, 8, 9, 10]].min() == 2
    assert (numbers(values(x))[[3, 6, 11]] != 2).all()


def test_nothing_is_cut_into_nothing() -> None:
    x = wrap_buffer(leaf(0, 6), no_components(1))
    assert x.unbind() == ()
    assert [p.shape[0] for p in x.split(2)] == [0]
    assert [p.shape[0] for p in x.chunk(2)] == [0, 0]
    assert (
        rg.cat([x, x]).shape[0] == rg.cat([x, x], 1).shape[0] == x.repeat(2, 2, 2).shape[0] == x.flip(1).shape[0] == 0
    )
    parts = rows(6)
    agree(list(components(rg.cat([x, nest(parts)]))), parts, parts)


# ------------------------------------------------------------------------------------------------- refusals


def test_a_ragged_dimension_does_not_split() -> None:
    with pytest.raises(RuntimeError, match=r"unbind: dimension 1 is ragged: .* to_padded_tensor"):
        nest(rows(6)).unbind(1)


@pytest.mark.parametrize("f", [lambda x, y: rg.cat([x, y], 2), lambda x, y: rg.stack([x, y])])
def test_structures_that_differ_are_refused_with_the_first_component_that_does(f: Callable) -> None:
    x, y = nest(rows(6)), nest(leaves([(3, 6), (2, 6), (0, 6), (4, 6)]))
    with pytest.raises(ValueError, match=r"differ in structure: component 1 has shapes \(1, 6\) and \(2, 6\)"):
        f(x, y)


def test_images_that_differ_elsewhere_are_refused() -> None:
    x, y = nest(leaves([(2, 3), (1, 4)])), nest(leaves([(2, 3), (2, 5)]))
    with pytest.raises(ValueError, match=r"cat: .* component 1 has shapes \(1, 4\) and \(2, 5\)"):
        rg.cat([x, y], 1)


def test_other_counts_and_ranks_are_refused() -> None:
    x = nest(rows(6))
    with pytest.raises(ValueError, match="cat: the nested tensors have 4 and 3 components"):
        rg.cat([x, rg.ones(3, 2, 6, dtype=x.dtype)], 1)
    with pytest.raises(ValueError, match=r"cat: tensor 1 of shape \(4, 6\) does not fit"):
        rg.cat([x, rg.ones(4, 6)])
    with pytest.raises(ValueError, match=r"split: sizes \[1, 2\] add up to 3, but dimension 0 has 4"):
        x.split([1, 2])
    with pytest.raises(ValueError, match="tensor_split: expected at least 1 section"):
        x.tensor_split(0)
    with pytest.raises(ValueError, match="repeat: 2 sizes for 3 dimensions"):
        x.repeat(1, 2)


# ------------------------------------------------------------------------------------------------- writing


def test_components_share_memory_with_the_nested_tensor() -> None:
    x = nest(rows(6)).detach()
    parts = x.unbind()
    parts[0].zero_()
    parts[3][1] = 5.0
    assert (numbers(values(x))[:3] == 0).all()
    assert (numbers(values(x))[5] == 5).all()
    values(x).fill_(1.0)
    assert (numbers(parts[1]) == 1).all()
    x.split(2)[1].mul_(3.0)
    assert (numbers(parts[3]) == 3).all()


def test_components_of_a_leaf_are_written_to_without_grad() -> None:
    x = nest(rows(6)).detach().requires_grad_()
    with rg.no_grad():
        x.unbind()[0].zero_()
    (g,) = rg.autograd.grad(sum((c**2).sum() for c in x.unbind()), [x])
    assert (numbers(components(g)[0]) == 0).all()
    assert (numbers(components(g)[3]) != 0).all()


@pytest.mark.parametrize("cut", [lambda x: x.unbind()[0], lambda x: x.split(2)[0], lambda x: x.chunk(2, 2)[0]])
def test_views_that_come_together_refuse_recorded_writes(cut: Callable) -> None:
    part = cut(nest(rows(6)) * 1)
    with pytest.raises(RuntimeError, match="is a view and is being modified"):
        part.mul_(2.0)


def test_parts_that_are_cut_one_by_one_take_recorded_writes() -> None:
    parts = rows(6)
    x, factor = nest(parts) * 1, leaf(1)
    x.tensor_split(2)[0].mul_(factor)
    x.unsafe_split(2)[1].add_(factor)
    expected = [parts[0] * factor, parts[1] * factor, parts[2] + factor, parts[3] + factor]
    agree(list(components(x)), expected, [*parts, factor])


# ---------------------------------------------------------------------------------------------- transforms


@pytest.mark.parametrize(
    "f",
    [
        lambda x: rg.cat([x, x * x], 1),
        lambda x: rg.cat([x, x * x]),
        lambda x: x.flip(1) * 2,
        lambda x: x.chunk(2, 2)[1],
    ],
)
def test_tangents_are_cut_and_joined_the_same_way(f: Callable) -> None:
    parts, ts = rows(6), rows(6)
    x, t = nest(parts).detach(), nest(ts).detach()
    _, tangent = rg.func.jvp(f, (x,), (t,))
    step = 1e-6
    for a, b, c in zip(components(tangent), components(f(x + t * step)), components(f(x - t * step)), strict=True):
        np.testing.assert_allclose(numbers(a), (numbers(b) - numbers(c)) / (2 * step), atol=1e-8)


@pytest.mark.parametrize(
    "f",
    [
        lambda x: rg.cat([x, x * 2], 1),
        lambda x: rg.cat([x, x * 2]),
        lambda x: x.flip(1),
        lambda x: x.repeat(1, 2, 2),
        lambda x: x.chunk(2)[1],
        lambda x: rg.stack(x.unbind(2), 1),
    ],
)
def test_examples_of_a_batch_of_nested_tensors_are_cut_and_joined(f: Callable) -> None:
    check_examples(f)


@pytest.mark.parametrize(
    "f",
    [
        lambda x: rg.cat([x, x * 2], 1),
        lambda x: rg.cat([x, x * 2]),
        lambda x: x.flip((0, 1)),
        lambda x: x.chunk(2, 1)[1],
    ],
)
def test_vmap_over_the_components_cuts_and_joins_each(f: Callable) -> None:
    parts = rows(6)
    for a, b in zip(components(rg.func.vmap(f)(nest(parts))), parts, strict=True):
        np.testing.assert_array_equal(numbers(a), numbers(f(b)))


def test_a_nested_tensor_without_components_is_reversed_and_rolled_to_itself():
    nothing = rg.nested.nested_tensor([])
    assert nothing.flip(0).shape[0] == nothing.roll(1, 0).shape[0] == 0

"""Writes to nested tensors: x[key] = value and in-place methods, on each component."""

import numpy as np
import pytest

import retrograd as rg
from retrograd.autograd import gradcheck, gradgradcheck
from retrograd.nested.buffer import remove_holes, values, wrap_buffer
from retrograd.nested.buffer_layout import get_layout, is_nested

from ..case_groups import group_cases

RNG = np.random.default_rng(0)
ROWS = [RNG.standard_normal((n, 2)) for n in (3, 1, 4)]
BEHIND = [RNG.standard_normal((2, n)) for n in (3, 1, 4)]
IMAGES = [RNG.standard_normal(shape) for shape in ((2, 3, 2), (3, 1, 2), (1, 2, 2))]
LAYOUTS = {"rows": ROWS, "rows behind": BEHIND, "images": IMAGES}


def nested(parts, requires_grad=False):
    return rg.nested.nested_tensor(list(parts), requires_grad=requires_grad)


def parts_of(x):
    return [c.detach().numpy() for c in x.unbind()]


def same(x, expected):
    for f, e in zip(parts_of(x), expected, strict=True):
        np.testing.assert_array_equal(f, e)


def written(parts, key, value):
    """Return the components after a write to each."""
    copies = [p.copy() for p in parts]
    for c in copies:
        c[None][key] = value
    return copies


KEYS = [
    ("rows", np.s_[:, 0]),
    ("rows", np.s_[:, -1]),
    ("rows", np.s_[:, 1:]),
    ("rows", np.s_[:, ::2]),
    ("rows", np.s_[:, ::-1]),
    ("rows", np.s_[..., 1]),
    ("rows", np.s_[:, 1:, 0]),
    ("rows", np.s_[:, [0, -1]]),
    ("rows", np.s_[:, :, [1]]),
    ("rows", np.s_[:, None, 0]),
    ("rows", np.s_[..., :]),
    ("rows behind", np.s_[:, 1]),
    ("rows behind", np.s_[:, :, 0]),
    ("rows behind", np.s_[:, 0, 1:]),
    ("rows behind", np.s_[:, :, [0, -1]]),
    ("images", np.s_[:, 0]),
    ("images", np.s_[:, :, -1]),
    ("images", np.s_[:, 1:, 0]),
    ("images", np.s_[..., 0]),
    ("images", np.s_[:, ::-1, ::2]),
]


@group_cases
@pytest.mark.parametrize("holes", [False, True])
@pytest.mark.parametrize(("kind", "key"), KEYS)
def test_a_number_is_written_into_each_component(kind, key, holes):
    parts = LAYOUTS[kind]
    x = nested(parts)
    target = x[::2] if holes else x
    target[key] = 7.0
    new = written(parts, key, 7.0)
    same(x, [new[0], parts[1], new[2]] if holes else new)


@pytest.mark.parametrize(("kind", "key"), KEYS)
def test_indexed_parts_are_written_back(kind, key):
    x = nested(LAYOUTS[kind])
    y = x * 0
    y[key] = x[key]
    same(
        y,
        [
            np.where(w == 0, 0, p)
            for p, w in zip(LAYOUTS[kind], written([p * 0 for p in LAYOUTS[kind]], key, 1.0), strict=True)
        ],
    )


OF_COMPONENTS = [
    np.s_[0],
    np.s_[-1, 1:],
    np.s_[1:],
    np.s_[::2],
    np.s_[[2, 0]],
    np.s_[2, [1, 0], 1],
    np.s_[[0, 2], 1],
    np.s_[0, 1, 1],
]


@pytest.mark.parametrize("key", OF_COMPONENTS)
def test_components_are_written_to(key):
    dense = RNG.standard_normal((3, 4, 2))
    x = rg.nested.nested_tensor_from_padded(rg.tensor(dense), [4, 4, 4])
    value = x[key] * 2
    x[key] = value
    expected = dense.copy()
    expected[key] = 2 * expected[key]
    np.testing.assert_array_equal(x.to_padded_tensor(0.0).numpy(), expected)


def test_values_are_broadcast_and_converted():
    x = nested(ROWS)
    x[:, 1:] = rg.tensor([1, 2])
    same(x, [np.concatenate([p[:1], np.tile([1.0, 2.0], (len(p) - 1, 1))]) for p in ROWS])
    x[:, ::2] = rg.tensor([[[1.0, 1.0]], [[2.0, 2.0]], [[3.0, 3.0]]])
    assert [c[0, 0].item() for c in x.unbind()] == [1, 2, 3]
    x[0] = [8, 9]
    assert x[0].tolist() == [[8.0, 9.0]] * 3


@pytest.mark.parametrize("kind", LAYOUTS)
def test_masks(kind):
    parts = LAYOUTS[kind]
    x = nested(parts)
    x[x > 0] = 0.0
    same(x, [np.minimum(p, 0) for p in parts])
    x[x < 0] = nested([np.full((p < 0).sum(), 1.0 * i) for i, p in enumerate(parts)])
    same(x, [np.where(p < 0, 1.0 * i, 0) for i, p in enumerate(parts)])


def test_masks_of_rows_and_of_components():
    x = nested(ROWS)
    x[x[:, :, 0] > 0] = 5.0
    same(x, [np.where(p[:, :1] > 0, 5.0, p) for p in ROWS])
    x[rg.tensor([False, True, False])] = -1.0
    assert x[1].tolist() == [[-1.0, -1.0]]
    expected = [np.where(c[:, :1] == 5, [1.0, 2.0], c) for c in parts_of(x)]
    x[x[:, :, 0] == 5.0] = rg.tensor([1.0, 2.0])
    same(x, expected)


def test_sets_of_sets():
    x = rg.nested.nested_tensor([[[1.0, 2.0], [3.0]], [[4.0]], [[5.0], [6.0, 7.0, 8.0]]])
    x[:, 0] = 0.0
    assert x.tolist() == [[[0, 0], [3]], [[0]], [[0], [6, 7, 8]]]
    x[:, :, ::2] = 9.0
    assert x.tolist() == [[[9, 0], [9]], [[9]], [[9], [9, 7, 9]]]
    x[2, 1] = rg.tensor([1.0, 2.0, 3.0])
    x[x == 9.0] = 4.0
    assert x.tolist() == [[[4, 0], [4]], [[4]], [[4], [1, 2, 3]]]
    x[1:].fill_(-1.0)
    assert x.tolist() == [[[4, 0], [4]], [[-1]], [[-1], [-1, -1, -1]]]


def test_misfits_are_refused():
    x = nested(ROWS)
    with pytest.raises(ValueError, match=r"component 1 has shapes \(1, 2\) and \(3, 2\)|component 0 has shapes"):
        x[...] = nested(ROWS[::-1])
    with pytest.raises(RuntimeError, match="does not fit"):
        x[0] = nested(ROWS)
    with pytest.raises((RuntimeError, ValueError)):
        x[0] = rg.zeros(2, 2)
    with pytest.raises((RuntimeError, ValueError)):
        x[:, ::2] = rg.zeros(5, 1, 2)
    with pytest.raises(IndexError, match="component 1"):
        x[:, 1] = 0.0
    same(x, ROWS)


# ------------------------------------------------------------------------------------------------ derivatives


ONCE = [(kind, key) for kind, key in KEYS if [0, -1] not in key]  # places of short components too are named once


@pytest.mark.parametrize(("kind", "key"), [*ONCE, ("rows", np.s_[:, [0]])])
def test_derivatives_of_writes(kind, key):
    x = nested(LAYOUTS[kind])
    known, chosen = get_layout(x), x[key]
    inner = values(remove_holes(chosen)) if is_nested(chosen) else chosen

    def f(v, w):
        y = wrap_buffer(v, known.structure, known.axis) * 2
        y[key] = (
            wrap_buffer(w, get_layout(chosen).structure.packed, get_layout(chosen).axis) if is_nested(chosen) else w
        ) * 3
        return values(y) ** 2

    rows = (values(x).detach().requires_grad_(), inner.detach().clone().requires_grad_())
    assert gradcheck(f, rows, check_forward_ad=True, check_batched_grad=True)
    assert gradgradcheck(f, rows)
    batch = tuple(rg.stack([r.detach(), -r.detach()]) for r in rows)
    expected = [f(*pair).numpy() for pair in zip(*batch, strict=True)]
    np.testing.assert_array_equal(rg.func.vmap(f)(*batch).numpy(), np.stack(expected))


def test_derivatives_of_masked_writes():
    x = nested(ROWS)
    known, mask = get_layout(x), x > 0
    count = values(x[mask]).shape

    def f(v, w):
        y = wrap_buffer(v, known.structure) * 2
        y[mask] = wrap_buffer(w, get_layout(x[mask]).structure)
        y[y < -1] = w[0]
        return values(y) ** 2

    assert gradcheck(f, (values(x).detach().requires_grad_(), rg.ones(*count, dtype=rg.float64, requires_grad=True)))


def test_a_leaf_is_not_written_to():
    x = nested(ROWS, requires_grad=True)
    for write in (
        lambda: x.zero_(),
        lambda: x.mul_(2.0),
        lambda: x.copy_(nested(ROWS)),
        lambda: x.__setitem__(0, 1.0),
        lambda: x.__setitem__(np.s_[:, ::2], 1.0),
        lambda: x.__setitem__(np.s_[:, 1:], 1.0),
        lambda: x[1].zero_(),
        lambda: x[:, :1].zero_(),
    ):
        with pytest.raises(RuntimeError, match="leaf"):
            write()
    same(x, ROWS)
    with rg.no_grad():
        x[:, ::2] = 0.0
        x[0] = 1.0
        x.add_(1.0)
    assert (x[0].tolist(), x.is_leaf, x.requires_grad) == ([[2.0, 2.0]] * 3, True, True)


def test_views_and_bases_follow_each_other():
    leaf = nested(ROWS, requires_grad=True)
    x = leaf * 1
    one, rows, parts = x[0], x[:, 1:], x[1:]
    one.mul_(10.0)
    parts[:, ::2] = 0.0
    rows.add_(1.0)
    expected = [p.copy() for p in ROWS]
    expected[0] *= 10
    for e in expected[1:]:
        e[::2] = 0
    for e in expected:
        e[1:] += 1
    same(x, expected)
    same(parts, expected[1:])
    np.testing.assert_array_equal(one.detach().numpy(), expected[0])
    values(x).sum().backward()
    scale = [np.full_like(p, 10.0 if i == 0 else 1.0) for i, p in enumerate(ROWS)]
    for s in scale[1:]:
        s[::2] = 0
    same(leaf.grad, scale)


def test_gradients_reach_views_made_before_a_write():
    leaf = nested(ROWS, requires_grad=True)
    x = leaf * 1
    one = x[2]
    x.mul_(3.0)
    one.sum().backward()
    same(leaf.grad, [np.full_like(p, 3.0 * (i == 2)) for i, p in enumerate(ROWS)])


@pytest.mark.parametrize("kind", LAYOUTS)
def test_arithmetic_in_place(kind):
    parts = LAYOUTS[kind]
    x = nested(parts, requires_grad=True)
    y = x * 1
    y += x
    y *= 2.0
    y.sub_(1.0)
    y /= nested([p * 0 + 2 for p in parts])
    same(y, [((p + p) * 2 - 1) / 2 for p in parts])
    z = y.exp_()
    assert z is y
    values(y).sum().backward()
    for found, p in zip(parts_of(x.grad), parts, strict=True):
        np.testing.assert_allclose(found, 2 * np.exp((4 * p - 1) / 2))


def test_filling_and_copying():
    x = nested(ROWS)
    same(x.clone().fill_(3.0), [p * 0 + 3 for p in ROWS])
    same(x.clone().zero_(), [p * 0 for p in ROWS])
    same((x * 0).copy_(x), ROWS)
    same((x * 0).copy_(rg.tensor([1, 2])), [np.tile([1.0, 2.0], (len(p), 1)) for p in ROWS])
    same(x.clone().masked_fill_(x > 0, 2.0), [np.where(p > 0, 2.0, p) for p in ROWS])
    same(x.clone().clamp_(0.0), [np.maximum(p, 0) for p in ROWS])
    with pytest.raises(ValueError, match="component 0 has shapes"):
        x.copy_(nested(ROWS[::-1]))


def test_copies_of_nested_values_have_gradients():
    x, src = nested(ROWS, requires_grad=True), nested(ROWS, requires_grad=True)
    y = x * 2
    y.copy_(src * 3)
    values(y * y).sum().backward()
    same(x.grad, [p * 0 for p in ROWS])
    for found, p in zip(parts_of(src.grad), ROWS, strict=True):
        np.testing.assert_allclose(found, 18 * p)


def test_a_saved_value_that_was_written_to_is_detected():
    for write in lambda y: y.zero_(), lambda y: y.__setitem__(0, 0.0), lambda y: y.__setitem__(np.s_[:, ::2], 0.0):
        x = nested(ROWS, requires_grad=True)
        y = x * 1
        z = values(y * y).sum()
        write(y)
        with pytest.raises(RuntimeError, match="modified by an inplace"):
            z.backward()


def test_versions_count_writes():
    x = nested(ROWS)
    before = x._version
    x.zero_()
    x[0] = 1.0
    x[:, ::2] = 2.0
    assert x._version == before + 3
    assert x[1]._version == x._version


def test_examples_of_a_batch_are_written_to():
    x = nested(ROWS)
    known = get_layout(x)

    def f(v, s):
        y = wrap_buffer(v, known.structure) * 1
        y[:, 1:] *= s
        y[0] = s
        y[:, :, 0].mul_(2.0)
        y[y > 1] = s
        return values(y)

    rows, scales = rg.tensor(RNG.standard_normal((3, 8, 2))), rg.tensor([1.0, 2.0, 3.0])
    expected = np.stack([f(v, s).numpy() for v, s in zip(rows, scales, strict=True)])
    np.testing.assert_array_equal(rg.func.vmap(f)(rows, scales).numpy(), expected)


def test_no_components_and_empty_ones():
    x = nested([np.zeros((0, 2)), np.ones((2, 2))])
    x[0] = 1.0
    x[:, 1:] = 5.0
    x[x == 5.0] = 6.0
    assert x[1].tolist() == [[1.0, 1.0], [6.0, 6.0]]
    none = x[:0]
    none[:, ::2] = 1.0
    none.zero_()
    assert len(none) == 0

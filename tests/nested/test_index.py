"""x[...] of nested tensors indexes each component, as a batch of one; with equal components, their stack."""

import numpy as np
import pytest

import retrograd as rg
from retrograd.autograd import gradcheck, gradgradcheck
from retrograd.nested.buffer import values, wrap_buffer
from retrograd.nested.buffer_layout import get_layout, is_nested

from ..case_groups import group_cases

SHAPES = {
    "rows": [(3, 2), (1, 2), (4, 2)],
    "rows behind": [(2, 3), (2, 2), (2, 4)],
    "vectors": [(2,), (1,), (4,)],
    "images": [(2, 3, 2), (3, 1, 2), (1, 2, 2)],
    "between": [(2, 3, 2), (2, 1, 2), (2, 4, 2)],
    "numbers": [(), (), ()],
}


def arrays(kind, seed=0):
    rng = np.random.default_rng(seed)
    return [rng.standard_normal(shape) for shape in SHAPES[kind]]


def nested(parts, requires_grad=False):
    return rg.nested.nested_tensor(parts, requires_grad=requires_grad)


def numbers(x):
    """Return the components of a result, nested or plain, as arrays."""
    if is_nested(x):
        return [numbers(c) if is_nested(c) else c.detach().numpy() for c in x.unbind(get_layout(x).lead)]
    return list(x.detach().numpy())


def same(found, expected):
    assert len(found) == len(expected)
    for f, e in zip(found, expected, strict=True):
        assert f.shape == e.shape
        np.testing.assert_array_equal(f, e)


PER_COMPONENT = [
    ("rows", np.s_[:, 0]),
    ("rows", np.s_[:, -1]),
    ("rows", np.s_[:, 1:3]),
    ("rows", np.s_[:, -2:]),
    ("rows", np.s_[:, ::2]),
    ("rows", np.s_[:, ::-1]),
    ("rows", np.s_[:, 5:]),
    ("rows", np.s_[..., 1]),
    ("rows", np.s_[:, :, 1:]),
    ("rows", np.s_[:, :, ::-1]),
    ("rows", np.s_[:, 1:, 0]),
    ("rows", np.s_[:, None]),
    ("rows", np.s_[:, :, None]),
    ("rows", np.s_[..., None]),
    ("rows", np.s_[:, None, 1:, None, 0, None]),
    ("rows", np.s_[:, :, [1, 0, 1]]),
    ("rows", np.s_[:, :, [[1, 0], [0, 0]]]),
    ("rows", np.s_[:, 1:, [1, 1]]),
    ("rows", np.s_[:, [0, -1, 0]]),
    ("rows", np.s_[:, [[0], [-1]]]),
    ("rows", np.s_[:, [0, 0], [1, 0]]),
    ("rows", np.s_[:, 0, [1, 0]]),
    ("rows", np.s_[:, [0, -1], 0]),
    ("rows", np.s_[:, :, [True, False]]),
    ("rows behind", np.s_[:, 1]),
    ("rows behind", np.s_[:, :, 0]),
    ("rows behind", np.s_[:, :, -1]),
    ("rows behind", np.s_[:, :, 1:]),
    ("rows behind", np.s_[:, ::-1, ::-1]),
    ("rows behind", np.s_[:, [1, 1, 0]]),
    ("rows behind", np.s_[:, :, [0, -1]]),
    ("rows behind", np.s_[:, [1, 0], [0, -1]]),
    ("rows behind", np.s_[:, None, :, 1:]),
    ("vectors", np.s_[:, 0]),
    ("vectors", np.s_[:, 1:]),
    ("vectors", np.s_[:, None]),
    ("vectors", np.s_[..., None]),
    ("vectors", np.s_[:, [0, 0]]),
    ("images", np.s_[:, 0]),
    ("images", np.s_[:, :, -1]),
    ("images", np.s_[:, 0, -1]),
    ("images", np.s_[:, 1:]),
    ("images", np.s_[:, :, 1:]),
    ("images", np.s_[:, ::-1, ::2]),
    ("images", np.s_[:, :, None]),
    ("images", np.s_[:, None]),
    ("images", np.s_[:, 0, 1:]),
    ("images", np.s_[..., 0]),
    ("images", np.s_[..., [1, 0, 0]]),
    ("images", np.s_[:, [0, 0], [0, -1]]),
    ("images", np.s_[:, [0, 0], [0, -1], 1]),
    ("between", np.s_[:, 1, :, 0]),
    ("between", np.s_[:, :, 0, :]),
    ("between", np.s_[:, :, [0, -1], :]),
    ("between", np.s_[:, [0, 1], :, [1, 0]]),
    ("between", np.s_[:, :, [0, -1], [1, 0]]),
    ("between", np.s_[:, [0, 1], [0, 0], [1, 0]]),
    ("between", np.s_[:, [0, 1], [0, 0]]),
    ("between", np.s_[:, [0, 1], 0, [1, 1]]),
    ("numbers", np.s_[:, None]),
    ("numbers", np.s_[None]),
]


def of_each(part, key):
    """Return the result of a key, whose first part is the slice of all components, on one component."""
    if key[0] is Ellipsis:
        return part[None][key]
    return part[None][key]


@group_cases
@pytest.mark.parametrize(("kind", "key"), PER_COMPONENT[:-1])
def test_a_key_acts_on_each_component(kind, key):
    parts = arrays(kind)
    out = nested(parts)[key]
    expected = [of_each(p, key) for p in parts]
    at = next(d for d in range(expected[0].ndim + 1) if _batch_of_one_at(key, d))
    same(_along(out, at), [np.take(e, 0, at) for e in expected])


def _batch_of_one_at(key, d):
    """Return whether NumPy puts the component dimension at d: after those of separated index arrays."""
    return d == _rank_in_front(key)


def _rank_in_front(key):
    """Return the number of leading dimensions that come from separated index arrays."""
    advanced = [i for i, k in enumerate(key) if isinstance(k, (list, int))]
    lists = [np.array(k) for k in key if isinstance(k, list)]
    if not lists or advanced == list(range(advanced[0], advanced[-1] + 1)):
        return 0
    return np.broadcast_shapes(*[a.shape for a in lists]).__len__()


def _along(x, dim):
    if is_nested(x):
        assert get_layout(x).lead == dim
        return numbers(x)
    return list(np.moveaxis(x.detach().numpy(), dim, 0))


@group_cases
@pytest.mark.parametrize(("kind", "key"), PER_COMPONENT)
@pytest.mark.parametrize("holes", [False, True])
def test_gradients_are_scattered_back(kind, key, holes):
    parts = arrays(kind)
    x = nested(parts, requires_grad=True)
    base = x

    def selection(x):
        out = x[1:][key] if holes else x[key]
        while is_nested(out):
            out = values(rg.nested.buffer.remove_holes(out))
        return out

    assert gradcheck(
        lambda v: selection(wrap_buffer(v, get_layout(base).structure, get_layout(base).axis)) ** 2,
        (values(base).detach().requires_grad_(),),
    )


EQUAL = {
    "rows": (3, 4, 2),
    "rows behind": (3, 2, 4),
}
OF_COMPONENTS = [
    np.s_[0],
    np.s_[-1],
    np.s_[1:],
    np.s_[::-1],
    np.s_[::2],
    np.s_[[2, 0, 0]],
    np.s_[[-1]],
    np.s_[[True, False, True]],
    np.s_[None],
    np.s_[None, 1:, None],
    np.s_[0, 1],
    np.s_[0, :, 1],
    np.s_[0, 1:, None],
    np.s_[0, [1, 0]],
    np.s_[0, :, [1, 0]],
    np.s_[[2, 0], 1],
    np.s_[[2, 0], [1, -1]],
    np.s_[[2, 0], [1, -1], [1, 0]],
    np.s_[[2, 0], :, [1, 0]],
    np.s_[[2, 0], :, 1],
    np.s_[[2, 0], 1:, 1:],
    np.s_[1, [1, 0], [0, 1]],
    np.s_[::-1, 1:],
    np.s_[...],
    np.s_[:, :, :, None],
]


@group_cases
@pytest.mark.parametrize("key", OF_COMPONENTS)
@pytest.mark.parametrize("kind", EQUAL)
def test_of_equal_components_a_key_does_what_it_does_to_their_stack(kind, key):
    dense = np.random.default_rng(1).standard_normal(EQUAL[kind])
    x = of_equal(kind, dense)
    out, expected = x[key], rg.tensor(dense)[key].numpy()
    assert out.ndim == expected.ndim
    found = out.to_padded_tensor(0.0) if is_nested(out) else out
    np.testing.assert_array_equal(found.numpy(), expected)


def of_equal(kind, dense):
    """Return components of one size, with the last or the middle dimension ragged."""
    lengths = rg.tensor([dense.shape[1 if kind == "rows" else 2]] * len(dense))
    x = rg.tensor(dense)
    if kind == "rows":
        return rg.nested.nested_tensor_from_padded(x, lengths)
    return rg.nested.nested_tensor_from_padded(x.transpose(1, 2), lengths).transpose(1, 2)


def test_a_component_and_slices_show_the_memory():
    x = nested(arrays("rows"))
    for key in np.s_[1], np.s_[1:], np.s_[::2], np.s_[:, 1:], np.s_[:, :, 1], np.s_[:, :2, None], np.s_[::-1, 1:, 1:]:
        assert np.shares_memory(np.asarray(values(x[key]) if is_nested(x[key]) else x[key]), np.asarray(values(x)))
        assert x[key]._view is not None


def test_gradients_flow_into_one_component():
    x = nested(arrays("rows"), requires_grad=True)
    (x[1] * 3).sum().backward()
    same(numbers(x.grad), [np.full(s, 3.0 * (i == 1)) for i, s in enumerate(SHAPES["rows"])])


def test_a_component_that_is_too_short_is_named():
    x = nested(arrays("rows"))
    with pytest.raises(IndexError, match=r"index 1 .* component 1, which has 1"):
        x[:, 1]
    with pytest.raises(IndexError, match=r"index -2 .* component 1, which has 1"):
        x[:, -2]
    with pytest.raises(IndexError, match=r"index 3 .* component 0, which has 3"):
        x[:, [0, 3]]
    with pytest.raises(IndexError, match=r"indices 1 to 2 of component 1, which has 1"):
        x.narrow(1, 1, 1)


def test_bad_keys_are_refused():
    x = nested(arrays("rows"))
    with pytest.raises(IndexError, match="component 3 is named, but there are 3"):
        x[3]
    with pytest.raises(IndexError, match="component -4"):
        x[[-4]]
    with pytest.raises(IndexError, match="too many indices: 4"):
        x[0:, 0, 0, 0]
    with pytest.raises(IndexError, match="one ellipsis"):
        x[..., ...]
    with pytest.raises(IndexError, match="use None"):
        x[True]
    with pytest.raises(ValueError, match="step"):
        x[:, ::0]
    with pytest.raises(RuntimeError, match=r"1-d tensor, got shape .2, 1."):
        x[rg.tensor([[0], [1]])]
    with pytest.raises(IndexError):
        x[:, :, 2]


def test_several_tensors_name_single_rows():
    parts = arrays("rows")
    out = nested(parts)[[[2], [0]], [1, -1]]
    np.testing.assert_array_equal(out.numpy(), np.stack([np.stack([parts[i][1], parts[i][-1]]) for i in (2, 0)]))


def test_select_narrow_and_index_select():
    parts = arrays("rows")
    x = nested(parts)
    same(numbers(x.select(0, 1)), list(parts[1]))
    same(numbers(x.select(1, -1)), [p[-1] for p in parts])
    same(numbers(x.select(2, 1)), [p[:, 1] for p in parts])
    same(numbers(x.narrow(0, -2, 2)), parts[1:])
    same(numbers(x.narrow(1, 0, 1)), [p[:1] for p in parts])
    same(numbers(x.narrow(1, -1, 1)), [p[-1:] for p in parts])
    same(numbers(x.narrow(2, 1, 1)), [p[:, 1:] for p in parts])
    same(numbers(x.index_select(0, rg.tensor([2, 2]))), [parts[2], parts[2]])
    same(numbers(x.index_select(1, rg.tensor([0, 0]))), [p[[0, 0]] for p in parts])
    same(numbers(x.index_select(-1, rg.tensor([1]))), [p[:, [1]] for p in parts])
    with pytest.raises(IndexError, match="component -1"):
        x.index_select(0, rg.tensor([-1]))
    with pytest.raises(IndexError, match=r"index -1"):
        x.index_select(1, rg.tensor([-1]))
    with pytest.raises(IndexError, match="components 2 to 4 of a nested tensor that has 3"):
        x.narrow(0, 2, 2)


def sets():
    return [[[1.0, 2.0], [3.0]], [[4.0]], [[5.0], [], [6.0, 7.0, 8.0]]]


def test_sets_of_sets():
    x = rg.nested.nested_tensor(sets())
    assert [c.tolist() for c in x[2]] == sets()[2]
    assert x[0, 1].tolist() == [3.0]
    assert x[1:].tolist() == sets()[1:]
    assert x[[2, 0]].tolist() == [sets()[2], sets()[0]]
    assert x[:, 0].tolist() == [[1.0, 2.0], [4.0], [5.0]]
    assert x[:, -1].tolist() == [[3.0], [4.0], [6.0, 7.0, 8.0]]
    assert x[:, 1:].tolist() == [s[1:] for s in sets()]
    assert x[:, ::-1].tolist() == [s[::-1] for s in sets()]
    assert x[:, :, 1:].tolist() == [[c[1:] for c in s] for s in sets()]
    assert x[:, 0, 0].tolist() == [1.0, 4.0, 5.0]
    assert x[:, :2, :1].tolist() == [[c[:1] for c in s[:2]] for s in sets()]


def test_no_components_and_empty_ones():
    x = nested([np.zeros((0, 2)), np.ones((2, 2)), np.zeros((0, 2))])
    same(numbers(x[:, 1:]), [np.zeros((0, 2)), np.ones((1, 2)), np.zeros((0, 2))])
    assert x[0].shape == (0, 2)
    none = x[:0]
    assert len(none) == 0
    assert none[:, 0].shape == (0, 2)
    assert none[:, 1:, 1].shape[0] == 0
    assert none[:, ::2].shape[0] == 0
    assert x[[]].shape[0] == 0


def test_second_derivatives():
    x = nested(arrays("rows"), requires_grad=True)
    known = get_layout(x)

    def f(v):
        y = wrap_buffer(v, known.structure)
        rows = y[:, 1:] ** 3
        return y[:, 0].prod(0).sum() + values(rows[[2, 0]] * y[[2, 0]][:, :-1]).sum() + values(y[1:, :, 0] * 1).prod()

    assert gradgradcheck(f, (values(x).detach().requires_grad_(),))


@pytest.mark.parametrize(
    "key", [np.s_[:, 0], np.s_[1], np.s_[:, 1:], np.s_[:, ::2], np.s_[:, [0, -1]], np.s_[[2, 1], :, 1]]
)
def test_batches_and_tangents(key):
    x = nested(arrays("rows"))
    known = get_layout(x)
    rows = rg.tensor(np.random.default_rng(2).standard_normal((5, 8, 2)))

    def f(v):
        out = wrap_buffer(v, known.structure)[key]
        return (values(rg.nested.buffer.remove_holes(out)) if is_nested(out) else out) ** 2

    each = rg.stack([f(v) for v in rows])
    np.testing.assert_array_equal(rg.func.vmap(f)(rows).numpy(), each.numpy())
    jacobian = rg.func.vmap(rg.func.jacrev(f))(rows)
    np.testing.assert_allclose(rg.func.vmap(rg.func.jacfwd(f))(rows).numpy(), jacobian.numpy())


def test_positions_may_differ_between_the_examples_of_a_batch():
    x = nested(arrays("rows"))
    index = rg.tensor([[0, -1], [-1, 0]])
    out = rg.func.vmap(lambda i: x[:, i])(index)
    np.testing.assert_array_equal(out.numpy(), np.stack([x[:, i].numpy() for i in index]))
    dense = rg.func.vmap(lambda i: values(x[:, :, i]))(rg.tensor([[0], [1]]))
    np.testing.assert_array_equal(dense.numpy(), np.stack([values(x).numpy()[:, [0]], values(x).numpy()[:, [1]]]))


def test_index_put_writes_to_the_elements_that_index_tensors_give():
    x = rg.nested.nested_tensor([[[0.0, 1.0], [2.0, 3.0]], [[4.0, 5.0]]], requires_grad=True)
    values = rg.tensor([8.0, 9.0], requires_grad=True)
    ids = (rg.tensor([0, 1]), rg.tensor([1, 0]), rg.tensor([0, 1]))
    y = x.index_put(ids, values)
    assert y.tolist() == [[[0.0, 1.0], [8.0, 3.0]], [[4.0, 9.0]]]
    (y * y).sum().backward()
    assert x.grad.tolist() == [[[0.0, 2.0], [0.0, 6.0]], [[8.0, 0.0]]]
    assert values.grad.tolist() == [16.0, 18.0]
    z = x.detach().clone()
    z.index_put_(ids, values.detach())
    assert z.tolist() == y.tolist()
    with pytest.raises(IndexError, match="index 1 is out of range for component 1"):
        z.index_put_((rg.tensor([1]), rg.tensor([1]), rg.tensor([0])), rg.tensor([1.0]))

"""as_strided: shared memory, permitted writes, strides out of bounds, and replay in every layout."""

import numpy as np
import pytest

import retrograd as rg
from retrograd.testing import assert_close


@pytest.mark.parametrize(
    "view",
    [
        lambda x: x.unfold(1, 2, 2),
        lambda x: x.as_strided((2, 2), (4, 1)),
        lambda x: x.t(),
        lambda x: x.diagonal(),
        lambda x: x.swapaxes(0, 1),
        lambda x: x.ravel(),
        lambda x: x.view(rg.int32),
        lambda x: x.view_as(rg.zeros(6, 2)),
        lambda x: rg.broadcast_tensors(x, x)[0],
    ],
)
def test_views_share_memory_with_what_they_show(view):
    x = rg.zeros(3, 4)
    v = view(x)
    assert np.shares_memory(v.numpy(), x.numpy())
    v.fill_(1)
    assert x.count_nonzero().item() == v.numel()


def test_windows_that_overlap_can_not_be_written_to():
    x = rg.zeros(5)
    with pytest.raises(RuntimeError, match="refers to a single memory location"):
        x.unfold(0, 2, 1).fill_(1.0)
    with pytest.raises(RuntimeError, match="refers to a single memory location"):
        x.as_strided((2, 2), (1, 1)).fill_(1.0)
    x.unfold(0, 2, 3).fill_(1.0)
    assert x.tolist() == [1.0, 1.0, 0.0, 1.0, 1.0]


def test_a_write_to_windows_is_part_of_the_graph():
    x = rg.ones(5, requires_grad=True)
    y = x * 2
    y.unfold(0, 2, 3)[1].mul_(5)
    y.sum().backward()
    assert x.grad.tolist() == [2.0, 2.0, 2.0, 10.0, 10.0]


@pytest.mark.parametrize("layout", [np.ascontiguousarray, np.asfortranarray, lambda a: a[::-1]])
def test_windows_of_any_memory_show_the_same_numbers(layout):
    a = np.arange(20.0).reshape(4, 5)
    x = rg.from_numpy(layout(a))
    expected = np.lib.stride_tricks.sliding_window_view(layout(a), 3, axis=1)[:, ::2]
    assert x.unfold(1, 3, 2).tolist() == expected.tolist()
    assert np.shares_memory(x.unfold(1, 3, 2).numpy(), x.numpy())


@pytest.mark.parametrize("empty", [lambda x: x.unfold(0, 0, 1), lambda x: x.as_strided((0, 2), (2, 1), 1)])
@pytest.mark.parametrize("shape", [(3, 2), (0, 2), (0, 0), (3, 0)])
def test_views_without_elements_are_views(empty, shape):
    view = empty(rg.zeros(shape, requires_grad=True))
    with pytest.raises(RuntimeError, match="a view of a leaf Variable"):
        view.fill_(1)
    assert empty(rg.zeros(shape)).fill_(1).numel() == 0


@pytest.mark.parametrize("offset", [0, 1])
def test_strides_of_a_part_of_complex_numbers_count_in_parts(offset):
    z = rg.tensor([1 + 2j, 3 + 4j, 5 + 6j])
    for part in (z.real, z.imag[1:]):
        assert part.as_strided((1, 3), (6, 2), offset).tolist() == [[[1, 3, 5], [2, 4, 6]][offset]]


def test_strides_of_complex_numbers_made_of_parts_count_in_numbers():
    z = rg.view_as_complex(rg.tensor([[1.0, 2.0], [3.0, 4.0]]))[:1]
    assert z.as_strided((1,), (1,), 1).tolist() == [3 + 4j]


def test_strides_do_not_lead_from_a_copy_to_the_memory_of_its_base():
    part = rg.tensor([[1 + 2j, 3 + 4j]]).mH[:1]
    with pytest.raises(RuntimeError, match=r"as_strided: .* is a view in PyTorch, but here a copy"):
        part.as_strided((1,), (1,), 1)
    assert part.as_strided((1,), (1,), 0).tolist() == [1 - 2j]


def test_windows_of_no_elements_and_of_tensors_without_dimensions():
    assert rg.arange(7).unfold(0, 0, 1).shape == (8, 0)
    assert rg.tensor(3.0).unfold(0, 1, 1).tolist() == [3.0]


def test_strides_read_memory_in_its_order():
    x = rg.arange(6.0).reshape(2, 3)
    assert x.t().as_strided((6,), (1,)).tolist() == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]
    assert x[1:].as_strided((2,), (1,)).tolist() == [3.0, 4.0]
    assert x[1:].as_strided((2,), (1,), 1).tolist() == [1.0, 2.0]
    assert x[:, 0].as_strided((2, 2), (3, 1)).tolist() == [[0.0, 1.0], [3.0, 4.0]]


LAYOUTS = {
    "rows": lambda y: y,
    "columns": lambda y: y.t(),
    "of two": lambda y: y.reshape(1, 2, 3).transpose(0, 2),
    "after others": lambda y: y[1:],
}


@pytest.mark.parametrize("offset", [None, 3])
@pytest.mark.parametrize("name", LAYOUTS)
def test_strides_count_in_the_memory_below_function_transforms(name, offset):
    def windows(x):
        return x.as_strided((2, 2), (1, 1), offset)

    def weighted(x):
        return (windows(x) * rg.arange(4.0).reshape(2, 2)).sum()

    x = LAYOUTS[name](rg.arange(6.0).reshape(2, 3) + 1)
    expected = windows(x).tolist()
    leaf = x.detach().requires_grad_()
    weighted(leaf).backward()
    assert leaf.stride() == x.stride()
    assert rg.func.vjp(windows, x)[0].tolist() == expected
    assert rg.func.jvp(windows, (x,), (x,))[1].tolist() == expected
    assert rg.func.grad(weighted)(x).tolist() == leaf.grad.tolist()
    assert rg.func.vmap(windows)(x[None])[0].tolist() == expected
    assert rg.fx.trace(windows, x)(x).tolist() == expected


def test_strides_in_vmap_count_in_the_memory_of_an_example():
    x = rg.arange(12.0).reshape(2, 3, 2)
    columns = rg.func.vmap(lambda y: y.as_strided((6,), (1,)))(x.transpose(1, 2))
    assert columns.tolist() == x.reshape(2, 6).tolist()
    with pytest.raises(RuntimeError, match="has gaps"):
        rg.func.vmap(lambda y: y.as_strided((2,), (1,)), in_dims=1)(x)
    written = rg.func.vmap(lambda y, src: y.as_strided_scatter(src, (2,), (3,), 1))(x.transpose(1, 2), rg.zeros(2, 2))
    assert written.transpose(1, 2).reshape(2, 6).tolist() == [[0, 0, 2, 3, 0, 5], [6, 0, 8, 9, 0, 11]]


def test_strides_out_of_memory_or_over_gaps_are_refused():
    x = rg.arange(6.0).reshape(2, 3)
    with pytest.raises(RuntimeError, match="reach index 6 of 6"):
        x.as_strided((2,), (1,), 5)
    with pytest.raises(RuntimeError, match="has gaps"):
        rg.from_numpy(np.zeros((2, 6))[:, ::2]).as_strided((2,), (1,))


def test_the_gradient_through_strides_is_summed_over_repeated_elements():
    x = rg.ones(2, 2, dtype=rg.float64, requires_grad=True)
    x.as_strided((3, 2), (1, 1)).sum().backward()
    assert x.grad.tolist() == [[1.0, 2.0], [2.0, 1.0]]
    y = rg.ones(2, 3, requires_grad=True)
    (y * 1).t().as_strided((2,), (1,), 1).sum().backward()
    assert y.grad.tolist() == [[0.0, 1.0, 1.0], [0.0, 0.0, 0.0]]


@pytest.mark.parametrize("turn", [lambda y: y, lambda y: y.t(), lambda y: y.flip(0).t()])
def test_elements_overwritten_through_a_view_get_no_gradient_in_any_layout(turn):
    x = rg.ones(2, 3, requires_grad=True)
    y = x * 1
    y.view(6)[:3] = 0.0
    out = turn(y)
    (out * rg.ones(out.shape)).sum().backward()
    assert x.grad.tolist() == [[0.0] * 3, [1.0] * 3]


def test_a_write_through_the_row_of_a_transposed_base_replays_on_other_layouts():
    base = rg.from_numpy(np.asfortranarray(np.ones((2, 3)))).requires_grad_()
    y = base.clone()
    assert y.stride() == (1, 2)
    y.t().view(6)[:2] = 0.0
    (y * rg.ones(2, 3)).sum().backward()
    assert base.grad.tolist() == [[0.0, 1.0, 1.0]] * 2


@pytest.mark.parametrize(
    ("shape", "old", "new", "expected"),
    [
        ((2, 4), "float32", "float64", (2, 2)),
        ((2, 3), "float32", "int32", (2, 3)),
        ((2, 3), "float32", "uint8", (2, 12)),
        ((), "float32", "int32", ()),
        ((2, 2), "complex64", "float32", (2, 4)),
    ],
)
def test_bytes_read_as_another_dtype(shape, old, new, expected):
    x = rg.ones(shape, dtype=old)
    y = x.view(getattr(rg, new))
    assert (y.shape, y.dtype) == (expected, np.dtype(new))
    assert x.view(dtype=y.dtype).numpy().tobytes() == x.numpy().tobytes()


def test_bytes_that_are_not_contiguous_are_not_read_as_another_dtype():
    with pytest.raises(RuntimeError, match="do not lie together"):
        rg.ones(2, 4).t().view(rg.uint8)
    x = rg.ones(2, requires_grad=True)
    assert x.view(rg.float32) is x
    assert not x.view(rg.int32).requires_grad


def test_scattering_into_views_takes_sources_of_other_dtypes_and_has_both_gradients():
    x, src = rg.zeros(4, requires_grad=True), rg.ones(2, dtype=rg.float64, requires_grad=True)
    out = x.slice_scatter(src, 0, -2)
    assert out.dtype == rg.float32
    out.sum().backward()
    assert x.grad.tolist() == [1.0, 1.0, 0.0, 0.0]
    assert_close(src.grad, np.ones(2))
    assert src.grad.dtype == rg.float64


def test_shapes_that_broadcast():
    assert rg.broadcast_shapes(2, (3, 2), (1,)) == (3, 2)
    assert rg.broadcast_shapes() == ()
    with pytest.raises(ValueError, match="broadcast_shapes"):
        rg.broadcast_shapes((2,), (3,))
    assert [x.tolist() for x in rg.unravel_index(rg.tensor([7, -1]), (2, 3))] == [[0, 1], [1, 2]]


OF_LAYOUTS = {  # what goes through kernels that take rows without gaps
    "conv2d": lambda x, w, ids: rg.nn.functional.conv2d(x, w, padding=1),
    "conv_transpose2d": lambda x, w, ids: rg.nn.functional.conv_transpose2d(x[:, :2], w),
    "max_pool2d": lambda x, w, ids: rg.nn.functional.max_pool2d(x, 2),
    "avg_pool2d": lambda x, w, ids: rg.nn.functional.avg_pool2d(x, 3, 1),
    "gather": lambda x, w, ids: x.gather(3, ids),
    "index_add": lambda x, w, ids: rg.zeros_like(x).index_add(3, ids[0, 0, 0], x),
    "attention": lambda x, w, ids: rg.nn.functional.scaled_dot_product_attention(x, x, x),
    "softmax": lambda x, w, ids: x.softmax(-1),
    "sum": lambda x, w, ids: x.reshape(-1, 6).sum(0),
    "matmul": lambda x, w, ids: x @ x.mT,
}


def off_by_a_byte(array):
    """Return the same values at an unaligned address."""
    found = np.ndarray(array.shape, array.dtype, bytearray(array.nbytes + 1), 1)
    found[...] = array
    return found


@pytest.mark.parametrize("name", OF_LAYOUTS)
def test_unaligned_elements_have_the_same_values(name, rng):
    x, w = rng.standard_normal((2, 3, 6, 6)), rng.standard_normal((2, 3, 3, 3))
    arrays = (x.astype(np.float32), w.astype(np.float32), rng.integers(0, 6, (2, 3, 6, 6)))
    expected = OF_LAYOUTS[name](*map(rg.from_numpy, arrays))
    got = OF_LAYOUTS[name](*(rg.from_numpy(off_by_a_byte(array)) for array in arrays))
    np.testing.assert_allclose(got.numpy(), expected.numpy(), rtol=1e-6, atol=1e-6)


def test_windows_of_an_array_that_as_strided_made_are_copies():
    repeated = np.lib.stride_tricks.as_strided(np.arange(3.0), (2, 3), (0, 8))
    assert rg.from_numpy(repeated).unfold(1, 2, 1).tolist() == [[[0.0, 1.0], [1.0, 2.0]]] * 2

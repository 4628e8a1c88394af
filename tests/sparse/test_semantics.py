"""Sparse tensors: sharing, coalescing, writing, refusing, storing, checks."""

import copy
import io
import pickle

import numpy as np
import pytest
import scipy.sparse

import retrograd as rg
from retrograd.core import registry
from retrograd.sparse.primitives import is_sparse
from retrograd.testing import assert_close, samples_of

LAYOUTS = ("coo", "csr", "csc", "bsr", "bsc")
DENSE = rg.tensor([[0.0, 2.0, 0.0, 1.0], [0.0, 0.0, 0.0, 0.0], [3.0, 0.0, -4.0, 0.0], [0.0, 5.0, 0.0, 6.0]])


def in_layout(x, layout):
    return x.to_sparse(layout=getattr(rg, f"sparse_{layout}"), blocksize=(2, 2) if layout[0] == "b" else None)


# ------------------------------------------------------------------------------------------------ conversions


@pytest.mark.parametrize("layout", LAYOUTS)
def test_conversion_to_a_layout_and_back_keeps_all_elements(layout):
    x = in_layout(DENSE, layout)
    assert repr(x.layout) == f"retrograd.sparse_{layout}"
    assert x.shape == DENSE.shape
    assert_close(x.to_dense(), DENSE)


def test_one_number_is_the_size_of_square_blocks():
    for convert in (rg.Tensor.to_sparse_bsr, rg.Tensor.to_sparse_bsc):
        assert convert(DENSE, 2).values().shape == convert(DENSE, (2, 2)).values().shape


@pytest.mark.parametrize("layout", ["csr", "csc", "bsr", "bsc"])
def test_trailing_dimensions_may_be_dense(layout):
    x = rg.arange(1.0, 25).reshape(4, 3, 2)
    blocks = {"blocksize": (2, 1)} if layout[0] == "b" else {}
    converted = getattr(x, f"to_sparse_{layout}")(**blocks, dense_dim=1)
    assert converted.values().shape[-1] == 2
    assert_close(converted.to_dense(), x)
    if blocks:
        with pytest.raises(RuntimeError, match=r"\(4,3\) must be divisible by given blocksize \(2,2\)"):
            getattr(x, f"to_sparse_{layout}")((2, 2), 1)


def test_products_of_a_rows_entries_are_reduced_with_gradients():
    dense = DENSE.clone().requires_grad_()
    other = rg.tensor([[1.0, -2.0], [3.0, 4.0], [5.0, -6.0], [0.5, 7.0]], requires_grad=True)
    terms = dense.unsqueeze(2) * other
    kept = (DENSE != 0).unsqueeze(2)
    counts = kept.sum(1).clamp(min=1)
    wanted = {
        "mean": rg.where(kept, terms, 0).sum(1) / counts,
        "amax": rg.where(kept, terms, -rg.inf).amax(1).nan_to_num(neginf=0),
        "amin": rg.where(kept, terms, rg.inf).amin(1).nan_to_num(posinf=0),
        "sum": dense @ other,
    }
    for reduce, expected in wanted.items():
        out = rg.sparse.mm(dense.to_sparse_csr(), other, reduce)
        assert_close(out, expected)
        ours, theirs = (
            rg.autograd.grad(result.square().sum(), (dense, other), retain_graph=True) for result in (out, expected)
        )
        assert_close(ours[1], theirs[1])
        assert_close(rg.where(DENSE != 0, ours[0], 0), rg.where(DENSE != 0, theirs[0], 0))
    with pytest.raises(ValueError, match="reduce must be sum, mean, amax or amin, got 'prod'"):
        rg.sparse.mm(DENSE.to_sparse_csr(), other, "prod")
    with pytest.raises(RuntimeError, match="in layout CSR"):
        rg.sparse.mm(DENSE.to_sparse(), other, "amax")


@pytest.mark.parametrize("first", LAYOUTS)
@pytest.mark.parametrize("second", LAYOUTS)
def test_conversion_between_layouts_keeps_all_elements_and_gradients(first, second):
    if first[0] == "b" and second in ("csr", "csc"):
        pytest.skip("PyTorch has no such conversion, and it is refused")
    x = DENSE.clone().requires_grad_()
    out = in_layout(in_layout(x, first), second).to_dense()
    assert_close(out, DENSE)
    (out * out).sum().backward()
    assert_close(x.grad, 2 * DENSE)


def test_blocks_become_entries_only_through_coo():
    with pytest.raises(RuntimeError, match="expected SparseCsr or SparseCsc layout but got SparseBsr"):
        in_layout(DENSE, "bsr").to_sparse_csr()


def test_hybrid_tensors_have_slices_as_entries():
    x = DENSE.to_sparse(1)
    assert (x.sparse_dim(), x.dense_dim(), x._nnz()) == (1, 1, 3)
    assert_close(x.values(), DENSE[[0, 2, 3]])
    assert_close(x.to_dense(), DENSE)


SHARERS = {  # tensors over the memory of the indices [1, 0, 2] of the columns
    "col_indices": lambda: (x := A.to_sparse_csr(), x.col_indices()),
    "row_indices": lambda: (x := A.t().to_sparse_csc().t().to_sparse_csr(), x.col_indices()),
    "indices": lambda: (x := A.to_sparse(), x.indices()[1]),
    "_indices": lambda: (x := A.to_sparse(), x._indices()[1]),
    "of COO": lambda: (rg.sparse_coo_tensor(at := rg.tensor([[0, 1, 1], [1, 0, 2]]), V, (2, 3)), at[1]),
    "of CSR": lambda: (rg.sparse_csr_tensor(rg.tensor([0, 1, 3]), at := rg.tensor([1, 0, 2]), V, (2, 3)), at),
    "of CSC": lambda: (rg.sparse_csc_tensor(rg.tensor([0, 1, 3]), at := rg.tensor([1, 0, 2]), V, (3, 2)).t(), at),
}
A, V = rg.tensor([[0.0, 2.0, 0.0], [1.0, 0.0, 3.0]]), rg.tensor([2.0, 1.0, 3.0])
USES = {
    "to_dense": lambda x: x.to_dense(),
    "a product": lambda x: x @ rg.eye(3),
    "a product of the transpose": lambda x: (x.t() @ rg.eye(2)).t(),
    "a sum": lambda x: (x + x).to_dense() / 2,
    "COO": lambda x: x.to_sparse().to_dense(),
}


@pytest.mark.parametrize("sharer", SHARERS)
@pytest.mark.parametrize("use", USES)
def test_a_write_to_indices_moves_the_entries(sharer, use):
    x, columns = SHARERS[sharer]()
    assert USES[use](x).tolist() == A.tolist()
    columns[0] = 2
    assert USES[use](x).tolist() == [[0, 0, 2], [1, 0, 3]]


@pytest.mark.parametrize("layout", [rg.sparse_csr, rg.sparse_csc])
@pytest.mark.parametrize("shape", [(5, 2), (2, 5, 3), (2, 3, 5, 4), (0, 0)])
def test_compressed_tensors_without_entries_have_any_batch(layout, shape):
    x = rg.empty(shape, layout=layout)
    assert (x.shape, x._nnz(), x.layout) == (shape, 0, layout)
    assert x.to_dense().tolist() == rg.zeros(shape).tolist()


@pytest.mark.parametrize("layout", [rg.sparse_csr, rg.sparse_csc, rg.sparse_bsr, rg.sparse_bsc])
def test_a_part_of_a_batch_has_its_layout(layout):
    dense = rg.stack([rg.eye(4), rg.eye(4).flip(0)])
    block = (2, 2) if layout in (rg.sparse_bsr, rg.sparse_bsc) else None
    x = dense.to_sparse(layout=layout, blocksize=block).requires_grad_()
    for i, part in enumerate(x.unbind()):
        assert (part.layout, x[i].layout, x[i - 2].layout) == (layout,) * 3
        assert part.to_dense().tolist() == x[i].to_dense().tolist() == dense[i].tolist()
    (x[1].to_dense() * 3).sum().backward()
    assert x.grad.to_dense()[0].sum() == 0
    assert x.grad.to_dense()[1].amax() == 3


def test_compressed_tensors_without_entries_have_rows_and_columns():
    with pytest.raises(RuntimeError, match=r"Only batched .* are supported, but got size \[5\]"):
        rg.empty((5,), layout=rg.sparse_csr)


def test_checked_compressed_indices_have_one_dtype():
    given = rg.tensor([0, 1], dtype=rg.int32), rg.tensor([0]), rg.ones(1), (1, 1)
    with pytest.raises(RuntimeError, match="must have the same dtype, got int32 and int64"):
        rg.sparse_csr_tensor(*given, check_invariants=True)


def test_indices_and_values_share_the_users_memory():
    indices, values = np.array([[0, 1]]), np.array([1.0, 2.0])
    x = rg.sparse_coo_tensor(indices, values, (3,), is_coalesced=True)
    assert np.shares_memory(x.indices().numpy(), indices)
    values[0] = 7
    assert x.to_dense().tolist() == [7, 2, 0]


@pytest.mark.parametrize("kind", ["coo", "csr", "csc", "bsr"])
def test_scipys_arrays_share_memory_both_ways(kind):
    matrix = scipy.sparse.csr_array(DENSE.numpy()).asformat(kind)
    x = rg.sparse.from_scipy(matrix)
    assert np.shares_memory(x._values().numpy() if kind == "coo" else x.values().numpy(), matrix.data)
    assert_close(x.to_dense(), DENSE)
    back = rg.sparse.to_scipy(x)
    assert back.format == kind
    assert np.shares_memory(back.data, matrix.data)
    assert (back.toarray() == DENSE.numpy()).all()


def test_scipys_other_formats_become_csr():
    assert rg.sparse.from_scipy(scipy.sparse.dia_array(np.eye(2))).layout is rg.sparse_csr


def test_to_scipy_refuses_what_would_lose_a_gradient():
    with pytest.raises(RuntimeError, match="to_scipy on Tensor that requires grad"):
        rg.sparse.to_scipy(DENSE.to_sparse().requires_grad_())


# ------------------------------------------------------------------------------------------------- coalescing


def test_a_number_is_the_value_of_one_entry():
    x = rg.sparse_coo_tensor([[0], [2]], 3.0, (2, 3))
    assert x.to_dense().tolist() == [[0.0, 0.0, 3.0], [0.0, 0.0, 0.0]]
    value = rg.tensor(3.0, requires_grad=True)
    rg.sparse_coo_tensor([[0], [2]], value).to_dense().sum().backward()
    assert value.grad.item() == 1.0
    with pytest.raises(RuntimeError, match="same nnz"):
        rg.sparse_coo_tensor([[0, 1], [2, 0]], 3.0)


def test_parts_along_a_dimension_are_copied():
    part = DENSE.to_sparse().narrow_copy(1, 1, 3)
    assert_close(part.to_dense(), DENSE[:, 1:])
    part._values().zero_()
    assert_close(DENSE.to_sparse().to_dense(), DENSE)


def test_repeated_entries_are_summed():
    x = rg.sparse_coo_tensor([[1, 0, 1]], [1.0, 2.0, 4.0], (2,))
    assert not x.is_coalesced()
    assert x.to_dense().tolist() == [2, 5]
    done = x.coalesce()
    assert (done.indices().tolist(), done.values().tolist()) == ([[0, 1]], [2, 5])
    assert done.coalesce() is done


def test_nonlinear_functions_of_repeated_entries_see_their_sums():
    x = rg.sparse_coo_tensor([[1, 0, 1]], [1.0, 2.0, 4.0], (2,))
    assert x.square().to_dense().tolist() == [4, 25]
    assert (x * x).to_dense().tolist() == [4, 25]


def test_the_gradient_of_repeated_entries_is_that_of_the_element_once():
    x = rg.sparse_coo_tensor([[1, 0, 1]], [1.0, 2.0, 4.0], (2,)).requires_grad_()
    (x.to_dense() * rg.tensor([10.0, 20.0])).sum().backward()
    assert x.grad.to_dense().tolist() == [10, 20]


# ---------------------------------------------------------------------------------------------------- refusals


def refused():
    """Yield the operators without a rule, with a sample whose first input, a matrix of floats, becomes sparse."""
    from retrograd.sparse.dispatch import _rules

    for name, op in registry.items():
        if op.composite or name in _rules or "::" in name or name.startswith(("sparse.", "nested.", "level")):
            continue
        for args, params in samples_of(op) if hasattr(op.definition, "samples") else ():
            first = args[0] if args else None
            if isinstance(first, rg.Tensor) and not is_sparse(first) and first.ndim == 2 and first.dtype.kind == "f":
                yield name, args, params
                break


def test_operators_without_a_rule_are_refused_by_name():
    found = list(refused())
    assert len(found) > 150
    for name, args, params in found:
        op = registry[name]
        if op.definition.accepts_nested or type(args[0].value) is not np.ndarray or name.startswith("_"):
            continue
        with pytest.raises((NotImplementedError, TypeError, ValueError, RuntimeError)):
            pytest.fail(f"{name} of a sparse tensor gives {op(args[0].to_sparse(), *args[1:], **params)}")


@pytest.mark.parametrize("name", ["exp", "cos", "reshape", "cumsum", "max", "sort", "sigmoid"])
def test_the_refusal_names_the_operator_and_the_way_out(name):
    call = {"reshape": lambda x: x.reshape(-1), "cumsum": lambda x: x.cumsum(0)}.get(name, lambda x: getattr(x, name)())
    with pytest.raises(NotImplementedError, match=r"Could not run 'aten::.*'SparseCPU' backend.*x\.to_dense\(\)"):
        call(DENSE.to_sparse())


@pytest.mark.parametrize(
    "call", [rg.rand_like, rg.ones_like, lambda x: x.apply_(lambda v: v + 1), lambda x: x.fill_(1)]
)
def test_functions_that_would_fill_zeros_are_refused(call):
    x = DENSE.to_sparse()
    with pytest.raises(NotImplementedError):
        call(x)
    assert_close(x.to_dense(), DENSE)


def test_numpy_refuses_sparse_tensors():
    with pytest.raises(TypeError, match=r"can't convert Sparse layout tensor to numpy. Use Tensor.to_dense\(\) first"):
        DENSE.to_sparse().numpy()


# ------------------------------------------------------------------------------------------------------ writing


def test_writes_with_the_same_entries_go_to_the_values():
    x = DENSE.to_sparse()
    values = x.values()
    x.mul_(2)
    assert_close(x.to_dense(), 2 * DENSE)
    assert_close(values, x.values())
    assert x._version == 1


def test_writes_with_other_entries_replace_them():
    x = DENSE.to_sparse()
    x.add_(rg.eye(4).to_sparse())
    assert_close(x.to_dense(), DENSE + rg.eye(4))
    x.zero_()
    assert x._nnz() == 0


def test_recorded_writes_are_differentiated():
    x = DENSE.to_sparse().requires_grad_()
    y = x * 1
    y.mul_(3)
    y.to_dense().sum().backward()
    assert_close(x.grad.to_dense(), 3.0 * (DENSE != 0))


def test_recorded_writes_with_other_entries_are_refused_before_anything_changes():
    x = DENSE.to_sparse().requires_grad_()
    y = x * 1
    with pytest.raises(RuntimeError, match="a recorded write can't change which entries"):
        y.add_(rg.eye(4).to_sparse())
    assert_close(y.to_dense(), DENSE)


def test_dense_tensors_take_sparse_ones_in_place():
    x = rg.ones(4, 4)
    x.add_(DENSE.to_sparse())
    assert_close(x, DENSE + 1)
    x.mul_(DENSE.to_sparse())
    assert_close(x, (DENSE + 1) * DENSE)


def test_a_gradient_accumulates_dense_and_sparse_parts():
    x = DENSE.clone().requires_grad_()
    (x.to_sparse() * 2).sum().backward()
    x.sum().backward()
    assert_close(x.grad, 1 + 2.0 * (DENSE != 0))


def test_sparse_gradients_accumulate_in_grad():
    x = DENSE.to_sparse().requires_grad_()
    for _ in range(2):
        (x @ rg.ones(4, 1)).sum().backward()
    assert_close(x.grad.to_dense(), 2.0 * (DENSE != 0))


# ------------------------------------------------------------------------------------------------------ storing


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("way", [copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x)), "save"])
def test_sparse_tensors_are_copied_pickled_and_saved(layout, way):
    x = in_layout(DENSE, layout)
    if way == "save":
        file = io.BytesIO()
        rg.save({"x": x}, file)
        file.seek(0)
        back = rg.load(file)["x"]
    else:
        back = way(x)
    assert repr(back) == repr(x)
    assert_close(back.to_dense(), DENSE)


# -------------------------------------------------------------------------------------------------- invariants


@pytest.mark.parametrize(
    ("indices", "values", "size", "words"),
    [
        ([[0, 5]], [1.0, 2.0], (3,), "size is inconsistent with indices: for dim 0, size is 3 but found index 5"),
        ([[0, -1]], [1.0, 2.0], (3,), "found negative index -1 for dim 0"),
        ([[0, 1]], [1.0, 2.0, 3.0], None, "indices and values must have same nnz"),
        ([0, 1], [1.0, 2.0], None, "indices must be sparse_dim x nnz"),
        ([[0, 1]], [1.0, 2.0], (3, 4), r"'len\(size\) == sparse_dim \+ dense_dim' is not satisfied"),
    ],
)
def test_wrong_coordinates_are_refused(indices, values, size, words):
    with pytest.raises(RuntimeError, match=words):
        rg.sparse_coo_tensor(indices, values, size, check_invariants=True)


@pytest.mark.parametrize("indices", [[[1, 1]], [[1, 0]]])
def test_entries_that_only_seem_coalesced_are_refused_where_invariants_are_checked(indices):
    assert rg.sparse_coo_tensor(indices, [1.0, 2.0], (2,), is_coalesced=True).is_coalesced()
    with pytest.raises(RuntimeError, match="cannot set is_coalesced to true"):
        rg.sparse_coo_tensor(indices, [1.0, 2.0], (2,), is_coalesced=True, check_invariants=True)
    assert rg.sparse_coo_tensor([[0, 1]], [1.0, 2.0], (2,), is_coalesced=True, check_invariants=True).is_coalesced()


@pytest.mark.parametrize(
    ("rows", "columns", "words"),
    [
        ([0, 1, 4], [2, 0, 2], r"`crow_indices\[..., -1\] == nnz` is not satisfied"),
        ([1, 1, 3], [2, 0, 2], r"`crow_indices\[..., 0\] == 0` is not satisfied"),
        ([0, 1, 3], [2, 2, 0], "are sorted and distinct"),
        ([0, 1, 3], [2, 0, 3], "`0 <= col_indices < 3` is not satisfied"),
        ([0, 4, 3], [2, 0, 2], "is not satisfied"),
    ],
)
def test_wrong_compressed_indices_are_refused(rows, columns, words):
    with pytest.raises(RuntimeError, match=words):
        rg.sparse_csr_tensor(rows, columns, [1.0, 2.0, 3.0], (2, 3), check_invariants=True)


def test_the_switch_turns_checks_on_for_a_block_a_function_and_for_good():
    switch = rg.sparse.check_sparse_tensor_invariants

    def wrong():
        return rg.sparse_coo_tensor([[5]], [1.0], (3,))

    assert wrong().shape == (3,)
    with switch(), pytest.raises(RuntimeError, match="found index 5"):
        wrong()
    with pytest.raises(RuntimeError, match="found index 5"):
        switch()(wrong)()
    switch.enable()
    try:
        assert switch.is_enabled()
        with switch(False):
            wrong()
    finally:
        switch.disable()
    assert not switch.is_enabled()


def test_resizing_keeps_entries_and_never_shrinks():
    x = rg.sparse_coo_tensor([[0, 1]], [1.0, 2.0], (2,))
    assert x.sparse_resize_((4,), 1, 0).to_dense().tolist() == [1, 2, 0, 0]
    with pytest.raises(RuntimeError, match="shrinking the size of sparse dimensions"):
        x.sparse_resize_((1,), 1, 0)
    assert x.sparse_resize_and_clear_((1, 2), 2, 0).to_dense().tolist() == [[0, 0]]

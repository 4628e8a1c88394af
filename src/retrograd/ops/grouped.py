"""Matrix products of groups, whose sizes may differ."""

from itertools import pairwise

from retrograd.core import Tensor, registry
from retrograd.ops.functions import check_tensor, function


@function("nn.functional.grouped_mm")
def grouped_mm(mat_a, mat_b, *, offs=None, bias=None, out_dtype=None) -> Tensor:
    """Return the matrix product of each group: of experts that get different numbers of tokens, for example.

    - mat_a (n, k), mat_b (groups, k, m): rows of mat_a in groups; the result is (n, m).
    - mat_a (groups, n, k), mat_b (k, m): columns of mat_b in groups; the result is (n, m).
    - mat_a (n, k), mat_b (k, m): columns of mat_a and rows of mat_b in groups; the result is (groups, n, m).
    - mat_a (groups, n, k), mat_b (groups, k, m), without `offs`: the products of matrices.

    offs: for each group the index after its last one; the last is the size of the dimension.  out_dtype: the dtype of
    the result.

    Raises ValueError for other dimensions, and offs that do not fit; NotImplementedError for a bias.

    >>> import retrograd as rg
    >>> tokens, experts = rg.ones(3, 2), rg.stack([rg.eye(2), 2 * rg.eye(2)])
    >>> rg.nn.functional.grouped_mm(tokens, experts, offs=rg.tensor([1, 3]))
    tensor([[1., 1.],
            [2., 2.],
            [2., 2.]])
    """
    a, b = check_tensor("grouped_mm", mat_a), check_tensor("grouped_mm", mat_b)
    if bias is not None:
        raise NotImplementedError("grouped_mm: bias is not supported; add it to the result")
    if (a.ndim, b.ndim) not in _PRODUCTS or (offs is None) != (a.ndim == b.ndim == 3):
        raise ValueError(
            f"grouped_mm: expected matrices or stacks of them, with offs unless both are stacks, got {a.shape} and "
            f"{b.shape} {'without' if offs is None else 'with'} offs"
        )
    out = _PRODUCTS[a.ndim, b.ndim](a, b, offs)
    return out if out_dtype is None else out.to(out_dtype)


def _slices(offs, size):
    """Return the (begin, end) of each group."""
    ends = check_tensor("grouped_mm", offs).tolist()
    if not ends or ends[-1] != size or ends != sorted(ends) or ends[0] < 0:
        raise ValueError(f"grouped_mm: offs must increase up to the size {size}, got {ends}")
    return list(pairwise([0, *ends]))


def _check_groups(count, stack):
    if count != stack.shape[0]:
        raise ValueError(f"grouped_mm: there are {count} groups in offs, and {stack.shape[0]} matrices")


def _rows_in_groups(a, b, offs):
    groups = _slices(offs, a.shape[0])
    _check_groups(len(groups), b)
    return registry["cat"]([a[i:j] @ b[n] for n, (i, j) in enumerate(groups)])


def _columns_in_groups(a, b, offs):
    groups = _slices(offs, b.shape[1])
    _check_groups(len(groups), a)
    return registry["cat"]([a[n] @ b[:, i:j] for n, (i, j) in enumerate(groups)], 1)


_PRODUCTS = {
    (2, 3): _rows_in_groups,
    (3, 2): _columns_in_groups,
    (2, 2): lambda a, b, offs: registry["stack"]([a[:, i:j] @ b[i:j] for i, j in _slices(offs, a.shape[1])]),
    (3, 3): lambda a, b, offs: a @ b,
}

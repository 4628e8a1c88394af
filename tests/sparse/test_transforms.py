"""Sparse tensors under the transforms: the results are those of the same computation on dense tensors."""

import pytest

import retrograd as rg
from retrograd.testing import assert_close

INDICES = [[0, 1, 1], [2, 0, 2]]


def matrix(values):
    return rg.sparse_coo_tensor(INDICES, values, (2, 3))


def dense_matrix(values):
    rows, columns = (rg.tensor(part) for part in INDICES)
    return rg.zeros(2, 3, dtype=values.dtype).index_put((rows, columns), values, accumulate=True)


VALUES = rg.tensor([3.0, -4.0, 5.0], dtype=rg.float64)
FACTOR = rg.arange(6.0, dtype=rg.float64).reshape(3, 2) - 2.5
# Each takes the matrix, sparse or dense, and gives a dense tensor.
FUNCTIONS = {
    "dense": lambda x: x.to_dense() * 2,
    "mm": lambda x: x @ FACTOR,
    "mv": lambda x: x @ FACTOR[:, 0],
    "right": lambda x: FACTOR.mT @ x.mT,
    "csr": lambda x: (x.to_sparse_csr() if x.is_sparse else x) @ FACTOR,
    "csc": lambda x: (x.to_sparse_csc() if x.is_sparse else x) @ FACTOR,
    "bsr": lambda x: (x.to_sparse_bsr((1, 3)) if x.is_sparse else x) @ FACTOR,
    "product": lambda x: (x @ x.mT).to_dense(),
    "sin": lambda x: x.sin().to_dense(),
    "times": lambda x: (x * FACTOR.mT).to_dense(),
    "square": lambda x: (x * x + x / 3).to_dense(),
    "sum": lambda x: x.sum(0).to_dense(),
    "all": lambda x: x.sum() * x.square().sum(),
    "row": lambda x: x[1].to_dense(),
    "slices": lambda x: x[:, 1:].to_dense(),
    "cat": lambda x: rg.cat([x, x * 2], 1).to_dense(),
    "rows": lambda x: x.index_select(0, rg.tensor([1, 0, 1])).to_dense(),
    "norm": lambda x: x.norm(),
    "added": lambda x: FACTOR.mT + x,
}


def of_values(f):
    return lambda v: f(matrix(v)), lambda v: f(dense_matrix(v))


@pytest.mark.parametrize("name", FUNCTIONS)
class TestFunctionsOfValues:
    def test_jacobians_are_those_of_dense_tensors(self, name):
        sparse, dense = of_values(FUNCTIONS[name])
        for transform in (rg.func.jacrev, rg.func.jacfwd, rg.func.hessian):
            assert_close(transform(sparse)(VALUES), transform(dense)(VALUES))

    def test_a_batch_is_the_loop(self, name):
        sparse, _ = of_values(FUNCTIONS[name])
        many = rg.stack([VALUES, VALUES * 2, -VALUES])
        assert_close(rg.vmap(sparse)(many), rg.stack([sparse(v) for v in many]))
        jacobian = rg.func.jacrev(sparse)
        assert_close(rg.vmap(jacobian)(many), rg.stack([jacobian(v) for v in many]))

    def test_the_gradient_of_the_matrix_has_its_entries(self, name):
        f = FUNCTIONS[name]
        x = matrix(VALUES).requires_grad_()
        f(x).square().sum().backward()
        assert x.grad.layout is rg.sparse_coo
        full = dense_matrix(VALUES).requires_grad_()
        f(full).square().sum().backward()
        assert_close(x.grad.to_dense(), full.grad * (dense_matrix(VALUES) != 0))

    def test_tangents_are_sparse(self, name):
        f = FUNCTIONS[name]
        out, dot = rg.func.jvp(f, (matrix(VALUES),), (matrix(VALUES * VALUES),))
        expected = rg.func.jvp(f, (dense_matrix(VALUES),), (dense_matrix(VALUES * VALUES),))
        assert_close(out, expected[0])
        assert_close(dot, expected[1])


@pytest.mark.parametrize("layout", ["coo", "csr", "csc"])
def test_a_vmap_that_returns_sparse_tensors_gives_a_batch_of_them(layout):
    def f(v):
        return matrix(v).to_sparse(layout=getattr(rg, f"sparse_{layout}")) * v.sum()

    many = rg.stack([VALUES, VALUES * 2])
    out = rg.vmap(f)(many)
    assert repr(out.layout) == f"retrograd.sparse_{layout}"
    assert_close(out.to_dense(), rg.stack([f(v).to_dense() for v in many]))


def test_a_vmap_over_a_dimension_of_a_sparse_tensor_is_refused():
    with pytest.raises(NotImplementedError, match="can't be mapped over a dimension"):
        rg.vmap(lambda row: row * 2)(matrix(VALUES))


def test_the_jacobian_of_a_sparse_argument_has_its_entries():
    found = rg.func.jacrev(lambda x: x @ FACTOR)(matrix(VALUES))
    assert found.is_sparse
    assert found.shape == (2, 2, 2, 3)
    full = rg.func.jacrev(lambda x: x @ FACTOR)(dense_matrix(VALUES))
    assert_close(found.to_dense(), full * (dense_matrix(VALUES) != 0))


def test_second_derivatives_agree_with_differences():
    def f(v, b):
        return rg.sparse.softmax(matrix(v), 1) @ b

    arguments = VALUES.clone().requires_grad_(), FACTOR.clone().requires_grad_()
    assert rg.autograd.gradcheck(f, arguments)
    assert rg.autograd.gradgradcheck(f, arguments)


def test_forward_mode_levels_take_sparse_tensors():
    with rg.autograd.forward_ad.dual_level():
        x = rg.autograd.forward_ad.make_dual(matrix(VALUES), matrix(VALUES * 3))
        out = rg.autograd.forward_ad.unpack_dual(x @ FACTOR)
    assert_close(out.tangent, 3 * (matrix(VALUES) @ FACTOR))

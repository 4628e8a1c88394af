"""Products of matrices and tensors: dtypes, mismatched shapes, memory order, einsum's notation."""

import itertools

import numpy as np
import pytest

import retrograd as rg
from retrograd.testing import assert_close


@pytest.mark.parametrize("product", [rg.matmul, rg.linear, rg.rows_dot, lambda a, b: rg.einsum("ij,kj", [a, b])])
def test_operands_of_two_dtypes_are_refused(product):
    with pytest.raises(RuntimeError, match="one dtype, got float32 and float64; convert"):
        product(rg.ones(2, 2), rg.ones(2, 2, dtype="float64"))


def test_a_number_is_no_operand_of_matmul():
    for a, b in [(rg.ones(2, 2), 2.0), (2.0, rg.ones(2, 2))]:
        with pytest.raises(ValueError, match="for numbers there is"):
            rg.matmul(a, b)


@pytest.mark.parametrize(("a", "b"), [((3, 4), (3, 4)), ((4,), (3,)), ((3, 4), (5,)), ((2, 3, 4), (5, 6))])
def test_misfits_name_both_shapes(a, b):
    with pytest.raises(ValueError, match="do not fit") as caught:
        rg.matmul(rg.zeros(a), rg.zeros(b))
    assert str(a) in str(caught.value)
    assert str(b) in str(caught.value)


@pytest.mark.parametrize(("a", "b"), [((2, 3, 4), (4, 5)), ((2, 3, 4), (2, 4, 5)), ((6, 2, 3, 4), (4, 5))])
def test_memory_order_of_the_operands_makes_no_difference(a, b, rng):
    a, b = rng.normal(size=a), rng.normal(size=b)
    expected = a @ b
    for x, y in itertools.product((a, np.asfortranarray(a)), (b, np.asfortranarray(b))):
        assert_close(rg.matmul(rg.tensor(x), rg.tensor(y)).numpy(), expected)


@pytest.mark.parametrize("shape", [(0, 4), (3, 0), (2, 0, 4), (0, 3, 0)])
def test_linear_takes_no_rows_and_no_columns(shape):
    x = rg.zeros(shape, requires_grad=True)
    weight = rg.ones(2, shape[-1], requires_grad=True)
    out = rg.linear(x, weight, rg.ones(2))
    assert out.shape == (*shape[:-1], 2)
    gx, gw = rg.autograd.grad(out.sum(), [x, weight])
    assert (gx.shape, gw.shape) == (x.shape, weight.shape)


def test_linear_does_not_write_to_its_operands():
    x, weight, bias = rg.ones(2, 3), rg.ones(4, 3), rg.ones(4)
    rg.linear(x, weight, bias)
    assert (x.sum().item(), weight.sum().item(), bias.sum().item()) == (6, 12, 4)


def test_the_weight_gradient_of_linear_is_of_all_rows_at_once(rng):
    x, w = rng.normal(size=(2, 3, 4)), rng.normal(size=(5, 4))
    weight = rg.tensor(w, requires_grad=True)
    out = rg.linear(rg.tensor(x), weight)
    (g,) = rg.autograd.grad((out * out).sum(), weight)
    assert_close(g.numpy(), np.einsum("abo,abi->oi", 2 * (x @ w.T), x))


@pytest.mark.parametrize("scale", [{}, {"beta": 0}, {"alpha": 3}, {"beta": 2, "alpha": 0.5}])
def test_addmm_scales_both_terms(scale, rng):
    x, a, b = rng.normal(size=2), rng.normal(size=(3, 4)), rng.normal(size=(4, 2))
    expected = scale.get("beta", 1) * x + scale.get("alpha", 1) * (a @ b)
    assert_close(rg.addmm(rg.tensor(x), rg.tensor(a), rg.tensor(b), **scale).numpy(), expected)


def test_a_diagonal_is_a_view_that_can_be_written_to():
    x = rg.zeros(3, 4)
    rg.diagonal(x, 1).add_(1)
    assert x.tolist() == np.eye(3, 4, 1).tolist()


@pytest.mark.parametrize("offset", [-4, -1, 0, 2, 9])
def test_diagonals_off_the_middle(offset, rng):
    x = rng.normal(size=(3, 2, 4))
    assert_close(rg.diagonal(rg.tensor(x), offset, 0, 2).numpy(), np.diagonal(x, offset, 0, 2))


EQUATIONS = [
    ("ij,jk", (3, 4), (4, 2)),
    ("ba", (3, 4)),
    ("ii->i", (3, 3)),
    ("iii->i", (3, 3, 3)),
    ("iji->j", (3, 2, 3)),
    ("ii", (3, 3)),
    ("ij->", (3, 4)),
    ("i,i->", (3,), (3,)),
    ("i,j->ji", (3,), (4,)),
    ("ij,kl->ik", (3, 4), (2, 5)),
    ("...ij,...jk->...ik", (2, 3, 4), (5, 2, 4, 3)),
    ("i...,...i->...", (3, 2), (4, 2, 3)),
    ("b...,b...->...b", (3, 1, 4), (3, 2, 1)),
    ("ij,ij->ij", (1, 4), (3, 4)),
    ("ij,jk,kl->il", (2, 3), (3, 4), (4, 5)),
    ("ij,ik,il->jkl", (5, 2), (5, 3), (5, 4)),
    (" b h q d , b h k d -> b h q k ", (2, 2, 3, 4), (2, 2, 5, 4)),
    (",ij->ji", (), (2, 3)),
    ("ij,jk->ik", (0, 4), (4, 2)),
    ("ij,jk->ik", (3, 0), (0, 2)),
]


@pytest.mark.parametrize("equation", ["i,j->ij", "i,i->i", "i,j->i", "i,j->", ",i->i"])
@pytest.mark.parametrize(("left", "right"), [("int64", "float32"), ("float32", "float64"), ("int32", "float64")])
def test_einsum_without_a_common_sum_promotes_dtypes(equation, left, right, rng):
    a = rg.tensor(rng.normal(size=equation.split(",")[0].count("i") * (3,)) * 9).to(left)
    b = rg.tensor(rng.normal(size=3)).to(right).requires_grad_()
    out = rg.einsum(equation, a, b)
    assert out.dtype == right
    assert_close(out.detach(), rg.einsum(equation, a.to(right), b.detach()))
    (g,) = rg.autograd.grad(out.sum(), b)
    assert g.dtype == right
    assert rg.func.vmap(lambda row: rg.einsum(equation, a, row))(b.detach().reshape(1, 3)).dtype == right


def test_einsum_refuses_to_sum_products_of_two_dtypes():
    with pytest.raises(RuntimeError, match="einsum: operands must have one dtype, got float32 and float64"):
        rg.einsum("ij,jk->ik", rg.ones(2, 3), rg.ones(3, 2, dtype=rg.float64))


@pytest.mark.parametrize("case", EQUATIONS, ids=lambda case: case[0].replace(" ", ""))
def test_einsum_means_what_numpy_means(case, rng):
    equation, *shapes = case
    arrays = [rng.normal(size=s) for s in shapes]
    out = rg.einsum(equation, [rg.tensor(a) for a in arrays])
    assert_close(out.numpy(), np.einsum(equation, *arrays))


@pytest.mark.parametrize("case", EQUATIONS, ids=lambda case: case[0].replace(" ", ""))
def test_the_gradient_of_einsum_is_its_linear_coefficient(case, rng):
    equation, *shapes = case
    arrays = [rng.normal(size=s) for s in shapes]
    direction = rng.normal(size=np.einsum(equation, *arrays).shape)
    for i, array in enumerate(arrays):
        inputs = [rg.tensor(a, requires_grad=k == i) for k, a in enumerate(arrays)]
        (g,) = rg.autograd.grad(rg.einsum(equation, inputs), inputs[i], rg.tensor(direction))
        other = rng.normal(size=array.shape)
        moved = np.einsum(equation, *arrays[:i], other, *arrays[i + 1 :])
        assert_close((g.numpy() * other).sum(), (moved * direction).sum())


@pytest.mark.parametrize(
    ("equation", "shapes", "message"),
    [
        ("ij,jk", [(3, 4), (3, 2)], "j is 4 in operand 0 and 3 in operand 1"),
        ("ii", [(3, 4)], "i is 3 in operand 0 and 4 in operand 0"),
        ("ii", [(1, 4)], "i is 1 in operand 0 and 4 in operand 0"),
        ("ij", [(3,)], "operand 0 has 1 dimensions, its term is 'ij'"),
        ("i", [(3, 4)], "operand 0 has 2 dimensions"),
        ("i,j", [(3,)], "2 terms for 1 operands"),
        ("i->k", [(3,)], "'k' of the result is in no term"),
        ("i->ii", [(3,)], "'i' comes twice in the result"),
        ("i.j", [(3, 3)], "'.' is no letter"),
    ],
)
def test_einsum_says_what_is_wrong_with_an_equation(equation, shapes, message):
    operands = [rg.zeros(s) for s in shapes]
    with pytest.raises(ValueError, match=message):
        rg.einsum(equation, operands)


@pytest.mark.parametrize(("weight", "bias"), [((2, 3), (1,)), ((2, 3), (4, 2)), ((3,), (1,))])
def test_linear_does_not_broadcast_its_bias_or_weight(weight, bias):
    with pytest.raises(ValueError, match=r"linear: x \(4, 3\), weight .* do not fit: expected"):
        rg.linear(rg.ones(4, 3), rg.ones(weight), None if bias is None else rg.ones(bias))

"""Function transforms: values compared with calculus, and every pair of transforms nested."""

import pytest

import retrograd as rg
from retrograd.func import grad, jacfwd, jet, jvp, linearize, vjp


def cubic(x):
    return (x**3).sum()


def test_grad_is_the_derivative():
    assert grad(cubic)(rg.tensor([1.0, 2.0])).tolist() == [3.0, 12.0]


def test_jvp_gives_value_and_derivative_along_the_tangent():
    value, tangent = jvp(lambda x: x**3, (rg.tensor([1.0, 2.0]),), (rg.tensor([1.0, 10.0]),))
    assert (value.tolist(), tangent.tolist()) == ([1.0, 8.0], [3.0, 120.0])


def test_vjp_pulls_cotangents_back_more_than_once():
    value, pull = vjp(lambda x, y: x * y, rg.tensor([2.0]), rg.tensor([5.0]))
    assert value.tolist() == [10.0]
    for _ in range(2):
        assert [g.tolist() for g in pull(rg.ones(1))] == [[5.0], [2.0]]


def forward(f):
    return lambda x: jvp(f, (x,), (rg.ones(x.shape, dtype=x.dtype),))[1]


@pytest.mark.parametrize("outer", [grad, forward])
@pytest.mark.parametrize("inner", [grad, forward])
def test_every_pair_of_transforms_nests(outer, inner):
    def f(x):
        return rg.sin(x) * x

    x = rg.tensor(0.7, dtype=rg.float64)
    expected = 2 * rg.cos(x) - x * rg.sin(x)
    assert float(outer(inner(f))(x)) == pytest.approx(float(expected), rel=1e-12)


def test_perturbations_are_not_confused():
    def f(x):
        return x * forward(lambda y: x + y)(rg.ones(()))

    assert float(forward(f)(rg.tensor(2.0))) == 1.0
    assert float(grad(f)(rg.tensor(2.0))) == 1.0


def test_an_outer_graph_records_the_gradient_that_a_transform_made():
    x = rg.tensor([2.0], requires_grad=True)
    (second,) = rg.autograd.grad(grad(cubic)(x).sum(), x)
    assert second.tolist() == [12.0]


def test_an_inner_no_grad_blocks_and_an_outer_one_does_not():
    x = rg.tensor([2.0])
    with rg.no_grad():
        assert grad(cubic)(x).tolist() == [12.0]

    def quiet(x):
        with rg.no_grad():
            y = x**3
        return (y + x).sum()

    assert grad(quiet)(x).tolist() == [1.0]


def test_an_output_that_does_not_depend_on_the_input_has_zero_derivative():
    assert grad(lambda x: rg.ones(()))(rg.ones(2)).tolist() == [0.0, 0.0]
    assert jvp(lambda x: rg.ones(2), (rg.ones(2),), (rg.ones(2),))[1].tolist() == [0.0, 0.0]


ALONG = {
    "jvp": lambda f, x, t: jvp(f, (x,), (t,))[1],
    "jacfwd": lambda f, x, t: jacfwd(f)(x) @ t.to(f(x).dtype),
    "linearize": lambda f, x, t: linearize(f, x)[1](t),
    "jet": lambda f, x, t: jet(f, (x,), ([t],))[1][0],
}


@pytest.mark.parametrize("name", ALONG)
def test_whole_numbers_have_no_tangent(name):
    x, t = rg.tensor([1.5, 2.0]), rg.tensor([3.0, 4.0])
    along = ALONG[name]
    assert along(lambda x: x.long().float() * x, x, t).tolist() == [3.0, 8.0]
    assert along(lambda x: x.bool().float(), x, t).tolist() == [0.0, 0.0]
    assert along(lambda x: x.long(), x, t).tolist() == [0, 0]


@pytest.mark.parametrize("name", ALONG)
@pytest.mark.parametrize("to_array", [lambda x: rg.tensor([x[0] * 2, x[1]]), lambda x: rg.tensor(x.numpy())])
def test_a_tangent_is_not_lost_in_an_array(name, to_array):
    x = rg.ones(2)
    with pytest.raises(RuntimeError, match=r"has a tangent.*\.detach\(\)\.numpy\(\)"):
        ALONG[name](lambda x: to_array(x) * x, x, x)
    assert ALONG[name](lambda x: to_array(x.detach()) * x, x, x).sum() in (2.0, 3.0)


def test_an_escaped_tensor_is_an_error():
    kept = []
    grad(lambda x: kept.append(x) or cubic(x))(rg.ones(2))
    with pytest.raises(RuntimeError, match="escaped"):
        kept[0] * 2


def test_grad_refuses_an_output_that_is_no_scalar():
    with pytest.raises(RuntimeError, match=r"real scalar, got float32\[2\]"):
        grad(lambda x: x * 2)(rg.ones(2))


def test_a_tangent_of_another_shape_is_refused():
    with pytest.raises(RuntimeError, match="tangent 0"):
        jvp(lambda x: x, (rg.ones(2),), (rg.ones(3),))


def test_a_failing_function_leaves_no_level_active():
    def fails(x):
        raise KeyError

    with pytest.raises(KeyError):
        grad(fails)(rg.ones(2))
    assert (rg.ones(1) * 2).level is None


def test_complex_gradients_are_those_of_autograd():
    def f(z):
        return (z * z.conj()).abs()

    z = rg.tensor(1 + 2j, requires_grad=True)
    assert grad(f)(z).item() == rg.autograd.grad(f(z), z)[0].item() == 2 + 4j
    _, pull = vjp(lambda z: z * (3 - 1j), z)
    assert pull(rg.tensor(1 + 1j))[0].item() == ((1 + 1j) * (3 + 1j))


def test_objects_that_are_no_tensors_are_refused():
    with pytest.raises(RuntimeError, match="float"):
        grad(lambda x: 3.0)(rg.ones(2))
    assert grad(lambda x: x * x)(3.0).item() == 6.0

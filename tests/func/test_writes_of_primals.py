"""Writes of a function to its primals under `jvp`: the caller sees them, with the tangents that they have."""

import pytest

import retrograd as rg
from retrograd.func import grad, grad_and_value, jacfwd, jacrev, jvp, vmap
from retrograd.testing import assert_close

X = [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]


def write_first(x):
    x[:1].mul_(x[1:2])
    return x.sum()


WRITES = {
    "jvp": (lambda x: jvp(write_first, (x,), (rg.ones(2, 3),)), [[4.0, 10.0, 18.0], [4.0, 5.0, 6.0]]),
    "vmap of jvp": (
        vmap(lambda x: jvp(write_first, (x,), (rg.ones(3),))),
        [[2.0, 2.0, 3.0], [20.0, 5.0, 6.0]],
    ),
    "jvp of vmap": (lambda x: jvp(vmap(write_first), (x,), (rg.ones(2, 3),)), [[2.0, 2.0, 3.0], [20.0, 5.0, 6.0]]),
    "jvp of jvp": (
        lambda x: jvp(lambda x: jvp(write_first, (x,), (rg.ones(2, 3),)), (x,), (rg.ones(2, 3),)),
        [[4.0, 10.0, 18.0], [4.0, 5.0, 6.0]],
    ),
    "to a view of the caller's": (
        lambda x: jvp(lambda v: v.mul_(2), (x[1],), (rg.ones(3),)),
        [[1.0, 2.0, 3.0], [8.0, 10.0, 12.0]],
    ),
}


@pytest.mark.parametrize("name", WRITES)
def test_the_caller_sees_what_the_function_wrote(name):
    call, expected = WRITES[name]
    x = rg.tensor(X)
    call(x)
    assert x.tolist() == expected


def test_a_function_that_fails_changes_nothing():
    def fail(x):
        x.mul_(2)
        raise KeyError("x")

    x = rg.tensor(X)
    with pytest.raises(KeyError):
        jvp(fail, (x,), (rg.ones(2, 3),))
    assert x.tolist() == X


def test_the_derivative_includes_the_write():
    value, along = jvp(write_first, (rg.tensor(X),), (rg.ones(2, 3),))
    assert_close(value, rg.tensor(47.0))
    assert_close(along, rg.tensor(24.0))  # the sum of x0 + x1, and 3 for the second row


def scale(v, w):
    """Write to the second argument; the derivative by the first one is what the second one was before."""
    return w.mul_(v)


@pytest.mark.parametrize(
    "derivative",
    [
        lambda v, w: grad(lambda v, w: scale(v, w).sum())(v, w),
        lambda v, w: grad_and_value(lambda v, w: scale(v, w).sum())(v, w)[0],
        lambda v, w: jacrev(scale)(v, w).diagonal(),
        lambda v, w: jacrev(scale, chunk_size=1)(v, w).diagonal(),
        lambda v, w: jacfwd(scale)(v, w).diagonal(),
        lambda v, w: vmap(grad(lambda v, w: scale(v, w).sum()))(v, w),
        lambda v, w: jvp(lambda w: grad(lambda v, w: scale(v, w).sum())(v, w), (w,), (rg.ones(3),))[0],
    ],
)
def test_a_write_to_another_argument_does_not_change_the_derivative(derivative):
    v, w = rg.tensor([1.0, 2.0, 3.0]), rg.tensor([5.0, 6.0, 7.0])
    assert derivative(v, w).tolist() == [5.0, 6.0, 7.0]
    assert w.tolist() == [5.0, 12.0, 21.0]

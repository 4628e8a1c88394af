"""The graph of a transform is freed when it returns, not when the garbage collector runs."""

import gc

import pytest

import retrograd as rg
from retrograd import func
from retrograd.autograd import functional

W, V = rg.linspace(-1, 1, 16).reshape(4, 4), rg.linspace(0, 1, 4)
RAGGED = rg.nested.nested_tensor([rg.ones(2, 4), rg.ones(3, 4)], layout=rg.jagged)


def curve(x):
    return (W @ x).tanh()


def height(x):
    return curve(x).sum()


TRANSFORMS = {  # of a function from vectors to vectors
    "grad": lambda f: func.grad(lambda x: f(x).sum()),
    "vjp": lambda f: lambda x: func.vjp(f, x)[1](f(x))[0],
    "jvp": lambda f: lambda x: func.jvp(f, (x,), (x,))[1],
    "vmap": lambda f: lambda x: func.vmap(f)(rg.stack([x, x]))[0],
    "jacrev": lambda f: lambda x: func.jacrev(f)(x).sum(0),
    "jacfwd": lambda f: lambda x: func.jacfwd(f)(x).sum(0),
    "linearize": lambda f: lambda x: func.linearize(f, x)[1](x),
    "functionalize": func.functionalize,
    "jet": lambda f: lambda x: func.jet(f, (x,), ((x,),))[1][0],
    "checkpoint": lambda f: lambda x: rg.utils.checkpoint.checkpoint(f, x, use_reentrant=False),
}
CALLS = {
    "hessian": lambda: func.hessian(height)(V),
    "hessian of two arguments": lambda: func.hessian(lambda x, y: height(x * y), (0, 1))(V, V),
    "grad with aux": lambda: func.grad(lambda x: (height(x), x * x), has_aux=True)(V),
    "grad_and_value with aux": lambda: func.grad_and_value(lambda x: (height(x), x * x), has_aux=True)(V),
    "vjp with aux": lambda: func.vjp(lambda x: (curve(x), x * x), V, has_aux=True)[1](V),
    "jvp with aux": lambda: func.jvp(lambda x: (curve(x), x * x), (V,), (V,), has_aux=True),
    "jacrev with aux": lambda: func.jacrev(lambda x: (curve(x), x * x), has_aux=True)(V),
    "jacfwd with aux": lambda: func.jacfwd(lambda x: (curve(x), x * x), has_aux=True)(V),
    "jacobian of ragged arguments": lambda: func.jacrev(lambda x: (x * x).values().sum())(RAGGED),
    "jacobian by columns of ragged arguments": lambda: func.jacfwd(lambda x: (x * x).values().sum())(RAGGED),
    "functional.jacobian": lambda: functional.jacobian(curve, V),
    "functional.hessian": lambda: functional.hessian(height, V),
    "functional.hvp": lambda: functional.hvp(height, V, V),
    "functional.jvp": lambda: functional.jvp(curve, V, V),
}


def leftovers(call):
    """Return the tensors that one call leaves to the garbage collector."""
    call()
    gc.collect()
    flags = gc.get_debug()
    gc.disable()
    try:
        call()
        gc.set_debug(gc.DEBUG_SAVEALL)
        gc.collect()
        return [x for x in gc.garbage if isinstance(x, rg.Tensor)]
    finally:
        gc.set_debug(flags)
        gc.garbage.clear()
        gc.enable()


def test_the_check_finds_a_cycle():
    def call():
        x = rg.ones(2, requires_grad=True)
        cycle = [x]
        cycle.append(cycle)

    assert leftovers(call)


@pytest.mark.parametrize("outer", TRANSFORMS)
@pytest.mark.parametrize("inner", TRANSFORMS)
def test_nested_transforms_leave_no_tensors_to_the_garbage_collector(outer, inner):
    run = TRANSFORMS[outer](TRANSFORMS[inner](curve))
    assert not leftovers(lambda: run(V))


@pytest.mark.parametrize("name", CALLS)
def test_derivatives_leave_no_tensors_to_the_garbage_collector(name):
    assert not leftovers(CALLS[name])

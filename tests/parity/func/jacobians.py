"""Parity cases of jacrev, jacfwd, hessian."""

from .common import integers, mixing, x
from .derivatives import in_mode, stale_view, tree


def outer(a, b):
    return a[:, None] * b


def both_ways(name, case):
    """Return a case of either Jacobian."""
    return {f"{kind} {name}": lambda m, kind=kind: case(m, getattr(m.func, kind)) for kind in ("jacrev", "jacfwd")}


def two(m):
    return x(m, 2), x(m, 3, seed=2)


EITHER = {
    "of a vector": lambda m, jac: jac(mixing(m))(x(m, 3)),
    "of a scalar": lambda m, jac: jac(m.sin)(x(m)),
    "of a matrix": lambda m, jac: jac(lambda v: (v * v).sum(0))(x(m, 2, 3)),
    "of float32": lambda m, jac: jac(m.sin)(x(m, 3, dtype="float32")),
    "of a tree to a tree": lambda m, jac: jac(lambda d: {"s": d["a"] * 2, "t": [d["b"][0].sum()]})(tree(m)),
    "argnums 1": lambda m, jac: jac(outer, 1)(*two(m)),
    "argnums -1": lambda m, jac: jac(outer, -1)(*two(m)),
    "argnums (0, 1)": lambda m, jac: jac(outer, (0, 1))(*two(m)),
    "argnums (1, 0)": lambda m, jac: jac(outer, (1, 0))(*two(m)),
    "argnums (0,)": lambda m, jac: jac(outer, (0,))(*two(m)),
    "argnums (-1, 0)": lambda m, jac: jac(outer, (-1, 0))(*two(m)),
    "argnums ()": lambda m, jac: jac(outer, ())(*two(m)),
    "argnums (0, 0)": lambda m, jac: jac(outer, (0, 0))(*two(m)),
    "argnums (0, -2)": lambda m, jac: jac(outer, (0, -2))(*two(m)),
    "argnums 2 of 2": lambda m, jac: jac(outer, 2)(*two(m)),
    "argnums -3 of 2": lambda m, jac: jac(outer, -3)(*two(m)),
    "argnums 0.0": lambda m, jac: jac(outer, 0.0)(*two(m)),
    "argnums (0.0,)": lambda m, jac: jac(outer, (0.0,))(*two(m)),
    "argnums [0]": lambda m, jac: jac(outer, [0])(*two(m)),
    "several outputs": lambda m, jac: jac(lambda v: (v.sum(), v[:2] * v[2], v.reshape(3, 1)))(x(m, 3)),
    "has_aux": lambda m, jac: jac(lambda v: (v**2, {"aux": v * 2, "n": (v.sum(),)}), has_aux=True)(x(m, 3)),
    "has_aux without aux": lambda m, jac: jac(m.sin, has_aux=True)(x(m, 3)),
    "a constant output": lambda m, jac: jac(lambda v: m.ones(2, dtype=m.float64))(x(m, 3)),
    "a constant among the outputs": lambda m, jac: jac(lambda v: (v, m.ones(2, dtype=m.float64)))(x(m, 3)),
    "an argument without effect": lambda m, jac: jac(lambda a, b: a * 2, (0, 1))(x(m, 3), x(m, 2)),
    "the argument itself": lambda m, jac: jac(lambda v: v)(x(m, 3)),
    "the argument twice": lambda m, jac: jac(lambda v: (v, v))(x(m, 2)),
    "no outputs": lambda m, jac: jac(lambda v: v[:0])(x(m, 3)),
    "no inputs": lambda m, jac: jac(lambda v: v.sum() * m.ones(2, dtype=m.float64))(x(m, 0)),
    "no inputs, no outputs": lambda m, jac: jac(m.sin)(x(m, 0)),
    "an output that is no tensor": lambda m, jac: jac(lambda v: 3.0)(x(m, 3)),
    "an output None": lambda m, jac: jac(lambda v: None)(x(m, 3)),
    "an empty output": lambda m, jac: jac(lambda v: ())(x(m, 3)),
    "a complex input": lambda m, jac: jac(m.sin)(x(m, 3, dtype="complex128")),
    "a complex output": lambda m, jac: jac(lambda v: v * 1j)(x(m, 3)),
    "complex inside": lambda m, jac: jac(lambda v: (v * (1 + 2j)).abs())(x(m, 3)),
    "an integer input": lambda m, jac: jac(lambda v: v * 2)(integers(m, 3)),
    "a float input": lambda m, jac: jac(lambda v: v * 2)(3.0),
    "an integer aside": lambda m, jac: jac(lambda v, n: v * n)(x(m, 3), integers(m, 3)),
    "a keyword": lambda m, jac: jac(outer)(x(m, 2), b=x(m, 3)),
    "in no_grad": lambda m, jac: in_mode(m.no_grad, lambda: jac(m.sin)(x(m, 3))),
    "no_grad inside": lambda m, jac: jac(lambda v: in_mode(m.no_grad, lambda: v * v) * v)(x(m, 3)),
    "a closure": lambda m, jac: closure(m, jac),
    "a graph below": lambda m, jac: graph_below(m, jac),
    "written inside": lambda m, jac: jac(lambda v: v.clone().mul_(v).add_(v))(x(m, 3)),
    "a stale view": lambda m, jac: jac(lambda v: stale_view(m, v))(x(m, 3)),
    "of the other": lambda m, jac: jac(m.func.jacrev(mixing(m)))(x(m, 3)),
    "of the other one": lambda m, jac: jac(m.func.jacfwd(mixing(m)))(x(m, 3)),
    "in vmap": lambda m, jac: m.func.vmap(jac(mixing(m)))(x(m, 4, 3)),
    "of vmap": lambda m, jac: jac(m.func.vmap(mixing(m)))(x(m, 2, 3)),
    "of softmax": lambda m, jac: jac(lambda v: m.softmax(v, -1))(x(m, 2, 3)),
    "of a product of matrices": lambda m, jac: jac(m.matmul)(x(m, 2, 3), x(m, 3, 2)),
    "of einsum": lambda m, jac: jac(lambda a, b: m.einsum("ij,jk->ki", a, b), (0, 1))(x(m, 2, 3), x(m, 3, 2)),
    "of mixed dtypes": lambda m, jac: jac(lambda a, b: a.double() * b, (0, 1))(x(m, 2, dtype="float32"), x(m, 2)),
}


def closure(m, jac):
    w = x(m, 3, seed=3)
    return jac(lambda v: m.sin(v) * w)(x(m, 3))


def graph_below(m, jac):
    v = x(m, 3).requires_grad_()
    return m.autograd.grad((jac(mixing(m))(v) ** 2).sum(), v)


JACOBIANS = {
    **{name: case for short, both in EITHER.items() for name, case in both_ways(short, both).items()},
    "jacrev chunk_size 1": lambda m: m.func.jacrev(mixing(m), chunk_size=1)(x(m, 3)),
    "jacrev chunk_size 2": lambda m: m.func.jacrev(lambda v: (v, v.sum(), v * v), chunk_size=2)(x(m, 3)),
    "jacrev chunk_size 100": lambda m: m.func.jacrev(mixing(m), chunk_size=100)(x(m, 3)),
    "jacrev chunk_size 0": lambda m: m.func.jacrev(mixing(m), chunk_size=0)(x(m, 3)),
    "jacrev chunk_size -1": lambda m: m.func.jacrev(mixing(m), chunk_size=-1)(x(m, 3)),
    "jacrev chunk_size 1 of a tree": lambda m: m.func.jacrev(
        lambda d: {"s": d["a"] * 2, "t": [d["b"][0].sum()]}, chunk_size=1
    )(tree(m)),
    "jacrev chunk_size preallocated": lambda m: m.func.jacrev(mixing(m), chunk_size=2, _preallocate_and_copy=True)(
        x(m, 3)
    ),
    "jacfwd randomness": lambda m: m.func.jacfwd(lambda v: v * m.rand(3), randomness="same")(x(m, 3)).shape,
    "jacfwd randomness error": lambda m: m.func.jacfwd(lambda v: v * m.rand(3))(x(m, 3)).shape,
    "jacfwd randomness wrong": lambda m: m.func.jacfwd(mixing(m), randomness="some")(x(m, 3)),
    "jacrev of random numbers": lambda m: m.func.jacrev(lambda v: v * m.rand(3))(x(m, 3)).shape,
    "hessian": lambda m: m.func.hessian(lambda v: mixing(m)(v).sum())(x(m, 3)),
    "hessian of a vector function": lambda m: m.func.hessian(mixing(m))(x(m, 3)),
    "hessian argnums": lambda m: m.func.hessian(lambda a, b: (a * b * b).sum(), 1)(x(m, 2), x(m, 2, seed=2)),
    "hessian of two arguments": lambda m: m.func.hessian(lambda a, b: (a[:2] * b * b).sum(), (0, 1))(
        x(m, 3), x(m, 2, seed=2)
    ),
    "hessian of a tree": lambda m: m.func.hessian(lambda d: (d["a"] ** 2 * d["b"][0]).sum())(tree(m)),
    "hessian of a linear function": lambda m: m.func.hessian(lambda v: v.sum())(x(m, 3)),
    "hessian of a constant": lambda m: m.func.hessian(lambda v: m.ones((), dtype=m.float64))(x(m, 3)),
    "hessian in vmap": lambda m: m.func.vmap(m.func.hessian(lambda v: mixing(m)(v).sum()))(x(m, 4, 3)),
    "hessian argnums wrong": lambda m: m.func.hessian(mixing(m), 3)(x(m, 3)),
    "hessian of complex numbers": lambda m: m.func.hessian(m.sin)(x(m, 3, dtype="complex128")),
    "hessian times a vector, forward over reverse": lambda m: m.func.jvp(
        m.func.grad(lambda v: mixing(m)(v).sum()), (x(m, 3),), (x(m, 3, seed=4),)
    ),
    "hessian times a vector, reverse over forward": lambda m: m.func.grad(
        lambda v: m.func.jvp(lambda w: mixing(m)(w).sum(), (v,), (x(m, 3, seed=4),))[1]
    )(x(m, 3)),
    "hessian times a vector, reverse over reverse": lambda m: m.func.vjp(
        m.func.grad(lambda v: mixing(m)(v).sum()), x(m, 3)
    )[1](x(m, 3, seed=4)),
}

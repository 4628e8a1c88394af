"""Parity cases of nested transforms, two and three deep, on functions from vectors to vectors."""

from itertools import product

from .common import x

FUNCTIONS = {
    "sin": lambda m: lambda v: m.sin(v) * v.sum(),
    "quotient": lambda m: lambda v: v / (1.5 + (v * v).sum()),
    "view": lambda m: lambda v: m.cat([v[1:] * v[:2], m.exp(v[:1])]),
}


def _grad(m, f):
    return m.func.grad(lambda v: f(v).sum())


def _vjp(m, f):
    def half_vjp(v):
        out, pull = m.func.vjp(f, v)
        return pull(m.ones_like(out) * 0.5)[0]

    return half_vjp


def _jvp(m, f):
    return lambda v: m.func.jvp(f, (v,), (m.ones_like(v) * 0.5,))[1]


def _vmap(m, f):
    return lambda v: m.func.vmap(f, 1, -1)(m.stack([v, v * 2], -1)).sum(-1)


def _jacrev(m, f):
    return lambda v: m.func.jacrev(f)(v).sum(0)


def _jacfwd(m, f):
    return lambda v: m.func.jacfwd(f)(v).sum(1)


def _hessian(m, f):
    return lambda v: m.func.hessian(lambda w: f(w).sum())(v).sum(0)


SIX = {"grad": _grad, "vjp": _vjp, "jvp": _jvp, "vmap": _vmap, "jacrev": _jacrev, "jacfwd": _jacfwd}
SEVEN = {**SIX, "hessian": _hessian}


def nested(transforms):
    """Return the case of transforms, the outermost first, on all functions."""

    def case(m):
        found = []
        for function in FUNCTIONS.values():
            f = function(m)
            for name in reversed(transforms):
                f = SEVEN[name](m, f)
            found.append(f(x(m, 3)))
        return found

    return case


PAIRS = {" of ".join(names): nested(names) for names in product(SEVEN, repeat=2)}
TRIPLES = {" of ".join(names): nested(names) for names in product(SIX, repeat=3)}

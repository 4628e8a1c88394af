"""Components of nested tensors, and comparison of functions of nested tensors with a loop over the components."""

from collections.abc import Callable, Iterator

import numpy as np

import retrograd as rg
from retrograd.core import Tensor
from retrograd.nested import nested_tensor
from retrograd.nested.buffer_layout import get_layout, is_nested
from retrograd.nested.components import components, nest

rng = np.random.default_rng(3)


def leaf(*shape: int) -> Tensor:
    return rg.tensor(rng.standard_normal(shape), requires_grad=True)


def leaves(shapes: list, lead: tuple = ()) -> list[Tensor]:
    return [leaf(*lead, *shape) for shape in shapes]


def rows(*after: int) -> list[Tensor]:
    """Return components with one ragged dimension, one of them empty."""
    return leaves([(n, *after) for n in (3, 1, 0, 4)])


def images(*after: int) -> list[Tensor]:
    return leaves([(h, w, *after) for h, w in ((3, 2), (1, 4), (2, 2))])


def numbers(x: Tensor) -> np.ndarray:
    return x.detach().numpy()


def check(f: Callable, parts: list[Tensor], lead: int = 0) -> None:
    """Check values and derivatives of a function of a nested tensor against each component, as a batch of one."""
    outs = as_tuple(f(nest(parts, lead)))
    each = [as_tuple(f(rg.unsqueeze(part, lead))) for part in parts]
    found, expected = [], []
    for k, out in enumerate(outs):
        assert is_nested(out)
        found += components(out)
        expected += [rg.select(one[k], get_layout(out).lead, 0) for one in each]
    agree(found, expected, parts)


def assert_close(found: Tensor, expected: Tensor) -> None:
    """Check that tensors have one shape and the same values, up to rounding."""
    assert found.shape == expected.shape
    np.testing.assert_allclose(numbers(found), numbers(expected), rtol=1e-10, atol=1e-12)


def assert_is_the_loop(f: Callable, x: Tensor) -> None:
    """Check that f of a nested tensor is nested, and is f of each component as a batch of one."""
    out = f(x)
    assert is_nested(out)
    for found, c in zip(components(out), components(x), strict=True):
        assert_close(found, f(c.unsqueeze(0))[0])


def rounded(shapes: list, seed: int = 0) -> Tensor:
    """Return a nested tensor of components with these shapes, of numbers with one decimal, so that some are equal."""
    r = np.random.default_rng(seed)
    return nested_tensor([rg.tensor(np.round(r.standard_normal(s), 1)) for s in shapes])


def check_examples(f: Callable) -> None:
    """Check that `vmap` of f over a batch of nested tensors is f of each."""
    x = nest(leaves([(3, 6), (1, 6), (2, 6)], (2,)), 1).detach()
    for out, one in zip(rg.func.vmap(f)(x).unbind(0), x.unbind(0), strict=True):
        for a, b in zip(components(out), components(f(one)), strict=True):
            np.testing.assert_array_equal(numbers(a), numbers(b))


def as_tuple(out: Tensor | tuple) -> tuple:
    return out if isinstance(out, tuple) else (out,)


def agree(found: list[Tensor], expected: list[Tensor], xs: list[Tensor]) -> None:
    """Check that tensors have the same values, and the same derivatives with respect to xs."""
    assert [f.shape for f in found] == [e.shape for e in expected]
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_array_equal(numbers(a), numbers(b))
    for a, b in zip(derivatives(found, xs), derivatives(expected, xs), strict=True):
        np.testing.assert_allclose(numbers(a), numbers(b))


def derivatives(outs: list[Tensor], xs: list[Tensor]) -> Iterator[Tensor]:
    """Yield derivatives of the first and of the second order."""
    weights = np.random.default_rng(0)
    total = sum((o**3 * rg.tensor(weights.standard_normal(o.shape))).sum() for o in outs)
    first = rg.autograd.grad(total, xs, create_graph=True)
    yield from first
    yield from rg.autograd.grad(sum((g * g).sum() for g in first), xs, retain_graph=True)

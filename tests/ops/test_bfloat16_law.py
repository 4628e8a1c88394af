"""`retrograd.testing.bfloat16_law`: it holds for right gradients, however small, and not for those 2 % off."""

import numpy as np
import pytest

import retrograd as rg
from retrograd.core import registry
from retrograd.testing import bfloat16_law, samples_of

from ..tables import failures

# Operators and values at which the derivatives are far below 1.
SMALL = [
    ("sigmoid", ([-5.0, -6.0, -7.0],), {}),
    ("cos", ([1e-3, 2e-3, -3e-3],), {}),
    ("exp", ([-6.0, -7.0, -5.0],), {}),
    ("reciprocal", ([30.0, -50.0, 40.0],), {}),
    ("mul", ([0.5, 2.0, 1.0], [1e-4, 2e-4, 3e-4]), {}),
    ("log", ([100.0, 200.0, 300.0],), {}),
    ("softmax", ([-8.0, -7.0, 1.0],), {"dim": 0, "dtype": None}),
    ("sinh", ([1e-3, 2e-3, 3e-3],), {}),
]


def scaled(factor, monkeypatch):
    """Scale the gradients of bfloat16 inputs."""
    pull = bfloat16_law.pull

    def scaled_pull(f, xs, gs):
        found = pull(f, xs, gs)
        return tuple(g if g is None or g.dtype != rg.bfloat16 else (g.float() * factor).bfloat16() for g in found)

    monkeypatch.setattr(bfloat16_law, "pull", scaled_pull)


@pytest.mark.parametrize(("name", "args", "params"), SMALL, ids=lambda v: v if isinstance(v, str) else "")
def test_a_small_gradient_that_is_two_percent_off_is_found(name, args, params, monkeypatch):
    args = tuple(rg.tensor(np.array(a), dtype=rg.float64) for a in args)
    bfloat16_law.law_bfloat16(registry[name], args, params)
    for factor in (1.02, 0.98):
        with monkeypatch.context() as patch:
            scaled(factor, patch)
            with pytest.raises(AssertionError, match=f"{name}: the cotangent"):
                bfloat16_law.law_bfloat16(registry[name], args, params)


def test_gradients_of_ordinary_operators_that_are_two_percent_off_are_found(monkeypatch):
    scaled(1.02, monkeypatch)
    for name in ("add", "sub", "div", "matmul", "exp", "sin", "sqrt", "reshape", "permute", "where", "cumsum", "log"):
        found = failures(bfloat16_law.law_bfloat16, registry[name], samples_of(registry[name]))
        assert any(f"{name}: the cotangent" in str(failure) for failure in found), name

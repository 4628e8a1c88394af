"""In-place operators write the same values at every stride as their out-of-place forms return."""

import numpy as np
import pytest

import retrograd as rg
from retrograd.core import registry
from retrograd.core.schema import REQUIRED
from retrograd.ops.family import Pointwise

STRIDES = [*range(1, 18), 24, 32, 64, 128, -1, -2, -4, -8, -16]
DTYPES = ("float32", "float64", "complex64", "complex128")


def operands(operator):
    """Return the number of operands of an operator that needs no other arguments and draws nothing; else None."""
    required = [p for p in operator.schema.parameters if p.default is REQUIRED]
    drawn = operator.random
    return len(required) if all(p.is_tensor for p in required) and not drawn else None


NAMES = [
    name
    for name, operator in registry.items()
    if issubclass(operator.definition, Pointwise) and hasattr(rg.Tensor, f"{name}_") and operands(operator) in (1, 2)
]


def strided(step, dtype, rng):
    """Return nine elements at a stride, among others."""
    values = rng.uniform(0.1, 0.9, 9 * abs(step))
    return rg.from_numpy(values.astype(dtype)[::step])


@np.errstate(invalid="ignore")  # acosh of numbers below 1 is NaN
@pytest.mark.parametrize("name", NAMES)
def test_a_write_at_any_stride_is_that_of_contiguous_memory(name, rng):
    operator, others = registry[name], operands(registry[name]) - 1
    for dtype in DTYPES:
        for step in STRIDES:
            x = strided(step, dtype, rng)
            rest = [rg.from_numpy(rng.uniform(0.1, 0.9, 9).astype(dtype)) for _ in range(others)]
            try:
                expected = operator(x.contiguous(), *rest)
            except TypeError:  # of real numbers only
                break
            if expected.dtype != x.dtype:
                break
            getattr(x, f"{name}_")(*rest)
            assert np.allclose(x.numpy(), expected.numpy(), rtol=1e-6, equal_nan=True), (dtype, step)


def test_the_operators_are_found():
    assert {"neg", "sin", "add", "atan2", "sigmoid"} <= set(NAMES)

"""Operators compared with NumPy and SciPy: `ORACLES[name](*inputs, **params)` takes float64 arrays.

Each file in `families` contains the reference implementations for some modules of operators.
"""

import numpy as np
import pytest

import retrograd.ops
import retrograd.pipelining  # noqa: F401  (registers its operator)
from retrograd.core import Tensor, registry
from retrograd.testing import assert_close, run, samples_of

from ..tables import merged, operators_on_arrays

ORACLES = merged("ops.families", "ORACLES")
WITHOUT = merged("ops.families", "WITHOUT")  # operator: why it is compared with nothing


def test_every_operator_has_an_oracle_or_a_reason():
    ours = {name for name in operators_on_arrays() if "::" not in name}  # examples in docstrings define operators too
    assert ours - set(ORACLES) == set(WITHOUT)
    assert set(ORACLES) - ours == set()


@pytest.mark.parametrize("name", sorted(set(ORACLES) & set(registry)))
def test_forward_is_the_oracle(name):
    for args, params in samples_of(registry[name]):
        arrays = [a.value if isinstance(a, Tensor) else a for a in args]
        expected = ORACLES[name](*arrays, **params)
        expected = expected if isinstance(expected, (tuple, list)) else [expected]
        for out, e in zip(run(registry[name], args, params), expected, strict=True):
            single = out.dtype.itemsize < 8 and out.dtype.kind == "f"
            assert_close(
                out.value,
                np.asarray(e).astype(out.dtype),
                *((1e-6, 1e-6) if single else (1e-12, 1e-12)),
                equal_nan=True,
            )

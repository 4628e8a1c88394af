"""For tests: closeness of tensors, random inputs, and the laws that every operator is held to.

A law is a function `law_<name>(op, args, params)` that raises AssertionError where it does not hold; `LAWS`
lists them and `samples_of` yields what to hold them on, so that an operator of your own is tested in a loop:

>>> from retrograd.core import registry
>>> for args, params in samples_of(registry["mul"]):
...     for law in LAWS.values():
...         law(registry["mul"], args, params)
"""

from retrograd.testing.calculus import difference, pull, push, run, seeded
from retrograd.testing.closeness import assert_allclose, assert_close
from retrograd.testing.laws import LAWS
from retrograd.testing.make_tensor import make_tensor
from retrograd.testing.opcheck import OpCheckError, opcheck
from retrograd.testing.sampler import Sampler, errors_of, exemptions_of, samples_of

__all__ = [
    "LAWS",
    "OpCheckError",
    "Sampler",
    "assert_allclose",
    "assert_close",
    "difference",
    "errors_of",
    "exemptions_of",
    "make_tensor",
    "opcheck",
    "pull",
    "push",
    "run",
    "samples_of",
    "seeded",
]

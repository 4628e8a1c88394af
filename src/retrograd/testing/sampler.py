"""Random inputs, and the samples that operators define."""

from collections.abc import Iterator
from zlib import crc32

import numpy as np

from retrograd.core import Op, Tensor
from retrograd.ops.as_tensor import as_tensor


class Sampler:
    """A seeded source of inputs, the `r` of an operator's `samples(r)`.

    >>> r = Sampler(0)
    >>> r(2, 3).aval, r.ints(4, (2,)).aval, r.booleans(3).aval
    (float64[2, 3], int64[2], bool[3])
    """

    def __init__(self, seed: int = 0):
        self._rng = np.random.default_rng(seed)

    def __call__(self, *shape: int, within: tuple[float, float] = (-2.0, 2.0)) -> Tensor:
        """Return a float64 tensor of values in `within`: none near 0, no two closer than a quarter of their mean gap.

        So differences around a sample cross no tie of `amax` or `sort` and no kink of `abs`.
        """
        n = int(np.prod(shape))
        places = (self._rng.permutation(n) + self._rng.uniform(0.125, 0.875, n)) / max(n, 1)
        values = within[0] + (within[1] - within[0]) * places
        values += np.where(np.abs(values) < 0.01, np.copysign(0.01, values), 0.0)
        return as_tensor(values.reshape(shape))

    def ints(self, high: int, shape: tuple[int, ...] | int) -> Tensor:
        """Return an int64 tensor of values in [0, high)."""
        return as_tensor(np.asarray(self._rng.integers(0, high, shape), np.int64))

    def booleans(self, *shape: int) -> Tensor:
        """Return a boolean tensor, half of it true (rounded up)."""
        n = int(np.prod(shape))
        return as_tensor(self._rng.permutation(np.arange(n) % 2 == 0).reshape(shape))


Sample = tuple[tuple, dict]


def samples_of(op: Op) -> Iterator[Sample]:
    """Return the samples of an operator as `(inputs, params)`: inputs flat, params complete; the same in every run.

    A TypeError names an operator without samples.
    """
    source = getattr(op.definition, "samples", None)
    if source is None:
        raise TypeError(f"{op.name}: no samples; define samples(r) in the operator")
    for args, params in source(Sampler(crc32(op.name.encode()))):
        yield op.schema.bind((), {**op.schema.group(args), **params})


def exemptions_of(op: Op) -> dict[str, str]:
    """Return the laws that are not checked for an operator, and why."""
    return {law: why for laws, why in op.definition.exempt.items() for law in laws.split()}


def errors_of(op: Op) -> list[tuple]:
    """Return the calls that must fail, as `(inputs, params, exception, pattern)`."""
    source = getattr(op.definition, "errors", None)
    return [] if source is None else list(source(Sampler(crc32(op.name.encode()))))

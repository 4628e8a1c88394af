"""Elementwise operators compute each element of a large array as they compute it in a small one.

From some sizes on, kernels in other forms, in several threads and in cached memory take over.
"""

import numpy as np
import pytest

import retrograd as rg
from retrograd import kernels
from retrograd.core import Tensor, registry
from retrograd.ops.family import Pointwise
from retrograd.testing import run, samples_of

from ..case_groups import group_cases
from ..tables import operators_on_arrays

LARGE, SMALL = 70_001, 500  # beyond the least sizes of threads, and below those of all forms
NUMBERS = (2.0, 3, -1, 0.5, -0.5, 2.5, -2.0, 0.0)
OPERATORS = [
    n for n in operators_on_arrays() if issubclass(registry[n].definition, Pointwise) and not registry[n].random
]
SPECIAL = (0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0)


@pytest.fixture(params=[1, 2], ids=["one thread", "two threads"])
def threads(request):
    before = kernels.get_num_threads()
    kernels.set_num_threads(request.param)
    yield request.param
    kernels.set_num_threads(before)


def stretched(x, place):
    """Return a large tensor of the dtype of x: all kinds of floats, or the numbers of x again."""
    random = np.random.default_rng(place)
    if x.dtype.kind != "f":
        return rg.from_numpy(random.choice(x.numpy().reshape(-1), LARGE))
    values = random.standard_normal(LARGE) * np.exp2(random.integers(-4, 5, LARGE))
    values[random.integers(0, LARGE, 200)] = random.choice(SPECIAL, 200)
    return rg.from_numpy(values.astype(np.float32))


def calls(op):
    """Yield the arguments of calls on large arrays: each sample, and each with numbers as the second operand."""
    for args, params in samples_of(op):
        large = [stretched(a, i) if isinstance(a, Tensor) else a for i, a in enumerate(args)]
        yield large, params
        if len(args) == 2 and isinstance(args[0], Tensor) and args[0].dtype.kind == "f":
            yield from (([large[0], number], params) for number in NUMBERS)


def part(args, start):
    return tuple([a[start : start + SMALL] if isinstance(a, Tensor) else a for a in args])


@group_cases
@pytest.mark.parametrize("name", OPERATORS)
def test_elements_of_large_arrays_are_those_of_small_ones(name, threads):
    op = registry[name]
    with np.errstate(all="ignore"):
        for args, params in calls(op):
            try:
                small = [run(op, part(args, start), params)[0] for start in range(0, LARGE, SMALL)]
            except (TypeError, RuntimeError, NotImplementedError):  # an operand that the operator refuses
                continue
            large = run(op, tuple(args), params)[0]
            expected, found = rg.cat(small).numpy(), large.numpy()
            assert found.dtype == expected.dtype
            differ = np.flatnonzero((found != expected) & ~((found != found) & (expected != expected)))
            shown = [(a[i].item() if isinstance(a, Tensor) else a) for i in differ[:1].tolist() for a in args]
            assert not differ.size, (len(differ), shown, params)

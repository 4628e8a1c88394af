"""Helpers of the tests of checkpoints: a checkpointed call, functions that count, a Function that saves."""

import functools

import pytest

BOTH = pytest.mark.parametrize("reentrant", [False, True])


def run(m, function, *args, reentrant=False, **options):
    """Run a checkpointed call."""
    return m.utils.checkpoint.checkpoint(function, *args, use_reentrant=reentrant, **options)


def counting_calls(function):
    """Return a function that counts its calls in `.calls`."""

    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        wrapper.calls += 1
        return function(*args, **kwargs)

    wrapper.calls = 0
    return wrapper


def block(x):
    """Compute something that saves tensors."""
    return (x.sin() * x).exp()

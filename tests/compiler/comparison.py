"""Comparison of compiled with eager runs: everything that the caller can observe."""

import copy
import warnings

import numpy as np

import retrograd as rg
from retrograd.core import Tensor


def observe(value):
    """Return what the caller sees of a result: bits, strides, version, position in the graph."""
    if isinstance(value, Tensor):
        array = value.detach().numpy()
        view = None if value._view is None else [op.name for op, _ in value._view.chain]
        return (array.tobytes(), array.shape, array.dtype.str, array.strides, value._version, value.requires_grad, view)
    if isinstance(value, tuple | list):
        return type(value), [observe(member) for member in value]
    if isinstance(value, dict):
        return {key: observe(member) for key, member in value.items()}
    return value


def state_of(tensors):
    """Return the bits and versions of tensors and their gradients."""
    return [(observe(t), None if t.grad is None else observe(t.grad)) for t in tensors]


def classifier_step(model, optimizer):
    """Return a training step of a model whose outputs are scores of classes."""

    def step(x, y):
        optimizer.zero_grad()
        loss = rg.nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss.detach()

    return step


def runs(make, arguments, compiled, calls=4):
    """Return what is observed of repeated calls: `make()` gives a function, and the tensors that it may change."""
    rg.manual_seed(0)
    function, tensors = make()
    called = rg.compile(function) if compiled else function
    rg.manual_seed(1)
    seen = []
    for i in range(calls):
        args = copy.deepcopy(arguments(i))
        result = called(*args)
        seen.append((observe(result), state_of(tensors), [observe(a) for a in args]))
    if compiled:
        assert called.programs, called
    return [*seen, str(rg.get_rng_state())]


def assert_same_runs(make, arguments, calls=4):
    """Check that compiled calls give the bits of eager ones, with all effects."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        expected = runs(make, arguments, False, calls)
        actual = runs(make, arguments, True, calls)
    for number, (a, b) in enumerate(zip(actual, expected, strict=True)):
        assert a == b, f"call {number} differs"


def numbers(*shape, seed=0):
    """Return a float32 tensor of random numbers."""
    return rg.from_numpy(np.random.default_rng(seed).standard_normal(shape).astype(np.float32))

"""Results share memory with an input, or are it, where PyTorch's are: every operator, on several layouts."""

import warnings
from functools import cache

import numpy as np
import pytest
import torch

import retrograd as rg
from retrograd.core import registry
from retrograd.testing import run, samples_of

from ..tables import merged
from .conftest import to_torch
from .test_ops_parity import NAMES, cast
from .test_writes_parity import direct

REFUSALS = (RuntimeError, TypeError, ValueError, IndexError, NotImplementedError, ZeroDivisionError, AssertionError)
# (operator, what): why only ours "shares" memory, only ours "copies", or only one of the two is the input ("identity").
ALIASES = merged("parity.families", "ALIASES")


def spread_out(a):
    """Return the same values with gaps between them."""
    if not a.ndim:
        return a.copy()
    view = np.zeros([2 * s for s in a.shape], a.dtype)[(slice(None, None, 2),) * a.ndim]
    view[...] = a
    return view


def expanded(a):
    """Return the first entry along the first dimension, repeated by a stride of zero."""
    return np.broadcast_to(a[:1].copy(), a.shape) if a.ndim else a.copy()


LAYOUTS = {
    "float64": (np.ascontiguousarray, np.asfortranarray, spread_out, expanded),
    "complex128": (np.ascontiguousarray,),
    "int64": (np.ascontiguousarray,),
}
SHAPES = (lambda a: a[:1] if a.ndim else a, lambda a: a.reshape(-1), lambda a: a.reshape(-1)[0])


def neutral(value, shapes):
    """Return values of a parameter for which the operator may have nothing to do."""
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, int):
        return [0, 1, -1]
    if isinstance(value, tuple) and value and all(isinstance(v, int) for v in value):
        return [(0,) * len(value), (1,) * len(value), (-1,) * len(value), *shapes]
    if value is None:
        return [0, 1, np.dtype("float64")]
    return [np.dtype("float64"), np.dtype("complex128")] if isinstance(value, np.dtype) else []


def variants(args, params):
    """Yield a sample, and the same with each parameter neutral."""
    yield args, params
    shapes = [a.shape for a in args if isinstance(a, rg.Tensor)]
    for key, value in params.items():
        yield from ((args, {**params, key: other}) for other in neutral(value, shapes))


def reshaped(args, change):
    """Return the arguments with tensors of other shapes."""
    return tuple(rg.tensor(change(a.numpy())) if isinstance(a, rg.Tensor) and a.numel() else a for a in args)


def calls(name):
    """Yield the samples of an operator, also of other shapes, and with neutral parameters."""
    for args, params in samples_of(registry[name]):
        for other in (args, *(reshaped(args, change) for change in SHAPES)):
            yield from variants(other, params)


def converted(args, dtype, layout):
    """Return the arguments as arrays of a dtype and layout."""
    arrays = []
    for a in args:
        if isinstance(a, rg.Tensor):
            a = np.rint(a.numpy().real).astype(dtype) if dtype == "int64" else cast((a,), dtype)[0].numpy()
            a = layout(np.asarray(a)).reshape(a.shape) if not a.ndim else layout(a)
        arrays.append(a)
    return arrays


def run_both(name, arrays, params):
    """Return the inputs and results of both; None if one of the two refuses the call."""
    ours = tuple(rg.as_tensor(a) if isinstance(a, np.ndarray) else a for a in arrays)
    theirs = tuple(torch.from_numpy(a.copy(order="K")) if isinstance(a, np.ndarray) else a for a in arrays)
    theirs = tuple(_like(t, a) if isinstance(a, np.ndarray) else t for t, a in zip(theirs, arrays, strict=True))
    try:
        outs = run(registry[name], ours, params)
        return ours, outs, theirs, direct(name, theirs, {k: to_torch(v) for k, v in params.items()})
    except REFUSALS:
        return None


def _like(tensor, array):
    """Return a tensor with the strides of an array, in memory of its own."""
    strides = [s // array.itemsize for s in array.strides]
    size = 1 + sum((n - 1) * s for n, s in zip(array.shape, strides, strict=True)) if array.size else 0
    out = torch.zeros(size, dtype=tensor.dtype).as_strided(array.shape, strides)
    return out if 0 in strides else out.copy_(tensor)


def compared(ours, outs, theirs, results):
    """Yield how each pair of an input and a result differs: "shares" (only ours does), "copies" or "identity"."""
    for a, b in zip(ours, theirs, strict=True):
        for x, y in zip(outs, results, strict=False):
            if not isinstance(a, rg.Tensor) or not isinstance(y, torch.Tensor) or not x.numel() or not a.numel():
                continue
            mine = np.shares_memory(x.numpy(), a.numpy())
            its = y.untyped_storage().data_ptr() == b.untyped_storage().data_ptr()
            if mine != its:
                yield "shares" if mine else "copies"
            elif (x is a) != (y is b):
                yield "identity"


@cache
def differences(name):
    """Return the differences of an operator, with the first case of each."""
    found = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for args, params in calls(name):
            for dtype, layouts in LAYOUTS.items():
                for layout in layouts:
                    both = run_both(name, converted(args, dtype, layout), params)
                    for what in compared(*both) if both else ():
                        shapes = [getattr(a, "shape", a) for a in args]
                        found.setdefault(what, f"{shapes} {dtype} {layout.__name__} {params}")
    return found


@pytest.mark.parametrize("name", NAMES)
def test_memory_is_shared_where_pytorch_shares_it(name):
    unexpected = {what: case for what, case in differences(name).items() if (name, what) not in ALIASES}
    assert not unexpected


def test_known_differences_of_memory_are_still_there():
    for name, what in ALIASES:
        assert what in differences(name), f"{name}, {what}: they agree, delete it in ALIASES"


# ----------------------------------------------------------------------------------------------- methods


def _methods():
    """Yield the methods of both libraries' tensors that take no argument and return a tensor."""
    for name in sorted(set(dir(rg.Tensor)) & set(dir(torch.Tensor))):
        if not name.endswith("_") and not name.startswith("_") and callable(getattr(torch.Tensor, name)):
            yield name


METHODS = list(_methods())
FOLLOWING = {"adjoint", "conj"}  # copies that follow their tensor, where PyTorch's show its memory
ARGUMENTS = {
    "to": [("float64",), ("float32",)], "type_as": ["self"], "view_as": ["self"], "expand_as": ["self"],
    "reshape_as": ["self"],
}  # fmt: skip


def answers(m, name, array):
    """Yield per call of a method whether it returns its tensor or shares memory with it; None if it is refused."""
    for given in ARGUMENTS.get(name, [()]):
        x = rg.as_tensor(array.copy()) if m is rg else torch.from_numpy(array.copy())
        args = (x,) if given == "self" else [getattr(m, a) for a in given]
        try:
            y = getattr(x, name)(*args)
        except (*REFUSALS, AttributeError):
            yield None
            continue
        if not isinstance(y, m.Tensor) or y.layout != m.strided:
            yield None
        elif m is rg:
            yield y is x, np.shares_memory(y.numpy(force=True), x.numpy())
        else:
            yield y is x, y.untyped_storage().data_ptr() == x.untyped_storage().data_ptr()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", METHODS)
def test_methods_answer_the_tensor_itself_or_a_view_where_pytorch_does(name):
    for dtype in ("float64", "float32", "complex128", "int64", "bool"):
        for shape in ((2, 2), (3,), ()):
            array = np.ones(shape, dtype)
            for mine, its in zip(answers(rg, name, array), answers(torch, name, array), strict=True):
                if name in FOLLOWING and dtype == "complex128":
                    assert mine in (None, (False, False)), "it shows the memory: delete it in FOLLOWING"
                elif mine is not None and its is not None:
                    assert mine == its, f"{dtype} {shape}: (is itself, shares memory) is {mine}, PyTorch's {its}"

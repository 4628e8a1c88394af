"""Methods of tensors take each argument of PyTorch's by name and position; listed differences have reasons."""

import inspect

import pytest
import torch

import retrograd as rg

from .tensor_signatures import BY_KEYWORD, DIFFERENCES, REASONS

REFUSED = ("unexpected keyword argument", "multiple values for")


def overloads(name):
    """Return the schemas of a method, without those that write to `out`."""
    schemas = torch._C._jit_get_schemas_for_operator(f"aten::{name}")
    methods = [s for s in schemas if s.arguments and s.arguments[0].name == "self"]
    return [s for s in methods if not any(a.is_out for a in s.arguments)]


def is_method(name):
    functions = getattr(torch.Tensor, name, None), getattr(rg.Tensor, name, None)
    return all(callable(f) for f in functions) and bool(overloads(name))


METHODS = [name for name in dir(torch.Tensor) if not name.startswith("_") and is_method(name)]


def is_accepted(name, argument):
    """Return whether our method knows an argument by its name; its value need not fit."""
    try:
        getattr(rg.ones(2, 2), name)(**{argument: None})
    except Exception as error:
        return not any(words in str(error) for words in REFUSED)
    return True


def refused(name):
    """Return the names of the arguments of PyTorch's overloads that our method does not know."""
    arguments = {a.name for schema in overloads(name) for a in schema.arguments[1:] if _is_for_python(name, a.name)}
    return sorted(a for a in arguments if not is_accepted(name, a))


def _is_for_python(name, argument):
    """Return whether PyTorch has the argument in Python too: some overloads are for C++ or for its compiler."""
    try:
        getattr(torch.ones(2, 2), name)(**{argument: object()})
    except Exception as error:
        return argument in str(error) and "unexpected keyword" not in str(error)
    return True


@pytest.mark.parametrize("name", METHODS)
def test_a_method_knows_the_names_of_pytorchs_arguments(name):
    assert refused(name) == DIFFERENCES.get(name, [])


def parameters(name):
    """Return the parameters of our method after the tensor, and PyTorch's for each overload by position."""
    ours = list(inspect.signature(getattr(rg.Tensor, name)).parameters.values())[1:]
    return ours, [[a for a in schema.arguments[1:] if not a.kwarg_only] for schema in overloads(name)]


def takes_position(ours, position, argument):
    """Return whether ours takes an argument at a position, and has a default there if PyTorch has."""
    if any(p.kind is p.VAR_POSITIONAL for p in ours[: position + 1]):
        return True
    if position >= len(ours) or ours[position].kind is inspect.Parameter.KEYWORD_ONLY:
        return False
    return ours[position].default is not inspect.Parameter.empty or not argument.has_default_value()


@pytest.mark.parametrize("name", METHODS)
def test_a_method_takes_arguments_at_pytorchs_positions_and_with_defaults_where_it_has_them(name):
    ours, theirs = parameters(name)
    refused = {a.name for arguments in theirs for i, a in enumerate(arguments) if not takes_position(ours, i, a)}
    assert refused <= BY_KEYWORD.keys()


@pytest.mark.parametrize("name", METHODS)
def test_the_defaults_of_a_method_are_pytorchs(name):
    defaults = {p.name: p.default for p in parameters(name)[0] if p.default not in (p.empty, None)}
    for schema in overloads(name):
        for a in schema.arguments[1:]:
            theirs = a.default_value if a.has_default_value() else None
            if theirs is None or a.name not in defaults or a.name == "memory_format" or (name, a.name) == ("norm", "p"):
                continue  # no default to compare; formats are objects; "fro" of norm is p=2
            ours = defaults[a.name]
            assert (list(ours) if isinstance(ours, tuple) else ours) == theirs, a.name


CALLS = [
    "x.view(size=(2, 3))", "x.view(size=[3, -1])", "x.view(size=())", "x.view(dtype=m.int32)", "x.view(2, size=(3,))",
    "x.view(size=(2, 3), dtype=m.int32)", "x.resize_(size=(2,))", "x.resize_(2, size=(2,))", "x.resize_()",
    "x.new_empty(size=(2, 3))", "x.new_empty(2, size=(2,))", "m.empty(size=(2,))", "m.empty(2, size=(2,))",
    "x.reshape(shape=(2, 3))", "x.expand(size=(2, 6))", "x.repeat(repeats=(2,))", "x.permute(dims=(0,))",
    "x.flip(dims=(0,))", "x.tile(dims=(2,))", "x.new_full(size=(2,), fill_value=1.0)", "x.transpose(dim0=0, dim1=0)",
    "x.new_zeros(size=(2,))", "x.new_ones(size=(2,))", "x.roll(shifts=1, dims=0)", "x.unflatten(dim=0, sizes=(2, 3))",
    "x.histogram().hist", "x.sum_to_size(size=(1,))", "x.broadcast_to(size=(2, 6))",
    "x.as_strided(size=(2,), stride=(1,))",
    "x.split_with_sizes(split_sizes=(2, 4))[1]", "x.narrow(dim=0, start=1, length=2)", "x.swapdims(dim0=0, dim1=0)",
]  # fmt: skip


def shape_or_error(m, call):
    try:
        return list(eval(call, {"m": m, "x": m.arange(6.0)}).shape)
    except (TypeError, RuntimeError) as error:
        return [c for c in (TypeError, RuntimeError) if isinstance(error, c)]


@pytest.mark.parametrize("call", CALLS)
def test_a_call_by_keywords_gives_pytorchs_shape_or_error(call):
    assert shape_or_error(rg, call) == shape_or_error(torch, call)


def test_every_difference_is_that_of_a_method_and_has_a_reason():
    assert DIFFERENCES.keys() <= {*METHODS}
    assert {*REASONS} == {argument for names in DIFFERENCES.values() for argument in names}
    assert len(METHODS) > 500

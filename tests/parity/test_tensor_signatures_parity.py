"""Methods of tensors take each argument of PyTorch's overloads by its name; listed differences have reasons."""

import pytest
import torch

import retrograd as rg

from .tensor_signatures import DIFFERENCES, REASONS

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


def test_every_difference_is_that_of_a_method_and_has_a_reason():
    assert DIFFERENCES.keys() <= {*METHODS}
    assert {*REASONS} == {argument for names in DIFFERENCES.values() for argument in names}
    assert len(METHODS) > 500

"""Operators of one input have a faster way on the ground; its results are those of the general function."""

import copy
import pickle

import numpy as np
import pytest

from retrograd import manual_seed
from retrograd.core import Aval, Tensor, call, registry
from retrograd.core.dispatch import call_fast
from retrograd.testing import samples_of

from ..case_groups import group_cases

UNARY = sorted(name for name, op in registry.items() if op.unary and hasattr(op.definition, "samples"))


def described(x):
    """Return everything that a result's further use depends on."""
    if not isinstance(x, Tensor) or type(x.value) is not np.ndarray:
        return type(x)
    node = None if x.grad_fn is None else (x.grad_fn.name(), len(x.grad_fn.next_functions))
    view = x._is_view()
    return x.aval, x.value.tobytes(), x.value.flags.c_contiguous, x.requires_grad, node, view, x._version


@group_cases
@pytest.mark.parametrize("name", UNARY)
@pytest.mark.parametrize("requires_grad", [False, True])
def test_an_operator_of_one_input_gives_what_the_general_function_gives(name, requires_grad):
    op = registry[name]
    for (x,), params in samples_of(op):
        if requires_grad and isinstance(x, Tensor) and x.is_floating_point():
            x = x.detach().requires_grad_()
        given = op.params | params
        results = []
        for function in call_fast, call:
            manual_seed(0)
            results.append(described(function(op, (x,), given)))
        assert results[0] == results[1]


def test_avals_can_be_copied_and_pickled():
    aval = Aval((2, 3), "float32")
    assert copy.deepcopy(aval) == pickle.loads(pickle.dumps(aval)) == aval

"""Wrong arguments of every public operator raise one of the documented errors, the same at each call."""

import re
import warnings

import numpy as np
import pytest

import retrograd as rg
from retrograd.core import registry
from retrograd.testing import samples_of

from ..case_groups import group_cases
from ..tables import operators_on_arrays

EXPECTED = (TypeError, ValueError, IndexError, RuntimeError, ZeroDivisionError, OverflowError)
WRONG = {
    "None": None,
    "a string": "no",
    "a float": 2.5,
    "a complex number": 1j,
    "a bool": True,
    "a list": [1, 2],
    "a dict": {},
    "another shape": rg.ones(7, 5, 3),
    "an array of strings": np.array(["a", "b"]),
}


def outcome(op, given):
    """Return the type and the message of the error of a call, or None."""
    try:
        op(**given)
    except EXPECTED as error:
        return type(error), re.sub(" at 0x[0-9a-f]+", "", str(error))
    return None


@group_cases
@pytest.mark.parametrize("name", [n for n in operators_on_arrays() if registry[n].public_names])
def test_a_wrong_argument_gives_the_same_error_twice(name):
    op = registry[name]
    args, params = next(iter(samples_of(op)))
    given = {**op.schema.group(args), **params}
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for key in given:
            for wrong in WRONG.values():
                first = outcome(op, {**given, key: wrong})
                assert outcome(op, {**given, key: wrong}) == first

"""Custom operators compared with both APIs of torch.library: values, gradients, versions, and kinds of errors."""

import pytest

from .library import formulas, pairs, schemas, scopes, writes
from .programs import assert_agreement, cases

TABLES = {
    "pair": pairs.PAIRS,
    "formula": formulas.FORMULAS,
    "call": formulas.CALLS,
    "write": writes.WRITES,
    "schema": schemas.SCHEMAS,
    "bad schema": schemas.BAD,
    "inferred": schemas.INFERRED,
    "scope": scopes.SCOPES,
}
CASES = cases(TABLES)

ARGUMENTS = "arguments that do not fit are a TypeError, as with all operators, and Python's functions"
SCHEMA = "a default that the argument can't have is an error of the schema"
HISTORY = "what is written to is in the history of the graph; PyTorch's gradients are those of before the write"

# Where the results differ: the outcome of ours, the kind of error or "answers", and why.
DEVIATIONS: dict[str, tuple[str, str]] = {
    "bad schema: (Tensor x, int n='a') -> Tensor": ("ValueError", SCHEMA),
    "call: None for a tensor": ("TypeError", ARGUMENTS),
    "call: too few results": ("RuntimeError", "as with all results that are not as the schema says"),
    "pair: a formula for what returns nothing": ("RuntimeError", "it can be defined, and has no formula"),
    "formula: None for a list": ("answers", "None for a list is None for each of its members"),
    "write: a leaf that requires grad": ("RuntimeError", HISTORY),
    "write: a tensor with a history": ("RuntimeError", HISTORY),
    "scope: a schema without a name": ("ValueError", "a name is missing, whatever else the schema is"),
    "scope: a formula for what is not defined": ("RuntimeError", "the kind of error that register_fake has"),
}


@pytest.mark.parametrize("name", CASES)
def test_it_agrees_with_torch(name):
    assert_agreement(CASES[name], DEVIATIONS.get(name))


def test_every_deviation_is_one_of_a_case():
    assert DEVIATIONS.keys() <= CASES.keys()

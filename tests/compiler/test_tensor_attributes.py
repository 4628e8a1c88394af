"""Compiled functions notice changes of the attributes that users set on tensors."""

import warnings

import pytest

import retrograd as rg

WEIGHT = rg.ones(2)


def run(function, x, changes):
    """Return the results of compiled calls, each after a change of the tensor, and of eager ones."""
    found = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that it runs eagerly
        for f in (function, rg.compile(function)):
            for tensor in {id(t): t for t in (x, WEIGHT)}.values():
                vars(tensor).clear()
            results = [f(x).tolist(), f(x).tolist()]
            for change in changes:
                change(x)
                change(WEIGHT)
                results += [f(x).tolist(), f(x).tolist(), sorted(vars(x).items())]
            found.append(results)
    return found


def add_mark(x):
    x.mark = 1
    return x * 2


def count(x):
    x.count = getattr(x, "count", 0) + 1
    return x * x.count


FUNCTIONS = {
    "of an argument": lambda x: x * getattr(x, "scale", 1.0),
    "of a tensor from outside": lambda x: x * getattr(WEIGHT, "scale", 1.0),
    "of a result": lambda x: scaled(x).scale,
    "that the function sets": add_mark,
    "that the function counts": count,
}


def scaled(x):
    y = x + 1
    y.scale = y * 3
    return y


@pytest.mark.parametrize("name", FUNCTIONS)
def test_attributes_of_tensors_are_guarded(name):
    changes = (
        lambda x: setattr(x, "scale", 2.0),
        lambda x: setattr(x, "scale", 3.0),
        lambda x: setattr(x, "other", 4.0),
        lambda x: delattr(x, "scale"),
    )
    eager, compiled = run(FUNCTIONS[name], rg.ones(2), changes)
    assert compiled == eager

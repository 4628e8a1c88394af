"""Operators on segments of a buffer satisfy the laws of all operators and agree with NumPy on each component."""

import numpy as np
import pytest

import retrograd as rg
from retrograd.backend import segments as kernels
from retrograd.backend.ragged import Structure
from retrograd.core import registry
from retrograd.testing import LAWS, samples_of

from ..case_groups import group_cases
from ..tables import hold

SEGMENTS = ("retrograd.nested.rules.segment_reduce", "retrograd.nested.rules.segment_scan")
NAMES = [name for name, operator in sorted(registry.items()) if operator.definition.__module__ in SEGMENTS]
REFUSED_BY_ANOTHER = {"nested.local_rows", "nested.segment_select", "nested.segment_argreduce"}  # whose kernel they run


@group_cases
@pytest.mark.parametrize("law", [law for law in LAWS if law != "nested"])  # they take the buffers
@pytest.mark.parametrize("name", NAMES)
def test_law(law, name):
    if law != "complex" or name not in REFUSED_BY_ANOTHER:
        hold(LAWS[law], registry[name], list(samples_of(registry[name])))


def softmax(x, axis):
    powers = np.exp(x - x.max(axis, keepdims=True, initial=-np.inf))
    return powers / powers.sum(axis, keepdims=True)


OF_EACH = {
    "segment_sum": lambda x, axis: x.sum(axis, keepdims=True),
    "segment_prod": lambda x, axis: x.prod(axis, keepdims=True),
    "segment_logsumexp": lambda x, axis: np.log(np.exp(x).sum(axis, keepdims=True)),
    "segment_softmax": softmax,
    "segment_log_softmax": lambda x, axis: np.log(softmax(x, axis)),
    "segment_cumsum": lambda x, axis: x.cumsum(axis),
    "segment_logcumsumexp": lambda x, axis: np.log(np.exp(x).cumsum(axis)),
}


@group_cases
@pytest.mark.parametrize("name", OF_EACH)
@pytest.mark.parametrize("lengths", [[2, 0, 3], [0, 0], [900, 0, 5, 700]], ids=["small", "empty", "large"])
@pytest.mark.parametrize("row", [0, 1, 2])
def test_each_component_by_itself(name, lengths, row):
    structure = Structure(np.array(lengths)[:, None])
    shape = [3, 4, 9]
    shape[row] = structure.rows
    x = np.random.default_rng(0).standard_normal(shape)
    found = registry[f"nested.{name}"](rg.tensor(x), structure=structure, row=row).numpy()
    parts = np.split(x, structure.offsets[1:-1], axis=row)
    with np.errstate(divide="ignore"):
        expected = np.concatenate([OF_EACH[name](p, row) for p in parts], axis=row)
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)


def test_a_recurrence_restarts_in_each_component():
    structure = Structure(np.array([[2], [0], [3]]))
    b, a = np.random.default_rng(0).standard_normal((2, 5))
    found = registry["nested.segment_recurrence"](rg.tensor(b), rg.tensor(a), structure=structure, row=0, reverse=False)
    expected = []
    for i in range(5):
        expected.append(b[i] + (0 if i in (0, 2) else a[i] * expected[-1]))
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-12)


def test_rows_that_are_not_those_of_the_structure_are_refused():
    structure = Structure(np.array([[2], [3]]))
    with pytest.raises(ValueError, match=r"nested.segment_select: shape \(4,\) has 4 rows, the structure 5"):
        registry["nested.segment_select"](
            rg.ones(4), operator="amax", structure=structure, row=0, params={"keepdim": True}
        )


def test_groups_of_rows_are_known_by_the_sizes_that_are_preserved():
    groups, left = kernels.group_rows(Structure(np.array([[2, 3], [1, 4]])), 1)
    assert groups.sizes.tolist() == [[3], [3], [4]]
    assert left.sizes.tolist() == [[2], [1]]


def test_continued_rows_are_those_that_are_not_at_an_end_of_their_component():
    structure = Structure(np.array([[2], [0], [3], [0]]))
    assert kernels.has_neighbor_row(structure, False).tolist() == [False, True, False, True, True]
    assert kernels.has_neighbor_row(structure, True).tolist() == [True, False, True, True, False]

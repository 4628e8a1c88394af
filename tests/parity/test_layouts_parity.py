"""Operators on transposed and on expanded operands: where PyTorch's result is contiguous, so is ours."""

import warnings
from contextlib import suppress
from itertools import islice

import pytest
import torch

from .operator_database.conversion import UnavailableError
from .operator_database.entries import counterpart, entries
from .operator_database.layouts import LAYOUTS, compare_layouts

SAMPLES = 12  # of each entry, the first ones: those after differ in values, not in shapes
TESTED = [
    name
    for name, entry in entries().items()
    if counterpart(entry) is not None and entry.dtypes & {torch.float64, torch.int64}
]

_GAPS = "as_strided takes memory without gaps, and refuses the tensors that repeat theirs by name"
_TRACKED = "results that share memory are views here, so that writes to them give correct gradients"
_WRITES = "max_norm scales rows of the weight in place, and every write to an expanded tensor is refused"

# Entries whose results differ, and why.
DIFFERENT = {
    "as_strided": _GAPS,
    "as_strided_copy": _GAPS,
    "as_strided_scatter": _GAPS,
    "nn.functional.embedding": _WRITES,
    "nn.functional.embedding_bag": _WRITES,
    **dict.fromkeys(("resize_", "unsafe_chunk", "unsafe_split"), _TRACKED),
    "double": "contiguous_format is obeyed; PyTorch returns the transposed tensor itself where the dtype is the same",
    "masked.prod": "a reduction of a number without a mask is a new tensor, as all reductions are",
}


def differences(name):
    """Return the differences, for each layout of each sample."""
    entry = entries()[name]
    dtype = torch.float64 if torch.float64 in entry.dtypes else torch.int64
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # samples of some entries call functions that PyTorch deprecates
        samples = list(islice(entry.sample_inputs("cpu", dtype, requires_grad=False), SAMPLES))
    found = []
    for sample in samples:
        for layout in LAYOUTS:
            with suppress(UnavailableError):
                message = compare_layouts(entry, sample, layout)
                found += [f"{layout}: {message}"] if message is not None else []
    return found


@pytest.mark.parametrize("name", [name for name in TESTED if name not in DIFFERENT])
def test_results_of_operands_in_other_layouts_are_contiguous_where_pytorchs_are(name):
    found = differences(name)
    assert not found, "\n".join(found)


@pytest.mark.parametrize("name", DIFFERENT)
def test_exemptions_are_needed(name):
    assert differences(name)

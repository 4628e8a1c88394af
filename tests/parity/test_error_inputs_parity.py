"""Error inputs of PyTorch's operator database are refused here too: by name and class, before anything has changed."""

import re

import pytest

from .operator_database.error_inputs import bad_calls, with_bad_calls

ENTRIES = with_bad_calls()

# Texts of PyTorch's errors where ours supports more, and why that is right.
MORE = {
    r"must be Tensor, not int|got \(int, (int|Tensor)\)|doesn't apply to a 'int' object"
    r"|'int' object has no attribute": (
        "operators take Python numbers wherever they take tensors, as NumPy's functions do"
    ),
    r"[Ee]xpected out tensor to have dtype|for argument 'out'|expects Long tensor out": (
        "out= converts to each dtype that can hold the result, as most of PyTorch's operators do"
    ),
    r"some elements of the input tensor and the written-to tensor refer to a single memory location": (
        "the whole result is computed before out= is written, so that its elements may be operands"
    ),
    r"non-batch dimension.* 0 |0 dim batch size for input": ("images without channels have a result without elements"),
    r"start must be an 0-dim integral Tensor": ("an argument of a wrong type is a TypeError, as mostly in PyTorch"),
}


def faults(name, exempt=MORE):
    """Return the faults of our errors for an entry, except for calls that PyTorch refuses for an exempt reason."""
    calls = [call for call in bad_calls(name) if not any(re.search(said, str(call.theirs)) for said in exempt)]
    return [fault for call in calls if (fault := call.fault())]


@pytest.mark.parametrize("name", ENTRIES)
def test_bad_calls_are_refused_by_name_and_class_before_anything_has_changed(name):
    wrong = faults(name)
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("said", MORE)
def test_exemptions_are_needed(said):
    others = [other for other in MORE if other != said]
    assert any(faults(name, others) for name in ENTRIES)


def test_most_bad_calls_are_tested():
    calls = [call for name in ENTRIES for call in bad_calls(name)]
    assert len(calls) > 600

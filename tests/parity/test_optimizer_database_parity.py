"""Every entry of PyTorch's optimizer database takes the same steps here, and refuses the same arguments."""

import re

import pytest

from .optimizer_database import ENTRIES, bad_inputs, differences, programs

pytestmark = pytest.mark.filterwarnings("ignore")

_FUSED = "ours does more: `fused` chooses between implementations of PyTorch, and has no effect here"
_NUMBERS = "ours does more: numbers may be tensors wherever they may be floats"

# Differences that stay: (entry, aspect) -> reason, for programs whose text the pattern finds.
EXEMPT = {
    **{(name, "error", "fused.*(complex|sparse)"): _FUSED for name in ("Adagrad", "Adam", "AdamW", "SGD")},
    ("LBFGS", "state", ""): "PyTorch keeps `al`, which it writes before it reads it",
}
# Error inputs that are refused with another class, in other words, or not: the description in the database -> reason.
OTHERS = {
    "a param group cannot have duplicate parameters": "PyTorch warns that it will be an error; here it is one",
    "lr as Tensor doesn't work with foreach & not capturable": _NUMBERS,
    "betas must be either both floats or both Tensors": _NUMBERS,
    r"betas\[0\] as a Tensor is not supported for capturable=False and foreach=True": _NUMBERS,
    "only support `original` and `match_rms_adamw`": "our message lists the functions",
}


def is_exempt(name, aspect, program):
    return any((name, aspect) == (entry, kind) and re.search(pattern, str(program)) for entry, kind, pattern in EXEMPT)


@pytest.mark.parametrize("name", ENTRIES)
def test_every_program_takes_the_steps_of_pytorch(name):
    found = [
        f"{program}: {aspect}: {message}"
        for program in programs(name)
        for aspect, message in differences(program).items()
        if not is_exempt(name, aspect, program)
    ]
    assert not found, f"{len(found)} differences:\n" + "\n".join(found[:20])


@pytest.mark.parametrize(("name", "aspect", "pattern"), EXEMPT)
def test_exemptions_are_needed(name, aspect, pattern):
    chosen = [program for program in programs(name) if re.search(pattern, str(program))]
    assert any(aspect in differences(program) for program in chosen)


@pytest.mark.parametrize("name", ENTRIES)
def test_error_inputs_are_refused_with_the_class_and_the_words_of_pytorch(name):
    wrong = [
        f"{one.description}: {one.theirs!r}, ours {one.ours!r}"
        for one in bad_inputs(name)
        if one.description not in OTHERS and not has_groups_of_lbfgs(name, one) and not agrees(one)
    ]
    assert not wrong, "\n".join(wrong)


def has_groups_of_lbfgs(name, one):
    """Return whether an error input is about groups, of which LBFGS has one: our message says so first."""
    return name == "LBFGS" and "param groups" in one.description


def agrees(one):
    return isinstance(one.ours, type(one.theirs)) and bool(re.search(one.words, str(one.ours)))


@pytest.mark.parametrize("description", OTHERS)
def test_other_error_inputs_differ(description):
    assert not all(agrees(one) for name in ENTRIES for one in bad_inputs(name) if one.description == description)

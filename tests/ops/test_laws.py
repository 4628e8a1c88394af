"""Every registered operator satisfies every law on each of its samples."""

import re

import pytest

import retrograd.higher_order
import retrograd.implicit
import retrograd.ops
from retrograd.core import registry
from retrograd.testing import LAWS, errors_of, exemptions_of, run, samples_of

from ..case_groups import group_cases
from ..tables import failures, first_samples, hold_all, operators_on_arrays

OPERATORS = operators_on_arrays()
SAMPLES = {
    name: list(samples_of(registry[name])) for name in OPERATORS if hasattr(registry[name].definition, "samples")
}
# (operator, law): why its class says that the law is not checked.  An exemption whose law holds fails a test.
EXEMPT = {(name, law): why for name in SAMPLES for law, why in exemptions_of(registry[name]).items()}
# Laws that no build changes. The first are about packages that are never compiled: `nested`, `func.series` and
# `levels.sparsity_level`. The others vary the numbers and their layout: on either build NumPy computes them.
ONCE = ("nested", "jet", "pattern", "complex", "bfloat16", "strides")
# The plain core runs the operators' code on NumPy as the compiled one does, which has the other samples.
COMPILED = retrograd.show_config()["core"] == "compiled"
ERRORS = [(name, *entry) for name in OPERATORS for entry in errors_of(registry[name])]


@group_cases
@pytest.mark.parametrize("name", OPERATORS)
def test_every_operator_has_samples_and_says_what_it_is(name):
    assert SAMPLES.get(name), "the laws test nothing without samples"
    assert registry[name].definition.__doc__.strip()


def laws_of(name):
    """Return the laws that are checked for an operator."""
    return {law: check for law, check in LAWS.items() if (name, law) not in EXEMPT}


@pytest.mark.parametrize("name", SAMPLES)
def test_laws(name):
    samples = SAMPLES[name] if COMPILED else first_samples(SAMPLES[name], 2)
    hold_all([check for law, check in laws_of(name).items() if law not in ONCE], registry[name], samples)


@pytest.mark.once("no build changes these laws, and every operator has all other laws on the plain core")
@pytest.mark.parametrize("name", SAMPLES)
def test_laws_that_no_build_changes(name):
    checked = {law: check for law, check in laws_of(name).items() if law in ONCE}
    on_all = [checked.pop("nested")] if "nested" in checked else []  # it depends on the dimensions in the sample
    hold_all(on_all, registry[name], SAMPLES[name])
    hold_all(list(checked.values()), registry[name], first_samples(SAMPLES[name], 2))


def test_laws_that_no_build_changes_exist():
    assert set(ONCE) < set(LAWS)


def test_exemptions_name_laws_that_are_there():
    assert {law for _, law in EXEMPT} - set(LAWS) == set()


@group_cases
@pytest.mark.parametrize("exemption", [e for e in EXEMPT if e[1] != "oracle"], ids="-".join)
def test_exemptions_are_needed(exemption):
    name, law = exemption
    assert any(failures(LAWS[law], registry[name], SAMPLES[name])), "the law holds: delete the exemption"


@group_cases
@pytest.mark.parametrize("error", ERRORS, ids=lambda error: f"{error[0]}-{error[3].__name__}")
def test_wrong_calls_say_what_is_wrong(error):
    name, args, params, exception, pattern = error
    with pytest.raises(exception, match=pattern):
        run(registry[name], args, params)


def test_some_wrong_calls_are_listed():
    assert len({name for name, *_ in ERRORS}) > 5
    assert all(re.compile(pattern) for *_, pattern in ERRORS)


@pytest.mark.parametrize("law", ["empty", "no_dimensions"])
def test_a_shape_rule_that_refuses_what_the_kernel_accepts_breaks_the_laws(law, monkeypatch):
    def refuse(x):
        raise ValueError("exp: refused")

    monkeypatch.setattr(registry["exp"].definition, "shape", refuse)
    args, params = SAMPLES["exp"][0]
    with pytest.raises(ValueError, match="refused"):
        LAWS[law](registry["exp"], args, params)

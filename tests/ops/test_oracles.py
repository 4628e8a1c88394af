"""Every operator is compared with an oracle: its class states it, or `families` contains a reference implementation.

`ORACLES[name](*inputs, **params)` in `families` takes float64 arrays. It is for reference implementations that are
longer than a formula, or shared by several operators.
"""

import pytest

import retrograd.ops
import retrograd.pipelining  # noqa: F401  (registers its operator)
from retrograd.core import registry
from retrograd.testing import exemptions_of, samples_of
from retrograd.testing.oracle_law import agree_with_oracle, law_oracle, oracle_of

from ..tables import merged, operators_on_arrays

ORACLES = merged("ops.families", "ORACLES")
OURS = {name for name in operators_on_arrays() if "::" not in name}  # examples in docstrings define operators too


def test_every_operator_has_an_oracle_or_a_reason():
    stated = {name for name in OURS if oracle_of(registry[name]) or "oracle" in exemptions_of(registry[name])}
    assert OURS - stated == set(ORACLES)


@pytest.mark.parametrize("name", sorted(set(ORACLES) & set(registry)))
def test_forward_is_the_reference_implementation(name):
    for args, params in samples_of(registry[name]):
        agree_with_oracle(ORACLES[name], registry[name], args, params)


@pytest.mark.parametrize("wrong", ["numpy.sinh", lambda np, x: np.sinh(x)], ids=["name", "formula"])
def test_a_wrong_oracle_breaks_the_law(wrong, monkeypatch):
    args, params = next(samples_of(registry["sin"]))
    law_oracle(registry["sin"], args, params)
    monkeypatch.setattr(registry["sin"].definition, "oracle", wrong)
    with pytest.raises(AssertionError):
        law_oracle(registry["sin"], args, params)

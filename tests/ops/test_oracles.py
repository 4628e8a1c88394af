"""Every operator is compared with an oracle, which its class states; the law `oracle` does it, in test_laws.py."""

import pytest

import retrograd.ops
import retrograd.pipelining  # noqa: F401  (registers its operators)
from retrograd.core import registry
from retrograd.testing import exemptions_of, samples_of
from retrograd.testing.oracle_law import law_oracle, oracle_of

from ..tables import operators_on_arrays

OURS = [name for name in operators_on_arrays() if "::" not in name]  # examples in docstrings define operators too


def test_every_operator_has_an_oracle_or_a_reason():
    assert [n for n in OURS if oracle_of(registry[n]) is None and "oracle" not in exemptions_of(registry[n])] == []


@pytest.mark.parametrize(
    "wrong",
    ["numpy.sinh", "retrograd.testing.references.common.sigmoid", lambda np, x: np.sinh(x)],
    ids=["numpy", "reference", "formula"],
)
def test_a_wrong_oracle_breaks_the_law(wrong, monkeypatch):
    args, params = next(samples_of(registry["sin"]))
    law_oracle(registry["sin"], args, params)
    monkeypatch.setattr(registry["sin"].definition, "oracle", wrong)
    with pytest.raises(AssertionError):
        law_oracle(registry["sin"], args, params)

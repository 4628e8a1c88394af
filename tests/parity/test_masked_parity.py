"""Masked reductions compared with PyTorch's: empty slices, dtypes, mismatched masks."""

import warnings

import pytest
import torch
import torch.masked

import retrograd as rg

DATA = """
x, k = m.arange(6.0).reshape(2, 3), m.tensor([[True, False, True], [False] * 3])
n, c = x.to(m.int64), x + 1j * x
"""
ALONG = (
    "sum", "prod", "amax", "amin", "argmax", "argmin", "mean", "median", "logsumexp", "var", "std",
    "cumsum", "cumprod", "softmax", "log_softmax", "softmin",
)  # fmt: skip
CALLS = [
    *[f"m.masked.{name}(x, 1, mask=k)" for name in ALONG],
    *[f"m.masked.{name}(n, 1, mask=k)" for name in ALONG],
    *[f"m.masked.{name}(c, 1, mask=k)" for name in ALONG],
    *[f"m.masked.{name}(n, 1)" for name in ALONG],
    *[f"m.masked.norm(x, {ord}, 1, mask=k)" for ord in (0, 1, 2, 3.5, 'float("inf")', '-float("inf")')],
    "m.masked.norm(c, -float('inf'), 1, mask=k)", "m.masked.norm(n, 2, 1)",
    "m.masked.normalize(x, 2.0, 1, mask=k)", "m.masked.logaddexp(x, x, input_mask=k, other_mask=~k)",
    "m.masked.sum(x, mask=k.to(m.float32))", "m.masked.sum(x, mask=m.ones(2, 2, 3))", "m.masked.sum(x, mask=m.ones(4))",
    "m.masked.sum(x, (0, 0))", "m.masked.sum(x, ())", "m.masked.sum(x, 5)", "m.masked.sum(x, 0, keepdim=True, mask=k)",
    "m.masked.var(x, 1, True, mask=k)", "m.masked.var(x, 1, correction=0, mask=k)",
    "m.masked.var(x, 1, correction=5, mask=k)", "m.masked.var(x, 1, True, correction=1)",
    "m.masked.mean(x, 1, dtype=m.float64, mask=k)", "m.masked.mean(x, dtype=m.int64)", "m.masked.mean(m.zeros(0))",
    "m.masked.sum(n, dtype=m.float32, mask=k)", "m.masked.amax(n, dtype=m.float32)", "m.masked.argmax(x, mask=k)",
    "m.masked.median(n, 0, mask=m.tensor([True, False, True]))", "m.masked.amax(x > 2, 1, mask=k)",
]  # fmt: skip


def said(call, m, plain):
    """Return the result as data, or that the call is refused."""
    names = {"m": m}
    exec(DATA, names)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return plain(eval(call, names))
        except (ArithmeticError, AssertionError, IndexError, NotImplementedError, RuntimeError, TypeError, ValueError):
            return "refused"


@pytest.mark.parametrize("call", CALLS)
def test_masked_calls_say_the_same(call, plain):
    ours, theirs = said(call, rg, plain), said(call, torch, plain)
    assert isinstance(ours, str) == isinstance(theirs, str)
    if theirs != "refused":
        assert ours[0] == theirs[0]
        torch.testing.assert_close(torch.tensor(ours[1]), torch.tensor(theirs[1]), equal_nan=True)

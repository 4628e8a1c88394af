"""`testing.make_tensor`: the dtypes, ranges, layouts and errors of PyTorch's, whose random numbers are others."""

import pytest
import torch

import retrograd as rg

DTYPES = (
    "bool", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64", "complex64",
    "complex128",
)  # fmt: skip
SETTINGS = {
    "no bounds": ((300,), {}),
    "sizes": ((2, 3), {}),
    "a tuple": (((2, 3),), {}),
    "a list": (([2, 3],), {}),
    "no size": ((), {}),
    "an empty shape": (((),), {}),
    "no elements": ((0, 3), {}),
    "bounds": ((300,), {"low": 1, "high": 4}),
    "fractions": ((300,), {"low": 0.5, "high": 1.7}),
    "beyond the dtype": ((300,), {"low": -1e6, "high": 1e6}),
    "infinite": ((300,), {"low": float("-inf"), "high": float("inf")}),
    "the largest bounds": ((300,), {"low": -4.0e38, "high": 4.0e38}),
    "below zero": ((300,), {"low": -5, "high": -2}),
    "above": ((300,), {"low": 11}),
    "the wrong order": ((3,), {"low": 3, "high": 2}),
    "equal": ((3,), {"low": 3, "high": 3}),
    "NaN": ((3,), {"low": float("nan")}),
    "no zeros": ((300,), {"exclude_zero": True, "low": 0, "high": 2}),
    "grad": ((3,), {"requires_grad": True}),
    "noncontiguous": ((3, 4), {"noncontiguous": True}),
    "one element, noncontiguous": ((1,), {"noncontiguous": True}),
    "channels last": ((2, 3, 4, 2), {"memory_format": "channels_last"}),
    "both": ((2, 3, 4, 2), {"memory_format": "channels_last", "noncontiguous": True}),
}


def outcome(m, shape, settings, dtype):
    settings = {k: getattr(m, v) if k == "memory_format" else v for k, v in settings.items()}
    try:
        made = m.testing.make_tensor(*shape, dtype=getattr(m, dtype), device="cpu", **settings)
    except (ValueError, RuntimeError, TypeError) as error:
        return type(error).__name__
    return made


@pytest.mark.filterwarnings("ignore:.*low==high", "ignore:.*deprecated")
@pytest.mark.parametrize("setting", SETTINGS)
def test_a_random_tensor_is_one_that_pytorch_may_make(setting):
    shape, settings = SETTINGS[setting]
    for dtype in DTYPES:
        expected, found = (outcome(m, shape, settings, dtype) for m in (torch, rg))
        if isinstance(expected, str) or isinstance(found, str):
            assert found == expected, dtype
            continue
        assert (str(expected.dtype).removeprefix("torch."), tuple(expected.shape)) == (found.dtype.name, found.shape)
        assert (expected.stride(), expected.requires_grad) == (found.stride(), found.requires_grad), dtype
        if found.numel() == 300:
            parts = [found.detach().real, found.detach().imag] if dtype.startswith("complex") else [found.detach()]
            theirs = [expected.real, expected.imag] if dtype.startswith("complex") else [expected]
            for mine, other in zip(parts, theirs, strict=True):
                mine, other = mine.double(), other.double()
                width = (other.max() - other.min()).item()
                assert abs(mine.min().item() - other.min().item()) <= 0.1 * width, dtype
                assert abs(mine.max().item() - other.max().item()) <= 0.1 * width, dtype
        assert not settings.get("exclude_zero") or bool((found != 0).all())

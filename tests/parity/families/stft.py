"""PyTorch's calls of short-time Fourier transforms, which warn without windows; masks of two inputs."""

import torch
import torch.masked

from ..quiet import quiet


def _logaddexp(x, y, dtype, input_mask, other_mask):
    return torch.masked.logaddexp(x, y, dtype=dtype, input_mask=input_mask, other_mask=other_mask)


CALLS = {"stft": quiet(torch.stft), "istft": quiet(torch.istft), "masked.logaddexp": _logaddexp}

KNOWN = {("masked.logaddexp", "second order"): "PyTorch's is NaN where one side is masked: it subtracts infinities"}

"""Helpers of the parity cases of pipelines: the peer's package, and models with the same weights in both libraries."""

from types import SimpleNamespace

import torch
from torch.distributed import pipelining
from torch.distributed.pipelining import _backward, microbatch

PEER = SimpleNamespace(**{**vars(_backward), **vars(microbatch), **vars(pipelining)})


def pp(m):
    """Collect the pipeline API of a library; PyTorch's parts are spread over several modules."""
    return PEER if m is torch else m.pipelining


def numbers(m, *shape, seed=0, grad=False):
    """Return values between -1 and 1, no two equal in a row."""
    count = 1
    for size in shape:
        count *= size
    flat = [((7 * i + 3 * seed + 1) % 11 - 5) / 6 for i in range(count)]
    tensor = m.tensor(flat, dtype=m.float64).reshape(shape)
    return tensor.requires_grad_() if grad else tensor


def filled(m, model):
    """Return the model with deterministic parameters."""
    model = model.to(m.float64)
    with m.no_grad():
        for seed, parameter in enumerate(model.parameters()):
            parameter.copy_(numbers(m, *parameter.shape, seed=seed))
    return model


def replicate(m):
    """Return the spec of an argument that every microbatch gets whole."""
    return PEER._Replicate() if m is torch else m.pipelining.Replicate()

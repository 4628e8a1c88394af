"""Helpers of the parity cases of pipelines: the peer's package, and models with the same weights in both libraries."""

from types import SimpleNamespace

import torch
from torch.distributed import pipelining
from torch.distributed.pipelining import _backward, microbatch

PEER = SimpleNamespace(**{**vars(_backward), **vars(microbatch), **vars(pipelining)})


def pp(m):
    """What a library has for pipelines; PyTorch's parts are spread over several modules."""
    return PEER if m is torch else m.pipelining


def numbers(m, *shape, seed=0, grad=False):
    """Numbers between -1 and 1, no two alike in a row."""
    count = 1
    for size in shape:
        count *= size
    flat = [((7 * i + 3 * seed + 1) % 11 - 5) / 6 for i in range(count)]
    tensor = m.tensor(flat, dtype=m.float64).reshape(shape)
    return tensor.requires_grad_() if grad else tensor


def filled(m, model):
    """The model with parameters that do not depend on chance."""
    model = model.to(m.float64)
    with m.no_grad():
        for seed, parameter in enumerate(model.parameters()):
            parameter.copy_(numbers(m, *parameter.shape, seed=seed))
    return model


def replicate(m):
    """The spec of an argument that every micro-batch gets whole."""
    return PEER._Replicate() if m is torch else m.pipelining.Replicate()

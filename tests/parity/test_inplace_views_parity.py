"""In-place view methods such as `x.unsqueeze_(0)` compared with PyTorch: elements, memory, gradients, errors."""

import pytest
import torch

import retrograd as rg

from .programs import state_after

PROGRAMS = [
    "x = m.arange(6.0).reshape(1, 6); y = x.squeeze_() is x; z = x._version",
    "x = m.ones(1, 3, 1); x.squeeze_(0)",
    "x = m.ones(1, 3, 1); x.squeeze_(1)",
    "x = m.ones(1, 3, 1); x.squeeze_((0, 2))",
    "x = m.arange(6.0).reshape(2, 3); x.t_(); x[0, 1] = 9",
    "b = m.arange(6.0).reshape(2, 3); x = b[1]; x.unsqueeze_(0); x[0, 1] = 9; y = b",
    "x = m.arange(24.0).reshape(2, 3, 4); x.transpose_(0, 2)",
    "x = m.arange(24.0).reshape(2, 3, 4); x.swapaxes_(0, 1); x.swapdims_(-1, 0)",
    "x = m.arange(6.0); x.as_strided_((2, 2), (1, 2), 1)",
    "w = m.ones(3, requires_grad=True); x = w * m.arange(3.0); x.unsqueeze_(1); (x * x).sum().backward(); y = w.grad",
    "w = m.ones(2, 3, requires_grad=True); x = w * 2; x.t_().mul_(m.arange(3.0)[:, None]); x.sum().backward(); "
    "y = w.grad",
    "w = m.ones(2, 1, requires_grad=True); b = m.zeros(4); x = b[1:3]; x.unsqueeze_(1); x.copy_(w * 3); "
    "(b * m.arange(4.0)).sum().backward(); y = w.grad; z = b.tolist()",
    "w = m.ones(2, 1, requires_grad=True); x = m.zeros(2); x.unsqueeze_(1); x.copy_(w * 3); x.sum().backward(); "
    "y = w.grad",
    "w = m.ones(1, 2, requires_grad=True); b = w * 1; x = b.view(2); x.unsqueeze_(0); x.mul_(m.arange(2.0)); "
    "(b * 2).sum().backward(); y = w.grad",
    "w = m.ones(3, requires_grad=True); x = w * 2; y = x * x; x.unsqueeze_(0); y.sum().backward()",
    "x = m.ones(3, requires_grad=True); x.unsqueeze_(0)",
    "x = m.ones(3); x.unsqueeze_(5)",
    "x = m.ones(2, 3, 4); x.t_()",
]


@pytest.mark.parametrize("program", PROGRAMS)
def test_programs_with_views_in_place_agree(program, plain):
    assert state_after(program, rg, plain) == state_after(program, torch, plain)

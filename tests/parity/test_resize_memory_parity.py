"""resize_ and resize_as_ compared with PyTorch's: elements, strides, shared memory, refused calls."""

import pytest
import torch

import retrograd as rg

from .programs import state_after

PROGRAMS = [
    "x = m.arange(6.0); x.resize_(2, 2)",
    "x = m.arange(6.0); x.resize_(2, 2).resize_(3, 2)",
    "b = m.arange(10.0); x = b[2:5]; x.resize_(2, 2); x[0, 0] = 50; y = b",
    "b = m.arange(10.0); x = b[2::3]; x.resize_(2); y = b",
    "x = m.arange(4.0).reshape(2, 2).T; x.resize_(2, 2)",
    "x = m.arange(4.0).reshape(2, 2).T; x.resize_(4)",
    "x = m.arange(12.0).reshape(3, 4)[:, 1]; x.resize_(2, 1)",
    "x = m.arange(3.0); x.resize_(())",
    "x = m.arange(3.0); x.resize_(0, 4)",
    "x = m.arange(6.0); x.resize_as_(m.ones(2, 1))",
    "x = m.resize_as_(m.arange(6.0), m.ones(2, 1))",
    "x = m.ones(3, requires_grad=True); x.resize_(2)",
    "x = m.ones(3, requires_grad=True) * 2; x.resize_(2)",
    "x = m.ones(3); x.resize_()",
    "x = m.ones(3); x.resize_(-1)",
    "x = m.ones(3); x.resize_(2.0)",
    "x = m.ones(3); y = x.resize_(2) is x; z = x._version",
]


@pytest.mark.parametrize("program", PROGRAMS)
def test_programs_that_resize_agree(program, plain):
    assert state_after(program, rg, plain) == state_after(program, torch, plain)

"""Writes to parts of expanded tensors, in which no two elements share memory, compared with PyTorch."""

import pytest
import torch

import retrograd as rg

from .programs import state_after

PARTS = [
    "x.expand(2, 3)[0]",
    "x.expand(2, 3)[:1]",
    "x.expand(2, 3).unbind()[1]",
    "x.expand(2, 3).T[:, 1]",
    "x.view(3, 1).expand(3, 4)[:, 2]",
    "x.expand(2, 3)[0].reshape(3, 1)",
    "x.expand(2, 3).diagonal()",
    "x.expand(2, 3)[:, 1:2][0]",
    "x.expand(2, 3)[:, ::2][1]",
    "x.expand(2, 3)",
    "x.expand(2, 3)[:, 1:]",
    "x.view(3, 1).expand(3, 1, 1).tensor_split(2, -1)[-1]",
    "x.view(3, 1).expand(3, 3)[:, 3:]",
    "x.expand(2, 3)[2:]",
]
WRITES = ["v.mul_(2)", "v.copy_(v * 3)", "v[0] = 5", "v.add_(v)", "v.square_()", "m.neg(v.detach(), out=v)"]


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("write", WRITES)
def test_a_part_can_be_written_to_if_no_two_of_its_elements_share_memory(part, write, plain):
    written = f"x = m.tensor([1.0, 2.0, 3.0]); v = {part}; {write}; y = v"
    recorded = (
        f"w = m.tensor([1.0, 2.0, 3.0], requires_grad=True); x = w * 1; v = {part}; {write}; "
        "(x * m.tensor([1.0, 10.0, 100.0])).sum().backward(); y = w.grad; z = v.tolist()"
    )
    for program in (written, recorded):
        assert state_after(program, rg, plain) == state_after(program, torch, plain)

"""In-place view methods such as `x.unsqueeze_(0)` compared with PyTorch: elements, memory, gradients, errors."""

import itertools

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


STARTS = ("m.ones(1, 2, dtype=m.float64)", "x.reshape(2, 1) * 3", "m.outer(x, x)")
OLDER = ("z = y[0]", "z = y.reshape(-1)", "z = y.t()", "z = y.sum(1)", "z = y.expand(3, *y.shape)", "z = y.detach()")
IN_PLACE = ("y.squeeze_()", "y.t_()", "y.transpose_(0, 1).unsqueeze_(1)", "y.unsqueeze_(0)", "y.t_(); y.squeeze_(0)")
WRITES = (
    "y.mul_(x.sum()); w = y[0]",
    "w = y[0]; z.mul_(x.sum())",
    "w = y[0]; w.mul_(x.prod())",
    "z.mul_(x[0]); y.sin_(); w = y.flatten()",
    "w = y.unsqueeze(-1); y.cos_(); z.mul_(2)",
    "w = y[0]; w.add_(x[1]); y.squeeze_(); z.exp_()",
)
HOOKS = ("", "y.register_hook(seen.append); y.mul_(2)", "y.register_hook(seen.append); y[0] = x.sum(); y.t_()")


def outcome(library, *lines):
    """Return bases, versions, values, gradients at hooks and the gradient of x after a program; None if it raises."""
    x = library.tensor([2.0, 3.0], dtype=library.float64, requires_grad=True)
    names = {"x": x, "m": library, "seen": []}
    try:
        exec("\n".join(lines), names)
        y, z, w, seen = (names[name] for name in ("y", "z", "w", "seen"))
        ((y * y).sum() + (z * 3).sum() + w.sum()).backward()
    except (RuntimeError, IndexError):
        return None
    values = [(t.detach() * 1e9).round().tolist() for t in (y, z, w, *seen, *([] if x.grad is None else [x.grad]))]
    return [t._base is y for t in (z, w)], [t._version for t in (y, z, w)], values


@pytest.mark.parametrize("in_place", IN_PLACE)
@pytest.mark.parametrize("start", STARTS)
def test_hooks_and_older_and_later_views_follow_a_tensor_that_became_a_view_in_place(start, in_place):
    compared, differ = 0, []
    for older, write, hook in itertools.product(OLDER, WRITES, HOOKS):
        lines = f"y = {start}", older, in_place, write, hook
        theirs, ours = outcome(torch, *lines), outcome(rg, *lines)
        if theirs is not None:  # ours may follow where PyTorch refuses
            compared += 1
            if repr(theirs) != repr(ours):
                differ.append((lines, theirs, ours))
    assert compared > 20
    assert not differ


SHARING = (  # y, d that shares its memory without being a view of it, and z, a view of one of them
    "d = y.detach(); z = y[0]",
    "d = y.detach(); z = y.expand(3, *y.shape)",
    "z = y.t(); d = y.detach()",
    "d = y.detach(); z = d.expand(3, *d.shape)",
    "z = y.reshape(-1); d = y.data",
    "d = y.data; z = d.t()",
    "d = m.empty(0, dtype=m.float64).set_(y.detach()); z = y.t()",
)


@pytest.mark.parametrize("in_place", IN_PLACE)
@pytest.mark.parametrize("start", STARTS)
def test_what_shares_memory_without_a_base_stays_as_it_is_when_the_other_becomes_a_view_in_place(start, in_place):
    compared, differ = 0, []
    for sharing, write, moved in itertools.product(SHARING, WRITES, "dy"):
        lines = f"y = {start}", sharing, in_place.replace("y.", f"{moved}."), write
        for lines in (lines, (*lines, "d.t_(); d.mul_(x[1]); y.t_(); y.sin_()")):  # noqa: B020
            theirs, ours = outcome(torch, *lines), outcome(rg, *lines)
            if theirs is not None:
                compared += 1
                if repr(theirs) != repr(ours):
                    differ.append((lines, theirs, ours))
    assert compared > 20
    assert not differ

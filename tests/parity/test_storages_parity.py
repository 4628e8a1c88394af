"""Storages have PyTorch's values, sizes, errors, and their writes are counted or not as there."""

import pytest
import torch

import retrograd as rg

PROGRAMS = [
    "s = m.UntypedStorage(4); s.fill_(3); s[0] = 7; s[2:4] = 300; out = s.tolist(), s[1], s[-1], s[1:3].tolist()",
    "s = m.UntypedStorage([1, 2, 300]); out = s.tolist(), s.nbytes(), s.size(), s.element_size(), list(s), 2 in s",
    "out = m.UntypedStorage().nbytes(), len(m.UntypedStorage((1, 2))), m.UntypedStorage(3, device='cpu').nbytes()",
    "s = m.UntypedStorage([1, 2]); t = s.clone(); t[0] = 5; out = s.tolist(), t.tolist(), s == s, s == t, s != t",
    "s = m.UntypedStorage([1, 2]); s.resize_(1); a = s.tolist(); s.resize_(3); out = a, len(s), s[0], s.resizable()",
    "s = m.UntypedStorage([1, 2]); s.copy_(m.UntypedStorage([5, 6])); out = s.tolist()",
    "s = m.UntypedStorage([1, 2]); s[0:2].fill_(9); out = s.tolist()",
    "s = m.UntypedStorage(2); out = s.is_shared(), s.device.type, s.cpu() is s, s.untyped() is s",
    "s = m.UntypedStorage(2); out = s.new().nbytes(), s.is_pinned(), s.get_device(), bool(s), bool(s.new())",
    "s = m.UntypedStorage([5]); out = repr(s), str(s)",
    "x = m.arange(4.0); s = x.untyped_storage(); s.fill_(0); out = x.tolist(), s == x[1:].untyped_storage()",
    "x = m.arange(4.0); x.untyped_storage()[3] = 64; out = x.tolist(), x._version",
    "x = m.arange(4.0); x.untyped_storage().copy_(m.ones(4).untyped_storage()); out = x.tolist(), x._version",
    "x = m.arange(4.0, requires_grad=True); y = (x * x).sum(); x.untyped_storage().fill_(0); y.backward(); "
    "out = x.grad.tolist()",
    "s = m.UntypedStorage(16); s.fill_(0); x = m.tensor([]).set_(s); s[3] = 64; out = x.tolist(), x.shape[0]",
    "s = m.arange(6.0).untyped_storage(); out = m.empty(0).set_(s, 1, (2, 2), (2, 1)).tolist()",
    "x = m.arange(3.0); s = x.storage(); s[1] = 7; out = x.tolist(), s[1], len(s), s.nbytes(), x._version",
    "s = m.TypedStorage([1, 2], dtype=m.int64); s.fill_(4); out = s.tolist(), s.clone().tolist(), s.untyped().nbytes()",
    "s = m.TypedStorage(2, dtype=m.float32); s.copy_(m.ones(2).storage()); out = s.tolist(), s == s, s == s.clone()",
    "s = m.TypedStorage(wrap_storage=m.UntypedStorage(8), dtype=m.float32); out = len(s), s.element_size()",
    "m.UntypedStorage([1.5])", "m.UntypedStorage('a')", "m.UntypedStorage(2)[2]", "m.UntypedStorage(2)['a']",
    "m.UntypedStorage(2)[0:2:2]", "m.UntypedStorage(2).copy_(m.UntypedStorage(3))", "m.UntypedStorage(-1)",
]  # fmt: skip
WORDS = ("instead of int", "out of range for storage of size", "can't index a", "slice with a step of 2",
         "size does not match, self was", "negative number")  # fmt: skip


def run(m, program):
    """Return the result of a program, or the class and the telling words of its error."""
    known = {"m": m}
    try:
        exec(program, known)
    except (RuntimeError, TypeError, IndexError) as error:
        return type(error).__name__, [words for words in WORDS if words in str(error)]
    return known["out"]


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.filterwarnings("ignore:TypedStorage is deprecated")
def test_a_program_on_storages_does_the_same(program):
    ours, theirs = run(rg, program), run(torch, program)
    assert str(ours).replace("retrograd.storage", "torch.storage") == str(theirs)
    if "out" not in program:
        assert ours[1]

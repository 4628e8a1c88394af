"""Storages have PyTorch's values, sizes, errors, and their writes are counted or not as there."""

import io

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


SPARSE = ["x.to_sparse()", "x.to_sparse_csr()", "x.to_sparse_csc()", "x.to_sparse_bsr((1, 1))"]
OF_STORAGE = [
    "s.storage()", "s.untyped_storage()", "s.untyped_storage().nbytes()", "s.storage_type()", "s.data_ptr()",
    "s.detach().data_ptr()", "s.is_shared()", "s.share_memory_()", "s.set_()", "x.set_(s)", "s.is_set_to(s)",
    "x.is_set_to(s)",
]  # fmt: skip
SPARSE_WORDS = ("Cannot access storage of SparseTensorImpl", "Cannot access storage of SparseCsrTensorImpl",
                "Cannot access data pointer of Tensor that doesn't have storage", "Could not run 'aten::set_",
                "Could not run 'aten::is_set_to' with arguments from the 'Sparse")  # fmt: skip


def refusal(m, layout, call):
    """Return the telling words of the error of a call on a sparse tensor."""
    x = m.eye(2)
    with pytest.raises(RuntimeError) as caught:
        eval(call, {"s": eval(layout, {"x": x}), "x": x})
    return [words for words in SPARSE_WORDS if words in str(caught.value)]


@pytest.mark.parametrize("layout", SPARSE)
@pytest.mark.parametrize("call", OF_STORAGE)
@pytest.mark.filterwarnings("ignore:TypedStorage is deprecated", "ignore:Sparse")
def test_a_sparse_tensor_has_no_storage(layout, call):
    words = refusal(torch, layout, call)
    assert len(words) == 1
    assert refusal(rg, layout, call) == words


SHARED = [
    "{'a': x, 'b': x[2:4], 'c': x.view(2, 3).t()}", "[x[1:3], x[2:5]]", "(x[::2], x[1::2], x)", "[x, x]",
    "{'p': m.nn.Parameter(x), 'x': x}", "[x.clone(), x]",
]  # fmt: skip


def written_after_load(m, program):
    """Return which tensors of a loaded file show a write to each of them."""
    file = io.BytesIO()
    m.save(eval(program, {"m": m, "x": m.arange(6.0)}), file)
    file.seek(0)
    loaded = m.load(file)
    tensors = [t.detach() for t in (loaded.values() if isinstance(loaded, dict) else loaded)]
    seen = []
    for t in tensors:
        before = [other.tolist() for other in tensors]
        t += 64
        seen.append([other.tolist() != old for other, old in zip(tensors, before, strict=True)])
    return seen, [(list(t.shape), tuple(t.stride())) for t in tensors]


@pytest.mark.parametrize("program", SHARED)
def test_tensors_of_a_file_share_memory_as_those_that_were_saved(program):
    assert written_after_load(rg, program) == written_after_load(torch, program)

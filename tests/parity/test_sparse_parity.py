"""Sparse tensors do what PyTorch's do: text, values, layouts, gradients, kinds and words of errors."""

import re
import warnings

import pytest
import torch

import retrograd as rg

pytestmark = pytest.mark.filterwarnings("ignore:Sparse")

# Programs over: x COO, uncoalesced flag; xc coalesced; u with repeated entries; h hybrid; c CSR; s CSC; b BSR; k BSC;
# d dense (2, 3); e without entries.
SAME_TEXT = """
x; xc; u; h; c; s; b; k; e; u.coalesce(); xc.values(); xc.indices(); x._values(); x._indices(); x._nnz(); c._nnz()
b._nnz(); x.is_sparse, c.is_sparse, c.is_sparse_csr, s.is_sparse_csr; x.sparse_dim(), x.dense_dim(), h.sparse_dim()
h.dense_dim(), c.sparse_dim(), c.dense_dim(), b.sparse_dim(); d.sparse_dim(), d.dense_dim(); x.is_contiguous()
x.numel(), len(x); x + x; d + x; d - x; x * d; d * x; x * x; x * 2; 2 * x; x / 2; x // 2; x**2; x**0.5; -x; x.sin()
x.abs(); u.abs(); u * 2; u.sin(); x.sum(); x.sum(0); x.sum(1); x.sum((0, 1)); x.sum(0, keepdim=True); x.norm()
T.sparse.sum(x); T.sparse.sum(x, 0); T.sparse.sum(x, [0, 1]); T.sparse.sum(h, 1); T.sparse.sum(h, 0); x.t(); x.mT; x.T
x.transpose(0, 1); x.permute(1, 0); c.t(); s.t(); x.unsqueeze(0); x[0]; x[0, 2]; x[None]; x[..., 0]; c[0]; c[:, 0]
x.select(0, 1); x.index_select(0, T.tensor([1, 0, 1])); x.unbind(); T.cat([x, x]); T.cat([x, x], 1); T.stack([x, x])
x @ d.t(); x @ T.ones(3); d @ x.t(); T.ones(2) @ x; x @ x.t(); c @ d.t(); d @ c.t(); s @ d.t(); b @ T.ones(4, 2)
T.sparse.mm(x, d.t()); T.sparse.mm(c, d.t()); T.sparse.mm(x, x.t()); T.sparse.mm(d, x.t())
T.addmm(T.ones(2, 2), x, d.t()); T.sparse.addmm(T.ones(2, 2), x, d.t(), beta=2, alpha=3); T.hspmm(x, d.t())
T.smm(x, d.t()); T.sspaddmm(x @ x.t(), x, d.t()); T.sparse.sampled_addmm(c, T.ones(2, 4), T.ones(4, 3))
T.sparse.softmax(x, 0); T.sparse.softmax(x, 1); T.sparse.log_softmax(x, 1); T.sparse.softmax(h, 1); x.to_sparse_csr()
T.sparse.spdiags(T.arange(9.0).reshape(3, 3), T.tensor([0, -1, 2]), (3, 3)); x.to_sparse_csc(); x.to_sparse_bsr((1, 1))
T.sparse.spdiags(T.arange(9.0).reshape(3, 3), T.tensor([0, -1, 2]), (3, 3), layout=T.sparse_csr); c.to_sparse()
x.to(T.float64); x.double(); x.to_dense(); c.to_sparse_csc(); s.to_sparse(); b.to_sparse(); c.to_sparse_bsr((2, 3))
d.to_sparse(1); d.to_sparse(layout=T.sparse_csr); T.tensor(1.0).to_sparse(); d.sparse_mask(xc); d.sparse_mask(c)
x.sparse_mask(xc); c.crow_indices(); c.col_indices(); s.ccol_indices(); s.row_indices(); x.is_coalesced()
T.zeros_like(x); T.zeros_like(c); T.empty_like(x); x.clone(); x.detach(); x.bool(); x.isnan(); x.any(); -c; c.sin()
c + c; c * c; c * d; c + d; d + c; c.sum(); x.trunc(); x.relu(); c.relu(); x.tanh(); x.log1p(); (x / 9).expm1(); x.sgn()
T.sparse_coo_tensor((2, 3)); T.sparse_coo_tensor([[0, 1]], [1, 2]); T.sparse_coo_tensor([[0, 5]], [1.0, 2.0], (3,))
T.sparse_csr_tensor([0, 1, 3], [2, 0, 2], [1.0, 2.0, 3.0]); T.sparse_bsr_tensor([0, 1, 2], [0, 1], T.ones(2, 2, 2))
T.sparse_csc_tensor([0, 1, 3], [2, 0, 2], [1.0, 2.0, 3.0]); T.stack([d, d]).to_sparse_csr(); x.clone().zero_()
T.sparse_csr_tensor([[0, 1], [0, 1]], [[0], [0]], [[1.0], [2.0]]); x.clone().mul_(2); d.clone().add_(x)
d.clone().mul_(x); x.clone().sparse_resize_((3, 3), 2, 0); x.clone().sparse_resize_and_clear_((3, 3), 2, 0)
T.nn.functional.linear(T.ones(2, 3), x); T.bmm(T.stack([x, x]), T.ones(2, 3, 2)); x.movedim(0, 1); x.swapaxes(0, 1)
(xc * 2).is_coalesced(), (xc + xc).is_coalesced(), x.sin().is_coalesced(); xc.t().is_coalesced(), xc[0].is_coalesced()
d.to_sparse().is_coalesced(), T.sparse.softmax(x, 0).is_coalesced(); T.sparse_coo_tensor([[0]], [1.0]).is_coalesced()
T.sparse_coo_tensor(T.arange(2000).reshape(1, -1), T.arange(2000.0)); x.requires_grad_()
x.new_zeros((2, 3)); x.new_empty((2, 3)); c.new_zeros((2, 3)); x.new_zeros((2, 3), dtype=T.int64)
x.new_zeros((2, 3), layout=T.strided); x.new_tensor([1.0]); T.zeros((2, 3), layout=T.sparse_coo); T.zeros_like(x + x)
T.zeros(2, 3, layout=T.sparse_csr); T.zeros((2, 3), layout=T.sparse_csc); T.empty(2, 3, layout=T.sparse_coo)
T.zeros_like(d, layout=T.sparse_coo); T.zeros_like(x, layout=T.strided)
T.ones_like(x, layout=T.strided); T.full_like(x, 2.0, layout=T.strided)
T.zeros(2, 3, layout=T.sparse_coo, dtype=T.float64, requires_grad=True); x.type()
T.sparse.FloatTensor(T.tensor([[0, 1], [1, 0]]), T.tensor([1.0, 2.0]), T.Size([2, 3])); T.sparse.FloatTensor(2, 3)
T.sparse.LongTensor(T.tensor([[0, 1], [1, 0]]), T.tensor([1.0, 2.0])); T.sparse.FloatTensor(); T.sparse.FloatTensor
isinstance(x, T.sparse.FloatTensor), isinstance(d, T.sparse.FloatTensor), isinstance(c, T.sparse.FloatTensor)
isinstance(x, T.sparse.LongTensor); T.sparse.LongTensor.dtype is T.int64; T.sparse.HalfTensor(T.Size([2, 2]))
"""
SAME_GRADIENTS = """
a.to_dense(), x; a.to_dense(), u; a.to_dense(), c; T.sparse.mm(a, F), x; T.sparse.mm(a, F), u; T.sparse.mm(a, F), c
T.sparse.mm(X, a), F; T.sparse.sum(a), x; T.sparse.sum(a, 0), x; a * 2, x; a / 2, x; a + a, x; a * D, x; a.pow(2), x
T.sparse.softmax(a, 1) * a, x; a.to_sparse() * 2, d; a.to_sparse_csr() * 2, d; a.coalesce(), u; a.coalesce().values(), u
T.sparse_coo_tensor(I, a, (2, 3)) * 2, v; a.sparse_mask(X), d; a.to_sparse_csr(), x; a.double(), x; X * a, d
T.sparse.addmm(a, X, F), q; T.sparse.sampled_addmm(C, a, Q.t() + T.ones(2, 3)), q; D + a, d
"""
ERRORS = """
T.ones((2, 3), layout=T.sparse_coo); T.ones(2, layout=T.sparse_coo)
x.values(); x + d; x - d; x + 1; x / d; x / x; 2 / x; x % 2; x.cos(); x.exp(); x.mean(); x.max(); h.transpose(0, 1)
x.reshape(3, 2); x.view(3, 2); x.flatten(); x.squeeze(); x[T.tensor([1, 0])]; T.cat([x, d]); T.softmax(x, 1)
d.to_sparse_bsr((3, 3)); b.to_sparse_csr(); d.coalesce(); d.indices(); d.values(); c.indices(); c.coalesce()
x.crow_indices(); c.ccol_indices(); c.is_coalesced(); d.is_coalesced(); T.ones_like(x); T.rand_like(x); x > 1; x == x
T.equal(x, x); x.numpy(); x.to_dense(T.float64); T.sparse_coo_tensor([[0, 5]], [1.0, 2.0], (3,), check_invariants=True)
T.sparse_coo_tensor([[0, -1]], [1.0, 2.0]); T.sparse_coo_tensor([0, 1], [1.0, 2.0]); x.expand(2, 2, 3); x.nonzero()
T.sparse_coo_tensor([[0, 1]], [1.0, 2.0, 3.0]); T.sparse_coo_tensor([[0, 1]], [1.0, 2.0], (3, 4)); x.cumsum(0)
T.sparse_csr_tensor([0, 1, 4], [2, 0, 2], [1.0, 2.0, 3.0], (2, 3), check_invariants=True); x.argmax(); x.sigmoid()
T.sparse_csr_tensor([1, 1, 3], [2, 0, 2], [1.0, 2.0, 3.0], (2, 3), check_invariants=True); x.flip(0); x.diagonal()
T.sparse_bsr_tensor([0, 1, 2], [0, 1], [1.0, 2.0]); T.sparse_compressed_tensor([0, 1, 3], [2, 0, 2], [1.0, 2.0, 3.0])
T.sparse.mm(x, d); x @ d; T.sparse.sum(x, 2); x.sum(5); x.transpose(0, 5); x.index_select(3, T.tensor([0])); x[5]
x.select(1, 7); T.sparse.softmax(x, 4); d.to_sparse(5); x.unsqueeze(5); x.clone().fill_(1); T.sparse.sum(c)
T.sparse.spdiags(T.ones(3, 3), T.tensor([0, 0]), (3, 3)); T.sparse.spdiags(T.ones(2, 3), T.tensor([0, 0]), (3, 3))
T.sparse.spdiags(T.ones(2, 3), T.tensor([0, 1]), (3, 3), layout=T.strided); x.clone().sparse_resize_((1, 3), 2, 0)
xc.clone().sparse_resize_((3, 3), 1, 1); T.sparse.sampled_addmm(x, T.ones(2, 4), T.ones(4, 3)); d.sparse_mask(h)
"""
WORDS = re.compile(r"Could not run|is not supported|expected|must|size|sparse|index|match|range|coalesce|shape|nnz")


def programs(text):
    return [part.strip() for line in text.strip().splitlines() for part in line.split(";")]


def names(T):
    x = T.sparse_coo_tensor([[0, 1, 1], [2, 0, 2]], [3.0, 4.0, 5.0], (2, 3))
    d, square = T.arange(6.0).reshape(2, 3), T.arange(16.0).reshape(4, 4)
    u = T.sparse_coo_tensor([[0, 0, 1], [1, 1, 0]], [3.0, 4.0, 5.0], (2, 3))
    return {
        "T": T, "x": x, "xc": x.coalesce(), "d": d, "u": u, "c": d.to_sparse_csr(), "s": d.to_sparse_csc(),
        "h": T.sparse_coo_tensor([[0, 1]], T.ones(2, 3), (3, 3)), "e": T.zeros(2, 3).to_sparse(),
        "b": square.to_sparse_bsr((2, 2)), "k": square.to_sparse_bsc((2, 2)), "v": T.tensor([3.0, 4.0, 5.0]),
        "q": T.arange(4.0).reshape(2, 2), "F": d.t(), "X": x.coalesce(), "D": d, "I": [[0, 1, 1], [2, 0, 2]],
        "C": d.to_sparse_csr(), "Q": T.ones(3, 2),
    }  # fmt: skip


def run(T, program):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return eval(program, names(T))


def text(value):
    shown = repr(value).replace("torch.", "").replace("retrograd.", "").replace("dtype('float64')", "float64")
    return re.sub(r"<b[^<]*method.*", "method", re.sub(r"\s+", " ", shown))


@pytest.mark.parametrize("program", programs(SAME_TEXT))
def test_results_have_the_same_printed_form(program):
    assert text(run(rg, program)) == text(run(torch, program))


@pytest.mark.parametrize("program", programs(SAME_GRADIENTS))
def test_gradients_agree_in_value_and_layout(program):
    def gradient(T):
        expression, _, name = program.rpartition(",")
        known = names(T)
        known["a"] = known[name.strip()].clone().detach().requires_grad_()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            out = eval(expression, known)
        (out if out.layout == T.strided else out.to_dense()).sum().backward()
        return known["a"].grad

    mine, its = gradient(rg), gradient(torch)
    if its.layout == torch.sparse_coo and mine.layout == rg.strided:
        its = its.to_dense()  # of a dense operand, for which ours is dense
    assert text(mine) == text(its)


@pytest.mark.parametrize("program", programs(ERRORS))
def test_errors_are_of_the_same_kind_and_share_words(program):
    kinds = RuntimeError, IndexError, TypeError
    with pytest.raises(kinds) as its:
        run(torch, program)
    with pytest.raises(next(kind for kind in kinds if issubclass(its.type, kind))) as mine:
        run(rg, program)
    theirs = set(WORDS.findall(str(its.value).split("This could be")[0]))
    assert not theirs or theirs & set(WORDS.findall(str(mine.value)))


def test_files_of_sparse_tensors_are_pytorchs(tmp_path):
    for name in ("x", "xc", "h", "c", "s", "b", "k", "e"):
        torch.save(names(torch)[name], tmp_path / "theirs")
        assert text(rg.load(tmp_path / "theirs")) == text(names(torch)[name])
        rg.save(names(rg)[name], tmp_path / "ours")
        assert text(torch.load(tmp_path / "ours")) == text(names(torch)[name])

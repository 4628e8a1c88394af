"""Named results print, are named, and unpack as in PyTorch."""

import pytest
import torch

import retrograd as rg

PUBLIC = sorted(kind.__name__ for kind in torch.return_types.all_return_types if not kind.__name__.endswith("_out"))
EXPRESSIONS = [
    "m.max(x, 1)", "x.min(0, keepdim=True)", "m.median(x, 0)", "m.nanmedian(x, 0)", "m.mode(x, 0)", "m.sort(x)",
    "x.topk(1)", "m.kthvalue(x, 1)", "m.cummax(x, 0)", "m.cummin(x, 0)", "m.aminmax(x)", "m.frexp(x)", "m.geqrf(x)",
    "m.histogram(x, 2)", "m.histogramdd(x, 2)", "m.linalg.cholesky_ex(x)", "m.linalg.eigh(x)", "m.linalg.inv_ex(x)",
    "m.linalg.slogdet(x)", "m.linalg.lu(x)", "m.linalg.lu_factor(x)", "m.linalg.lu_factor_ex(x)", "m.linalg.qr(x)",
    "m.linalg.solve_ex(x, x)", "m.linalg.lstsq(x, x)", "m.qr(x)", "m.svd(x)", "m.linalg.svd(x)", "m.linalg.eig(x)",
    "m.linalg.ldl_factor(x)", "m.linalg.ldl_factor_ex(x)", "m.lu_unpack(*m.linalg.lu_factor(x))",
    "m.std_mean(x)", "m.var_mean(x)", "m.svd_lowrank(x, 1)", "m.pca_lowrank(x, 1)", "m.lobpcg(m.eye(4), 1)",
    "m.nn.functional.max_pool2d(x[None], 2, return_indices=True)", "m.unique(x, return_counts=True)",
    "m.nn.functional.adaptive_max_pool1d(x, 1, return_indices=True)",
]  # fmt: skip


@pytest.mark.parametrize("name", PUBLIC)
def test_each_class_of_results_has_pytorchs_fields(name):
    peer, mine = getattr(torch.return_types, name), getattr(rg.return_types, name)
    assert mine.__match_args__ == peer.__match_args__
    assert (mine.n_fields, mine.n_sequence_fields) == (peer.n_fields, peer.n_sequence_fields)


@pytest.mark.filterwarnings("ignore:torch.lu is deprecated", "ignore:torch.qr is deprecated")
@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_results_have_the_class_of_pytorchs(expression):
    def described(m):
        result = eval(expression, {"m": m, "x": m.tensor([[4.0, 1.0], [1.0, 3.0]])})
        kind = type(result)
        return f"{kind.__module__}.{kind.__qualname__}".replace("torch", "retrograd"), len(result)

    assert described(rg) == described(torch)


def test_results_print_as_in_pytorch():
    mine, peer = (repr(m.sort(m.tensor([[2.0, 1.0], [0.5, 3.0]]))) for m in (rg, torch))
    assert mine == peer.replace("torch.", "retrograd.")

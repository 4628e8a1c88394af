"""Autocast: every operator of PyTorch's lists for the CPU, and others, return the dtypes that PyTorch returns."""

import pytest
import torch

import retrograd as rg

OPERATORS = """
m @ m; torch.mm(m, m); torch.mv(m, v); torch.dot(v, v); torch.inner(m, m); torch.outer(v, v)
torch.einsum('ij,jk->ik', m, m); torch.tensordot(m, m, 1); torch.bmm(m[None], m[None])
torch.addmm(m, m, m); torch.addmv(v, m, v); torch.addr(m, v, v); torch.baddbmm(m[None], m[None], m[None])
torch.addbmm(m, m[None], m[None]); F.linear(m, m, v); F.bilinear(m, m, m[None])
torch.linalg.multi_dot([m, m, m]); torch.linalg.vecdot(m, m); torch.kron(m, m); torch.matrix_exp(m)
F.conv1d(m[None], m[:, :, None]); F.conv2d(x, x); F.conv3d(x[None], x[None])
F.conv_transpose1d(m[None], m[:, :, None]); F.conv_transpose2d(x, x); F.prelu(m, v)
F.scaled_dot_product_attention(x, x, x); m.softmax(1); m.log_softmax(1); F.layer_norm(m, (4,)); F.group_norm(x, 2)
F.batch_norm(x, None, None, training=True); F.instance_norm(x); F.rms_norm(m, (4,)); F.local_response_norm(x, 2)
F.normalize(m); m.norm(); torch.linalg.vector_norm(m); F.cosine_similarity(m, m); torch.cdist(m, m)
F.pairwise_distance(m, m); m.sum(); m.mean(); m.prod(); m.prod(1); m.cumsum(0); m.logsumexp(0); m.std(); m.exp()
m.quantile(0.5); m.nanquantile(0.5); m.trace(); torch.polar(m, m); torch.view_as_complex(m.reshape(2, 4, 2))
F.mse_loss(m, m); F.l1_loss(m, m); F.smooth_l1_loss(m, m); F.huber_loss(m, m); F.binary_cross_entropy(m, m)
F.binary_cross_entropy_with_logits(m, m); F.nll_loss(m, i); F.cross_entropy(m, i); F.kl_div(m, m, reduction='sum')
F.poisson_nll_loss(m, m); F.gaussian_nll_loss(m, m, m); F.hinge_embedding_loss(m, one); F.soft_margin_loss(m, one)
F.cosine_embedding_loss(m, m, one[0]); F.margin_ranking_loss(v, v, one[0]); F.triplet_margin_loss(m, m, m)
F.multi_margin_loss(m, i); F.multilabel_soft_margin_loss(m, one); F.avg_pool2d(x, 2); F.avg_pool3d(x, 2)
F.adaptive_avg_pool2d(x, 2); F.adaptive_avg_pool3d(x, 2); F.adaptive_max_pool3d(x, 2); F.max_pool2d(x, 2)
F.max_pool3d(x, 2); F.pad(x, (1, 1)); torch.linalg.cholesky(pd); torch.cholesky_inverse(pd); torch.inverse(pd)
torch.linalg.inv(pd); torch.linalg.solve(pd, pd); torch.linalg.qr(pd)[0]; torch.linalg.svd(pd)[0]; torch.svd(pd)[0]
torch.linalg.svdvals(pd); torch.linalg.eigh(pd)[0]; torch.linalg.eigvalsh(pd); torch.linalg.eig(pd)[0]
torch.linalg.lstsq(pd, pd)[0]; torch.linalg.cond(pd); torch.linalg.matrix_rank(pd); torch.pinverse(pd)
torch.linalg.tensorsolve(pd, v); torch.linalg.householder_product(m, v); torch.geqrf(m)[0]; torch.fft.fft(v)
torch.fft.rfft(v); torch.fft.irfft(v); torch.fft.fft2(m); torch.cat([m, one]); torch.stack([m, one])
torch.index_copy(m, 0, i[:1], one[:1]); torch.addcmul(m, one, one); F.embedding(i, m); F.glu(m); F.gelu(m)
"""
CASES = [case.strip() for line in OPERATORS.strip().split("\n") for case in line.split(";")]


def dtype_of(case, package, dtype):
    """Return the name of the dtype that an expression has under autocast."""
    m = package.arange(1.0, 17.0).reshape(4, 4) / 17
    names = {
        "m": m, "v": m[0], "x": m.reshape(2, 2, 2, 2), "pd": m @ m.T + package.eye(4), "one": package.ones(4, 4),
        "i": package.arange(4), "torch": package, "F": package.nn.functional,
    }  # fmt: skip
    names |= {name: names[name].to(dtype) for name in ("m", "v", "x", "pd")}
    with package.autocast("cpu", dtype=package.bfloat16):
        return str(eval(case, names).dtype).removeprefix("torch.")


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float64"])
def test_the_dtypes_under_autocast_are_those_of_pytorch(case, dtype):
    try:
        expected = dtype_of(case, torch, getattr(torch, dtype))
    except RuntimeError as error:
        pytest.skip(f"not defined in PyTorch: {error}")
    assert dtype_of(case, rg, getattr(rg, dtype)) == expected


@pytest.mark.parametrize("cast_to", ["float16", "bfloat16", "float32"])
@pytest.mark.parametrize("given", ["float32", "float64", "int64", "bfloat16"])
def test_a_custom_operator_gets_its_inputs_in_its_dtype_of_autocast(cast_to, given):
    seen = []
    for m in (rg, torch):
        op = m.library.custom_op(
            f"autocast_{cast_to}::{given}", schema="(Tensor x, Tensor[] y) -> Tensor", mutates_args=()
        )(lambda x, y: seen.append([str(t.dtype).rpartition(".")[2] for t in (x, *y)]) or x * 2)
        m.library.register_autocast(op, "cpu", getattr(m, cast_to))
        x = m.ones(2, dtype=getattr(m, given))
        for enabled in (True, False):
            with m.autocast("cpu", dtype=m.bfloat16, enabled=enabled):
                op(x, [x, m.ones(2)])
        op(x, [x])
    assert seen[:3] == seen[3:]

"""The names of the nodes that made the results of each entry's first sample; exemptions by reason."""

from typing import Any

import torch

import retrograd as rg

from .conversion import Converter
from .entries import counterpart, entries
from .sides import Side, only_tensors, seed, unchanged

COMPOSED = "our operator is composed of others, which make the nodes"
OVERLOAD = "PyTorch's overloads for numbers and for tensors have nodes of different numbers, ours is one operator"
COPIES = "a copy of a view is the view, and a copy of it"
IN_PLACE = "the operator is the one that records writes in place, which has the name of their nodes"
MORE = "PyTorch has no derivative"
INTERNAL = "PyTorch computes it by other operators, which make the nodes"
# Entries whose nodes have other names than PyTorch's, by the reason.
EXEMPT = {
    COMPOSED: """
        addmm addmm.decomposed addmv addbmm baddbmm vdot addr addcmul addcdiv block_diag combinations cdist cholesky
        cholesky_inverse cholesky_solve unsafe_chunk unsafe_split complex corrcoef cov cross geqrf ldexp lu_unpack
        lu_solve masked_fill masked_scatter masked_select max.reduction_no_dim var_mean var_mean.unbiased std_mean
        std_mean.unbiased min.reduction_no_dim quantile nanquantile nn.functional.linear_cross_entropy.chunked
        nn.functional.linear_cross_entropy.chunked_none aminmax native_group_norm native_layer_norm native_batch_norm
        nn.functional.adaptive_avg_pool1d nn.functional.adaptive_avg_pool2d nn.functional.adaptive_avg_pool3d
        nn.functional.adaptive_max_pool1d nn.functional.adaptive_max_pool2d nn.functional.adaptive_max_pool3d
        nn.functional.avg_pool1d nn.functional.avg_pool2d nn.functional.avg_pool3d
        nn.functional.binary_cross_entropy_with_logits nn.functional.conv_transpose1d nn.functional.conv_transpose2d
        nn.functional.conv_transpose3d nn.functional.group_norm nn.functional.layer_norm nn.functional.rms_norm
        nn.functional.pad.reflect nn.functional.pad.replicate nn.functional.pad.replicate_negative
        nn.functional.pad.circular nn.functional.unfold nn.functional.interpolate.nearest
        nn.functional.interpolate.nearest-exact nn.functional.interpolate.linear nn.functional.interpolate.bilinear
        nn.functional.interpolate.bicubic nn.functional.interpolate.trilinear nn.functional.interpolate.area
        nn.functional.upsample_bilinear nn.functional.upsample_nearest nn.functional.soft_margin_loss
        nn.functional.multi_margin_loss nn.functional.multilabel_margin_loss nn.functional.fractional_max_pool2d
        nn.functional.fractional_max_pool3d nn.functional.max_pool1d nn.functional.max_pool2d nn.functional.max_pool3d
        nn.functional.max_unpool1d nn.functional.max_unpool1d.grad nn.functional.max_unpool2d
        nn.functional.max_unpool2d.grad nn.functional.max_unpool3d nn.functional.max_unpool3d.grad nn.functional.glu
        nn.functional.rrelu to nn.functional.batch_norm nn.functional.binary_cross_entropy mvlgamma.mvlgamma_p_1
        mvlgamma.mvlgamma_p_3 mvlgamma.mvlgamma_p_5 dist ormqr rot90 sgn triangular_solve polar index_fill index_copy
        index_add index_reduce.mean index_reduce.prod index_reduce.amin index_reduce.amax unique_consecutive put take
        normal scatter_add renorm repeat fill tile trace nn.functional.smooth_l1_loss norm.inf t
        nn.functional.embedding_bag nn.functional.mse_loss nn.functional.grid_sample grid_sampler_2d grid_sampler_3d
        std std.unbiased nn.functional.nll_loss nn.functional.huber_loss nn.functional.pdist
        nn.functional.pairwise_distance nn.functional.pixel_shuffle nn.functional.pixel_unshuffle
        nn.functional.channel_shuffle scatter_reduce.sum scatter_reduce.mean linalg.cross linalg.cholesky
        linalg.cholesky_ex linalg.vecdot linalg.householder_product linalg.ldl_solve linalg.lstsq
        linalg.lstsq.grad_oriented linalg.lu linalg.lu_solve linalg.solve linalg.solve_ex
    """,
    OVERLOAD: """
        clamp_max clamp_min round.decimals_0 __rsub__ rsub trapz trapezoid cumulative_trapezoid
    """,
    COPIES: """
        expand_copy diagonal_copy alias_copy as_strided_copy narrow_copy view_copy permute_copy split_with_sizes_copy
        unbind_copy unfold_copy squeeze_copy unsqueeze_copy transpose_copy t_copy
    """,
    IN_PLACE: "zero_",
    MORE: """
        floor_divide heaviside histogram histogramdd nn.functional.silu.complex special.airy_ai
        special.bessel_j0 special.bessel_j1 special.bessel_y0 special.bessel_y1 special.chebyshev_polynomial_t
        special.chebyshev_polynomial_u special.chebyshev_polynomial_v special.chebyshev_polynomial_w
        special.hermite_polynomial_h special.hermite_polynomial_he special.laguerre_polynomial_l
        special.legendre_polynomial_p special.modified_bessel_i0 special.modified_bessel_i1
        special.modified_bessel_k0 special.modified_bessel_k1 special.scaled_modified_bessel_k0
        special.scaled_modified_bessel_k1 special.shifted_chebyshev_polynomial_t special.shifted_chebyshev_polynomial_u
        special.shifted_chebyshev_polynomial_v special.shifted_chebyshev_polynomial_w special.spherical_bessel_j0
        masked.prod
    """,
    INTERNAL: """
        diff stft nn.functional.scaled_dot_product_attention __rdiv__ svd_lowrank pca_lowrank kron fft.fft fft.rfft2
        fft.rfftn fft.ifft fft.ihfft linalg.cond linalg.matrix_power linalg.vander linalg.tensorinv special.ndtr
        masked.sum masked.var
    """,
}
EXEMPTED = {name for names in EXEMPT.values() for name in names.split()}


def differentiable() -> list[str]:
    """Return the entries that have a counterpart here and accept numbers with derivatives."""
    inexact = {torch.float64, torch.complex128}
    return [name for name, entry in entries().items() if counterpart(entry) is not None and inexact & {*entry.dtypes}]


def node_names(name: str) -> tuple[Any, Any]:
    """Return the names of the nodes of the results in PyTorch, and here; or that the sample is refused."""
    entry = entries()[name]
    dtype = torch.float64 if torch.float64 in entry.dtypes else torch.complex128
    seed()
    sample = next(iter(entry.sample_inputs("cpu", dtype, requires_grad=True)))
    theirs = _names(Side(torch, entry.op, sample, unchanged, unchanged, unchanged))
    return theirs, _names(Side(rg, counterpart(entry), sample, unchanged, unchanged, Converter().convert))


def _names(side: Side) -> Any:
    seed()
    try:
        made = [t.grad_fn for t in only_tensors(side())]
    except (RuntimeError, NotImplementedError):
        return "refused"
    return [None if node is None else node.name() for node in made]

"""Every public function and method of PyTorch that tensor subclasses may override exists here under the same name.

PyTorch lists these itself; its list has no flags, types and compiler tools. Deliberate omissions are listed in
ABSENT, by reason.
"""

from functools import reduce

import pytest
import torch
import torch.masked
import torch.overrides

import retrograd as rg

HOMES = {
    "": (torch, torch.functional),
    "nn.functional": (torch.nn.functional,),
    "nn.init": (torch.nn.init,),
    "Tensor": (torch.Tensor,),
}
SPACES = ("fft", "linalg", "masked", "signal.windows", "special")

ABSENT = {
    "there is no quantisation": """
        choose_qparams_optimized dequantize fake_quantize_per_channel_affine fake_quantize_per_tensor_affine
        fbgemm_linear_fp16_weight fbgemm_linear_fp16_weight_fp32_activation fbgemm_linear_int8_weight
        fbgemm_linear_int8_weight_fp32_activation fbgemm_linear_quantize_weight fbgemm_pack_gemm_matrix_fp16
        fbgemm_pack_quantized_matrix fused_moving_avg_obs_fake_quant int_repr q_per_channel_axis q_per_channel_scales
        q_per_channel_zero_points q_scale q_zero_point quantize_per_channel quantize_per_tensor
        quantize_per_tensor_dynamic quantized_batch_norm quantized_gru_cell quantized_lstm_cell quantized_max_pool1d
        quantized_max_pool2d quantized_max_pool3d quantized_rnn_relu_cell quantized_rnn_tanh_cell
        Tensor.dequantize Tensor.int_repr Tensor.q_per_channel_axis Tensor.q_per_channel_scales
        Tensor.q_per_channel_zero_points Tensor.q_scale Tensor.q_zero_point Tensor.qscheme
    """,
    "sparse tensors are those of retrograd.func.sparse, without the methods of PyTorch's": """
        ccol_indices_copy col_indices_copy crow_indices_copy dsmm hsmm hspmm indices_copy row_indices_copy saddmm smm
        spmm sspaddmm values_copy Tensor.ccol_indices Tensor.coalesce Tensor.col_indices Tensor.crow_indices
        Tensor.dense_dim Tensor.indices Tensor.is_coalesced Tensor.resize_as_sparse_ Tensor.row_indices Tensor.smm
        Tensor.sparse_dim Tensor.sparse_mask Tensor.sparse_resize_ Tensor.sparse_resize_and_clear_ Tensor.sspaddmm
        Tensor.to_dense Tensor.to_sparse
    """,
    "they are of accelerators, other devices or processes": """
        batch_norm_backward_elemt batch_norm_backward_reduce batch_norm_elemt batch_norm_gather_stats
        batch_norm_gather_stats_with_counts batch_norm_stats batch_norm_update_stats is_distributed miopen_batch_norm
        miopen_convolution miopen_convolution_add_relu miopen_convolution_relu miopen_convolution_transpose
        miopen_depthwise_convolution miopen_rnn Tensor.ipu Tensor.is_distributed Tensor.mtia Tensor.record_stream
        Tensor.to_mkldnn Tensor.xpu
    """,
    "NumPy has no such dtype: docs/decisions/0030": "Tensor.chalf",
    "NumPy's memory has no handle of its own": """
        Tensor.const_data_ptr Tensor.is_set_to Tensor.set_ Tensor.storage Tensor.storage_type Tensor.untyped_storage
    """,
    "sizes in traces are numbers of retrograd.export": """
        sym_float sym_int sym_ite sym_max sym_min sym_not sym_sum
    """,
    "PyTorch has itself given them up, or they are parts of others": """
        convolution embedding_bag native_norm slice_inverse lu nn.functional.log_sigmoid Tensor.index
        Tensor.lu Tensor.map2_ Tensor.module_load Tensor.resize Tensor.resize_as Tensor.slice_inverse hash_tensor
        Tensor.hash_tensor
    """,
    "layers have them: nn.LSTM, nn.GRU, nn.RNN": "lstm gru rnn_relu rnn_tanh",
    "a second kind of tensor, which PyTorch calls a prototype": """
        masked.MaskedTensor masked.as_masked_tensor masked.is_masked_tensor masked.masked_tensor
    """,
}
LISTED = {name for names in ABSENT.values() for name in names.split()}


def names(home):
    """Return the public names that may be overridden in a namespace."""
    found = torch.overrides.get_overridable_functions()
    plain = {getattr(f, "__name__", "_") for space in HOMES[home] for f in found[space]}
    return {f"{home}.{name}".lstrip(".") for name in plain if not name.startswith("_")}


def exists(path):
    try:
        reduce(getattr, path.split("."), rg)
    except AttributeError:
        return False
    return True


@pytest.mark.parametrize("home", HOMES)
def test_every_function_of_pytorch_is_here_or_listed(home):
    assert {name for name in names(home) if not exists(name)} - LISTED == set()


@pytest.mark.parametrize("home", SPACES)
def test_every_name_of_a_module_is_here_or_listed(home):
    module = reduce(getattr, home.split("."), torch)
    public = {n for n in dir(module) if not n.startswith("_") and callable(getattr(module, n)) and n != "Tensor"}
    assert {f"{home}.{n}" for n in public if not exists(f"{home}.{n}")} - LISTED == set()


def test_listed_names_are_missing():
    assert {name for name in LISTED if exists(name)} == set()


# -------------------------------------------------------------------------------------- results of the later names

DATA = """
x, y = m.arange(24.0).reshape(2, 3, 4) / 7, m.arange(12.0).reshape(3, 4)
c, w, b = m.complex(y, y * 2), m.arange(3.0) + 1, m.arange(3.0)
image, grid = m.arange(16.0).reshape(1, 1, 4, 4), m.arange(8.0).reshape(1, 2, 2, 2) / 8 - 0.5
h, k = m.arange(6.0).reshape(2, 3) / 6, m.arange(36.0).reshape(12, 3) / 36 - 0.5
"""
CALLS = [
    "m.alias_copy(y)", "m.as_strided_copy(y, (2, 2), (1, 3), 1)", "m.detach_copy(y)", "m.diagonal_copy(y, 1)",
    "m.expand_copy(w, (2, 3))", "m.permute_copy(x, (2, 0, 1))", "m.select_copy(y, 1, 2)", "m.slice_copy(y, 1, 1, 4, 2)",
    "m.slice_copy(y, -1, 2)", "m.split_copy(y, 2)", "m.split_with_sizes_copy(y, [1, 2])", "m.squeeze_copy(image)",
    "m.squeeze_copy(image, 0)", "m.t_copy(y)", "m.transpose_copy(y, 0, 1)", "m.unbind_copy(y, 1)",
    "m.unfold_copy(y, 1, 2, 1)", "m.unsqueeze_copy(y, 1)", "m.view_copy(y, (4, 3))", "m.view_as_real_copy(c)",
    "m.view_as_complex_copy(m.view_as_real(c))",
    "m.native_layer_norm(y, (4,), None, None, 1e-5)", "m.native_group_norm(x, w, b, 2, 3, 4, 3, 1e-5)",
    "m.native_batch_norm(x, w, b, None, None, True, 0.1, 1e-5)", "m.native_batch_norm(x, w, b, b, w, False, 0.1, 1e-5)",
    "m.batch_norm(x, w, b, b.clone(), w.clone(), True, 0.1, 1e-5, False)",
    "m.instance_norm(x, w, b, None, None, True, 0.1, 1e-5, False)", "m.native_dropout(y, 0.0, True)",
    "m.native_dropout(y, 0.5, False)", "m.native_channel_shuffle(image.reshape(1, 4, 2, 2), 2)",
    "m.grid_sampler(image, grid, 0, 0, True)", "m.grid_sampler_2d(image, grid, 1, 1, False)",
    "m.grid_sampler_2d(image, grid, 2, 2, False)", "m.grid_sampler_3d(image, grid, 0, 0, True)",
    "m.grid_sampler_3d(image[None], m.zeros(1, 1, 1, 2, 3), 0, 1, True)",
    "m.affine_grid_generator(m.arange(6.0).reshape(1, 2, 3), (1, 1, 2, 3), False)",
    "m.conv_tbc(x, m.arange(24.0).reshape(2, 4, 3), b, 1)",
    "m.lstm_cell(h, (h, h + 1), k, k / 2, k[:, 0], k[:, 1])", "m.gru_cell(h, h, k[:9], k[3:], k[:9, 0])",
    "m.rnn_tanh_cell(h, h, k[:3], k[:3])", "m.rnn_relu_cell(h, h, k[:3], k[:3], b, w)",
    "m.bilinear(h, h, k.reshape(4, 3, 3), b[:1] + m.arange(4.0))", "(y + 1).polygamma_(1)", "(y + 1).float_power_(2)",
    "(y + 1).double().float_power_(2.5)", "(y + 1).double().float_power_(m.tensor(2))",
    "(y + 1).double().float_power_(1j)",
    "m.tensor(x.transpose(0, 2).dim_order())", "m.tensor(y.expand(2, 3, 4).dim_order())", "m.tensor(y.t().dim_order())",
    "m.triangular_solve(m.ones(3, 2), m.tril(y[:, :3] + m.eye(3)), False)",
]  # fmt: skip


def said(call, m, plain):
    """Return the results as data, or that the call is refused."""
    given = {"m": m}
    exec(DATA, given)
    try:
        return plain(eval(call, given))
    except (RuntimeError, ValueError):
        return "refused"


def flat(answer):
    return [answer] if isinstance(answer[0], str) else [part for a in answer for part in flat(a)]


@pytest.mark.filterwarnings("ignore:torch.triangular_solve is deprecated")
@pytest.mark.parametrize("call", CALLS)
def test_calls_of_older_names_agree(call, plain):
    ours, theirs = said(call, rg, plain), said(call, torch, plain)
    assert (ours == "refused") == (theirs == "refused")
    for (kind, mine), (other, its) in zip(flat(ours), flat(theirs), strict=True) if ours != "refused" else ():
        assert kind == other
        torch.testing.assert_close(torch.tensor(mine), torch.tensor(its), rtol=1e-5, atol=1e-5)


def test_copies_share_no_memory():
    x = rg.arange(4.0).reshape(2, 2).requires_grad_()
    y = rg.expand_copy(x, (3, 2, 2))
    y.sum().backward()
    assert x.grad.tolist() == [[3, 3], [3, 3]]
    assert rg.alias_copy(x.detach()).data_ptr() != x.data_ptr()

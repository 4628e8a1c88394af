"""The public names of PyTorch: docs/names.md says which exist here.  Functions under older names agree in results."""

import pytest
import torch

import retrograd as rg

from .public_names.absent import ABSENT, matching
from .public_names.members import ABSENT_MEMBERS, members, patterns_of
from .public_names.namespaces import NAMESPACES, names
from .public_names.page import PAGE, page

MISSING = [name.path for namespace in NAMESPACES for name in names(namespace) if not name.exists]


def test_the_page_of_names_is_that_of_the_installed_packages():
    assert PAGE.read_text() == page(), "run `python -m tests.parity.public_names.page` in the environment of parity"


@pytest.mark.parametrize("namespace", NAMESPACES)
def test_every_name_is_here_or_absent_for_a_reason(namespace):
    assert [name.path for name in names(namespace) if not name.exists and not matching(name.path)] == []


def test_every_pattern_of_absent_names_is_needed():
    used = {matching(path)[0] for path in MISSING if matching(path)}
    assert {(reason, p) for reason, patterns in ABSENT.items() for p in patterns.split()} - used == set()


def test_every_member_of_a_class_is_here_or_absent_for_a_reason():
    absent = [path for path, exists in members().items() if not exists]
    assert [path for path in absent if not patterns_of(path)] == []
    needed = {pattern for path in absent for pattern in patterns_of(path)}
    assert {p for patterns in ABSENT_MEMBERS.values() for p in patterns.split()} - needed == set()


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
    *(f"m.kl_div(y, y, {kind}, log_target=True)" for kind in range(3)),
    *(f"m.cosine_embedding_loss(y, y + w[:, None], m.tensor([1, -1, 1]), 0.1, {kind})" for kind in range(3)),
    *(f"m.hinge_embedding_loss(y, m.sign(y - 1), 2.0, {kind})" for kind in range(3)),
    *(f"m.margin_ranking_loss(b, w, m.tensor([1, -1, 1]), 0.5, {kind})" for kind in range(3)),
    *(f"m.triplet_margin_loss(y, y * 2, y + 1, 1.0, 2.0, 1e-6, False, {kind})" for kind in range(3)),
    *(f"m.poisson_nll_loss(y, y, True, False, 1e-8, {kind})" for kind in range(3)),
    *(f"m.binary_cross_entropy_with_logits(y, y / 2, None, m.tensor(2.0), {kind})" for kind in range(3)),
    *(f"m.ctc_loss(x[:, :, None].log_softmax(0)[:, 0], m.tensor([[1]]), (2,), (1,), 0, {kind})" for kind in range(3)),
    "m.kl_div(y, y, reduction=2)", "m.embedding(y, m.tensor([[2, 0], [1, 1]]))",
    "m.embedding(weight=y, indices=m.tensor([2, 0]), padding_idx=-1)",
    "m.layer_norm(y, (4,), None, None, 1e-5, False)", "m.layer_norm(y, (4,), cudnn_enable=True)",
    "m.group_norm(x, 3, w, b, 1e-5, False)", "m.group_norm(x, 3, cudnn_enabled=False)", "m.dropout(y, 0.5, False)",
    "m.dropout(y, p=0.5, train=False)", "m.dropout(input=y, p=0.0, train=True)", "m.alpha_dropout(y, 0.5, train=False)",
    "m.feature_alpha_dropout(y, p=0.5, train=False)", "m.feature_dropout(y, p=0.5, train=False)",
    "m.adaptive_max_pool1d(x, 2)", "m.nn.functional.softmax(y, dim=1, _stacklevel=5)",
    "m.nn.functional.log_softmax(y, 1, _stacklevel=5)", "m.nn.functional.softmin(y, dim=0, _stacklevel=5)",
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


@pytest.mark.parametrize("mode", ["default", "warn", "error", 0, 1, 2, 3, -1, "loud", None, 1.0])
def test_the_debug_mode_of_determinism_agrees(mode):
    answers = []
    for m in (rg, torch):
        try:
            m.set_deterministic_debug_mode(mode)
            answers.append((m.get_deterministic_debug_mode(), m.is_deterministic_algorithms_warn_only_enabled()))
        except (RuntimeError, TypeError) as error:
            answers.append(type(error))
        finally:
            m.use_deterministic_algorithms(False)
    assert answers[0] == answers[1]

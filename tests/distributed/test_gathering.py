"""Which layers, losses and optimizers gather tensors of which each rank has a part: others compute with the parts."""

import threading

import numpy as np
import pytest

import retrograd as rg
import retrograd.distributed as dist
from retrograd import nn
from retrograd.distributed.tensor import DTensor, Replicate, Shard, dispatch, distribute_tensor

F = nn.functional
BATCH = 5  # is divided unevenly


def values(*shape, seed=0):
    return rg.from_numpy(np.random.default_rng(seed).standard_normal(shape))


def classes(size):
    return rg.from_numpy(np.random.default_rng(1).integers(0, size, BATCH))


ROWS, OTHERS, IMAGES, SEQUENCE = (
    values(BATCH, 8), values(BATCH, 8, seed=1), values(BATCH, 4, 5, 5), values(BATCH, 4, 6),
)  # fmt: skip
MATRIX, VECTOR, KERNEL = values(8, 8, seed=2), values(8, seed=3), values(4, 4, 3, 3, seed=4)
SIGNS, TRUTHS = OTHERS[:, 0].sign(), (OTHERS > 0).double()
ACTIVATIONS = (
    "celu elu gelu glu hardsigmoid hardswish hardtanh leaky_relu logsigmoid mish relu relu6 selu sigmoid silu softplus "
    "softshrink softsign tanh tanhshrink"
)
CALLS = {
    **{name: (getattr(F, name), ROWS) for name in ACTIVATIONS.split()},
    "linear": (F.linear, ROWS, MATRIX, VECTOR),
    "bilinear": (F.bilinear, ROWS, OTHERS, values(3, 8, 8)),
    "embedding": (F.embedding, classes(8), MATRIX),
    "one_hot": (lambda index: F.one_hot(index, 8), classes(8)),
    "conv1d": (F.conv1d, SEQUENCE, values(3, 4, 2)),
    "conv2d": (F.conv2d, IMAGES, KERNEL, values(4)),
    "conv2d with groups": (lambda x, weight: F.conv2d(x, weight, groups=4), IMAGES, values(4, 1, 3, 3)),
    "conv_transpose2d": (F.conv_transpose2d, IMAGES, KERNEL),
    "max_pool2d": (lambda x: F.max_pool2d(x, 2), IMAGES),
    "avg_pool2d": (lambda x: F.avg_pool2d(x, 2), IMAGES),
    "adaptive_avg_pool2d": (lambda x: F.adaptive_avg_pool2d(x, 1), IMAGES),
    "interpolate": (lambda x: F.interpolate(x, scale_factor=2), IMAGES),
    "interpolate bilinearly": (lambda x: F.interpolate(x, scale_factor=2, mode="bilinear"), IMAGES),
    "pad": (lambda x: F.pad(x, (1, 1)), IMAGES),
    "pad by reflection": (lambda x: F.pad(x, (1, 1, 1, 1), mode="reflect"), IMAGES),
    "unfold": (lambda x: F.unfold(x, 2), IMAGES),
    "layer_norm": (lambda x, *weights: F.layer_norm(x, (8,), *weights), ROWS, VECTOR, VECTOR),
    "rms_norm": (lambda x, weight: F.rms_norm(x, (8,), weight), ROWS, VECTOR),
    "group_norm": (lambda x: F.group_norm(x, 2), IMAGES),
    "instance_norm": (F.instance_norm, IMAGES),
    "batch_norm": (lambda x: F.batch_norm(x, None, None, training=True), IMAGES),
    "batch_norm of a trained model": (F.batch_norm, IMAGES, values(4), values(4).abs()),
    "attention": (lambda x: F.scaled_dot_product_attention(x, x, x, is_causal=True), SEQUENCE),
    "attention with a mask": (F.scaled_dot_product_attention, SEQUENCE, SEQUENCE, SEQUENCE, values(4, 4) > 0),
    "softmax": (lambda x: F.softmax(x, -1), ROWS),
    "normalize": (F.normalize, ROWS),
    "cosine_similarity": (F.cosine_similarity, ROWS, OTHERS),
    "pairwise_distance": (F.pairwise_distance, ROWS, OTHERS),
    "cross_entropy": (F.cross_entropy, ROWS, classes(8)),
    "nll_loss": (F.nll_loss, ROWS, classes(8)),
    "mse_loss": (F.mse_loss, ROWS, OTHERS),
    "l1_loss": (F.l1_loss, ROWS, OTHERS),
    "smooth_l1_loss": (F.smooth_l1_loss, ROWS, OTHERS),
    "huber_loss": (F.huber_loss, ROWS, OTHERS),
    "kl_div": (F.kl_div, ROWS, OTHERS.softmax(1)),
    "binary_cross_entropy": (lambda x, y: F.binary_cross_entropy(x.sigmoid(), y), ROWS, TRUTHS),
    "binary_cross_entropy_with_logits": (F.binary_cross_entropy_with_logits, ROWS, TRUTHS),
    "poisson_nll_loss": (F.poisson_nll_loss, ROWS, OTHERS.abs()),
    "soft_margin_loss": (F.soft_margin_loss, ROWS, 2 * TRUTHS - 1),
    "hinge_embedding_loss": (F.hinge_embedding_loss, ROWS, 2 * TRUTHS - 1),
    "cosine_embedding_loss": (F.cosine_embedding_loss, ROWS, OTHERS, SIGNS),
    "triplet_margin_loss": (F.triplet_margin_loss, ROWS, OTHERS, values(BATCH, 8, seed=5)),
    "multi_margin_loss": (F.multi_margin_loss, ROWS, classes(8)),
    "an index": (lambda x: x[..., 2:5] + x[:, 3, None], ROWS),
    "another dtype": (lambda x, index: x * index, ROWS, rg.arange(8)),
    "a choice": (lambda x, other: rg.where(x > 0, x, other), ROWS, VECTOR),
    "the norm of all": (lambda x: x.norm(), ROWS),
    "the mean of all": (lambda x: x.mean(), ROWS),
}
# The operators that gather; of those for batches, each rank could compute its part.
GATHERING = {
    Shard(0): {
        "batch_norm": {"norm_channels"}, "group_norm": {"reshape"}, "instance_norm": {"reshape"},
    },
    Shard(1): {
        "attention": {"attend"}, "attention with a mask": {"attend"},
        "batch_norm": {"norm_channels"}, "group_norm": {"reshape"}, "instance_norm": {"reshape"},
        "an index": {"slice"}, "conv2d with groups": {"convolution"}, "glu": {"narrow"},
        "layer_norm": {"norm_rows"}, "rms_norm": {"norm_rows"},
    },
}  # fmt: skip


def record_gathers(monkeypatch):
    """Return a function that returns the names of the operators that gathered on a thread since its last call."""
    found, plan_for, run_on_whole = {}, dispatch.plan_for, dispatch._run_on_whole

    def note(name):
        found.setdefault(threading.current_thread(), set()).add(name)

    def plan_and_note(call, given, nest):
        plan, definition = plan_for(call, given, nest), call.op.definition
        if plan.gathers(given) and definition.compose_divided is None and not getattr(definition, "in_stages", False):
            note(call.op.name)
        return plan

    def gather_and_note(func, args, kwargs):
        note(getattr(func, "__name__", str(func)))
        return run_on_whole(func, args, kwargs)

    monkeypatch.setattr(dispatch, "plan_for", plan_and_note)
    monkeypatch.setattr(dispatch, "_run_on_whole", gather_and_note)
    return lambda: found.pop(threading.current_thread(), set())


def gradients_of(call, args):
    """Return the result of a call, and the gradients of its floating arguments."""
    inputs = [x.requires_grad_() for x in args if x.dtype == rg.float64]
    out = call(*args)
    if not inputs:
        return [out]
    return [out, *[g for g in rg.autograd.grad(out.square().sum(), inputs, allow_unused=True) if g is not None]]


@pytest.mark.parametrize("kind", GATHERING, ids=str)
def test_layers_and_losses_compute_with_parts_but_these(kind, monkeypatch):
    gathered, expected, found = record_gathers(monkeypatch), {}, {}
    for name, (call, *args) in CALLS.items():
        expected[name] = gradients_of(call, [x.detach().clone() for x in args])

    def script():
        mesh = dist.init_device_mesh("cpu", (2,))
        for name, (call, *args) in CALLS.items():
            parts = [
                distribute_tensor(x, mesh, [kind if len(x) == BATCH and x.ndim > kind.dim else Replicate()])
                for x in args
            ]
            gathered()
            results = gradients_of(call, parts)
            if names := gathered():
                found[name] = names
            for part, whole in zip(results, expected[name], strict=True):
                assert isinstance(part, DTensor)
                whole = whole.detach()
                np.testing.assert_allclose(part.full_tensor().detach(), whole, 1e-10, 1e-12, err_msg=name)

    dist.run_threads(script, 2)
    assert found == GATHERING[kind]


OPTIMIZERS = ["Adadelta", "Adagrad", "Adam", "AdamW", "Adamax", "ASGD", "NAdam", "RAdam", "RMSprop", "Rprop", "SGD"]


def test_optimizers_and_clipping_gather_no_parameters(monkeypatch):
    gathered = record_gathers(monkeypatch)

    def script():
        mesh = dist.init_device_mesh("cpu", (2,))
        for name in OPTIMIZERS:
            p = nn.Parameter(distribute_tensor(ROWS, mesh, [Shard(0)]))
            optimizer = getattr(rg.optim, name)([p])
            p.square().sum().backward()
            nn.utils.clip_grad_norm_([p], 0.1)
            optimizer.step()
        return gathered()

    assert dist.run_threads(script, 2) == [set(), set()]

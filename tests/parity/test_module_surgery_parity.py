"""Recomputed weights, pruning and fusion compared with PyTorch: states, values, gradients and steps of training."""

import inspect

import numpy as np
import pytest
import torch
import torch.nn.utils.prune

import retrograd as rg
from retrograd import nn

from .test_nn_parity import close, compare, numbers

pytestmark = pytest.mark.filterwarnings("ignore:.*weight_norm.* is deprecated in favor of:FutureWarning")
LAYERS = {"Linear": ((3, 4), (5, 3)), "Conv2d": ((2, 4, 3), (2, 2, 5, 5)), "ConvTranspose1d": ((3, 2, 2), (2, 3, 4))}
NORMS = [
    ("weight_norm", {}),
    ("weight_norm", {"dim": None}),
    ("weight_norm", {"dim": 1}),
    ("spectral_norm", {}),
    ("spectral_norm", {"n_power_iterations": 3, "eps": 0.1, "dim": 1}),
]


@pytest.mark.parametrize(("norm", "settings"), NORMS)
@pytest.mark.parametrize("name", LAYERS)
def test_a_recomputed_weight_agrees_in_training_and_evaluation(name, norm, settings):
    args, shape = LAYERS[name]
    mine, peer = (getattr(m.utils, norm)(getattr(m, name)(*args), **settings) for m in (nn, torch.nn))
    x = numbers(*shape)
    optimizers = rg.optim.SGD(mine.parameters(), lr=0.1), torch.optim.SGD(peer.parameters(), lr=0.1)
    for _ in range(3):
        mine.zero_grad()
        peer.zero_grad()
        compare(mine, peer, [x])
        for optimizer in optimizers:
            optimizer.step()
    mine.eval(), peer.eval()
    compare(mine, peer, [x])
    for m, layer in ((nn, mine), (torch.nn, peer)):
        getattr(m.utils, f"remove_{norm}")(layer)
    assert list(mine.state_dict()) == list(peer.state_dict())
    close(mine.weight, peer.weight, "weight")


METHODS = {
    "l1, number": lambda p, m: p.l1_unstructured(m, "weight", 3),
    "l1, share": lambda p, m: p.l1_unstructured(m, "weight", 0.4),
    "l2 rows": lambda p, m: p.ln_structured(m, "weight", 0.5, 2, 0),
    "l1 columns": lambda p, m: p.ln_structured(m, "weight", 1, 1, -1),
    "largest columns": lambda p, m: p.ln_structured(m, "weight", 1, float("inf"), 1),
    "identity": lambda p, m: p.identity(m, "bias"),
    "global": lambda p, m: p.global_unstructured([(m, "weight"), (m, "bias")], p.L1Unstructured, amount=0.5),
}


def pruned(methods):
    """Return a layer of each library with equal values, pruned by methods in turn."""
    mine, peer = nn.Linear(4, 5), torch.nn.Linear(4, 5)
    peer.load_state_dict({key: torch.tensor(value.tolist()) for key, value in mine.state_dict().items()})
    for method in methods:
        METHODS[method](nn.utils.prune, mine)
        METHODS[method](torch.nn.utils.prune, peer)
    return mine, peer


@pytest.mark.parametrize("second", [*METHODS, None])
@pytest.mark.parametrize("first", METHODS)
def test_pruned_layers_agree(first, second):
    mine, peer = pruned([first, second] if second else [first])
    assert list(mine.state_dict()) == list(peer.state_dict())
    for key, value in peer.state_dict().items():
        close(mine.state_dict()[key], value, key)
    compare(mine, peer, [numbers(3, 4)])
    for name in ("weight", "bias"):
        if hasattr(peer, f"{name}_mask"):
            nn.utils.prune.remove(mine, name)
            torch.nn.utils.prune.remove(peer, name)
    assert list(mine.state_dict()) == list(peer.state_dict())
    close(mine.weight, peer.weight, "weight")


@pytest.mark.parametrize("count", [0, 1, 2, 3, 5])
def test_random_pruning_prunes_as_many(count):
    for method, settings in (("random_unstructured", {}), ("random_structured", {"dim": 0})):
        mine, peer = nn.Linear(4, 5), torch.nn.Linear(4, 5)
        for m, layer in ((nn, mine), (torch.nn, peer)):
            getattr(m.utils.prune, method)(layer, "weight", count / 5, **settings)
        assert float(mine.weight_mask.sum()) == float(peer.weight_mask.sum())


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("affine", [True, False])
@pytest.mark.parametrize("name", ["Linear", "Conv2d", "ConvTranspose1d"])
def test_fused_layers_agree(name, affine, bias):
    args, shape = LAYERS[name]
    features = args[1]
    norm = {"Linear": "BatchNorm1d", "Conv2d": "BatchNorm2d", "ConvTranspose1d": "BatchNorm1d"}[name]
    settings = (True,) if name.startswith("ConvTranspose") else ()
    fused, x = [], numbers(*shape)
    values = None
    for m, t in ((nn, rg), (torch.nn, torch)):
        pair = m.ModuleList([getattr(m, name)(*args, bias=bias), getattr(m, norm)(features, affine=affine)])
        if values is None:
            pair[1](pair[0](t.tensor(x)))  # gives the running statistics values
            values = {key: np.array(value.tolist()) for key, value in pair.state_dict().items()}
        pair.load_state_dict({key: t.tensor(value) for key, value in values.items()})
        pair.eval()
        fuse = m.utils.fuse_linear_bn_eval if name == "Linear" else m.utils.fuse_conv_bn_eval
        if name != "Linear" or affine:
            fused.append(fuse(*pair, *settings))
            close(fused[-1](t.tensor(x)), pair[1](pair[0](t.tensor(x))), "the unfused")
    for mine, peer in zip(*[module.parameters() for module in fused], strict=True) if fused else ():
        close(mine, peer, "parameter")
        assert mine.requires_grad == peer.requires_grad


NAMES = [
    *[f"{n}" for n in ("weight_norm", "remove_weight_norm", "spectral_norm", "remove_spectral_norm", "skip_init")],
    *["fuse_conv_bn_eval", "fuse_conv_bn_weights", "fuse_linear_bn_eval", "fuse_linear_bn_weights"],
    *["clip_grad_norm", "clip_grad_norm_", "clip_grad_value_", "clip_grads_with_norm_", "get_total_norm"],
    *["convert_conv2d_weight_memory_format", "convert_conv3d_weight_memory_format"],
    "parametrize.transfer_parametrizations_and_params", "stateless.functional_call",
    *[f"prune.{n}" for n in dir(nn.utils.prune) if getattr(nn.utils.prune, n).__class__.__name__ == "function"
      and not n.startswith("_") and hasattr(torch.nn.utils.prune, n)],
]  # fmt: skip


@pytest.mark.parametrize("path", NAMES)
def test_the_arguments_are_those_of_pytorch(path):
    ours, theirs = nn.utils, torch.nn.utils
    for name in path.split("."):
        ours, theirs = getattr(ours, name), getattr(theirs, name)
    ours, theirs = (list(inspect.signature(function).parameters) for function in (ours, theirs))
    assert ours == [name if name != "parameters_and_buffers" else "parameter_and_buffer_dicts" for name in theirs]

"""Public functions, classes and methods take PyTorch's keywords."""

import importlib
import inspect

import pytest
import torch  # noqa: F401

import retrograd as rg  # noqa: F401

MODULES = (
    *("nn", "nn.functional", "nn.init", "nn.utils", "nn.utils.rnn", "nn.utils.parametrize"),
    *("nn.utils.parametrizations", "nn.utils.prune", "optim", "optim.lr_scheduler", "optim.swa_utils", "autograd"),
    *("autograd.functional", "func", "linalg", "fft", "special", "distributions", "distributions.transforms"),
    *("utils.data", "utils.tensorboard", "utils.checkpoint", "testing", "amp", "signal.windows", "random"),
)
# `input` is accepted by operators, whose signatures name it x; the others are PyTorch's older names and private ones.
ACCEPTED = {"self", "input", "out", "size_average", "reduce", "_stacklevel", "min_value", "max_value", "_caller"}
# Left out: options of what does not exist here, and names of arguments that are passed by position.
LEFT_OUT = {
    "ModuleDict.update": {"modules"},
    "ParameterDict.update": {"parameters"},
    "Sequential.extend": {"sequential"},
    "CorrCholeskyTransform.log_abs_det_jacobian": {"intermediates"},
    "enable_grad": {"orig_func"},
    "SummaryWriter.add_scalar": {"new_style", "double_precision"},
    "SummaryWriter.add_histogram": {"max_bins"},
    "fork_rng": {"_devices_kw", "device_type"},
    "assert_close": {"allow_subclasses", "check_device", "check_layout", "check_stride"},
}


def keywords(function):
    """Return the names of a function's arguments; None if any is accepted, or if it has no signature."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return None
    if any(p.kind is p.VAR_KEYWORD for p in parameters):
        return None
    return {p.name for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)}


def pairs(module):
    """Yield the name, PyTorch's and our version of each public function, class and method of a module."""
    theirs, ours = (importlib.import_module(f"{root}.{module}") for root in ("torch", "retrograd"))
    for name, peer in vars(theirs).items():
        mine = getattr(ours, name, None)
        if (
            name == "Tensor"
            or name[0] == "_"
            or not callable(peer)
            or mine is None
            or not peer.__module__.startswith("torch")
        ):
            continue
        yield name, peer, mine
        if inspect.isclass(peer) and inspect.isclass(mine):
            for method, function in vars(peer).items():
                if method[0] != "_" and inspect.isfunction(function) and hasattr(mine, method):
                    yield f"{name}.{method}", function, getattr(mine, method)


@pytest.mark.filterwarnings("ignore")  # of deprecated names
@pytest.mark.parametrize("module", MODULES)
def test_every_keyword_is_there(module):
    lacking = {}
    for name, peer, mine in pairs(module):
        wanted, found = keywords(peer), keywords(mine)
        if wanted and found is not None and (missing := wanted - found - ACCEPTED - LEFT_OUT.get(name, set())):
            lacking[name] = missing
    assert lacking == {}

"""Modules compared with PyTorch: backward hooks, hooks of states, extra state, members, conversions."""

import pytest
import torch

import retrograd as rg

from .programs import assert_agreement


def as_lists(grads):
    """Return gradients as lists, None where there is none."""
    if isinstance(grads, tuple):
        return [as_lists(g) for g in grads]
    return None if grads is None else grads.tolist()


def linear(m, rows=2, columns=2, bias=False):
    layer = m.nn.Linear(columns, rows, bias=bias).double()
    with m.no_grad():
        layer.weight.copy_(m.arange(1.0, rows * columns + 1).reshape(rows, columns))
        if bias:
            layer.bias.zero_()
    return layer


def call(m, *, requires_grad=True, hooks=(), pre_hooks=(), module=None, output=lambda out: out.sum()):
    """Run a module with backward hooks; return what they received, the gradients, and the kinds of errors."""
    layer, seen = linear(m) if module is None else module(m), []

    def observing(name, result):
        def hook(module, *grads):
            seen.append((name, *[as_lists(g) for g in grads]))
            return None if result is None else result(m, *grads)

        return hook

    for i, result in enumerate(hooks):
        layer.register_full_backward_hook(observing(f"hook {i}", result))
    for i, result in enumerate(pre_hooks):
        layer.register_full_backward_pre_hook(observing(f"pre {i}", result))
    x = m.tensor([[1.0, 2.0]], dtype=m.float64, requires_grad=requires_grad)
    try:
        output(layer(x)).backward()
    except RuntimeError as error:
        return seen, str(error)[:60]
    return seen, as_lists(x.grad), [as_lists(p.grad) for p in layer.parameters()]


def two_outputs(m):
    class Both(m.nn.Module):
        def forward(self, x, scale=2, *, extra=None):
            return x * scale, x + 1

    return Both()


def two_inputs(m):
    class Product(m.nn.Module):
        def forward(self, x):
            return self.inner(x, 3, x.detach())

    class Inner(m.nn.Module):
        def forward(self, x, number, other):
            return x * number * other

    outer = Product()
    outer.inner = Inner()
    outer.register_full_backward_hook = outer.inner.register_full_backward_hook
    return outer


HOOKS = {
    "what it receives": {"hooks": [None]},
    "no input requires grad": {"hooks": [None], "requires_grad": False},
    "a result for inputs that need none": {"hooks": [lambda m, gi, go: (m.ones(1, 2),)], "requires_grad": False},
    "several in order": {"hooks": [None, lambda m, gi, go: (gi[0] * 2,), lambda m, gi, go: (gi[0] + 1,)]},
    "pre-hooks": {"hooks": [None], "pre_hooks": [None, lambda m, go: (go[0] * 3,)]},
    "too many results": {"hooks": [lambda m, gi, go: (gi[0], gi[0])]},
    "too many results of a pre-hook": {"pre_hooks": [lambda m, go: (go[0], go[0])]},
    "two outputs": {"hooks": [None], "module": two_outputs, "output": lambda out: (out[0] * out[1]).sum()},
    "one of two outputs": {"hooks": [None], "module": two_outputs, "output": lambda out: out[1].sum()},
    "arguments that are no tensors": {"hooks": [None], "module": two_inputs},
}


@pytest.mark.filterwarnings("ignore:Full backward hook is firing")
@pytest.mark.parametrize("name", HOOKS)
def test_backward_hooks_receive_and_replace_the_same_gradients(name):
    assert call(rg, **HOOKS[name]) == call(torch, **HOOKS[name])


def net(m):
    """Return a module with a submodule, a buffer, and an extra state."""

    class Net(m.nn.Module):
        def __init__(self):
            super().__init__()
            self.first = linear(m, bias=True)
            self.register_buffer("count", m.zeros(1))
            self.extra = 7

        def forward(self, x):
            return self.first(x)

        def get_extra_state(self):
            return {"extra": self.extra}

        def set_extra_state(self, state):
            self.extra = state["extra"]

    return Net()


def loaded_with_hooks(m, strict):
    log, model = [], net(m)

    def before(module, state, prefix, metadata, strict, missing, unexpected, errors):
        log.append((type(module).__name__, prefix, strict, sorted(state)))
        if "old.weight" in state:
            state["first.weight"] = state.pop("old.weight")

    def after(module, keys):
        log.append((type(module).__name__, list(keys.missing_keys), list(keys.unexpected_keys)))
        keys.missing_keys.clear()

    model.register_load_state_dict_pre_hook(before)
    model.register_load_state_dict_post_hook(after)
    state = dict(net(m).state_dict(), _extra_state={"extra": 9})
    state["old.weight"] = state.pop("first.weight") * 2
    del state["first.bias"]
    keys = model.load_state_dict(state, strict=strict)
    return log, list(keys.missing_keys), list(keys.unexpected_keys), model.extra, model.first.weight.tolist()


def state_with_hooks(m):
    log, model = [], net(m)
    model.register_state_dict_pre_hook(lambda module, prefix, keep_vars: log.append((prefix, keep_vars)))
    model.first.register_state_dict_pre_hook(lambda module, prefix, keep_vars: log.append((prefix, keep_vars)))
    model.first.register_state_dict_post_hook(lambda module, state, prefix, meta: state.pop(prefix + "bias") and None)
    outer = m.nn.Sequential(model)
    return list(outer.state_dict(prefix="a.", keep_vars=True)), log


def assigned(m):
    model = linear(m)
    model.load_state_dict({"weight": m.ones(2, 2, dtype=m.float32)}, assign=True)
    return str(model.weight.dtype).removeprefix("torch."), model.weight.requires_grad, model.weight


def members(m):
    model = net(m)
    model._modules["first"] = m.nn.Identity()
    model._modules["second"] = m.nn.Flatten()
    model._buffers["total"] = m.ones(1)
    model._parameters["scale"] = m.nn.Parameter(m.ones(1))
    del model._buffers["count"]
    return (
        list(model._modules), list(model._buffers), list(model._parameters), "first" in model._modules,
        type(model.first).__name__, sorted(name for name in model.state_dict()), len(model._modules),
        [type(v).__name__ for v in model._modules.values()], model._buffers["total"], model._modules.get("no"),
    )  # fmt: skip


def submodule_set(m, target, strict=False):
    model = net(m)
    model.set_submodule(target, m.nn.Identity(), strict=strict)
    return [(name, type(part).__name__) for name, part in model.named_modules()][1:]


def always_called(m):
    log, model = [], net(m)
    model.register_forward_hook(lambda module, args, output: log.append(("one", output is None)), always_call=True)
    model.register_forward_hook(lambda module, args, output: log.append(("two", output is None)))
    model.register_forward_hook(lambda *args: log.append("three"), always_call=True, with_kwargs=True)
    model(m.ones(1, 2, dtype=m.float64))
    with pytest.raises((RuntimeError, ValueError)):
        model(m.ones(1, 3, dtype=m.float64))
    return log


def conversions(m):
    model = net(m)
    same = model.first.weight
    kinds = []
    for change in (
        lambda: model.half(),
        lambda: model.to("cpu", m.float32),
        lambda: model.to(dtype=m.float64),
        lambda: model.to(m.ones(1, dtype=m.float32)),
        lambda: model.to(device="cpu", dtype=m.float64, non_blocking=True),
        lambda: model.type(m.float32),
        lambda: model.cpu(),
        lambda: model.to("cpu"),
        lambda: model.to(m.device("cpu")),
    ):
        assert change() is model
        kinds.append([str(t.dtype).removeprefix("torch.") for t in (model.first.weight, model.count)])
    conv = m.nn.Conv2d(2, 2, 1).to(memory_format=m.channels_last)
    kinds.append((same is model.first.weight, conv.weight.is_contiguous(memory_format=m.channels_last)))
    return kinds


PROGRAMS = {
    "states: hooks before and after loading": lambda m: loaded_with_hooks(m, False),
    "states: the hook after loading may accept missing names": lambda m: loaded_with_hooks(m, True),
    "states: hooks before and after making": state_with_hooks,
    "states: assign": assigned,
    "states: assign another shape": lambda m: linear(m).load_state_dict({"weight": m.ones(3, 2)}, assign=True),
    "states: extra state is in the dict": lambda m: net(m).state_dict()["_extra_state"],
    "states: destination": lambda m: list(net(m).state_dict(destination={"a": 1}, prefix="b.")),
    "members": members,
    "members: unknown": lambda m: net(m)._modules["no"],
    "members: delete unknown": lambda m: net(m)._modules.__delitem__("no"),
    "submodule: replaced": lambda m: submodule_set(m, "first"),
    "submodule: added": lambda m: submodule_set(m, "second"),
    "submodule: nested": lambda m: submodule_set(m, "first.inner"),
    "submodule: strict": lambda m: submodule_set(m, "second", True),
    "submodule: no name": lambda m: submodule_set(m, ""),
    "submodule: no parent": lambda m: submodule_set(m, "second.third"),
    "submodule: an attribute": lambda m: submodule_set(m, "extra"),
    "hooks: always called": always_called,
    "conversions": conversions,
    "conversions: to integers": lambda m: net(m).to(m.int64),
    "conversions: cuda": lambda m: m is torch or net(m).cuda(),
}
DEVIATIONS = {
    "conversions: cuda": ("RuntimeError", "there is no such device"),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_agree(name):
    assert_agreement(PROGRAMS[name], DEVIATIONS.get(name))

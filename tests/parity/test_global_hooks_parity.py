"""Hooks of all modules, and functions for gradients of convolutions: the same programs in both packages."""

import importlib

import pytest

from .programs import assert_agreement


def global_hooks_of(m):
    return importlib.import_module(f"{m.__name__}.nn.modules.module")


def model(m):
    return m.nn.Sequential(m.nn.Linear(2, 3), m.nn.ReLU(), m.nn.BatchNorm1d(3))


def order_of_calls(m):
    hooks, calls, net = global_hooks_of(m), [], model(m)
    handles = [
        hooks.register_module_forward_pre_hook(lambda module, args: calls.append(("pre", type(module).__name__))),
        hooks.register_module_forward_hook(
            lambda module, args, kwargs, output: calls.append(("after", type(module).__name__, len(kwargs))),
            with_kwargs=True,
        ),
        hooks.register_module_full_backward_pre_hook(lambda module, g: calls.append(("backward pre", len(g)))),
        hooks.register_module_full_backward_hook(
            lambda module, inputs, outputs: calls.append(("backward", type(module).__name__, len(inputs)))
        ),
    ]
    net[0].register_forward_pre_hook(lambda module, args: calls.append("own pre"))
    net[0].register_forward_hook(lambda module, args, output: calls.append("own"))
    net[0].register_full_backward_hook(lambda module, inputs, outputs: calls.append("own backward"))
    x = m.tensor([[1.0, 2.0], [3.0, 5.0]], requires_grad=True)
    net(x).sum().backward()
    for handle in handles:
        handle.remove()
    count = len(calls)
    net[1](x)
    return calls, len(calls) == count


def hooks_replace(m):
    hooks = global_hooks_of(m)
    add = hooks.register_module_forward_pre_hook(lambda module, args: args[0] + 1)
    multiply = hooks.register_module_forward_hook(lambda module, args, output: output * 10)
    with add, multiply:
        return m.nn.ReLU()(m.ones(2))


def hook_always_called(m):
    hooks, calls = global_hooks_of(m), []
    log = lambda module, args, output: calls.append(output)  # noqa: E731
    with hooks.register_module_forward_hook(log, always_call=True):
        try:
            m.nn.Linear(2, 3)(m.ones(1, 5))
        except RuntimeError:
            calls.append("failed")
    return calls


def registrations(m):
    hooks, calls = global_hooks_of(m), []

    def log(kind):
        return lambda module, name, member: calls.append((kind, name, member is None))

    handles = [
        hooks.register_module_parameter_registration_hook(log("parameter")),
        hooks.register_module_buffer_registration_hook(log("buffer")),
        hooks.register_module_module_registration_hook(log("module")),
    ]
    net = model(m)
    net.register_parameter("absent", None)
    net.register_buffer("empty", None)
    net.register_buffer("mean", m.ones(1))
    net.mean = m.zeros(1)
    net.extra = m.nn.ReLU()
    net.extra = None
    net.other = m.nn.Linear(1, 1, bias=False)
    for handle in handles:
        handle.remove()
    net.more = m.nn.ReLU()
    return calls


def convolution_gradients(m):
    grad, found = m.nn.grad, []
    m.manual_seed(0)
    for n in (1, 2, 3):
        x = m.linspace(0, 1, 4 * 6**n, dtype=m.float64).reshape(1, 4, *[6] * n)
        weight = m.linspace(-1, 1, 6 * 2 * 2**n, dtype=m.float64).reshape(6, 2, *[2] * n)
        given = (2, 1, 2, 2)
        g = m.cos(getattr(m.nn.functional, f"conv{n}d")(x, weight, None, *given))
        found += [
            getattr(grad, f"conv{n}d_input")(x.shape, weight, g, *given),
            getattr(grad, f"conv{n}d_weight")(x, weight.shape, g, *given),
        ]
    return found


def convolution_gradients_are_differentiable(m):
    x, weight = m.ones(1, 1, 4, requires_grad=True), m.ones(1, 1, 2, requires_grad=True)
    g = m.arange(3.0).reshape(1, 1, 3).requires_grad_()
    total = m.nn.grad.conv1d_input(x.shape, weight, g).square().sum()
    total = total + m.nn.grad.conv1d_weight(x, weight.shape, g).square().sum()
    total.backward()
    return x.grad, weight.grad, g.grad


def capability(m):
    return m.backends.cpu.get_cpu_capability() in ("DEFAULT", "AVX2", "AVX512")


def exporting(m):
    seen = []

    class Module(m.nn.Module):
        def forward(self, x):
            seen.append(m.compiler.is_exporting())
            return x * 2

    m.export.export(Module(), (m.ones(2),))
    return any(seen), m.compiler.is_exporting()


PROGRAMS = {p.__name__: p for p in [
    order_of_calls, hooks_replace, hook_always_called, registrations, convolution_gradients,
    convolution_gradients_are_differentiable, capability, exporting,
]}  # fmt: skip


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_does_the_same_in_both(name):
    assert_agreement(PROGRAMS[name])

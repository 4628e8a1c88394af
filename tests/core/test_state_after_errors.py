"""Errors in every user function that retrograd calls, and Ctrl-C at any moment, leave no mode active."""

import signal
import subprocess
import sys
import uuid
from contextlib import contextmanager
from pathlib import Path

import pytest

import retrograd as rg
from retrograd.autograd import forward_ad
from retrograd.autograd.graph import allow_mutation_on_saved_tensors, register_multi_grad_hook, saved_tensors_hooks
from retrograd.core import state, watching
from retrograd.func import grad, hessian, jacfwd, jacrev, jet, jvp, linearize, vjp, vmap
from retrograd.library import custom_op
from retrograd.utils.checkpoint import checkpoint

from ..case_groups import group_cases
from .interrupted import check_numbers
from .thread_state import thread_state

X = rg.tensor([[0.5, 1.5], [-1.0, 2.0]])


def leaf():
    return X.clone().requires_grad_()


def product(x):
    return (x * x).sum()


def fails(*args, **kwargs):
    raise failure[0]


failure = [None]


# ---------------------------------------------------------------- each calls `fails`, which raises, in one callback


def in_hook(register):
    """Run a backward pass with the hook `register(x, y, fails)`; y is the result of an operator on the leaf x."""

    def run():
        x = leaf()
        y = x * x
        register(x, y)
        y.sum().backward()

    return run


def function(**methods):
    """Run a Function with some failing methods."""
    own = {
        "forward": lambda x: x * 2,
        "setup_context": lambda ctx, inputs, output: ctx.save_for_backward(*inputs),
        "backward": lambda ctx, g: g * 2,
        "jvp": lambda ctx, t: t * 2,
        "vmap": lambda info, in_dims, x: (x * 2, 0),
        **methods,
    }
    return type("Doubled", (rg.autograd.Function,), {name: staticmethod(f) for name, f in own.items()})


def of_function(use, **methods):
    return lambda: use(function(**methods).apply)


def custom(register=None, kernel=lambda x: x * 2):
    """Run a custom operator with a failing registration."""

    def doubled(x: rg.Tensor) -> rg.Tensor:
        return kernel(x)

    op = custom_op(f"failing::op{uuid.uuid4().hex}", doubled, mutates_args=())
    if register is not None:
        register(op)
    return op


def of_custom(use, register=None, **more):
    return lambda: use(custom(register, **more))


def backward_of(f):
    f(leaf()).sum().backward()


def dual_of(f):
    with forward_ad.dual_level():
        f(forward_ad.make_dual(X, X))


@contextmanager
def failing_at(moment):
    if moment == "enter":
        fails()
    yield
    if moment == "exit":
        fails()


def checkpointed(f, **options):
    return lambda: checkpoint(f, leaf(), use_reentrant=False, **options).sum().backward()


def at_recomputation():
    calls = []

    def f(x):
        calls.append(1)
        return fails() if len(calls) > 1 else x * x

    checkpointed(f)()


def context_fn(first, second):
    return lambda: (failing_at(first), failing_at(second))


def hooked_module():
    module = rg.nn.Linear(2, 2)
    module.register_forward_hook(fails)
    module(X)


def traced_module():
    module = rg.nn.Linear(2, 2)
    module.register_forward_hook(fails)
    try:
        rg.fx.trace(module, X)
    finally:
        assert isinstance(module.weight, rg.nn.Parameter)
        assert module.weight.level is None


class Foreign:
    @classmethod
    def __tensor_function__(cls, func, types, args, kwargs):
        fails()


class Watching(state.Watcher):
    def __init__(self, made, ran):
        self.on_node_created = made
        self.run_node = ran


def watched(made, ran):
    with watching(Watching(made, ran)):
        product(leaf()).backward()


def generator(mode, how):
    """Run a generator in a mode that raises, or into which an error is thrown."""

    @mode
    def numbers():
        yield X.sum()
        if how == "body":
            fails()
        yield X.sum()

    running = numbers()
    next(running)
    if how == "throw":
        running.throw(failure[0])
    next(running)


def nested(*transforms):
    f = fails
    for transform in transforms:
        f = transform(f)
    return lambda: f(X)


def after_backward(w):
    def f(x):
        (w * x).sum().backward()
        fails(w.grad)

    return f


TRANSFORMS = {
    "grad": grad,
    "vmap": vmap,
    "jacrev": jacrev,
    "jacfwd": jacfwd,
    "hessian": hessian,
    "vjp": lambda f: lambda x: vjp(f, x),
    "jvp": lambda f: lambda x: jvp(f, (x,), (x,)),
    "jet": lambda f: lambda x: jet(f, (x,), ([x],)),
    "linearize": lambda f: lambda x: linearize(f, x),
    "rg.grad": lambda f: lambda x: rg.grad(f)(x.numpy()),
    "trace": lambda f: lambda x: rg.fx.trace(f, x),
}

CALLBACKS = {
    "hook of a leaf": in_hook(lambda x, y: x.register_hook(fails)),
    "hook of a result": in_hook(lambda x, y: y.register_hook(fails)),
    "hook of a node": in_hook(lambda x, y: y.grad_fn.register_hook(fails)),
    "hook before a node": in_hook(lambda x, y: y.grad_fn.register_prehook(fails)),
    "hook after accumulation": in_hook(lambda x, y: x.register_post_accumulate_grad_hook(fails)),
    "hook of an accumulator": in_hook(lambda x, y: y.grad_fn.next_functions[0][0].register_hook(fails)),
    "hook before an accumulator": in_hook(lambda x, y: y.grad_fn.next_functions[0][0].register_prehook(fails)),
    "hook of several, all": in_hook(lambda x, y: register_multi_grad_hook((x, y), fails)),
    "hook of several, any": in_hook(lambda x, y: register_multi_grad_hook((x, y), fails, mode="any")),
    "callback of the engine": in_hook(
        lambda x, y: x.register_hook(lambda g: rg.autograd.Variable._execution_engine.queue_callback(fails))
    ),
    "Function.forward": of_function(backward_of, forward=fails),
    "Function.setup_context": of_function(backward_of, setup_context=fails),
    "Function.backward": of_function(backward_of, backward=fails),
    "Function.backward in grad": of_function(lambda f: grad(lambda x: f(x).sum())(X), backward=fails),
    "Function.jvp": of_function(lambda f: jvp(f, (X,), (X,)), jvp=fails),
    "Function.jvp of duals": of_function(dual_of, jvp=fails),
    "Function.forward of duals": of_function(dual_of, forward=fails),
    "Function.vmap": of_function(lambda f: vmap(f)(X), vmap=fails),
    "kernel": of_custom(backward_of, kernel=fails),
    "kernel under sanitize": of_custom(lambda f: rg.library.sanitize()(f)(X), kernel=fails),
    "formula": of_custom(backward_of, lambda op: op.register_autograd(fails)),
    "context of a formula": of_custom(
        backward_of, lambda op: op.register_autograd(lambda ctx, g: g, setup_context=fails)
    ),
    "formula in grad": of_custom(lambda f: grad(lambda x: f(x).sum())(X), lambda op: op.register_autograd(fails)),
    "batching rule": of_custom(lambda f: vmap(f)(X), lambda op: op.register_vmap(fails)),
    "fake": of_custom(lambda op: op.definition.shape(X.aval), lambda op: op.register_fake(fails)),
    "checkpoint": checkpointed(fails),
    "recomputation": at_recomputation,
    "context_fn": checkpointed(product, context_fn=fails),
    **{
        f"context of a checkpoint, {first}, {second}": checkpointed(
            product, context_fn=context_fn(first, second), early_stop=False
        )
        for first, second in (("enter", ""), ("exit", ""), ("", "enter"), ("", "exit"))
    },
    "module": hooked_module,
    "traced module": traced_module,
    "__tensor_function__": lambda: X * Foreign(),
    "watcher of what is made": lambda: watched(fails, lambda proceed, fn, gs: proceed(fn, gs)),
    "watcher of what runs": lambda: watched(lambda fn: None, fails),
    "decorated": lambda: rg.no_grad()(fails)(),
    "decorated by inference_mode": lambda: rg.inference_mode()(fails)(),
    "decorated by dual_level": lambda: forward_ad.dual_level()(fails)(),
    "class": lambda: rg.no_grad()(type("Failing", (), {"__init__": fails}))(),
    **{f"generator, {how}": lambda how=how: generator(rg.no_grad(), how) for how in ("body", "throw")},
    **{f"inference generator, {how}": lambda how=how: generator(rg.inference_mode(), how) for how in ("body", "throw")},
    **{name: nested(transform) for name, transform in TRANSFORMS.items()},
    **{f"{name} in vmap": nested(TRANSFORMS[name], vmap) for name in ("grad", "jvp", "vjp")},
    **{f"{name} in grad": nested(TRANSFORMS[name], grad) for name in ("vmap", "jvp", "trace")},
    "after backward() in vmap": lambda: vmap(after_backward(leaf()))(X),
    "apply_": lambda: X.clone().apply_(fails),
    "functional": lambda: rg.autograd.functional.hvp(fails, X, X),
    "gradcheck": lambda: rg.autograd.gradcheck(fails, leaf()),
    "closure": lambda: rg.optim.LBFGS([leaf()]).step(fails),
}


def within(block):
    """Run in a block that the program enters, and which ends by the error."""

    def run(callback):
        with block():
            callback()

    return run


SURROUNDINGS = {
    "nothing": lambda callback: callback(),
    "hooks": within(lambda: saved_tensors_hooks(lambda t: t, lambda t: t)),
    "writes": within(allow_mutation_on_saved_tensors),
    "profile": within(rg.autograd.profiler.profile),
    "anomaly": within(lambda: rg.autograd.anomaly_mode.detect_anomaly(check_nan=False)),
}


@pytest.mark.filterwarnings("ignore::UserWarning", "ignore:Decorating classes")
@group_cases
@pytest.mark.parametrize("name", CALLBACKS)
def test_an_error_in_a_callback_leaves_the_state_as_it_was(name):
    before = thread_state()
    for surroundings in SURROUNDINGS.values():
        for failure[0] in (KeyError("stop"), KeyboardInterrupt()):
            with pytest.raises((type(failure[0]), RuntimeError)):
                surroundings(CALLBACKS[name])
            assert thread_state() == before
            check_numbers()


@pytest.mark.filterwarnings("ignore:Anomaly Detection has been enabled")
@pytest.mark.parametrize("surroundings", SURROUNDINGS)
@pytest.mark.parametrize("callback", ["pack", "unpack"])
def test_so_does_one_in_hooks_of_saved_tensors(callback, surroundings):
    failure[0] = KeyError("stop")

    def run():
        pair = {"pack": lambda t: t, "unpack": lambda t: t, callback: fails}
        with saved_tensors_hooks(pair["pack"], pair["unpack"]):
            product(leaf()).backward()

    before = thread_state()
    with pytest.raises(KeyError):
        SURROUNDINGS[surroundings](run)
    assert thread_state() == before
    check_numbers()


@pytest.mark.skipif(state.__file__.endswith(".py"), reason="Python may be interrupted in the middle of leaving a mode")
@pytest.mark.skipif(sys.version_info >= (3, 14), reason="Python may be interrupted between entering and the block")
@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="there are no timers that send signals")
def test_interrupts_at_random_moments_leave_the_state_as_it_was():
    script = Path(__file__).with_name("interrupted.py")
    done = subprocess.run([sys.executable, script, "300", "1"], capture_output=True, text=True, timeout=120)
    assert done.stdout == "interrupts 300\n", done.stderr

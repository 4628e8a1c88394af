"""The adapter of the parity scripts: a scenario runs in retrograd and in PyTorch, and both results must be equal.

    @parity
    def test_gradients_accumulate(m):       # m is retrograd, then torch
        x = leaf(m, 1, 2)
        ...
        return x.grad, outcome(lambda: x.backward(m.ones(3)), "[3]", "[2]")

A result is plain data: tensors become lists, dtypes their names, floats six digits.  An error is its built-in kind, and
our message must contain the facts listed after the action.  A known difference is marked
`@parity(known="why", ours="[True, 1.0]")`, with our result as it prints; it fails if there is no difference any more.
"""

import functools
import inspect
import threading
import warnings
from dataclasses import dataclass, replace

import numpy as np
import torch

import retrograd as rg

torch.set_warn_always(True)  # else the second scenario that meets a warning would not see it


@dataclass(frozen=True)
class Raised:
    """An error as an outcome: its kind is compared, its text must contain the facts."""

    kind: str
    text: str
    facts: tuple[str, ...]

    def __repr__(self) -> str:
        return self.kind

    def missing(self) -> list[str]:
        """Return the facts that the text does not contain."""
        return [fact for fact in self.facts if fact.lower() not in self.text.lower()]


def outcome(action, *facts):
    """Return the result of a call, or the error it raises, whose text in retrograd must contain the facts."""
    try:
        return data(action())
    except Exception as error:
        kind = next(c for c in type(error).__mro__ if c.__module__ == "builtins")
        return Raised(kind.__name__, str(error), facts)


def refused(action, *facts):
    """Return an outcome whose error may be of any kind: for assertions in PyTorch where retrograd refuses."""
    result = outcome(action, *facts)
    return replace(result, kind="an error") if isinstance(result, Raised) else result


def warned(action):
    """Return the categories of the warnings of a call, each once, and its outcome."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = outcome(action)
    return sorted({w.category.__name__ for w in caught}), result


def data(value):
    """Return tensors as lists, dtypes as names, containers of them likewise, floats to six digits; others unchanged."""
    if isinstance(value, rg.Tensor | torch.Tensor):
        return data(value.detach().tolist())
    if isinstance(value, float):
        return float(f"{value:.6g}")
    if isinstance(value, dict):
        return {key: data(v) for key, v in value.items()}
    if isinstance(value, (tuple, list)):
        return [data(v) for v in value]
    return dtype_name(value) if isinstance(value, torch.dtype | np.dtype) else value


def dtype_name(dtype):
    """Return 'float32', for either library's dtype."""
    return str(dtype).removeprefix("torch.")


def leaf(m, *values):
    """Return a vector that requires grad."""
    return m.tensor([float(v) for v in values], requires_grad=True)


def logger(log, name, answer=None):
    """Return a hook that logs its name and gradient, and returns a multiple of the gradient, or None."""

    def hook(g):
        log.append((name, data(g)))
        return None if answer is None else g * answer

    return hook


def two_outputs(m, x):
    """Return 3 x and 5 x, as two outputs of one node."""

    class Multiples(m.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 3, x * 5

        @staticmethod
        def backward(ctx, g, h):
            return g * 3 + h * 5

    return Multiples.apply(x)


def in_thread(action):
    """Return the outcome of a call made in a thread of its own."""
    result = []
    thread = threading.Thread(target=lambda: result.append(outcome(action)))
    thread.start()
    thread.join()
    return result[0]


def errors_in(value):
    """Return every Raised in a result."""
    if isinstance(value, Raised):
        return [value]
    values = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [error for v in values for error in errors_in(v)]


def compare(theirs, ours, known, expected):
    """Compare the results of two calls; if `known` says why they differ, ours must be as expected (if given)."""
    theirs, ours = data(theirs()), outcome(ours) if known else data(ours())
    unnamed = [f"{error.text!r} does not name {error.missing()}" for error in errors_in(ours) if error.missing()]
    if known:
        assert repr(ours) != repr(theirs) or unnamed, f"they agree: delete known={known!r}"
    wanted = repr(theirs) if not known else expected or repr(ours)
    assert repr(ours) == wanted, f"ours: {ours!r}, wanted: {wanted}, theirs: {theirs!r}"
    assert known or not unnamed, unnamed


def parity(scenario=None, *, known="", ours=""):
    """Make a scenario, a function of m (and of what parametrize gives), a test that runs it in both libraries."""
    if scenario is None:
        return functools.partial(parity, known=known, ours=ours)

    @functools.wraps(scenario)
    def test(**given):
        compare(lambda: scenario(torch, **given), lambda: scenario(rg, **given), known, ours)

    signature = inspect.signature(scenario)
    test.__signature__ = signature.replace(parameters=[p for p in signature.parameters.values() if p.name != "m"])
    return test

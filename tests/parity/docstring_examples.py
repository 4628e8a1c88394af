"""The examples in the docstrings of the installed PyTorch, run with PyTorch and with `import retrograd as torch`."""

import builtins
import contextlib
import doctest
import importlib
import inspect
import io
import math
import re
import sys
import warnings
from functools import cache

import numpy as np
import torch

import retrograd as rg

NAMESPACES = (
    "", "nn", "nn.functional", "nn.init", "nn.utils", "nn.utils.rnn", "nn.utils.parametrize", "nn.utils.prune",
    "nn.attention", "optim", "optim.lr_scheduler", "optim.swa_utils", "Tensor", "autograd", "autograd.functional",
    "autograd.forward_ad", "autograd.graph", "func", "linalg", "fft", "special", "distributions", "utils.data",
    "utils.checkpoint", "utils.dlpack", "nested", "sparse", "signal.windows", "library", "amp", "random", "compiler",
    "testing",
)  # fmt: skip
ELSEWHERE = re.compile(r"cuda|init_process_group|dist\.|DDP|num_workers=[1-9]|^import torch\.\w+ as|rpc")
DRAWN = ("rand", "randn", "randint", "randperm", "rand_like", "randn_like", "randint_like")
RTOL, ATOL = 2e-3, 2e-5  # many examples solve random systems in float32


@cache
def examples() -> dict[str, tuple[str, ...]]:
    """Return the statements of each docstring by the path of what it documents; each docstring once."""
    found: dict[str, tuple[str, ...]] = {}
    texts = set()
    for path, text in _docstrings():
        if text not in texts:
            texts.add(text)
            with contextlib.suppress(ValueError):  # a few are indented in a way that doctest refuses
                found[path] = tuple(e.source for e in doctest.DocTestParser().get_examples(inspect.cleandoc(text)))
    return {path: statements for path, statements in found.items() if statements}


def _docstrings():
    for namespace in NAMESPACES:
        owner = torch.Tensor if namespace == "Tensor" else importlib.import_module(f"torch.{namespace}".rstrip("."))
        for name in sorted(dir(owner)):
            value = getattr(owner, name, None)
            if name.startswith("_") or inspect.ismodule(value) or _is_tensor_by_dtype(value):
                continue
            members = vars(value).items() if isinstance(value, type) and value is not torch.Tensor else ()
            for member, part in [("", value), *((f".{m}", v) for m, v in members if not m.startswith("_"))]:
                if isinstance(getattr(part, "__doc__", None), str) and _home(part).startswith("torch"):
                    yield f"{namespace}.{name}{member}".lstrip("."), part.__doc__


def _home(part):
    return getattr(part, "__module__", None) or "torch"


def _is_tensor_by_dtype(value):
    return isinstance(value, type(torch.FloatTensor))


class SharedDraws:
    """Give both libraries the same random numbers: ours are drawn by PyTorch, from a state of their own."""

    def __init__(self, monkeypatch):
        self.state = torch.Generator().manual_seed(0).get_state()
        for name in DRAWN:
            monkeypatch.setattr(rg, name, self.drawn_by(getattr(torch, name)))
        monkeypatch.setattr(rg, "manual_seed", self.seed)

    def seed(self, seed):
        self.state = torch.Generator().manual_seed(seed).get_state()
        return self

    def drawn_by(self, draw):
        def call(*args, **kwargs):
            args = _for_peer(args)
            kwargs = {k: _for_peer(v) for k, v in kwargs.items() if k != "generator"}
            kept = torch.get_rng_state()
            torch.set_rng_state(self.state)
            try:
                drawn = draw(*args, **kwargs)
            finally:
                self.state = torch.get_rng_state()
                torch.set_rng_state(kept)
            return rg.tensor(drawn.detach().numpy(), requires_grad=drawn.requires_grad)

        return call


def _for_peer(value):
    """Return an argument with PyTorch's tensors and dtypes."""
    if isinstance(value, tuple):
        return tuple(map(_for_peer, value))
    if isinstance(value, rg.Tensor):
        return torch.from_numpy(value.detach().numpy())
    return getattr(torch, value.name) if isinstance(value, np.dtype) else value


def run(statements, m):
    """Return what each statement shows, or its error; modes and defaults that they set end with them."""
    dtype = m.get_default_dtype()
    try:
        with m.enable_grad():
            return _outcomes(statements, m)
    finally:
        m.set_default_dtype(dtype)
        m.set_default_device(None)
        m.set_printoptions(profile="default")
        m.use_deterministic_algorithms(False)
        m.set_warn_always(False)


def _outcomes(statements, m):
    names = {"torch": m, "np": np, "numpy": np, "math": math, "__name__": "__main__"}
    names.update({name: getattr(m, name) for name in ("nn", "optim", "fft", "autograd", "Tensor")}, F=m.nn.functional)
    return [_outcome(source if m is torch else ported(source), names) for source in statements]


def ported(source):
    """Return a statement with its imports of torch replaced by those of retrograd."""
    source = re.sub(r"\bimport torch\b(?!\.)(?! as)", "import retrograd as torch", source)
    return re.sub(r"\b(from|import) torch\b(?=[ .])", r"\1 retrograd", source)


def _outcome(source, names):
    shown = []
    with contextlib.ExitStack() as stack:
        stack.enter_context(contextlib.redirect_stdout(io.StringIO()))
        stack.enter_context(contextlib.redirect_stderr(io.StringIO()))
        stack.enter_context(warnings.catch_warnings(action="ignore"))
        stack.enter_context(_display(shown.append))
        try:
            exec(compile(source, "<docstring>", "single"), names)
        except Exception as error:
            return error
    return shown


@contextlib.contextmanager
def _display(show):
    kept, sys.displayhook = sys.displayhook, lambda value: value is None or show(value)
    try:
        yield
    finally:
        sys.displayhook = kept
        vars(builtins).pop("_", None)


def comparable(value):
    """Return tensors as arrays, containers as lists, and numbers; None for what has no value to compare."""
    if isinstance(value, torch.Tensor | rg.Tensor):
        if value.layout not in (torch.strided, rg.strided) or value.is_nested:
            return None
        return value.detach().resolve_conj().resolve_neg().numpy()
    if isinstance(value, tuple | list):
        return [comparable(part) for part in value]
    return value if isinstance(value, bool | int | float | complex) else None


def difference(mine, peer):
    """Return how two comparable values differ, or None."""
    if isinstance(mine, list) and isinstance(peer, list):
        if len(mine) != len(peer):
            return f"{len(mine)} parts, PyTorch's {len(peer)}"
        return next(filter(None, map(difference, mine, peer)), None)
    if mine is None or peer is None:
        return None
    a, b = np.asarray(mine), np.asarray(peer)
    if a.shape != b.shape:
        return f"shape {a.shape}, PyTorch's {b.shape}"
    return None if np.allclose(a, b, RTOL, ATOL, equal_nan=True) else f"{a}, PyTorch's {b}"

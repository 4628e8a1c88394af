"""Every operator that PyTorch has under the same name gives PyTorch's values, dtypes and derivatives."""

import operator
import warnings
from contextlib import suppress
from functools import reduce

import numpy as np
import pytest
import torch

import retrograd as rg
from retrograd.core import registry
from retrograd.core.schema import REQUIRED
from retrograd.ops.family import Pointwise, Reduction, Rowwise
from retrograd.testing import run, samples_of

from ..tables import DTYPES, merged, operators_on_arrays
from .programs import ErrorClasses

TOLERANCE = {"float32": 2e-5, "float64": 1e-10, "complex64": 2e-5, "complex128": 1e-10}
ASPECTS = ("values", "dtype", "gradient", "second order")


# Operators whose PyTorch counterpart has another signature: (torch's inputs, params) -> result.
CALLS = merged("parity.families", "CALLS")
# PyTorch's function of that name differs in purpose, is random, or does not exist: why.
NO_COUNTERPART = merged("parity.families", "NO_COUNTERPART")
# (operator, aspect or kind of edge): why ours differs.  An entry that is not needed any more fails a test.
KNOWN = merged("parity.families", "KNOWN")
# Of these, what PyTorch's vectors decide: with 512 bits the values at NaN differ, with 256 bits they agree.
BY_PROCESSOR = {("hardswish", "special")}
# Inputs by which only ours differentiates.
NO_GRADIENT = merged("parity.families", "NO_GRADIENT")

# ---------------------------------------------------------------------------------------------- the two sides


def counterpart(name):
    """Return PyTorch's function of that name, from the namespace that has it; None without one."""
    if name in NO_COUNTERPART or name in CALLS:
        return CALLS.get(name)
    own = registry[name].public_names
    places = [*(f"nn.functional.{n}" for n in own), *own, *(f"Tensor.{n}" for n in own)]
    return next(filter(callable, (_member(torch, place) for place in places)), None)


def _member(root, path):
    return reduce(lambda found, name: getattr(found, name, None), path.split("."), root)


def call_torch(name, args, params):
    """Return PyTorch's result as a tuple; arguments with default values are left out, so that names matter little."""
    given = {**registry[name].schema.group(args), **params}
    if name in CALLS:
        out = CALLS[name](*[given[p.name] for p in registry[name].schema.parameters])
    else:
        positional, named = _split(registry[name].schema.parameters, given)
        out = counterpart(name)(*positional, **named)
    return tuple(out) if isinstance(out, (tuple, list)) else (out,)


def _split(parameters, given):
    """Return the arguments that are required, and tensors that may be none, by position, and the rest by name."""
    wanted = [p for p in parameters if p.default is REQUIRED or not _same(given[p.name], p.default)]
    named = {p.name: given[p.name] for p in wanted if p.keyword_only or p.default not in (REQUIRED, ())}
    return [given[p.name] for p in wanted if p.name not in named], named


def _same(a, b):
    return type(a) is type(b) and not isinstance(a, torch.Tensor) and a == b


def cast(args, dtype):
    """Return the sample's floating tensors in another dtype; in a complex one, with imaginary parts."""
    return tuple(_cast(a, dtype) if isinstance(a, rg.Tensor) and a.dtype.kind == "f" else a for a in args)


def _cast(a, dtype):
    if dtype.startswith("complex"):
        a = rg.tensor(a.numpy() + 0.5j * a.numpy().ravel()[::-1].reshape(a.shape))
    return a.to(dtype)


def floats(values):
    """Return those of floating or complex dtype."""
    return [v for v in values if isinstance(v, rg.Tensor | torch.Tensor) and _is_float(v)]


def differentiated(name, args):
    """Return the inputs to be differentiated."""
    given = registry[name].schema.group(args)
    constant = {id(given[key]) for key in NO_GRADIENT.get(name, ())}
    return [a for a in floats(args) if id(a) not in constant]


def _is_float(tensor):
    return tensor.is_floating_point() or tensor.is_complex()


def noise(tensors, seed):
    """Return random arrays in the shapes and dtypes of our tensors."""
    rng = np.random.default_rng(seed)
    return [np.asarray(rng.uniform(-1, 1, t.shape) * (1 + 0.5j if t.is_complex() else 1), t.dtype) for t in tensors]


def derivatives(outs, xs, noises, grad):
    """Return the gradients for random cotangents, and the gradients of their products with random tensors."""
    flowing = [(o, g) for o, g in zip(floats(outs), noises[0], strict=True) if o.requires_grad]
    if not flowing:
        return [None] * len(xs), [None] * len(xs)
    options = {"create_graph": True, "allow_unused": True}
    first = grad([o for o, _ in flowing], xs, [g for _, g in flowing], **options)
    pairs = [(g, t) for g, t in zip(first, noises[1], strict=True) if g is not None and g.requires_grad]
    terms = [(g * t).sum() for g, t in pairs]
    terms = [t.real if t.is_complex() else t for t in terms]
    if not terms:
        return first, [None] * len(xs)
    return first, grad(terms, xs, allow_unused=True)


# ---------------------------------------------------------------------------------------------- comparisons


class Both:
    """One sample of one operator, run by both."""

    def __init__(self, name, args, params, dtype, to_torch):
        op = registry[name]
        theirs = to_torch(args)
        xs, ys = differentiated(name, args), differentiated(name, theirs)
        if op.differentiable or op.composite:
            for x in (*xs, *ys):
                x.requires_grad_(True)
        self.ours = run(op, args, params)
        self.theirs = call_torch(name, theirs, {k: to_torch(v) for k, v in params.items()})
        self.tolerance = TOLERANCE[dtype]
        noises = [noise(floats(self.ours), 1), noise(xs, 2)]
        self.first = self.second = ([], [])
        if xs and xs[0].requires_grad:
            ours = derivatives(self.ours, xs, [[rg.tensor(a) for a in n] for n in noises], rg.autograd.grad)
            theirs = derivatives(self.theirs, ys, [[torch.tensor(a) for a in n] for n in noises], torch.autograd.grad)
            self.first, self.second = zip(ours, theirs, strict=True)


def compare(aspect, both, plain):
    """Raise an AssertionError if the two differ in that aspect."""
    if aspect == "dtype":
        assert [plain(o)[0] for o in both.ours] == [plain(o)[0] for o in both.theirs]
    else:
        pairs = {"values": (both.ours, both.theirs), "gradient": both.first, "second order": both.second}[aspect]
        assert len(pairs[0]) == len(pairs[1]), "a different number of results"
        for mine, its in zip(*pairs, strict=True):
            close(mine, its, both.tolerance, plain)


def differs(aspect, both, plain):
    """Return whether `compare` finds a difference."""
    try:
        compare(aspect, both, plain)
    except AssertionError:
        return True
    return False


def refused(name, args, params):
    """Return whether ours refuses the call."""
    try:
        run(registry[name], args, params)
    except (TypeError, RuntimeError, ValueError):
        return True
    return False


def close(mine, its, tolerance, plain):
    """Assert that values are within the tolerance, relative to the largest entry if more than 1; None is zeros."""
    if mine is None and its is None:
        return
    b = np.zeros(mine.shape) if its is None else plain(its)[1]
    a = np.zeros(b.shape) if mine is None else plain(mine)[1]
    assert a.shape == b.shape
    if not np.isfinite(b).all():  # at the edges each entry is of a size of its own
        np.testing.assert_allclose(a, b, rtol=10 * tolerance, atol=tolerance)
    else:
        np.testing.assert_allclose(a, b, rtol=0.0, atol=tolerance * max(1.0, float(np.abs(b).max(initial=0.0))))


NAMES = sorted(n for n in operators_on_arrays() if registry[n].public_names and counterpart(n) is not None)


@pytest.mark.filterwarnings("ignore:torch.triangular_solve is deprecated")
@pytest.mark.filterwarnings("ignore:reduction.*'mean' divides:UserWarning")
@pytest.mark.filterwarnings("ignore:index_reduce.. is in beta:UserWarning")
@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("name", NAMES)
def test_same_as_pytorch(name, dtype, to_torch, plain):
    for args, params in samples_of(registry[name]):
        args = cast(args, dtype)
        if dtype.startswith("complex") and (not floats(args) or refused(name, args, params)):
            continue  # complex values may be refused; a law checks the message
        try:
            both = Both(name, args, params, dtype, to_torch)
        except (RuntimeError, TypeError, ValueError):
            if dtype.startswith("complex"):
                continue  # PyTorch refuses them
            raise
        for aspect in ASPECTS:
            if (name, aspect) not in KNOWN:
                compare(aspect, both, plain)


def test_most_operators_have_a_counterpart():
    public = [n for n in operators_on_arrays() if registry[n].public_names]
    assert len(NAMES) > 0.9 * len(public)
    assert set(NO_COUNTERPART) <= set(registry)


def test_known_differences_are_still_there(to_torch, plain):
    for name, aspect in KNOWN.keys() - BY_PROCESSOR:
        assert any(known_cases(name, aspect, to_torch, plain)), f"{name}, {aspect}: they agree, delete it in KNOWN"


def known_cases(name, aspect, to_torch, plain):
    """Yield per case whether the two differ in that aspect."""
    for dtype in TOLERANCE:
        if aspect in EDGES:
            for args, params in edge_cases(name, aspect, dtype):
                yield differs_at_edges(name, args, params, dtype, to_torch, plain)
        else:
            for args, params in samples_of(registry[name]):
                if not refused(name, cast(args, dtype), params):
                    with suppress(RuntimeError, TypeError, ValueError):
                        yield differs(aspect, Both(name, cast(args, dtype), params, dtype, to_torch), plain)


# ------------------------------------------------------------------------------------------------ edges

SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.0, -3.0, 1e-8, 30.0, -30.0, 100.0, np.inf, -np.inf, np.nan]
EDGES = ("special", "poisoned", "equal", "empty")


def edge_cases(name, kind, dtype):
    """Yield samples of an operator with values at the edge of its domain, or beyond it."""
    if dtype.startswith("complex"):
        return
    for args, params in samples_of(registry[name]):
        changed = _at_the_edge(registry[name].definition, kind, cast(args, dtype), dtype)
        if changed is not None:
            yield changed, params


def _at_the_edge(family, kind, args, dtype):
    places = [i for i, a in enumerate(args) if isinstance(a, rg.Tensor) and a.dtype.kind == "f"]
    if not places or not issubclass(family, Pointwise if kind == "special" else Pointwise | Reduction | Rowwise):
        return None
    if kind == "special":
        values = np.array([*SPECIAL, np.finfo(dtype).smallest_subnormal], dtype)
        return (
            tuple(
                rg.tensor(np.expand_dims(values, 0 if i == places[0] else 1)[:, : len(values)])
                if i in places[:2]
                else a
                for i, a in enumerate(args)
            )
            if len(args) <= 2
            else None
        )
    change = {"poisoned": _poisoned, "equal": np.ones_like, "empty": lambda a: a[:0] if a.ndim else a}[kind]
    return tuple(rg.tensor(change(a.numpy())) if i in places else a for i, a in enumerate(args))


def _poisoned(a):
    a = a.copy()
    for i, value in enumerate((np.nan, np.inf, -np.inf)):
        if a.ndim:
            a[..., i % a.shape[-1]].ravel()[:1] = value
    return a


def differs_at_edges(name, args, params, dtype, to_torch, plain):
    """Return whether values or gradients differ; a refusal by both is no difference."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            both = Both(name, args, params, dtype, to_torch)
        except (TypeError, RuntimeError, ValueError, IndexError):
            return False
        return any(differs(aspect, both, plain) for aspect in ("values", "gradient"))


@pytest.mark.parametrize("kind", EDGES)
@pytest.mark.parametrize("name", NAMES)
def test_same_as_pytorch_at_the_edges(name, kind, to_torch, plain):
    if (name, kind) in KNOWN:
        return
    for dtype in ("float32", "float64"):
        for args, params in edge_cases(name, kind, dtype):
            assert not differs_at_edges(name, args, params, dtype, to_torch, plain), f"{args}, {params}"


# ------------------------------------------------------------------------------------------------ expressions

# Evaluated twice, with `m` as retrograd and as torch.
EXPRESSIONS = [
    "m.tensor([1, 2])", "m.tensor([1.5, 2])", "m.tensor(True)", "m.tensor(3)", "m.tensor([])",
    "m.tensor([1, 2.5], dtype=m.float64)",
    "m.zeros(2, 3)", "m.zeros((2, 3))", "m.ones(2, dtype=m.int64)", "m.full((2,), 3)", "m.full((2,), 1.5)",
    "m.full((2,), True)", "m.eye(2, 3)",
    "m.arange(5)", "m.arange(1, 2, 0.25)", "m.arange(2.0)", "m.arange(5, 1, -2)", "m.linspace(0, 1, 5)",
    "m.linspace(0, 1, 1)",
    "m.zeros_like(m.ones(2, dtype=m.int32))", "m.full_like(m.ones(2), 3)",
    "m.arange(6).sum()", "m.arange(6).prod()", "m.tensor([True, True]).sum()", "m.arange(3, dtype=m.uint8).sum()",
    "m.arange(3).cumsum(0)", "m.tensor([True, False]).cumsum(0)",
    "m.arange(3) / 2", "m.arange(3) // 2", "m.arange(3) % 2", "m.arange(-3, 3) // 2", "m.arange(-3, 3) % 2",
    "m.arange(3) ** 2", "2 ** m.arange(3)", "m.arange(3) ** 0.5", "m.arange(3.0) ** 2", "-m.arange(3)",
    "1 - m.arange(3)", "1 / m.arange(1, 3)", "7 // m.arange(1, 3)", "7 % m.arange(1, 3)",
    "m.arange(3) == 1", "m.arange(3) < 1.5", "m.arange(3) >= m.tensor(1.0)", "m.arange(3) != m.arange(3)",
    "m.exp(m.arange(3))", "m.sqrt(m.tensor(4))", "m.sigmoid(m.arange(3))", "m.tanh(m.tensor([True]))",
    "m.arange(12).reshape(3, 4)[1]", "m.arange(12).reshape(3, 4)[:, 1]", "m.arange(12).reshape(3, 4)[..., ::2]",
    "m.arange(12).reshape(3, 4)[None, 1:]", "m.arange(12).reshape(3, 4)[m.tensor([0, 2])]",
    "m.arange(12).reshape(3, 4)[m.tensor([0, 2]), m.tensor([1, 1])]", "m.arange(4)[m.tensor([True, False] * 2)]",
    "m.arange(12).reshape(3, 4)[[0, 1], :, None]",
    "m.arange(24).reshape(2, 3, 4)[m.tensor([0, 1]), :, m.tensor([1, 2])]",
    "m.arange(6).reshape(2, 3).T", "m.arange(6).reshape(2, 3).mT", "m.arange(6).view(-1, 2)",
    "m.arange(6.0).reshape(2, 3).mean(0)", "m.arange(6.0).reshape(2, 3).mean(dim=1, keepdim=True)",
    "m.arange(6.0).sum(dtype=m.float64)", "m.arange(6.0).reshape(2, 3).max(dim=1)", "m.arange(6.0).argmax()",
    "m.arange(6.0).reshape(2, 3).argmin(1, keepdim=True)", "m.arange(6.0).std()", "m.arange(6.0).var(unbiased=False)",
    *[
        f"m.{name}(m.arange(6.0).reshape(2, 3)**2, {rest})"
        for name in ("std", "var", "std_mean", "var_mean")
        for rest in (
            "True", "False", "correction=None", "1, correction=None", "1, True", "1, False, True", "None, True",
            "1, correction=2, keepdim=True", "True, True", "unbiased=True, correction=1", "unbiased=True",
        )
    ],
    "m.linalg.vander(m.tensor(2.0), N=3)", "m.linalg.vander(m.tensor([2.0, 3.0]))",
    "m.arange(6).split(4)", "m.arange(6).chunk(4)", "m.arange(7).split([3, 4])", "m.arange(3).unbind()",
    "m.cat([m.arange(2), m.arange(2.0)])", "m.stack([m.arange(2), m.arange(2.0)])",
    "m.where(m.arange(3) > 1, 1.0, 0)", "m.where(m.arange(3) > 1, m.arange(3), 0.5)", "m.arange(3).clamp(min=1)",
    "m.arange(3).clamp(max=0.5)", "m.arange(3.0).to(m.int64)", "m.arange(3).double()", "m.arange(3).bool()",
    "m.arange(3).float()", "m.tensor([1.5, -1.5]).long()", "m.arange(2).type_as(m.ones(1))",
    "m.tensor([2.5, 3.5, -0.5]).round()", "m.arange(3).tolist()", "m.tensor(2.5).item()", "m.zeros(0).sum()",
    "m.zeros(0).prod()", "m.zeros(0, 3).amax(1)", "m.zeros(2, 0).logsumexp(1)", "m.zeros(2, 0).any(1)",
    "m.arange(4).numel()", "m.arange(4).dim()", "tuple(m.ones(2, 3).size())", "m.ones(2, 3).size(-1)",
    "m.ones(2).is_floating_point()", "bool(m.ones(1) > 0)", "len(m.ones(3, 2))", "float(m.tensor(2))",
    "m.maximum(m.tensor([1.0, float('nan')]), m.zeros(2))", "m.tensor([float('nan'), 1.0]).amax()",
    "m.tensor([3.0, float('nan')]).clamp(max=1.0)", "m.relu(m.tensor([float('nan'), -1.0]))",
    "m.tensor([-2, 3]).abs()", "m.tensor([3 + 4j]).abs()", "m.tensor([3 + 4j]).conj()", "m.tensor([1j]) * 2.5",
]  # fmt: skip
KNOWN_EXPRESSIONS = {}


def answers(expression, plain):
    """Return both outcomes: the results, or the classes of the error."""
    for m in (rg, torch):
        try:
            yield plain(eval(expression, {"m": m}))
        except (RuntimeError, TypeError, ValueError, IndexError) as error:
            yield ErrorClasses(error)


def differ(a, b):
    """Return whether two outcomes differ; of errors, whether ours is not caught as PyTorch's is."""
    if isinstance(a, frozenset) and isinstance(b, frozenset):
        return not a >= b
    if isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
        return a.shape != b.shape or not np.allclose(a, b, rtol=1e-6, atol=1e-6, equal_nan=True)
    if isinstance(a, tuple) and isinstance(b, tuple):
        return len(a) != len(b) or any(differ(x, y) for x, y in zip(a, b, strict=True))
    return type(a) is not type(b) or a != b


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_expressions_say_the_same(expression, plain):
    ours, theirs = answers(expression, plain)
    assert differ(ours, theirs) == (expression in KNOWN_EXPRESSIONS), f"{ours} and {theirs}"


# -------------------------------------------------------------------------------------------------- promotion

BINARY = {
    "add": lambda m: operator.add,
    "mul": lambda m: operator.mul,
    "div": lambda m: operator.truediv,
    "maximum": lambda m: m.maximum,
    "where": lambda m: lambda a, b: m.where(m.tensor([True, False]), a, b),
    "less": lambda m: operator.lt,
    "equal": lambda m: operator.eq,
}
OPERANDS = [
    *[f"m.ones(2, dtype=m.{d})" for d in DTYPES],
    *[f"m.ones((), dtype=m.{d})" for d in DTYPES],
    "True", "2", "2.5", "2.5j",
]  # fmt: skip
KNOWN_PROMOTIONS = {}


def promoted(m, name, a, b):
    """Return the dtype of the result, or the exception."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # of complex32
            return str(BINARY[name](m)(eval(a, {"m": m}), eval(b, {"m": m})).dtype).removeprefix("torch.")
    except (RuntimeError, TypeError, ValueError) as error:
        return error


@pytest.mark.parametrize("name", BINARY)
def test_dtypes_meet_as_in_pytorch(name):
    wrong = []
    for a in OPERANDS:
        for b in OPERANDS:
            if "m." in a or "m." in b:
                theirs, ours = promoted(torch, name, a, b), promoted(rg, name, a, b)
                if isinstance(theirs, str) and theirs not in (ours, "complex32"):  # which NumPy does not have
                    wrong.append((a, b, ours, theirs))
    assert wrong == KNOWN_PROMOTIONS.get(name, [])

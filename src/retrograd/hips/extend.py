"""`autograd.extend`: functions of arrays with custom derivatives."""

from collections.abc import Callable, Iterable
from functools import wraps
from itertools import count
from typing import Any

from retrograd.autograd import Function
from retrograd.core import Tensor
from retrograd.foundation.suggestions import suggest_in_module
from retrograd.interop.numpy_protocol.table import O, holds_tensor, tensor, values


class _Rules:
    """A primitive: the function of arrays, and its derivatives by argument index."""

    def __init__(self, function: Callable) -> None:
        self.function = function
        self.name = getattr(function, "__name__", repr(function))
        self.vjp_rules: Callable[[int], Callable] | None = None
        self.jvp_rules: Callable[[int], Callable] | None = None

    def vjp_rule(self, argnum: int) -> Callable:
        """Return the function of (ans, *args) that returns the pullback."""
        if self.vjp_rules is None:
            raise NotImplementedError(f"{self.name}: has no derivative; give it one by defvjp({self.name}, ...)")
        return self.vjp_rules(argnum)

    def jvp_rule(self, argnum: int) -> Callable:
        """Return the function of (g, ans, *args) that returns the tangent."""
        if self.jvp_rules is None:
            raise NotImplementedError(
                f"{self.name}: has no derivative in forward mode; give it one by defjvp({self.name}, ...)"
            )
        return self.jvp_rules(argnum)


class _Call(Function):
    """A call of a primitive: its rules, and its keyword and positional arguments."""

    @staticmethod
    def forward(rules: _Rules, kwargs: dict, *args: Any) -> Tensor:
        plain = {name: _to_arrays(value) for name, value in kwargs.items()}
        out = rules.function(*map(_to_arrays, args), **plain)
        if isinstance(out, (tuple, list, dict)):
            raise TypeError(f"{rules.name}: a primitive returns one number or array, got a {type(out).__name__}")
        return tensor(out)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple, output: Tensor) -> None:
        ctx.rules, ctx.kwargs, *args = inputs
        ctx.non_tensors = [None if isinstance(a, Tensor) else a for a in args]
        saved = (output, *[a if isinstance(a, Tensor) else None for a in args])
        ctx.save_for_backward(*saved)
        ctx.save_for_forward(*[s for s in saved if s is not None])
        ctx.tensor_argnums = [i for i, a in enumerate(args) if isinstance(a, Tensor)]
        ctx.set_materialize_grads(False)

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Tensor | None) -> tuple:
        (g,), (out, *saved) = grad_outputs, ctx.saved_tensors
        args = [other if own is None else own for own, other in zip(saved, ctx.non_tensors, strict=True)]
        found: list[Tensor | None] = [None] * (2 + len(args))
        for i in ctx.tensor_argnums:
            if ctx.needs_input_grad[2 + i]:
                found[2 + i] = tensor(ctx.rules.vjp_rule(i)(out, *args, **ctx.kwargs)(g))
        return tuple(found)

    @staticmethod
    def jvp(ctx: Any, *grad_inputs: Tensor | None) -> Tensor:
        out, *known = ctx.saved_tensors
        args = list(ctx.non_tensors)
        for i, value in zip(ctx.tensor_argnums, known, strict=True):
            args[i] = value
        along = [(i, t) for i, t in enumerate(grad_inputs[2:]) if t is not None]
        parts = [tensor(ctx.rules.jvp_rule(i)(t, out, *args, **ctx.kwargs)) for i, t in along]
        return sum(parts[1:], parts[0])

    @staticmethod
    def vmap(info: Any, in_dims: tuple, rules: _Rules, kwargs: dict, *args: Any) -> tuple[Tensor, int]:
        def one(i: int) -> Tensor:
            pairs = zip(args, in_dims[2:], strict=True)
            return _Call.apply(rules, kwargs, *[a if d is None else O.select(a, d, i) for a, d in pairs])

        return O.stack([one(i) for i in range(info.batch_size)], 0), 0


def _to_arrays(x: Any) -> Any:
    """Return an argument as the function of arrays expects it; numbers as NumPy scalars."""
    return values(x)[()] if isinstance(x, Tensor) else values(x) if holds_tensor(x) else x


def primitive(function: Callable) -> Callable:
    """Decorator: make a function of arrays a primitive, with the rules of `defvjp` and `defjvp`.

    The function gets arrays and returns one; the rules get tensors, and so can be differentiated themselves.

    >>> import retrograd.numpy as np
    >>> from retrograd import grad
    >>> @primitive
    ... def cube(x):
    ...     return x**3
    >>> defvjp(cube, lambda ans, x: lambda g: g * 3 * x**2)
    >>> grad(cube)(2.0), grad(grad(cube))(2.0)
    (np.float64(12.0), np.float64(12.0))
    """
    rules = _Rules(function)

    @wraps(function)
    def step(*args: Any, **kwargs: Any) -> Any:
        if not holds_tensor((*args, *kwargs.values())):
            return function(*args, **kwargs)
        return _Call.apply(rules, kwargs, *args)

    step.rules = rules  # type: ignore[attr-defined]
    return step


def notrace_primitive(function: Callable) -> Callable:
    """Decorator: make a function of arrays non-differentiable; its result is a constant."""

    @wraps(function)
    def constant(*args: Any, **kwargs: Any) -> Any:
        return function(*map(_to_arrays, args), **{name: _to_arrays(value) for name, value in kwargs.items()})

    return constant


def _get_rules(name: str, fun: Callable) -> _Rules:
    rules = getattr(fun, "rules", None)
    if not isinstance(rules, _Rules):
        raise TypeError(f"{name}: {getattr(fun, '__name__', fun)!r} is no primitive; decorate it with @primitive")
    return rules


def _rule_by_argnum(
    name: str, rules: _Rules, makers: tuple, argnums: Iterable[int] | None
) -> Callable[[int], Callable]:
    """Return one rule for each of `argnums`, by default counted from 0, as a function of the index."""
    by_argnum = dict(zip(count() if argnums is None else argnums, makers, strict=False))

    def rule(argnum: int) -> Callable:
        if argnum not in by_argnum:
            raise NotImplementedError(f"{rules.name}: no derivative with respect to argument {argnum}; see {name}")
        return by_argnum[argnum]

    return rule


def defvjp(fun: Callable, *vjpmakers: Callable | None, argnums: Iterable[int] | None = None) -> None:
    """Set a primitive's pullbacks, one for each argument: `vjpmaker(ans, *args, **kwargs)(g)`, None for zero."""
    rules = _get_rules("defvjp", fun)
    makers = tuple([_no_pullback if maker is None else maker for maker in vjpmakers])
    rules.vjp_rules = _rule_by_argnum("defvjp", rules, makers, argnums)


def _no_pullback(ans: Any, *args: Any, **kwargs: Any) -> Callable:
    return lambda g: 0 * g


def defvjp_argnum(fun: Callable, vjpmaker: Callable) -> None:
    """Set all of a primitive's pullbacks at once: `vjpmaker(argnum, ans, args, kwargs)(g)`."""

    def vjp_rule(argnum: int) -> Callable:
        return lambda ans, *args, **kwargs: vjpmaker(argnum, ans, args, kwargs)

    _get_rules("defvjp_argnum", fun).vjp_rules = vjp_rule


def defjvp(fun: Callable, *jvpfuns: Callable | str | None, argnums: Iterable[int] | None = None) -> None:
    """Set a primitive's tangents, one for each argument: `jvpfun(g, ans, *args, **kwargs)`, None for zero.

    "same" means the function itself, applied to the tangent instead of the argument: it is linear in it.
    """
    rules = _get_rules("defjvp", fun)
    numbers = list(range(len(jvpfuns)) if argnums is None else argnums)
    makers = tuple([_jvp_rule(fun, maker, argnum) for maker, argnum in zip(jvpfuns, numbers, strict=False)])
    rules.jvp_rules = _rule_by_argnum("defjvp", rules, makers, numbers)


def _jvp_rule(fun: Callable, maker: Callable | str | None, argnum: int) -> Callable:
    if maker is None:
        return lambda g, ans, *args, **kwargs: O.zeros_like(ans)
    if maker == "same":
        return lambda g, ans, *args, **kwargs: fun(*args[:argnum], g, *args[argnum + 1 :], **kwargs)
    if not callable(maker):
        raise TypeError(f"defjvp: a rule is a function, 'same' or None, got {maker!r}")
    return maker


def defjvp_argnum(fun: Callable, jvpmaker: Callable) -> None:
    """Set all of a primitive's tangents at once: `jvpmaker(argnum, g, ans, args, kwargs)`."""

    def jvp_rule(argnum: int) -> Callable:
        return lambda g, ans, *args, **kwargs: jvpmaker(argnum, g, ans, args, kwargs)

    _get_rules("defjvp_argnum", fun).jvp_rules = jvp_rule


def def_linear(fun: Callable) -> None:
    """Declare that a primitive is linear in each argument, so that it is its own forward derivative."""
    defjvp_argnum(fun, lambda argnum, g, ans, args, kwargs: fun(*args[:argnum], g, *args[argnum + 1 :], **kwargs))


suggest_in_module(globals())

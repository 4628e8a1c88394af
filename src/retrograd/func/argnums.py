"""Selection of the arguments that a transform differentiates."""

from collections.abc import Callable, Sequence
from numbers import Integral
from typing import Any

import optree

from retrograd.core import Tensor, current
from retrograd.core.op import compound
from retrograd.core.tensor import make
from retrograd.foundation.describe_value import describe
from retrograd.levels import DualLevel, GradLevel
from retrograd.levels.batch import RANDOMNESS
from retrograd.levels.sync_views import sync_views
from retrograd.levels.write_back import was_written, written_value

Argnums = int | tuple[int, ...]


def select_arguments(name: str, args: Sequence, argnums: Argnums) -> Any:
    """Return the argument that argnums selects, or a tuple of them; raise a RuntimeError for invalid argnums."""
    for n in _check_argnums(name, argnums):
        if not -len(args) <= n < len(args):
            raise RuntimeError(
                f"{name}: Got argnum={n}, but only {len(args)} positional inputs: argnums has {n}, but there are only "
                f"{len(args)} positional arguments"
            )
    if isinstance(argnums, int):
        return args[argnums]
    if len({n % len(args) for n in argnums}) < len(argnums):
        raise RuntimeError(f"{name}: argnums elements must be unique, got {argnums}")
    return tuple(args[n] for n in argnums)


def _check_argnums(name: str, argnums: Argnums) -> tuple[int, ...]:
    given = argnums if isinstance(argnums, tuple) else (argnums,)
    if not given:
        raise RuntimeError(f"{name}: argnums must be non-empty: argnums must not be empty")
    for n in given:
        if not isinstance(n, int) or isinstance(n, bool):
            raise RuntimeError(
                f"{name}: argnums must be int or Tuple[int, ...], got: {type(argnums)}; argnums must be an int or a "
                f"tuple of ints, got {describe(argnums)}"
            )
    return given


def check_chunk_size(name: str, size: Any) -> None:
    """Raise TypeError or ValueError unless a size of chunks is None or a whole number of at least 1."""
    if size is not None and (not isinstance(size, Integral) or size < 1):
        pytorch = "`chunk_size` should be" if name == "jacrev" else "chunk_size should be None or"
        raise (ValueError if isinstance(size, Integral) else TypeError)(
            f"{name}: {pytorch} greater than 0. (got {describe(size)}): chunk_size must be at least 1, got "
            f"{describe(size)}"
        )


def check_randomness(name: str, randomness: str) -> None:
    """Raise RuntimeError unless `randomness` is one that the levels of batches know."""
    if randomness not in RANDOMNESS:
        raise RuntimeError(
            f"Only allowed values for randomness are 'error', 'different', or 'same'. Got {randomness}. {name}: "
            f"randomness must be one of {', '.join(RANDOMNESS)}, got {randomness!r}"
        )


class BoundFunction:
    """The function of the chosen arguments only, with the others fixed.

    It runs at a level of forward or reverse mode.  The tensors of the other arguments are tensors of that level too, so
    that it may write to them.  In forward mode the caller's tensors have what it wrote when it has returned; in reverse
    mode only after `write_back`, since the graph holds their old values.  If not `may_write`, writes are refused.
    """

    def __init__(
        self, func: Callable, args: Sequence, kwargs: dict, argnums: int | Sequence[int], *, may_write: bool = True
    ) -> None:
        self._func = self.__wrapped__ = func  # errors name it
        self.__qualname__ = getattr(func, "__qualname__", type(func).__name__)
        self._args = args
        self._kwargs = kwargs
        self._argnums = argnums
        self._may_write = may_write
        self._written: list[tuple[Tensor, Tensor]] = []

    def __call__(self, x: Any) -> Any:
        """Return the function's result for the chosen arguments."""
        numbers = self._argnums
        chosen = [(numbers, x)] if isinstance(numbers, int) else list(zip(numbers, x, strict=True))
        others = _OtherArguments(self._args, {n % len(self._args) for n, _ in chosen}, self._may_write)
        for n, value in chosen:
            others.args[n] = value
        out = self._func(*others.args, **self._kwargs)
        self._written = others.written()
        return out

    def write_back(self) -> None:
        """Write into the caller's tensors what the last call wrote in reverse mode."""
        for given, value in self._written:
            given.copy_(value)
        self._written = []


class _OtherArguments:
    """The arguments of a transformed function, and the tensors of the current level among those not chosen."""

    def __init__(self, args: Sequence, chosen: set[int], may_write: bool) -> None:
        self._level = current().level
        self._lifted: list[tuple[Tensor, Tensor]] = []
        lifts = may_write and isinstance(self._level, (GradLevel, DualLevel))
        self.args = [self._lift(arg) if lifts and n not in chosen else arg for n, arg in enumerate(args)]

    def _lift(self, arg: Any) -> Any:
        leaves, spec = optree.tree_flatten(arg, none_is_leaf=True)
        if not any(isinstance(leaf, Tensor) for leaf in leaves):
            return arg  # also a list that the function may append to
        return optree.tree_unflatten(spec, [self._lift_leaf(leaf) for leaf in leaves])

    def _lift_leaf(self, leaf: Any) -> Any:
        if not isinstance(leaf, Tensor) or compound(leaf) is not None:
            return leaf
        self._lifted.append((leaf, make(leaf, self._level, None)))
        return self._lifted[-1][1]

    def written(self) -> list[tuple[Tensor, Tensor]]:
        """Return the caller's tensors that the function wrote to, each with its new value, while the level is active.

        In forward mode, write the values at once.
        """
        found = [(given, written_value(inside)) for given, inside in self._lifted if was_written(inside)]
        if isinstance(self._level, GradLevel):
            return found
        for given, value in found:
            with self._level.below():
                given.copy_(value)
        return []


# The call that PyTorch's messages name, by our transform.
_PYTORCH_CALLS = {
    "grad": "grad_and_value(f)(*args)",
    "hessian": "vjp(f, *primals)",
    "vjp": "vjp(f, *primals)",
    "jacrev": "vjp(f, *primals)",
    "jvp": "jvp(f, primals, tangents)",
    "jacfwd": "jvp(f, primals, tangents)",
    "linearize": "linearize(f, *primals)",
}


def pytorch_call(name: str) -> str:
    """Return the call that PyTorch's messages name for a transform."""
    return _PYTORCH_CALLS.get(name, f"{name}(f)(*args)")


def split_aux(func: Callable, name: str, has_aux: bool) -> tuple[Callable, list]:
    """Return the function without the auxiliary part of its result, which is appended to the list.

    The caller removes it from there: a level holds its function, so the part would hold the graph until the garbage
    collector runs.
    """
    aux: list = []
    if not has_aux:
        return func, aux

    def without_aux(*args: Any, **kwargs: Any) -> Any:
        returned = func(*args, **kwargs)
        if not isinstance(returned, tuple) or len(returned) != 2:
            raise RuntimeError(
                f"{name}: {pytorch_call(name)}: output of function f should be a tuple: (output, aux) if has_aux is "
                f"True: with has_aux the function must return a tuple (output, aux), got {type(returned).__name__}"
            )
        aux.append(sync_views(returned[1]))
        return returned[0]

    without_aux.__wrapped__ = func  # type: ignore[attr-defined]
    without_aux.__qualname__ = getattr(func, "__qualname__", type(func).__name__)
    return without_aux, aux

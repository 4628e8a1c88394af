"""Selection of the arguments that a transform differentiates."""

from collections.abc import Callable, Sequence
from typing import Any

from retrograd.levels.sync_views import sync_views

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
                f"tuple of ints, got {argnums!r}"
            )
    return given


def bind_other_arguments(
    func: Callable, args: Sequence, kwargs: dict, argnums: int | Sequence[int]
) -> Callable[[Any], Any]:
    """Return the function of the chosen arguments only, with the others fixed."""

    def partial_function(x: Any) -> Any:
        changed = list(args)
        for n, value in [(argnums, x)] if isinstance(argnums, int) else zip(argnums, x, strict=True):
            changed[n] = value
        return func(*changed, **kwargs)

    partial_function.__wrapped__ = func  # type: ignore[attr-defined]  # errors name it
    partial_function.__qualname__ = getattr(func, "__qualname__", type(func).__name__)
    return partial_function


_PYTORCH_NAMES = {"grad": "grad_and_value"}  # the transform that PyTorch's messages name


def split_aux(func: Callable, name: str, has_aux: bool) -> tuple[Callable, list]:
    """Return the function without the auxiliary part of its result, which is appended to the list."""
    aux: list = []
    if not has_aux:
        return func, aux

    def without_aux(*args: Any, **kwargs: Any) -> Any:
        returned = func(*args, **kwargs)
        if not isinstance(returned, tuple) or len(returned) != 2:
            raise RuntimeError(
                f"{name}: {_PYTORCH_NAMES.get(name, name)}(f)(*args): output of function f should be a tuple: "
                f"(output, aux) "
                f"if has_aux is True: with has_aux the function must return a tuple (output, aux), got "
                f"{type(returned).__name__}"
            )
        aux.append(sync_views(returned[1]))
        return returned[0]

    without_aux.__wrapped__ = func  # type: ignore[attr-defined]
    without_aux.__qualname__ = getattr(func, "__qualname__", type(func).__name__)
    return without_aux, aux

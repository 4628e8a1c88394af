"""Further forms of calls of operators and layers that PyTorch accepts, most of them deprecated.

A form is a function `(name, args, kwargs)`. It is asked for a call that the signature refuses, and returns the
arguments of today's form, with PyTorch's warning if it is deprecated; or None, if the call is not of the form either.
"""

from collections.abc import Callable
from numbers import Number
from typing import Any

from retrograd.foundation.function_arguments import is_switch
from retrograd.foundation.source_location import warn_user

Arguments = tuple[tuple[Any, ...], dict[str, Any]]
OlderForm = Callable[[str, tuple[Any, ...], dict[str, Any]], Arguments | None]


def numbers_among_tensors(*keywords: str) -> OlderForm:
    """Return the form with numbers before or between the tensors: `addcmul(x, 0.5, a, b)` for `value=0.5`.

    keywords: the arguments of today that the numbers are, in their order.

    >>> import warnings
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")
    ...     numbers_among_tensors("beta", "alpha")("addmm", (2, "x", 3, "a", "b"), {})
    (('x', 'a', 'b'), {'beta': 2, 'alpha': 3})
    """

    def form(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Arguments | None:
        numbers = [a for a in args if isinstance(a, Number)]
        tensors = tuple([a for a in args if not isinstance(a, Number)])
        named = dict(zip(keywords, numbers, strict=False))
        if not 0 < len(numbers) <= len(keywords) or args[-1] is not tensors[-1] or named.keys() & kwargs.keys():
            return None
        warn_user(
            f"{name}: a number before a tensor is deprecated; write {', '.join(f'{k}=...' for k in named)}. "
            f"This overload of {name} is deprecated"
        )
        return tensors, {**kwargs, **named}

    return form


def older_reduction(names: str) -> OlderForm:
    """Return the form of a loss with `size_average` and `reduce`, which `reduction` has replaced.

    names: all arguments of PyTorch's loss in their order, separated by spaces.

    >>> older_reduction("input target size_average reduce reduction")("l1_loss", (1, 2, None, None, "sum"), {})
    ((), {'input': 1, 'target': 2, 'reduction': 'sum'})
    """
    order = names.split()

    def form(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Arguments | None:
        given = dict(zip(order, args, strict=False))
        older = {"size_average", "reduce"}
        if len(args) > len(order) or given.keys() & kwargs.keys() or not older & {*given, *kwargs}:
            return None
        given.update(kwargs)
        average, reduce = given.pop("size_average", None), given.pop("reduce", None)
        if not (is_switch(average) and is_switch(reduce)):
            return None
        if average is not None or reduce is not None:
            kept = "mean" if average or average is None else "sum"
            reduction = given["reduction"] = kept if reduce or reduce is None else "none"
            instead = f"please use reduction='{reduction}' instead"
            warn_user(f"{name}: size_average and reduce args will be deprecated, {instead}")
        return (), given

    return form


def other_names(order: str, **names: str | None) -> OlderForm:
    """Return the form in which PyTorch gives arguments other names, here to today's; None: one without effect.

    order: all arguments of that form in their order, separated by spaces.

    >>> other_names("input p train", train="training")("dropout", (1,), {"p": 0.5, "train": True})
    ((), {'input': 1, 'p': 0.5, 'training': True})
    """
    positions = order.split()

    def form(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Arguments | None:
        given = dict(zip(positions, args, strict=False))
        if len(args) > len(positions) or given.keys() & kwargs.keys() or not names.keys() & {*given, *kwargs}:
            return None
        given.update(kwargs)
        return (), {today: value for key, value in given.items() if (today := names.get(key, key)) is not None}

    return form


def dim_by_rank(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Arguments | None:
    """Return the form of softmax and its relatives without `dim`: dimension 0 of 0, 1 or 3 dimensions, otherwise 1."""
    if "_stacklevel" in kwargs:  # of PyTorch's warning
        kwargs = {key: value for key, value in kwargs.items() if key != "_stacklevel"}
        if len(args) > 1 or kwargs.get("dim") is not None:
            return args, kwargs
    x: Any = args[0] if args else kwargs.get("input")
    if len(args) > 1 or kwargs.get("dim") is not None or not hasattr(x, "ndim"):
        return None
    warn_user(
        f"Implicit dimension choice for {name} has been deprecated. Change the call to include dim=X as an argument."
    )
    return args, {**kwargs, "dim": 0 if x.ndim in (0, 1, 3) else 1}

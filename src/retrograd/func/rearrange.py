"""Rearranging of dimensions by a pattern of names, as in einops."""

import math
import re
from collections.abc import Sequence
from typing import Any

from retrograd.core import Tensor
from retrograd.foundation.suggestions import suggest_in_module
from retrograd.ops.join import stack

Groups = list[list[str] | str]  # for each dimension the names of the axes that it is made of; or REST
REST = "…"  # stands for several dimensions; in a group, for their axes


def rearrange(tensor: Tensor | Sequence[Tensor], pattern: str, **axes_lengths: int) -> Tensor:
    """Return a tensor with its dimensions split, permuted and joined as a pattern says.

    pattern: names of all axes, before and after "->".  Axes in parentheses make one dimension, the first axis varying
    slowest; "..." stands for any number of dimensions, and 1 or () for one of size 1.  `axes_lengths` gives sizes of
    axes; in parentheses one axis may be without.  A sequence of tensors is stacked along a new first dimension.

    Raises ValueError for a pattern that is not of this form or does not fit the tensor, TypeError for lengths that are
    not integers.

    Source: Rogozhnikov, "Einops: Clear and Reliable Tensor Manipulations with Einstein-like Notation", ICLR 2022.

    >>> import retrograd as rg
    >>> images = rg.ones(8, 32, 48, 3)
    >>> rg.func.rearrange(images, "b h w c -> b c h w").shape
    (8, 3, 32, 48)
    >>> rg.func.rearrange(images, "b (h h2) (w w2) c -> b h w (c h2 w2)", h2=2, w2=2).shape
    (8, 16, 24, 12)
    """
    x = tensor if isinstance(tensor, Tensor) else stack(list(tensor))
    left, right = _sides(pattern, axes_lengths)
    left, right = _without_ellipsis(left, right, x.ndim)
    sizes: dict[str, int] = {}
    for names, size in zip(left, x.shape, strict=True):
        sizes |= _split_size(names, size, axes_lengths, pattern)
    order = [name for names in left for name in names]
    split = x.reshape([sizes[name] for name in order])
    permuted = split.permute([order.index(name) for names in right for name in names])
    return permuted.reshape([math.prod(sizes[name] for name in names) for names in right])


def _sides(pattern: str, lengths: dict[str, Any]) -> tuple[Groups, Groups]:
    """Return the groups of both sides of a pattern, which must have the same names."""
    sides = pattern.split("->")
    if len(sides) != 2:
        raise ValueError(f"Pattern must contain a single '->' separator: rearrange got {pattern!r}")
    left, right = (_groups(side, pattern) for side in sides)
    names, others = ({name for group in groups for name in group} for groups in (left, right))
    if REST in others - names:
        raise ValueError(f"Ellipsis found in right side, but not left side of a pattern {pattern}")
    if REST in names and REST not in left:
        raise ValueError(f"Ellipsis is parenthesis in the left side is not allowed: {pattern}")
    if names != others:
        raise ValueError(
            f"Identifiers only on one side of rearrange expression (should be on both): {names ^ others} in {pattern!r}"
        )
    if lengths.keys() - names:
        raise ValueError(f"Identifiers not found in rearrange expression: {lengths.keys() - names} in {pattern!r}")
    for name, length in lengths.items():
        if type(length) is not int:
            raise TypeError(f"rearrange axis lengths must be integers, got: {type(length)} for {name}")
    return left, right


def _groups(side: str, pattern: str) -> Groups:
    """Return the groups of one side of a pattern."""
    groups: Groups = []
    inside = False
    for token in re.findall(r"\.\.\.|\w+|\S", side):
        if token in "()":
            if inside == (token == "("):
                nested = "Axis composition is one-level (brackets inside brackets not allowed)"
                raise ValueError(f"{nested if inside else 'Brackets are not balanced'}: rearrange got {pattern!r}")
            inside = token == "("
            groups += [[]] if inside else []
        elif inside:
            groups[-1] = [*groups[-1], *(REST if token == "..." else _axis(token, pattern))]
        else:
            groups.append(REST if token == "..." else _axis(token, pattern))
    if inside:
        raise ValueError(f"Imbalanced parentheses in expression: '{side}'")
    names = [name for group in groups for name in group]
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"Indexing expression contains duplicate dimension '{name}': rearrange got {pattern!r}")
    return groups


def _axis(token: str, pattern: str) -> list[str]:
    """Return the name of an axis in a list; none for an axis of size 1."""
    if token == "1":
        return []
    if token.isdecimal():
        raise ValueError(f"rearrange only supports unnamed axes of size 1, got {token} in {pattern!r}")
    if token == ".":
        raise ValueError(f"Expression may contain dots only inside ellipsis (...): rearrange got {pattern!r}")
    if len(token) == 1 and not token.isalnum() and token != "_":
        raise ValueError(f"Unknown character '{token}' in {pattern!r}")
    if not token.isidentifier():
        raise ValueError(f"Invalid axis identifier: {token} in {pattern!r}")
    if token.startswith("_") or token.endswith("_"):
        raise ValueError(
            f"Invalid axis identifier: {token}\naxis name should should not start or end with underscore: {pattern!r}"
        )
    return [token]


def _without_ellipsis(left: Groups, right: Groups, ndim: int) -> tuple[Groups, Groups]:
    """Return both sides with a name for each dimension that "..." stands for."""
    extra = ndim - (len(left) - (REST in left))
    if extra < 0 or (extra and REST not in left):
        relation = "less than or equal" if REST in left else "equal"
        raise ValueError(
            f"Number of dimensions in pattern ({ndim - extra}) must be {relation} to the number of dimensions in the "
            f"tensor ({ndim})"
        )
    names = [f"{REST}{k}" for k in range(extra)]
    return _expand(left, names), _expand(right, names)


def _expand(groups: Groups, names: list[str]) -> Groups:
    expanded: Groups = []
    for group in groups:
        if group == REST:
            expanded += [[name] for name in names]
        else:
            expanded.append([n for name in group for n in (names if name == REST else [name])])
    return expanded


def _split_size(names: list[str] | str, size: int, lengths: dict[str, int], pattern: str) -> dict[str, int]:
    """Return the sizes of the axes that a dimension is made of."""
    unknown = [name for name in names if name not in lengths]
    known = math.prod(lengths[name] for name in names if name in lengths)
    if len(unknown) > 1:
        raise ValueError(f"rearrange: give the sizes of all but one of {unknown} in {pattern!r}")
    if (size != known) if not unknown else (known == 0 or size % known):
        raise ValueError(f"rearrange: a dimension of size {size} can't be split into {names} of {lengths}, {pattern!r}")
    return {name: lengths[name] if name in lengths else size // known for name in names}


suggest_in_module(globals())

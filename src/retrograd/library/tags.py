"""Tags: properties that the definition of an operator declares."""

from collections.abc import Iterable
from enum import Enum


class Tag(Enum):
    """A property of an operator, by PyTorch's names; `op.tags` lists those of a custom operator.

    `Tag.inplace` and `Tag.out` say that an operator returns the tensors that it writes to: `infer_schema` then declares
    its result as these.  The others are stored, for programs that read them.

    >>> import retrograd as rg
    >>> @rg.library.custom_op("docs::doubled", mutates_args=(), tags=rg.Tag.pointwise)
    ... def doubled(x: rg.Tensor) -> rg.Tensor:
    ...     return x * 2
    >>> doubled.tags
    [<Tag.pt2_compliant_tag: 17>, <Tag.pointwise: 16>]
    """

    core = 0
    cudagraph_unsafe = 1
    data_dependent_output = 2
    dynamic_output_shape = 3
    flexible_layout = 4
    generated = 5
    inplace = 6
    inplace_view = 7
    maybe_aliasing_or_mutating = 8
    needs_contiguous_strides = 9
    needs_exact_strides = 10
    needs_fixed_stride_order = 11
    nondeterministic_bitwise = 12
    nondeterministic_seeded = 13
    out = 14
    out_variant = 15
    pointwise = 16
    pt2_compliant_tag = 17
    reduction = 18
    view_copy = 19


class TagsError(ValueError, AssertionError):
    """The error for tags that contradict each other; AssertionError in PyTorch."""


def tag_list(tags: Tag | Iterable[Tag] | None) -> list[Tag]:
    """Return the tags that a user gave, one or several, as a list; a TypeError for anything else."""
    found = [tags] if isinstance(tags, Tag) else list(tags or ())
    for tag in found:
        if not isinstance(tag, Tag):
            raise TypeError(f"tags: expected members of rg.Tag, got {tag!r}")
    if Tag.inplace in found and Tag.out in found:
        raise TagsError("tags: rg.Tag.inplace and rg.Tag.out are mutually exclusive")
    return found

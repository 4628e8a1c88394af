"""Ragged arrays as text: one component after the other, the middle of a long array elided."""

from dataclasses import replace
from textwrap import indent

import numpy as np

from retrograd.backend import array_text

LINE = 10  # a component takes at least a line, which counts as this many elements


def text(array, options, *, name="nested_tensor", notes=(), part_notes=()):
    """Return a ragged array as code; `notes` are further arguments, `part_notes` those of the components."""
    edge = None
    if max(array.size, LINE * array.shape[0]) > options.threshold:
        edge, options = options.edgeitems, replace(options, threshold=0)  # the components are summarized as well
    members = _members(array, edge, options, part_notes)
    listed = "[\n" + indent(",\n".join(members), "  ") + "\n]" if members else "[\n\n]"
    return array_text.append_notes(f"{name}({listed}", notes, options)


def _members(array, edge, options, notes):
    """Return the text of each component, or of `edge` of them at each end."""
    count = array.shape[0]
    if edge is None or count <= 2 * edge:
        return [_member(array, number, options, notes) for number in range(count)]
    ends = [_member(array, number, options, notes) for number in (*range(edge), *range(count - edge, count))]
    return [*ends[:edge], "...", *ends[edge:]]


def _member(array, number, options, notes):
    """Return the text of one component, or of an example of a batch."""
    part = array.at(number) if array.lead else array.between(number, number + 1).components()[0]
    if isinstance(part, np.ndarray):
        return array_text.text(part, options, notes=notes)
    return text(part, options, notes=notes, part_notes=notes)

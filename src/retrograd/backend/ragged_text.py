"""Ragged arrays as text: one component after the other, the middle of a long array elided."""

import numpy as np

LINE = 10  # a component takes at least a line, which counts as this many elements


def text(array, indent="", *, threshold=None, edgeitems=None, **options):
    """Return a ragged array as code, without the closing bracket; options are array2string's."""
    defaults = np.get_printoptions()
    threshold = defaults["threshold"] if threshold is None else threshold
    edge = defaults["edgeitems"] if edgeitems is None else edgeitems
    if max(array.size, LINE * array.shape[0]) > threshold:
        threshold = 0  # the components shown are summarised as well
    options = {**options, "threshold": threshold, "edgeitems": edge}
    below = indent + "  "
    members = _members(array, below, edge if threshold == 0 else None, options)
    if not members:
        return "nested_tensor([]"
    listed = f",\n{below}".join(members)
    return f"nested_tensor([\n{below}{listed}\n{indent}]"


def _members(array, indent, edge, options):
    """Return the text of each component, or of `edge` of them at each end."""
    count = array.shape[0]
    if edge is None or count <= 2 * edge:
        return [_member(array, number, indent, options) for number in range(count)]
    ends = [_member(array, number, indent, options) for number in (*range(edge), *range(count - edge, count))]
    return [*ends[:edge], "...", *ends[edge:]]


def _member(array, number, indent, options):
    """Return the text of one component, or of an example of a batch."""
    part = array.at(number) if array.lead else array.between(number, number + 1).components()[0]
    if not isinstance(part, np.ndarray):
        return text(part, indent, **options) + ")"
    digits = np.array2string(part, separator=", ", prefix=f"{indent}tensor(", **options)
    size = f", size={part.shape}" if 0 in part.shape and part.ndim > 1 else ""
    return f"tensor({digits}{size})"

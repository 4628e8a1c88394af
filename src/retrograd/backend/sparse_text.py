"""Sparse arrays as text, in PyTorch's format: indices, values, size, number of entries, layout."""

from retrograd.backend import array_text


def text(array, options, *, name="tensor", notes=(), part_notes=()):
    """Return a sparse array as code; `notes` are further arguments, such as "requires_grad=True"."""
    prefix = f"{name}("
    column = len(prefix)
    parts = {**array.pattern.arrays, "values": array.values}
    shown = prefix + f",\n{' ' * column}".join(
        array_text.part_text(label, part, options, column) for label, part in parts.items()
    )
    if array.pattern.layout == "sparse_coo":
        shown += f",\n{' ' * column}size={tuple(array.shape)}"
        sizes = []
    else:
        sizes = [f"size={tuple(array.shape)}"]
    facts = [
        *sizes,
        f"nnz={array.pattern.nnz}",
        *(array_text.dtype_notes(array.values, options) if array.dtype != "int64" else ()),
        f"layout=retrograd.{array.pattern.layout}",
    ]
    return array_text.append_notes(shown, [*facts, *notes], options, column)

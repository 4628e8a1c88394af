"""Display tensors in notebooks: shape, dtype and gradient status above a table of the values."""

import numpy as np

from retrograd.core import Tensor
from retrograd.core.dtype import is_differentiable
from retrograd.foundation.html_report import escape, paragraph, report, table
from retrograd.foundation.lazy_imports import add_attribute

ROWS, COLUMNS = 10, 10


def _repr_html_(x):
    """Return the tensor as HTML: a table for one or two dimensions, abbreviated for large ones; else its text.

    >>> import retrograd as rg
    >>> "shape (2,), float32" in rg.ones(2)._repr_html_()
    True
    """
    if not isinstance(x.value, np.ndarray) or x.level is not None or x.ndim not in (1, 2) or not x.numel():
        return f"<pre>{escape(repr(x))}</pre>"
    return report(paragraph(_heading(x)), _table(np.atleast_2d(x.value)))


add_attribute(Tensor, "_repr_html_", _repr_html_)


def _heading(x):
    """Return the heading above the values."""
    graph = f", grad_fn={x.grad_fn!r}" if x.grad_fn is not None else ", requires grad" if x.requires_grad else ""
    return f"tensor of shape {x.shape}, {x.dtype}{graph}"


def _table(array):
    rows, columns = _displayed_indices(array.shape[0], ROWS), _displayed_indices(array.shape[1], COLUMNS)
    return table([[_cell(array, row, column) for column in columns] for row in rows])


def _displayed_indices(count, most):
    """Return the displayed indices; None marks an omission."""
    if count <= most:
        return list(range(count))
    return [*range(most // 2), None, *range(count - most // 2, count)]


def _cell(array, row, column):
    if row is None or column is None:
        return "…"
    value = array[row, column]
    return f"{value:.4g}" if is_differentiable(array.dtype) else str(value)

"""Reference implementations of medians, modes, quantiles and covariances."""

from collections import Counter
from functools import partial

import numpy as np

from retrograd.testing.references.sort import along, order, values_and_indices


def lower_median_index(row, skip_nan):
    """Return the index of the lower median of a row."""
    row = [float("inf") if np.isnan(v) else v for v in row]
    count = sum(v < float("inf") for v in row) if skip_nan else len(row)
    return [order(row)[max(count - 1, 0) // 2]]


median_indices = along(lower_median_index)


def middle_of_all(x, skip_nan):
    kept = np.sort(x[~np.isnan(x)])
    return kept[(len(kept) - 1) // 2] if skip_nan or len(kept) == x.size else np.nan


def middle(x, dim, keepdim, skip_nan):
    if dim is None:
        return np.reshape(middle_of_all(x, skip_nan), (1,) * x.ndim if keepdim else ())
    found = np.apply_along_axis(middle_of_all, dim[0], x, skip_nan)
    return np.expand_dims(found, dim[0]) if keepdim else found


def median(x, dim, keepdim, skip_nan=False):
    if dim is None:
        return middle_of_all(x, skip_nan)
    return values_and_indices(median_indices)(x, dim, keepdim=keepdim, skip_nan=skip_nan)


nanmedian = partial(median, skip_nan=True)


def most_frequent(row):
    value = min(Counter(row).items(), key=lambda pair: (-pair[1], pair[0]))[0]
    return [max(i for i, v in enumerate(row) if v == value)]


mode_indices = along(most_frequent)


mode = values_and_indices(mode_indices)

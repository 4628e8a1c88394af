"""Reference implementations of medians, modes, quantiles and covariances."""

from collections import Counter

import numpy as np

from .sort import along, order, with_values


def middle_of(row, skip_nan):
    """Return the index of the lower median of a row."""
    row = [float("inf") if np.isnan(v) else v for v in row]
    count = sum(v < float("inf") for v in row) if skip_nan else len(row)
    return [order(row)[max(count - 1, 0) // 2]]


middle_places = along(middle_of)


def middle_of_all(x, skip_nan):
    kept = np.sort(x[~np.isnan(x)])
    return kept[(len(kept) - 1) // 2] if skip_nan or len(kept) == x.size else np.nan


def middle(x, dim, keepdim, skip_nan):
    if dim is None:
        return np.reshape(middle_of_all(x, skip_nan), (1,) * x.ndim if keepdim else ())
    found = np.apply_along_axis(middle_of_all, dim[0], x, skip_nan)
    return np.expand_dims(found, dim[0]) if keepdim else found


def median(skip_nan):
    along_dim = with_values(middle_places)

    def oracle(x, dim, keepdim):
        return middle_of_all(x, skip_nan) if dim is None else along_dim(x, dim, keepdim=keepdim, skip_nan=skip_nan)

    return oracle


def most_frequent(row):
    value = min(Counter(row).items(), key=lambda pair: (-pair[1], pair[0]))[0]
    return [max(i for i, v in enumerate(row) if v == value)]


modal_places = along(most_frequent)


def quantile(function):
    return lambda x, q, dim, keepdim, interpolation: function(x, q, axis=dim, keepdims=keepdim, method=interpolation)


ORACLES = {
    "middle": middle,
    "middle_places": middle_places,
    "median": median(False),
    "nanmedian": median(True),
    "modal_places": modal_places,
    "mode": with_values(modal_places),
    "quantile": quantile(np.quantile),
    "nanquantile": quantile(np.nanquantile),
}

"""Reference implementations of counting, bin by bin."""

from itertools import pairwise

import numpy as np


def hist(x, edges, weight=None, density=False):
    """Return the count of each bin, the last one with its right edge."""
    x, weight = x.ravel(), np.ones(x.size) if weight is None else weight.ravel()
    last = len(edges) - 2
    inside = [(x >= a) & ((x < b) | ((i == last) & (x == b))) for i, (a, b) in enumerate(pairwise(edges))]
    found = np.array([weight[i].sum() for i in inside])
    return found / found.sum() / np.diff(edges) if density else found


def equal_bins(x, bins, low, high):
    low, high = (x.min(), x.max()) if low == high else (low, high)
    return np.linspace(low, high, bins + 1)


def count_into_bins(x, edges, weight, bins, low, high, density):
    edges = equal_bins(x, bins, low, high) if edges is None else edges
    return hist(x, edges, weight, density), edges


def count_into_boxes(x, weight, *edges, counts, spans, density):
    """Return the histogram of points."""
    edges = edges or [equal_bins(column, n, 0, 0) for column, n in zip(x.T, counts, strict=True)]
    found, edges = np.histogramdd(x, list(edges), weights=weight, density=density)
    return found, *edges


def histc(x, bins, min, max):
    return hist(x, equal_bins(x, bins, min, max))


def histogram(x, weight, bins, range, density):
    return count_into_bins(x, None, weight, bins, *(range or (0, 0)), density)

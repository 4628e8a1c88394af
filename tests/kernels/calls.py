"""Calls of the array kernels with matching arguments."""

import numpy as np

from retrograd.kernels.conv_layout import plan_of
from retrograd.kernels.pooling_windows import windows_of

ONES = (1, 1, 1)
GRID = plan_of((1, 5, 6), (1, 3, 2), (1, 3, 5), ONES, (0, 0, 0), ONES)
WIDER = plan_of((1, 7, 9), (1, 3, 2), (1, 5, 8), ONES, (0, 0, 0), ONES)
WINDOWS = windows_of(((1, 1, 0, 1, 1), (2, 2, 0, 1, 3), (3, 1, 1, 1, 7)), (1, 6, 7))
SQUARES = windows_of(((1, 1, 0, 1, 1), (2, 2, 0, 1, 3), (2, 2, 0, 1, 3)), (1, 6, 7))


def x(*shape):
    return np.random.default_rng(0).standard_normal(shape).astype(np.float32)


def ids(size, *shape):
    return np.random.default_rng(1).integers(0, size, shape)


def ends(*offsets):
    return np.array(offsets, np.int64)


def words(n):
    return np.arange(n, dtype=np.uint64)


ATTENTION = (x(2, 5, 4), x(2, 6, 4), x(2, 6, 3), x(2, 5, 6) > -1, x(1, 5, 6), ends(0, 5), ends(0, 6), 0.5, True)
RAGGED = (x(2, 5, 4), x(2, 6, 4), x(2, 6, 3), None, x(2, 16), ends(0, 2, 5), ends(0, 2, 6), 0.5, False)
BACK = (x(2, 5, 3), x(2, 5), x(2, 5, 3), x(2, 5))  # in front of those
LSTM = ("lstm", False, None, x(8, 2), x(6, 8), x(6, 2), x(6, 2), x(3, 2), x(3, 2), x(6, 2))  # of backward passes
GRU = ("gru", True, ends(3, 3, 1), x(6, 2), x(7, 6), x(7, 2), x(7, 2), x(4, 2), None, x(7, 2))
GATES = (x(7, 6), x(7, 6))
FLAT = (0, 0, 0, 1, 3, 4, 0, 0, 0)  # bilinear samples of images (3, 4)
DEEP = (0, 2, 1, 2, 3, 2, 0, 1, 0)
# Matching arguments, and how many arrays at the end are written to.
CALLS = {
    "uniform": [((words(2), words(4), x(16)), 1)],
    "sum_rows": [((x(2, 5, 3), ids(4, 5), x(2, 4, 3)), 1), ((x(2, 5, 19), ids(4, 5), x(2, 4, 19)), 1)],
    "add_rows": [
        ((x(2, 5, 3), ids(4, 5), x(2, 4, 3), x(2, 4, 3)), 1),
        ((x(2, 5, 19), ids(4, 5), x(2, 4, 19), x(2, 4, 19)), 1),
    ],
    "take_along": [((x(2, 4, 3), ids(4, 2, 5, 3), x(2, 5, 3)), 1)],
    "sum_along": [((x(2, 5, 3), ids(4, 2, 5, 3), x(2, 4, 3)), 1)],
    "segment_sum": [((x(2, 6, 3), ends(0, 2, 2, 6), x(2, 3, 3)), 1), ((x(2, 6, 1), ends(0, 2, 2, 6), x(2, 3, 1)), 1)],
    "segment_max": [((x(2, 6, 3), ends(0, 2, 2, 6), x(2, 3, 3)), 1)],
    "segment_softmax": [((x(2, 6, 3), ends(0, 2, 2, 6), x(2, 6, 3)), 1)],
    "segment_log_softmax": [((x(2, 6, 3), ends(0, 2, 2, 6), x(2, 6, 3)), 1)],
    "sum_windows": [
        ((GRID, x(2, 4, 1, 5, 6), x(2, 3, 2, 1, 3, 2), x(6), x(2, 6, 1, 3, 5)), 1),
        ((GRID, x(33, 2, 1, 5, 6), x(1, 3, 2, 1, 3, 2), None, x(33, 3, 1, 3, 5)), 1),
    ],
    "conv_weight_sums": [
        ((GRID, x(2, 4, 1, 5, 6), x(2, 6, 1, 3, 5), x(6, 2, 1, 3, 2), 2), 2),
        ((GRID, x(33, 2, 1, 5, 6), x(33, 3, 1, 3, 5), x(3, 2, 1, 3, 2), 1), 2),
    ],
    "window_maxima": [((WINDOWS, x(3, 1, 6, 7), x(3, 1, 3, 7)), 1), ((SQUARES, x(3, 1, 6, 7), x(3, 1, 3, 3)), 1)],
    "window_argmax": [((WINDOWS, x(3, 1, 6, 7), ids(9, 3, 1, 3, 7)), 1)],
    "window_maxima_backward": [
        ((WINDOWS, x(3, 1, 3, 7), x(3, 1, 6, 7), x(3, 1, 6, 7)), 1),
        ((SQUARES, x(3, 1, 3, 3), x(3, 1, 6, 7), x(3, 1, 6, 7)), 1),
    ],
    "window_sums": [((WINDOWS, x(3, 1, 6, 7), x(3, 1, 3, 7)), 1)],
    "sample_points": [
        ((FLAT, x(2, 3, 12), x(2, 5, 2), x(2, 3, 5)), 1),
        ((DEEP, x(2, 3, 12), x(2, 5, 3), x(2, 3, 5)), 1),
    ],
    "sample_points_backward": [((FLAT, x(2, 3, 5), x(2, 5, 2), x(2, 3, 12)), 1)],
    "sample_slopes": [((FLAT, x(2, 3, 5), x(2, 3, 12), x(2, 5, 2), x(2, 5, 2)), 1)],
    "window_sums_backward": [((WINDOWS, x(3, 1, 3, 7), x(3, 1, 6, 7)), 1)],
    "recurrent_layer": [
        (("lstm", False, None, x(8, 2), None, x(6, 8), x(6, 2), x(3, 2), x(3, 2), x(6, 2)), 5),
        (("gru", True, ends(3, 3, 1), x(6, 2), x(6), x(7, 6), x(7, 2), x(4, 2), None, x(7, 2)), 5),
        (("rnn_tanh", False, None, x(2, 2), None, x(6, 2), None, x(3, 2), None, x(6, 2)), 5),
    ],
    "recurrent_layer_grad": [
        ((*LSTM, x(3, 2), x(3, 2), x(6, 8), None, x(6, 2)), 5),
        ((*GRU, x(4, 2), None, *GATES, None), 5),
    ],
    "attend": [((*given, x(2, 5, 3), x(2, 5)), 2) for given in (ATTENTION, RAGGED)],
    "attend_grad": [
        ((*BACK, *ATTENTION, x(2, 5, 4), x(2, 6, 4), x(2, 6, 3), x(2, 5, 6)), 4),
        ((*BACK, *RAGGED, x(2, 5, 4), x(2, 6, 4), x(2, 6, 3), x(2, 16)), 4),
    ],
}
EACH = [(name, *case) for name, cases in CALLS.items() for case in cases]

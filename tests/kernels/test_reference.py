"""Every function of the compiled kernels computes what its NumPy reference computes, for random calls.

The sizes, dtypes and memory layouts of operands are random. Some operands are empty, and some contain NaN, infinities,
zeros of both signs and subnormal numbers. A kernel that has no row in `LAW` fails, and so does one without a reference.
"""

import math
import re
from typing import NamedTuple

import numpy as np
import pytest

from retrograd import kernels
from retrograd.kernels import chosen, reference
from retrograd.kernels.conv_layout import plan_of
from retrograd.kernels.pooling_windows import windows_of

from .layouts import LAYOUTS, offset_by_an_element, plain

pytestmark = pytest.mark.skipif(not kernels.compiled, reason="the kernels are not compiled")

CALLS = 60  # random calls of each kernel and dtype
SIZES = [1, 2, 3, 5, 8, 16, 17, 33, 65]
IGNORED = -100  # of classes


class Law(NamedTuple):
    """How a kernel is called, and how close it is to its reference.

    `draw` is a method of `Random` that returns the arguments, or for a ufunc the kinds of its operands, as in `KINDS`.
    The results differ by at most `eps` times the precision of the dtype, relative to the largest one and to 1; `why`
    says where the difference comes from. With `eps` 0 they have the same bits.
    """

    draw: str
    eps: float = 0
    why: str = ""
    names_results: bool = False  # whether the reference writes to `out`
    loops: str = (
        "equal"  # the loop dimensions of a ufunc's operands: "equal", they may "broadcast", or there are "none"
    )
    finite: str = ""  # why operands are finite; "": they are not
    zeros: bool = False  # whether a result of 0 may have either sign


EXP = "exp is a polynomial of the kernel's own, with an error of a few units in the last place"
ORDER = "sums are added in another order"
FUSED = "the compiler fuses multiplications and additions, which rounds once instead of twice"
SATURATED = "a gate that rounds to 0 or 1 determines whether its product with an infinity is NaN"
NO_MEAN = "the mean of a row with an infinity is infinite or NaN: it is computed around the first number"
NO_VARIANCE = f"{ORDER}, and a row of equal numbers divides the difference by the square root of its eps"
SKIPPED = "0 times an infinite weight or number is added where no element is read, but only by the reference"
LAW = {
    **dict.fromkeys(["add", "subtract", "multiply", "true_divide"], Law("pair")),
    **dict.fromkeys(["erf", "gelu"], Law("x", 8, FUSED, loops="broadcast")),
    "erfc": Law("x", 16, EXP, loops="broadcast"),
    "erfinv": Law("f", 8, FUSED, loops="broadcast"),
    "hypot": Law("ff", loops="broadcast"),
    "nextafter": Law("xx", loops="broadcast"),
    "sign": Law("x", loops="broadcast"),
    **dict.fromkeys(["gelu_grad", "gelu_tanh_grad"], Law("gx", 16, EXP, loops="broadcast")),
    **dict.fromkeys(["gelu_tanh", "sigmoid", "silu"], Law("x", 8, EXP, loops="broadcast")),
    **dict.fromkeys(["silu_grad"], Law("gx", 8, EXP, loops="broadcast")),
    "sigmoid_grad": Law("gu", loops="broadcast"),
    "tanh_grad": Law("gu", 8, FUSED, loops="broadcast"),
    "softplus": Law("x:2,20", 8, EXP, loops="broadcast"),
    "softplus_grad": Law("gx:2,20", 8, EXP, loops="broadcast"),
    "relu": Law("x", loops="broadcast"),
    "relu_grad": Law("gx", loops="broadcast"),
    "scale_negative": Law("gx:.3", loops="broadcast"),
    "between": Law("gx:-.5,.5", loops="broadcast"),
    "outside": Law("gx:-.5,.5", loops="broadcast"),
    "clip": Law("x:-.5,.5", loops="broadcast"),
    "hardshrink": Law("x:.5", loops="broadcast"),
    "softshrink": Law("x:.5", loops="broadcast"),
    "lerp": Law("xxx", 8, FUSED, loops="broadcast"),
    "elu": Law("x:1.5,2,.5", 8, EXP, loops="broadcast"),
    "elu_grad": Law("gx:1.5,2,.5", 8, EXP, loops="broadcast"),
    "squared_difference": Law("xx", loops="broadcast"),
    "squared_difference_grad": Law("gxx", loops="broadcast"),
    "hardsigmoid": Law("x", loops="broadcast"),
    "hardswish": Law("x", loops="broadcast"),
    "hardswish_grad": Law("gx", loops="broadcast"),
    "huber": Law("xx:1.5,2", loops="broadcast"),
    "huber_grad": Law("gxx:1.5,2", loops="broadcast"),
    **dict.fromkeys(["fmod", "remainder", "floor_divide"], Law("xx", loops="broadcast")),
    "where": Law("kxx", loops="broadcast"),
    "float_to_half": Law("f", loops="broadcast"),
    "half_to_float": Law("h", loops="broadcast"),
    "float_to_bfloat16": Law("f", loops="broadcast"),
    "bfloat16_to_float": Law("w", loops="broadcast"),
    "masked": Law("kx:1.25", loops="broadcast"),
    "uniform": Law("uniform"),
    "descent": Law("xx:-1,.1,.5", 8, FUSED, names_results=True, loops="broadcast"),
    "momentum": Law("xxx:-1,.1,.9,.7,.5,.45", 16, FUSED, names_results=True, loops="broadcast"),
    "adam": Law("xxxp:-1,.1,.95,.9,.99,.1,.01,1e-8,.05", 8, FUSED, names_results=True, loops="broadcast"),
    "amsgrad": Law("xxxpp:-1,.1,.95,.9,.99,.1,.01,1e-8,.05", 8, FUSED, names_results=True, loops="broadcast"),
    "lstm": Law("xxxxxxxxx", 8, EXP),
    "lstm_grad": Law("ggxxxxxxxxx", 64, EXP, names_results=True, finite=SATURATED),
    "gru": Law("xxxxxxx", 8, EXP),
    "gru_grad": Law("gxxxxxxx", 64, EXP, names_results=True, finite=SATURATED),
    "recurrent_layer": Law("recurrence", 64, EXP, finite=SATURATED),
    "recurrent_layer_grad": Law("recurrence_back", 256, EXP, finite=SATURATED),
    "channel_moments": Law("x", 16, ORDER, loops="none"),
    "channel_dots": Law("xxx", 16, ORDER, loops="none"),
    "channel_sums": Law("x", 16, ORDER, loops="none"),
    "channel_shift": Law("xxxx", 8, FUSED, loops="none"),
    "channel_mix": Law("xxxxxx", 8, FUSED, loops="none"),
    "column_sums": Law("x", 16, ORDER),
    "standardize_rows": Law("x:1e-3", 16, ORDER, finite=NO_MEAN),
    "affine_rows": Law("xxx", 8, FUSED),
    "norm_rows": Law("xxx:1e-3,1", 16, ORDER, finite=NO_MEAN),
    "norm_grad_rows": Law("gxx:1e-3,1", 4096, NO_VARIANCE, finite=NO_MEAN),
    **dict.fromkeys(["softmax_rows", "log_softmax_rows"], Law("x", 8, EXP)),
    "softmax_grad_rows": Law("gs", 16, ORDER),
    "log_softmax_grad_rows": Law("gl", 16, EXP),
    **dict.fromkeys(["softmax_columns", "log_softmax_columns"], Law("x", 8, EXP)),
    "softmax_grad_columns": Law("gs", 16, ORDER),
    "log_softmax_grad_columns": Law("gl", 16, EXP),
    "cumsum_rows": Law("x"),
    "cumsum_columns": Law("x"),
    **dict.fromkeys(["cumprod_rows", "cummax_rows", "cummin_rows"], Law("x")),
    "product_rows": Law("x", 64, "products are multiplied in another order", finite="a product may underflow first"),
    "class_loss_rows": Law("xti", 8, EXP),
    "class_grad_rows": Law("xtig", 8, EXP),
    "variance_rows": Law("x:3", 16, ORDER),
    "flag_classes": Law("jjj", loops="broadcast"),
    "flag_zeros": Law("x", loops="broadcast"),
    "multiply_matrices": Law("xx", 16, ORDER),
    "sum_rows": Law("rows"),
    "add_rows": Law("add_rows"),
    "take_along": Law("take_along"),
    "sum_along": Law("sum_along"),
    "segment_max": Law("segments", zeros=True),
    "segment_sum": Law("segments", 8, ORDER),
    **dict.fromkeys(["segment_softmax", "segment_log_softmax"], Law("rows_of_segments", 8, EXP)),
    "sum_windows": Law("convolution", 8, ORDER),
    "conv_weight_sums": Law("convolution_weight", 16, ORDER),
    "window_maxima": Law("pooled", zeros=True),
    "window_argmax": Law("pooled_index"),
    "window_maxima_backward": Law("pooled_back", 8, ORDER),
    "window_sums": Law("pooled", 8, ORDER),
    "window_sums_backward": Law("spread", 8, ORDER),
    "attend": Law("attention", 32, EXP),
    "attend_grad": Law(
        "attention_back", 128, EXP, finite="0 times an infinity is NaN, but not each pair of weight 0 is multiplied"
    ),
    "sample_points": Law("sampled", 8, FUSED),
    "sample_points_backward": Law("sampled_back", 16, ORDER, finite=SKIPPED),
    "sample_slopes": Law(
        "slopes", 32, ORDER, finite="an infinite number times y, or y times a weight, is multiplied first"
    ),
    "fused_group": Law("group"),
    "planned_calls": Law("plan"),
}
# Functions that control, copy and read memory, and control threads: they compute nothing.
CONTROLS = {
    "are_disjoint", "read_flat", "write_flat", "row_major", "checksum",
    "address", "empty", "broadcast_to", "caching", "threaded", "cached_bytes", "set_cache_limit", "get_num_threads",
    "set_num_threads", "get_vector_bytes", "set_vector_bytes", "set_grain_size", "get_chunk_size",
}  # fmt: skip
# Functions that wrap others, with whose results test_small_products.py and test_small_losses.py compare theirs.
WRAPPERS = {"small_linear", "small_matmul", "small_class_loss", "small_class_grad", "with_own_loops"}


class Random:
    """One random call: sizes, layouts and numbers, which are hard ones in every other call."""

    def __init__(self, seed, dtype, law):
        self.r, self.dtype, self.hard = np.random.default_rng(seed), np.dtype(dtype), seed[0] % 2 == 1
        self.empty = seed[0] % 10 == 4  # some size is then 0
        self.finite = bool(law.finite)
        self.loops = law.loops
        self.made = []  # the results that a kernel writes

    def size(self, most=65):
        if self.empty and self.r.random() < 0.5:
            return 0
        return int(self.r.choice([n for n in SIZES if n <= most]))

    def integers(self, low, high, shape):
        """Return integers below `high`; none if there are none."""
        return self.r.integers(low, high, shape) if high > low else np.zeros((0,), np.int64).reshape(shape)

    def numbers(self, *shape):
        """Return normal numbers, some of them hard."""
        x = self.r.standard_normal(shape) * 3
        if self.hard:
            tiny = float(np.finfo(self.dtype).smallest_subnormal)
            hard = [0.0, -0.0, tiny, -tiny, 5 * tiny, 1.0, *([] if self.finite else [np.nan, np.inf, -np.inf])]
            x = np.where(self.r.random(shape) < 0.1, self.r.choice(hard, shape), x)
        return np.asarray(x, self.dtype)

    def bits(self, dtype, shape):
        """Return random bits, as those of numbers of all magnitudes."""
        return self.r.integers(0, np.iinfo(dtype).max, shape, dtype, endpoint=True)

    def results(self, *shape, dtype=None):
        """Return an array for a kernel to write to."""
        self.made.append(np.full(shape, 7, self.dtype if dtype is None else dtype))
        return self.made[-1]

    def classes(self, shape, count):
        """Return classes below `count`, or the class to ignore."""
        found = self.integers(0, count, shape) if count else np.full(shape, IGNORED)
        return np.where(self.r.random(shape) < 0.2, IGNORED, found)

    def broadcast(self, sizes):
        """Return sizes that broadcast to these."""
        return [n if n == 0 or self.r.random() < 0.7 else 1 for n in sizes]

    def operands(self, ufunc, kinds):
        """Return operands of these kinds for a ufunc: their core dimensions are its signature's, others broadcast."""
        kinds, _, settings = kinds.partition(":")
        core = re.findall(r"\(([^)]*)\)", ufunc.signature or ",".join(["()"] * ufunc.nargs))[: len(kinds)]
        if "t" in kinds:
            self.empty = False  # a row without classes has no loss
        sizes = {dim: self.size() for dim in sorted(set(re.findall(r"\w+", " ".join(core))))}
        front = [self.size(17) for _ in range(0 if self.loops == "none" else int(self.r.integers(0, 3)))]
        found = []
        for kind, dims in zip(kinds, core, strict=True):
            own = front
            if self.loops == "broadcast":
                own = self.broadcast(front)[int(self.r.integers(0, len(front) + 1)) :]
            shape = (*own, *(sizes[dim] for dim in re.findall(r"\w+", dims)))
            found.append(self.classes(shape, sizes["n"]) if kind == "t" else KINDS[kind](self, shape))
        return [*found, *(self.dtype.type(number) for number in settings.split(",") if number)]

    # The arguments of the other kernels; results are last.

    def pair(self):
        front = [self.size() for _ in range(int(self.r.integers(0, 3)))]
        return [self.numbers(*self.broadcast(front)) for _ in range(2)]

    def uniform(self):
        words = [self.r.integers(0, 2**63, n, dtype=np.uint64) for n in (2, 4)]
        return [*words, self.results(self.size() * 8)]  # a counter gives 4 or 8 numbers

    def rows(self):
        batch, count, size, columns = self.size(5), self.size(), self.size(), self.size()
        ids = self.integers(0, size, (count if size else 0,))
        return [self.numbers(batch, len(ids), columns), ids, self.results(batch, size, columns)]

    def add_rows(self):
        rows, ids, out = self.rows()
        return [rows, ids, self.numbers(*out.shape), out]

    def take_along(self):
        batch, count, size, columns = self.size(5), self.size(), self.size(), self.size()
        count = count if size else 0
        index = self.integers(0, size, (batch, count, columns))
        return [self.numbers(batch, size, columns), index, self.results(*index.shape)]

    def sum_along(self):
        like, index, values = self.take_along()
        return [self.numbers(*values.shape), index, self.results(*like.shape)]

    def offsets(self, components):
        """Return the offsets of components, some of them empty."""
        lengths = self.r.integers(0, 9, components)
        return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)

    def segments(self):
        offsets = self.offsets(self.size(17))
        batch, columns = self.size(5), self.size()
        return [self.numbers(batch, offsets[-1], columns), offsets, self.results(batch, len(offsets) - 1, columns)]

    def rows_of_segments(self):
        x, offsets, _ = self.segments()
        return [x, offsets, self.results(*x.shape)]

    def windows(self):
        """Return images, a plan of windows over them, and the shape of what is pooled."""
        sizes, axes = [], []
        for _ in range(3):
            kernel, stride, dilation = (int(n) for n in self.r.integers(1, 4, 3))
            before = int(self.r.integers(0, kernel // 2 + 1))
            size = int(self.r.integers(1, 12))
            reach = size + 2 * before - dilation * (kernel - 1) - 1
            if reach < 0:
                kernel, stride, before, dilation, reach = 1, 1, 0, 1, size - 1
            sizes.append(size)
            axes.append((kernel, stride, before, dilation, reach // stride + 1))
        n = int(self.r.integers(1, 6))
        return self.numbers(n, *sizes), windows_of(tuple(axes), tuple(sizes)), (n, *(axis[-1] for axis in axes))

    def pooled(self):
        x, plan, shape = self.windows()
        return [plan, x, self.results(*shape)]

    def pooled_index(self):
        x, plan, shape = self.windows()
        return [plan, x, self.results(*shape, dtype=np.int64)]

    def pooled_back(self):
        x, plan, shape = self.windows()
        return [plan, self.numbers(*shape), x, self.results(*x.shape)]

    def spread(self):
        x, plan, shape = self.windows()
        return [plan, self.numbers(*shape), self.results(*x.shape)]

    def images(self):
        """Return images, a weight, the shape of what is convolved, and the plan of the convolution."""
        groups, outs, channels, n = (int(k) for k in self.r.integers(1, 4, 4))
        kernel, stride, before, dilation = (tuple(map(int, self.r.integers(low, 4, 3))) for low in (1, 1, 0, 1))
        sizes = tuple(int(size) for size in self.r.integers(1, 9, 3))
        reach = [s + 2 * b - d * (k - 1) - 1 for s, b, d, k in zip(sizes, before, dilation, kernel, strict=True)]
        if min(reach) < 0:
            kernel, before, reach = (1, 1, 1), (0, 0, 0), [s - 1 for s in sizes]
        out = tuple(r // s + 1 for r, s in zip(reach, stride, strict=True))
        plan = plan_of(sizes, kernel, out, stride, before, dilation)
        x = self.numbers(n, groups * channels, *sizes)
        return x, self.numbers(groups, outs, channels, *kernel), (n, groups * outs, *out), plan

    def convolution(self):
        x, w, shape, plan = self.images()
        bias = self.numbers(shape[1]) if self.r.random() < 0.5 else None
        return [plan, x, w, bias, self.results(*shape)]

    def convolution_weight(self):
        x, w, shape, plan = self.images()
        return [plan, x, self.numbers(*shape), self.results(shape[1], *w.shape[2:]), len(w)]

    def sampling(self):
        """Return settings, images, a grid of points in and around them, and numbers at the points."""
        axes = int(self.r.integers(2, 4))
        mode, padding, align = (int(self.r.integers(0, most)) for most in (3 if axes == 2 else 2, 3, 2))
        sizes = [1] * (3 - axes) + [int(n) for n in self.r.integers(1, 9, axes)]
        orders = [0] * (3 - axes) + [int(n) for n in self.r.choice([0, 0, 1, 2], axes)]
        n, c, points = self.size(5), self.size(5), int(self.r.choice([1, 2, 17, 150, 300]))
        x, grid = self.numbers(n, c, math.prod(sizes)), self.numbers(n, points, axes)
        return (mode, padding, align, *sizes, *orders), x, grid, self.numbers(n, c, points)

    def sampled(self):
        settings, x, grid, y = self.sampling()
        return [settings, x, grid, self.results(*y.shape)]

    def sampled_back(self):
        settings, x, grid, y = self.sampling()
        return [settings, y, grid, self.results(*x.shape)]

    def slopes(self):
        settings, x, grid, y = self.sampling()
        return [settings, y, x, grid, self.results(*grid.shape)]

    def recurrence(self):
        """Return the operands of all steps of some kind of cell, with sequences of equal lengths or of several."""
        cell, gates = [("rnn_tanh", 1), ("rnn_relu", 1), ("lstm", 4), ("gru", 3)][int(self.r.integers(4))]
        sequences, size, steps = self.size(33), self.size(33), int(self.r.integers(0, 5))
        sizes, rows = None, steps * sequences
        if self.r.random() < 0.5 and sequences:
            sizes = np.sort(self.r.integers(1, sequences, steps, endpoint=True))[::-1].astype(np.int64)
            rows = int(sizes.sum())
        weight = self.numbers(gates * size, size) / max(size, 1)
        bias = self.numbers(gates * size) if cell == "gru" and self.r.random() < 0.5 else None
        self.made = made = [self.numbers(rows, gates * size), self.numbers(rows, size), self.numbers(sequences, size)]
        made += [self.numbers(sequences, size), self.numbers(rows, size)]
        terms, extra, h, c, out = made
        extra, c = extra if gates > 1 else None, c if cell == "lstm" else None
        return [cell, bool(self.r.random() < 0.5), sizes, weight, bias, terms, extra, h, c, out]

    def recurrence_back(self):
        """Return the operands of the backward pass of `recurrence`."""
        given = self.recurrence()
        cell, reverse, sizes, weight, _, _, _, h, c, _ = given
        firsts = [None if s is None else s.copy() for s in (h, c)]
        with np.errstate(all="ignore"):
            reference.recurrent_layer(*given)
        terms, extra, out = given[5], given[6], given[9]
        g, gh, gc = (None if s is None else self.numbers(*s.shape) for s in (out, h, c))
        made = gh, gc, self.numbers(*terms.shape), self.numbers(*terms.shape) if cell == "gru" else None
        self.made = [*(x for x in made if x is not None), self.numbers(*out.shape)]
        before = self.made[-1] if self.r.random() < 0.5 else None
        return [cell, reverse, sizes, weight, terms, extra, out, *firsts, g, *made, before]

    def attention(self):
        """Return the operands of attention of one component, or of several that share the rows."""
        components = int(self.r.integers(1, 4))
        queries, keys = self.offsets(components), self.offsets(components)
        batch, e, d = self.size(3), self.size(17), self.size(17)
        if components == 1:
            pairs = (int(queries[-1]), int(keys[-1]))
        else:
            pairs = (int(np.dot(np.diff(queries), np.diff(keys))),)
        q, k, v = (self.numbers(batch, n, width) for n, width in ((queries[-1], e), (keys[-1], e), (keys[-1], d)))
        mask = self.r.random((batch, *pairs)) < 0.8 if self.r.random() < 0.5 else None
        bias = self.numbers(batch, *pairs) if self.r.random() < 0.5 else None
        causal = bool(self.r.random() < 0.5)
        out, sums = self.results(*q.shape[:-1], d), self.results(*q.shape[:-1])
        return [q, k, v, mask, bias, queries, keys, 0.5, causal, out, sums]

    def attention_back(self):
        *given, out, sums = self.attention()
        q, k, v, _, _, queries, keys, *_ = given
        pairs = (q.shape[1], k.shape[1]) if len(queries) == 2 else (int(np.dot(np.diff(queries), np.diff(keys))),)
        with np.errstate(all="ignore"):
            reference.attend(*given, out, sums)
        self.made = []
        made = [self.results(*x.shape) for x in (q, k, v)]
        scores = self.results(len(q), *pairs)
        scores[...] = 0
        return [self.numbers(*out.shape), self.numbers(*sums.shape), out, sums, *given, *made, scores]


# By the letter of a ufunc's operand: how it is drawn. "t" stands for classes.
KINDS = {
    "x": lambda random, shape: random.numbers(*shape),
    "g": lambda random, shape: random.numbers(*shape),
    "s": lambda random, shape: reference.softmax_rows(random.numbers(*shape)),
    "l": lambda random, shape: reference.log_softmax_rows(random.numbers(*shape)),
    "p": lambda random, shape: np.abs(random.numbers(*shape)),
    "u": lambda random, shape: np.asarray(random.r.random(shape), random.dtype),
    "k": lambda random, shape: random.r.random(shape) < 0.5,
    "i": lambda random, shape: np.full((), IGNORED),
    "j": lambda random, shape: random.integers(-3, 6, shape),
    "f": lambda random, shape: random.bits(np.uint32, shape).view(np.float32),
    "h": lambda random, shape: random.bits(np.uint16, shape).view(np.float16),
    "w": lambda random, shape: random.bits(np.uint16, shape),
}


def same(got, expected, law, name):
    """Compare one result with the reference's."""
    assert got.dtype == expected.dtype
    assert got.shape == expected.shape
    if not law.eps:
        np.testing.assert_array_equal(got, expected, name, strict=True)
        if got.dtype.kind == "f":
            known = ~np.isnan(expected) & ~(law.zeros & (expected == 0))
            assert np.array_equal(np.signbit(got[known]), np.signbit(expected[known])), name
        return
    info = np.finfo(expected.dtype)
    scale = np.abs(expected).max(initial=1, where=np.isfinite(expected))
    tolerance = law.eps * float(info.eps)
    np.testing.assert_allclose(got, expected, rtol=tolerance, atol=tolerance * float(scale) + 4 * float(info.tiny))


def laid(r, x, layouts):
    """Return an operand in one of the layouts; one without dimensions has a single layout."""
    return layouts[int(r.integers(len(layouts)))](x) if np.ndim(x) else x


def as_tuple(results):
    return results if isinstance(results, tuple) else (results,)


def check_ufunc(name, random, law):
    """Compare a ufunc on operands of any layout with the reference on plain ones."""
    ufunc = getattr(chosen, name)
    operands = random.operands(ufunc, law.draw)
    got = as_tuple(ufunc(*[laid(random.r, x, LAYOUTS[:-1]) for x in operands]))
    with np.errstate(all="ignore"):
        if law.names_results:
            expected = tuple([np.empty_like(x) for x in got])
            getattr(reference, name)(*operands, out=expected)
        else:
            expected = as_tuple(getattr(reference, name)(*operands))
    for one, other in zip(got, expected, strict=True):
        same(np.asarray(one), np.asarray(other), law, name)


def is_among(x, arrays):
    return any(x is a for a in arrays)


def run(function, arguments, made, layouts, r):
    """Return the results that a function writes, after a call with copies of the arguments in some layout."""
    copies = [
        a.copy() if is_among(a, made) else laid(r, a, layouts) if isinstance(a, np.ndarray) else a for a in arguments
    ]
    returned = function(*copies)
    return returned, [copy for copy, a in zip(copies, arguments, strict=True) if is_among(a, made)]


def check_function(name, random, law):
    """Compare a function that writes to its last arguments with the reference."""
    arguments = getattr(random, law.draw)()
    got = run(getattr(chosen, name), arguments, random.made, (plain, offset_by_an_element), random.r)
    with np.errstate(all="ignore"):
        expected = run(getattr(reference, name), arguments, random.made, (plain,), random.r)
    assert got[0] == expected[0]
    for one, other in zip(got[1], expected[1], strict=True):
        same(one, other, law, name)


def check_arithmetic(name, random, law):
    operands = random.pair()
    got = getattr(chosen, name)(*[laid(random.r, x, LAYOUTS[:-1]) for x in operands])
    same(np.asarray(got), np.asarray(getattr(reference, name)(*operands)), law, name)


def check_group(name, random, law):
    """Compare a group of some steps on a matrix and a row."""
    shape = random.size(), random.size() * 40
    x, row, two = random.numbers(*shape), random.numbers(shape[1]), np.array(2, random.dtype)
    steps, known = [], [0, 1, 2]
    for out in [5, 6, 5, 6, 3, 4]:  # registers first, then results
        ufunc = [np.multiply, np.add, np.maximum, np.negative, None][int(random.r.integers(5))]
        operands = random.r.choice(known, 1 if ufunc in (np.negative, None) else 2)
        steps.append((ufunc, *map(int, operands), out))
        known.append(out)
    example = np.zeros(shape, random.dtype)
    arguments = (shape, (x, row), (two,), (example, example), (example, example), tuple(steps), True, None)
    for one, other in zip(*[getattr(of, name)(*arguments)(x, row) for of in (chosen, reference)], strict=True):
        same(one, other, law, name)


def check_plan(name, random, law):
    """Compare a plan of loops on a transposed matrix and a row, with a product, a sum, a copy and a group."""
    n, m = max(1, random.size()), max(1, random.size())
    x, row, two = random.numbers(m, n).T, random.numbers(m), np.array(2, random.dtype)
    size, layout = random.dtype.itemsize, lambda shape: ((*shape,), random.dtype, np.empty(shape, random.dtype).strides)
    columns = ((m, n), random.dtype, (size, m * size))  # a transposed matrix of n rows
    example = np.zeros((n, m), random.dtype)
    group = [((n, m), (example,), (two,), (example,), (), ((np.multiply, 0, 1, 2),), True, None)]
    values = (
        (0, 0, ((n, m), random.dtype, x.strides)),
        (1, 0, layout((m,))),
        (2, 0, layout(())),
        (3, 0, layout((n, m))),
        (4, 0, layout((n, n))),
        (3, 0, columns),
        (5, 0, layout((n,))),
        (5, 0, ((n, n), random.dtype, (size, 0))),
        (6, 0, layout((n, m))),
        (6, size, ((n * m - 1,), random.dtype, (size,))),
    )
    results = (4, 6, 8, *([9] if n * m > 1 else []))
    for one, other in zip(
        *[
            of.planned_calls(
                (values[0][2], values[1][2]),
                (np.zeros((), random.dtype),),
                (n * m * size, n * n * size, n * size, n * m * size),
                values,
                (
                    (np.add, True, 1, 0, 1, 3),
                    (np.add, True, 1, 3, 0, 3),
                    (kernels.multiply_matrices, True, 1, 3, 5, 4),
                    (None, True, 1, 2, 6),
                    (np.add, True, 1, 7, 4, 7),
                    (of.fused_group(*group[0]), True, 1, 3, 8),
                ),
                results,
                None,
            )(x, row)
            for of in (chosen, reference)
        ],
        strict=True,
    ):
        same(one, other, law, name)
        assert one.strides == other.strides


CHECKS = {"pair": check_arithmetic, "group": check_group, "plan": check_plan}


def exported():
    """Return the names of the functions of the compiled kernels."""
    return {name for name in vars(chosen) if name[0] != "_"}


def test_every_kernel_has_a_law_and_a_reference():
    assert exported() - CONTROLS - WRAPPERS == set(LAW)
    assert {name for name in LAW if not callable(getattr(reference, name, None))} == set()


def test_every_difference_has_a_reason():
    assert {name for name, law in LAW.items() if bool(law.eps) != bool(law.why)} == set()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", LAW)
def test_a_kernel_computes_what_its_reference_computes(name, dtype):
    law = LAW[name]
    check = CHECKS.get(law.draw) or (check_function if hasattr(Random, law.draw) else check_ufunc)
    for seed in range(CALLS):
        random = Random([seed, len(name)], dtype, law)
        try:
            with np.errstate(all="ignore"):
                check(name, random, law)
        except AssertionError as error:
            error.add_note(f"{name} of {dtype}, seed {seed}")
            raise


def test_a_wrong_kernel_is_found(monkeypatch):
    def wrong(plan, x, out):
        reference.window_sums(plan, x, out)
        out += out.dtype.type(1e-3)

    monkeypatch.setattr(chosen, "window_sums", wrong)
    with pytest.raises(AssertionError, match="window_sums"):
        test_a_kernel_computes_what_its_reference_computes("window_sums", "float32")

"""Kernels of cuda_kernels.cu as functions of arrays, with the arguments of kernels/reference.py.

They take float32 and float64; other dtypes, and shapes that the kernels do not take, go to the reference. The source is
compiled at the first use of a kernel, for both dtypes.
"""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

SOURCE = Path(__file__).with_name("cuda_kernels.cu")
MAX_THREADS = 256  # of a block, as in the source
TILE = 16  # of a product of matrices, as in the source
MAX_BLOCKS = 4096  # of a loop over elements: more than a GPU runs at a time
TYPES = {"f": "float", "d": "double"}  # C++ types by the characters of dtypes

ROWS = ("softmax", "log_softmax")
ELEMENTWISE = ("gelu", "gelu_grad", "sigmoid", "sigmoid_grad", "silu", "silu_grad", "relu_grad", "tanh_grad")
UPDATES = {"descent": 1, "momentum": 2, "adam": 3, "amsgrad": 4}  # the number of arrays that each writes
TEMPLATES = (
    *(name for row in ROWS for name in (f"{row}_rows", f"{row}_grad_rows")), "class_loss_rows", "class_grad_rows",
    "norm_rows", "norm_grad_rows", "norm_grad_columns", "sum_rows", "sum_along", "take_along", "segment_sum",
    "segment_softmax", "segment_log_softmax", "attention_weights", "attention_pull", "masked", "matrix_product",
    *ELEMENTWISE, *UPDATES,
)  # fmt: skip
PLAIN = ("uniform_double", "uniform_float")

Kernel = Callable[..., Any]


class Launcher:
    """The kernels of the source, compiled by an array library like CuPy: launched by name, on its arrays."""

    def __init__(self, library: Any) -> None:
        self.library = library
        self._module: Any = None
        self._kernels: dict[str, Any] = {}

    def _kernel(self, name: str) -> Any:
        if name not in self._kernels:
            if self._module is None:
                names = [f"{template}<{kind}>" for template in TEMPLATES for kind in TYPES.values()]
                self._module = self.library.RawModule(
                    code=SOURCE.read_text(), options=("-std=c++17",), name_expressions=(*names, *PLAIN)
                )
            self._kernels[name] = self._module.get_function(name)
        return self._kernels[name]

    def rows(self, name: str, count: int, length: int, *args: Any) -> None:
        """Launch a template of the first array's dtype with a block for each of `count` rows of some length."""
        if count:
            threads = min(MAX_THREADS, 1 << max(5, (length - 1).bit_length()))
            self._kernel(f"{name}<{TYPES[args[0].dtype.char]}>")((count,), (threads,), args)

    def elements(self, name: str, count: int, *args: Any) -> None:
        """Launch a kernel with threads for `count` elements."""
        if count:
            blocks = min(MAX_BLOCKS, -(-count // MAX_THREADS))
            self._kernel(name)((blocks,), (MAX_THREADS,), args)

    def template(self, name: str, dtype: Any) -> str:
        """Return the name of a template's instance for a dtype."""
        return f"{name}<{TYPES[dtype.char]}>"

    def contiguous(self, x: Any, shape: Any = None) -> Any:
        """Return an array, broadcast to a shape if one is given, in contiguous memory."""
        if shape is not None and x.shape != tuple(shape):
            x = self.library.broadcast_to(x, shape)
        return self.library.ascontiguousarray(x).reshape(x.shape)


def replacements(launch: Launcher) -> dict[str, Callable[[Kernel], Kernel]]:
    """Return functions by the names of reference functions, each from the reference to what a device calls instead."""
    made: dict[str, Callable[[Kernel], Kernel]] = {
        "class_loss_rows": lambda reference: _class_loss(launch, reference),
        "class_grad_rows": lambda reference: _class_grad(launch, reference),
        "norm_rows": lambda reference: _norm(launch, reference),
        "norm_grad_rows": lambda reference: _norm_grad(launch, reference),
        "sum_rows": lambda reference: _sum_rows(launch, reference),
        "masked": lambda reference: _masked(launch, reference),
        "attention_weights": lambda reference: _attention_weights(launch, reference),
        "attention_pull": lambda reference: _attention_pull(launch, reference),
    }
    for name in ROWS:
        made[f"{name}_rows"] = _bind(_row_kernel, launch, f"{name}_rows")
        made[f"{name}_grad_rows"] = _bind(_row_grad_kernel, launch, f"{name}_grad_rows")
    for name in ("sum_along", "take_along"):
        made[name] = _bind(_along, launch, name)
    for name in ("segment_sum", "segment_softmax", "segment_log_softmax"):
        made[name] = _bind(_segments, launch, name)
    for name in ELEMENTWISE:
        made[name] = _bind(_elementwise, launch, name)
    for name in UPDATES:
        made[name] = _bind(_step, launch, name)
    return made


def _bind(make: Callable[..., Kernel], *args: Any) -> Callable[[Kernel], Kernel]:
    return lambda reference: make(*args, reference)


def _takes(*arrays: Any) -> bool:
    """Return whether arrays share float32 or float64."""
    return arrays[0].dtype.char in TYPES and all(a.dtype == arrays[0].dtype for a in arrays)


def _layout(x: Any, axis: int) -> tuple[int, int, int]:
    """Return how many rows along an axis there are, their length, and how far apart the numbers of a row are."""
    length = x.shape[axis]
    return (x.size // length if length else 0), length, math.prod(x.shape[axis % x.ndim + 1 :])


def _row_kernel(launch: Launcher, name: str, reference: Kernel) -> Kernel:
    def along_rows(x: Any, axis: int = -1) -> Any:
        if not _takes(x) or not x.ndim or not isinstance(axis, int):
            return reference(x, axis)
        x = launch.contiguous(x)
        out, (rows, length, apart) = launch.library.empty(x.shape, x.dtype), _layout(x, axis)
        launch.rows(name, rows, length, x, out, np.int64(length), np.int64(apart))
        return out

    return along_rows


def _row_grad_kernel(launch: Launcher, name: str, reference: Kernel) -> Kernel:
    def along_rows(g: Any, out: Any, axis: int = -1) -> Any:
        if not _takes(g, out) or not out.ndim or not isinstance(axis, int):
            return reference(g, out, axis)
        g, out = launch.contiguous(g, out.shape), launch.contiguous(out)
        dx, (rows, length, apart) = launch.library.empty(out.shape, out.dtype), _layout(out, axis)
        launch.rows(name, rows, length, g, out, dx, np.int64(length), np.int64(apart))
        return dx

    return along_rows


def _class_loss(launch: Launcher, reference: Kernel) -> Kernel:
    def class_loss_rows(x: Any, target: Any, ignored: Any) -> Any:
        if not _takes(x) or not x.shape[-1]:
            return reference(x, target, ignored)
        x, at = launch.contiguous(x), launch.contiguous(target.astype(np.int64, copy=False), x.shape[:-1])
        out, length = launch.library.empty(at.shape, x.dtype), x.shape[-1]
        launch.rows("class_loss_rows", at.size, length, x, at, out, np.int64(length), np.int64(ignored))
        return out

    return class_loss_rows


def _class_grad(launch: Launcher, reference: Kernel) -> Kernel:
    def class_grad_rows(x: Any, target: Any, ignored: Any, g: Any) -> Any:
        if not _takes(x) or not x.shape[-1]:
            return reference(x, target, ignored, g)
        x, at = launch.contiguous(x), launch.contiguous(target.astype(np.int64, copy=False), x.shape[:-1])
        g = launch.contiguous(launch.library.asarray(g, dtype=x.dtype), at.shape)
        dx, length = launch.library.empty(x.shape, x.dtype), x.shape[-1]
        launch.rows("class_grad_rows", at.size, length, x, at, g, dx, np.int64(length), np.int64(ignored))
        return dx

    return class_grad_rows


def _norm(launch: Launcher, reference: Kernel) -> Kernel:
    def norm_rows(x: Any, weight: Any, bias: Any, eps: Any, center: Any) -> Any:
        length = x.shape[-1]
        if not _takes(x, weight, bias) or not length or weight.size != length or bias.size != length:
            return reference(x, weight, bias, eps, center)
        x, weight, bias = launch.contiguous(x), launch.contiguous(weight), launch.contiguous(bias)
        out, number = launch.library.empty(x.shape, x.dtype), x.dtype.type
        launch.rows(
            "norm_rows", x.size // length, length, x, weight, bias, out, np.int64(length), number(eps), np.bool_(center)
        )
        return out

    return norm_rows


def _norm_grad(launch: Launcher, reference: Kernel) -> Kernel:
    def norm_grad_rows(g: Any, x: Any, weight: Any, eps: Any, center: Any) -> Any:
        length = x.shape[-1]
        if not _takes(g, x, weight) or not length or weight.ndim != 1 or x.ndim != 2:
            return reference(g, x, weight, eps, center)
        make, number, rows = launch.library.empty, x.dtype.type, len(x)
        g, x, weight = launch.contiguous(g, x.shape), launch.contiguous(x), launch.contiguous(weight)
        dx, means, scales = make(x.shape, x.dtype), make((rows,), x.dtype), make((rows,), x.dtype)
        numbers = np.int64(length), number(eps), np.bool_(center)
        launch.rows("norm_grad_rows", rows, length, g, x, weight, dx, means, scales, *numbers)
        dweight, dbias = make((length,), x.dtype), make((length,), x.dtype)
        sizes = np.int64(rows), np.int64(length)
        launch.rows("norm_grad_columns", length, rows, g, x, means, scales, dweight, dbias, *sizes)
        return dx, dweight, dbias

    return norm_grad_rows


def _sum_rows(launch: Launcher, reference: Kernel) -> Kernel:
    def sum_rows(rows: Any, ids: Any, out: Any) -> bool:
        if not _takes(rows, out) or not out.flags.c_contiguous or ids.ndim != 1:
            return reference(rows, ids, out)
        rows, ids = launch.contiguous(rows), launch.contiguous(ids)
        out.fill(0)
        sizes = np.int64(rows.size), np.int64(rows.shape[1]), np.int64(out.shape[1]), np.int64(out.shape[2])
        launch.elements(launch.template("sum_rows", out.dtype), rows.size, rows, ids, out, *sizes)
        return True

    return sum_rows


def _along(launch: Launcher, name: str, reference: Kernel) -> Kernel:
    def along(values: Any, index: Any, out: Any) -> bool:
        if not _takes(values, out) or not out.flags.c_contiguous:
            return reference(values, index, out)
        values, index = launch.contiguous(values), launch.contiguous(index)
        if name == "sum_along":
            out.fill(0)
        size = (out if name == "sum_along" else values).shape[1]
        sizes = np.int64(index.size), np.int64(index.shape[1]), np.int64(size), np.int64(index.shape[2])
        launch.elements(launch.template(name, out.dtype), index.size, values, index, out, *sizes)
        return True

    return along


def _segments(launch: Launcher, name: str, reference: Kernel) -> Kernel:
    def segments(x: Any, offsets: Any, out: Any) -> None:
        if not _takes(x, out) or not out.flags.c_contiguous:
            reference(x, offsets, out)
            return
        offsets = launch.library.asarray(offsets)  # a copy to the device, if they are in host memory
        batch, rows, columns = x.shape
        count = len(offsets) - 1
        length = -(-rows // max(count, 1))
        sizes = np.int64(count), np.int64(rows), np.int64(columns)
        launch.rows(name, batch * count * columns, max(length, 1), launch.contiguous(x), offsets, out, *sizes)

    return segments


def _attention_weights(launch: Launcher, reference: Kernel) -> Kernel:
    def attention_weights(scores: Any, attn_bias: Any, attn_mask: Any, behind: int | None) -> Any:
        if not _takes(scores, *_given(attn_bias)) or not scores.flags.c_contiguous:
            return reference(scores, attn_bias, attn_mask, behind)
        total, sums = (launch.library.empty(scores.shape[:-1], scores.dtype) for _ in range(2))
        masks = _attention_masks(launch, scores, attn_bias, attn_mask, behind)
        launch.rows("attention_weights", total.size, scores.shape[-1], scores, total, sums, *masks)
        return total, sums

    return attention_weights


def _attention_pull(launch: Launcher, reference: Kernel) -> Kernel:
    def attention_pull(
        scores: Any, pulled: Any, sums: Any, level: Any, attn_bias: Any, attn_mask: Any, behind: int | None
    ) -> None:
        blocks = scores, pulled
        if not _takes(*blocks, sums, level, *_given(attn_bias)) or not all(x.flags.c_contiguous for x in blocks):
            reference(scores, pulled, sums, level, attn_bias, attn_mask, behind)
            return
        sums, level = (launch.contiguous(x, scores.shape[:-1]) for x in (sums, level))
        masks = _attention_masks(launch, scores, attn_bias, attn_mask, behind)
        launch.rows("attention_pull", sums.size, scores.shape[-1], *blocks, sums, level, *masks)

    return attention_pull


def _given(array: Any) -> tuple[Any, ...]:
    return () if array is None else (array,)


def _attention_masks(launch: Launcher, scores: Any, attn_bias: Any, attn_mask: Any, behind: int | None) -> tuple:
    """Return the arguments of the attention kernels from the masks on."""
    queries, keys = scores.shape[-2:]
    bias = _repeated(launch, attn_bias, scores.shape, scores.dtype)
    mask = _repeated(launch, attn_mask, scores.shape, np.dtype(bool))
    last = keys if behind is None else behind  # each query's offset from the last key that it sees
    return *bias, *mask, np.int64(keys), np.int64(queries), np.int64(last)


def _repeated(launch: Launcher, x: Any, shape: Any, dtype: Any) -> tuple[Any, Any]:
    """Return an array that fills a shape if it is repeated from its beginning, and its size; 0 for None."""
    if x is None:
        return launch.library.empty(1, dtype), np.int64(0)
    sizes = x.shape
    while sizes and sizes[0] == 1:
        sizes = sizes[1:]
    whole = sizes == tuple(shape[len(shape) - len(sizes) :])
    x = launch.contiguous(x, None if whole else shape)
    return x, np.int64(x.size)


def _elementwise(launch: Launcher, name: str, reference: Kernel) -> Kernel:
    def elementwise(*arrays: Any) -> Any:
        if not _takes(*arrays):
            return reference(*arrays)
        shape = np.broadcast_shapes(*[a.shape for a in arrays])
        out = launch.library.empty(shape, arrays[0].dtype)
        operands = [launch.contiguous(a, shape) for a in arrays]
        launch.elements(launch.template(name, out.dtype), out.size, *operands, out, np.int64(out.size))
        return out

    return elementwise


def _masked(launch: Launcher, reference: Kernel) -> Kernel:
    def masked(kept: Any, x: Any, scale: Any) -> Any:
        if not _takes(x) or kept.dtype.char != "?":
            return reference(kept, x, scale)
        shape = np.broadcast_shapes(kept.shape, x.shape)
        out = launch.library.empty(shape, x.dtype)
        operands = launch.contiguous(kept, shape), launch.contiguous(x, shape)
        numbers = np.int64(out.size), x.dtype.type(scale)
        launch.elements(launch.template("masked", out.dtype), out.size, *operands, out, *numbers)
        return out

    return masked


def _step(launch: Launcher, name: str, reference: Kernel) -> Kernel:
    def step(p: Any, g: Any, *others: Any, out: Any) -> None:
        states, numbers = others[: UPDATES[name] - 1], others[UPDATES[name] - 1 :]
        written = (p, *states)
        same = all(a is b for a, b in zip(written, out, strict=True))
        if not same or not _takes(*written, g) or any(not a.flags.c_contiguous for a in written):
            reference(p, g, *others, out=out)
            return
        g, number = launch.contiguous(g), p.dtype.type
        numbers = tuple([number(n) for n in numbers])
        launch.elements(launch.template(name, p.dtype), p.size, p, g, *states, np.int64(p.size), *numbers)

    return step


def recorded_product(launch: Launcher, matmul: Kernel) -> Kernel:
    """Return a library's matmul, replaced by a kernel while a CUDA graph is recorded: CuPy refuses cuBLAS then."""

    def product(a: Any, b: Any, out: Any = None, **params: Any) -> Any:
        if not launch.library.cuda.get_current_stream().is_capturing() or not _takes(a, b):
            return matmul(a, b, out=out, **params)
        left, right = a if a.ndim > 1 else a[None], b if b.ndim > 1 else b[:, None]
        (rows, inner), columns = left.shape[-2:], right.shape[-1]
        if right.shape[-2] != inner:
            raise ValueError(f"matmul: sizes {inner} and {right.shape[-2]} of the common dimension differ")
        lead = np.broadcast_shapes(left.shape[:-2], right.shape[:-2])
        (left, step_left), (right, step_right) = (_stack(launch, x, lead) for x in (left, right))
        found = launch.library.empty((*lead, rows, columns), a.dtype)
        blocks = math.prod(lead) * -(-rows // TILE) * -(-columns // TILE)
        sizes = [np.int64(n) for n in (rows, inner, columns, step_left, step_right)]
        launch.rows("matrix_product", blocks, TILE * TILE, left, right, found, *sizes)
        found = found if b.ndim > 1 else found[..., 0]
        found = found if a.ndim > 1 else found[..., 0, :] if b.ndim > 1 else found[..., 0]
        if out is None:
            return found
        out[...] = found
        return out

    return product


def _stack(launch: Launcher, x: Any, lead: tuple[int, ...]) -> tuple[Any, int]:
    """Return contiguous matrices and the distance from one to the next: 0 if there is only one."""
    if math.prod(x.shape[:-2]) == 1:
        return launch.contiguous(x), 0
    return launch.contiguous(x, (*lead, *x.shape[-2:])), x.shape[-2] * x.shape[-1]


def uniform(launch: Launcher, state: Any, size: Any, dtype: Any) -> Any:
    """Return what NumPy's Philox generator with this state draws, in float32 or float64."""
    out = launch.library.empty(size, dtype)
    words = [np.uint64(w) for w in (*state["state"]["key"], *state["state"]["counter"])]
    numbers = np.int64(out.size), *words, np.int64(state["buffer_pos"])
    if dtype == np.float32:
        pending = state["uinteger"] if state["has_uint32"] else -1
        launch.elements("uniform_float", out.size, out, *numbers, np.int64(pending))
    else:
        launch.elements("uniform_double", out.size, out, *numbers)
    return out

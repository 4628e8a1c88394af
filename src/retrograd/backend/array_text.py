"""Arrays as text, in PyTorch's format."""

import dataclasses
import math

import numpy as np

from retrograd.core import dtype as dtypes

LARGEST_RATIO = 1000.0  # of magnitudes, and the limits of magnitudes, that are printed without an exponent
LARGEST, SMALLEST = 1e8, 1e-4


@dataclasses.dataclass
class PrintOptions:
    """How tensors are printed; see `rg.set_printoptions`."""

    precision: int = 4
    threshold: float = 1000
    edgeitems: int = 3
    linewidth: int = 80
    sci_mode: bool | None = None


def text(array, options, *, name="tensor", notes=()):
    """Return a NumPy array as the code that creates the tensor: its elements, its dtype, then `notes`.

    The dtype is omitted if it is the default one.  `notes` are further arguments, such as "requires_grad=True".
    """
    prefix = f"{name}("
    elements = _elements_text(array, options, len(prefix)) if array.size else "[]"
    return append_notes(prefix + elements, [*_type_notes(array, options), *notes], options, len(prefix))


def part_text(label, array, options, column):
    """Return an array as a part of another one's text, after its label: without its dtype.

    `column` is where the label begins.
    """
    prefix = f"{label}=tensor("
    shown = _elements_text(array, options, column + len(prefix)) if array.size else f"[], size={tuple(array.shape)}"
    return f"{prefix}{shown})"


def dtype_notes(array, options):
    """Return the argument that tells an array's dtype, if that is not the default one of its elements."""
    return [note for note in _type_notes(array, options) if note.startswith("dtype=")]


def append_notes(shown, notes, options, indent=0):
    """Append arguments and the closing bracket; an argument that does not fit begins a line of its own."""
    column = len(shown) - shown.rfind("\n") + 1
    for note in notes:
        fits = column + len(note) + 2 <= options.linewidth
        shown += ", " + note if fits else ",\n" + " " * indent + note
        column = column + len(note) + 2 if fits else indent + len(note)
    return shown + ")"


def _type_notes(array, options):
    """Return the arguments that tell an array's size and dtype, where its elements do not tell them."""
    default = dtypes.get_default_dtype()
    if not array.size:
        obvious = array.dtype == default
        sized = array.ndim != 1
    else:
        obvious = array.dtype in (default, dtypes.complex_of(default), dtypes.int64, dtypes.bool_)
        sized = not options.edgeitems
    size = [f"size={tuple(array.shape)}"] if sized else []
    return size if obvious else [*size, f"dtype={array.dtype}"]


def _elements_text(array, options, indent):
    """Return the elements of an array that is not empty; `indent` is the column where they begin."""
    edge = options.edgeitems if array.size > options.threshold else None
    if dtypes.is_extension(array.dtype):
        array = array.astype(np.float32 if dtypes.is_floating(array.dtype) else np.int8)
    shown = _corners(array, edge)
    if array.dtype.kind == "c":
        formats = [_number_format(part, options) for part in (shown.real, shown.imag)]
        return _rows_text(array, _ComplexFormat(*formats), edge, indent, options)
    return _rows_text(array, _number_format(shown, options), edge, indent, options)


def _corners(array, edge):
    """Return the elements of a summarized array that are printed."""
    if edge is None:
        return array
    for dim, size in enumerate(array.shape):
        if size > 2 * edge:
            array = array.take([*range(edge), *range(size - edge, size)], dim)
    return array


def _rows_text(array, formatted, edge, indent, options):
    """Return an array's elements in brackets; `edge` is how many of each dimension's ends are printed, None for all."""
    if array.ndim == 0:
        return formatted(array.tolist())
    if array.ndim == 1:
        return _row_text(array, formatted, edge, indent, options)
    ends = [_rows_text(part, formatted, edge, indent + 1, options) for part in _ends(array, edge)]
    between = "," + "\n" * (array.ndim - 1) + " " * (indent + 1)
    return f"[{between.join(_with_ellipsis(ends, len(array), edge, '...'))}]"


def _row_text(array, formatted, edge, indent, options):
    """Return a vector in brackets, on as many lines as it takes."""
    numbers = [formatted(number) for number in _ends(array.tolist(), edge)]
    numbers = _with_ellipsis(numbers, len(array), edge, " ..." if edge else "...")
    per_line = max(1, (options.linewidth - indent) // (formatted.width + 2))
    lines = [", ".join(numbers[start : start + per_line]) for start in range(0, len(numbers), per_line)]
    between = ",\n" + " " * (indent + 1)
    return f"[{between.join(lines)}]"


def _ends(parts, edge):
    """Return the parts of an array along its first dimension that are printed."""
    return parts if edge is None or len(parts) <= 2 * edge else [*parts[:edge], *parts[len(parts) - edge :]]


def _with_ellipsis(parts, size, edge, ellipsis):
    """Return the texts of the parts that are printed, with an ellipsis if they are not all."""
    return parts if edge is None or size <= 2 * edge else [*parts[:edge], ellipsis, *parts[edge:]]


def _number_format(values, options):
    """Return the format of all numbers of an array, which depends on those that are printed."""
    if values.dtype.kind in "biu":
        return _Format("{}", max((len(str(value)) for value in values.ravel().tolist()), default=1))
    numbers = values.astype(np.float64)[(values != 0) & np.isfinite(values)]
    digits, integral = options.precision, not (numbers % 1).any()
    if numbers.size and (_has_wide_range(numbers) if options.sci_mode is None else options.sci_mode):
        template, point = f"{{:.{digits}e}}", ""
    else:
        template, point = ("{:.0f}", ".") if integral else (f"{{:.{digits}f}}", "")
    return _Format(template, max((len(template.format(v) + point) for v in numbers.tolist()), default=1), point)


def _has_wide_range(numbers):
    """Return whether numbers are so large, small or different that they are printed with exponents."""
    magnitudes = np.abs(numbers)
    largest, smallest = float(magnitudes.max()), float(magnitudes.min())
    return largest / smallest > LARGEST_RATIO or largest > LARGEST or smallest < SMALLEST


class _Format:
    """Turn real numbers into texts of the same width."""

    def __init__(self, template, width, point=""):
        self.template = template
        self.width = width
        self.point = point  # after integral numbers of a floating dtype

    def __call__(self, number):
        point = self.point if self.point and math.isfinite(number) else ""
        return (self.template.format(number) + point).rjust(self.width)


class _ComplexFormat:
    """Turn complex numbers into texts; imaginary parts follow the real ones without space."""

    def __init__(self, real, imag):
        self.real = real
        self.imag = imag
        self.width = real.width + imag.width + 1  # of the j

    def __call__(self, number):
        imag = self.imag(number.imag).lstrip() + "j"
        return self.real(number.real) + ("" if imag[0] in "+-" else "+") + imag

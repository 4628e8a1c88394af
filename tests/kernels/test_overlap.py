"""Results may share memory with operands: every kernel, every overlap, exhaustively for small arrays."""

import functools
import itertools
import re

import numpy as np
import pytest

from retrograd import kernels
from retrograd.kernels import chosen, reference

from ..case_groups import group_cases
from .calls import EACH

N = 2  # the size of every core dimension: operands and results of different dimensions then have equal shapes
LONG = 35  # elements of a ufunc without core dimensions: several vectors of each width, and a remainder
SHIFTS = (-2, -1, 0, 1, 2)  # from the first element of an operand to that of a result
GUARD = 64  # bytes around them
IGNORED = -100  # of classes
VIEWS = ("contiguous", "operand reversed", "both reversed", "result transposed")
RUNS = {  # threads, the grain size, and the dtype of ufuncs
    "whole": (1, 0, "f"),
    "whole double": (1, 0, "d"),
    "by threads": (3, 1, "d"),
    "backwards": (1, -1, "f"),
}
MODULES = [reference, chosen] if kernels.compiled else [reference]
UFUNCS = [name for name, found in vars(chosen).items() if isinstance(found, np.ufunc)] if kernels.compiled else []
_READ = "is read before it is written"
PRESET = {
    ("attend_grad", 3): "must hold zeros before the call, which stay where no query looks",
    **{("recurrent_layer", number): _READ for number in range(4)},
    **{("recurrent_layer_grad", number): _READ for number in range(2)},
}
WRITING = [  # reference implementations of ufuncs that take `out`: the numbers of arrays, of scalars and of results
    ("descent", 2, 3, 1),
    ("momentum", 3, 6, 2),
    ("adam", 4, 9, 3),
    ("amsgrad", 5, 9, 4),
    ("lstm_grad", 11, 0, 5),
    ("gru_grad", 8, 0, 5),
]


@pytest.fixture(params=RUNS.values(), ids=RUNS, autouse=True)
def dtype(request):
    """Divide the work into pieces, by threads or by the caller alone from the last to the first."""
    before = kernels.get_num_threads()
    threads, grain_size, dtype = request.param
    kernels.set_num_threads(threads)
    kernels.set_grain_size(grain_size)
    yield dtype
    kernels.set_grain_size(0)
    kernels.set_num_threads(before)


class Kernel:
    """Make arrays for the operands and the results of a ufunc."""

    def __init__(self, ufunc, types):
        self.elementwise, self.inputs, self.types = ufunc.signature is None, ufunc.nin, types.replace("->", "")
        dims = re.findall(r"\(([^)]*)\)", ufunc.signature or "()" * ufunc.nargs)
        self.core = [(N,) * len(re.findall(r"\w+", each)) for each in dims]

    def fronts(self):
        """Yield loop dimensions of the results, of the operand that shares memory, and of the other operands."""
        for front in [(LONG,), (N, N)] if self.elementwise else [(), (N,), (N, N)]:
            for cut in range(len(front) + 1):
                yield from ((front, front[cut:], others) for others in sorted({front, ()}))

    def operand(self, k, front):
        """Return random values; integers are the classes of rows, or the class that is ignored."""
        r, shape, type = np.random.default_rng(k), (*front, *self.core[k]), self.types[k]
        if type == "l":
            return np.full(shape, IGNORED) if k == 2 else r.integers(0, N, shape)
        if type == "H":
            return r.integers(0, 0x7F80, shape, np.uint16)  # the bits of nonnegative numbers
        return r.uniform(-1, 1, shape) > 0 if type == "?" else r.uniform(0.1, 2, shape).astype(type)

    def results(self, front):
        pairs = zip(self.core[self.inputs :], self.types[self.inputs :], strict=True)
        return [np.zeros((*front, *core), type) for core, type in pairs]

    def calls(self):
        """Yield operands and results, and which operand shares its memory."""
        for k, (front, own, others) in itertools.product(range(self.inputs), self.fronts()):
            operands = [self.operand(i, own if i == k else others) for i in range(self.inputs)]
            yield k, operands, self.results(front)


def overlapping(operand, result, shift, views):
    """Return an operand and a result in one memory, the result `shift` of its elements after the operand."""
    memory = np.full(2 * GUARD + operand.nbytes + result.nbytes, 1, np.uint8)
    x = np.ndarray(operand.shape, operand.dtype, memory, GUARD)
    shape = result.shape[::-1] if views == "result transposed" else result.shape
    y = np.ndarray(shape, result.dtype, memory, GUARD + shift * result.itemsize)
    x = x[..., ::-1] if "reversed" in views and x.ndim else x
    y = y[..., ::-1] if views == "both reversed" and y.ndim else y
    x[...] = operand
    return x, y.T if views == "result transposed" else y


def same(got, expected):
    """Return whether arrays agree; the vector loop and the remainder loop may round differently."""
    tolerance = 1e-5 if expected.dtype == np.float32 else 1e-13
    return (got == expected).all() or np.allclose(got, expected, tolerance, tolerance, equal_nan=True)


def differing(call, k, operands, results, views=VIEWS, skipped=()):
    """Yield each overlap of operand k with a result for which some result differs."""
    expected = [np.zeros_like(x) for x in results]
    call(operands, expected)
    for j, shift, view in itertools.product(set(range(len(results))).difference(skipped), SHIFTS, views):
        given, out = list(operands), [np.zeros_like(x) for x in results]
        given[k], out[j] = overlapping(operands[k], results[j], shift, view)
        call(given, out)
        if not all(map(same, out, expected)):
            yield f"result {j} {results[j].shape}, {shift} behind operand {k} {operands[k].shape}, {view}"


@pytest.mark.filterwarnings("ignore:invalid value encountered in flag_")  # how a check says that it fails
@pytest.mark.parametrize("name", UFUNCS)
def test_results_of_ufuncs_may_share_memory_with_operands(name, dtype):
    ufunc = getattr(chosen, name)
    kernel = Kernel(ufunc, next((types for types in ufunc.types if types[-1] == dtype), ufunc.types[0]))
    for k, operands, results in kernel.calls():
        assert list(differing(lambda given, out: ufunc(*given, out=tuple(out)), k, operands, results)) == []


@group_cases
@pytest.mark.parametrize(("name", "arrays", "numbers", "results"), WRITING)
def test_results_of_references_may_share_memory_with_operands(name, arrays, numbers, results):
    operands = list(np.random.default_rng(0).uniform(0.1, 2, (arrays, N, N)))
    for k in range(arrays):
        call = functools.partial(written_by_twin, getattr(reference, name), [0.5] * numbers)
        assert list(differing(call, k, operands, [np.zeros((N, N))] * results)) == []


def written_by_twin(twin, numbers, operands, out):
    twin(*operands, *numbers, out=tuple(out))


def arrays_of(arguments, written):
    """Return the positions of the operands and of the results among the arguments of a method."""
    places = [k for k, argument in enumerate(arguments) if isinstance(argument, np.ndarray)]
    first = len(arguments) - written
    return [k for k in places if k < first], [k for k in places if k >= first]


@group_cases
@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__)
@pytest.mark.parametrize(("name", "arguments", "written"), EACH)
def test_results_of_methods_may_share_memory_with_operands(module, name, arguments, written):
    inputs, outputs = arrays_of(arguments, written)

    def call(operands, out):
        given = list(arguments)
        for k, array in zip(inputs + outputs, [*operands, *out], strict=True):
            given[k] = array
        getattr(module, name)(*given)

    operands, results = [arguments[k] for k in inputs], [arguments[k] for k in outputs]
    skipped = [j for j in range(len(results)) if (name, j) in PRESET]
    for k in range(len(operands)):
        assert list(differing(call, k, operands, results, VIEWS[:1], skipped)) == []


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__)
def test_results_that_share_memory_with_each_other_are_refused(module):
    (arguments, _), *_ = (case for name, *case in EACH if name == "attend")
    memory = np.zeros(100, np.float32)
    with pytest.raises(ValueError, match="the results share memory with each other"):
        module.attend(*arguments[:-2], memory[:30].reshape(2, 5, 3), memory[29:39].reshape(2, 5))


def test_the_address_of_an_array_is_that_of_its_first_element():
    x = np.arange(12.0).reshape(3, 4)
    for view in (x, x[1:], x[::-1, 2], x[1, 1], x[:0]):
        view = np.asarray(view)
        assert chosen.address(view) == reference.address(view) == view.__array_interface__["data"][0]


@pytest.mark.skipif(not kernels.compiled, reason="the kernels are not compiled")
def test_what_is_no_array_has_no_address():
    with pytest.raises(TypeError, match="expected an array"):
        chosen.address([1.0])

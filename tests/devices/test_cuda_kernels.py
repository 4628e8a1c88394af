"""The CUDA C++ of each kernel, compiled for the CPU, gives what its reference in NumPy gives."""

import shutil
import subprocess

import numpy as np
import pytest
from tests.devices import cuda_on_host
from tests.devices.cupy_stand_in import cupy, strict

from retrograd.backend import cuda_kernels
from retrograd.kernels import attention_reference, reference

pytestmark = pytest.mark.skipif(cuda_on_host.COMPILER is None, reason="needs g++ to run CUDA C++ on the CPU")
RNG = np.random.default_rng(0)


def refused(*args, **params):
    raise AssertionError("the kernel did not take these arrays")


LAUNCHER = cuda_kernels.Launcher(cupy)
KERNELS = {name: make(refused) for name, make in cuda_kernels.replacements(LAUNCHER).items()}


def floats(*shape, scale=1.0):
    return np.asarray(RNG.normal(size=shape) * scale)


def positions(high, *shape):
    return RNG.integers(0, high, shape)


OFFSETS = np.array([0, 3, 3, 300, 301])  # with a segment without rows, and one of more rows than a block has threads
# Arguments by the names of kernels: arrays in float64, which tests cast, and numbers.
CASES = {
    "softmax_rows": [(floats(3, 5),), (floats(2, 700, scale=9),), (floats(3, 300, 2), 1), (floats(4, 3), 0)],
    "log_softmax_rows": [(floats(3, 5),), (floats(2, 700, scale=9),), (floats(3, 300, 2), 1)],
    "softmax_grad_rows": [(floats(3, 5), floats(3, 5)), (floats(2, 300, 3), floats(2, 300, 3), 1)],
    "log_softmax_grad_rows": [(floats(3, 5), floats(3, 5)), (floats(2, 300, 3), floats(2, 300, 3), 1)],
    "class_loss_rows": [(floats(4, 5), np.array([0, 4, -1, 2]), -1), (floats(2, 3, 400), positions(400, 2, 3), -1)],
    "class_grad_rows": [
        (floats(4, 5), np.array([0, 4, -1, 2]), -1, floats(4)),
        (floats(2, 400), positions(400, 2), -1, floats()),
    ],
    "norm_rows": [(floats(3, 5), floats(5), floats(5), 1e-5, c) for c in (0, 1)]
    + [(floats(2, 2, 700), floats(1, 700), floats(1, 700), 1e-5, 1)],
    "norm_grad_rows": [(floats(3, 5), floats(3, 5), floats(5), 1e-5, c) for c in (0, 1)]
    + [(floats(300, 7), floats(300, 7), floats(7), 1e-5, 1)],
    "gelu": [(floats(3, 5, scale=4),)],
    "gelu_grad": [(floats(3, 5), floats(3, 5, scale=20)), (floats(), floats(300))],
    "sigmoid": [(floats(700, scale=50),)],
    "sigmoid_grad": [(floats(9), floats(9))],
    "silu": [(floats(9, scale=30),)],
    "silu_grad": [(floats(9), floats(9, scale=30))],
    "relu_grad": [(floats(9), np.maximum(floats(9), 0))],
    "tanh_grad": [(floats(2, 3), np.tanh(floats(2, 3)))],
    "masked": [(RNG.random(9) < 0.5, floats(9), 2.0)],
}
# The same for kernels that write to their last argument, of which the shape is given.
WRITING = {
    "sum_rows": [(floats(2, 40, 3), positions(5, 40), (2, 5, 3)), (floats(1, 7, 300), positions(2, 7), (1, 2, 300))],
    "sum_along": [(floats(2, 40, 3), positions(5, 2, 40, 3), (2, 5, 3))],
    "take_along": [(floats(2, 5, 3), positions(5, 2, 40, 3), (2, 40, 3))],
    "segment_sum": [(floats(2, 301, 3), OFFSETS, (2, 4, 3))],
    "segment_softmax": [(floats(2, 301, 3), OFFSETS, (2, 301, 3))],
    "segment_log_softmax": [(floats(2, 301, 3), OFFSETS, (2, 301, 3))],
}
ATTENTION = ("attention_weights", "attention_pull")
# Shapes of scores, of a bias and of a mask, and the offset of the queries behind the first key.
MASKS = [
    ((2, 3, 4, 5), None, None, None),
    ((2, 3, 4, 300), (4, 300), None, 0),
    ((2, 3, 4, 5), (2, 3, 4, 5), (1, 1, 4, 5), None),
    ((2, 3, 4, 5), (3, 1, 5), (2, 1, 1, 5), 1),
    ((3, 4, 5), None, (3, 4, 5), None),
    ((0, 4, 5), None, None, 0),
]


def attention_arguments(name, shape, bias, mask, behind, dtype):
    """Return scores with infinities and NaN and the other arguments of a kernel; the first query sees no key."""
    scores, rows = floats(*shape, scale=5), shape[:-1]
    scores[..., -1, :2] = np.nan, np.inf
    masks = bias and floats(*bias), mask and RNG.random(mask) < 0.6
    if mask:
        masks[1][..., 0, :] = False
    others = (floats(*shape), floats(*rows), floats(*rows)) if name == "attention_pull" else ()
    return cast([scores, *others, *masks, behind], dtype)


STEPS = {
    "descent": (-1.0, 0.1, 0.01),
    "momentum": (1.0, 0.1, 0.9, 0.5, 0.01, 0.02),
    "adam": (1.0, 0.1, 0.999, 0.9, 0.99, 0.1, 0.01, 1e-8, 0.01),
    "amsgrad": (-1.0, 0.0, 1.0, 0.9, 0.99, 0.1, 0.01, 1e-8, 0.01),
}


def cast(args, dtype):
    return [a.astype(dtype) if isinstance(a, np.ndarray) and a.dtype.kind == "f" else a for a in args]


def to_device(args):
    return [strict.wrap(a.copy()) if isinstance(a, np.ndarray) else a for a in args]


def check(found, expected):
    """Check results up to the rounding of sums in another order."""
    several = isinstance(expected, tuple)
    for on_device, e in zip(found if several else (found,), expected if several else (expected,), strict=True):
        assert on_device.dtype == e.dtype
        tolerance = 2e-4 if e.dtype == np.float32 else 1e-11
        np.testing.assert_allclose(on_device.get(), e, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("dtype", ["f", "d"])
def test_kernels_give_the_results_of_their_references(dtype):
    for name, cases in CASES.items():
        for case in cases:
            args = cast(case, dtype)
            check(KERNELS[name](*to_device(args)), getattr(reference, name)(*args))


@pytest.mark.parametrize("dtype", ["f", "d"])
def test_kernels_write_what_their_references_write(dtype):
    for name, cases in WRITING.items():
        for *case, shape in cases:
            args, expected = cast(case, dtype), np.full(shape, 7, dtype)
            out = strict.wrap(expected.copy())
            assert KERNELS[name](*to_device(args), out) == getattr(reference, name)(*args, expected)
            check(out, expected)


@pytest.mark.filterwarnings("ignore:(overflow|invalid value) encountered")
@pytest.mark.parametrize("dtype", ["f", "d"])
@pytest.mark.parametrize("name", ATTENTION)
def test_kernels_of_attention_return_and_write_what_their_references_do(name, dtype):
    for case in MASKS:
        args = attention_arguments(name, *case, dtype)
        on_device, written = to_device(args), 1 if name == "attention_weights" else 2
        found, expected = KERNELS[name](*on_device), getattr(attention_reference, name)(*args)
        check((*(found or ()), *on_device[:written]), (*(expected or ()), *args[:written]))


@pytest.mark.parametrize("dtype", ["f", "d"])
@pytest.mark.parametrize("name", STEPS)
def test_steps_of_optimizers_write_what_their_formulas_give(name, dtype):
    p, g, *states = [abs(floats(300)).astype(dtype) for _ in range(1 + cuda_kernels.UPDATES[name])]
    numbers = STEPS[name]
    written = to_device([p, *states])
    KERNELS[name](written[0], *to_device([g]), *written[1:], *numbers, out=tuple(written))
    getattr(reference, name)(p, g, *states, *numbers, out=(p, *states))
    check(tuple(written), (p, *states))


@pytest.mark.parametrize("name", [n for n in CASES if n.endswith("softmax_rows")])
def test_rows_with_infinities_and_nan_are_those_of_the_reference(name):
    rows = np.array([[np.nan, 1, 2], [-np.inf] * 3, [np.inf, 0, 1], [-np.inf, 0, 1], [np.inf, np.inf, 0]])
    np.testing.assert_allclose(KERNELS[name](*to_device([rows])).get(), getattr(reference, name)(rows))


def test_random_numbers_are_those_of_numpy_from_any_state():
    for seed, before in ((0, 0), (5, 1), (2**64 - 1, 7)):
        source = np.random.Generator(np.random.Philox(seed))
        source.random(before, np.float32)  # leaves half of a word
        source.random(before % 3)
        for dtype, size in (("f", (3, 5)), ("d", (7,)), ("f", (600,)), ("f", (0,))):
            found = cuda_kernels.uniform(LAUNCHER, source.bit_generator.state, size, np.dtype(dtype))
            np.testing.assert_array_equal(found.get(), source.random(size, dtype))


def test_a_counter_that_overflows_carries_into_the_next_word():
    state = np.random.Philox(0).state
    state["state"]["counter"][:] = 2**64 - 1, 2**64 - 1, 5, 0
    source = np.random.Generator(np.random.Philox(0))
    source.bit_generator.state = state
    found = cuda_kernels.uniform(LAUNCHER, state, (9,), np.dtype("d"))
    np.testing.assert_array_equal(found.get(), source.random(9))


def test_every_template_is_launched_by_these_tests(monkeypatch):
    launched = set()
    monkeypatch.setattr(cuda_kernels.Launcher, "_kernel", lambda self, name: launched.add(name) or (lambda *args: None))
    for name, cases in {**CASES, **WRITING}.items():
        for case in cases:
            *args, last = to_device(cast(case, "f"))
            last = strict.wrap(np.zeros(last, "f")) if name in WRITING else last
            KERNELS[name](*args, last)
    for name in ATTENTION:
        KERNELS[name](*to_device(attention_arguments(name, *MASKS[0], "f")))
    kinds = {name.partition("<")[0] for name in launched} | {
        "matrix_product"
    }  # launched by recorded products, in test_cuda
    assert kinds | set(STEPS) == set(cuda_kernels.TEMPLATES)


def test_launches_with_arguments_of_other_types_are_refused():
    kernel = LAUNCHER._kernel("gelu<float>")
    x = strict.wrap(np.ones(3))
    with pytest.raises(TypeError, match=r"\*d\*dq for parameters \*f\*fq"):
        kernel((1,), (32,), (x, x, np.int64(3)))


@pytest.mark.skipif(shutil.which("nvcc") is None, reason="needs nvcc")
def test_the_source_compiles_as_cuda(tmp_path):
    source = tmp_path / "kernels.cu"
    uses = "\n".join(
        f"void* use_{name}_{kind}() {{ return (void*)&{name}<{kind}>; }}"
        for name in cuda_kernels.TEMPLATES
        for kind in cuda_kernels.TYPES.values()
    )
    source.write_text(f"{cuda_kernels.SOURCE.read_text()}\n{uses}\n")
    command = ["nvcc", "-std=c++17", "-arch=sm_80", "-ptx", "-o", str(tmp_path / "kernels.ptx"), str(source)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "kernels.ptx").read_text().count(".entry") >= 2 * len(cuda_kernels.TEMPLATES)

"""Tensors print as in PyTorch, for drawn shapes, dtypes, magnitudes and options; only dtypes have NumPy's names."""

import re

import numpy as np
import pytest
import torch

import retrograd as rg

FLOATS = ("float16", "bfloat16", "float32", "float64")
COMPLEX = ("complex64", "complex128")
INTEGERS = ("bool", "uint8", "int8", "int16", "int32", "int64", "uint16", "uint32", "uint64")
SHAPES = [(), (0,), (1,), (2,), (7,), (25,), (0, 3), (2, 0), (1, 1), (3, 4), (2, 3, 4), (2, 1, 3, 2), (60,)]
LARGE_SHAPES = [(1001,), (1000,), (30, 40), (2, 600), (600, 2), (7, 7, 7, 7), (3, 1, 400), (1100, 1)]
SPECIAL = [0.0, -0.0, np.inf, -np.inf, np.nan, 1e-5, 1e8, 123456.0, 0.5, 99999.99995, 1000.0]
OPTIONS = [
    {},
    {"profile": "short"},
    {"profile": "full"},
    {"precision": 2},
    {"precision": 10, "linewidth": 120},
    {"precision": 0},
    {"sci_mode": True},
    {"sci_mode": True, "precision": 1},
    {"sci_mode": False},
    {"threshold": 4, "edgeitems": 1},
    {"threshold": 10, "edgeitems": 2, "linewidth": 20},
    {"threshold": 5, "edgeitems": 0},
    {"edgeitems": 0},
    {"linewidth": 8},
    {"linewidth": 200, "edgeitems": 5},
]


@pytest.fixture(autouse=True)
def default_options():
    yield
    for lib in (rg, torch):
        lib.set_printoptions(profile="default")
        lib.set_default_dtype(lib.float32)


def draw(random, shape, dtype):
    """Return values of a shape as a float64, complex128 or integer array: integral ones, small, large, special."""
    if dtype in INTEGERS:
        low, high = (0, 2) if dtype == "bool" else (np.iinfo(dtype).min, np.iinfo(dtype).max)
        span = random.choice([3, 1000, high - 1])
        return random.integers(max(low, -span), min(high, span), shape, endpoint=dtype != "bool", dtype=dtype)
    if dtype in COMPLEX:
        return np.asarray(draw(random, shape, "float64") + 1j * draw(random, shape, "float64"))
    values = random.normal(size=shape) * 10.0 ** random.choice([-8, -4, -3, -1, 0, 1, 3, 5, 9])
    if random.random() < 0.4:
        values = np.round(values)
    if random.random() < 0.3:
        values = np.where(random.random(shape) < 0.3, random.choice(SPECIAL, shape), values)
    return np.asarray(values)


def make(lib, values, dtype):
    exact = torch.from_numpy(values.copy()) if lib is torch else rg.tensor(values)
    return exact.to(getattr(lib, dtype))


def of_both(show):
    """Return what a function of a library shows, for both libraries.

    The names of PyTorch's dtypes are longer, so the line before one may end sooner: these ends are not compared.
    """
    return [re.sub(r",\n +dtype=", ", dtype=", text) for text in (show(rg), show(torch).replace("torch.", ""))]


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # a value that overflows in a small dtype
@pytest.mark.parametrize("dtype", FLOATS + COMPLEX + INTEGERS)
def test_tensors_print_as_in_pytorch(dtype):
    random = np.random.default_rng(5)
    for shape in SHAPES * 6 + LARGE_SHAPES * 2:
        values = draw(random, shape, dtype)
        ours, theirs = of_both(lambda lib, v=values: repr(make(lib, v, dtype)))
        assert ours == theirs
        assert str(make(rg, values, dtype)) == repr(make(rg, values, dtype))


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("dtype", ["bool", "int64", "float32", "float16", "complex64"])
def test_print_options_act_as_in_pytorch(options, dtype):
    random = np.random.default_rng(6)
    for lib in (rg, torch):
        lib.set_printoptions(**options)
    for shape in SHAPES * 2 + [(40,), (5, 6), (7, 7, 7)]:
        values = draw(random, shape, dtype)
        ours, theirs = of_both(lambda lib, v=values: repr(make(lib, v, dtype)))
        assert ours == theirs


def test_options_stay_until_they_are_set_again_except_for_the_scientific_mode():
    def printed(lib):
        lib.set_printoptions(precision=2, sci_mode=True)
        first = repr(lib.tensor([1.23456]))
        lib.set_printoptions(linewidth=60)
        second = repr(lib.tensor([1.23456]))
        lib.set_printoptions(profile="short")
        third = repr(lib.arange(1200))
        lib.set_printoptions(profile="full")
        return "\n".join([first, second, third, repr(lib.arange(1200))])

    ours, theirs = of_both(printed)
    assert ours == theirs


@pytest.mark.parametrize("default", FLOATS)
def test_a_dtype_is_printed_unless_it_is_the_default(default):
    def printed(lib):
        lib.set_default_dtype(getattr(lib, default))
        tensors = [lib.zeros(n, dtype=getattr(lib, dtype)) for dtype in FLOATS + COMPLEX + INTEGERS for n in (0, 2)]
        return "\n".join(map(repr, tensors))

    ours, theirs = of_both(printed)
    assert ours == theirs


GRAPHS = {
    "leaf": lambda lib, x: x,
    "result": lambda lib, x: x * 2,
    "sum": lambda lib, x: x.sum(),
    "part": lambda lib, x: x[:1],
    "transposed": lambda lib, x: x.mT,
    "long line": lambda lib, x: lib.cat([x.flatten()] * 4)[:13] / 3,
    "many rows": lambda lib, x: lib.cat([x] * 40) * 1.5,
    "detached": lambda lib, x: (x * 2).detach(),
    "double": lambda lib, x: x.double() / 7,
    "parameter": lambda lib, x: lib.nn.Parameter(x.detach() / 3),
    "frozen parameter": lambda lib, x: lib.nn.Parameter(x.detach(), requires_grad=False),
    "buffer": lambda lib, x: lib.nn.Buffer(x.detach()),
    "written": lambda lib, x: (x * 1).add_(1),
}


@pytest.mark.parametrize("name", GRAPHS)
@pytest.mark.parametrize("show", [repr, str, format])
def test_what_autograd_knows_is_printed_as_in_pytorch(name, show):
    def printed(lib):
        x = lib.arange(6, dtype=lib.float32).reshape(2, 3).requires_grad_()
        return show(GRAPHS[name](lib, x))

    ours, theirs = of_both(printed)
    assert ours == theirs


def test_tensors_of_subclasses_have_the_names_of_their_classes():
    def printed(lib):
        class Masses(lib.Tensor):
            pass

        class Weight(lib.nn.Parameter):
            pass

        x = lib.arange(3.0).as_subclass(Masses)
        return "\n".join(map(repr, (x, x * 2, lib.nn.Parameter(x), Weight(lib.ones(2)), x.requires_grad_())))

    ours, theirs = of_both(printed)
    assert ours == theirs


@pytest.mark.parametrize("spec", ["", ".3f", ">9", "e"])
def test_tensors_of_one_number_are_formatted_as_in_pytorch(spec):
    def printed(lib):
        class Mass(lib.Tensor):
            pass

        scalar = lib.tensor(1.5)
        texts = [format(x, spec) for x in (scalar, lib.tensor(2.5, requires_grad=True), lib.tensor(3))]
        if not spec:
            texts += [f"{x}" for x in (lib.nn.Parameter(scalar), scalar.as_subclass(Mass), lib.ones(2))]
        return "\n".join(texts)

    ours, theirs = of_both(printed)
    assert ours == theirs


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of torch.jit.script, which PyTorch calls
def test_dual_numbers_are_printed_with_their_tangents():
    def printed(lib):
        with lib.autograd.forward_ad.dual_level():
            return repr(lib.autograd.forward_ad.make_dual(lib.ones(2), lib.arange(2.0) / 3))

    ours, theirs = of_both(printed)
    assert ours == theirs


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors:UserWarning")
@pytest.mark.parametrize("requires_grad", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int64"])
def test_nested_tensors_are_printed_component_by_component(dtype, requires_grad):
    if requires_grad and dtype == "int64":
        pytest.skip("integers require no gradient")

    def printed(lib):
        parts = [lib.ones(2, 3), lib.ones(1, 3) / 3, lib.zeros(0, 3), lib.arange(60.0).reshape(20, 3)]
        parts = [part.to(getattr(lib, dtype)) for part in parts]
        nested = lib.nested.nested_tensor(parts, requires_grad=requires_grad)
        return repr(nested) + (repr(nested * 2).split("grad_fn")[0] if requires_grad else "")

    ours, theirs = of_both(printed)
    assert ours == theirs

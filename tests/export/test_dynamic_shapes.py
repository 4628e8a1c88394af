"""Symbolic sizes: declarations, inferred relations and ranges, and refused declarations."""

import gc
import math

import numpy as np
import pytest

import retrograd as rg
from retrograd import nn
from retrograd.export import Dim, dims, export, load, save, unflatten
from retrograd.export.traced_size import TracedFloat, TracedInt
from retrograd.foundation.symbolic_expr import Expression, fit
from retrograd.testing import assert_close

from .models import BatchNorm, encoder


class Does(nn.Module):
    """A module that wraps a function."""

    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *args):
        return self.function(*args)


def of(function, *examples, shapes):
    return export(Does(function), examples, dynamic_shapes={"args": shapes}).module()


def test_a_transformers_layer_takes_other_batches_and_lengths():
    model = encoder()
    batch, time = dims("batch", "time")
    module = export(model, (rg.randn(2, 3, 8),), dynamic_shapes=({0: batch, 1: time},)).module()
    for shape in [(1, 1, 8), (2, 3, 8), (7, 5, 8), (3, 11, 8)]:
        x = rg.randn(*shape)
        assert_close(module(x), model(x))


@pytest.mark.parametrize(
    "form",
    [
        {"src": {0: Dim("batch", max=9)}},
        {"src": (Dim("batch", max=9), None, None)},
        ((Dim("batch", max=9), 3, Dim.STATIC),),
        [{-3: Dim("batch", max=9)}],
    ],
    ids=["dict", "tuple", "tuples", "list"],
)
def test_the_forms_of_dynamic_shapes(form):
    program = export(encoder(), (rg.randn(2, 3, 8),), dynamic_shapes=form)
    assert str(program.range_constraints) == "{'batch': [1, 9]}"
    assert program.module()(rg.randn(9, 3, 8)).shape == (9, 3, 8)


def test_sizes_outside_the_range_are_refused():
    module = of(lambda x: x.reshape(-1), rg.ones(3, 4), shapes=({0: Dim("n", min=2, max=6)},))
    assert module(rg.ones(6, 4)).shape == (24,)
    for size in (1, 7):
        with pytest.raises(ValueError, match=rf"args_0, dimension 0: n must be in \[2, 6\], got {size}"):
            module(rg.ones(size, 4))
    with pytest.raises(ValueError, match=r"args_0: traced with"):
        module(rg.ones(3, 5))


def test_dimensions_of_one_name_have_one_size():
    n = Dim("n")
    module = of(lambda x, y: x.sum() + y.sum(), rg.ones(3), rg.ones(2, 3), shapes=({0: n}, {1: n}))
    assert float(module(rg.ones(5), rg.ones(2, 5))) == 15
    with pytest.raises(ValueError, match=r"args_1, dimension 1: n is 5 in args_0, dimension 0, but 4 here"):
        module(rg.ones(5), rg.ones(2, 4))


def test_dimensions_that_must_agree_are_to_be_one_dim():
    with pytest.raises(ValueError, match="give dimensions that are always equal the same Dim"):
        of(lambda x, y: x + y, rg.ones(3), rg.ones(3), shapes=({0: Dim("a")}, {0: Dim("b")}))


def test_sizes_in_arguments_are_calculated():
    def f(x):
        n, m = x.shape
        flat = x.reshape(n * m // 1)
        return rg.arange(n).sum() + flat.sum() / n + rg.ones(n + 2, 2 * m).sum() + x[: n // 2, 1:].sum()

    module = of(f, rg.randn(4, 4), shapes=({0: Dim("n"), 1: Dim("m")},))
    for shape in [(1, 1), (4, 4), (5, 7), (12, 2), (9, 30)]:
        x = rg.randn(*shape)
        assert_close(module(x), f(x))


def test_quotients_that_are_floats_are_calculated():
    def f(x):
        n = x.shape[0]
        return x * (n / (n - 1)) + x * (1.0 / n)

    module = of(f, rg.randn(4), shapes=({0: Dim("n")},))
    for n in (2, 4, 17):
        x = rg.randn(n)
        assert_close(module(x), f(x), rtol=0.0, atol=0.0)


def test_results_may_be_sizes():
    module = of(lambda x: (x, x.shape[0] * 3), rg.ones(4), shapes=({0: Dim("n")},))
    assert module(rg.ones(7))[1] == 21


PLAIN = {
    "range": lambda x: [x[i] for i in range(1, x.shape[0])],
    "chunks": lambda x: [x[i : i + 128] * 2 for i in range(0, x.shape[0], 128)],
    "int": lambda x: x * 2 if int(x.shape[0]) > 300 else x,
    "index": lambda x: x * ([1] * 290 + [2] * 2000)[x.shape[0]],
    "repeat": lambda x: x * 2 if len([0] * x.shape[0]) > 250 else x,
    "key": lambda x: x * {300: 2}.get(x.shape[0], 3),
    "set": lambda x: x * 2 if x.shape in {(300,)} else x,
    "text": lambda x: x * 2 if f"{x.shape[0]}" == "300" else x,
    "sqrt": lambda x: x * 2 if math.sqrt(x.shape[0]) > 15 else x,
    "quotient": lambda x: x * 2 if x.shape[0] / 2 > 140 else x,
    "scaled": lambda x: x * 2 if x.shape[0] * 0.5 > 140 else x,
    "rounded": lambda x: x * 2 if round(x.shape[0] / 10) > 25 else x,
    "bits": lambda x: x * 2 if x.shape[0] & 256 else x,
    "bit_length": lambda x: x * 2 if x.shape[0].bit_length() > 8 else x,
    "len": lambda x: x * 2 if len(x) > 250 else x,
}


@pytest.mark.parametrize("f", PLAIN.values(), ids=PLAIN)
def test_a_plain_number_made_of_a_size_that_varies_is_refused_with_its_line(f):
    line = f.__code__.co_firstlineno
    message = rf"test_dynamic_shapes\.py:{line} in .* makes a plain number .*n = 4 and .*Dim\.STATIC"
    with pytest.raises(ValueError, match=message):
        of(f, rg.ones(4), shapes=({0: Dim("n")},))


FAR = {
    "remainder": lambda x: x * 2 if x.shape[0] % 100 == 0 else x,
    "floor": lambda x: x * 2 if x.shape[0] // 100 else x,
    "floor as an argument": lambda x: x.sum() + rg.ones(x.shape[0] // 100).sum(),
    "rounded up": lambda x: rg.ones(-(-x.shape[0] // 100)).sum(),
    "rounded up, too": lambda x: rg.ones((x.shape[0] + 99) // 100).sum(),
    "shift": lambda x: x * 2 if x.shape[0] >> 8 else x,
    "divmod": lambda x: x * 2 if divmod(x.shape[0], 256)[0] else x,
    "max": lambda x: x * max(x.shape[0], 200),
    "float": lambda x: x * 2 if x.shape[0] > 250.5 else x,
    "numel": lambda x: x * 2 if x.numel() > 250 else x,
    "size": lambda x: x * 2 if x.size(0) > 250 else x,
    "nested": lambda x: (x * 2 if x.shape[0] > 250 else x) if x.shape[0] > 6 else x,
}


@pytest.mark.parametrize("f", FAR.values(), ids=FAR)
def test_changes_far_from_the_example_are_found(f):
    with pytest.raises(ValueError, match=r"something else|not supported|can't be determined"):
        of(f, rg.ones(4), shapes=({0: Dim("n")},))
    x = rg.ones(90)
    assert_close(of(f, rg.ones(4), shapes=({0: Dim("n", max=99)},))(x), f(x))


def test_a_size_that_does_not_vary_may_be_made_a_plain_number():
    def f(x):
        n, k = x.shape
        return x.reshape(n * 2, 2) * (int(k) / math.sqrt(k)) + sum(range(k)) + rg.tensor(k) + np.sqrt(k)

    x = rg.randn(9, 4)
    assert_close(of(f, rg.ones(3, 4), shapes=({0: Dim("n")},))(x), f(x))


def test_a_view_of_a_view_is_no_plain_number():
    def f(x):
        return x.reshape(x.shape[0], x.shape[1], 2, 2).transpose(1, 2).sum(-1)

    x = rg.randn(5, 7, 4)
    assert_close(of(f, rg.randn(3, 5, 4), shapes=({0: Dim("n"), 1: Dim("m")},))(x), f(x))


def test_a_division_that_is_too_large_to_try_is_checked_at_each_call():
    def f(x):
        return x + (x.shape[0] * x.shape[1] // 1_000_000_000)

    module = of(f, rg.ones(4, 4), shapes=({0: Dim("n"), 1: Dim("m")},))
    assert_close(module(rg.ones(30, 50)), rg.ones(30, 50))
    with pytest.raises(ValueError, match=r"test_dynamic_shapes\.py:\d+ in f asked"):
        module(rg.zeros(1, 1).expand(100_000, 20_000))


def test_a_branch_far_from_the_example_is_found():
    def f(x):
        if x.shape[0] > 5000:
            return x * 2
        return x + 1

    with pytest.raises(ValueError, match=r"n = 5001 \(instead of 4\).*test_dynamic_shapes\.py:\d+ in f"):
        of(f, rg.ones(4), shapes=({0: Dim("n")},))
    assert of(f, rg.ones(4), shapes=({0: Dim("n", max=5000)},))(rg.ones(9)).shape == (9,)


def test_a_branch_that_is_too_large_to_try_is_checked_at_each_call():
    def f(x):
        if x.shape[0] * x.shape[1] > 1_000_000_000:
            return x * 2
        return x + 1

    module = of(f, rg.ones(4, 4), shapes=({0: Dim("n"), 1: Dim("m")},))
    assert_close(module(rg.ones(30, 50)), rg.full((30, 50), 2.0))
    large = rg.zeros(1, 1).expand(100_000, 20_000)
    with pytest.raises(ValueError, match=r"m = 20000, n = 100000: .*test_dynamic_shapes\.py:\d+ in f asked"):
        module(large)


def test_a_branch_that_changes_nothing_does_not_matter():
    def f(x):
        if x.shape[0] > 6:
            return x + 1
        return x + 1

    assert_close(of(f, rg.ones(4), shapes=({0: Dim("n")},))(rg.ones(8)), rg.full((8,), 2.0))


def test_a_size_that_is_clipped_is_refused():
    with pytest.raises(ValueError, match=r"not supported|can't be determined|something else"):
        of(lambda x: x.reshape(min(x.shape[0], 6), -1), rg.ones(12), shapes=({0: Dim("n", max=24)},))


def test_a_size_of_one_is_left_out_where_the_program_needs_more():
    program = export(BatchNorm(3), (rg.randn(4, 3),), dynamic_shapes=({0: Dim("batch")},))
    assert program.range_constraints["batch"].min == 2  # batch norm needs several values

    def needs_two(x):
        if x.shape[0] == 1:
            raise ValueError("more than one")
        return x * 2

    program = export(Does(needs_two), (rg.ones(4),), dynamic_shapes={"args": ({0: Dim("n")},)})
    assert program.range_constraints["n"].min == 2
    with pytest.raises(ValueError, match=r"n must be in \[2, inf\], got 1"):
        program.module()(rg.ones(1))
    with pytest.raises(ValueError, match="it fails with ValueError: more than one"):
        export(Does(needs_two), (rg.ones(4),), dynamic_shapes={"args": ({0: Dim("n", min=1)},)})


def test_an_automatic_dimension_is_static_where_it_has_to_be():
    def f(x):
        return x * 2 if x.shape[0] == 4 else x

    assert of(lambda x: x * 2, rg.ones(4), shapes=({0: Dim.AUTO},))(rg.ones(9)).shape == (9,)
    module = of(f, rg.ones(4), shapes=({0: Dim.AUTO},))
    with pytest.raises(ValueError, match="traced with"):
        module(rg.ones(9))
    with pytest.raises(ValueError, match="args_0_0 = "):
        of(f, rg.ones(4), shapes=({0: Dim.DYNAMIC},))


def accepts(module, *shapes):
    """Return whether a module takes inputs of these shapes."""
    try:
        module(*[rg.ones(*shape) for shape in shapes])
    except ValueError:
        return False
    return True


@pytest.mark.parametrize("hint", [Dim.AUTO, Dim.DYNAMIC])
def test_dimensions_without_names_are_equal_only_as_far_as_the_program_needs_it(hint):
    one, both = {0: hint}, {0: hint, 1: hint}
    added = of(lambda x, y: x + y, rg.ones(3), rg.ones(3), shapes=(one, one))
    assert accepts(added, (5,), (5,))
    assert not accepts(added, (5,), (4,))
    apart = of(lambda x, y, z: (x + y).sum() + z, rg.ones(3), rg.ones(3), rg.ones(3), shapes=(one, one, one))
    assert accepts(apart, (5,), (5,), (2,))
    product = of(lambda x, y: x @ y, rg.ones(4, 4), rg.ones(4, 4), shapes=(both, both))
    assert accepts(product, (5, 6), (6, 7))
    assert not accepts(product, (5, 6), (5, 7))
    pairs = of(lambda w, x, y, z: (w + y).sum() + x + z, *[rg.ones(3)] * 4, shapes=(one,) * 4)
    assert accepts(pairs, (5,), (2,), (5,), (2,))
    assert not accepts(pairs, (5,), (2,), (2,), (5,))


def test_a_dimension_without_a_name_may_equal_a_named_one():
    module = of(lambda x, y: x + y, rg.ones(3), rg.ones(3), shapes=({0: Dim.DYNAMIC}, {0: Dim("n", max=8)}))
    assert accepts(module, (8,), (8,))
    assert not accepts(module, (9,), (9,))
    with pytest.raises(ValueError, match="with a = 4 "):
        of(lambda x, y: x + y, rg.ones(3), rg.ones(3), shapes=({0: Dim("a")}, {0: Dim("b")}))


def test_equal_dimensions_have_the_sizes_that_all_of_their_bounds_permit():
    bounds = ({0: Dim.AUTO(min=2, max=9)}, {0: Dim.DYNAMIC(min=3, max=12)})
    module = of(lambda x, y: x + y, rg.ones(4), rg.ones(4), shapes=bounds)
    assert [accepts(module, (n,), (n,)) for n in (2, 3, 9, 10)] == [False, True, True, False]


def test_each_automatic_dimension_varies_if_it_can():
    module = of(lambda x: x @ rg.ones(5, 2), rg.ones(4, 5), shapes=({0: Dim.AUTO, 1: Dim.AUTO},))
    assert accepts(module, (7, 5))
    assert not accepts(module, (7, 6))


def test_a_program_can_be_exported_again():
    inner = of(lambda x: x.reshape(x.shape[0] * 2, 2), rg.ones(3, 4), shapes=({0: Dim("n", max=50)},))
    again = export(inner, (rg.ones(3, 4),), dynamic_shapes={"args": ({0: Dim("k", max=9)},)}).module()
    assert again(rg.ones(8, 4)).shape == (16, 2)


@pytest.mark.parametrize(
    ("shapes", "error", "message"),
    [
        ({"other": None}, ValueError, "'other' is no argument"),
        ({"input": {5: Dim("n")}}, ValueError, "has 2 dimensions, got dimension 5"),
        ({"input": (Dim("n"),)}, ValueError, "has 2 dimensions, got 1 entries"),
        ({"input": {0: "n"}}, TypeError, "expected a Dim, an int or None, got 'n'"),
        ({"input": {0: 5}}, ValueError, "5 given, but the example has 3"),
        ({"input": {0: Dim("n", max=2)}}, ValueError, r"n must be in \[1, 2\], got 3"),
        ((None, None), ValueError, "2 entries for 1 arguments"),
        (3, TypeError, "expected a dict by argument"),
    ],
)
def test_declarations_that_do_not_fit_are_refused(shapes, error, message):
    with pytest.raises(error, match=message):
        export(nn.Linear(4, 2), (rg.ones(3, 4),), dynamic_shapes=shapes)


@pytest.mark.parametrize("second", [lambda n: 2 * n + 1, lambda n: n + 1, lambda n: n * 3 - 2], ids=range(3))
def test_dimensions_that_follow_from_others(second, tmp_path):
    n = Dim("n", min=2, max=20)
    size = eval(repr(second(n)), {"n": 4})
    program = export(
        Does(lambda x, y: x.reshape(x.shape[0], 1) + y + y.shape[0]),
        (rg.ones(4), rg.ones(size)),
        dynamic_shapes={"args": ({0: n}, {0: second(n)})},
    )
    save(program, tmp_path / "p")
    for module in (program.module(), load(tmp_path / "p").module(), unflatten(program)):
        other = eval(repr(second(n)), {"n": 7})
        assert_close(module(rg.ones(7), rg.ones(other)), rg.full((7, other), 2.0 + other))
        with pytest.raises(ValueError, match="args_1, dimension 0: "):
            module(rg.ones(7), rg.ones(other + 1))


def test_a_dimension_that_follows_from_one_that_no_input_has():
    half = Dim("half", max=20)
    module = of(lambda x: x.reshape(2, x.shape[0] // 2).sum(0), rg.ones(8), shapes=({0: 2 * half},))
    assert module(rg.ones(14)).shape == (7,)
    with pytest.raises(ValueError, match=r"args_0, dimension 0: must be 2\*half for an integer half, got 13"):
        module(rg.ones(13))
    with pytest.raises(ValueError, match=r"half must be in \[1, 20\], got 42 \(half = 21\)"):
        module(rg.ones(42))
    with pytest.raises(ValueError, match=r"export: args_0, dimension 0: must be 2\*half .* got 9"):
        of(lambda x: x, rg.ones(9), shapes=({0: 2 * half},))


def test_calculations_with_dims():
    n = Dim("n", min=2, max=10)
    assert repr(2 * n + 1) == "2*n + 1"
    assert ((2 * n + 1).min, (2 * n + 1).max) == (5, 21)
    assert repr((n + 1) * 3 - 2) == "3*n + 1"
    assert (n - 2).min == 0
    for wrong in (lambda: n * 0, lambda: n * -1, lambda: n * 1.5, lambda: n + n, lambda: n - 1.0, lambda: Dim.AUTO + 1):
        with pytest.raises(NotImplementedError, match="times a positive integer"):
            wrong()
    with pytest.raises(ValueError, match="n - 3 would be negative where n is 2"):
        n - 3


def test_dimensions_without_a_name_may_have_bounds():
    assert repr((Dim.AUTO, Dim.DYNAMIC(max=4))) == "(Dim.AUTO, Dim.DYNAMIC)"
    for hint in (Dim.AUTO(min=2, max=6), Dim.DYNAMIC(min=2, max=6)):
        module = of(lambda x: x * 2, rg.ones(4), shapes=({0: hint},))
        assert module(rg.ones(6)).shape == (6,)
        with pytest.raises(ValueError, match=r"args_0_0 must be in \[2, 6\], got 7"):
            module(rg.ones(7))


def test_dims_that_are_none_are_refused():
    with pytest.raises(ValueError, match="must be an identifier"):
        Dim("batch size")
    with pytest.raises(ValueError, match="no size"):
        Dim("n", min=5, max=4)


@pytest.mark.parametrize(
    ("f", "text"),
    [
        (lambda a, b: 7, "7"),
        (lambda a, b: a, "a"),
        (lambda a, b: 3 * a - 2, "3*a - 2"),
        (lambda a, b: a * b, "a*b"),
        (lambda a, b: 4 * a * b + 1, "4*a*b + 1"),
        (lambda a, b: a * a - a, "a*a - a"),
        (lambda a, b: a + b + 1, "a + b + 1"),
        (lambda a, b: (a + 1) // 2, "(a + 1) // 2"),
        (lambda a, b: (a - 3) // 3, "(a - 3) // 3"),
    ],
)
def test_expressions_are_fitted_to_values(f, text):
    points = [{"a": a, "b": b} for a, b in [(4, 4), *[(n, 4) for n in range(5, 20)], (4, 9), (4, 7), (11, 8)]]
    found = fit(points, [f(**p) for p in points])
    assert repr(found) == text
    assert all(found.at({"a": a, "b": b}) == f(a, b) for a in range(1, 40) for b in (1, 6))


def test_other_functions_are_not_fitted_by_an_expression():
    points = [{"a": a} for a in (3, 4, 5, 6, 8, 13)]
    assert fit(points, [2 ** p["a"] for p in points]) is None
    assert Expression(()).at({}) == 0


def test_a_number_that_is_nan_at_all_sizes_does_not_vary():
    class Loss(nn.Module):
        def forward(self, x, y):
            return nn.functional.cross_entropy(x, y)  # nan where every target is ignored

    batch = Dim("batch", min=2, max=64)
    sizes = {"x": {0: batch}, "y": {0: batch}}
    module = export(Loss(), (rg.randn(5, 3), rg.randint(3, (5,))), dynamic_shapes=sizes).module()
    x, y = rg.randn(9, 3), rg.randint(3, (9,))
    assert module(x, y).item() == pytest.approx(nn.functional.cross_entropy(x, y).item())


def resizing_layers():
    """Return layers that change the sizes of images, alone and in a row."""
    halved = nn.Conv2d(4, 4, 3, 2, 1)
    modes = ("nearest", "nearest-exact", "area", "bilinear", "bicubic")
    return {
        **{f"upsample {mode}": nn.Upsample(scale_factor=2, mode=mode) for mode in modes},
        "upsample by a fraction": nn.Upsample(scale_factor=1.5),
        "downsample": nn.Upsample(scale_factor=0.5, mode="bilinear"),
        "interpolate to a size": lambda x: nn.functional.interpolate(x, (2 * x.shape[2], x.shape[3])),
        "two convolutions": nn.Sequential(halved, halved),
        "three convolutions": nn.Sequential(halved, halved, halved),
        "pooling": nn.Sequential(nn.MaxPool2d(2), nn.AvgPool2d(3, 2, 1)),
        "pooling in ceil mode": nn.MaxPool2d(3, 2, ceil_mode=True),
        "power-average pooling": nn.LPPool2d(2, 2),
        "global pooling": lambda x: nn.functional.avg_pool2d(x, x.shape[2:]),
        "shuffled pixels": nn.PixelShuffle(2),
        "padding": nn.Sequential(nn.ReflectionPad2d(1), nn.ReplicationPad2d(2), nn.CircularPad2d(1)),
        "unfolded windows": nn.Unfold(2),
    }


@pytest.mark.parametrize("layer", resizing_layers().values(), ids=resizing_layers())
def test_layers_that_resize_images_take_other_sizes_and_keep_no_size_of_the_trace(layer):
    module = of(layer, rg.randn(2, 4, 12, 8), shapes=({2: Dim("height", min=4, max=20)},))
    for height in (4, 5, 7, 12, 13, 16, 20):
        x = rg.randn(2, 4, height, 8)
        assert_close(module(x), layer(x))
    gc.collect()
    assert not [kept for kept in gc.get_objects() if type(kept) in (TracedInt, TracedFloat)]


def test_a_quotient_is_fitted_only_where_no_other_one_has_the_values():
    points = [{"a": a} for a in (4, 12, 13, 20)]
    values = [(p["a"] + 7) // 8 for p in points]
    assert values == [(p["a"] + 2) // 6 for p in points]
    assert fit(points, values) is None
    assert repr(fit(points, values, {"a": [4, 12, 20]})) == "(a + 2) // 6"

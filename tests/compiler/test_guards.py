"""Guards: whatever changes between two calls, the compiled function gives the eager call's result."""

import contextlib
import dataclasses
import warnings

import pytest

import retrograd as rg
from retrograd import nn
from retrograd.compiler import capture
from retrograd.core.guards import NO_MATCH, GuardedCall

from .comparison import numbers, observe

FACTOR = 2.0
TABLE = {"scale": 3.0, "steps": [1, 2]}


class Settings:
    bias = 0.5

    def __init__(self):
        self.rate = 1.0
        self.names = ["a"]


def follows(function, changes, *args):
    """Check that calls of the compiled function equal eager ones, before and after each change."""
    compiled = rg.compile(function)
    for change in [lambda: None, *changes]:
        change()
        for _ in range(2):
            assert observe(compiled(*args)) == observe(function(*args))
    assert compiled.programs


@pytest.fixture
def restored(monkeypatch):
    """Return a function that sets a global variable of this module until the end of the test."""
    return lambda name, value: monkeypatch.setitem(globals(), name, value)


def test_a_global_number(restored):
    follows(lambda x: x * FACTOR, [lambda: restored("FACTOR", 3.0), lambda: restored("FACTOR", -0.0)], numbers(3))


def test_members_of_a_global_container(monkeypatch):
    follows(
        lambda x: x * TABLE["scale"] + sum(TABLE["steps"]),
        [
            lambda: monkeypatch.setitem(TABLE, "scale", 5.0),
            lambda: monkeypatch.setitem(TABLE, "steps", [4]),
            lambda: TABLE["steps"].append(9),
        ],
        numbers(3),
    )


def test_attributes_of_an_object_and_of_its_class(monkeypatch):
    settings = Settings()
    follows(
        lambda x: x * settings.rate + settings.bias + len(settings.names),
        [
            lambda: setattr(settings, "rate", 2.0),
            lambda: monkeypatch.setattr(Settings, "bias", 0.25),
            lambda: setattr(settings, "bias", 0.125),
            lambda: settings.names.append("b"),
        ],
        numbers(3),
    )


def test_attributes_that_the_code_does_not_read_make_no_new_program():
    settings = Settings()
    compiled = rg.compile(lambda x: x * settings.rate)
    for i in range(4):
        settings.names = [i]
        compiled(numbers(3))
    assert len(compiled.programs) == 1


def test_a_variable_of_the_function_around():
    power = 2

    def f(x):
        return x**power

    def change(value):
        nonlocal power
        power = value

    follows(f, [lambda: change(3), lambda: change(2.5)], numbers(3).abs())


def test_a_function_that_is_replaced(restored, monkeypatch):
    monkeypatch.setitem(globals(), "helper", lambda x: x + 1)
    follows(lambda x: helper(x) * 2, [lambda: restored("helper", lambda x: x - 1)], numbers(3))  # noqa: F821


def test_modules_in_another_mode_or_with_other_members():
    model = nn.Sequential(nn.Linear(3, 3), nn.Dropout(0.5), nn.ReLU()).eval()
    with rg.no_grad():
        follows(
            lambda x: model(x),
            [
                lambda: setattr(model[1], "p", 0.0),
                model.train,
                lambda: model.append(nn.Tanh()),
                lambda: setattr(model, "2", nn.Sigmoid()),
                lambda: setattr(model[0], "weight", nn.Parameter(rg.ones(3, 3))),
                lambda: model[0].register_forward_hook(lambda module, args, out: out * 2),
            ],
            numbers(2, 3),
        )


def test_the_memory_of_a_parameter():
    w = numbers(2, 3).requires_grad_()

    def swap(value):
        w.data = value

    with rg.no_grad():
        follows(lambda x: w @ x, [lambda: swap(rg.ones(2, 3)), lambda: swap(rg.ones(3, 2).t())], numbers(3))


def test_grad_mode_and_the_default_dtype():
    def f(x):
        y = x.detach().requires_grad_() * 2
        return y.requires_grad, rg.zeros(2)

    compiled = rg.compile(f)
    for _ in range(2):
        assert compiled(numbers(2))[0] is True
        with rg.no_grad():
            assert compiled(numbers(2))[0] is False
        rg.set_default_dtype(rg.float64)
        try:
            assert compiled(numbers(2))[1].dtype == rg.float64
        finally:
            rg.set_default_dtype(rg.float32)


ARGUMENTS = [
    (numbers(3), 2),
    (numbers(4), 2),
    (numbers(3, 3), 2),
    (numbers(3).double(), 2),
    (numbers(3, 4).t(), 2),
    (numbers(6)[::2], 2),
    (numbers(3).flip(0), 2),
    (numbers(3), 2.0),
    (numbers(3), True),
    (numbers(3), numbers(3)),
    (numbers(3), rg.tensor(2.0)),
    (rg.tensor([1, 2, 3]), 2),
    (rg.zeros(0, 3), 2),
    (numbers(3), 2, 1.0),
    (numbers(3), 0.0),
    (numbers(3), -0.0),
    (numbers(3), float("nan")),
    (numbers(3), [2, 3]),
    (numbers(3), (2, 3)),
    (numbers(3), {"a": 2, "b": 3}),
    (numbers(3), {"b": 2, "a": 3}),
]


def arithmetic(x, n, shift=0.0, *, power=1):
    if isinstance(n, dict):
        n = n["a"] - n.get("b", 0)
    if isinstance(n, list):
        return [x * member for member in n]
    if isinstance(n, tuple):
        n = sum(n)
    return (x * n + shift) ** power, x.shape, str(x.dtype), type(n).__name__


def test_arguments_of_every_kind_in_every_order():
    for first in ARGUMENTS:
        for second in ARGUMENTS:
            compiled = rg.compile(arithmetic)
            for args in (first, second, first):
                assert observe(compiled(*args)) == observe(arithmetic(*args)), (first, second)
    compiled = rg.compile(arithmetic)
    x = numbers(3)
    for kwargs in ({}, {"power": 2}, {"shift": 1.0, "power": 3}, {"power": 3, "shift": 1.0}, {"shift": 2.0}):
        assert observe(compiled(x, 2, **kwargs)) == observe(arithmetic(x, 2, **kwargs))


def test_beyond_the_limit_calls_are_eager_and_a_warning_names_the_value():
    compiled = rg.compile(lambda x, n: x * n)
    x = numbers(3)
    for n in range(8):
        compiled(x, n)
    with pytest.warns(UserWarning, match="argument 1 changed from 7 to 8"):
        assert compiled(x, 8).tolist() == (x * 8).tolist()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        compiled(x, 3)
    assert len(compiled.programs) == 8


def test_a_program_of_another_thread_mode_is_found_again():
    compiled = rg.compile(lambda x: x + 1)
    for _ in range(3):
        for x in (numbers(3), numbers(4)):
            compiled(x)
    assert len(compiled.programs) == 2
    rg.compiler.reset()
    assert not compiled.programs


def test_dataclasses_and_functools_partials_as_arguments_are_objects():
    @dataclasses.dataclass
    class Options:
        scale: float

    options = Options(2.0)
    compiled = rg.compile(lambda x, options: x * options.scale)
    x = numbers(3)
    assert compiled(x, options).tolist() == (x * 2).tolist()
    options.scale = 3.0
    assert compiled(x, options).tolist() == (x * 3).tolist()
    assert compiled(x, Options(4.0)).tolist() == (x * 4).tolist()


MODES = {
    "no grad": rg.no_grad,
    "inference": rg.inference_mode,
    "a profile": rg.autograd.profiler.profile,
    "anomaly mode": rg.autograd.detect_anomaly,
    "saved-tensor hooks": lambda: rg.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t),
    "a default dtype": lambda: default_dtype(rg.float64),
}


@contextlib.contextmanager
def default_dtype(dtype):
    before = rg.get_default_dtype()
    rg.set_default_dtype(dtype)
    try:
        yield
    finally:
        rg.set_default_dtype(before)


@pytest.mark.parametrize("mode", MODES)
def test_the_guards_of_the_latest_program_include_the_modes_of_the_thread(mode):
    compiled, x = rg.compile(lambda x: x * 2 + 1), numbers(3)
    for _ in range(3):
        compiled(x)
    assert observe(compiled._latest.run((x,))) == observe(x * 2 + 1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with MODES[mode]():
            assert compiled._latest.run((x,)) is NO_MATCH
    assert compiled._latest.run((x,)) is not NO_MATCH


def test_calls_that_alternate_between_programs_make_each_guarded_call_once(monkeypatch):
    made = []
    monkeypatch.setattr(capture, "GuardedCall", lambda *parts: made.append(parts) or GuardedCall(*parts))
    compiled, inputs = rg.compile(lambda x: x * 2.0 + 1.0), [rg.ones(2), rg.ones(2, 3)]
    for x in inputs * 5:
        assert compiled(x).tolist() == (x * 2.0 + 1.0).tolist()
    assert 0 < len(made) <= len(inputs)


def test_the_guards_of_the_latest_program_include_all_others():
    scale, weight, settings = [2.0], numbers(3).requires_grad_(), {"shift": 1}

    def f(x):
        return x * scale[0] * weight.detach() + settings["shift"]

    compiled, x = rg.compile(f), numbers(3)
    for _ in range(3):
        compiled(x)
    run = compiled._latest.run
    assert observe(run((x,))) == observe(f(x))
    for args in ((), (x, x), (numbers(4),), (x.double(),), (x[:],), (2.0,), (weight,)):
        assert run(args) is NO_MATCH
    scale[0] = 3.0
    assert run((x,)) is NO_MATCH
    scale[0], settings["shift"] = 2.0, 2
    assert run((x,)) is NO_MATCH
    settings["shift"] = 1
    assert run((x,)) is not NO_MATCH
    weight.grad = numbers(3)
    assert run((x,)) is NO_MATCH


@dataclasses.dataclass
class Options:
    scale: float = 2.0


KNOWN, KNOWN_LIST = Options(), [2.0]


@pytest.mark.parametrize(
    ("same", "calls"),
    [
        (lambda a, b: a is b, [(KNOWN_LIST, KNOWN_LIST), ([2.0], [2.0])]),
        (lambda a, b: a is b, [(KNOWN, KNOWN), (Options(), Options())]),
        (lambda a, b: id(a) in {id(b)}, [(KNOWN_LIST, KNOWN_LIST), ([2.0], [2.0])]),
        (lambda a, b: a is b[0], [(KNOWN_LIST, [KNOWN_LIST]), ([2.0], [[2.0]])]),
        (lambda a, b: a is KNOWN, [(KNOWN, 1), (Options(), 1)]),
        (lambda a, b: a["x"] is KNOWN_LIST, [({"x": KNOWN_LIST}, 1), ({"x": [2.0]}, 1)]),
    ],
    ids=["lists", "dataclasses", "ids", "inside", "from outside", "from outside, inside"],
)
@pytest.mark.parametrize("order", [1, -1])
def test_a_container_among_the_arguments_may_be_the_same_as_another_one(same, calls, order):
    def f(x, a, b):
        return x * 2 if same(a, b) else x * 3

    compiled = rg.compile(f, fullgraph=True)
    for a, b in [*calls[::order], *calls[::order]]:
        assert observe(compiled(numbers(2), a, b)) == observe(f(numbers(2), a, b))
    assert len(compiled.programs) == 2

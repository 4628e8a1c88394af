"""Functions with graph breaks that a compiled function calls are compiled in parts, too, with the eager results."""

import traceback
import warnings
from collections import Counter

import pytest

import retrograd as rg
from retrograd import nn
from retrograd.compiler import capture

from .comparison import numbers, observe, state_of
from .training_code import KINDS, RUN_EAGERLY, TRAINING, Gate, network


def run(make, is_compiled):
    """Return what is observed of some calls, and the compiled function."""
    function, models = make()
    called = rg.compile(function) if is_compiled else function
    parameters = [p for model in models for p in model.parameters()]
    rg.manual_seed(1)
    seen = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for i in range(10):
            x, y = numbers(4, 3, seed=i) * (1 + i), numbers(4, 3, seed=i + 50) - i % 2
            out = called(x, y)
            if isinstance(out, rg.Tensor) and out.requires_grad:
                out.sum().backward()
            seen.append((observe(out), state_of(parameters)))
    return [*seen, str(rg.get_rng_state())], called


def all_functions(compiled):
    """Return a compiled function, its parts, and the functions that its statements call, with their parts."""
    found, pending = [], [compiled, *compiled._callees._found.values()]
    while pending:
        found.append(pending.pop())
        pending += found[-1]._in_parts.parts if found[-1]._in_parts is not None else []
    return found


@pytest.mark.parametrize("make", [*TRAINING, *KINDS])
def test_code_whose_functions_have_breaks_has_the_bits_of_the_eager_run(make):
    eager, _ = run(make, is_compiled=False)
    seen, compiled = run(make, is_compiled=True)
    assert seen == eager
    callees = [f for f in compiled._callees._found.values() if f is not compiled]
    assert any(part.programs for f in callees for part in all_functions(f)) is (make not in RUN_EAGERLY)


def helper(x):
    y = x.sin() * 2
    return y.sum().item()


def middle(x):
    return helper(x + 1) * 2


def outer(x):
    z = x.cos() * 3
    return z * middle(z)


def test_a_refusal_names_the_line_of_the_break_and_the_calls_on_the_way_to_it():
    lines = [f"test_called_functions.py:{f.__code__.co_firstlineno + n} in {f.__name__}"
             for f, n in ((helper, 2), (middle, 1), (outer, 2))]  # fmt: skip
    message = rf"outer .* runs eagerly: the code reads the value of a tensor, at .*{', called at .*'.join(lines)}$"
    with pytest.raises(RuntimeError, match=message):
        rg.compile(outer, fullgraph=True)(numbers(3))


def test_one_warning_and_the_report_name_the_break_in_the_called_function():
    compiled = rg.compile(outer)
    with pytest.warns(UserWarning, match="in parts: the code reads .* in helper, called at .* in middle"):
        compiled(numbers(3))
    with warnings.catch_warnings(action="error"):
        for _ in range(5):
            compiled(numbers(3))
    report = rg.compiler.explain(compiled)(numbers(3))
    assert report.graph_break_count == 1
    assert Counter(name for names in report.ops_per_graph for name in names) == Counter(
        ["cos", "mul", "add", "sin", "mul", "sum", "mul"]
    )
    assert f":{helper.__code__.co_firstlineno + 2} in helper" in report.break_reasons[0]
    assert compiled(numbers(3)).tolist() == outer(numbers(3)).tolist()


def test_the_report_of_a_function_that_calls_itself_has_all_programs():
    def power(x, n):
        if n == 0:
            return x.sin() * x.sum().item()
        return power(x.cos(), n - 1) * 2

    compiled = rg.compile(power)
    with warnings.catch_warnings(action="ignore"):
        for _ in range(6):
            compiled(numbers(3), 2)
    assert rg.compiler.explain(compiled)(numbers(3), 2).graph_count >= 3
    assert observe(compiled(numbers(3), 2)) == observe(power(numbers(3), 2))


def test_the_rest_of_a_statement_is_compiled_before_and_after_the_call():
    def f(x, y):
        return ((x * 2).sin() + outer(y.cos() * 2) * y).sum()

    compiled = rg.compile(f)
    with warnings.catch_warnings(action="ignore"):
        for _ in range(4):
            compiled(numbers(3), numbers(3))
    assert [len(part.programs) for part in compiled._in_parts.parts] == [1, 1]  # both operands, and the sum


def test_functions_without_operators_run_as_they_are():
    def describe(epoch, loss):
        return f"{epoch}: {loss:.3f}"

    def step(x, epoch):
        value = (x * x).sum().item()
        print(describe(epoch, value), end="")
        return value

    compiled = rg.compile(step)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for i in range(12):
            compiled(numbers(3), i)
    assert len(caught) == 1
    assert [f.is_idle for f in compiled._callees._found.values() if f is not compiled] == [True]


def test_objects_that_are_made_again_and_again_are_not_kept():
    def step(x):
        return Noting().call(x) + 1

    class Noting:
        def call(self, x):
            return x.sin() * x.sum().item()

    compiled = rg.compile(step)
    with warnings.catch_warnings(action="ignore"):
        for _ in range(15):
            assert compiled(numbers(3)).tolist() == step(numbers(3)).tolist()
    assert len(compiled._callees._found) == 1


def test_each_module_of_a_class_has_its_programs():
    rg.manual_seed(0)
    model = nn.Sequential(*[Gate() for _ in range(12)])
    compiled = rg.compile(model)
    x = numbers(2, 3)
    for gate in model:
        gate.eval()
    with warnings.catch_warnings(action="ignore"):
        for _ in range(6):
            assert observe(compiled(x)) == observe(model(x))
    found = compiled._compiled_call._callees._found.values()
    assert sum(f.whole_name.startswith("Gate") for f in found) == 12


def test_a_traceback_has_the_lines_of_the_functions_as_they_are_written():
    def fails(x):
        print(end="")
        return x.reshape(7)

    def calls(x):
        y = x.sin()
        return fails(y)

    def lines(function):
        for _ in range(4):
            try:
                function(numbers(3))
            except ValueError as error:
                found = traceback.extract_tb(error.__traceback__)
        return [(f.name, f.lineno) for f in found if f.filename == __file__]

    with warnings.catch_warnings(action="ignore"):
        assert lines(rg.compile(calls)) == lines(calls)


def test_a_disabled_function_stays_as_it_is():
    calls = []

    @rg.compiler.disable
    def note(x):
        calls.append(rg.compiler.is_compiling())
        return x * 2

    def inner(x):
        return note(x.sin()) + 1

    compiled = rg.compile(lambda x: inner(x) * 2)
    with warnings.catch_warnings(action="ignore"):
        for _ in range(4):
            assert compiled(numbers(3)).tolist() == (numbers(3).sin() * 4 + 2).tolist()
    assert not calls[-1]


def test_functions_have_programs_for_each_grad_mode():
    model, _ = network()

    def loss(x):
        out = model(x)
        return out.sum() if rg.is_grad_enabled() else out.sum().item()

    def both(x):
        with rg.no_grad():
            value = loss(x)
        return loss(x) * value

    model.eval()
    compiled = rg.compile(both)
    with warnings.catch_warnings(action="ignore"):
        for _ in range(4):
            assert observe(compiled(numbers(2, 3))) == observe(both(numbers(2, 3)))


class Captures:
    """The captured calls while it is entered."""

    def __init__(self, monkeypatch):
        self.all, begin = [], capture.Capture.__init__

        def note(made, *args):
            self.all.append(made)
            begin(made, *args)

        monkeypatch.setattr(capture.Capture, "__init__", note)

    @property
    def refused(self):
        """The number of captures that no program came from."""
        return sum(made.program is None for made in self.all)

    @property
    def operators(self):
        """The number of operators in all captures."""
        return sum(made.recorder.operators for made in self.all)


def nested_functions(depth, last):
    """Return a function that calls others inside each other, each of three operators, the innermost one `last(x)`."""

    def call(x):
        y = x.sin() * 2
        return last(y) + 1

    return call if depth == 1 else nested_functions(depth - 1, call)


class Nested(nn.Module):
    """Modules inside each other, of which the innermost one reads the value of a tensor."""

    def __init__(self, depth):
        super().__init__()
        self.inner = type(self)(depth - 1) if depth > 1 else None

    def forward(self, x):
        y = x.sin() * 2
        y = y * y.mean().item() if self.inner is None else self.inner(y)
        return y + 1


class NestedBreaks(Nested):
    """Such modules, each of which reads a value."""

    def forward(self, x):
        y = x.sin() * 2
        y = y * y.mean().item()
        return y + 1 if self.inner is None else self.inner(y) + 1


def nested_functions_with_a_break(depth):
    return nested_functions(depth, lambda y: y * y.mean().item())


@pytest.mark.parametrize("make", [Nested, NestedBreaks, nested_functions_with_a_break])
@pytest.mark.parametrize("depth", [2, 5, 20])
def test_a_break_in_many_nested_functions_costs_one_refused_recording(make, depth, monkeypatch):
    function, captures = make(depth), Captures(monkeypatch)
    compiled = rg.compile(function)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for i in range(4):
            x = numbers(3, seed=i)
            assert observe(compiled(x)) == observe(function(x))
    assert captures.refused == 1
    assert captures.operators <= 2 * 5 * depth + 2

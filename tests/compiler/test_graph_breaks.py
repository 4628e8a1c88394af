"""Functions that no program can replace as a whole are compiled in parts, with the eager run's results and effects."""

import ast
import contextlib
import copy
import linecache
import random
import types
import warnings

import pytest

import retrograd as rg
from retrograd import nn
from retrograd.compiler.function_source import read_source
from retrograd.compiler.graph_breaks import Breaks, split_function
from retrograd.nn import functional as F

from ..tables import ALL_SAMPLES
from .comparison import numbers, observe, state_of

# ------------------------------------------------------------------------------------- functions without tensors

SIMPLE = ("{t} = f({x}) + {y}", "{t}, {u} = f({x}), f({y})", "{t} += f({x})", "log({x})", "{t} = {x}", "del {t}",
          "{t} = sum([f(i) + {x} for i in range({y} % 3)])", "{t} = (lambda: f({x}))()", "v: int = f({x})",
          "{t} = f({x} * 2) if {x} % 2 else {y}", "log(int(f({x})), float(f({y})))", "STATE[f({x}) % 2] = {y}",
          "{t} = int(f(f({x}))) + f({y})", "assert f({x}) != 6", "{t} = f(sum(f({u}) for {u} in range(2)))",
          "{t} = f({x}) > 2 and f({y})", "{t} = str(f({x}) + {y})", "STATE.update({{{x} % 2: f({y})}})",
          "log(f({x}), int(f({y})))", "{t} = f({t})", "{t} = g({x}, {y})", "log(f({y}), g(f({x}), {y} + 1) + f({x}))",
          "{t} = f(h(b={y}, *[{x}])) * g({x}, f(2))", "{t} = [h({x}, f({u})) for {u} in range(2)]",
          "v: int = f(f({x}) + h({x}, {y}))", "{t} += h({y}, {x})", "{t} = ({u} := f({x})) + {u} * f({y})",
          "log({u} := f({y}), {u})", "{t} = f({x}) > 3 and ({u} := h({y}, {x})) > 1", "{t} = {u} + ({u} := f({x}))",
          "{t} = int({u} := f({x})) + f({u})", "{t} = int(f({x})) + ({y} := f({x})) * {y}",
          "{t} = f(({u} := f({x})), {u}) if ({t} := f({y})) % 2 else -({t} := 3)",
          "STATE[({u} := f({x})) % 2] = ({u} := {y})", "log(CALLS.count, int(f({x})))", "{t} = f({x}) * int(f({y}))",
          "{t} = CALLS.noted[-1] == int(f({x})) or {y}", "{t} = CALLS.count + g({x}, f({y}))",
          "{t} = f({x}) + float(f({y})) * f({x}) - int(f({u}))", "log(f'{{f({x})}} {{int(f({y}))}}')",
          "CALLS.count += int(f({x}))", "{t} = CALLS.count + int(f({x}) + int(f({y}))) + e",
          "log(f({x}) < int(f({y})) < int(f({u})), {{f({x}): int(f({y})), int(f({u})): 2}})")  # fmt: skip
COMPOUND = ("if f({x}) % 2:", "for {t} in range(f({y}) % 4):", "while f({t}) % 3 and log({t}):", "try:",
            "with around({x}) as {t}:", "for {u}, {t} in enumerate([f({x}), 2]):", "if not f({x}) > 3:",
            "while int(f({x})) % 4 and log(1):", "if {x} % 2:", "while not f({x}) > 2:", "while f(g({x}, {y})) % 4:",
            "if h({x}, {y}) == f({x}):", "for {t} in (f({x}), g({x}, 2)):", "if ({t} := f({x})) % 2:",
            "while ({t} := f({y})) % 3 and log(1):", "while f({x}) % 3 and ({t} := f({y})) > 4:",
            "for {t} in range({u} := f({y}) % 4):", "match f({x}) % 4:", "match f({x}) % 3, {y}:",
            "match ({u} := h({x}, f({y}))):", "match {{'k': f({y})}}:")  # fmt: skip
CASES = ("case 0 | 1:", "case int({t}) if f({t}) > 4:", "case {t}, 3:", "case [{t}, *v] if v[0] % 2:",
         "case [0 | 1 as {t}, v]:", "case {{'k': {t}}} if {t} % 2:", "case {{'k': 4, **{u}}}:",
         "case int():", "case {t} if f({x}):")  # fmt: skip


def callee(f, split={}):  # noqa: B006
    """Return what runs in place of a function that a statement calls."""
    return split[f] if isinstance(f, types.FunctionType) and f in split else f


EAGER = (lambda part, where: part.function), callee  # how parts and called functions run


class Calls:
    """Functions that note their calls, and end a program after many of them."""

    def __init__(self):
        self.noted, self.count = [], 0

    def log(self, *values):
        self.noted.append(values)
        self.count += 1
        if len(self.noted) > 300:
            raise OverflowError
        return len(self.noted) < 100

    def f(self, value):
        self.log("f", value)
        return (7 * int(value) + len(self.noted)) % 10

    @contextlib.contextmanager
    def around(self, value):
        self.log("enter", value)
        try:
            yield value
        finally:
            self.log("exit", value)


def random_body(choose, depth=0, in_loop=False):
    """Return the lines of random statements."""
    lines = []
    for _ in range(choose.randint(1, 4)):
        words = {key: choose.choice("abcde") for key in "tuxy"}
        kind = choose.random()
        if kind < 0.35 and depth < 3:
            head = choose.choice(COMPOUND).format(**words)
            is_loop = head.startswith(("for", "while"))
            tail = {"try:": "except (TypeError, NameError):"}.get(head, "else:")
            if head.startswith("match"):
                cases = [case.format(**words) for case in choose.sample(CASES, 3)]
                bodies = [[case, *random_body(choose, depth + 1, in_loop)] for case in cases]
                lines += [head, *["    " + line for body in bodies for line in body]]
                continue
            lines += [head, *random_body(choose, depth + 1, in_loop or is_loop)]
            if head == "try:" or (not head.startswith("with") and choose.random() < 0.3):
                lines += [tail, *random_body(choose, depth + 1, in_loop)]
        elif kind < 0.45:
            end = choose.choice(["return f({x}), {y}", *(["break", "continue"] if in_loop else [])])
            lines += ["if f({x}) > 5:".format(**words), "    " + end.format(**words)]
        else:
            lines.append(choose.choice(SIMPLE).format(**words))
    return ["    " + line for line in lines]


def define(lines, variables):
    """Return the function `program` of the lines of code, whose source can be found."""
    code = "".join(f"{line}\n" for line in lines)
    name = f"<program {hash(code)}>"
    linecache.cache[name] = len(code), None, code.splitlines(True), name
    exec(compile(code, name, "exec"), variables)
    return variables["program"]


def random_split(function, lines, choose):
    """Return a function with breaks at some lines, and in some of the functions that it calls."""
    source = read_source(function)
    nodes = [node for node in ast.walk(source.tree) if isinstance(node, ast.Call) and choose.random() < 0.3]
    calls = frozenset([(n.lineno, n.end_lineno, n.col_offset, n.end_col_offset) for n in nodes])
    inside = [node for node in ast.walk(source.tree) if isinstance(node, ast.expr) and choose.random() < 0.3]
    positions = frozenset([(n.lineno, n.end_lineno, n.col_offset, n.end_col_offset) for n in inside])
    made = split_function(source, Breaks(lines, calls, choose.random() < 0.5, positions), *EAGER)
    return function if made is None else made[0]


def outcome(function, calls, state, peek=lambda: None):
    """Return the result or error of a function, and its effects; `peek` returns the value of a variable around it."""
    found = []
    for run in (lambda: function(3, 4), peek):
        try:
            found.append(run())
        except (ArithmeticError, AssertionError, LookupError, NameError, TypeError, ValueError) as error:
            found.append(type(error))
    return found, calls.noted, state


@pytest.mark.parametrize("group", range(4))
def test_a_split_function_has_the_results_errors_and_effects_of_the_whole(group):
    parts = 0
    for seed in range(30 * group, 30 * group + (30 if ALL_SAMPLES else 12)):
        choose = random.Random(seed)
        lines = [
            "def g(a, b):",
            "    log(a)",
            *random_body(choose),
            "    return f(a) + b",
            "def h(a, b):",
            "    log(b)",
            *random_body(choose),
            "    return g(f(b), a) if f(a) % 2 else a",
            "def make(e):",
            "    def program(a: dict[str, int], b, c=(lambda: 2)()):",
            "        nonlocal e",
            *["    " + line for line in (*random_body(choose), *random_body(choose))],
            "        return f(a), b",
            "    return program, lambda: e",
            "program, peek = make(5)",
        ]
        breaks = frozenset([i for i in range(2, len(lines) + 2) if choose.random() < 0.2])
        seen = []
        for is_split in (False, True):
            calls, state = Calls(), {}
            known = {"STATE": state, "CALLS": calls, "f": calls.f, "log": calls.log, "around": calls.around}
            program = define(lines, known)
            if is_split:
                split = {known[name]: random_split(known[name], breaks, choose) for name in ("g", "h", "program")}
                parts += split[program] is not program
                callee.__defaults__ = (split,)
                program = split[program]
            seen.append(outcome(program, calls, state, known["peek"]))
        assert seen[0] == seen[1], "\n".join(lines) + f"\n{sorted(breaks)}"
    assert parts > 8


DIRECTED = {
    "a variable that only the next iteration reads": [
        "c = 1", "for i in range(4):", "    log(1)", "    c = f(c)", "return 0"],
    "a function that sees a later value": [
        "c = f(a)", "later = [lambda: c]", "log(1)", "c = f(b)", "return later[0]()"],
    "a function that sees the value of its iteration": [
        "for i in range(2):", "    log(i)", "    g = [lambda: i + b]", "    i = f(i)", "    b = g[0]()", "return b"],
    "a function that sees a variable assigned after it": [
        "later = [lambda: c]", "log(1)", "c = f(a)", "b = later[0]()", "return f(b)"],
    "calls in their order": ["c = f(a)", "log(f(a), int(f(b)), float(f(c)))", "return c"],
    "a condition that guards a call": ["c = a > 9 and int(f(a)) > 2", "log(c or int(f(b)))", "return f(b)"],
}  # fmt: skip


@pytest.mark.parametrize("body", DIRECTED.values(), ids=DIRECTED)
def test_a_split_function_keeps(body):
    lines = ["def program(a, b):", *["    " + line for line in body]]
    parts = 0
    for broken in range(2, len(lines) + 1):
        seen = []
        for is_split in (False, True):
            calls, state = Calls(), {}
            program = define(lines, {"STATE": state, "f": calls.f, "log": calls.log})
            if is_split:
                made = split_function(read_source(program), Breaks(frozenset({broken})), *EAGER)
                program = program if made is None else made[0]
                parts += made is not None
            seen.append(outcome(program, calls, state))
        assert seen[0] == seen[1], broken
    assert parts


# ---------------------------------------------------------------------------------------------- compiled functions

LOSSES = []
STEPS = 0


def network():
    rg.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 8), nn.Dropout(0.2), nn.Tanh(), nn.Linear(8, 3))
    return model, rg.optim.Adam(model.parameters(), lr=0.1)


def reads_the_loss(model, optimizer):
    def step(x, y):
        optimizer.zero_grad()
        loss = F.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
        return loss.item()

    return step


def notes_the_loss_on_the_way(model, optimizer):
    def step(x, y):
        global STEPS
        STEPS += 1
        loss = F.mse_loss(model(x), y)
        LOSSES.append(loss.item())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss, STEPS

    return step


def loops_over_batches(model, optimizer):
    def epoch(x, y):
        total = right = 0
        for i, (a, b) in enumerate(zip(x.split(2), y.split(2), strict=True)):
            optimizer.zero_grad()
            out = model(a)
            loss = F.mse_loss(out, b)
            if not loss.isfinite():
                raise FloatingPointError(f"loss of batch {i}")
            loss.backward()
            optimizer.step()
            total += loss.item() * len(a)
            right += (out.argmax(1) == b.argmax(1)).sum().item()
            if i == 1:
                LOSSES.append(total)
        return total / len(x), right

    return epoch


def chooses_by_a_value(model, optimizer):
    def step(x, y):
        hidden = model(x)
        scale = (hidden * hidden).sum()
        if scale > 1:
            return (hidden / scale).sin().sum()
        elif scale > 100:
            raise ValueError(scale)
        shifted = hidden + scale
        return (shifted * y).cos().sum()

    return step


def iterates_until_it_converges(model, optimizer):
    def solve(x, y):
        z, n = x.abs() + 1, 0
        while (z * z - 2).abs().max() > 1e-5:
            z = z - (z * z - 2) / (2 * z)
            n += 1
        return z.sin() + y, n

    return solve


def catches_an_error(model, optimizer):
    def step(x, y):
        h = (model(x) * y).exp()[:3]
        try:
            value = rg.linalg.cholesky(h)
        except rg.linalg.LinAlgError:
            value = h * 2
        return (value + 1).sum()

    return step


def selects_by_values(model, optimizer):
    def step(x, y):
        h = model(x).tanh()
        chosen = h[h > 0]
        return (chosen * chosen).sum() + (y * 2).sum()

    return step


def assigns_in_a_condition(model, optimizer):
    def solve(x, y):
        z, n = x.abs() + 1, 0
        while (error := (z * z - 2).abs().max()) > 1e-5:
            z = z - (z * z - 2) / (2 * z)
            n += 1
        if (total := (z.sin() + y).sum()).item() > 3:
            return total * 2, n
        return total.exp() * error, n

    return solve


def matches_a_mode(model, optimizer):
    def step(x, y):
        hidden = model(x) + 1
        match (hidden.argmax() % 2).item(), x.ndim:
            case (0, n):
                out = (hidden.sin() * y).sum() * n
            case (m, 2) if m == 1:
                out = (hidden.cos() + y).sum()
            case _:
                out = hidden.sum()
        return out * 2

    return step


def counts_in_a_variable_around(model, optimizer):
    count = 0

    def step(x, y):
        nonlocal count
        count += 1
        loss = F.mse_loss(model(x), y)
        return (loss * 2).exp(), count

    return step


def scales_by_a_value(model, optimizer):
    def step(x, y):
        return model(x).sin() * (x + y).cos().sum().item() + y

    return step


class Trainer:
    def __init__(self, model, optimizer):
        self.model, self.optimizer, self.count, self.history = model, optimizer, 0, []

    def step(self, x, y):
        self.count += 1
        self.optimizer.zero_grad()
        loss = F.mse_loss(self.model(x), y)
        loss.backward()
        self.history.append(float(loss))
        self.optimizer.step()
        return loss, self.count, len(self.history)


class Gated(nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, x, y):
        h = self.model(x).tanh()
        if h.sum() > 0:
            h = h * 2 + y
        return (h * h).sum()


def trains_by_a_method(model, optimizer):
    return Trainer(model, optimizer).step


def calls_a_module(model, optimizer):
    return Gated(model)


def calls_the_call_of_a_module(model, optimizer):
    return Gated(model).__call__


class Scaled:
    calls = 0

    def __init__(self, model):
        self.model = model

    def __call__(self, x, y):
        h = self.model(x).tanh()
        self.calls += 1
        return (h * h + y).sum() * self.calls


def calls_an_object(model, optimizer):
    return Scaled(model)


FUNCTIONS = {  # how many parts each has, and how many of them a program can replace in these calls
    reads_the_loss: (1, 1), notes_the_loss_on_the_way: (3, 3), loops_over_batches: (3, 3), chooses_by_a_value: (4, 2),
    iterates_until_it_converges: (4, 4), catches_an_error: (2, 2), selects_by_values: (2, 2),
    assigns_in_a_condition: (5, 5), matches_a_mode: (4, 3), counts_in_a_variable_around: (1, 1),
    scales_by_a_value: (1, 1), trains_by_a_method: (2, 2), calls_a_module: (3, 3),
    calls_the_call_of_a_module: (3, 3), calls_an_object: (2, 2),
}  # fmt: skip


def parts_of(compiled):
    """Return the compiled parts of a function, those of parts included."""
    compiled = getattr(compiled, "_compiled_call", compiled)
    if compiled._in_parts is None:
        return []
    return [*compiled._in_parts.parts, *[inner for part in compiled._in_parts.parts for inner in parts_of(part)]]


def run_calls(make, is_compiled):
    """Return what is observed of some calls, and the function."""
    global STEPS
    STEPS = 0
    LOSSES.clear()
    model, optimizer = network()
    function = make(model, optimizer)
    called = rg.compile(function) if is_compiled else function
    seen = []
    for i in range(6):
        x, y = numbers(4, 3) * (1 + i), numbers(4, 3).sin() - i % 2
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            out = called(x, y)
        first = out[0] if isinstance(out, tuple) else out
        if isinstance(first, rg.Tensor) and first.requires_grad and make is not notes_the_loss_on_the_way:
            with contextlib.suppress(RuntimeError):  # the graph of a step is freed
                first.sum().backward()
        seen.append((observe(out), state_of(model.parameters()), copy.copy(LOSSES), STEPS))
    return seen, called


@pytest.mark.parametrize("make", FUNCTIONS)
def test_a_function_in_parts_has_the_bits_and_effects_of_the_eager_run(make):
    eager, _ = run_calls(make, is_compiled=False)
    seen, compiled = run_calls(make, is_compiled=True)
    assert seen == eager
    found = [part for part in parts_of(compiled) if part._in_parts is None]
    assert (len(found), sum(bool(part.programs) for part in found)) == FUNCTIONS[make]


def test_a_function_that_assigns_a_variable_around_it_once_is_compiled_as_a_whole():
    scale = None

    def f(x):
        nonlocal scale
        if scale is None:
            scale = (x * 2).sum()
        return (x * scale).sin()

    compiled = rg.compile(f, fullgraph=True)
    for _ in range(4):
        assert observe(compiled(numbers(3))) == observe((numbers(3) * scale).sin())
    assert len(compiled.programs) == 2


def test_the_report_of_a_function_in_parts_has_its_programs_and_breaks():
    compiled = rg.compile(chooses_by_a_value(*network()))
    x, y = numbers(4, 3), numbers(4, 3)
    with pytest.warns(UserWarning, match=r"step \(.*\) is compiled in parts: the code reads the value"):
        expected = compiled(x, y)
    assert rg.compiler.explain(compiled)(x, y).graph_count == 2
    compiled(x, y)
    report = rg.compiler.explain(compiled)(x, y)
    assert (report.graph_count, report.graph_break_count, report.op_count) == (
        2,
        1,
        sum(map(len, report.ops_per_graph)),
    )
    assert str(report).startswith("2 programs of ")
    assert "\nGraph break: the code reads the value of a tensor, at " in str(report)
    assert report.code.count("def play") == 2
    assert report.seconds is not None
    assert compiled(x, y).shape == expected.shape  # the parts are called as before


def test_a_function_without_its_source_runs_eagerly():
    known = {}
    exec("def f(x):\n    y = x.sin()\n    return y.sum().item()", known)
    with pytest.warns(UserWarning, match="f .* runs eagerly: the code reads the value"):
        rg.compile(known["f"])(numbers(3))


def test_a_changed_file_is_not_taken_for_the_source():
    lines = ["def program(a, b):", "    c = a.sin() + b", "    return c.sum().item()"]
    program = define(lines, {})
    name = program.__code__.co_filename
    code = "\n".join(lines).replace("sin", "cos")
    linecache.cache[name] = len(code), None, code.splitlines(True), name
    assert read_source(program) is None


def test_a_break_in_grad_mode_leaves_the_whole_program_without_it():
    def f(x):
        y = (x * 2).sin()
        return y.sum().item() if rg.is_grad_enabled() else y.sum()

    compiled = rg.compile(f)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert isinstance(compiled(numbers(3)), float)
    with rg.no_grad():
        assert compiled(numbers(3)).shape == compiled(numbers(3)).shape == ()
    assert isinstance(compiled(numbers(3)), float)
    assert compiled.programs

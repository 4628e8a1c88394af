"""Calls that cannot be compiled run eagerly with the eager results, and say why."""

import contextlib
import functools
import gc
import random
import sys
import threading
import time
import warnings

import numpy as np
import pytest

import retrograd as rg
from retrograd import nn
from retrograd.compiler.function_source import read_source

from .comparison import numbers, observe

SEEN = []
COUNT = 0


def logs(x):
    print(x.shape)
    return x + 1


def reads(x):
    return x * x.sum().item()


def branches(x):
    return x + 1 if x.sum() > 0 else x - 1


def formats(x):
    return x, f"{x}"


def appends(x):
    SEEN.append(x.shape)
    return x * len(SEEN)


def counts(x):
    global COUNT
    COUNT += 1
    return x * COUNT


def draws(x):
    return x * random.random()


def measures(x):
    return x + time.perf_counter() * 0


def selects(x):
    return x[x > 0]


def seeds(x):
    rg.manual_seed(0)
    return x * 0


def seeds_numpy(x):
    np.random.seed(0)
    return x * 0


def generates(x):
    return x * 0 + rg.rand(3, generator=rg.Generator())


def keeps_graph(x):
    return (x.detach().requires_grad_() * 2).sum()


def catches(x):
    try:
        return rg.linalg.cholesky(x.reshape(1, 3)[:, :1])
    except rg.linalg.LinAlgError:
        return x


def suppresses(x):
    with contextlib.suppress(rg.linalg.LinAlgError):
        x = rg.linalg.cholesky(x.reshape(1, 3)[:, :1])
    return x


class Counter:
    calls = 0

    def __call__(self, x):
        self.calls += 1
        return x * self.calls


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (logs, r"calls print\(\)"),
        (reads, "reads the value of a tensor"),
        (branches, "reads the value of a tensor"),
        (formats, "tensor"),
        (appends, "changes the length of SEEN"),
        (counts, "changes COUNT"),
        (draws, "of whose changes nothing is known|random"),
        (measures, "perf_counter"),
        (selects, "shape of the result of .* depends on values"),
        (seeds, "random generator"),
        (seeds_numpy, "of whose changes nothing is known"),
        (generates, "retrograd.ops.generator|random generator"),
        (keeps_graph, "a leaf that the call has made"),
        (catches, "handles exceptions"),
        (suppresses, "exceptions|contextlib"),
        (Counter(), "changes .*calls"),
    ],
)
def test_a_function_that_no_program_can_replace_says_why(function, reason):
    compiled = rg.compile(function)
    x = numbers(3)
    with pytest.warns(UserWarning, match=f"(?s)compile: .*(runs eagerly|is compiled in parts): .*({reason})"):
        compiled(x)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        compiled(-x)
    assert not compiled.programs
    with pytest.raises(RuntimeError, match=reason):
        rg.compile(function, fullgraph=True)(x)
    assert rg.compiler.explain(function)(x).graph_count == 0


def test_eager_calls_have_the_eager_results():
    for function in (reads, branches, selects, formats):
        compiled = rg.compile(function)
        for sign in (1, -1, 1):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)
                assert observe(compiled(numbers(3) * sign)) == observe(function(numbers(3) * sign))


def test_the_reason_names_the_line_of_the_code():
    with pytest.raises(RuntimeError, match=rf"test_fallback.py:{reads.__code__.co_firstlineno + 1} in reads"):
        rg.compile(reads, fullgraph=True)(numbers(3))


def test_a_container_among_the_arguments_that_the_function_changes():
    def f(x, found):
        found["y"] = x * 2
        return x

    compiled = rg.compile(f)
    with pytest.warns(UserWarning, match="changes a container among its arguments"):
        compiled(numbers(2), {})
    found = {}
    compiled(numbers(2), found)
    assert list(found) == ["y"]


def test_objects_whose_changes_nothing_is_known_of():
    iterator = iter([1.0, 2.0, 3.0])
    compiled = rg.compile(lambda x: x * next(iterator))
    with pytest.warns(UserWarning, match="nothing is known"):
        assert compiled(rg.ones(1)).tolist() == [1]
    assert compiled(rg.ones(1)).tolist() == [2]


@pytest.mark.parametrize("kind", ["method", "partial", "callable"])
def test_hooks_without_python_code_run_at_each_call(kind):
    w = rg.ones(2, requires_grad=True)
    seen = []
    class_of_hook = type("Hook", (), {"__call__": seen.append})
    hooks = {"method": seen.append, "partial": functools.partial(seen.append), "callable": class_of_hook()}
    w.register_hook(hooks[kind])
    compiled = rg.compile(lambda: (w * 2).sum().backward())
    with pytest.warns(UserWarning, match="hooks"):
        compiled()
    for _ in range(4):  # the second call of a compiled function is the first that may run a program
        compiled()
    assert len(seen) == 5


def test_a_profiler_and_anomaly_mode_see_the_operators():
    compiled = rg.compile(lambda x: x.sin())
    x = numbers(2)
    with rg.autograd.profiler.profile() as prof, pytest.warns(UserWarning, match="eagerly: a profiler"):
        compiled(x)
    assert [event.name for event in prof.events()] == ["sin"]
    with rg.autograd.set_detect_anomaly(True), pytest.warns(UserWarning, match="anomaly"):
        compiled(x)


def test_a_profiler_of_python_stays_active():
    events = []
    compiled = rg.compile(lambda x: x + 1)
    sys.setprofile(lambda *event: events.append(event))
    try:
        with pytest.warns(UserWarning, match="sys.setprofile"):
            compiled(numbers(2))
        assert sys.getprofile() is not None
    finally:
        sys.setprofile(None)
    compiled(numbers(2))
    assert len(compiled.programs) == 1


def test_inside_a_transform_the_function_itself_is_transformed():
    compiled = rg.compile(lambda x: (x**3).sum())
    x = numbers(3)
    for _ in range(2):
        compiled(x)
        assert rg.func.grad(compiled)(x).tolist() == (3 * x**2).tolist()
        assert rg.func.vmap(compiled)(x[:, None]).tolist() == (x**3).tolist()


def test_a_compiled_function_inside_another_one_becomes_part_of_its_program():
    inner = rg.compile(lambda x: x * 2)
    outer = rg.compile(lambda x: inner(x) + 1)
    for i in range(3):
        assert outer(numbers(3, seed=i)).tolist() == (numbers(3, seed=i) * 2 + 1).tolist()
    assert len(outer.programs) == 1
    assert not inner.programs


def test_disabled_functions_and_is_compiling():
    seen = []

    @rg.compiler.disable
    def note(x):
        seen.append(x)

    def f(x):
        note(x)
        return x + rg.compiler.is_compiling()

    with pytest.warns(UserWarning, match="disable"):
        assert rg.compile(f)(rg.zeros(1)).tolist() == [1]
    assert len(seen) == 1
    assert rg.compile(f, disable=True) is f
    assert not rg.compiler.is_compiling()


def test_an_error_while_a_call_is_captured_is_that_of_the_function_and_is_tried_again():
    def f(x, wrong):
        if wrong:
            raise KeyError("wrong")
        return x + 1

    compiled = rg.compile(f)
    x = numbers(2)
    with pytest.raises(KeyError, match="wrong"):
        compiled(x, True)
    assert compiled(x, False).tolist() == (x + 1).tolist()
    assert compiled(x, False).tolist() == (x + 1).tolist()
    assert len(compiled.programs) == 1
    assert rg.is_grad_enabled()


def test_a_module_is_compiled_as_a_module():
    model = nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2))
    compiled = rg.compile(model.eval())
    x = numbers(4, 3)
    with rg.no_grad():
        for _ in range(3):
            assert observe(compiled(x)) == observe(model(x))
    assert isinstance(compiled, nn.Module)
    assert next(name for name, _ in compiled.named_parameters()) == "_orig_mod.0.weight"
    assert compiled.append.__self__ is model


def test_what_cannot_be_called_is_refused():
    with pytest.raises(TypeError, match="compile: expected a function or a Module, got int"):
        rg.compile(3)


def test_the_report_shows_operators_and_code():
    report = rg.compiler.explain(lambda x: (x * 2).sin())(numbers(2))
    assert report.fused_groups == (("mul", "sin"),)
    assert "Fused: 2 operators in 1 group" in str(report)
    assert report.ops_per_graph == (("mul", "sin"),)
    assert "def play(p0):" in str(report)
    assert "Runs eagerly: " in str(rg.compiler.explain(reads)(numbers(2)))


def test_no_garbage_is_collected_until_all_threads_have_captured_their_calls():
    inside, leave, collects, x = threading.Event(), threading.Event(), [], rg.ones(3)

    def first(x):
        inside.set()
        leave.wait(30)
        return x * 2

    def second(x):
        leave.set()
        other.join()
        collects.append(gc.isenabled())
        return x * 3

    with warnings.catch_warnings(action="ignore"):  # functions that wait are not compiled
        other = threading.Thread(target=rg.compile(first), args=(x,))
        other.start()
        assert inside.wait(30)
        rg.compile(second)(x)
    assert (collects, gc.isenabled()) == ([False], True)


def test_garbage_that_is_collected_during_a_call_is_no_part_of_it():
    class Garbage:
        def __init__(self):
            self.itself = self

        def __del__(self):
            collected.append(random.random())

    def count(phase, info):
        collected.append(phase)

    collected, threshold, x = [], gc.get_threshold(), rg.ones(3)
    Garbage()
    gc.callbacks.append(count)
    gc.set_threshold(1)
    try:
        program = rg.compile(lambda x: [x * n for n in range(1, 9)][-1], fullgraph=True)
        assert program(x).tolist() == [8, 8, 8]
        assert gc.isenabled()
        assert collected  # after the call, or before it
    finally:
        gc.set_threshold(*threshold)
        gc.callbacks.remove(count)


def test_threads_may_read_the_sources_of_functions_at_once():
    class Garbage:
        def __init__(self):
            self.itself = self

        def __del__(self):
            sum(range(300))  # the garbage collector runs this while a tree is made, and other threads may run then

    def read():
        for _ in range(10):
            [Garbage() for _ in range(200)]
            found.append(read_source(contextlib.contextmanager))

    found, threshold, interval = [], gc.get_threshold(), sys.getswitchinterval()
    gc.set_threshold(50)
    sys.setswitchinterval(1e-6)
    try:
        threads = [threading.Thread(target=read) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        gc.set_threshold(*threshold)
        sys.setswitchinterval(interval)
    assert len(found) == 40
    assert None not in found


def test_other_functions_of_optimizers_may_be_given_tensors():
    average = rg.optim.swa_utils.get_ema_avg_fn(0.9)
    compiled = rg.compile(lambda x, y: average(x, y, 1) * 2)
    for i in range(3):
        x, y = numbers(3) + i, numbers(3)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            assert observe(compiled(x, y)) == observe(average(x, y, 1) * 2)

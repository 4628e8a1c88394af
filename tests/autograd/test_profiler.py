"""The profiler: recorded events, counts, tables, trace files, and no effect after it ends."""

import json
import os
import threading
import weakref

import pytest

import retrograd as rg
from retrograd.autograd.anomaly_mode import is_anomaly_enabled, set_detect_anomaly
from retrograd.autograd.profiler import profile, record_function
from retrograd.autograd.profiler.report import OPERATOR, function_events
from retrograd.core import current
from retrograd.utils._python_dispatch import TensorDispatchMode


def named(prof, name):
    return [event for event in prof.events() if event.name == name]


def row(averages, key):
    (found,) = [average for average in averages if average.key == key]
    return found


def in_a_thread(function):
    thread = threading.Thread(target=function, name="another")
    thread.start()
    return thread


@pytest.fixture
def x():
    return rg.ones(2, 3)


@pytest.fixture
def step():
    """Return a profile of one forward and backward pass."""
    x = rg.ones(4, 3, dtype=rg.float64, requires_grad=True)
    with profile(record_shapes=True, profile_memory=True, with_stack=True) as prof:
        with record_function("loss", "first"):
            loss = (x * x.exp()).sum()
        loss.backward()
    return prof


@pytest.fixture(autouse=True)
def nothing_is_left_behind():
    before = current().level, current().watchers, current().grad_enabled
    yield
    assert (current().level, current().watchers, current().grad_enabled) == before


# ----------------------------------------------------------------------------------------------- recorded events


def test_operators_nodes_and_ranges_are_recorded_in_the_order_of_their_start(step):
    top = [event.name for event in step.events() if event.cpu_parent is None and event.kind != "operator"]
    assert top == ["loss", "SumBackward0", "MulBackward0", "ExpBackward0"]
    assert [child.name for child in named(step, "loss")[0].cpu_children] == ["exp", "mul", "sum"]
    starts = [event.time_range.start for event in step.events()]
    assert starts == sorted(starts)


def test_steps_that_run_backward_report_it(step):
    loss, *nodes = [event for event in step.events() if event.kind != "operator"]
    assert not any(event.is_backward for event in [loss, *loss.cpu_children])
    assert all(event.is_backward for node in nodes for event in [node, *node.cpu_children])


def test_operators_inside_a_node_are_its_children(step):
    (node,) = named(step, "ExpBackward0")
    (product,) = node.cpu_children
    assert product.name == "mul"
    assert product.cpu_parent is node


def test_self_time_is_total_time_without_that_of_children(step):
    for event in step.events():
        inside = sum(child.cpu_time_total for child in event.cpu_children)
        assert event.cpu_time_total == event.time_range.elapsed_us()
        assert event.self_cpu_time_total == pytest.approx(event.cpu_time_total - inside)
        assert event.self_cpu_time_total >= 0
        for child in event.cpu_children:
            assert event.time_range.start <= child.time_range.start <= child.time_range.end <= event.time_range.end


def test_self_times_add_up_to_the_time_of_the_outermost(step):
    outermost = sum(event.cpu_time_total for event in step.events() if event.cpu_parent is None)
    assert step.self_cpu_time_total == pytest.approx(outermost)
    assert step.self_cpu_time_total <= step.events().span


def test_times_are_microseconds(x, monkeypatch):
    ticks = iter(range(0, 10**9, 5000))
    monkeypatch.setattr("retrograd.autograd.profiler.recorder.perf_counter_ns", lambda: next(ticks))
    with profile() as prof:
        x * 2
    assert [event.cpu_time for event in named(prof, "mul")] == [5.0]


def test_an_operator_knows_the_node_that_it_made(step):
    (forward, *_), (node,) = named(step, "exp"), named(step, "ExpBackward0")
    assert forward.sequence_nr == node.sequence_nr
    assert forward.backward_time_total == node.cpu_time_total
    assert all(event.backward_time_total == 0 for event in step.events() if event.is_backward)


def test_an_operator_that_records_nothing_has_no_node():
    x = rg.ones(2, requires_grad=True)
    with profile() as prof:
        y = x * 2
        with rg.no_grad():
            x.exp()
        y.detach()
    assert [event.sequence_nr is None for event in prof.events()] == [False, True, True]


def test_shapes_are_those_of_the_inputs_and_of_a_nodes_cotangents(step):
    assert named(step, "mul")[0].input_shapes == [[4, 3], [4, 3]]
    assert named(step, "SumBackward0")[0].input_shapes == [[]]
    assert named(step, "MulBackward0")[0].input_shapes == [[4, 3]]
    assert named(step, "loss")[0].input_shapes is None


def test_numbers_have_the_shape_of_a_scalar(x):
    with profile(record_shapes=True) as prof:
        x * 2
    assert prof.events()[0].input_shapes == [[2, 3], []]


def test_memory_is_that_of_results():
    x = rg.ones(4, 3, dtype=rg.float64)
    with profile(profile_memory=True) as prof, record_function("all"):
        y = x * 2
        y.transpose(0, 1)
        y[1:]
        y.sum()
    sizes = {event.name: event.cpu_memory_usage for event in prof.events()}
    assert sizes["mul"] == 96
    assert sizes["transpose"] == 0
    assert sizes["sum"] == 8
    assert sizes["all"] == 104
    assert named(prof, "all")[0].self_cpu_memory_usage == 0


def test_memory_of_several_results_is_their_sum():
    x = rg.tensor([[2.0, 1.0], [0.0, 3.0]])
    with profile(profile_memory=True) as prof:
        values, places = x.max(dim=1)
    assert sum(event.cpu_memory_usage for event in prof.events()) == values.value.nbytes + places.value.nbytes


def test_allocations_of_operators_inside_an_operator_are_counted_once():
    def ran(name, start, end):
        return OPERATOR, name, start, end, None, None, 8, None, None

    fields = [*ran("inner", 1, 2), *ran("outer", 0, 3)]
    events = function_events(fields, (0, 4), threading.current_thread())
    found = {event.name: (event.cpu_memory_usage, event.self_cpu_memory_usage) for event in events}
    assert found == {"outer": (8, 0), "inner": (8, 8)}


def test_a_write_in_place_allocates_nothing():
    x = rg.ones(8)
    with profile(profile_memory=True) as prof:
        x.add_(1)
    assert sum(event.cpu_memory_usage for event in prof.events()) == 0
    assert x.tolist() == [2.0] * 8


def test_the_stack_leads_to_the_line_of_the_program(step):
    (forward, *_), (node,) = named(step, "exp"), named(step, "ExpBackward0")
    assert f"{__file__}:" in forward.stack[0]
    assert forward.stack[0].endswith(" in step")
    assert node.stack == forward.stack


def test_nothing_more_is_noted_than_requested(x):
    with profile() as prof:
        x * 2
    (event,) = prof.events()
    assert (event.input_shapes, event.stack, event.cpu_memory_usage) == (None, [], 0)


def test_results_and_gradients_are_those_without_a_profile():
    def run():
        x = rg.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
        (g,) = rg.autograd.grad((x @ x).exp().mean(), x, create_graph=True)
        (g * g).sum().backward()
        return x.grad.tolist()

    plain = run()
    with profile(record_shapes=True, profile_memory=True, with_stack=True):
        assert run() == plain


def test_the_grad_mode_stays_what_it_is():
    x = rg.ones(2, requires_grad=True)
    with rg.no_grad(), profile():
        assert not (x * 2).requires_grad
    with profile(), rg.no_grad():
        assert not (x * 2).requires_grad


def test_a_mode_that_is_set_inside_stays():
    try:
        with profile():
            rg.set_grad_enabled(False)
            set_detect_anomaly(True)
        assert not rg.is_grad_enabled()
        assert is_anomaly_enabled()
    finally:
        rg.set_grad_enabled(True)
        set_detect_anomaly(False)


def test_leaves_and_optimizers_work_inside():
    x = rg.ones(2)
    with profile():
        x.requires_grad = True
        (x * 3).sum().backward()
        rg.optim.SGD([x], lr=1.0).step()
    assert x.tolist() == [-2.0, -2.0]


def test_operators_under_a_transform_are_recorded():
    with profile() as prof:
        rg.func.grad(lambda x: (x * x).sum())(rg.ones(2))
    assert {"mul", "sum", "MulBackward0", "SumBackward0"} <= {event.name for event in prof.events()}


def test_nodes_made_in_a_backward_pass_are_linked_too():
    x = rg.ones(2, requires_grad=True)
    with profile() as prof:
        (g,) = rg.autograd.grad((x**3).sum(), x, create_graph=True)
        g.sum().backward()
    made = {e.sequence_nr for e in prof.events() if e.kind == "operator" and e.is_backward and e.sequence_nr}
    ran = {e.sequence_nr for e in prof.events() if e.kind == "backward"}
    assert made & ran


def test_values_are_not_kept_alive(x):
    with profile(record_shapes=True, profile_memory=True, with_stack=True) as prof:
        y = x * 2
        freed = weakref.ref(y), weakref.ref(y.value)
        del y
        assert [ref() for ref in freed] == [None, None]
    assert prof.events()


# --------------------------------------------------------------------------------------------- ranges, threads


def test_ranges_nest(x):
    with profile() as prof, record_function("outer"):
        with record_function("inner"):
            x * 2
        x + 2
    parents = {event.name: event.cpu_parent and event.cpu_parent.name for event in prof.events()}
    assert parents == {"outer": None, "inner": "outer", "mul": "inner", "add": "outer"}


def test_a_range_decorates_functions_that_call_themselves(x):
    @record_function("double", args="n")
    def double(x, n):
        return double(x * 2, n - 1) if n else x

    with profile() as prof:
        assert double(x, 2).tolist() == [[4.0] * 3] * 2
    assert [event.args for event in named(prof, "double")] == ["n", "n", "n"]
    assert named(prof, "double")[2].cpu_parent is named(prof, "double")[1]


def test_a_range_without_a_profile_does_nothing():
    with record_function("alone") as entered:
        assert entered.name == "alone"


def test_a_range_that_outlives_the_profile_is_not_in_it(x):
    prof, outer = profile(), record_function("outer")
    with prof:
        outer.__enter__()
        x * 2
    outer.__exit__(None, None, None)
    assert [event.name for event in prof.events()] == ["mul"]


def test_a_range_needs_a_name():
    with pytest.raises(TypeError, match="name must be a str, got int"):
        record_function(3)


def test_only_the_thread_that_entered_is_measured(x):
    with profile() as prof:
        in_a_thread(x.exp).join()
        x * 2
    assert [event.name for event in prof.events()] == ["mul"]
    assert prof.events()[0].thread == threading.get_native_id()


def test_the_thread_is_the_one_that_enters(x):
    prof = profile()

    def work():
        with prof:
            x * 2

    in_a_thread(work).join()
    assert prof.events().thread_name == "another"
    assert prof.events()[0].thread != threading.get_native_id()


def test_a_decorated_function_may_run_on_two_threads_at_once(x):
    inside, over = threading.Event(), threading.Event()
    there = profile()

    @record_function("work")
    def work(body):
        body()

    def other():
        with there:
            work(lambda: (x * 2, inside.set(), over.wait(60)))

    def start():
        x + 2
        threads.append(in_a_thread(other))
        assert inside.wait(60)

    threads = []
    with profile() as here:
        work(start)
    over.set()
    threads[0].join()
    assert [event.name for event in here.events()] == ["work", "add"]
    assert [event.name for event in there.events()] == ["work", "mul"]


def test_profiles_nest(x):
    with profile() as outer:
        x * 2
        with profile() as inner, record_function("range"):
            x + 2
    assert [event.name for event in inner.events()] == ["range", "add"]
    assert [event.name for event in outer.events()] == ["mul", "range", "add"]


# ---------------------------------------------------------------------------------------------- ends and errors


def test_an_exception_inside_leaves_everything_as_it_was(x):
    def stop(x):
        x * 2
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError), profile() as prof, record_function("part"):
        stop(x)
    assert [event.name for event in prof.events()] == ["part", "mul"]
    assert current().level is None


def test_an_operator_that_fails_leaves_the_others(x):
    other = rg.ones(4)
    with profile() as prof:
        with pytest.raises((RuntimeError, ValueError), match="add"):
            x + other
        x * 2
    assert [event.name for event in prof.events()] == ["mul"]


def test_a_profile_is_entered_once():
    prof = profile()
    with prof, pytest.raises(RuntimeError, match="entered already; make a new profile"):
        prof.__enter__()
    with pytest.raises(RuntimeError, match="entered already"):
        prof.__enter__()


def test_results_are_there_when_the_block_is_over():
    prof = profile()
    readers = [prof.events, prof.key_averages, prof.table, prof.total_average, lambda: prof.self_cpu_time_total]
    for read in readers:
        with pytest.raises(RuntimeError, match="no results before the block"):
            read()
    with prof:
        for read in readers:
            with pytest.raises(RuntimeError, match="no results before the block"):
                read()
    for read in readers:
        read()
    assert prof.function_events is prof.events()


def test_one_that_is_not_enabled_measures_nothing(x):
    with profile(enabled=False) as prof:
        assert current().level is None
        x * 2
    assert list(prof.events()) == []
    assert "Self CPU time total: 0.000us" in prof.key_averages().table()


# ---------------------------------------------------------------------------------------------------- averages


def test_averages_have_a_row_per_name(step):
    averages = step.key_averages()
    assert len({average.key for average in averages}) == len(averages)
    product = row(averages, "mul")
    events = named(step, "mul")
    assert product.count == len(events) == 4
    assert product.cpu_time_total == pytest.approx(sum(event.cpu_time for event in events))
    assert product.cpu_time == pytest.approx(product.cpu_time_total / 4)
    assert product.backward_time_total == named(step, "MulBackward0")[0].cpu_time
    assert product.cpu_memory_usage == sum(event.cpu_memory_usage for event in events)
    assert not product.is_backward
    assert row(averages, "MulBackward0").is_backward


def test_averages_by_input_shape():
    tensors = [rg.ones(n) for n in (2, 3, 2)]
    with profile(record_shapes=True) as prof:
        for tensor in tensors:
            tensor * 2
    found = {str(average.input_shapes): average.count for average in prof.key_averages(group_by_input_shape=True)}
    assert found == {"[[2], []]": 2, "[[3], []]": 1}


def test_averages_by_line(x):
    with profile(with_stack=True) as prof:
        for _ in range(3):
            x * 2
        x * 3
    counts = {average.stack[0]: average.count for average in prof.key_averages(group_by_stack_n=1)}
    assert sorted(counts.values()) == [1, 3]


def test_the_total_counts_every_event(step):
    total = step.total_average()
    assert total.count == len(step.events())
    assert total.self_cpu_time_total == pytest.approx(step.self_cpu_time_total)


# ------------------------------------------------------------------------------------------------------- tables


def lines(text):
    _, header, _, *rows = text.splitlines()
    return header, rows


def test_a_table_has_a_line_per_row_and_what_they_add_up_to(step):
    header, rows = lines(step.key_averages().table())
    assert header.split("  ")[0] == "Name"
    for title in ("Self CPU %", "CPU total", "# of Calls", "Backward", "CPU Mem"):
        assert title in header
    assert len(rows) == len(step.key_averages()) + 2
    assert rows[-1].startswith("Self CPU time total: ")
    assert rows[-1].endswith("profiled")


def test_a_printed_profile_is_its_table(step):
    assert str(step) == step.table()
    assert str(step.key_averages()) == step.key_averages().table()


def test_a_table_has_no_columns_without_content(x):
    with profile() as prof:
        x * 2
    header, _ = lines(prof.table())
    assert not any(title in header for title in ("Backward", "Mem", "Shapes", "Source"))


def test_events_in_a_table_have_shapes_and_lines(step):
    header, rows = lines(step.table())
    assert "Input Shapes" in header
    assert "Source Location" in header
    assert any("[[4, 3], [4, 3]]" in line for line in rows)


@pytest.mark.parametrize("key", ["count", "cpu_time", "cpu_time_total", "self_cpu_time_total", "cpu_memory_usage"])
def test_tables_are_sorted_by_any_number(step, key):
    averages = step.key_averages()
    largest = max(averages, key=lambda average: getattr(average, key))
    _, rows = lines(averages.table(sort_by=key))
    assert getattr(row(averages, rows[0].split()[0]), key) == getattr(largest, key)


def test_sorting_by_what_is_no_number_names_those_that_are(step):
    with pytest.raises(ValueError, match="can't sort by 'cuda_time'; there are cpu_time, count"):
        step.table(sort_by="cuda_time")


def test_a_table_says_how_many_rows_it_leaves_out(step):
    _, rows = lines(step.table(row_limit=2))
    assert len(rows) == 5
    assert rows[3] == f"... and {len(step.events()) - 2} more"
    _, rows = lines(step.table(row_limit=-1))
    assert len(rows) == len(step.events()) + 2


def test_long_names_are_cut_at_the_end_and_lines_at_the_start(x):
    with profile(with_stack=True) as prof, record_function("x" * 80):
        x * 2
    _, (cut, product, *_) = lines(prof.table(max_name_column_width=10, max_src_column_width=12))
    assert cut.startswith("xxxxxxx...  ")
    assert product.endswith("  ..." + prof.events()[1].stack[-1][-9:])


def test_a_table_of_the_outermost_with_a_headline(step):
    text = step.table(top_level_events_only=True, header="One step")
    assert text.startswith("One step\n---")
    assert "exp " not in text


# -------------------------------------------------------------------------------------------------------- trace


@pytest.fixture
def trace(step, tmp_path):
    step.export_chrome_trace(tmp_path / "trace.json")
    return json.loads((tmp_path / "trace.json").read_text())["traceEvents"]


def test_a_trace_has_a_slice_per_event(step, trace):
    slices = [record for record in trace if record["ph"] == "X"]
    assert [(s["name"], s["ts"], s["dur"]) for s in slices] == [
        (e.name, e.time_range.start, e.cpu_time) for e in step.events()
    ]
    assert {(s["pid"], s["tid"]) for s in slices} == {(os.getpid(), threading.get_native_id())}
    (loss,) = [s for s in slices if s["name"] == "loss"]
    assert loss["args"] == {"args": "first"}


def test_a_trace_names_process_and_thread(trace):
    named = {record["name"]: record["args"]["name"] for record in trace if record["ph"] == "M"}
    assert named == {"process_name": "retrograd", "thread_name": threading.current_thread().name}


def test_arrows_lead_from_operators_to_their_nodes(step, trace):
    at = {event.time_range.start: event.name for event in step.events()}
    starts = {record["id"]: at[record["ts"]] for record in trace if record["ph"] == "s"}
    ends = {record["id"]: at[record["ts"]] for record in trace if record["ph"] == "f"}
    assert sorted((starts[number], ends[number]) for number in starts) == [
        ("exp", "ExpBackward0"),
        ("mul", "MulBackward0"),
        ("sum", "SumBackward0"),
    ]
    assert starts.keys() == ends.keys()


def test_a_trace_that_fails_leaves_the_old_file(step, tmp_path, monkeypatch):
    path = tmp_path / "trace.json"
    path.write_text("old")
    monkeypatch.setattr("retrograd.autograd.profiler.trace_file.json.dumps", lambda record: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        step.export_chrome_trace(path)
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["trace.json"]


def test_an_empty_profile_makes_a_trace_too(tmp_path):
    with profile() as prof:
        pass
    prof.export_chrome_trace(str(tmp_path / "empty.json"))
    records = json.loads((tmp_path / "empty.json").read_text())["traceEvents"]
    assert all(record["ph"] == "M" for record in records)


def test_averages_make_no_trace(step, tmp_path):
    with pytest.raises(ValueError, match="averages have no place in time"):
        step.key_averages().export_chrome_trace(tmp_path / "trace.json")
    assert os.listdir(tmp_path) == []


def test_times_of_a_table_are_in_the_requested_unit(step):
    table = step.key_averages().table(time_unit="s")
    assert "ms" not in table.rpartition("Self CPU time total")[0]
    with pytest.raises(ValueError, match=r"time_unit must be one of \['s', 'ms', 'us'\]"):
        step.key_averages().table(time_unit="hours")


def test_metadata_are_stored_in_the_trace(step, tmp_path):
    step.export_chrome_trace(tmp_path / "trace.json", {"run": 3})
    assert json.loads((tmp_path / "trace.json").read_text())["metadata"] == {"run": 3}


@pytest.mark.parametrize("setting", [{"use_cuda": True}, {"use_device": "cuda"}, {"with_flops": True}])
def test_settings_that_measure_nothing_here_warn(setting):
    with pytest.warns(UserWarning, match=f"{next(iter(setting))}=.* is not measured"):
        profile(**setting)


class Unchanged(TensorDispatchMode):
    def __tensor_dispatch__(self, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))


OBSERVERS = {
    "profile": profile,
    "autocast": lambda: rg.autocast("cpu"),
    "mode": Unchanged,
}
SPLITTERS = {
    "unbind": lambda x: x.unbind(0),
    "split": lambda x: x.split([1, 1]),
    "chunk": lambda x: x.chunk(3, dim=1),
}


@pytest.mark.parametrize("split", SPLITTERS.values(), ids=SPLITTERS)
@pytest.mark.parametrize("observer", OBSERVERS.values(), ids=OBSERVERS)
def test_code_that_observes_operators_leaves_the_parts_of_a_tensor_in_one_node(observer, split):
    base = rg.ones(2, 3, requires_grad=True) * 2
    expected = split(base)[0].grad_fn
    with observer():
        parts = split(base)
    assert {part.grad_fn.name() for part in parts} == {expected.name()}
    assert len({part.grad_fn for part in parts}) == 1


def test_steps_of_optimizers_are_ranges_with_the_names_of_pytorch():
    class Mine(rg.optim.SGD):
        pass

    x = rg.ones(2, requires_grad=True)
    optimizer = Mine([x], lr=0.1)
    x.sum().backward()
    with profile() as prof:
        optimizer.step()
    assert [event.name for event in prof.events() if event.cpu_parent is None] == ["Optimizer.step#Mine.step"]

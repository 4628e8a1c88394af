"""Collective operations give each rank the values that PyTorch's names promise, over threads and MPI."""

import ast
import contextlib
import datetime
import json
import re
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

import retrograd as rg
import retrograd.distributed as dist
from retrograd.distributed.groups import initialized_group
from retrograd.distributed.nn import functional as differentiable
from retrograd.distributed.work import Work
from retrograd.pipelining.transports import PeerLost, RankMismatchError
from retrograd.pipelining.transports.fingerprint import Fingerprint
from retrograd.pipelining.transports.mpi import LOST

from ..rank_scripts import run_ranks
from . import differing_ranks, subgroup_errors
from .collective_cases import CASES, run_cases

SHARDED = ["sharded_states", "sharded_gradients", "sharded_parameters"]
HERE = Path(__file__).parent


def over_mpi(tmp_path, script, *arguments, ranks=2):
    """Return what the ranks of a script over MPI have written."""
    pytest.importorskip("mpi4py")
    command = [sys.executable, "-m", "retrograd", "run", "-n", str(ranks), "--timeout", "60", str(HERE / script)]
    subprocess.run([*command, str(tmp_path / "found"), *arguments], check=True, timeout=240)
    return [json.loads(Path(f"{tmp_path / 'found'}.{rank}").read_text()) for rank in range(ranks)]


def over_sockets(tmp_path, script, *arguments, ranks=2):
    """Return what the ranks of a script have written that find each other by environment variables."""
    run_ranks(ranks, HERE / script, [str(tmp_path / "found"), *arguments])
    return [json.loads(Path(f"{tmp_path / 'found'}.{rank}").read_text()) for rank in range(ranks)]


over_processes = pytest.mark.parametrize("over", [over_mpi, over_sockets])


@over_processes
def test_operations_give_the_same_over_processes_as_over_threads(tmp_path, over):
    threads = dist.run_threads(lambda: run_cases(rg, dist), 2)
    processes = over(tmp_path, "collective_cases.py", "retrograd")
    for rank in range(2):
        for name in CASES:
            assert processes[rank][name] == json.loads(json.dumps(threads[rank][name])), name


@over_processes
def test_replicas_and_sharded_models_train_over_processes_like_one_model(tmp_path, over):
    for found in over(tmp_path, "replicas_script.py"):
        assert list(found) == ["replicas", "accumulated", "replicas_by_messages", *SHARDED]
        assert max(found.values()) < 1e-12


@over_processes
def test_ranks_that_run_different_operations_over_processes_get_an_error_that_names_them(tmp_path, over):
    results = over(tmp_path, "mismatch_script.py")
    for found in results:
        assert all(text.startswith("RankMismatchError") for text in found[:13]), found
        assert "tensor: float32[2] on rank 0; float32[3] on rank 1" in found[0]
        assert "call: all_reduce on rank 0; barrier on rank 1" in found[1]
        assert "call: barrier on rank 0; step on rank 1" in found[2]
        assert "tensor: float32[2] on rank 0; float32[3] on rank 1" in found[3]
        assert "call: all_reduce on rank 0; barrier on rank 1" in found[4]
        assert "ranks: [[0]] on rank 0; [[1]] on rank 1" in found[5]
        assert "call: all_reduce on rank 0; new_group on rank 1" in found[6]
        assert "ranks: [[0, 1]] on rank 0; [[0], [1]] on rank 1" in found[7]
        assert "dtype: int32 on rank 0; float32 on rank 1" in found[8]
        assert "rank 0 sends 1 rows to rank 0, which expects 2" in found[9]
        assert all("call: all_reduce on rank 0; barrier on rank 1" in text for text in found[10:12])
        assert "tensor: float32[2] on rank 0; float32[3] on rank 1" in found[12]
    # After an operation that one rank has given up, there are errors and no wrong numbers.
    slow, late = results
    assert slow[13].startswith("TimeoutError: rank 0 has waited 0.5 s for the other ranks in all_reduce")
    assert slow[14].startswith("RuntimeError: all_reduce: all_reduce has ended at its timeout on this rank")
    assert late[13].startswith("PeerLost")


@over_processes
def test_ranks_that_differ_are_refused_over_processes_in_the_words_of_threads(tmp_path, over):
    threads = dist.run_threads(lambda: {name: differing_ranks.refusal(name) for name in differing_ranks.CASES}, 2)
    for found, of_threads in zip(over(tmp_path, "differing_ranks.py"), threads, strict=True):
        assert found == of_threads
        assert all("on rank 0;" in message for message in found.values())


@pytest.mark.parametrize("transport", ["threads", "mpi"])
def test_errors_of_a_group_name_ranks_by_their_numbers_among_all(tmp_path, transport):
    if transport == "threads":
        results = dist.run_threads(subgroup_errors.messages, 3)
    else:
        results = over_mpi(tmp_path, "subgroup_errors.py", ranks=3)
    for name in subgroup_errors.CASES:
        texts = [results[rank][name] for rank in (1, 2)]
        named = re.findall(r"\branks? (\d+(?:-\d+)?)|only on (\d+)", "\n".join(texts))
        assert named, texts
        assert {number for pair in named for number in pair if number} <= {"1", "2", "1-2"}, texts


def test_a_run_with_a_rank_that_stands_still_ends_with_one_report_of_who_waits_for_whom(tmp_path):
    pytest.importorskip("mpi4py")
    script = tmp_path / "script.py"
    script.write_text(
        "import os, signal\nimport retrograd.distributed as dist\ndist.init_process_group()\ndist.barrier()\n"
        "if dist.get_rank() == 1:\n    os.kill(os.getpid(), signal.SIGSTOP)\ndist.barrier()\n"
    )
    # any load: rank 1 never comes
    command = [sys.executable, "-m", "retrograd", "run", "-n", "3", "--timeout", "1", str(script)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)
    assert ended.returncode == LOST, ended.stderr
    assert ended.stderr.count("Traceback") == 1
    report = (
        r"TimeoutError: rank (0|2) has waited 1 s for the other ranks in barrier; all ranks of the group must call it:"
    )
    states = "  rank 0: waits in barrier\n  rank 1: no answer\n  rank 2: waits in barrier\n"
    first = re.search(rf"^{report}\n{states}", ended.stderr, re.MULTILINE)
    assert first, ended.stderr
    assert f"retrograd: rank {2 - int(first[1])} ends with the error of rank {first[1]}: TimeoutError" in ended.stderr


def test_no_call_of_mpi_waits_for_other_ranks_without_a_limit():
    waiting = {
        "Allgather", "Allgatherv", "Allreduce", "Alltoall", "Alltoallv", "Barrier", "Bcast", "Dup", "Gather", "Recv",
        "Reduce", "Scatter", "Send", "Split", "Ssend", "Wait", "Waitall", "allgather", "allreduce", "alltoall", "bcast",
    }  # fmt: skip
    found = set()
    for path in Path(rg.__file__).parent.rglob("*.py"):
        text = path.read_text()
        if "comm." in text:
            calls = (node.func for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call))
            of_objects = (call for call in calls if isinstance(call, ast.Attribute) and call.attr in waiting)
            found |= {(path.name, ast.unparse(call)) for call in of_objects}
    assert found == {("mpi.py", "message.Recv")}  # of a message that has arrived


def wrong_dtype_or_size():
    """Yield operations of two ranks with tensors that do not fit each other, by name."""
    whole, short, two = rg.ones(2), rg.ones(1), [rg.ones(2), rg.ones(2)]
    for kind, x in (("dtype", rg.ones(2, dtype=rg.float64)), ("size", rg.ones(3))):
        yield f"all_gather {kind}", lambda x=x: dist.all_gather([x.clone(), x.clone()], whole)
        yield f"gather {kind}", lambda x=x: dist.gather(whole, None if dist.get_rank() else [x.clone(), x.clone()])
        yield f"scatter {kind}", lambda x=x: dist.scatter(x, None if dist.get_rank() else two)
        yield f"reduce_scatter {kind}", lambda x=x: dist.reduce_scatter(x, two)
        yield f"all_to_all {kind}", lambda x=x: dist.all_to_all([x, x.clone()], two)
        yield f"all_to_all_single {kind}", lambda x=x: dist.all_to_all_single(x[:2].reshape(-1, x.numel() - 1), whole)
        yield f"all_gather_into_tensor {kind}", lambda x=x: dist.all_gather_into_tensor(x, short)
        yield f"reduce_scatter_tensor {kind}", lambda x=x: dist.reduce_scatter_tensor(short, x)
        yield f"broadcast {kind}", lambda x=x: dist.broadcast(x if dist.get_rank() else whole, 0)
        yield f"recv {kind}", lambda x=x: dist.recv(x, 0) if dist.get_rank() else dist.send(whole, 1)


@pytest.mark.parametrize("name", [name for name, _ in wrong_dtype_or_size()])
def test_no_operation_converts_or_reshapes_a_tensor_that_does_not_fit(name):
    def script():
        call = dict(wrong_dtype_or_size())[name]
        if name.startswith(("gather", "recv")) and dist.get_rank() == int(name.startswith("gather")):
            return call()  # this rank only sends
        with pytest.raises((ValueError, RankMismatchError)):
            call()
        return None

    with contextlib.suppress(PeerLost):  # the other rank has refused the call
        dist.run_threads(script, 2)


def test_a_mean_of_whole_numbers_is_refused_as_by_pytorch():
    def script():
        with pytest.raises(RuntimeError, match="result type Float can't be cast"):
            dist.all_reduce(rg.ones(2, dtype=rg.int64), dist.ReduceOp.AVG)
        return True

    assert all(dist.run_threads(script, 2))


def total():
    """Return the sum of ones over the ranks."""
    x = rg.ones(1)
    dist.all_reduce(x)
    return x.item()


def test_ranks_as_threads_agree_again_after_an_operation_in_the_background_or_a_step_has_differed():
    def script():
        rank = dist.get_rank()
        with pytest.raises(RankMismatchError, match=r"tensor: float32\[2\] on rank 0; float32\[3\] on rank 1"):
            dist.all_reduce(rg.ones(2 + rank), async_op=True).wait()
        sums = [total()]
        step = initialized_group().launch, (lambda link: None, Fingerprint.of_call("step"))
        call, arguments = step if rank else (dist.barrier, ())
        with pytest.raises(RankMismatchError, match="call: barrier on rank 0; step on rank 1"):
            call(*arguments)
        return [*sums, total()]

    assert dist.run_threads(script, 2) == [[2.0, 2.0]] * 2


def test_an_operation_that_another_rank_does_not_call_ends_at_the_timeout_although_that_rank_answers():
    def script():
        if dist.get_rank() == 1:
            dist.recv_object_list([None], 0)
            return None
        dist.destroy_process_group()
        dist.init_process_group(timeout=datetime.timedelta(seconds=0.05))  # any load: rank 1 never comes
        with pytest.raises(TimeoutError, match=r"rank 0 has waited 0\.05 s for the other ranks in all_reduce"):
            total()
        with pytest.raises(RuntimeError, match="all_reduce has ended at its timeout on this rank"):
            total()
        return dist.send_object_list([0], 1)

    assert dist.run_threads(script, 2) == [None, None]


def test_a_monitored_barrier_names_the_ranks_that_do_not_come(monkeypatch):
    monkeypatch.setattr("retrograd.distributed.work.GRACE", 0)  # rank 1 waits for the answer of rank 0 nevertheless

    def script():
        dist.monitored_barrier()
        if dist.get_rank() > 1:
            return "not called"
        with pytest.raises(RuntimeError) as caught:
            dist.monitored_barrier(timeout=datetime.timedelta(seconds=5), wait_all_ranks=True)
        return str(caught.value)

    missing = "monitored_barrier: ranks 2-3 have not called it within 5 s"
    assert dist.run_threads(script, 4) == [missing, missing, "not called", "not called"]


def test_each_rank_gets_its_part_of_reduced_and_exchanged_tensors():
    def script():
        rank = dist.get_rank()
        x = rg.arange(6.0).double() + 10 * rank
        reduced, exchanged, uneven = (rg.zeros(n, dtype=rg.float64) for n in (2, 6, 3 * (rank + 1)))
        dist.reduce_scatter_tensor(reduced, x, dist.ReduceOp.AVG)
        dist.all_to_all_single(exchanged, x)
        dist.all_to_all_single(uneven, x, [rank + 1] * 3, [1, 2, 3])
        return reduced.tolist(), exchanged.tolist(), uneven.tolist()

    sizes, starts = (1, 2, 3), (0, 1, 3)
    for rank, (reduced, exchanged, uneven) in enumerate(dist.run_threads(script, 3)):
        assert reduced == [10.0 + 2 * rank, 11.0 + 2 * rank]
        assert exchanged == [10.0 * source + 2 * rank + i for source in range(3) for i in range(2)]
        assert uneven == [10.0 * source + starts[rank] + i for source in range(3) for i in range(sizes[rank])]


def test_a_group_of_some_ranks_numbers_them_in_its_order_and_leaves_the_others_out():
    def script():
        rank, x = dist.get_rank(), rg.tensor([float(dist.get_rank() + 1)])
        pair = dist.new_group([2, 0], sort_ranks=False)
        dist.all_reduce(x, group=pair)
        gathered = [None] * 2
        dist.all_gather_object(gathered, rank, group=pair)
        y = rg.tensor([float(rank)])
        dist.broadcast(y, src=2, group=pair)
        return x.item(), gathered, y.item(), dist.get_rank(pair), dist.get_world_size(pair)

    assert dist.run_threads(script, 3) == [
        (4.0, [2, 0], 2.0, 1, 2),
        (2.0, [None, None], 1.0, -1, -1),
        (4.0, [2, 0], 2.0, 0, 2),
    ]


def test_handles_of_several_operations_complete_in_any_order():
    def script():
        tensors = [rg.full((3,), float(i + dist.get_rank())) for i in range(4)]
        works = [dist.all_reduce(x, async_op=True) for x in tensors]
        for work in reversed(works):
            assert work.wait()
            assert work.is_completed()
        return [x.tolist() for x in tensors], [work.result()[0].tolist() for work in works]

    for values, results in dist.run_threads(script, 3):
        assert values == results == [[3.0 * i + 3.0] * 3 for i in range(4)]


def test_a_rank_does_not_sleep_while_the_parts_of_a_large_array_move(monkeypatch):
    def move():
        yield lambda: remaining.pop() is None  # MPI moves a part only when it is asked whether it is done
        return []

    slept = []
    monkeypatch.setattr("retrograd.pipelining.transports.rank_messaging.time.sleep", slept.append)
    dist.init_process_group()
    remaining = [None, *[0] * 3000]
    Work(initialized_group(None), "all_reduce", move()).wait()
    assert not slept
    remaining = [None, *[0] * 9000]  # a rank that is late
    Work(initialized_group(None), "all_reduce", move()).wait()
    assert slept
    dist.destroy_process_group()


def test_an_operation_that_another_rank_does_not_start_ends_with_an_error_that_names_it():
    def script():
        if dist.get_rank() == 0:
            with pytest.raises(PeerLost, match="the script of rank 1 is over, while rank 0 is in recv"):
                dist.recv(rg.zeros(1), 1)
        return True

    assert dist.run_threads(script, 2) == [True, True]


def test_different_operations_with_handles_are_refused_on_every_rank():
    def script():
        work = dist.all_reduce(rg.ones(2), op=list(dist.ReduceOp)[dist.get_rank()], async_op=True)
        with pytest.raises(RankMismatchError, match="op: "):
            work.wait()
        return True

    assert dist.run_threads(script, 2) == [True, True]


def test_writing_a_result_counts_as_a_write():
    def script():
        x = rg.ones(2, requires_grad=True)
        y = x * 2
        z = y * y
        dist.all_reduce(y.detach())
        with pytest.raises(RuntimeError, match="modified"):
            z.sum().backward()
        return True

    assert all(dist.run_threads(script, 2))


def test_gradients_of_gradients_pass_through_operations():
    def script():
        x = rg.tensor([1.0, 2.0], dtype=rg.float64, requires_grad=True)
        (first,) = rg.autograd.grad((differentiable.all_reduce(x**3) ** 2).sum(), x, create_graph=True)
        (second,) = rg.autograd.grad(first.sum(), x)
        return first.tolist(), second.tolist()

    # With s the sum of x^3 over two ranks, the gradient of both ranks' s^2 is 12 s x^2, and that of its sum 120 x^4.
    for first, second in dist.run_threads(script, 2):
        np.testing.assert_allclose(first, [24.0 * x**5 for x in (1.0, 2.0)])
        np.testing.assert_allclose(second, [120.0 * x**4 for x in (1.0, 2.0)])


def test_a_reduction_that_is_not_linear_has_no_gradient():
    def script():
        x = rg.ones(2, requires_grad=True)
        out = differentiable.all_reduce(x * 1, dist.ReduceOp.MAX)
        with pytest.raises(NotImplementedError, match=r"only ReduceOp.SUM and ReduceOp.AVG have a gradient"):
            out.sum().backward()
        return True

    assert all(dist.run_threads(script, 2))


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: dist.reduce(rg.ones(1)), ValueError, "reduce: no rank is given"),
        (lambda: dist.send(rg.ones(1), 0, group_dst=0), ValueError, "given twice"),
        (lambda: dist.recv([1.0], 0), TypeError, "expected a Tensor, got list"),
        (lambda: dist.gather(rg.ones(1)), ValueError, "gather_list must be specified on rank 0"),
        (lambda: dist.scatter(rg.ones(1), [rg.ones(1)] * 2), ValueError, "the list has 2 tensors for 1 ranks"),
        (lambda: dist.all_gather_into_tensor(rg.ones(3), rg.ones(2)), ValueError, "1 times the elements"),
        (lambda: dist.all_to_all_single(rg.ones(3), rg.ones(3), [2], [3]), ValueError, r"output sizes \[2\]"),
        (lambda: dist.all_gather(rg.ones(1), rg.ones(1)), TypeError, "expected a list of tensors, got Tensor"),
        (lambda: dist.new_group([0], backend="nope"), ValueError, "new_group: there is no backend 'nope'"),
        (lambda: dist.scatter_object_list([], [1]), ValueError, "list of size at least 1"),
        (lambda: dist.init_device_mesh("cpu", (2,)), RuntimeError, "needs 2 ranks, and there are 1"),
        (lambda: dist.init_device_mesh("cpu", (1,))["a"], RuntimeError, "without mesh_dim_names"),
        (lambda: dist.init_device_mesh("cpu", (1,), mesh_dim_names=("a", "b")), RuntimeError, "1 different names"),
    ],
)
def test_calls_that_mean_nothing_are_refused_before_anything_is_sent(call, error, words):
    dist.init_process_group()
    try:
        with pytest.raises(error, match=words):
            call()
    finally:
        dist.destroy_process_group()


def test_a_mesh_of_two_dimensions_has_a_group_for_each_row_and_column():
    def script():
        mesh = dist.init_device_mesh("cpu", (2, 3), mesh_dim_names=("replica", "stage"))
        sums = []
        for name in ("replica", "stage"):
            x = rg.tensor([float(dist.get_rank())])
            dist.all_reduce(x, group=mesh[name].get_group())
            sums.append(x.item())
        return sums, mesh.get_coordinate(), mesh["replica"].mesh.tolist()

    for rank, (sums, place, column) in enumerate(dist.run_threads(script, 6)):
        row, stage = divmod(rank, 3)
        assert sums == [2 * stage + 3, 9 * row + 3]
        assert (place, column) == ([row, stage], [stage, stage + 3])


def test_receives_take_messages_in_the_order_in_which_they_started():
    started, sent = threading.Event(), threading.Event()

    def script():
        if dist.get_rank() == 0:
            started.wait()
            for i in range(3):
                dist.send(rg.full((1,), float(i)), 1)
            sent.set()
            return None
        found = [rg.zeros(1) for _ in range(3)]
        works = [dist.irecv(x, 0) for x in found]
        started.set()
        sent.wait()
        assert works[2].is_completed()
        return [x.item() for x in found]

    assert dist.run_threads(script, 2)[1] == [0, 1, 2]

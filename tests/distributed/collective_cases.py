"""Cases of collective operations that run with PyTorch over gloo and with retrograd, as a script or in a thread.

    python collective_cases.py RESULTS LIBRARY

The cases are written for two ranks.  Each returns numbers in lists.
"""

import importlib
import json
import os
import sys
from pathlib import Path

CASES = {}


def case(function):
    """Register a case: a function of the library, its module `distributed` and this rank."""
    CASES[function.__name__] = function
    return function


def run_cases(library, distributed):
    """Return the results of all cases by name."""
    return {name: each(library, distributed, distributed.get_rank()) for name, each in CASES.items()}


def filled(lib, rank, *shape, dtype=None):
    """Return whole numbers that differ between ranks and elements."""
    count = 1
    for size in shape:
        count *= size
    return (lib.arange(count, dtype=dtype or lib.float64) + 10 * (rank + 1)).reshape(shape)


def outcome(call):
    """Return the name of the error that a call raises."""
    try:
        call()
    except Exception as error:
        return type(error).__name__
    return "no error"


@case
def sends_and_receives(lib, dist, rank):
    found, other = lib.zeros(2, 3, dtype=lib.float64), 1 - rank
    if rank == 0:
        dist.send(filled(lib, rank, 2, 3), 1)
        source = dist.recv(found, 1, tag=3)
    else:
        source = dist.recv(found, 0)
        dist.send(filled(lib, rank, 2, 3), 0, tag=3)
    again = lib.zeros(4)
    works = [dist.irecv(again, other), dist.isend(filled(lib, rank, 4, dtype=lib.float32), other)]
    for work in works:
        work.wait()
    return [found.tolist(), source, again.tolist(), [work.is_completed() for work in works]]


@case
def messages_of_one_sender_arrive_in_order(lib, dist, rank):
    found = [lib.zeros(1) for _ in range(3)]
    if rank == 0:
        for i in range(3):
            dist.send(lib.full((1,), float(i)), 1)
        return []
    for work in [dist.irecv(x, 0) for x in found]:
        work.wait()
    return [x.item() for x in found]


@case
def receive_from_any_rank(lib, dist, rank):
    if rank == 0:
        dist.send(lib.ones(2), 1)
        return []
    found = lib.zeros(2)
    return [dist.recv(found), found.tolist()]


@case
def batches_of_sends_and_receives(lib, dist, rank):
    found, other = lib.zeros(3), 1 - rank
    ops = [dist.P2POp(dist.isend, filled(lib, rank, 3, dtype=lib.float32), other), dist.P2POp(dist.irecv, found, other)]
    for work in dist.batch_isend_irecv(ops):
        work.wait()
    return found.tolist()


@case
def reductions_of_all_dtypes(lib, dist, rank):
    results = []
    for dtype in (lib.float64, lib.float32, lib.float16, lib.int64, lib.int32, lib.int8, lib.uint8):
        for op in ("SUM", "PRODUCT", "MIN", "MAX"):
            x = (filled(lib, rank, 5, dtype=lib.int64) % 7).to(dtype)
            dist.all_reduce(x, op=getattr(dist.ReduceOp, op))
            results.append(x.tolist())
    for op in ("BAND", "BOR", "BXOR"):
        x = filled(lib, rank, 5, dtype=lib.int64)
        dist.all_reduce(x, op=getattr(dist.ReduceOp, op))
        results.append(x.tolist())
    return results


@case
def reductions_with_nan(lib, dist, rank):
    results = []
    for op in ("SUM", "PRODUCT"):
        x = lib.tensor([float("nan"), 1.0] if rank else [1.0, float("inf")])
        dist.all_reduce(x, op=getattr(dist.ReduceOp, op))
        results.append([str(v) for v in x.tolist()])
    return results


@case
def reductions_of_columns_scalars_and_nothing(lib, dist, rank):
    base = filled(lib, rank, 4, 4)
    dist.all_reduce(base.t())
    scalar, empty = filled(lib, rank), lib.zeros(0)
    dist.all_reduce(scalar)
    dist.all_reduce(empty)
    return [base.tolist(), scalar.item(), list(empty.shape)]


@case
def reduce_to_one_rank(lib, dist, rank):
    results = []
    for dst in (0, 1):
        x = filled(lib, rank, 2, 2)
        dist.reduce(x, dst)
        results.append(x.tolist() if rank == dst else "kept")
    return results


@case
def broadcasts(lib, dist, rank):
    x, y = filled(lib, rank, 3), filled(lib, rank, 2, dtype=lib.int32)
    dist.broadcast(x, 1)
    dist.broadcast(y, group_src=0)
    return [x.tolist(), y.tolist()]


@case
def gathering_and_scattering(lib, dist, rank):
    x, everything = filled(lib, rank, 2), [lib.zeros(2, dtype=lib.float64) for _ in range(2)]
    dist.all_gather(everything, x)
    listed = [lib.zeros(2, dtype=lib.float64) for _ in range(2)] if rank == 1 else None
    dist.gather(x, listed, dst=1)
    part = lib.zeros(3)
    source = [lib.full((3,), 5.0), lib.full((3,), 6.0)] if rank == 0 else None
    dist.scatter(part, source, src=0)
    joined = lib.zeros(4, dtype=lib.float64)
    dist.all_gather_into_tensor(joined, x)
    return [
        [y.tolist() for y in everything],
        [y.tolist() for y in listed or []],
        part.tolist(),
        joined.tolist(),
    ]


@case
def reduce_scatters(lib, dist, rank):
    whole, part, other = filled(lib, rank, 4, 2), lib.zeros(2, 2, dtype=lib.float64), lib.zeros(3, dtype=lib.float64)
    dist.reduce_scatter_tensor(part, whole)
    dist.reduce_scatter(other, [filled(lib, rank, 3), filled(lib, rank + 5, 3)])
    return [part.tolist(), other.tolist(), whole.tolist()]


@case
def all_to_alls(lib, dist, rank):
    x, equal = filled(lib, rank, 4, 2), lib.zeros(4, 2, dtype=lib.float64)
    dist.all_to_all_single(equal, x)
    sent, received = ([1, 3], [1, 2]) if rank == 0 else ([2, 2], [3, 2])
    uneven = lib.zeros(sum(received), 2, dtype=lib.float64)
    dist.all_to_all_single(uneven, x, received, sent)
    outputs = [lib.zeros(2, dtype=lib.float64) for _ in range(2)]
    dist.all_to_all(outputs, [filled(lib, rank, 2), filled(lib, rank + 4, 2)])
    return [equal.tolist(), uneven.tolist(), [y.tolist() for y in outputs]]


@case
def objects(lib, dist, rank):
    everything, listed, mine = [None] * 2, [rank, {"a": rank}], [None]
    dist.all_gather_object(everything, {"rank": rank, "x": filled(lib, rank, 2)[0].item()})
    gathered = [None] * 2 if rank == 0 else None
    dist.gather_object(f"text {rank}", gathered, dst=0)
    dist.broadcast_object_list(listed, src=1)
    dist.scatter_object_list(mine, ["for 0", "for 1"] if rank == 1 else None, src=1)
    sent = [7, "x"] if rank == 0 else [None, None]
    if rank == 0:
        dist.send_object_list(sent, dst=1)
    else:
        dist.recv_object_list(sent, src=0)
    return [everything, gathered, listed, mine, sent]


@case
def handles(lib, dist, rank):
    x, y, whole = filled(lib, rank, 3), filled(lib, rank, 3), lib.zeros(6, dtype=lib.float64)
    works = [
        dist.all_reduce(x, async_op=True),
        dist.broadcast(y, 1, async_op=True),
        dist.all_gather_into_tensor(whole, filled(lib, rank, 3), async_op=True),
        dist.barrier(async_op=True),
    ]
    waited = [work.wait() for work in reversed(works)]
    return [waited, [work.is_completed() for work in works], x.tolist(), y.tolist(), whole.tolist()]


@case
def groups(lib, dist, rank):
    alone, both, swapped = dist.new_group([1]), dist.new_group(), dist.new_group([1, 0])
    x, y = filled(lib, rank, 2), filled(lib, rank, 2)
    dist.all_reduce(x, group=alone)
    dist.broadcast(y, src=1, group=both)
    other, subgroups = dist.new_subgroups_by_enumeration([[0], [1]])
    return [
        x.tolist(), y.tolist(), dist.get_rank(alone), dist.get_world_size(alone), dist.get_rank(swapped),
        dist.get_process_group_ranks(both), dist.get_world_size(other), len(subgroups),
        dist.get_group_rank(both, 1), dist.get_global_rank(both, 0), dist.get_process_group_ranks(other),
    ]  # fmt: skip


@case
def parameters_that_need_gradients(lib, dist, rank):
    x = filled(lib, rank, 2).requires_grad_()
    dist.all_reduce(x.data)
    return [x.tolist(), x.requires_grad, x.is_leaf]


@case
def errors(lib, dist, rank):
    return [
        outcome(lambda: dist.send(lib.ones(1), rank)),
        outcome(lambda: dist.P2POp(dist.send, lib.ones(1), 0)),
        outcome(lambda: dist.new_group([5])),
        outcome(lambda: dist.new_group([0, 0])),
    ]


@case
def meshes(lib, dist, rank):
    mesh = dist.device_mesh.init_device_mesh("cpu", (2, 1), mesh_dim_names=("replica", "stage"))
    x = filled(lib, rank, 2)
    dist.all_reduce(x, group=mesh.get_group("replica"))
    y = filled(lib, rank, 2)
    dist.all_reduce(y, group=mesh["stage"].get_group())
    return [
        x.tolist(), y.tolist(), list(mesh.shape), mesh.ndim, mesh.size(), mesh.size(1), mesh.mesh.tolist(),
        mesh.get_local_rank("replica"), mesh.get_local_rank(1), mesh.get_rank(), list(mesh.get_coordinate()),
        list(mesh.mesh_dim_names), mesh["replica"].mesh.tolist(), list(mesh["replica"].mesh_dim_names),
        list(mesh["replica", "stage"].shape), mesh.device_type, len(mesh.get_all_groups()),
        outcome(lambda: mesh["none"]), outcome(lambda: mesh.get_group()), outcome(lambda: mesh.get_group("none")),
    ]  # fmt: skip


def with_gradient(lib, rank, function):
    """Return the value of a function of a tensor, and the gradient of a weighted sum of it."""
    x = filled(lib, rank, 4).requires_grad_()
    out = function(x)
    weights = lib.arange(out.numel(), dtype=out.dtype).reshape(out.shape) + 2 * rank + 1
    (out * weights).sum().backward()
    return [out.detach().tolist(), x.grad.tolist()]


@case
def differentiable_operations(lib, dist, rank):
    f = importlib.import_module(f"{lib.__name__}.distributed.nn.functional")
    zeros = lambda *shape: lib.zeros(*shape, dtype=lib.float64)  # noqa: E731
    sizes = [1, 3] if rank == 0 else [3, 1]
    cases = [
        lambda x: f.all_reduce(x * x),
        lambda x: f.broadcast(x * x, 1),
        lambda x: lib.cat(list(f.all_gather(x * x))),
        lambda x: lib.stack(list(f.gather(x * x, 0))),
        lambda x: f.reduce(x * x, 1) * rank,  # the others' values are not defined
        lambda x: f.reduce_scatter(zeros(2), [part.contiguous() for part in (x * x).chunk(2)]),
        lambda x: f.all_to_all_single(zeros(4), x * x),
        lambda x: f.all_to_all_single(zeros(4), x * x, sizes, sizes),
        lambda x: lib.cat(list(f.all_to_all([zeros(2), zeros(2)], [part.contiguous() for part in (x * x).chunk(2)]))),
        lambda x: f.scatter([part.contiguous() for part in (x * x).chunk(2)], 1),
    ]
    return [with_gradient(lib, rank, each) for each in cases]


@case
def objects_of_users_are_joined(lib, dist, rank):
    join = importlib.import_module(f"{lib.__name__}.distributed.algorithms.join")

    class Sums(join.Joinable, join.JoinHook):
        """Sums a number over the ranks in each iteration."""

        join_device = lib.device("cpu")
        join_process_group = dist.group.WORLD

        def __init__(self):
            super().__init__()
            self.found = []

        def add(self, number):
            total = lib.tensor(number)
            dist.all_reduce(total)
            self.found.append(total.item())

        def count(self):
            join.Join.notify_join_context(self)
            self.add(1)

        def join_hook(self, **kwargs):
            self.found.append(sorted(kwargs.items()))
            return self

        def main_hook(self):
            self.add(0)

        def post_hook(self, is_last_joiner):
            self.found.append(is_last_joiner)

    first, second = Sums(), Sums()
    with join.Join([first, second], option=3):
        for _ in range(1 + 2 * rank):
            first.count()
            second.count()
    stopped = Sums()

    def stop():
        with join.Join([stopped], throw_on_early_termination=True):
            for _ in range(1 + 2 * rank):
                stopped.count()

    return [first.found, second.found, outcome(stop), stopped.found, outcome(lambda: join.Join([]))]


if __name__ == "__main__":
    library = importlib.import_module(sys.argv[2])
    importlib.import_module(f"{sys.argv[2]}.distributed.device_mesh")
    module = importlib.import_module(f"{sys.argv[2]}.distributed")
    if sys.argv[2] == "torch":
        place = f"file://{os.environ['RENDEZVOUS']}"
        module.init_process_group("gloo", place, rank=int(os.environ["RANK"]), world_size=2)
    else:
        module.init_process_group()
    results = run_cases(library, module)
    Path(f"{sys.argv[1]}.{module.get_rank()}").write_text(json.dumps(results))
    module.destroy_process_group()

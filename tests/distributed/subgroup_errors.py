"""Errors of a group of ranks 2 and 1 of three, as a script or in threads.

    python subgroup_errors.py RESULTS

Each rank writes its messages by the names of the cases.
"""

import datetime
import json
import sys
from pathlib import Path

import retrograd as rg
import retrograd.distributed as dist
from retrograd.distributed.pipelining import PipelineStage, ScheduleGPipe
from retrograd.nn.parallel import DistributedDataParallel as Replicas
from retrograd.pipelining.schedules.actions import Message
from retrograd.pipelining.transports.fingerprint import Fingerprint

SHORT = datetime.timedelta(seconds=0.05)  # any load: the awaited thing never happens


class Unfit(rg.nn.Module):
    """A stage that fails on the group's rank 0."""

    def forward(self, x):
        raise KeyError("mine")


def fail(link):
    if link.rank == 0:
        raise KeyError("mine")


def programs(group):
    details = {"program": f"a\n b = {group.rank()}"}
    group.launch(lambda link: None, Fingerprint({"call": "step", "program": str(group.rank())}, details))


def unused(group):
    model = rg.nn.ModuleList([rg.nn.Linear(1, 1), rg.nn.Linear(1, 1)])
    model.forward = lambda x: model[0](x) if group.rank() == 0 else model[1](model[0](x))
    wrapped = Replicas(model, process_group=group)
    for _ in range(2):
        wrapped(rg.ones(1, 1)).sum().backward()


def uneven(group):
    model = Replicas(rg.nn.Linear(1, 1), process_group=group)
    with model.join(throw_on_early_termination=True):
        for _ in range(1 + group.rank()):
            model(rg.ones(1, 1)).sum().backward()


def received(group):
    if group.rank():
        dist.send(rg.ones(2), group_dst=0, group=group)
    else:
        dist.recv(rg.ones(3), group_src=1, group=group)


def pipeline(group):
    stage = PipelineStage(Unfit(), group.rank(), 2, rg.device("cpu"), group=group)
    schedule = ScheduleGPipe(stage, 1, loss_fn=rg.nn.functional.mse_loss)
    schedule.step(*[] if group.rank() else [rg.ones(2, 2)], target=rg.ones(2, 2))


def waits(group):
    slow = dist.new_group([2, 1], timeout=SHORT, sort_ranks=False, use_local_synchronization=True)
    slow.launch(lambda link: link.receive(1 - link.rank, Message("F", 0, 1, 0)))


def waits_in_an_operation(group):
    dist.irecv(rg.ones(1), group_src=1 - group.rank(), tag=9, group=group).wait(SHORT)


def size(group):
    return 2 + group.rank()


CASES = {
    "shapes": lambda group: dist.all_reduce(rg.ones(size(group)), group=group),
    "shapes, async": lambda group: dist.all_reduce(rg.ones(size(group)), group=group, async_op=True).wait(),
    "rows": lambda group: dist.all_to_all_single(rg.ones(4), rg.ones(4), [2, 2], [1, 3], group=group),
    "list": lambda group: dist.gather(rg.ones(1), None if group.rank() else [rg.ones(1)], group_dst=1, group=group),
    "programs": programs,
    "failure": lambda group: group.launch(fail),
    "unused": unused,
    "uneven": uneven,
    "received": received,
    "pipeline": pipeline,
    "waits": waits,
    "waits in an operation": waits_in_an_operation,
}


def message(call, group):
    """Return the text of the error of a call, with its notes up to their first line."""
    try:
        call(group)
    except Exception as error:
        notes = [note.splitlines()[0] for note in getattr(error, "__notes__", ())]
        return "\n".join([f"{type(error).__name__}: {error}", *notes])
    return "no error"


def messages():
    """Return the messages of this rank; empty for the rank outside of the group."""
    group = dist.new_group([2, 1], sort_ranks=False)
    if group == dist.GroupMember.NON_GROUP_MEMBER:
        return {}
    return {name: message(call, group) for name, call in CASES.items()}


if __name__ == "__main__":
    dist.init_process_group()
    found = messages()
    Path(f"{sys.argv[1]}.{dist.get_rank()}").write_text(json.dumps(found))
    dist.barrier()

"""Ranks that call different operations over MPI; each writes the error that it got, and then they agree again.

The last operation is one that a rank does not call within its timeout.

python mismatch_script.py RESULTS
"""

import datetime
import json
import sys
from pathlib import Path

import retrograd as rg
import retrograd.distributed as dist
from retrograd.pipelining.transports.fingerprint import Fingerprint


def message(call):
    """Return the error that a call raises, as text."""
    try:
        call()
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return "no error"


def total():
    """Return the sum of ones over the ranks."""
    x = rg.ones(1)
    dist.all_reduce(x)
    return x.item()


def exchange(parts, dtype=rg.float32):
    """Exchange four rows: this rank sends the numbers of rows in `parts`, and expects two from each rank."""
    dist.all_to_all_single(rg.zeros(4, dtype=dtype), rg.ones(4, dtype=dtype), [2, 2], parts)


def start_without_waiting(group, waits):
    """Start an operation that rank 1 does not call, and wait for others that it may not come to."""
    if rank == 0:
        dist.all_reduce(rg.ones(2), group=group, async_op=True)
    waits()


dist.init_process_group()
rank = dist.get_rank()
world = dist.group.WORLD
found = [
    message(lambda: dist.all_reduce(rg.ones(2 + rank))),
    message(lambda: dist.barrier() if rank else dist.all_reduce(rg.ones(2))),
    message(lambda: world.launch(lambda link: None, Fingerprint.of_call("step")) if rank else dist.barrier()),
    message(lambda: dist.all_reduce(rg.ones(2 + rank), async_op=True).wait()),
]
first, second = dist.new_group([0, 1]), dist.new_group([0, 1])
disagreements = [
    lambda: dist.barrier(async_op=True).wait() if rank else dist.all_reduce(rg.ones(2), async_op=True).wait(),
    lambda: dist.new_group([rank]),
    lambda: dist.new_group([0, 1]) if rank else dist.all_reduce(rg.ones(2)),
    lambda: dist.split_group(split_ranks=[[0], [1]] if rank else [[0, 1]]),
    lambda: exchange([2, 2], rg.float32 if rank else rg.int32),
    lambda: exchange([2, 2] if rank else [1, 3]),
    lambda: start_without_waiting(None, dist.barrier),
    lambda: start_without_waiting(first, lambda: dist.barrier(first if rank else second)),
    lambda: start_without_waiting(None, lambda: dist.all_reduce(rg.ones(1 + 2 * rank), async_op=True).wait()),
]
for disagree in disagreements:
    found.append(message(disagree))
    assert total() == 2.0
alone = dist.new_group([rank], use_local_synchronization=True)
both = dist.new_group([0, 1], use_local_synchronization=True)
assert (alone.size(), both.size()) == (1, 2)
if rank == 0:
    dist.destroy_process_group()
    dist.init_process_group(timeout=datetime.timedelta(seconds=0.5))  # any load: rank 1 never comes
    found.append(message(total))
    found.append(message(total))
    dist.send_object_list([0], 1)
else:
    dist.recv_object_list([None], 0)
    found += [message(total), "alone"]
Path(f"{sys.argv[1]}.{rank}").write_text(json.dumps(found))

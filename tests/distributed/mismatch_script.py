"""Ranks that call different operations over MPI; each writes the error that it got, and then they agree again.

python mismatch_script.py RESULTS
"""

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


dist.init_process_group()
rank = dist.get_rank()
world = dist.group.WORLD
found = [
    message(lambda: dist.all_reduce(rg.ones(2 + rank))),
    message(lambda: dist.barrier() if rank else dist.all_reduce(rg.ones(2))),
    message(lambda: world.launch(lambda link: None, Fingerprint.of_call("step")) if rank else dist.barrier()),
    message(lambda: dist.all_reduce(rg.ones(2 + rank), async_op=True).wait()),
]
Path(f"{sys.argv[1]}.{rank}").write_text(json.dumps(found))

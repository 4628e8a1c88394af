"""Train by DistributedDataParallel with each hook that exchanges gradients, in the process of a rank.

Usage: communication_hooks.py retrograd|torch OUT [INIT]: OUT.rank gets the parameters after three steps, by hook.
"""

import importlib
import json
import sys

import numpy as np

library, out = sys.argv[1:3]
torch = importlib.import_module(library)
dist = importlib.import_module(f"{library}.distributed")
hooks = importlib.import_module(f"{library}.distributed.algorithms.ddp_comm_hooks.default_hooks")
Replicas = importlib.import_module(f"{library}.nn.parallel").DistributedDataParallel
dist.init_process_group("gloo")
rank = dist.get_rank()


def by_messages(state, bucket):
    """Sum by a collective whose future is changed twice, and count the calls."""
    state.append((bucket.index(), bucket.is_last(), [list(g.shape) for g in bucket.gradients()]))
    work = dist.all_reduce(bucket.buffer(), async_op=True)
    doubled = work.get_future().then(lambda future: future.value()[0] * 2)
    return doubled.then(lambda future: future.value() / (2 * dist.get_world_size()))


def train(state, hook):
    """Return the parameters after three steps on the part of the rank."""
    rng = np.random.default_rng(0)
    model = torch.nn.Sequential(torch.nn.Linear(4, 300), torch.nn.Tanh(), torch.nn.Linear(300, 2))
    with torch.no_grad():
        for p in model.parameters():
            p.copy_(torch.tensor(0.1 * rng.normal(size=tuple(p.shape)).astype(np.float32)))
    replicas = Replicas(model, bucket_cap_mb=0.001)
    if hook is not None:
        replicas.register_comm_hook(state, hook)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(3):
        x = torch.tensor(rng.normal(size=(8, 4)).astype(np.float32))[rank * 4 : rank * 4 + 4]
        optimizer.zero_grad()
        replicas(x).square().mean().backward()
        optimizer.step()
    return [p.detach().flatten().tolist() for p in model.parameters()]


calls = []
found = {
    "none": train(None, None),
    "allreduce": train(None, hooks.allreduce_hook),
    "fp16": train(None, hooks.fp16_compress_hook),
    "fp16_wrapper": train(None, hooks.fp16_compress_wrapper(hooks.allreduce_hook)),
    "messages": train(calls, by_messages),
    "last": [last for _, last, _ in calls].count(True),
    "sizes": sorted(str(shapes) for _, _, shapes in calls[-3:]),
}
with open(f"{out}.{rank}", "w") as file:
    json.dump(found, file)
dist.destroy_process_group()

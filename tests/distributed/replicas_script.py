"""Ranks over MPI train by each division of the work; each writes how far it is from one model on the whole batch.

python replicas_script.py RESULTS
"""

import json
import sys
from pathlib import Path

import numpy as np

import retrograd as rg
import retrograd.distributed as dist
from retrograd.distributed import shared_memory
from retrograd.distributed.fsdp import full_state_dict, fully_shard
from retrograd.distributed.optim import ZeroRedundancyOptimizer
from retrograd.nn.parallel import DistributedDataParallel


def values(seed, *shape):
    return rg.from_numpy(np.random.default_rng(seed).standard_normal(shape))


def model():
    found = rg.nn.Sequential(rg.nn.Linear(4, 7), rg.nn.Tanh(), rg.nn.Linear(7, 3)).double()
    for i, p in enumerate(found.parameters()):
        p.data = values(i, *p.shape)
    return found


def train(forward, optimizer, batch):
    for _ in range(4):
        optimizer.zero_grad()
        (forward(batch) ** 2).mean().backward()
        optimizer.step()


def adam(module):
    return rg.optim.Adam(module.parameters(), lr=0.05)


def sharded(module, **options):
    return ZeroRedundancyOptimizer(module.parameters(), rg.optim.Adam, lr=0.05, **options)


def replicas(batch):
    module = model()
    train(DistributedDataParallel(module, bucket_cap_mb=2e-4), adam(module), batch)
    return module.state_dict()


def accumulated(batch):
    """Add gradients of two halves, the first in another layout than the buckets'."""
    module = model()
    replica, optimizer = DistributedDataParallel(module, bucket_cap_mb=2e-4), adam(module)
    weight, halves = module[0].weight, batch.chunk(2)
    for _ in range(4):
        optimizer.zero_grad()
        with replica.no_sync():
            (replica(halves[0]) ** 2).mean().div(2).backward()
        weight.grad = weight.grad.mT.contiguous().mT
        (replica(halves[1]) ** 2).mean().div(2).backward()
        optimizer.step()
    return module.state_dict()


def replicas_by_messages(batch):
    folder, shared_memory.FOLDER = shared_memory.FOLDER, Path("nowhere")
    try:
        return replicas(batch)
    finally:
        shared_memory.FOLDER = folder


def sharded_states(batch):
    module = model()
    replica = DistributedDataParallel(module, gradient_as_bucket_view=True, static_graph=True)
    train(replica, sharded(module), batch)
    return module.state_dict()


def sharded_gradients(batch):
    module = model()
    train(module, sharded(module, shard_gradients=True), batch)
    return module.state_dict()


def sharded_parameters(batch):
    module = model()
    fully_shard(module[0])
    fully_shard(module)
    train(module, adam(module), batch)
    return full_state_dict(module)


dist.init_process_group()
if dist.group.WORLD.comm is not None and shared_memory.FOLDER.is_dir():
    assert shared_memory.shared_vectors(dist.group.WORLD, [1], [rg.float64]) is not None
x, whole = values(9, 8, 4), model()
train(whole, adam(whole), x)
found = {}
for each in (replicas, accumulated, replicas_by_messages, sharded_states, sharded_gradients, sharded_parameters):
    state = each(x.chunk(dist.get_world_size())[dist.get_rank()])
    states = [None] * dist.get_world_size()
    dist.all_gather_object(states, {name: p.numpy().tobytes() for name, p in state.items()})
    assert all(other == states[0] for other in states), f"{each.__name__}: the bits differ between ranks"
    found[each.__name__] = max((state[name] - p).abs().max().item() for name, p in whole.state_dict().items())
Path(f"{sys.argv[1]}.{dist.get_rank()}").write_text(json.dumps(found))
dist.destroy_process_group()

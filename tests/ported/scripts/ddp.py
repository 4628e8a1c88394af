"""Distributed data parallel: each rank trains a replica on its part of the data; gradients are averaged over ranks."""

import json
import os
import sys
import tempfile
from pathlib import Path

import numpy as np
import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler


def setup():
    rank, world_size = int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))
    rendezvous = os.environ.get("RENDEZVOUS") or os.path.join(tempfile.mkdtemp(), "rendezvous")
    dist.init_process_group("gloo", init_method=f"file://{rendezvous}", rank=rank, world_size=world_size)


def make_model():
    rng = np.random.default_rng(dist.get_rank())  # other parameters on each rank: DDP sends those of rank 0
    model = nn.Sequential(nn.Linear(8, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Linear(32, 3))
    with torch.no_grad():
        for p in model.parameters():
            p.copy_(torch.from_numpy(rng.standard_normal(tuple(p.shape)) / 3))
    return model


def mean_over_ranks(value):
    total = torch.tensor([value], dtype=torch.float64)
    dist.all_reduce(total, op=dist.ReduceOp.SUM)
    return total.item() / dist.get_world_size()


def main(steps=5):
    setup()
    data = np.random.default_rng(1)
    x = torch.tensor(data.standard_normal((120, 8)), dtype=torch.float32)
    dataset = TensorDataset(x, x[:, :3].argmax(1))
    sampler = DistributedSampler(dataset, shuffle=False)
    loader = DataLoader(dataset, batch_size=24 // dist.get_world_size(), sampler=sampler)
    model = DDP(make_model(), bucket_cap_mb=1e-3)
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.3, momentum=0.9)
    losses = []
    for epoch in range(-(-steps // len(loader))):
        sampler.set_epoch(epoch)
        for inputs, targets in loader:
            optimizer.zero_grad()
            half = len(inputs) // 2
            with model.no_sync():  # gradients of the first half stay on this rank
                first = criterion(model(inputs[:half]), targets[:half]) / 2
                first.backward()
            second = criterion(model(inputs[half:]), targets[half:]) / 2
            second.backward()
            optimizer.step()
            losses.append(mean_over_ranks(first.item() + second.item()))
    spread = [p.detach().clone() for p in model.parameters()]
    for p in spread:
        dist.broadcast(p, src=0)
    same = all(torch.equal(p, q) for p, q in zip(spread, model.parameters()))
    names = list(model.state_dict())
    assert names[0] == "module.0.weight" and "module.1.running_mean" in names
    running = model.module[1].running_mean.detach().clone().numpy()
    dist.barrier()
    dist.destroy_process_group()
    return losses[:steps], {"parameters are the same": same, "running_mean": running}


if __name__ == "__main__":
    found, numbers = main(steps=10)
    result = {"losses": found, "same": numbers["parameters are the same"]}
    Path(f"{sys.argv[1]}.{os.environ['RANK']}").write_text(json.dumps(result))

"""Distributed checkpoints of a Stateful AppState: saved by divided ranks, loaded by ranks and by one process.

In the style of PyTorch's recipe "Getting Started with Distributed Checkpoint".
"""

import json
import os
import sys
import tempfile
from pathlib import Path

import numpy as np
import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
import torch.nn as nn
from torch.distributed.checkpoint.format_utils import dcp_to_torch_save, torch_save_to_dcp
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
from torch.distributed.checkpoint.stateful import Stateful
from torch.distributed.fsdp import fully_shard


class AppState(Stateful):
    """The model and optimizer, which DCP saves and loads by these methods."""

    def __init__(self, model, optimizer=None):
        self.model = model
        self.optimizer = optimizer

    def state_dict(self):
        model_state_dict, optimizer_state_dict = get_state_dict(self.model, self.optimizer)
        return {"model": model_state_dict, "optim": optimizer_state_dict}

    def load_state_dict(self, state_dict):
        set_state_dict(
            self.model,
            self.optimizer,
            model_state_dict=state_dict["model"],
            optim_state_dict=state_dict["optim"],
        )


class ToyModel(nn.Module):
    def __init__(self, seed=0):
        super().__init__()
        self.net1 = nn.Linear(16, 10)
        self.relu = nn.ReLU()
        self.net2 = nn.Linear(10, 8)
        rng = np.random.default_rng(seed)
        with torch.no_grad():
            for p in self.parameters():
                p.copy_(torch.from_numpy(rng.standard_normal(tuple(p.shape)) / 4))

    def forward(self, x):
        return self.net2(self.relu(self.net1(x)))


def setup():
    rank, world_size = int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))
    rendezvous = os.environ.get("RENDEZVOUS") or os.path.join(tempfile.mkdtemp(), "rendezvous")
    dist.init_process_group("gloo", init_method=f"file://{rendezvous}", rank=rank, world_size=world_size)
    return rank, world_size


def adamw(model, lr):
    return torch.optim.AdamW(
        [
            {"params": [model.net1.weight, model.net2.weight]},
            {"params": [model.net1.bias, model.net2.bias], "lr": 3 * lr},
        ],
        lr=lr,
        amsgrad=True,
    )


def train(model, optimizer, steps, rank=0, world_size=1):
    losses = []
    for step in steps:
        batch = np.random.default_rng([1, step]).standard_normal((12, 16)).astype("f4")
        x = torch.from_numpy(batch).chunk(world_size)[rank]
        optimizer.zero_grad()
        loss = (model(x) - x[:, :8]).square().mean()
        loss.backward()
        optimizer.step()
        mean = loss.detach().double().clone()
        if world_size > 1:
            dist.all_reduce(mean)
        losses.append(mean.item() / world_size)
    return losses


def main(steps=6):
    rank, world_size = setup()
    half = steps // 2
    folders = [tempfile.mkdtemp() if rank == 0 else None]
    dist.broadcast_object_list(folders, src=0)
    folder = folders[0]

    model = ToyModel()
    fully_shard(model.net1)
    fully_shard(model)
    optimizer = adamw(model, lr=0.01)
    losses = train(model, optimizer, range(half), rank, world_size)
    checkpoint_future = None
    for name in ("first", "second"):
        if checkpoint_future is not None:
            checkpoint_future.result()
        state_dict = {"app": AppState(model, optimizer), "step": half}
        checkpoint_future = dcp.async_save(state_dict, checkpoint_id=f"{folder}/{name}")
    checkpoint_future.result()
    following = train(model, optimizer, range(half, steps), rank, world_size)

    # Ranks: divided in another way.
    model = ToyModel(seed=1)
    fully_shard(model)
    optimizer = adamw(model, lr=1.0)
    state_dict = {"app": AppState(model, optimizer), "step": 0}
    dcp.load(state_dict, checkpoint_id=f"{folder}/second")
    resumed = {"ranks": train(model, optimizer, range(half, steps), rank, world_size)}
    dist.barrier()
    dist.destroy_process_group()

    # One process, without a group; then by way of a file of torch.save.
    if rank == 0:
        dcp_to_torch_save(f"{folder}/first", f"{folder}/whole.pt")
        whole = torch.load(f"{folder}/whole.pt")
        assert whole["step"] == half
        assert tuple(whole["app"]["model"]["net1.weight"].shape) == (10, 16)
        torch_save_to_dcp(f"{folder}/whole.pt", f"{folder}/third")
        for name in ("first", "third"):
            model = ToyModel(seed=2)
            optimizer = adamw(model, lr=1.0)
            dcp.load({"app": AppState(model, optimizer)}, checkpoint_id=f"{folder}/{name}")
            resumed[name] = train(model, optimizer, range(half, steps))
    assert np.abs(np.array(list(resumed.values())) - following).max() < 1e-6, (following, resumed)
    return losses + following, {name: np.array(values) for name, values in resumed.items()}


if __name__ == "__main__":
    found, numbers = main(steps=6)
    result = {"losses": found, **{name: values.tolist() for name, values in numbers.items()}}
    Path(f"{sys.argv[1]}.{os.environ['RANK']}").write_text(json.dumps(result))

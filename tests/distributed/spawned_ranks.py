"""A script in the form of PyTorch's tutorial of DistributedDataParallel: `multiprocessing.spawn` starts the ranks.

python spawned_ranks.py RESULTS CASE ADDRESS
"""

import os
import signal
import socket
import sys

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.nn.parallel import DistributedDataParallel

RANKS = 2


def setup(rank, address, port):
    os.environ["MASTER_ADDR"] = "localhost"
    os.environ["MASTER_PORT"] = port
    dist.init_process_group("gloo", init_method=address.format(port=port), rank=rank, world_size=RANKS)


def free_port():
    with socket.create_server(("localhost", 0)) as found:
        return str(found.getsockname()[1])


class ToyModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.net1 = nn.Linear(10, 10)
        self.relu = nn.ReLU()
        self.net2 = nn.Linear(10, 5)

    def forward(self, x):
        return self.net2(self.relu(self.net1(x)))


def train(rank, results, case, address, port):
    setup(rank, address, port)
    torch.manual_seed(0)
    model = DistributedDataParallel(ToyModel().double())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    x, y = torch.arange(80.0).double().reshape(8, 10).sin(), torch.arange(40.0).double().reshape(8, 5).cos()
    losses = []
    for step in range(5):
        if step == 3 and rank == 1 and case == "error":
            raise ValueError("on purpose")
        if step == 3 and rank == 1 and case == "killed":
            os.kill(os.getpid(), signal.SIGKILL)
        optimizer.zero_grad()
        loss = nn.MSELoss()(model(x.chunk(RANKS)[rank]), y.chunk(RANKS)[rank])
        loss.backward()
        optimizer.step()
        whole = loss.detach().clone()
        dist.all_reduce(whole)
        losses.append(whole.item() / RANKS)
    if rank == 0:
        torch.save({"losses": losses, "state": model.module.state_dict()}, results)
    dist.destroy_process_group()


if __name__ == "__main__":
    mp.spawn(train, args=(*sys.argv[1:], free_port()), nprocs=RANKS, join=True)

"""The classic Hogwild script: processes train one model in shared memory, without locks."""

import sys

import torch
import torch.multiprocessing as mp
from torch import nn


def train(rank, model, steps):
    torch.manual_seed(rank)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for _ in range(steps):
        x = torch.randn(16, 3)
        y = x @ torch.tensor([[1.0], [-2.0], [3.0]])
        optimizer.zero_grad()
        nn.functional.mse_loss(model(x), y).backward()
        optimizer.step()


def fill(queue, answers):
    for number in (1, 2):
        x = queue.get(timeout=120)
        x += number
        answers.put(x.is_shared(), timeout=120)


def main(method):
    model = nn.Linear(3, 1)
    model.share_memory()
    if method == "spawn":
        mp.spawn(train, args=(model, 200), nprocs=2)
    else:
        processes = [mp.get_context(method).Process(target=train, args=(rank, model, 200)) for rank in range(2)]
        for process in processes:
            process.start()
        for process in processes:
            process.join()
    error = (model.weight - torch.tensor([[1.0, -2.0, 3.0]])).abs().max().item()

    context = mp.get_context(method)
    queue, answers = context.Queue(), context.Queue()
    process = context.Process(target=fill, args=(queue, answers))
    process.start()
    matrix = torch.zeros(2, 3).share_memory_()
    for x in (matrix[1], matrix.t()):
        queue.put(x, timeout=120)
    shared = [answers.get(timeout=120) for _ in range(2)]
    process.join()
    print(error < 1e-3, all(p.is_shared() for p in model.parameters()), shared, matrix.tolist())


if __name__ == "__main__":
    main(sys.argv[1])

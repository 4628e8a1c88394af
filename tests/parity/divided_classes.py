"""Compute losses of scores, and rows of tables, whose classes or rows are divided, in the process of a rank.

Usage: divided_classes.py retrograd|torch OUT: OUT.rank gets results and gradients, by name.
"""

import importlib
import json
import sys

import numpy as np

library, out = sys.argv[1:3]
torch = importlib.import_module(library)
dist = importlib.import_module(f"{library}.distributed")
tensor = importlib.import_module(f"{library}.distributed.tensor")
parallel = importlib.import_module(f"{library}.distributed.tensor.parallel")
F = torch.nn.functional
dist.init_process_group("gloo")
mesh = dist.init_device_mesh("cpu", (dist.get_world_size(),))
rng = np.random.default_rng(0)
SCORES, TARGET = rng.normal(size=(5, 7)), rng.integers(0, 7, 5)
TABLE, IDS = rng.normal(size=(7, 4)), rng.integers(0, 7, (2, 3))


def divided(x, placement):
    return tensor.distribute_tensor(torch.tensor(x), mesh, [placement])


def results(call, x, dim, index):
    """Return the result of a call for a tensor of which a dimension is divided, and its gradient."""
    part = divided(x, tensor.Shard(dim)).requires_grad_()
    with parallel.loss_parallel():
        found = call(part, divided(index, tensor.Replicate()))
        if found.ndim > 1:
            found = found.full_tensor().square()
        found.sum().backward()
    whole = found.full_tensor() if isinstance(found, tensor.DTensor) else found
    return [whole.detach().tolist(), part.grad.full_tensor().tolist()]


found = {
    "cross entropy": results(F.cross_entropy, SCORES, 1, TARGET),
    "sum": results(lambda x, t: F.cross_entropy(x, t, reduction="sum"), SCORES, 1, TARGET),
    "an ignored class": results(lambda x, t: F.cross_entropy(x, t, ignore_index=2), SCORES, 1, TARGET),
    "log-probabilities": results(lambda x, t: F.nll_loss(x.log_softmax(1), t), SCORES, 1, TARGET),
    "rows": results(lambda x, ids: F.embedding(ids, x), TABLE, 0, IDS),
    "columns": results(lambda x, ids: F.embedding(ids, x), TABLE, 1, IDS),
}
with open(f"{out}.{dist.get_rank()}", "w") as file:
    json.dump(found, file)
dist.destroy_process_group()

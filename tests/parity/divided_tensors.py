"""Make, copy and redistribute divided tensors, in the process of a rank.

Usage: divided_tensors.py retrograd|torch OUT: OUT.rank gets the results of each program, by name.
"""

import copy
import importlib
import json
import sys

library, out = sys.argv[1:3]
torch = importlib.import_module(library)
dist = importlib.import_module(f"{library}.distributed")
tensor = importlib.import_module(f"{library}.distributed.tensor")
DTensor, Partial, Replicate, Shard = tensor.DTensor, tensor.Partial, tensor.Replicate, tensor.Shard
dist.init_process_group("gloo")
mesh = dist.init_device_mesh("cpu", (dist.get_world_size(),))


def make_numbered(*shape):
    return torch.arange(float(torch.ones(shape).numel()), dtype=torch.float64).reshape(shape)


def make_part(placement, *shape):
    return tensor.distribute_tensor(make_numbered(*shape), mesh, [placement])


def describe(x):
    """Return how a tensor is divided, and this rank's part of it."""
    return [str(x.placements[0]), str(tuple(x.shape)), str(tuple(x.stride())), x.to_local().detach().tolist()]


def print_placements():
    made = [Shard(1), Replicate(), Partial(), Partial("avg")]
    return [str(made), *[str(p) for p in made]]


def strides():
    local = make_numbered(2, 3, 4)
    made = [DTensor.from_local(local, mesh, [Shard(dim)]) for dim in range(3)]
    made += [DTensor.from_local(local.permute(1, 2, 0), mesh, [Shard(dim)]) for dim in range(3)]
    return [str(tuple(x.stride())) for x in made]


def deep_copy():
    x = make_part(Shard(0), 7, 2).requires_grad_()
    (x * x).sum().backward()
    copied = copy.deepcopy(x)
    return [str(copied.requires_grad), *describe(copied), copied.grad.to_local().tolist()]


def hook():
    x, seen = make_part(Shard(0), 7, 2).requires_grad_(), []
    x.register_hook(lambda grad: seen.append(type(grad).__name__))
    x.register_hook(lambda grad: 2 * grad)
    (3 * x).sum().backward()
    return [str(seen), x.grad.full_tensor().tolist()]


def new_tensors():
    x = make_part(Shard(1), 3, 7)
    return [*describe(x.new_zeros(3, 7)), *describe(x.new_ones(2)), *describe(x.new_full((3, 7), 2.5))]


def from_meta():
    model = tensor.distribute_tensor(torch.empty(7, 2, device="meta"), mesh, [Shard(0)])
    return [str(model.is_meta), *describe(torch.ones_like(model, device="cpu"))]


def block():
    with mesh:
        made = tensor.distribute_tensor(make_numbered(7, 2), placements=[Shard(0)])
        return [*describe(made), *describe(DTensor.from_local(make_numbered(2, 2), placements=[Shard(0)]))]


def dtypes():
    found = []
    for dtype in (None, torch.float32):
        for gradient_dtype in (None, torch.float32):
            x = (make_part(Shard(0), 7, 2) / 3).detach().requires_grad_()
            y = x.redistribute(placements=[Replicate()], forward_dtype=dtype, backward_dtype=gradient_dtype)
            y.backward(y.detach())
            found += [str(y.dtype == (dtype or x.dtype)), *describe(y), x.grad.to_local().tolist()]
    return found


def functions_of_parts():
    experimental = importlib.import_module(f"{library}.distributed.tensor.experimental")
    x, w = make_part(Shard(0), 6, 3).requires_grad_(), make_part(Replicate(), 3, 2).requires_grad_()
    product = experimental.local_map(
        lambda x, w: (x @ w, 5), ([Shard(0)], None), ([Shard(0)], [Replicate()]), ([Shard(0)], [Partial()])
    )
    y, five = product(x, w)
    (y * y).sum().backward()
    with experimental.implicit_replication():
        added = x.detach() + make_numbered(3)
    moved = experimental.local_map(lambda x: x * 2, [Shard(1)], ([Shard(1)],), redistribute_inputs=True)(x.detach())
    return [
        str(five),
        *describe(y),
        x.grad.to_local().tolist(),
        w.grad.full_tensor().tolist(),
        *describe(added),
        *describe(moved),
    ]


programs = [print_placements, strides, deep_copy, hook, new_tensors, from_meta, block, dtypes, functions_of_parts]
with open(f"{out}.{dist.get_rank()}", "w") as file:
    json.dump({program.__name__: program() for program in programs}, file)
dist.destroy_process_group()

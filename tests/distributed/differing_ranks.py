"""Modules and arguments that differ between two ranks, as a script or in threads.

    python differing_ranks.py RESULTS

Each rank writes the messages of its errors by the names of the cases.
"""

import datetime
import json
import sys
from pathlib import Path

import retrograd as rg
import retrograd.distributed as dist
from retrograd import nn
from retrograd.distributed.algorithms.ddp_comm_hooks import default_hooks
from retrograd.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from retrograd.distributed.optim import ZeroRedundancyOptimizer as Zero
from retrograd.distributed.tensor import Shard, distribute_tensor
from retrograd.nn.parallel import DistributedDataParallel as Replicas
from retrograd.pipelining.transports.interface import RankMismatchError


def replicas(module, **options):
    return Replicas(module, **options)


def zero_1(module, optimizer_class=rg.optim.SGD):
    return Zero(module.named_parameters(), optimizer_class, lr=0.1)


def zero_2(module, optimizer_class=rg.optim.SGD):
    return Zero(module.named_parameters(), optimizer_class, lr=0.1, shard_gradients=True)


def group_of_zero(module):
    optimizer = Zero([("first", rg.ones(2, requires_grad=True))], rg.optim.SGD, lr=0.1)
    try:
        optimizer.add_param_group({"params": list(module.named_parameters())})
    finally:
        assert len(optimizer.param_groups) == len(optimizer.optim.param_groups) == 1


def without_values(module):
    fully_shard(module.to("meta"))


WRAPPERS = {
    "DDP": replicas,
    "DDP without init_sync": lambda module: replicas(module, init_sync=False),
    "ZeRO 1": zero_1,
    "ZeRO 2": zero_2,
    "add_param_group": group_of_zero,
    "fully_shard": fully_shard,
    "fully_shard on meta": without_values,
}


def frozen_on_rank_1():
    module = nn.Linear(2, 2)
    module.bias.requires_grad_(not dist.get_rank())
    return module


MODULES = {
    "shapes": lambda: nn.Linear(3 + dist.get_rank(), 2),
    "as many elements": lambda: nn.Linear(*((3, 2) if dist.get_rank() else (2, 3)), bias=False),
    "numbers of parameters": lambda: nn.Linear(3, 2, bias=bool(dist.get_rank())),
    "names": lambda: nn.ModuleDict({name: nn.Linear(2, 2) for name in ("ba" if dist.get_rank() else "ab")}),
    "dtypes": lambda: nn.Linear(3, 2).to(rg.float64 if dist.get_rank() else rg.float32),
    "requires_grad": frozen_on_rank_1,
}


def linear():
    return nn.Linear(3, 2)


def hook_of_rank():
    model = Replicas(linear())
    hook = default_hooks.bf16_compress_hook if dist.get_rank() else default_hooks.allreduce_hook
    try:
        model.register_comm_hook(None, hook)
    finally:
        assert model._gradients.hook is None


def buffers_of_rank():
    model = Replicas(nn.BatchNorm1d(2))
    if dist.get_rank():
        model.module.register_buffer("more", rg.ones(3))
    model(rg.ones(4, 2))


def state_for_rank():
    zero_1(linear()).consolidate_state_dict(to=dist.get_rank())


def settings_of_rank(optimizer_class=rg.optim.SGD):
    optimizer = zero_1(nn.Linear(3, 2, bias=False), optimizer_class)
    optimizer.param_groups[0]["lr"] = 0.1 + dist.get_rank()
    optimizer.step()


def order_of_blocks():
    blocks = [fully_shard(nn.Linear(2, 2)) for _ in range(2)]
    x = rg.ones(1, 2)
    for block in reversed(blocks) if dist.get_rank() else blocks:
        x = block(x)


def distributed_of_rank():
    mesh = dist.init_device_mesh("cpu", (2,))
    distribute_tensor(rg.ones(3 + dist.get_rank()), mesh, [Shard(0)])


ARGUMENTS = {
    "DDP, bucket_cap_mb": lambda: replicas(linear(), bucket_cap_mb=1 + dist.get_rank()),
    "DDP, find_unused_parameters": lambda: replicas(linear(), find_unused_parameters=bool(dist.get_rank())),
    "DDP, init_sync": lambda: replicas(linear(), init_sync=bool(dist.get_rank())),
    "DDP, broadcast_buffers": lambda: replicas(linear(), broadcast_buffers=bool(dist.get_rank())),
    "DDP, static_graph": lambda: replicas(linear(), static_graph=bool(dist.get_rank())),
    "DDP, buffers": buffers_of_rank,
    "DDP, register_comm_hook": hook_of_rank,
    "ZeRO, optimizer_class": lambda: zero_1(linear(), rg.optim.Adam if dist.get_rank() else rg.optim.Muon),
    "ZeRO, shard_gradients": lambda: (zero_2 if dist.get_rank() else zero_1)(linear()),
    "ZeRO, consolidate_state_dict": state_for_rank,
    "ZeRO, settings": lambda: Zero(linear().parameters(), rg.optim.SGD, lr=0.1 + dist.get_rank()),
    "ZeRO, settings of a step": settings_of_rank,
    "ZeRO by parameters, settings of a step": lambda: settings_of_rank(rg.optim.Muon),
    "fully_shard, order of blocks": order_of_blocks,
    "fully_shard, reshard_after_forward": lambda: fully_shard(linear(), reshard_after_forward=bool(dist.get_rank())),
    "fully_shard, shard_placement_fn": lambda: fully_shard(
        linear(), shard_placement_fn=lambda p: Shard(dist.get_rank() if p.ndim > 1 else 0)
    ),
    "fully_shard, mp_policy": lambda: fully_shard(
        linear(), mp_policy=MixedPrecisionPolicy(param_dtype=rg.float16 if dist.get_rank() else None)
    ),
    "distribute_tensor": distributed_of_rank,
}


def wrapped(wrapper, differing):
    """Wrap a module that differs between ranks; if that fails, the module must be what it was."""
    module = MODULES[differing]()
    before = [(p, p.detach().clone(), p.requires_grad) for p in module.parameters()]
    try:
        WRAPPERS[wrapper](module)
    finally:
        if wrapper != "fully_shard on meta":
            after = list(module.parameters())
            assert [id(p) for p in after] == [id(p) for p, _, _ in before]
            assert all(rg.equal(p, value) and p.requires_grad == flag for p, value, flag in before)
            sum(p.sum() for p in after if p.requires_grad).backward()  # without an exchange
            assert all((p.grad == 1).all() for p in after if p.requires_grad)


CASES = {
    **{f"{wrapper}: {differing}": (wrapped, wrapper, differing) for wrapper in WRAPPERS for differing in MODULES},
    **{name: (call,) for name, call in ARGUMENTS.items()},
}


def refusal(name):
    """Return the message of the error of a case on this rank; afterwards the ranks must agree again."""
    dist.destroy_process_group()
    dist.init_process_group(timeout=datetime.timedelta(seconds=5))
    call, *arguments = CASES[name]
    try:
        call(*arguments)
    except RankMismatchError as error:
        refused = str(error)
    else:
        refused = "no error"
    x = rg.ones(1)
    dist.all_reduce(x)
    assert x.item() == 2.0, name
    return refused


if __name__ == "__main__":
    dist.init_process_group()
    found = {name: refusal(name) for name in CASES}
    Path(f"{sys.argv[1]}.{dist.get_rank()}").write_text(json.dumps(found))

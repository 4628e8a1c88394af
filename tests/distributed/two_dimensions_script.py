"""A transformer that tensor parallelism and `fully_shard` divide, over two dimensions of a mesh.

python two_dimensions_script.py RESULTS writes how far ranks over MPI are from one model on the whole batch.
"""

import json
import sys
from pathlib import Path

import numpy as np

import retrograd as rg
import retrograd.distributed as dist
from retrograd import nn
from retrograd.distributed.fsdp import full_state_dict, fully_shard
from retrograd.distributed.tensor import DTensor, Replicate, Shard
from retrograd.distributed.tensor.parallel import (
    ColwiseParallel,
    PrepareModuleInput,
    RowwiseParallel,
    SequenceParallel,
    parallelize_module,
)


def values(seed, *shape):
    return rg.from_numpy(np.random.default_rng(seed).standard_normal(shape))


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.wq, self.wk, self.wv, self.wo = (nn.Linear(8, 8, bias=name == 3) for name in range(4))

    def forward(self, y):
        heads = [w(y).unflatten(-1, (-1, 2)).transpose(1, 2) for w in (self.wq, self.wk, self.wv)]
        return self.wo(nn.functional.scaled_dot_product_attention(*heads, is_causal=True).transpose(1, 2).flatten(2))


class FeedForward(nn.Module):
    def __init__(self):
        super().__init__()
        self.w1, self.w3, self.w2 = nn.Linear(8, 12, bias=False), nn.Linear(8, 12), nn.Linear(12, 8)

    def forward(self, x):
        return self.w2(nn.functional.silu(self.w1(x)) * self.w3(x))


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention_norm, self.attention = nn.LayerNorm(8), Attention()
        self.ffn_norm, self.feed_forward = nn.RMSNorm(8), FeedForward()

    def forward(self, x):
        x = x + self.attention(self.attention_norm(x))
        return x + self.feed_forward(self.ffn_norm(x))


class Model(nn.Module):
    """The transformer of PyTorch's tutorial on tensor parallelism, with fewer features."""

    def __init__(self):
        super().__init__()
        self.tok_embeddings = nn.Embedding(10, 8)
        self.layers = nn.ModuleList([Block(), Block()])
        self.norm, self.output = nn.LayerNorm(8), nn.Linear(8, 10)

    def forward(self, ids):
        x = self.tok_embeddings(ids)
        for layer in self.layers:
            x = layer(x)
        return self.output(self.norm(x))


def model():
    found = Model().double()
    for i, p in enumerate(found.parameters()):
        p.data = values(i, *p.shape) / 3
    return found


IDS, TARGETS = (rg.from_numpy(np.random.default_rng(seed).integers(0, 10, (4, 4))) for seed in (0, 1))
LAYER = {
    "attention_norm": SequenceParallel(),
    "attention": PrepareModuleInput(input_layouts=(Shard(1),), desired_input_layouts=(Replicate(),)),
    **{f"attention.w{name}": ColwiseParallel(use_local_output=False) for name in "qkv"},
    "attention.wo": RowwiseParallel(output_layouts=Shard(1)),
    "ffn_norm": SequenceParallel(),
    "feed_forward": PrepareModuleInput(input_layouts=(Shard(1),), desired_input_layouts=(Replicate(),)),
    "feed_forward.w1": ColwiseParallel(),
    "feed_forward.w2": RowwiseParallel(output_layouts=Shard(1)),
    "feed_forward.w3": ColwiseParallel(),
}
PLAN = {
    "tok_embeddings": RowwiseParallel(input_layouts=Replicate(), output_layouts=Shard(1)),
    "norm": SequenceParallel(),
    "output": ColwiseParallel(input_layouts=Shard(1), output_layouts=Replicate()),
}
ONLY_LINEAR = {  # leaves norms, which the ranks along "tp" have whole
    f"layers.*.{name}": ColwiseParallel() if name[-1] in "qkv13" else RowwiseParallel()
    for name in ("attention.wq", "attention.wk", "attention.wv", "attention.wo")
} | {f"layers.*.feed_forward.{name}": LAYER[f"feed_forward.{name}"] for name in ("w1", "w3")}
ONLY_LINEAR["layers.*.feed_forward.w2"] = RowwiseParallel()


def divided(module, mesh, plan="tutorial", **options):
    if plan == "tutorial":
        parallelize_module(module, mesh["tp"], PLAN)
        for layer in module.layers:
            parallelize_module(layer, mesh["tp"], LAYER)
    else:
        parallelize_module(module, mesh["tp"], ONLY_LINEAR)
    names = tuple(name for name in mesh.mesh_dim_names if name != "tp")
    for layer in module.layers:
        fully_shard(layer, mesh=mesh[names], **options)
    return fully_shard(module, mesh=mesh[names], **options)


def train(module, ids, targets, steps=3):
    optimizer, losses, norms = rg.optim.AdamW(module.parameters(), lr=0.05), [], []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(module(ids).flatten(0, 1), targets.flatten())
        loss.backward()
        norms.append(float(nn.utils.clip_grad_norm_(module.parameters(), 0.5)))
        optimizer.step()
        losses.append(loss.item())
    return losses, norms, optimizer


def whole_values(tensors):
    return {name: (x.full_tensor() if isinstance(x, DTensor) else x).detach().numpy().copy() for name, x in tensors}


def main():
    """Write the largest differences of the losses, norms and parameters from those of one model."""
    whole = model()
    losses, norms, _ = train(whole, IDS, TARGETS)
    dist.init_process_group()
    mesh = dist.init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))
    module, place = divided(model(), mesh), mesh.get_local_rank("dp")
    found, own_norms, _ = train(module, IDS.chunk(2)[place], TARGETS.chunk(2)[place])
    total = rg.tensor(found, dtype=rg.float64)
    dist.all_reduce(total, group=mesh.get_group("dp"))
    own, expected = whole_values(full_state_dict(module).items()), whole_values(whole.state_dict().items())
    result = {
        "losses": float(np.abs(total.numpy() / 2 - losses).max()),
        "norms": float(np.abs(np.subtract(own_norms, norms)).max()),
        "parameters": max(float(np.abs(own[name] - x).max()) for name, x in expected.items()),
    }
    Path(f"{sys.argv[1]}.{dist.get_rank()}").write_text(json.dumps(result))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

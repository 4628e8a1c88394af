"""FSDP2: a transformer whose parameters are divided among the ranks trains, is saved, and is resumed by another model.

In the style of PyTorch's tutorial: made on the device "meta", divided layer by layer, given a whole state by rank 0.
"""

import copy
import json
import os
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
import torch.nn as nn
import torch.nn.functional as F
from torch.distributed.checkpoint.state_dict import (
    StateDictOptions,
    get_model_state_dict,
    get_optimizer_state_dict,
    get_state_dict,
    set_model_state_dict,
    set_optimizer_state_dict,
    set_state_dict,
)
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FSDPModule, MixedPrecisionPolicy, fully_shard
from torch.distributed.tensor import DTensor, Replicate, Shard


@dataclass
class ModelArgs:
    n_layers: int = 2
    vocab_size: int = 19
    max_seq_len: int = 12
    dim: int = 16
    n_heads: int = 4


class Attention(nn.Module):
    def __init__(self, args):
        super().__init__()
        self.head_dim = args.dim // args.n_heads
        self.n_heads = args.n_heads
        self.wq = nn.Linear(args.dim, args.dim, bias=False)
        self.wk = nn.Linear(args.dim, args.dim, bias=False)
        self.wv = nn.Linear(args.dim, args.dim, bias=False)
        self.wo = nn.Linear(args.dim, args.dim, bias=False)

    def forward(self, x):
        bsz, seq_len, _ = x.size()
        queries, keys, values = self.wq(x), self.wk(x), self.wv(x)
        queries = queries.view(bsz, seq_len, self.n_heads, self.head_dim).transpose(1, 2)
        keys = keys.view(bsz, seq_len, self.n_heads, self.head_dim).transpose(1, 2)
        values = values.view(bsz, seq_len, self.n_heads, self.head_dim).transpose(1, 2)
        output = F.scaled_dot_product_attention(queries, keys, values, is_causal=True)
        output = output.transpose(1, 2).contiguous().view(bsz, seq_len, -1)
        return self.wo(output)

    def reset_parameters(self):
        for linear in (self.wq, self.wk, self.wv, self.wo):
            linear.reset_parameters()


class FeedForward(nn.Module):
    def __init__(self, dim, hidden_dim):
        super().__init__()
        self.w1 = nn.Linear(dim, hidden_dim)
        self.gelu = nn.GELU()
        self.w2 = nn.Linear(hidden_dim, dim)

    def forward(self, x):
        return self.w2(self.gelu(self.w1(x)))

    def reset_parameters(self):
        self.w1.reset_parameters()
        self.w2.reset_parameters()


class TransformerBlock(nn.Module):
    def __init__(self, args):
        super().__init__()
        self.attention_norm = nn.LayerNorm(args.dim)
        self.attention = Attention(args)
        self.ffn_norm = nn.LayerNorm(args.dim)
        self.feed_forward = FeedForward(args.dim, hidden_dim=4 * args.dim)

    def forward(self, x):
        h = x + self.attention(self.attention_norm(x))
        return h + self.feed_forward(self.ffn_norm(h))

    def reset_parameters(self):
        for part in (self.attention_norm, self.attention, self.ffn_norm, self.feed_forward):
            part.reset_parameters()


class Transformer(nn.Module):
    def __init__(self, args):
        super().__init__()
        self.max_seq_len = args.max_seq_len
        self.tok_embeddings = nn.Embedding(args.vocab_size, args.dim)
        self.pos_embeddings = nn.Embedding(args.max_seq_len, args.dim)
        self.layers = nn.ModuleList()
        for _ in range(args.n_layers):
            self.layers.append(TransformerBlock(args))
        self.norm = nn.LayerNorm(args.dim)
        self.output = nn.Linear(args.dim, args.vocab_size, bias=False)

    def forward(self, tokens):
        _bsz, seq_len = tokens.size()
        h = self.tok_embeddings(tokens) + self.pos_embeddings(torch.arange(0, seq_len, device=tokens.device))
        for layer in self.layers:
            h = layer(h)
        return self.output(self.norm(h)).float()

    def reset_parameters(self):
        self.tok_embeddings.reset_parameters()
        self.pos_embeddings.reset_parameters()
        for layer in self.layers:
            layer.reset_parameters()
        self.norm.reset_parameters()
        self.output.reset_parameters()


def setup():
    rank, world_size = int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))
    rendezvous = os.environ.get("RENDEZVOUS") or os.path.join(tempfile.mkdtemp(), "rendezvous")
    dist.init_process_group("gloo", init_method=f"file://{rendezvous}", rank=rank, world_size=world_size)


def by_columns(param):
    return Shard(1) if param.ndim == 2 else None


def inspect_model(model, mesh, placement):
    assert isinstance(model, Transformer)
    assert isinstance(model, FSDPModule)
    for param in model.parameters():
        assert isinstance(param, DTensor)
        shard = (placement and placement(param)) or Shard(0)
        assert param.placements == ((shard,) if mesh is None else (Replicate(), shard))
        assert mesh is None or param.device_mesh == mesh
        assert param.dtype == torch.float32


def inspect_mixed_precision(model, dtype):
    model.unshard()
    for param in model.parameters(recurse=False):
        assert param.dtype == dtype
    assert model.output.weight.dtype == dtype
    model.reshard()
    assert model.output.weight.dtype == torch.float32


def make_model(args, mp_policy, mesh, placement):
    with torch.device("meta"):
        model = Transformer(args)
    for layer in model.layers:
        fully_shard(layer, mp_policy=mp_policy, mesh=mesh, shard_placement_fn=placement)
    fully_shard(model, mp_policy=mp_policy, mesh=mesh, shard_placement_fn=placement)
    inspect_model(model, mesh, placement)
    model.to_empty(device="cpu")
    model.reset_parameters()
    inspect_mixed_precision(model, mp_policy.param_dtype or torch.float32)
    return model


def whole_state(args):
    rng = np.random.default_rng(3)
    state = Transformer(args).state_dict()
    return {name: torch.from_numpy((rng.standard_normal(tuple(x.shape)) / 4).astype("f4")) for name, x in state.items()}


def batch(args, step):
    tokens = np.random.default_rng([5, step % 4]).integers(0, args.vocab_size, (8, args.max_seq_len + 1))
    mine = torch.from_numpy(tokens).chunk(dist.get_world_size())[dist.get_rank()]
    return mine[:, :-1], mine[:, 1:]


def train(model, optim, args, steps):
    losses = []
    for step in steps:
        inputs, targets = batch(args, step)
        loss = F.cross_entropy(model(inputs).flatten(0, 1), targets.flatten())
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm=1.0)
        optim.step()
        optim.zero_grad()
        mean = loss.detach().double().clone()
        dist.all_reduce(mean)
        losses.append(mean.item() / dist.get_world_size())
    return losses


def main(steps=6, mixed=False, hybrid=False, columns=False):
    setup()
    placement = by_columns if columns else None
    args = ModelArgs()
    names = ("replicate", "shard")
    mesh = init_device_mesh("cpu", (2, dist.get_world_size() // 2), mesh_dim_names=names) if hybrid else None
    policy = MixedPrecisionPolicy(torch.bfloat16, torch.float32) if mixed else MixedPrecisionPolicy()
    options = StateDictOptions(full_state_dict=True, broadcast_from_rank0=True)
    model = make_model(args, policy, mesh, placement)
    set_model_state_dict(model, whole_state(args) if dist.get_rank() == 0 else {}, options=options)
    optim = torch.optim.Adam(model.parameters(), lr=1e-2)
    losses = train(model, optim, args, range(steps // 2))

    folders = [tempfile.mkdtemp() if dist.get_rank() == 0 else None]
    dist.broadcast_object_list(folders, src=0)
    of_model, of_optim = get_state_dict(model, optim)
    writer = dcp.FileSystemWriter(folders[0])
    dcp.async_save({"model": of_model, "optim": of_optim, "step": steps // 2}, storage_writer=writer).result()
    whole = StateDictOptions(full_state_dict=True, cpu_offload=True)
    whole_model = copy.deepcopy(get_model_state_dict(model, options=whole))
    whole_optim = copy.deepcopy(get_optimizer_state_dict(model, optim, options=whole))
    assert (dist.get_rank() == 0) == bool(whole_model) == bool(whole_optim)
    following = train(model, optim, args, range(steps // 2, steps))

    # Another model continues from the checkpoint, and another one from the whole states of rank 0.
    resumed = make_model(args, policy, mesh, placement)
    optim = torch.optim.Adam(resumed.parameters(), lr=1.0)
    of_model, of_optim = get_state_dict(resumed, optim)
    state = {"model": of_model, "optim": of_optim, "step": 0}
    dcp.load(state, storage_reader=dcp.FileSystemReader(folders[0]))
    set_state_dict(resumed, optim, model_state_dict=state["model"], optim_state_dict=state["optim"])
    from_checkpoint = train(resumed, optim, args, range(state["step"], steps))

    resumed = make_model(args, policy, mesh, placement)
    optim = torch.optim.Adam(resumed.parameters(), lr=1.0)
    set_model_state_dict(resumed, whole_model, options=options)
    set_optimizer_state_dict(resumed, optim, whole_optim, options=options)
    from_whole = train(resumed, optim, args, range(steps // 2, steps))
    dist.destroy_process_group()
    spread = np.abs(np.array([from_checkpoint, from_whole]) - following).max()
    assert spread < (2e-2 if mixed else 1e-6), spread
    return losses + following, {"resumed": np.array([from_checkpoint, from_whole])}


if __name__ == "__main__":
    kinds = {kind: kind in sys.argv for kind in ("mixed", "hybrid", "columns")}
    found, numbers = main(steps=6, **kinds)
    result = {"losses": found, "resumed": numbers["resumed"].tolist()}
    Path(f"{sys.argv[1]}.{os.environ['RANK']}").write_text(json.dumps(result))

"""Distill a small decoder from a large one, and decode by speculation: the draft proposes, the target accepts."""

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.nn import Module, ModuleList

Cache = list[tuple[torch.Tensor, torch.Tensor]]


def top_k(logits, thres=0.7):
    k = max(1, int((1 - thres) * logits.shape[-1]))
    val, ind = torch.topk(logits, k)
    probs = torch.full_like(logits, float("-inf"))
    probs.scatter_(-1, ind, val)
    return probs


def log(t, eps=1e-20):
    return torch.log(t.clamp(min=eps))


def safe_div(num, den, eps=1e-10):
    return num / max(den, eps)


def find_first_true_index(bool_tensor, dim=-1):
    return (bool_tensor.cumsum(dim=dim) == 0).sum(dim=dim)


class CausalAttention(Module):
    def __init__(self, dim, heads=2):
        super().__init__()
        self.heads = heads
        self.norm = nn.RMSNorm(dim)
        self.to_qkv = nn.Linear(dim, dim * 3, bias=False)
        self.to_out = nn.Linear(dim, dim, bias=False)

    def forward(self, x, cache=None):
        b, n, d = x.shape
        q, k, v = self.to_qkv(self.norm(x)).view(b, n, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        if cache is not None:
            ck, cv = cache
            k, v = torch.cat((ck, k), dim=-2), torch.cat((cv, v), dim=-2)
        i, j = q.shape[-2], k.shape[-2]
        mask = torch.ones((i, j), dtype=torch.bool, device=x.device).triu(j - i + 1).logical_not()
        out = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        return self.to_out(out.transpose(1, 2).reshape(b, n, d)), (k, v)


class Decoder(Module):
    def __init__(self, *, num_tokens, dim, depth):
        super().__init__()
        self.token_emb = nn.Embedding(num_tokens, dim)
        self.layers = ModuleList([])
        for _ in range(depth):
            ff = nn.Sequential(nn.RMSNorm(dim), nn.Linear(dim, 2 * dim), nn.SiLU(), nn.Linear(2 * dim, dim))
            self.layers.append(ModuleList([CausalAttention(dim), ff]))
        self.to_logits = nn.Sequential(nn.RMSNorm(dim), nn.Linear(dim, num_tokens, bias=False))

    def forward(self, x, return_loss=False, return_cache=False, cache: Cache | None = None):
        if return_loss:
            x, labels = x[:, :-1], x[:, 1:]
        if cache is not None:
            x = x[:, cache[0][0].shape[-2] :]
        x = self.token_emb(x)
        iter_cache = iter(cache or [])
        new_cached_kvs = []
        for attn, ff in self.layers:
            attn_out, kv = attn(x, cache=next(iter_cache, None))
            x = x + attn_out
            x = ff(x) + x
            new_cached_kvs.append(kv)
        logits = self.to_logits(x)
        if not return_loss:
            return (logits, new_cached_kvs) if return_cache else logits
        return F.cross_entropy(logits.transpose(1, 2), labels)


@torch.no_grad()
def speculative_decoding(net, small_net, prompt, seq_len, rng, gamma=3):
    out, num_steps, total_accepted = prompt.clone(), 0, 0
    cache = small_cache = None
    while out.shape[-1] < seq_len:
        start = out.shape[-1]
        all_small_logits, q_sampled_out = [], []
        for _ in range(gamma):
            small_logits, small_cache = small_net(out, cache=small_cache, return_cache=True)
            small_logits = top_k(small_logits[:, -1])
            all_small_logits.append(small_logits)
            gumbel = torch.from_numpy(rng.gumbel(size=small_logits.shape)).to(small_logits.dtype)
            sample = (small_logits + gumbel).argmax(dim=-1)
            out = torch.cat((out, sample[..., None]), dim=-1)
            q_sampled_out.append(sample[..., None])
        q_sampled_out = torch.stack(q_sampled_out, dim=-2)
        small_prob = torch.stack(all_small_logits, dim=-2).softmax(dim=-1)
        logits, cache = net(out, cache=cache, return_cache=True)
        logits = top_k(logits[..., -(gamma + 1) :, :])
        prob, prob_next = logits.softmax(dim=-1).split([gamma, 1], dim=1)
        p, prob_next = prob.gather(-1, q_sampled_out)[..., 0], prob_next[:, 0]
        q = small_prob.gather(-1, q_sampled_out)[..., 0]
        r = torch.from_numpy(rng.random(q.shape)).type_as(q)
        accepted = find_first_true_index(r > (p / q))
        n = accepted.item()
        total_accepted, num_steps = total_accepted + n, num_steps + 1
        if n < gamma:
            adjusted_prob = F.relu(prob[:, n] - small_prob[:, n])
            prob_next = adjusted_prob / adjusted_prob.sum(dim=-1, keepdim=True)
            out = out[:, : start + n]
            cache = [tuple(t[..., : start + n, :] for t in kv) for kv in cache]
            small_cache = [tuple(t[..., : start + n, :] for t in kv) for kv in small_cache]
        out = torch.cat((out, log(prob_next).argmax(dim=-1, keepdim=True)), dim=-1)
    return out[..., prompt.shape[-1] :], safe_div(total_accepted, num_steps)


def main(steps=5):
    rng = np.random.default_rng(0)
    torch.set_default_dtype(torch.float64)
    try:
        net = Decoder(num_tokens=12, dim=16, depth=2)
        small = Decoder(num_tokens=12, dim=8, depth=1)
        for p in [*net.parameters(), *small.parameters()]:
            if p.ndim > 1:
                p.data.copy_(torch.from_numpy(rng.normal(0, p.shape[-1] ** -0.5, p.shape)))
            elif p.eq(1).all():
                pass
            else:
                torch.nn.init.zeros_(p)
        text = torch.arange(16).mul(5).fmod(12).view(1, -1).repeat(4, 1) + torch.arange(4)[:, None]
        text.remainder_(12)
        optim = torch.optim.NAdam([{"params": net.parameters()}, {"params": small.parameters(), "lr": 2e-2}], lr=1e-2)
        losses, distances = [], []
        for _ in range(steps):
            loss = net(text, return_loss=True)
            teacher = net(text).detach().log_softmax(-1)
            distill = F.kl_div(small(text).log_softmax(-1), teacher, reduction="batchmean", log_target=True) / 16
            (loss + distill).backward()
            optim.step()
            optim.zero_grad()
            losses.append(loss.item())
            distances.append(distill.item())
        net.eval(), small.eval()
        tokens, rate = speculative_decoding(net, small, text[:1, :4], 16, rng)
        return losses, {"distances": distances, "tokens": tokens[0].tolist(), "accepted": rate}
    finally:
        torch.set_default_dtype(torch.float32)

"""Train a small Transformer-XL: relative positions by a shifted matrix, and a memory without gradients."""

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F


class PositionalEmbedding(nn.Module):
    def __init__(self, demb):
        super().__init__()
        inv_freq = 1 / (10000 ** (torch.arange(0.0, demb, 2.0) / demb))
        self.register_buffer("inv_freq", inv_freq)

    def forward(self, pos_seq, bsz=None):
        sinusoid_inp = torch.ger(pos_seq, self.inv_freq)
        pos_emb = torch.cat([sinusoid_inp.sin(), sinusoid_inp.cos()], dim=-1)
        if bsz is not None:
            return pos_emb[:, None, :].expand(-1, bsz, -1)
        return pos_emb[:, None, :]


class RelMultiHeadAttn(nn.Module):
    def __init__(self, n_head, d_model, d_head):
        super().__init__()
        self.n_head, self.d_head = n_head, d_head
        self.qkv_net = nn.Linear(d_model, 3 * n_head * d_head, bias=False)
        self.r_net = nn.Linear(d_model, n_head * d_head, bias=False)
        self.o_net = nn.Linear(n_head * d_head, d_model, bias=False)
        self.layer_norm = nn.LayerNorm(d_model)
        self.scale = 1 / (d_head**0.5)

    def _rel_shift(self, x):
        zero_pad = torch.zeros((x.size(0), 1, *x.size()[2:]), device=x.device, dtype=x.dtype)
        x_padded = torch.cat([zero_pad, x], dim=1)
        x_padded = x_padded.view(x.size(1) + 1, x.size(0), *x.size()[2:])
        return x_padded[1:].view_as(x)

    def forward(self, w, r, r_w_bias, r_r_bias, attn_mask=None, mems=None):
        qlen, rlen, bsz = w.size(0), r.size(0), w.size(1)
        cat = torch.cat([mems, w], 0) if mems is not None else w
        w_head_q, w_head_k, w_head_v = torch.chunk(self.qkv_net(cat), 3, dim=-1)
        w_head_q = w_head_q[-qlen:]
        klen = w_head_k.size(0)
        w_head_q = w_head_q.view(qlen, bsz, self.n_head, self.d_head)
        w_head_k = w_head_k.view(klen, bsz, self.n_head, self.d_head)
        w_head_v = w_head_v.view(klen, bsz, self.n_head, self.d_head)
        r_head_k = self.r_net(r).view(rlen, self.n_head, self.d_head)
        AC = torch.einsum("ibnd,jbnd->ijbn", (w_head_q + r_w_bias, w_head_k))
        BD = self._rel_shift(torch.einsum("ibnd,jnd->ijbn", (w_head_q + r_r_bias, r_head_k)))
        attn_score = AC + BD
        attn_score.mul_(self.scale)
        attn_score = attn_score.float().masked_fill(attn_mask[:, :, :, None], -float("inf")).type_as(attn_score)
        attn_prob = F.softmax(attn_score, dim=1)
        attn_vec = torch.einsum("ijbn,jbnd->ibnd", (attn_prob, w_head_v))
        attn_vec = attn_vec.contiguous().view(qlen, bsz, self.n_head * self.d_head)
        return self.layer_norm(w + self.o_net(attn_vec))


class MemTransformerLM(nn.Module):
    def __init__(self, n_token=12, n_layer=2, n_head=2, d_model=16, d_head=8, mem_len=6):
        super().__init__()
        self.word_emb = nn.Embedding(n_token, d_model)
        self.pos_emb = PositionalEmbedding(d_model)
        self.r_w_bias = nn.Parameter(torch.Tensor(n_head, d_head))
        self.r_r_bias = nn.Parameter(torch.Tensor(n_head, d_head))
        self.layers = nn.ModuleList(RelMultiHeadAttn(n_head, d_model, d_head) for _ in range(n_layer))
        self.out = nn.Linear(d_model, n_token)
        self.mem_len, self.n_layer = mem_len, n_layer

    def init_mems(self):
        param = next(self.parameters())
        return [torch.empty(0, dtype=param.dtype, device=param.device) for _ in range(self.n_layer)]

    def _update_mems(self, hids, mems, qlen, mlen):
        with torch.no_grad():
            end_idx = mlen + max(0, qlen)
            beg_idx = max(0, end_idx - self.mem_len)
            return [
                torch.cat([m, h], dim=0)[beg_idx:end_idx].detach() if m.numel() else h[-self.mem_len :].detach()
                for m, h in zip(mems, hids)
            ]

    def forward(self, data, target, *mems):
        mems = list(mems) or self.init_mems()
        qlen, bsz = data.size()
        word_emb = self.word_emb(data)
        mlen = mems[0].size(0) if mems[0].numel() else 0
        klen = mlen + qlen
        mask = torch.triu(word_emb.new_ones(qlen, klen), diagonal=1 + mlen).byte()[:, :, None].bool()
        pos_emb = self.pos_emb(torch.arange(klen - 1, -1, -1.0, device=word_emb.device))
        hids, h = [], word_emb
        for layer, mem in zip(self.layers, mems):
            hids.append(h)
            h = layer(h, pos_emb, self.r_w_bias, self.r_r_bias, mask, mem if mlen else None)
        logits = self.out(h)
        loss = F.cross_entropy(logits.view(-1, logits.size(-1)), target.view(-1), reduction="none").view(qlen, bsz)
        return [loss] + self._update_mems(hids, mems, qlen, mlen)


def main(steps=5, bptt=8):
    rng = np.random.default_rng(2)
    model = MemTransformerLM()
    for p in model.parameters():
        p.data.copy_(torch.from_numpy(rng.normal(0, 0.2, tuple(p.shape))))
    corpus = torch.from_numpy(np.tile(rng.permutation(12), 40)).long()
    data = corpus[: len(corpus) // 4 * 4].view(4, -1).t().contiguous()
    optimizer = torch.optim.Adagrad(model.parameters(), lr=0.1, initial_accumulator_value=0.01)
    mems, losses = tuple(), []
    for step in range(steps):
        i = step * bptt
        x, y = data[i : i + bptt], data[i + 1 : i + 1 + bptt]
        model.zero_grad()
        ret = model(x, y, *mems)
        loss, mems = ret[0], ret[1:]
        loss = loss.float().mean().type_as(loss)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 0.25)
        optimizer.step()
        losses.append(loss.float().item())
    return losses, {"memory": [tuple(m.size()) for m in mems], "values": mems[-1].numpy()}

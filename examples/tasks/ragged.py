"""Causal attention over sequences of 5, 2 and 9 rows, without padding: `python examples/tasks/ragged.py`."""

import retrograd as torch
import retrograd.nn as nn
import retrograd.nn.functional as F


class Attention(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(dim, 3 * dim)
        self.out = nn.Linear(dim, dim)

    def forward(self, x):
        q, k, v = self.qkv(x).chunk(3, -1)
        q, k, v = (t.unflatten(-1, (self.heads, -1)).transpose(1, 2) for t in (q, k, v))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(y.transpose(1, 2).flatten(-2))


torch.manual_seed(0)
rows = [torch.randn(n, 16) for n in (5, 2, 9)]
batch = torch.nested.nested_tensor(rows, layout=torch.jagged, requires_grad=True)
model = Attention(16, 4)
out = model(batch)
print(out.shape)
out.values().pow(2).mean().backward()
assert batch.grad is not None and model.qkv.weight.grad.abs().sum() > 0
for row, y in zip(rows, out.unbind(), strict=True):  # each sequence attends to itself only
    assert torch.allclose(model(row[None])[0], y, atol=1e-5)

"""Train a graph convolutional network, and one with attention, on a graph of communities, by scattered sums."""

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.nn import Parameter


def glorot(tensor, rng):
    stdv = np.sqrt(6.0 / (tensor.size(-2) + tensor.size(-1)))
    tensor.data.copy_(torch.from_numpy(rng.uniform(-stdv, stdv, tuple(tensor.size())).astype("float32")))


def scatter(src, index, dim_size, reduce="sum"):
    out = src.new_zeros((dim_size, *src.size()[1:]))
    if reduce == "sum":
        return out.index_add_(0, index, src)
    index = index.view(-1, *([1] * (src.dim() - 1))).expand_as(src)
    return out.scatter_reduce_(0, index, src, reduce="amax" if reduce == "max" else reduce, include_self=False)


def add_self_loops(edge_index, num_nodes):
    loop_index = torch.arange(0, num_nodes, dtype=torch.long, device=edge_index.device)
    return torch.cat([edge_index, loop_index.unsqueeze(0).repeat(2, 1)], dim=1)


class GCNConv(nn.Module):
    def __init__(self, in_channels, out_channels, rng):
        super().__init__()
        self.weight = Parameter(torch.Tensor(in_channels, out_channels))
        self.bias = Parameter(torch.Tensor(out_channels))
        glorot(self.weight, rng)
        self.bias.data.zero_()

    def forward(self, x, edge_index):
        edge_index = add_self_loops(edge_index, x.size(0))
        row, col = edge_index
        deg = torch.zeros(x.size(0), dtype=x.dtype, device=x.device).scatter_add_(0, col, x.new_ones(col.size(0)))
        deg_inv_sqrt = deg.pow(-0.5)
        deg_inv_sqrt[deg_inv_sqrt == float("inf")] = 0
        norm = deg_inv_sqrt[row] * deg_inv_sqrt[col]
        x = torch.mm(x, self.weight)
        return scatter(norm.view(-1, 1) * x.index_select(0, row), col, x.size(0)) + self.bias


class GATConv(nn.Module):
    def __init__(self, in_channels, out_channels, rng, heads=2, negative_slope=0.2):
        super().__init__()
        self.heads, self.out_channels, self.negative_slope = heads, out_channels, negative_slope
        self.lin = nn.Linear(in_channels, heads * out_channels, bias=False)
        self.att_src = Parameter(torch.empty(1, heads, out_channels))
        self.att_dst = Parameter(torch.empty(1, heads, out_channels))
        for p in self.parameters():
            glorot(p, rng)

    def forward(self, x, edge_index):
        edge_index = add_self_loops(edge_index, x.size(0))
        h = self.lin(x).view(-1, self.heads, self.out_channels)
        alpha_src, alpha_dst = (h * self.att_src).sum(dim=-1), (h * self.att_dst).sum(-1)
        alpha = F.leaky_relu(alpha_src[edge_index[0]] + alpha_dst[edge_index[1]], self.negative_slope)
        index, n = edge_index[1], x.size(0)
        alpha = (alpha - scatter(alpha.detach(), index, n, "max")[index]).exp()
        alpha = alpha / (scatter(alpha, index, n)[index] + 1e-16)
        out = scatter(h[edge_index[0]] * alpha.unsqueeze(-1), index, n)
        return out.flatten(1)


class Net(torch.nn.Module):
    def __init__(self, rng):
        super().__init__()
        self.conv1 = GCNConv(12, 8, rng)
        self.conv2 = GATConv(8, 2, rng)

    def forward(self, x, edge_index):
        x = F.elu(self.conv1(x, edge_index))
        x = F.dropout(x, p=0.0, training=self.training)
        return F.log_softmax(self.conv2(x, edge_index), dim=1)


def communities(rng, size=15):
    labels = np.repeat(np.arange(4), size)
    linked = rng.random((4 * size, 4 * size)) < np.where(labels[:, None] == labels, 0.3, 0.02)
    linked = np.triu(linked, 1)
    edges = np.stack(np.nonzero(linked | linked.T))
    x = rng.normal(0, 1, (4 * size, 12))
    x[np.arange(4 * size), labels] += 1
    return torch.tensor(x, dtype=torch.float), torch.from_numpy(edges), torch.LongTensor(labels)


def main(steps=5):
    rng = np.random.default_rng(0)
    x, edge_index, y = communities(rng)
    train_mask = torch.zeros(x.size(0), dtype=torch.bool)
    train_mask[::3] = True
    model = Net(rng)
    optimizer = torch.optim.Adam(
        [
            dict(params=model.conv1.parameters(), weight_decay=5e-4),
            dict(params=model.conv2.parameters(), weight_decay=0),
        ],
        lr=0.02,
    )
    losses = []
    for _ in range(steps):
        model.train()
        optimizer.zero_grad()
        out = model(x, edge_index)
        loss = F.nll_loss(out[train_mask], y[train_mask])
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    model.eval()
    with torch.no_grad():
        pred = model(x, edge_index).argmax(dim=-1)
    accuracy = int((pred[~train_mask] == y[~train_mask]).sum()) / int((~train_mask).sum())
    return losses, {"accuracy": accuracy}

"""Train a graph attention network by scatter operations, and a deep equilibrium layer with implicit gradients."""

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F


def scatter_softmax(src, index, num_nodes):
    maximum = torch.full((num_nodes, src.size(1)), float("-inf")).scatter_reduce(
        0, index.unsqueeze(-1).expand_as(src), src.detach(), reduce="amax", include_self=True
    )
    out = (src - maximum[index]).exp()
    total = torch.zeros(num_nodes, src.size(1)).scatter_add_(0, index.unsqueeze(-1).expand_as(out), out)
    return out / (total[index] + 1e-16)


class GATConv(nn.Module):
    def __init__(self, in_channels, out_channels, heads):
        super().__init__()
        self.heads, self.out_channels = heads, out_channels
        self.lin = nn.Linear(in_channels, heads * out_channels, bias=False)
        self.att_src = nn.Parameter(torch.empty(1, heads, out_channels))
        self.att_dst = nn.Parameter(torch.empty(1, heads, out_channels))
        self.reset_parameters()

    def reset_parameters(self):
        nn.init.xavier_normal_(self.lin.weight, gain=nn.init.calculate_gain("relu"))
        nn.init.kaiming_uniform_(self.att_src, a=0.2, nonlinearity="leaky_relu")
        nn.init.trunc_normal_(self.att_dst, std=0.02)

    def forward(self, x, edge_index):
        src, dst = edge_index
        h = self.lin(x).view(-1, self.heads, self.out_channels)
        alpha = (h * self.att_src).sum(-1)[src] + (h * self.att_dst).sum(dim=-1)[dst]
        alpha = scatter_softmax(F.leaky_relu(alpha, 0.2), dst, x.size(0))
        out = torch.zeros_like(h).index_add_(0, dst, h[src] * alpha.unsqueeze(-1))
        return out.flatten(1)


class DEQFixedPoint(nn.Module):
    def __init__(self, f, tol=1e-6, max_iter=60):
        super().__init__()
        self.f, self.tol, self.max_iter = f, tol, max_iter

    def solve(self, f, z):
        for _ in range(self.max_iter):
            z_next = f(z)
            if (z_next - z).norm() < self.tol:
                break
            z = z_next
        return z_next

    def forward(self, x):
        with torch.no_grad():
            z = self.solve(lambda z: self.f(z, x), torch.zeros_like(x))
        z = self.f(z, x)
        z0 = z.clone().detach().requires_grad_()
        f0 = self.f(z0, x)

        def backward_hook(grad):
            return self.solve(lambda y: torch.autograd.grad(f0, z0, y, retain_graph=True)[0] + grad, grad)

        if z.requires_grad:
            z.register_hook(backward_hook)
        return z


class Cell(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.W = nn.Linear(dim, dim)

    def forward(self, z, x):
        return torch.tanh(0.3 * self.W(z) + x)


class Net(nn.Module):
    def __init__(self, features, classes):
        super().__init__()
        self.conv1 = GATConv(features, 4, heads=2)
        self.deq = DEQFixedPoint(Cell(8))
        self.conv2 = GATConv(8, classes, heads=1)

    def forward(self, x, edge_index):
        return F.log_softmax(self.conv2(self.deq(F.elu(self.conv1(x, edge_index))), edge_index), dim=-1)


def main(steps=5):
    rng = np.random.default_rng(3)
    nodes = 30
    y = torch.from_numpy(np.repeat(np.arange(3), 10))
    x = torch.Tensor(rng.standard_normal((nodes, 6))) + F.one_hot(y, 6).float()
    pairs = torch.from_numpy(rng.integers(0, nodes, (2, 120)))
    edge_index = pairs[:, (y[pairs[0]] == y[pairs[1]]) | torch.from_numpy(rng.random(120) < 0.1)]
    edge_index = torch.cat([edge_index, torch.arange(nodes).repeat(2, 1)], dim=1)
    edge_index = torch.unique(edge_index, dim=1)
    model = Net(6, 3)
    for p in model.parameters():
        p.data.copy_(torch.Tensor(rng.normal(0, 0.4, tuple(p.shape))))
    train_mask = torch.zeros(nodes, dtype=torch.bool)
    train_mask[torch.from_numpy(rng.choice(nodes, 15, replace=False))] = True
    optimizer = torch.optim.RAdam(model.parameters(), lr=0.02, weight_decay=5e-4)
    losses = []
    for epoch in range(steps):
        model.train()
        optimizer.zero_grad()
        out = model(x, edge_index)
        loss = F.nll_loss(out[train_mask], y[train_mask])
        loss.backward()
        optimizer.step()
        losses.append(float(loss.detach()))
    degree = torch.bincount(edge_index[1], minlength=nodes)
    adjacency = torch.sparse_coo_tensor(
        edge_index, torch.ones(edge_index.size(1)), (nodes, nodes), check_invariants=True
    )
    assert torch.equal(torch.sparse.sum(adjacency, dim=0).to_dense().long(), degree)
    return losses, {
        "accuracy": (out.argmax(1)[~train_mask] == y[~train_mask]).float().mean().item(),
        "mean": torch.sparse.mm(adjacency.t(), x).div(degree.unsqueeze(1)).mean(1).tolist(),
    }

"""Learn to sort and to transport: Gumbel-Sinkhorn permutations, and a Function with an implicit backward."""

import numpy as np
import torch
from torch import nn
from torch.autograd import Function
from torch.autograd.function import once_differentiable


class Sinkhorn(Function):
    """The optimal transport plan in the log domain; its backward pass solves a linear system, not the iterations."""

    @staticmethod
    def forward(ctx, c, a, b, num_sink=50, lambd_sink=0.3):
        log_p = -c / lambd_sink
        log_a, log_b = torch.log(a).unsqueeze(dim=-1), torch.log(b).unsqueeze(dim=-2)
        for _ in range(num_sink):
            log_p -= torch.logsumexp(log_p, dim=-2, keepdim=True) - log_b
            log_p -= torch.logsumexp(log_p, dim=-1, keepdim=True) - log_a
        p = torch.exp(log_p)
        ctx.save_for_backward(p, torch.sum(p, dim=-1), torch.sum(p, dim=-2))
        ctx.lambd_sink = lambd_sink
        return p

    @staticmethod
    @once_differentiable
    def backward(ctx, grad_p):
        p, a, b = ctx.saved_tensors
        m, n = p.shape[-2:]
        batch_shape = list(p.shape[:-2])
        grad_p *= -1 / ctx.lambd_sink * p
        K = torch.cat(
            (
                torch.cat((torch.diag_embed(a), p), dim=-1),
                torch.cat((p.transpose(-2, -1), torch.diag_embed(b)), dim=-1),
            ),
            dim=-2,
        )[..., :-1, :-1]
        t = torch.cat((grad_p.sum(dim=-1), grad_p[..., :, :-1].sum(dim=-2)), dim=-1).unsqueeze(-1)
        grad_ab = torch.linalg.solve(K, t)
        grad_a = grad_ab[..., :m, :]
        grad_b = torch.cat(
            (grad_ab[..., m:, :], torch.zeros(batch_shape + [1, 1], device=grad_p.device, dtype=torch.float64)), dim=-2
        )
        U = grad_a + grad_b.transpose(-2, -1)
        grad_p -= p * U
        grad_a = -ctx.lambd_sink * grad_a.squeeze(dim=-1)
        grad_b = -ctx.lambd_sink * grad_b.squeeze(dim=-1)
        return grad_p, grad_a, grad_b, None, None


def gumbel_sinkhorn(log_alpha, noise, temp=1.0, n_iters=10):
    n = log_alpha.size()[-1]
    log_alpha = (log_alpha + noise).div(temp).view(-1, n, n)
    for _ in range(n_iters):
        log_alpha = log_alpha - torch.logsumexp(log_alpha, dim=2, keepdim=True).view(-1, n, 1)
        log_alpha = log_alpha - torch.logsumexp(log_alpha, dim=1, keepdim=True).view(-1, 1, n)
    return torch.exp(log_alpha)


def matching(alpha):
    from scipy.optimize import linear_sum_assignment

    return torch.tensor(np.array([linear_sum_assignment(-a)[1] for a in alpha.detach().cpu().numpy()]))


class SortNet(nn.Module):
    def __init__(self, n_numbers, latent=16):
        super().__init__()
        self.linear1 = nn.Linear(1, latent)
        self.relu1 = nn.ReLU()
        self.linear2 = nn.Linear(latent, n_numbers)

    def forward(self, x):
        x = x.view(-1, 1)
        return self.linear2(self.relu1(self.linear1(x))).view(-1, self.linear2.out_features, self.linear2.out_features)


def main(steps=5):
    rng = np.random.default_rng(0)
    n = 5
    x = torch.from_numpy(rng.random((16, n)))
    ordered, _ = torch.sort(x)
    net = SortNet(n).to(torch.float64)
    cost = nn.Parameter(torch.from_numpy(rng.random((4, n, n))))
    marginal = nn.Parameter(torch.full((4, n), 1 / n, dtype=torch.double))
    for p in net.parameters():
        p.data = torch.tensor(rng.normal(0, 1, p.shape))
    wanted = torch.eye(n, dtype=torch.float64).roll(1, 0) / n
    optimizer = torch.optim.Adam([*net.parameters(), cost, marginal], lr=0.05, eps=1e-6)
    losses, plans = [], []
    for _ in range(steps):
        noise = torch.from_numpy(rng.gumbel(size=(16, n, n)))
        soft = gumbel_sinkhorn(net(x), noise, temp=0.5)
        sorting = nn.MSELoss()(torch.bmm(soft.transpose(1, 2), x.unsqueeze(-1)).squeeze(-1), ordered)
        a = torch.softmax(marginal, -1)
        p = Sinkhorn.apply(cost, a, torch.full_like(a, 1 / n))
        loss = sorting + ((p - wanted) ** 2).sum((-2, -1)).mean() * n
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        plans.append(p.diagonal(dim1=-2, dim2=-1).sum().item())
    hard = matching(gumbel_sinkhorn(net(x), 0.0, temp=0.1))
    return losses, {"plans": plans, "hard": hard.numpy(), "cost": cost.grad.numpy(), "marginal": marginal.grad.numpy()}

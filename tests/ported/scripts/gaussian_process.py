"""Fit a Gaussian process by its marginal likelihood, and a variational one with inducing points."""

import math

import numpy as np
import torch
from torch import nn
from torch.distributions import MultivariateNormal, kl_divergence

torch_default = torch.get_default_dtype()


class RBF(nn.Module):
    def __init__(self):
        super().__init__()
        self.raw_lengthscale = nn.Parameter(torch.zeros(1, dtype=torch.float64))
        self.raw_outputscale = nn.Parameter(torch.zeros((), dtype=torch.float64))

    def forward(self, a, b):
        scale = nn.functional.softplus(self.raw_lengthscale)
        sq = torch.cdist(a / scale, b / scale, compute_mode="donot_use_mm_for_euclid_dist").pow(2)
        return nn.functional.softplus(self.raw_outputscale) * torch.exp(-0.5 * sq)


class ExactGP(nn.Module):
    def __init__(self, x, y):
        super().__init__()
        self.kernel = RBF()
        self.raw_noise = nn.Parameter(torch.tensor(-2.0).double())
        self.register_buffer("x", x)
        self.register_buffer("y", y)

    def covariance(self):
        K = self.kernel(self.x, self.x)
        return K + nn.functional.softplus(self.raw_noise) * torch.eye(len(self.x), dtype=K.dtype, device=K.device)

    def neg_log_marginal(self):
        L = torch.linalg.cholesky(self.covariance())
        alpha = torch.cholesky_solve(self.y.unsqueeze(-1), L)
        fit = 0.5 * self.y.dot(alpha.squeeze(-1))
        return fit + L.diagonal().log().sum() + 0.5 * len(self.y) * math.log(2 * math.pi)

    @torch.no_grad()
    def predict(self, x):
        L = torch.linalg.cholesky(self.covariance())
        Ks = self.kernel(self.x, x)
        v = torch.linalg.solve_triangular(L, Ks, upper=False)
        mean = Ks.mT @ torch.cholesky_solve(self.y[:, None], L)
        return mean.squeeze(-1), self.kernel(x, x).diagonal() - v.square().sum(0)


class SVGP(nn.Module):
    def __init__(self, z):
        super().__init__()
        self.kernel = RBF()
        self.z = nn.Parameter(z.clone())
        self.m = nn.Parameter(torch.zeros(len(z), dtype=z.dtype))
        self.L = nn.Parameter(torch.eye(len(z), dtype=z.dtype))

    def forward(self, x):
        Kzz = self.kernel(self.z, self.z) + 1e-5 * torch.eye(len(self.z), dtype=x.dtype)
        Lz = torch.linalg.cholesky(Kzz)
        A = torch.linalg.solve_triangular(Lz, self.kernel(self.z, x), upper=False)
        S = torch.tril(self.L)
        mean = A.t() @ self.m
        var = self.kernel.raw_outputscale.exp().log1p() - (A**2).sum(0) + ((S.t() @ A) ** 2).sum(0)
        q = MultivariateNormal(self.m, scale_tril=S)
        p = MultivariateNormal(torch.zeros_like(self.m), covariance_matrix=torch.eye(len(self.m), dtype=x.dtype))
        return mean, var, kl_divergence(q, p)


def main(steps=5):
    rng = np.random.default_rng(0)
    x = torch.from_numpy(np.sort(rng.uniform(-3, 3, 30)))[:, None]
    y = torch.sin(2 * x).squeeze(1) + 0.1 * torch.from_numpy(rng.standard_normal(30))
    gp, svgp = ExactGP(x, y), SVGP(torch.linspace(-3, 3, 6, dtype=torch.double)[:, None])
    optimizer = torch.optim.Adam([{"params": gp.parameters()}, {"params": svgp.parameters(), "lr": 0.02}], lr=0.1)
    losses, parts = [], []
    for i in range(steps):
        optimizer.zero_grad()
        mll = gp.neg_log_marginal()
        mean, var, kl = svgp(x)
        expected = nn.functional.gaussian_nll_loss(mean, y, torch.full_like(mean, 0.04)) + 0.5 * (var / 0.04).mean()
        loss = mll + expected + kl / len(x)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        parts.append([mll.item(), expected.item(), kl.item()])
    mean, variance = gp.predict(torch.linspace(-3, 3, 7).double()[:, None])
    grid = torch.meshgrid(torch.arange(3), torch.arange(2), indexing="ij")
    return losses, {"parts": parts, "mean": mean.numpy(), "variance": variance.numpy(), "grid": grid[0].tolist()}

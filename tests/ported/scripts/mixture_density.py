"""Fit a mixture density network to an inverse problem, where one input has several outputs."""

import math

import numpy as np
import torch
import torch.nn as nn
from torch.distributions import Categorical, Independent, MixtureSameFamily, Normal

ONEOVERSQRT2PI = 1.0 / math.sqrt(2 * math.pi)
LOG2PI = math.log(2 * math.pi)


class MDN(nn.Module):
    def __init__(self, in_features, out_features, num_gaussians):
        super(MDN, self).__init__()
        self.in_features, self.out_features, self.num_gaussians = in_features, out_features, num_gaussians
        self.pi = nn.Sequential(nn.Linear(in_features, num_gaussians), nn.Softmax(dim=1))
        self.sigma = nn.Linear(in_features, out_features * num_gaussians)
        self.mu = nn.Linear(in_features, out_features * num_gaussians)

    def forward(self, minibatch):
        pi = self.pi(minibatch)
        sigma = torch.exp(self.sigma(minibatch))
        sigma = sigma.view(-1, self.num_gaussians, self.out_features)
        mu = self.mu(minibatch)
        mu = mu.view(-1, self.num_gaussians, self.out_features)
        return pi, sigma, mu


def gaussian_probability(sigma, mu, target):
    target = target.unsqueeze(1).expand_as(sigma)
    ret = ONEOVERSQRT2PI * torch.exp(-0.5 * ((target - mu) / sigma) ** 2) / sigma
    return torch.prod(ret, 2)


def mdn_loss(pi, sigma, mu, target):
    prob = pi * gaussian_probability(sigma, mu, target)
    nll = -torch.log(torch.sum(prob, dim=1))
    return torch.mean(nll)


def sample(pi, sigma, mu, noise):
    pis = torch.argmax(pi, 1, keepdim=True).unsqueeze(-1).expand(-1, -1, sigma.size(2))
    variance_samples = sigma.gather(1, pis).detach().squeeze(1)
    mean_samples = mu.detach().gather(1, pis).squeeze(1)
    return (noise * variance_samples + mean_samples).transpose(0, 1).squeeze()


def main(steps=5):
    rng = np.random.RandomState(0)
    y = torch.from_numpy(rng.uniform(-10, 10, (200, 1)))
    x = 7 * torch.sin(0.75 * y) + 0.5 * y + torch.from_numpy(rng.randn(200, 1))
    model = nn.Sequential(nn.Linear(1, 12), nn.Tanh(), MDN(12, 1, 4)).double()
    model.apply(
        lambda module: [
            p.data.copy_(torch.from_numpy(rng.randn(*p.shape) * 0.5)) for p in module.parameters(recurse=False)
        ]
    )
    optimizer = torch.optim.RMSprop(model.parameters(), lr=1e-2, centered=True)
    losses, norms = [], []
    for _ in range(steps):
        model.zero_grad()
        pi, sigma, mu = model(x / 10)
        loss = mdn_loss(pi, sigma, mu, y / 10)
        loss.backward()
        norms.append([p.grad.norm(p=float("inf")).item() for p in model[2].parameters()])
        optimizer.step()
        losses.append(loss.detach().item())
    pi, sigma, mu = model(x / 10)
    mixture = MixtureSameFamily(Categorical(probs=pi), Independent(Normal(mu, sigma), 1))
    return losses, {
        "norms": norms,
        "log prob": mixture.log_prob(y / 10).mean().item(),
        "mean": mixture.mean[:5].detach().numpy(),
        "variance": mixture.variance[:5].detach().numpy(),
        "sample": sample(pi, sigma, mu, torch.from_numpy(rng.randn(200, 1))).numpy(),
    }

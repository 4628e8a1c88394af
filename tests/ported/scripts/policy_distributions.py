"""Train policies by torch.distributions: discrete, squashed normal, beta and mixtures, with their KL terms."""

import numpy as np
import torch
import torch.distributions as D
import torch.nn as nn
from torch.distributions import (
    Categorical,
    Independent,
    MixtureSameFamily,
    Normal,
    TransformedDistribution,
    constraints,
    kl_divergence,
    transforms,
)

LOSSES_FALL = False  # each rollout has its own loss


class Policy(nn.Module):
    def __init__(self, obs=4, act=2, hidden=16):
        super().__init__()
        self.affine1 = nn.Linear(obs, hidden)
        self.action_head = nn.Linear(hidden, 3)
        self.mean = nn.Linear(hidden, act)
        self.log_std = nn.Parameter(torch.zeros(act))
        self.beta = nn.Linear(hidden, 2 * act)
        self.mixture = nn.Linear(hidden, 3 * 3)
        self.saved_log_probs = []
        self.rewards = []

    def forward(self, x):
        h = torch.relu(self.affine1(x))
        discrete = Categorical(logits=self.action_head(h))
        normal = Independent(Normal(self.mean(h), self.log_std.exp().expand_as(self.mean(h))), 1)
        squashed = TransformedDistribution(
            normal, [transforms.TanhTransform(cache_size=1), transforms.AffineTransform(0.0, 2.0)]
        )
        alpha, beta = (nn.functional.softplus(self.beta(h)) + 1).chunk(2, -1)
        bounded = Independent(D.Beta(alpha, beta), reinterpreted_batch_ndims=1)
        weights, loc, scale = self.mixture(h).reshape(*h.shape[:-1], 3, 3).unbind(-1)
        mixture = MixtureSameFamily(Categorical(logits=weights), Normal(loc, scale.exp()))
        return discrete, squashed, bounded, mixture, normal


def main(steps=5):
    torch.manual_seed(543)
    rng = np.random.default_rng(0)
    policy = Policy()
    for p in policy.parameters():
        p.data = torch.from_numpy(rng.normal(0, 0.2, p.shape).astype(np.float32))
    optimizer = torch.optim.Adam(policy.parameters(), lr=1e-2)
    eps = np.finfo(np.float32).eps.item()
    losses, entropies, divergences = [], [], []
    for episode in range(steps):
        obs = torch.from_numpy(rng.standard_normal((12, 4))).float()
        discrete, squashed, bounded, mixture, normal = policy(obs)
        assert constraints.unit_interval.check(bounded.mean).all()
        assert discrete.sample((2,)).shape == (2, 12) and squashed.rsample().shape == (12, 2)
        actions = (
            torch.from_numpy(rng.integers(0, 3, 12)),
            torch.from_numpy(rng.uniform(-1.9, 1.9, (12, 2))).float(),
            torch.from_numpy(rng.uniform(0.05, 0.95, (12, 2))).float(),
            torch.from_numpy(rng.standard_normal(12)).float(),
        )
        log_prob = sum(d.log_prob(a) for d, a in zip((discrete, squashed, bounded, mixture), actions))
        R, returns = 0, []
        for r in rng.random(12)[::-1]:
            R = r + 0.99 * R
            returns.insert(0, R)
        returns = torch.tensor(returns)
        returns = (returns - returns.mean()) / (returns.std() + eps)
        policy_loss = [-lp * ret for lp, ret in zip(log_prob, returns)]
        prior = Independent(Normal(torch.zeros(2), torch.ones(2)), 1).expand([12])
        kl = kl_divergence(normal, prior).mean() + kl_divergence(discrete, Categorical(torch.ones(12, 3))).mean()
        entropy = discrete.entropy().mean() + bounded.entropy().mean()
        optimizer.zero_grad()
        loss = torch.stack(policy_loss).sum() + 0.1 * kl - 0.01 * entropy
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        entropies.append(entropy.item())
        divergences.append(kl.item())
    return losses, {
        "entropies": entropies,
        "divergences": divergences,
        "mixture": [mixture.mean.sum().item(), mixture.variance.sum().item()],
        "modes": bounded.mode.sum().item(),
    }

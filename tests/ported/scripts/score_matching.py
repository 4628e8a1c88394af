"""Learn the score of two moons by sliced, exact and denoising score matching, and sample by Langevin dynamics."""

import numpy as np
import torch
import torch.autograd as autograd
import torch.nn as nn
from sklearn.datasets import make_moons
from torch.func import functional_call, jacrev, jvp, vmap


class ConditionalLinear(nn.Module):
    def __init__(self, num_in, num_out, n_steps):
        super().__init__()
        self.num_out = num_out
        self.lin = nn.Linear(num_in, num_out)
        self.embed = nn.Embedding(n_steps, num_out)
        self.embed.weight.data.uniform_()

    def forward(self, x, y):
        out = self.lin(x)
        gamma = self.embed(y)
        return gamma.view(-1, self.num_out) * out


class ScoreNet(nn.Module):
    def __init__(self, sigmas):
        super().__init__()
        self.register_buffer("sigmas", sigmas)
        self.lin1 = ConditionalLinear(2, 16, len(sigmas))
        self.lin2 = ConditionalLinear(16, 16, len(sigmas))
        self.lin3 = nn.Linear(16, 2)

    def forward(self, x, y):
        x = nn.functional.softplus(self.lin1(x, y))
        x = nn.functional.softplus(self.lin2(x, y))
        return self.lin3(x) / self.sigmas[y].unsqueeze(-1)


def anneal_dsm_score_estimation(scorenet, samples, labels, sigmas, noise, anneal_power=2.0):
    used_sigmas = sigmas[labels].view(samples.shape[0], *([1] * len(samples.shape[1:])))
    perturbed_samples = samples + noise * used_sigmas
    target = -1 / (used_sigmas**2) * (perturbed_samples - samples)
    scores = scorenet(perturbed_samples, labels)
    target = target.view(target.shape[0], -1)
    scores = scores.view(scores.shape[0], -1)
    loss = 1 / 2.0 * ((scores - target) ** 2).sum(dim=-1) * used_sigmas.squeeze() ** anneal_power
    return loss.mean(dim=0)


def sliced_score_estimation_vr(score_net, samples, vectors):
    samples.requires_grad_(True)
    grad1 = score_net(samples)
    gradv = torch.sum(grad1 * vectors)
    grad2 = autograd.grad(gradv, samples, create_graph=True)[0]
    loss1 = torch.sum(grad1 * grad1, dim=-1) / 2.0
    loss2 = torch.sum(vectors * grad2, dim=-1)
    return (loss1 + loss2).mean(), loss1.mean(), loss2.mean()


def exact_score_matching(net, samples, label):
    params = dict(net.named_parameters())

    def score(p, x):
        return functional_call(net, p, (x[None], label)).squeeze(0)

    trace = vmap(lambda x: torch.trace(jacrev(score, argnums=1)(params, x)))(samples)
    norm = vmap(lambda x: score(params, x).square().sum() / 2)(samples)
    return (trace + norm).mean()


@torch.no_grad()
def anneal_Langevin_dynamics(x_mod, scorenet, sigmas, rng, n_steps_each=3, step_lr=0.01):
    images = []
    for c, sigma in enumerate(sigmas):
        labels = torch.ones(x_mod.shape[0], device=x_mod.device) * c
        labels = labels.long()
        step_size = step_lr * (sigma / sigmas[-1]) ** 2
        for s in range(n_steps_each):
            images.append(torch.clamp(x_mod, -4.0, 4.0).to("cpu"))
            noise = torch.empty_like(x_mod).copy_(torch.from_numpy(rng.normal(size=x_mod.shape))) * np.sqrt(
                step_size * 2
            )
            grad = scorenet(x_mod, labels)
            x_mod = x_mod + step_size * grad + noise
    return images


def main(steps=5):
    rng = np.random.default_rng(0)
    sigmas = torch.tensor(np.exp(np.linspace(np.log(1.0), np.log(0.1), 4))).float()
    net = ScoreNet(sigmas)
    for p in net.parameters():
        p.data = torch.from_numpy(rng.normal(0, 0.4, p.shape)).float()
    points = torch.from_numpy(make_moons(64, noise=0.05, random_state=0)[0]).float()
    optimizer = torch.optim.Adam(net.parameters(), lr=2e-2, amsgrad=True)
    losses, parts = [], []
    last = torch.tensor([3])
    for i in range(steps):
        net.train()
        labels = torch.from_numpy(rng.integers(0, len(sigmas), (points.shape[0],)))
        noise = torch.from_numpy(rng.normal(size=points.shape)).to(points)
        dsm = anneal_dsm_score_estimation(net, points, labels, sigmas, noise)
        vectors = torch.from_numpy(rng.choice([-1.0, 1.0], points.shape)).to(points)
        sliced, norm, divergence = sliced_score_estimation_vr(lambda x: net(x, last), points.clone(), vectors)
        exact = exact_score_matching(net, points[:8], last)
        loss = dsm + 0.001 * sliced + 0.001 * exact
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        parts.append([t.item() for t in (dsm, norm, divergence, exact)])
    start = torch.from_numpy(rng.uniform(-1, 1, (5, 2))).float()
    samples = anneal_Langevin_dynamics(start, net, net.sigmas.numpy(), rng)
    slope = jvp(lambda x: net(x, last), (start,), (torch.ones_like(start),))[1]
    return losses, {
        "parts": parts,
        "samples": samples[-1].numpy(),
        "slope": slope.detach().numpy(),
        "count": len(samples),
    }

"""Fit a regression with uncertain weights: sampled weights, a scale mixture prior, an ELBO for each minibatch."""

import math

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
RNG = None


class Gaussian(object):
    def __init__(self, mu, rho):
        super().__init__()
        self.mu = mu
        self.rho = rho

    @property
    def sigma(self):
        return torch.log1p(torch.exp(self.rho))

    def sample(self):
        epsilon = torch.from_numpy(RNG.standard_normal(self.rho.size())).type(torch.FloatTensor).to(DEVICE)
        return self.mu + self.sigma * epsilon

    def log_prob(self, input):
        return (
            -math.log(math.sqrt(2 * math.pi)) - torch.log(self.sigma) - ((input - self.mu) ** 2) / (2 * self.sigma**2)
        ).sum()


class ScaleMixtureGaussian(object):
    def __init__(self, pi, sigma1, sigma2):
        super().__init__()
        self.pi = pi
        self.gaussian1 = torch.distributions.Normal(0, sigma1)
        self.gaussian2 = torch.distributions.Normal(0, sigma2)

    def log_prob(self, input):
        prob1 = torch.exp(self.gaussian1.log_prob(input))
        prob2 = torch.exp(self.gaussian2.log_prob(input))
        return (torch.log(self.pi * prob1 + (1 - self.pi) * prob2)).sum()


class BayesianLinear(nn.Module):
    def __init__(self, in_features, out_features):
        super().__init__()
        self.weight_mu = nn.Parameter(torch.Tensor(out_features, in_features).fill_(0.1))
        self.weight_rho = nn.Parameter(torch.Tensor(out_features, in_features).fill_(-3))
        self.weight = Gaussian(self.weight_mu, self.weight_rho)
        self.bias_mu = nn.Parameter(torch.Tensor(out_features).zero_())
        self.bias_rho = nn.Parameter(torch.Tensor(out_features).fill_(-4))
        self.bias = Gaussian(self.bias_mu, self.bias_rho)
        sigma1, sigma2 = torch.FloatTensor([math.exp(-0)]), torch.FloatTensor([math.exp(-6)])
        self.weight_prior = ScaleMixtureGaussian(0.5, sigma1, sigma2)
        self.bias_prior = ScaleMixtureGaussian(0.5, sigma1, sigma2)
        self.log_prior = 0
        self.log_variational_posterior = 0

    def forward(self, input, sample=False, calculate_log_probs=False):
        if self.training or sample:
            weight = self.weight.sample()
            bias = self.bias.sample()
        else:
            weight = self.weight.mu
            bias = self.bias.mu
        if self.training or calculate_log_probs:
            self.log_prior = self.weight_prior.log_prob(weight) + self.bias_prior.log_prob(bias)
            self.log_variational_posterior = self.weight.log_prob(weight) + self.bias.log_prob(bias)
        else:
            self.log_prior, self.log_variational_posterior = 0, 0
        return F.linear(input, weight, bias)


class BayesianNetwork(nn.Module):
    def __init__(self):
        super().__init__()
        self.l1 = BayesianLinear(1, 8)
        self.l2 = BayesianLinear(8, 1)

    def forward(self, x, sample=False):
        return self.l2(torch.tanh(self.l1(x, sample)), sample)

    def log_prior(self):
        return self.l1.log_prior + self.l2.log_prior

    def log_variational_posterior(self):
        return self.l1.log_variational_posterior + self.l2.log_variational_posterior

    def sample_elbo(self, input, target, samples=2, num_batches=4):
        batch_size = input.shape[0]
        outputs = torch.zeros(samples, batch_size, 1).to(DEVICE)
        log_priors = torch.zeros(samples).to(DEVICE)
        log_variational_posteriors = torch.zeros(samples).to(DEVICE)
        for i in range(samples):
            outputs[i] = self(input, sample=True)
            log_priors[i] = self.log_prior()
            log_variational_posteriors[i] = self.log_variational_posterior()
        log_prior = log_priors.mean()
        log_variational_posterior = log_variational_posteriors.mean()
        negative_log_likelihood = F.mse_loss(outputs.mean(0), target, reduction="sum") / 0.02
        loss = (log_variational_posterior - log_prior) / num_batches + negative_log_likelihood
        return loss, log_prior, log_variational_posterior, negative_log_likelihood


def main(steps=5):
    global RNG
    RNG = np.random.default_rng(0)
    net = BayesianNetwork().to(DEVICE)
    net.l1.weight_mu.data = torch.from_numpy(RNG.normal(0, 1, (8, 1))).float()
    net.l2.weight_mu.data = torch.from_numpy(RNG.normal(0, 0.4, (1, 8))).float()
    x = torch.linspace(-2, 2, 32).view(-1, 1)
    y = torch.sin(2 * x) + torch.from_numpy(RNG.normal(0, 0.1, (32, 1))).float()
    optimizer = optim.Adam(net.parameters(), lr=0.02)
    losses, parts = [], []
    for step in range(steps):
        net.train()
        idx = slice(step % 4, None, 4)
        data, target = x[idx].to(DEVICE), y[idx].to(DEVICE)
        net.zero_grad()
        loss, log_prior, log_variational_posterior, negative_log_likelihood = net.sample_elbo(data, target)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        parts.append([log_prior.item(), log_variational_posterior.item(), negative_log_likelihood.item()])
    net.eval()
    with torch.no_grad():
        draws = torch.stack([net(x, sample=True) for _ in range(3)])
        mean = net(x, sample=False)
    return losses, {
        "parts": parts,
        "stored": net.l1.weight.mu is net.l1.weight_mu,
        "spread": draws.std(0).mean().item(),
        "mean": mean.cpu().numpy(),
    }

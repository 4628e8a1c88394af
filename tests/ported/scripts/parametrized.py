"""Train an autoencoder with tied weights, a symmetric core, and weights on the sphere and in the orthogonal group."""

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.nn.utils.parametrizations as P
import torch.nn.utils.parametrize as parametrize
from torch.nn.utils import prune


class Symmetric(nn.Module):
    def forward(self, X):
        return X.triu() + X.triu(1).transpose(-1, -2)

    def right_inverse(self, A):
        return A.triu()


class MatrixExponential(nn.Module):
    def forward(self, X):
        return torch.matrix_exp(X - X.mT)


class TiedDecoder(nn.Module):
    def __init__(self, encoder):
        super().__init__()
        self.weight = encoder.weight
        self.bias = nn.Parameter(torch.zeros(encoder.in_features))

    def forward(self, h):
        return F.linear(h, self.weight.t(), self.bias)


class Net(nn.Module):
    def __init__(self, dim=10, code=6):
        super().__init__()
        self.encoder = nn.Linear(dim, code)
        self.decoder = TiedDecoder(self.encoder)
        self.core = nn.Linear(code, code)
        self.rotation = nn.Linear(code, code, bias=False)
        self.normed = nn.Linear(code, code)
        self.spectral = nn.Linear(code, code)

    def forward(self, x):
        h = torch.tanh(self.encoder(x))
        h = h + 0.5 * torch.tanh(self.core(h))
        h = self.normed(self.rotation(h))
        return self.decoder(h + F.mish(self.spectral(h)))


def main(steps=5):
    rng = np.random.default_rng(3)
    model = Net()
    for p in model.parameters():
        with torch.no_grad():
            p.copy_(torch.from_numpy(rng.normal(0, 0.3, tuple(p.shape))))
    parametrize.register_parametrization(model.core, "weight", Symmetric())
    parametrize.register_parametrization(model.rotation, "weight", MatrixExponential())
    P.weight_norm(model.normed, name="weight", dim=0)
    P.orthogonal(model.spectral, orthogonal_map="cayley", use_trivialization=False)
    with torch.no_grad():
        model.spectral.parametrizations.weight.original.copy_(torch.from_numpy(rng.normal(0, 0.3, (6, 6))))
        base = model.spectral.parametrizations.weight[0]
        print(base, [n for n, _ in model.named_parameters()])
    prune.custom_from_mask(model.encoder, "bias", mask=torch.tensor([1, 1, 0, 1, 0, 1]))
    assert parametrize.is_parametrized(model.core, "weight")
    optimizer = torch.optim.RMSprop(model.parameters(), lr=3e-3, centered=True, momentum=0.5)
    x = torch.from_numpy(rng.standard_normal((32, 10)).astype(np.float32))
    losses = []
    for step in range(steps):
        optimizer.zero_grad()
        with parametrize.cached():
            loss = F.huber_loss(model(x), x, delta=0.7)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    weight = model.core.weight
    symmetric = torch.equal(weight, weight.T)
    parametrize.remove_parametrizations(model.core, "weight", leave_parametrized=True)
    prune.remove(model.encoder, "bias")
    q = model.rotation.weight
    return losses, {
        "symmetric": symmetric,
        "orthogonal": (q @ q.T - torch.eye(6)).abs().max().item() < 1e-5,
        "core": model.core.weight.detach().numpy(),
        "bias": model.encoder.bias.detach().numpy(),
        "tied": model.decoder.weight is model.encoder.weight,
        "keys": len(model.state_dict()),
    }

"""Fit an image by a SIREN, supervised by its gradients and its Laplacian through the network."""

from collections import OrderedDict

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


def get_mgrid(sidelen, dim=2):
    tensors = tuple(dim * [torch.linspace(-1, 1, steps=sidelen)])
    mgrid = torch.stack(torch.meshgrid(*tensors, indexing="ij"), dim=-1)
    return mgrid.reshape(-1, dim)


class SineLayer(nn.Module):
    def __init__(self, in_features, out_features, bias=True, is_first=False, omega_0=30):
        super().__init__()
        self.omega_0 = omega_0
        self.is_first = is_first
        self.in_features = in_features
        self.linear = nn.Linear(in_features, out_features, bias=bias)
        self.init_weights()

    def init_weights(self):
        with torch.no_grad():
            if self.is_first:
                self.linear.weight.uniform_(-1 / self.in_features, 1 / self.in_features)
            else:
                bound = np.sqrt(6 / self.in_features) / self.omega_0
                self.linear.weight.uniform_(-bound, bound)

    def forward(self, input):
        return torch.sin(self.omega_0 * self.linear(input))

    def forward_with_intermediate(self, input):
        intermediate = self.omega_0 * self.linear(input)
        return torch.sin(intermediate), intermediate


class Siren(nn.Module):
    def __init__(self, in_features, hidden_features, hidden_layers, out_features, outermost_linear=True):
        super().__init__()
        net = [SineLayer(in_features, hidden_features, is_first=True, omega_0=10.0)]
        for i in range(hidden_layers):
            net.append(SineLayer(hidden_features, hidden_features, omega_0=10.0))
        net.append(nn.Linear(hidden_features, out_features))
        self.net = nn.Sequential(*net)

    def forward(self, coords):
        coords = coords.clone().detach().requires_grad_(True)  # allows to take derivative w.r.t. input
        output = self.net(coords)
        return output, coords

    def forward_with_activations(self, coords, retain_grad=False):
        activations = OrderedDict()
        activation_count = 0
        x = coords.clone().detach().requires_grad_(True)
        activations["input"] = x
        for i, layer in enumerate(self.net):
            if isinstance(layer, SineLayer):
                x, intermed = layer.forward_with_intermediate(x)
                if retain_grad:
                    x.retain_grad()
                    intermed.retain_grad()
                activations["_".join((str(layer.__class__), "%d" % activation_count))] = intermed
                activation_count += 1
            else:
                x = layer(x)
                if retain_grad:
                    x.retain_grad()
            activations["_".join((str(layer.__class__), "%d" % activation_count))] = x
            activation_count += 1
        return activations


def divergence(y, x):
    div = 0.0
    for i in range(y.shape[-1]):
        div += torch.autograd.grad(y[..., i], x, torch.ones_like(y[..., i]), create_graph=True)[0][..., i : i + 1]
    return div


def gradient(y, x, grad_outputs=None):
    if grad_outputs is None:
        grad_outputs = torch.ones_like(y)
    grad = torch.autograd.grad(y, [x], grad_outputs=grad_outputs, create_graph=True)[0]
    return grad


def laplace(y, x):
    grad = gradient(y, x)
    return divergence(grad, x)


class Picture(Dataset):
    def __init__(self, sidelength):
        super().__init__()
        self.coords = get_mgrid(sidelength, 2)
        a, b = self.coords.unbind(-1)
        self.pixels = (torch.sin(3 * a) * torch.cos(2 * b))[:, None]
        self.grads = torch.stack(
            [3 * torch.cos(3 * a) * torch.cos(2 * b), -2 * torch.sin(3 * a) * torch.sin(2 * b)], -1
        )

    def __len__(self):
        return 1

    def __getitem__(self, idx):
        if idx > 0:
            raise IndexError
        return self.coords, {"pixels": self.pixels, "grads": self.grads}


def main(steps=5):
    rng = np.random.default_rng(0)
    dataloader = DataLoader(Picture(8), batch_size=1, pin_memory=False, num_workers=0)
    siren = Siren(in_features=2, out_features=1, hidden_features=16, hidden_layers=1)
    for layer in siren.net:
        linear = getattr(layer, "linear", layer)
        bound = linear.weight.abs().max().item() * 0 + 0.4 / linear.in_features**0.5
        linear.weight.data[:] = torch.tensor(rng.uniform(-bound, bound, linear.weight.shape))
        linear.bias.data[...] = torch.tensor(rng.uniform(-bound, bound, linear.bias.shape))
    optim = torch.optim.Adam(lr=1e-3, params=siren.parameters())
    model_input, ground_truth = next(iter(dataloader))
    losses, curvatures = [], []
    for step in range(steps):
        model_output, coords = siren(model_input)
        img_grad = gradient(model_output, coords)
        img_laplacian = laplace(model_output, coords)
        loss = ((model_output - ground_truth["pixels"]) ** 2).mean()
        loss += 0.05 * (img_grad - ground_truth["grads"]).pow(2).sum(-1).mean()
        loss += 0.001 * (img_laplacian + 13 * ground_truth["pixels"]).square().mean()
        optim.zero_grad()
        loss.backward()
        optim.step()
        losses.append(loss.item())
        curvatures.append(img_laplacian.abs().mean().item())
    activations = siren.forward_with_activations(model_input, retain_grad=True)
    list(activations.values())[-1].sum().backward()
    return losses, {
        "curvatures": curvatures,
        "activations": [value.grad.norm().item() for value in activations.values() if value.grad is not None],
        "count": len(activations),
    }

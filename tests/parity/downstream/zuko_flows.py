"""zuko: normalizing flows and a mixture, conditioned on a context."""

import numpy as np
import torch
import zuko
from zuko import flows

NUMBERS = np.random.default_rng(0)
X = torch.from_numpy(NUMBERS.normal(size=(16, 3)))
C = torch.from_numpy(NUMBERS.normal(size=(16, 2)))
SIZES = {"features": 3, "context": 2, "transforms": 2, "hidden_features": (8, 8)}
# Name -> constructor, training steps.
MODELS = {
    "maf": (lambda: flows.MAF(**SIZES), 4),
    "nsf": (lambda: flows.NSF(bins=4, **SIZES), 4),
    "nice": (lambda: flows.NICE(**SIZES), 4),
    "realnvp": (lambda: flows.RealNVP(**SIZES), 4),
    "ncsf": (lambda: flows.NCSF(bins=4, **SIZES), 4),
    "sospf": (lambda: flows.SOSPF(degree=2, polynomials=2, **SIZES), 4),
    "bpf": (lambda: flows.BPF(degree=4, **SIZES), 4),
    "naf": (lambda: flows.NAF(signal=4, **SIZES), 2),
    "unaf": (lambda: flows.UNAF(signal=4, **SIZES), 2),
    "gf": (lambda: flows.GF(3, 2, transforms=2, components=3, hidden_features=(8,)), 4),
    "cnf": (lambda: flows.CNF(3, 2, hidden_features=(8,)), 2),
    "gmm": (lambda: zuko.mixtures.GMM(3, 2, components=2, hidden_features=(8,)), 4),
}
WITHOUT_INVERSE = {"naf", "unaf", "gmm"}  # by bisection, whose last step depends on the last bits


def _set_parameters(model):
    numbers = np.random.default_rng(1)
    model.double()
    with torch.no_grad():
        for p in model.parameters():
            p.copy_(torch.from_numpy(numbers.normal(size=tuple(p.shape)) * 0.3))


def answers():
    """Return losses, parameters after training, densities, their gradients, and inverses, by flow."""
    found = {}
    for name, (make, steps) in MODELS.items():
        flow, data, losses = make(), torch.tanh(X) if name == "ncsf" else X, []
        _set_parameters(flow)
        optimizer = torch.optim.Adam(flow.parameters(), lr=1e-2)
        for _ in range(steps):
            optimizer.zero_grad()
            loss = -flow(C).log_prob(data).mean()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        found[f"{name} losses"] = np.array(losses)
        trained = [(n, p) for n, p in flow.named_parameters() if p.grad is not None]
        found.update({f"{name} {n}": p.detach().numpy() for n, p in trained})
        x = data.clone().requires_grad_()
        density = flow(C).log_prob(x)
        density.sum().backward()
        found[f"{name} density"], found[f"{name} by x"] = density.detach().numpy(), x.grad.numpy()
        if name not in WITHOUT_INVERSE:
            transform = flow(C).transform
            z = transform(data)
            found[f"{name} z"], found[f"{name} inverse"] = z.detach().numpy(), transform.inv(z).detach().numpy()
    return found

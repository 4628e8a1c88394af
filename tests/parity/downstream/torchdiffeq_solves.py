"""torchdiffeq: solutions and gradients by the solvers' steps and by the adjoint method."""

import numpy as np
import torch
from torchdiffeq import odeint, odeint_adjoint, odeint_event

METHODS = ("dopri8", "dopri5", "bosh3", "adaptive_heun", "euler", "midpoint", "rk4", "explicit_adams", "implicit_adams")


class Field(torch.nn.Module):
    """A small network as the right side."""

    def __init__(self):
        super().__init__()
        numbers = np.random.default_rng(0)
        self.layers = torch.nn.Sequential(torch.nn.Linear(3, 8), torch.nn.Tanh(), torch.nn.Linear(8, 2)).double()
        with torch.no_grad():
            for p in self.parameters():
                p.copy_(torch.from_numpy(numbers.normal(size=tuple(p.shape)) * 0.5))

    def forward(self, t, y):
        """Return dy/dt."""
        return self.layers(torch.cat([y, t.reshape(1)]))


def answers():
    """Return solutions, gradients and the time of an event, by method."""
    found = {}
    for method in METHODS:
        for solve in (odeint, odeint_adjoint):
            field, start = Field(), torch.tensor([1.0, -0.5], dtype=torch.float64, requires_grad=True)
            times = torch.linspace(0.0, 1.0, 5, dtype=torch.float64)
            path = solve(field, start, times, method=method, rtol=1e-4, atol=1e-6)
            path.square().sum().backward()
            name = f"{method} {solve.__name__}"
            found[f"{name} path"] = path.detach().numpy()
            found[f"{name} start"] = start.grad.numpy()
            found.update({f"{name} {n}": p.grad.numpy() for n, p in field.named_parameters()})
    g = torch.tensor(9.81, dtype=torch.float64, requires_grad=True)
    start = torch.tensor([10.0, 0.0], dtype=torch.float64), torch.tensor(0.0, dtype=torch.float64)
    time, _ = odeint_event(lambda t, y: torch.stack([y[1], -g]), start[0], start[1], event_fn=lambda t, y: y[0])
    time.backward()
    return {**found, "fall": time.detach().numpy(), "fall by g": g.grad.numpy()}

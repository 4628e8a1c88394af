"""Fit the two rates of a predator-prey model to noisy data by Adam: `python examples/tasks/ode.py`."""

import numpy as np

import retrograd as rg
from retrograd.scipy.integrate import solve_ivp


def field(t, y, a, b):
    return [a * y[0] - y[0] * y[1], y[0] * y[1] - b * y[1]]


times = np.linspace(0, 6, 25)
rng = np.random.default_rng(0)
data = solve_ivp(field, (0, 6), [1.0, 1.0], t_eval=times, args=(1.5, 0.8)).y
data = data + rng.normal(0, 0.02, data.shape)

rates = rg.tensor([1.0, 1.0], dtype=rg.float64, requires_grad=True)
optimizer = rg.optim.Adam([rates], lr=0.05)
for step in range(60):
    solution = solve_ivp(field, (0, 6), [1.0, 1.0], t_eval=times, args=tuple(rates))
    loss = ((solution.y - rg.from_numpy(data)) ** 2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(rates, loss.item())
assert abs(rates[0] - 1.5) < 0.1 and abs(rates[1] - 0.8) < 0.1

"""Pyro: densities of models, variational inference and Hamiltonian Monte Carlo with given numbers."""

import numpy as np
import pyro
import pyro.distributions as dist
import pyro.poutine as poutine
import torch
from pyro.distributions import constraints
from pyro.infer import SVI, Predictive, Trace_ELBO, TraceEnum_ELBO, config_enumerate
from pyro.infer.autoguide import AutoDelta, AutoDiagonalNormal, AutoMultivariateNormal, init_to_value
from pyro.infer.mcmc.util import initialize_model
from pyro.nn import PyroModule, PyroSample
from pyro.ops.integrator import velocity_verlet
from pyro.optim import Adam, ClippedAdam
from seeded import array


def model(x, y=None):
    """A linear regression."""
    weight = pyro.sample("weight", dist.Normal(torch.zeros(3), 1.0).to_event(1))
    bias = pyro.sample("bias", dist.Normal(0.0, 2.0))
    scale = pyro.sample("scale", dist.LogNormal(0.0, 0.5))
    with pyro.plate("data", len(x)):
        return pyro.sample("y", dist.Normal(x @ weight + bias, scale), obs=y)


def guide(x, y=None):
    """Point estimates, which are deterministic."""
    weight = pyro.param("weight_value", torch.full((3,), 0.1))
    pyro.sample("weight", dist.Delta(weight).to_event(1))
    pyro.sample("bias", dist.Delta(pyro.param("bias_value", torch.tensor(0.2))))
    scale = pyro.param("scale_value", torch.tensor(1.0), constraint=constraints.positive)
    pyro.sample("scale", dist.Delta(scale))


@config_enumerate
def mixture(data):
    """A mixture of two normal distributions, whose classes are summed over."""
    weights = pyro.param("weights", torch.tensor([0.4, 0.6]), constraint=constraints.simplex)
    locs = pyro.param("locs", torch.tensor([-1.0, 1.5]))
    with pyro.plate("data", len(data)):
        kind = pyro.sample("kind", dist.Categorical(weights))
        pyro.sample("obs", dist.Normal(locs[kind], 0.7), obs=data)


class Bayesian(PyroModule):
    """A layer with a prior of its weight."""

    def __init__(self):
        super().__init__()
        self.layer = PyroModule[torch.nn.Linear](3, 1)
        self.layer.weight = PyroSample(dist.Normal(torch.zeros(1, 3), 1.0).to_event(2))
        self.layer.bias = PyroSample(dist.Normal(torch.zeros(1), 1.0).to_event(1))

    def forward(self, x, y=None):
        """Return the mean."""
        mean = self.layer(x).squeeze(-1)
        with pyro.plate("data", len(x)):
            pyro.sample("y", dist.Normal(mean, 0.5), obs=y)
        return mean


def trained(svi, steps, *args):
    """Return the losses of some steps, and the parameters."""
    losses = [svi.step(*args) for _ in range(steps)]
    found = {name: value.detach().numpy() for name, value in pyro.get_param_store().items()}
    pyro.clear_param_store()
    return {"losses": np.array(losses), **found}


def answers():
    """Return losses, parameters, densities and trajectories."""
    x = array(20, 3)
    y = x @ torch.tensor([1.0, -2.0, 0.5]) + 0.3 * array(20, seed=3)
    found = {}

    def keep(name, values):
        found.update({f"{name} {key}": np.asarray(value) for key, value in values.items()})

    pyro.clear_param_store()
    for name, optimizer in {"Adam": Adam({"lr": 0.05}), "ClippedAdam": ClippedAdam({"lr": 0.05})}.items():
        keep(f"points {name}", trained(SVI(model, guide, optimizer, Trace_ELBO()), 5, x, y))
    keep(
        "autodelta",
        trained(
            SVI(model, AutoDelta(model, init_loc_fn=init_to_value(values=start())), Adam({"lr": 0.1}), Trace_ELBO()),
            5,
            x,
            y,
        ),
    )
    keep("mixture", trained(SVI(mixture, lambda data: None, Adam({"lr": 0.05}), TraceEnum_ELBO()), 5, y))
    for kind in (AutoDiagonalNormal, AutoMultivariateNormal):
        own = kind(model, init_loc_fn=init_to_value(values=start()))
        own(x, y)
        latent = array(5, seed=4)
        posterior = own.get_posterior()
        density = posterior.log_prob(latent)
        density.backward()
        keep(kind.__name__, {"density": density.item(), "loc": own.loc.grad.numpy()})
        pyro.clear_param_store()
    fixed = poutine.condition(model, data=start())
    trace = poutine.trace(fixed).get_trace(x, y)
    trace.compute_log_prob()
    keep(
        "trace",
        {name: site["log_prob"].detach().numpy() for name, site in trace.nodes.items() if site["type"] == "sample"},
    )
    keep("trace", {"sum": trace.log_prob_sum().item()})
    potential = initialize_model(model, (x, y))[1]
    z = {"weight": torch.full((3,), 0.1), "bias": torch.tensor(0.2), "scale": torch.tensor(-0.1)}
    momenta = {name: 0.5 * torch.ones_like(value) for name, value in z.items()}
    grads, energies = None, []
    for _ in range(4):
        z, momenta, grads, energy = velocity_verlet(z, momenta, potential, kinetic_grad, 0.02, 3, grads)
        energies.append(energy.item())
    keep("hmc", {"energies": energies, **{name: value.numpy() for name, value in z.items()}})
    layer = poutine.condition(Bayesian(), data={"layer.weight": torch.full((1, 3), 0.5), "layer.bias": torch.ones(1)})
    keep(
        "layer",
        {"mean": layer(x, y).detach().numpy(), "density": poutine.trace(layer).get_trace(x, y).log_prob_sum().item()},
    )
    draws = Predictive(
        model, posterior_samples={name: value[None] for name, value in start().items()}, return_sites=("weight",)
    )
    keep("predictive", {"weight": draws(x)["weight"].numpy()})
    return found


def start():
    """Return values of all unobserved variables."""
    return {"weight": torch.tensor([0.3, -0.4, 0.1]), "bias": torch.tensor(0.1), "scale": torch.tensor(0.8)}


def kinetic_grad(momenta):
    """Return the gradients of the kinetic energy of unit masses."""
    return momenta

"""gpytorch: exact Gaussian processes by kernel, variational ones by distribution and likelihood, and two tasks."""

import gpytorch
import numpy as np
import torch
from gpytorch import kernels as K
from gpytorch import likelihoods as L
from gpytorch import variational as V

NUMBERS = np.random.default_rng(0)
X = torch.from_numpy(np.sort(NUMBERS.uniform(-2, 2, 24)))
Y = torch.sin(2 * X) + 0.1 * torch.from_numpy(NUMBERS.normal(size=24))
T = torch.linspace(-2, 2, 9, dtype=torch.float64)
KERNELS = {
    "rbf": lambda: K.ScaleKernel(K.RBFKernel()),
    "matern": lambda: K.ScaleKernel(K.MaternKernel(nu=1.5)),
    "periodic": lambda: K.ScaleKernel(K.PeriodicKernel()),
    "rational": lambda: K.ScaleKernel(K.RQKernel()),
    "sum": lambda: K.LinearKernel() + K.RBFKernel(),
    "product": lambda: K.RBFKernel() * K.CosineKernel(),
    "polynomial": lambda: K.PolynomialKernel(2),
    "piecewise": lambda: K.ScaleKernel(K.PiecewisePolynomialKernel(q=2)),
}
POSTERIORS = {
    "cholesky": V.CholeskyVariationalDistribution,
    "mean field": V.MeanFieldVariationalDistribution,
    "natural": V.NaturalVariationalDistribution,
    "delta": V.DeltaVariationalDistribution,
}
LIKELIHOODS = {
    "normal": (L.GaussianLikelihood, Y),
    "classes": (L.BernoulliLikelihood, (Y > 0).double()),
    "student": (L.StudentTLikelihood, Y),
}


class Exact(gpytorch.models.ExactGP):
    """A Gaussian process on given points."""

    def __init__(self, y, likelihood, mean, kernel, prior):
        super().__init__(X, y, likelihood)
        self.mean_module, self.covar_module, self.prior = mean, kernel, prior

    def forward(self, x):
        """Return the prior at points."""
        return self.prior(self.mean_module(x), self.covar_module(x))


class Approximate(gpytorch.models.ApproximateGP):
    """A Gaussian process with inducing points."""

    def __init__(self, posterior):
        z = T[:, None]
        super().__init__(V.VariationalStrategy(self, z, posterior(len(z)), learn_inducing_locations=True))
        self.mean_module, self.covar_module = gpytorch.means.LinearMean(1), K.ScaleKernel(K.MaternKernel(nu=2.5))

    def forward(self, x):
        """Return the prior at points."""
        return gpytorch.distributions.MultivariateNormal(self.mean_module(x), self.covar_module(x))


def _train(name, model, mll, x, y, optimizer, steps):
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = -mll(model(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    found = {f"{name} losses": np.array(losses)}
    found.update({f"{name} {n}": p.detach().numpy().copy() for n, p in model.named_parameters()})
    found.update({f"{name} {n} grad": p.grad.numpy().copy() for n, p in model.named_parameters()})
    return found


def _exact(name, model, likelihood, y):
    mll = gpytorch.mlls.ExactMarginalLogLikelihood(likelihood, model)
    found = _train(name, model, mll, X, y, torch.optim.Adam(model.parameters(), lr=0.1), 6)
    model.eval()
    likelihood.eval()
    with torch.no_grad(), gpytorch.settings.fast_pred_var():
        predicted = likelihood(model(T))
        found[f"{name} mean"], found[f"{name} covariance"] = predicted.mean.numpy(), predicted.covariance_matrix.numpy()
        found[f"{name} low"], found[f"{name} high"] = (side.numpy() for side in predicted.confidence_region())
    return found


def _approximate(name, posterior, likelihood, y):
    model = Approximate(posterior).double()
    model.variational_strategy.variational_params_initialized.fill_(1)  # which would draw the means
    with torch.no_grad():
        for n, p in model.named_parameters():
            if "mean_module" in n:
                p.fill_(0.1)
            if n.endswith(("variational_mean", "natural_vec")):
                p.copy_(torch.linspace(-0.5, 0.5, 9))
    mll = gpytorch.mlls.VariationalELBO(likelihood, model, num_data=len(X))
    optimizer = torch.optim.SGD([*model.parameters(), *likelihood.parameters()], lr=0.01)
    found = _train(name, model, mll, X[:, None], y, optimizer, 3)
    model.eval()
    with torch.no_grad():
        predicted = model(T[:, None] + 0.1)
    return {**found, f"{name} mean": predicted.mean.numpy(), f"{name} covariance": predicted.covariance_matrix.numpy()}


def answers():
    """Return losses, parameters, gradients and predictions, by model."""
    found = {}
    normal, means = gpytorch.distributions.MultivariateNormal, gpytorch.means
    for name, kernel in KERNELS.items():
        likelihood = L.GaussianLikelihood().double()
        model = Exact(Y, likelihood, means.ConstantMean(), kernel(), normal).double()
        found.update(_exact(name, model, likelihood, Y))
    for first, posterior in POSTERIORS.items():
        for second, (likelihood, y) in LIKELIHOODS.items():
            found.update(_approximate(f"{first} {second}", posterior, likelihood().double(), y))
    likelihood, tasks = L.MultitaskGaussianLikelihood(2).double(), gpytorch.distributions.MultitaskMultivariateNormal
    mean, kernel = means.MultitaskMean(means.ConstantMean(), 2), K.MultitaskKernel(K.RBFKernel(), 2, rank=1)
    both = torch.stack([torch.sin(2 * X), torch.cos(2 * X)], -1)
    model = Exact(both, likelihood, mean, kernel, tasks).double()
    with torch.no_grad():
        kernel.task_covar_module.covar_factor.copy_(torch.tensor([[0.5], [0.3]]))
        kernel.task_covar_module.raw_var.fill_(0.2)
    return {**found, **_exact("tasks", model, likelihood, both)}

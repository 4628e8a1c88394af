"""TorchOpt: gradients through inner training, implicit gradients, functional and meta-optimizers."""

import torch
import torchopt
from seeded import array, fill
from torch import nn

FUNCTIONAL = {
    "sgd": {"lr": 0.1, "momentum": 0.9, "nesterov": True},
    "adam": {"lr": 0.05},
    "adamw": {"lr": 0.05},
    "rmsprop": {"lr": 0.05},
    "adagrad": {"lr": 0.1},
    "adadelta": {"lr": 0.5},
    "adamax": {"lr": 0.05},
    "radam": {"lr": 0.05},
}


def net():
    """Return a small network."""
    return fill(nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 1))).double()


def answers():
    """Return meta-gradients and trained parameters."""
    found = {}
    x, y = array(6, 3).double(), array(6, 1, seed=3).double()
    for kind, settings in FUNCTIONAL.items():
        model = net()
        optimizer = getattr(torchopt, kind)(**settings)
        parameters = dict(model.named_parameters())
        state = optimizer.init(parameters)
        for _ in range(3):
            loss = nn.functional.mse_loss(torch.func.functional_call(model, parameters, (x,)), y)
            gradients = torch.autograd.grad(loss, list(parameters.values()))
            named = dict(zip(parameters, gradients, strict=True))
            updates, state = optimizer.update(named, state, params=parameters, inplace=False)
            parameters = torchopt.apply_updates(parameters, updates, inplace=False)
        found.update({f"torchopt {kind} {key}": p.detach().numpy() for key, p in parameters.items()})
    for kind in ("MetaSGD", "MetaAdam", "MetaAdamW", "MetaRMSProp"):
        model = net()
        shift = torch.zeros(1, dtype=torch.float64, requires_grad=True)
        optimizer = getattr(torchopt, kind)(model, lr=0.05)
        start = torchopt.extract_state_dict(model, by="reference")
        for _ in range(2):
            optimizer.step(nn.functional.mse_loss(model(x + shift), y))
        nn.functional.mse_loss(model(x), y).backward()
        found[f"torchopt {kind}"] = shift.grad.numpy()
        torchopt.recover_state_dict(model, start)
        found[f"torchopt {kind} recovered"] = model(x).detach().numpy()
    model = net()
    optimizer = torchopt.Adam(model.parameters(), lr=0.05)
    for _ in range(3):
        optimizer.zero_grad()
        nn.functional.mse_loss(model(x), y).backward()
        optimizer.step()
    found.update({f"torchopt Adam {key}": p.detach().numpy() for key, p in model.named_parameters()})

    def optimality(w, scale):
        return torch.func.grad(lambda w: (x @ w - y[:, 0]).square().sum() + (scale * w).square().sum())(w)

    @torchopt.diff.implicit.custom_root(optimality, argnums=1, solve=torchopt.linear_solve.solve_normal_cg())
    def ridge(w, scale):
        return torch.linalg.solve(x.T @ x + torch.diag(scale**2), x.T @ y[:, 0])

    scale = torch.tensor([0.5, 1.0, 2.0], dtype=torch.float64, requires_grad=True)
    w = ridge(torch.zeros(3, dtype=torch.float64), scale)
    (w * torch.arange(1.0, 4.0, dtype=torch.float64)).sum().backward()
    found["torchopt implicit"], found["torchopt implicit gradient"] = w.detach().numpy(), scale.grad.numpy()

    class Inner(torchopt.nn.ImplicitMetaGradientModule, linear_solve=torchopt.linear_solve.solve_cg(maxiter=30)):
        def __init__(self, meta):
            super().__init__()
            self.meta = meta
            self.w = nn.Parameter(torch.zeros(3, dtype=torch.float64))

        def objective(self, x, y):
            return (x @ self.w - y[:, 0]).square().mean() + (self.meta.weight[0] * self.w).square().sum()

        def solve(self, x, y):
            with torch.enable_grad():
                for _ in range(200):
                    (gradient,) = torch.autograd.grad(self.objective(x, y), self.w)
                    self.w.data.sub_(0.1 * gradient)
            return self

    meta = fill(nn.Linear(3, 1)).double()
    inner = Inner(meta)
    inner.solve(x, y)
    inner.w.square().sum().backward()
    found["torchopt module"], found["torchopt module gradient"] = inner.w.detach().numpy(), meta.weight.grad.numpy()
    for schedule in (
        torchopt.schedule.linear_schedule(1.0, 0.1, 10, 2),
        torchopt.schedule.polynomial_schedule(1.0, 0.1, 2.0, 10),
    ):
        found[f"schedule {len(found)}"] = torch.stack([torch.as_tensor(schedule(i)) for i in range(12)]).numpy()
    functional = torchopt.chain(
        torchopt.clip_grad_norm(0.1), torchopt.sgd(lr=torchopt.schedule.linear_schedule(0.1, 0.0, 5, 0))
    )
    model = net()
    optimizer = torchopt.Optimizer(model.parameters(), functional)
    for _ in range(3):
        optimizer.zero_grad()
        nn.functional.mse_loss(model(x), y).backward()
        optimizer.step()
    found.update({f"torchopt chain {key}": p.detach().numpy() for key, p in model.named_parameters()})
    return found

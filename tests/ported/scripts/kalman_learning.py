"""Learn the noise of a Kalman filter by the likelihood of its innovations, with Joseph updates and Cholesky factors."""

import numpy as np
import torch
from torch import Tensor, nn
from torch.distributions import MultivariateNormal
from torch.nn.utils.parametrize import register_parametrization


class Symmetric(nn.Module):
    def forward(self, X):
        L = X.tril(-1) + torch.diag_embed(X.diagonal(dim1=-2, dim2=-1).exp())
        return L @ L.mT

    def right_inverse(self, S):
        L = torch.linalg.cholesky(S)
        return L.tril(-1) + L.diagonal().log().diag()


class KalmanFilter(nn.Module):
    F: Tensor
    H: Tensor

    def __init__(self, dt: float = 0.1):
        super().__init__()
        self.register_buffer("F", torch.tensor([[1.0, dt], [0.0, 1.0]]), persistent=False)
        self.register_buffer("H", torch.tensor([[1.0, 0.0]]))
        self.Q = nn.Parameter(torch.eye(2))
        self.R = nn.Parameter(torch.eye(1))
        register_parametrization(self, "Q", Symmetric())
        register_parametrization(self, "R", Symmetric())
        self.m0 = nn.ParameterList([nn.Parameter(torch.zeros(2)), nn.Parameter(torch.eye(2) * 2, requires_grad=False)])

    def step(self, m: Tensor, P: Tensor, z: Tensor):
        m = (self.F @ m.unsqueeze(-1)).squeeze(-1)
        P = self.F @ P @ self.F.mT + self.Q
        S = self.H @ P @ self.H.mT + self.R
        nu = z - (self.H @ m[..., None])[..., 0]
        K = torch.cholesky_solve(self.H @ P, torch.linalg.cholesky(S)).mT
        IKH = torch.eye(2) - K @ self.H
        m = m + torch.einsum("...ij,...j->...i", K, nu)
        P = IKH @ P @ IKH.mT + K @ self.R @ K.mT
        return m, P, MultivariateNormal(torch.zeros_like(nu), covariance_matrix=S).log_prob(nu)

    def forward(self, zs: Tensor):
        m, P = self.m0
        m, P = m.expand(zs.shape[1], -1), P.expand(zs.shape[1], -1, -1)
        means, log_probs = [], []
        for z in zs.unbind():
            m, P, lp = self.step(m, P, z)
            means += [m]
            log_probs += [lp]
        return torch.stack(means), torch.stack(log_probs).sum(0)


def main(steps=5):
    rng = np.random.default_rng(0)
    torch.set_default_dtype(torch.float64)
    try:
        x = np.cumsum(rng.normal(0, 0.3, (12, 3)), 0)
        zs = torch.from_numpy(x + rng.normal(0, 0.1, x.shape)).unsqueeze(-1)
        model = KalmanFilter()
        optimizer = torch.optim.LBFGS(model.parameters(), lr=0.2, max_iter=3, line_search_fn="strong_wolfe")
        losses = []
        for _ in range(steps):

            def closure():
                optimizer.zero_grad()
                loss = -model(zs)[1].mean()
                loss.backward()
                return loss

            losses.append(optimizer.step(closure).item())
        means, log_prob = model(zs)
        hessian = torch.autograd.functional.hessian(
            lambda r: -torch.func.functional_call(model, {"parametrizations.R.original": r}, (zs,))[1].sum(),
            model.parametrizations.R.original.detach(),
        )
        return losses, {
            "Q": model.Q.detach().numpy(),
            "R": model.R.item(),
            "means": means.detach().numpy(),
            "curvature": hessian.numpy(),
            "keys": len(model.state_dict()),
        }
    finally:
        torch.set_default_dtype(torch.float32)

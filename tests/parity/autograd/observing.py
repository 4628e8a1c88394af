"""Observations shared by the tests of writes: the state of a tensor, its gradients, and views of many kinds."""

from .adapter import data


def state(x):
    """Return everything that a write may change about a tensor."""
    return data(x), x.requires_grad, x.is_leaf, x.grad_fn is None, x._version


def grid(m, rows=3, columns=4):
    """Return a matrix of small different values that requires grad."""
    return (m.arange(rows * columns, dtype=m.float64).reshape(rows, columns) / 4 + 0.5).requires_grad_()


def weights(m, x):
    """Return different weights for the elements of x, so that each element has a distinct gradient."""
    return m.arange(1, x.numel() + 1, dtype=x.dtype).reshape(x.shape)


def gradients(m, value, *leaves):
    """Return the gradients of the weighted sum of value."""
    return m.autograd.grad((value * weights(m, value)).sum(), leaves, retain_graph=True, allow_unused=True)


# Of a matrix of 3 rows and 4 columns.
VIEWS = {
    "integer": lambda y: y[1],
    "slice": lambda y: y[1:, ::2],
    "None": lambda y: y[:, None],
    "view": lambda y: y.view(2, 6),
    "reshape": lambda y: y.reshape(12),
    "flatten": lambda y: y.flatten(),
    "unflatten": lambda y: y.unflatten(1, (2, 2)),
    "transpose": lambda y: y.transpose(0, 1),
    "permute": lambda y: y.permute(1, 0),
    "T": lambda y: y.T,
    "mT": lambda y: y.mT,
    "movedim": lambda y: y.movedim(0, 1),
    "unsqueeze": lambda y: y.unsqueeze(1),
    "squeeze": lambda y: y.unsqueeze(0).squeeze(0),
    "narrow": lambda y: y.narrow(1, 1, 2),
    "select": lambda y: y.select(1, 2),
    "diagonal": lambda y: y.diagonal(),
    "diagonal above": lambda y: y.diagonal(1),
    "expand of the same shape": lambda y: y.expand(3, 4),
    "expand of a leading one": lambda y: y.expand(1, 3, 4),
    "detach": lambda y: y.detach(),
    "chain": lambda y: y[1:].transpose(0, 1)[::2].unsqueeze(0)[0, 1:],
    "column": lambda y: y[:, 1:2].squeeze(1),
    "two steps": lambda y: y[1][2:],
}

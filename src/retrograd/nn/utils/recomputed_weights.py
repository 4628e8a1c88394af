"""Weights that are computed from others before each call, by a forward pre-hook: the older API of parametrizations."""

from collections.abc import Callable
from typing import Any, TypeVar

from retrograd.autograd import no_grad
from retrograd.core import operator_named
from retrograd.foundation.source_location import warn_user
from retrograd.foundation.suggestions import suggest_in_module
from retrograd.nn import functional as F
from retrograd.nn import init
from retrograd.nn.hooks import FORWARD_PRE, of_kind
from retrograd.nn.module import Module
from retrograd.nn.parameter import Parameter

M = TypeVar("M", bound=Module)
_norm_except_dim = operator_named("norm_except_dim")


class RecomputedWeight:
    """A forward pre-hook that sets the attribute `name` of a module to a tensor computed from its parameters."""

    function: str  # that registers it

    def __init__(self, name: str) -> None:
        self.name = name

    def compute_weight(self, module: Any) -> Any:
        """Return the weight."""
        raise NotImplementedError

    def remove(self, module: Any) -> None:
        """Make the weight a parameter with its present value."""
        raise NotImplementedError

    def __call__(self, module: Any, args: Any) -> None:
        setattr(module, self.name, self.compute_weight(module))


def _hooks_of(module: Module, kind: type[RecomputedWeight], name: str) -> list[Any]:
    """Return the forward pre-hooks of a class for a tensor of a module."""
    found = [hook.function for hook in of_kind(module._call_hooks, FORWARD_PRE)]
    return [one for one in found if isinstance(one, kind) and one.name == name]


def remove_hook(module: Module, function: Callable[..., Any]) -> None:
    """Remove a function from the hooks of a module's calls."""
    hooks = module._call_hooks
    for key in [key for key, hook in hooks.items() if hook.function is function]:
        del hooks[key]


def _check_new(module: Any, hook: RecomputedWeight) -> None:
    if _hooks_of(module, type(hook), hook.name):
        raise RuntimeError(
            f"{hook.function}: cannot register two {hook.function} hooks on the same parameter {hook.name}"
        )
    if not isinstance(getattr(module, hook.name, None), Parameter):
        raise ValueError(f"{hook.function}: {type(module).__name__} has no parameter {hook.name!r}")


def _remove(module: M, kind: type[RecomputedWeight], name: str) -> M:
    hooks = _hooks_of(module, kind, name)
    if not hooks:
        raise ValueError(f"remove_{kind.function}: {kind.function} of {name!r} not found in {type(module).__name__}")
    hooks[0].remove(module)
    remove_hook(module, hooks[0])
    return module


def _restore(module: Any, name: str, weight: Any) -> None:
    delattr(module, name)
    module.register_parameter(name, Parameter(weight.detach()))


# ---------------------------------------------------------------------------------------------------- weight norm


class WeightNorm(RecomputedWeight):
    """Set the weight to `<name>_g` · `<name>_v` / norm of `<name>_v`."""

    function = "weight_norm"

    def __init__(self, name: str, dim: int | None) -> None:
        super().__init__(name)
        self.dim = -1 if dim is None else dim

    def compute_weight(self, module: Any) -> Any:
        """Return the weight."""
        magnitude, direction = getattr(module, f"{self.name}_g"), getattr(module, f"{self.name}_v")
        return direction * (magnitude / _norm_except_dim(direction, 2, self.dim))

    def remove(self, module: Any) -> None:
        """Make the weight a parameter with its present value."""
        weight = self.compute_weight(module)
        _restore(module, self.name, weight)
        del module._parameters[f"{self.name}_g"], module._parameters[f"{self.name}_v"]


def weight_norm(module: M, name: str = "weight", dim: int | None = 0) -> M:
    """Split a parameter into magnitudes `<name>_g` and directions `<name>_v`: Salimans and Kingma, NeurIPS 2016.

    The weight is computed before each call. Each slice along `dim` has its own magnitude; with None the whole weight
    has one. Returns the module. `nn.utils.parametrizations.weight_norm` is newer: its weight is always up to date.

    >>> from retrograd import nn
    >>> import warnings
    >>> with warnings.catch_warnings(action="ignore"):
    ...     layer = nn.utils.weight_norm(nn.Linear(4, 3))
    >>> [(name, p.shape) for name, p in layer.named_parameters()]
    [('bias', (3,)), ('weight_g', (3, 1)), ('weight_v', (3, 4))]
    """
    warn_user("nn.utils.weight_norm is deprecated in favor of nn.utils.parametrizations.weight_norm", FutureWarning)
    hook = WeightNorm(name, dim)
    _check_new(module, hook)
    weight = getattr(module, name)
    delattr(module, name)
    module.register_parameter(f"{name}_g", Parameter(_norm_except_dim(weight.detach(), 2, hook.dim)))
    module.register_parameter(f"{name}_v", Parameter(weight.detach()))
    hook(module, ())
    module.register_forward_pre_hook(hook)
    return module


def remove_weight_norm(module: M, name: str = "weight") -> M:
    """Undo `weight_norm`: the weight is a parameter again.  Raises ValueError if the module has none."""
    return _remove(module, WeightNorm, name)


# -------------------------------------------------------------------------------------------------- spectral norm


class SpectralNorm(RecomputedWeight):
    """Set the weight to `<name>_orig` divided by its largest singular value, by power iteration in training."""

    function = "spectral_norm"

    def __init__(self, name: str, n_power_iterations: int, dim: int, eps: float) -> None:
        if n_power_iterations < 1:
            raise ValueError(f"spectral_norm: n_power_iterations must be at least 1, got {n_power_iterations}")
        super().__init__(name)
        self.dim, self.eps, self.n_power_iterations = dim, eps, n_power_iterations

    def matrix(self, weight: Any) -> Any:
        """Return the weight as a matrix whose rows run along `dim`."""
        return weight.movedim(self.dim, 0).flatten(1)

    def compute_weight(self, module: Any) -> Any:
        """Return the weight, after improving the estimate of the singular vectors if the module is in training."""
        weight = getattr(module, f"{self.name}_orig")
        u, v = getattr(module, f"{self.name}_u"), getattr(module, f"{self.name}_v")
        matrix = self.matrix(weight)
        if module.training:
            with no_grad():
                for _ in range(self.n_power_iterations):
                    v.copy_(F.normalize(matrix.detach().mT @ u, dim=0, eps=self.eps))
                    u.copy_(F.normalize(matrix.detach() @ v, dim=0, eps=self.eps))
            u, v = u.clone(), v.clone()  # the graph saves them, and the next call writes to the buffers
        return weight / (u @ (matrix @ v))

    def remove(self, module: Any) -> None:
        """Make the weight a parameter with its present value."""
        training, module.training = module.training, False
        weight = self.compute_weight(module)
        module.training = training
        _restore(module, self.name, weight)
        del (
            module._parameters[f"{self.name}_orig"],
            module._buffers[f"{self.name}_u"],
            module._buffers[f"{self.name}_v"],
        )


def spectral_norm(
    module: M, name: str = "weight", n_power_iterations: int = 1, eps: float = 1e-12, dim: int | None = None
) -> M:
    """Divide a parameter by its largest singular value before each call: Miyato et al., ICLR 2018.  Returns the module.

    The parameter is `<name>_orig`; the buffers `<name>_u` and `<name>_v` are estimates of the singular vectors, which
    each call in training improves. `dim` is the dimension of the matrix's rows: 0, or 1 for transposed convolutions.

    >>> import retrograd as rg
    >>> from retrograd import nn
    >>> layer = nn.utils.spectral_norm(nn.Linear(4, 3), n_power_iterations=50)
    >>> y = layer(rg.ones(4))
    >>> round(float(rg.linalg.norm(layer.weight, 2).detach()), 3), list(layer.state_dict())
    (1.0, ['bias', 'weight_orig', 'weight_u', 'weight_v'])
    """
    if dim is None:
        dim = 1 if "ConvTranspose" in type(module).__name__ else 0
    hook = SpectralNorm(name, n_power_iterations, dim, eps)
    _check_new(module, hook)
    weight = getattr(module, name)
    delattr(module, name)
    module.register_parameter(f"{name}_orig", weight)
    for buffer, size in zip(("u", "v"), hook.matrix(weight.detach()).shape, strict=True):
        start = init.normal_(weight.new_empty(size))
        module.register_buffer(f"{name}_{buffer}", F.normalize(start, dim=0, eps=eps))
    setattr(module, name, weight.detach())
    module.register_forward_pre_hook(hook)
    return module


def remove_spectral_norm(module: M, name: str = "weight") -> M:
    """Undo `spectral_norm`: the weight is a parameter again.  Raises ValueError if the module has none."""
    return _remove(module, SpectralNorm, name)


suggest_in_module(globals())

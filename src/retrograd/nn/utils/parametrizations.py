"""Parametrizations of weights: separate norm and direction, spectral norm 1, orthogonal rows."""

from functools import partial
from typing import Any

from retrograd.autograd import no_grad
from retrograd.core import operator_named
from retrograd.foundation.suggestions import suggest_in_module
from retrograd.nn import functional as F
from retrograd.nn import init
from retrograd.nn.module import Module
from retrograd.nn.utils.parametrize import register_parametrization
from retrograd.ops.create import eye, zeros_like
from retrograd.ops.family import canonical_dim

_cat = operator_named("cat")
_geqrf = operator_named("geqrf")
_where = operator_named("where")
_householder = operator_named("linalg.householder_product")
_matrix_exp = operator_named("linalg.matrix_exp")
_norm_except_dim = operator_named("norm_except_dim")
_qr = operator_named("linalg.qr")
_solve = operator_named("linalg.solve")


def _get_weight(name: str, module: Any, tensor: str) -> Any:
    weight = getattr(module, tensor, None)
    if weight is None or not hasattr(weight, "ndim"):
        raise ValueError(f"{name}: {type(module).__name__} has no tensor {tensor!r}")
    return weight


class WeightNorm(Module):
    """direction · magnitude / norm of the direction, over all dimensions but `dim`; over all if that is None or -1."""

    def __init__(self, dim: int | None) -> None:
        super().__init__()
        self.dim = -1 if dim is None else dim

    def _norm(self, x: Any) -> Any:
        return _norm_except_dim(x, 2, self.dim)

    def forward(self, magnitude: Any, direction: Any) -> Any:
        """Return the weight."""
        return direction * (magnitude / self._norm(direction))

    def right_inverse(self, weight: Any) -> tuple[Any, Any]:
        """Magnitude and direction."""
        return self._norm(weight), weight


def weight_norm(module: Module, name: str = "weight", dim: int | None = 0) -> Module:
    """Parametrize a weight by magnitudes `original0` and directions `original1`: Salimans and Kingma, NeurIPS 2016.

    Each slice along `dim` has its own magnitude; with None the whole weight has one. Returns the module.

    >>> from retrograd import nn
    >>> layer = nn.utils.parametrizations.weight_norm(nn.Linear(4, 3))
    >>> layer.parametrizations.weight.original0.shape
    (3, 1)
    """
    _get_weight("weight_norm", module, name)
    register_parametrization(module, name, WeightNorm(dim), unsafe=True)
    module.register_load_state_dict_pre_hook(partial(_rename_weight_norm, name))
    return module


def _rename_weight_norm(name: str, module: Module, state_dict: dict[str, Any], prefix: str, *_: Any) -> None:
    """Give the entries of a state of `nn.utils.weight_norm`, the older function, the names of the parametrization."""
    old = [f"{prefix}{name}_{part}" for part in "gv"]
    if all(key in state_dict for key in old):
        for number, key in enumerate(old):
            state_dict[f"{prefix}parametrizations.{name}.original{number}"] = state_dict.pop(key)


class SpectralNorm(Module):
    """The weight divided by an estimate of its largest singular value, which each forward pass in training improves."""

    _u: Any
    _v: Any

    def __init__(self, weight: Any, n_power_iterations: int, dim: int, eps: float) -> None:
        super().__init__()
        self.dim = dim % max(weight.ndim, 1)
        self.eps = eps
        self.n_power_iterations = n_power_iterations
        if weight.ndim > 1:
            matrix = self._matrix(weight.detach())
            for buffer, size in zip(("_u", "_v"), matrix.shape, strict=True):
                start = init.normal_(weight.new_empty(size))
                self.register_buffer(buffer, F.normalize(start, dim=0, eps=eps))
            self._power_iteration(matrix, 15)

    def _matrix(self, weight: Any) -> Any:
        return weight.movedim(self.dim, 0).flatten(1)

    def _power_iteration(self, matrix: Any, times: int) -> None:
        with no_grad():
            matrix = matrix.detach()
            for _ in range(times):
                self._u = F.normalize(matrix @ self._v, dim=0, eps=self.eps)
                self._v = F.normalize(matrix.mT @ self._u, dim=0, eps=self.eps)

    def forward(self, weight: Any) -> Any:
        """Return the weight, with a largest singular value near 1."""
        if weight.ndim == 1:
            return F.normalize(weight, dim=0, eps=self.eps)
        matrix = self._matrix(weight)
        if self.training:
            self._power_iteration(matrix, self.n_power_iterations)
        return weight / (self._u.clone() @ (matrix @ self._v.clone()))

    def right_inverse(self, value: Any) -> Any:
        """Return the value: its scale does not matter."""
        return value


def spectral_norm(
    module: Module, name: str = "weight", n_power_iterations: int = 1, eps: float = 1e-12, dim: int | None = None
) -> Module:
    """Divide a weight by its largest singular value: Miyato et al., ICLR 2018. Returns the module.

    Each forward pass in training runs power iteration. `dim` is the dimension of the matrix's rows: 0, or 1 for
    transposed convolutions.

    >>> import retrograd as rg
    >>> from retrograd import nn
    >>> layer = nn.utils.parametrizations.spectral_norm(nn.Linear(4, 3), n_power_iterations=50)
    >>> round(float(rg.linalg.norm(layer.weight, 2).detach()), 3)
    1.0
    """
    weight = _get_weight("spectral_norm", module, name)
    if n_power_iterations < 1:
        raise ValueError(f"spectral_norm: n_power_iterations must be at least 1, got {n_power_iterations}")
    if dim is None:
        dim = 1 if "ConvTranspose" in type(module).__name__ else 0
    canonical_dim("spectral_norm", dim, weight.ndim)
    return register_parametrization(module, name, SpectralNorm(weight, n_power_iterations, dim, eps))


class Orthogonal(Module):
    """Orthogonal rows or columns, whichever are fewer, from any matrix by one of three maps."""

    base: Any

    def __init__(self, weight: Any, orthogonal_map: str, use_trivialization: bool) -> None:
        super().__init__()
        self.orthogonal_map = orthogonal_map
        self.use_trivialization = use_trivialization
        self.register_buffer("base", None)

    def forward(self, x: Any) -> Any:
        """Return the orthogonal matrix."""
        wide = x.shape[-2] < x.shape[-1]
        x = x.mT if wide else x
        q = self._householder_product(x) if self.orthogonal_map == "householder" else self._exponential_or_cayley(x)
        q = q if self.base is None else self.base @ q
        return q.mT if wide else q

    def _householder_product(self, x: Any) -> Any:
        below = x.tril(-1)
        tau = 2 / (1 + (below * below).sum(-2))
        return _householder(below, tau) * x.diagonal(dim1=-2, dim2=-1).to("int64").unsqueeze(-2)

    def _exponential_or_cayley(self, x: Any) -> Any:
        rows, columns = x.shape[-2:]
        lower = x.tril()
        if rows != columns:
            lower = F.pad(lower, (0, rows - columns))
        skew = lower - lower.mT
        if self.orthogonal_map == "matrix_exp":
            q = _matrix_exp(skew)
        else:
            one = eye(rows, dtype=x.dtype, device=x.device)
            q = _solve(one - skew / 2, one + skew / 2)
        return q[..., :columns]

    def right_inverse(self, value: Any) -> Any:
        """Return the start: the orthogonal factor of the value becomes the base that the maps rotate.

        Without a base, return the matrix that the reflections map to the factor; NotImplementedError for other maps.
        """
        wide = value.shape[-2] < value.shape[-1]
        q = value.mT if wide else value
        if not self.use_trivialization:
            return self._reflections(q).mT if wide else self._reflections(q)
        rows, columns = q.shape[-2:]
        if rows != columns:
            q = _cat([q, init.normal_(q.new_empty(*q.shape[:-1], rows - columns))], -1)
        self.base = _orthogonal_factor(q)
        start = zeros_like(value)
        start.diagonal(dim1=-2, dim2=-1).fill_(-1)
        return start

    def _reflections(self, q: Any) -> Any:
        """Return the vectors of the Householder reflections whose product is q, and the signs of its columns."""
        if self.orthogonal_map != "householder":
            raise NotImplementedError(
                f"orthogonal: with use_trivialization=False no matrix can be assigned to a weight of the map "
                f"{self.orthogonal_map!r}; assign to its parametrizations.weight.original"
            )
        vectors, tau = _geqrf(q)
        signs = vectors.diagonal(dim1=-2, dim2=-1)
        signs.copy_(_where(tau == 0, -signs.sign(), signs.sign()))
        return vectors


def _orthogonal_factor(x: Any) -> Any:
    """Return the orthogonal factor of x, with signs that make it equal x if x is orthogonal."""
    q, r = _qr(x)
    return q * r.diagonal(dim1=-2, dim2=-1).sign().unsqueeze(-2)


def orthogonal(
    module: Module, name: str = "weight", orthogonal_map: str | None = None, *, use_trivialization: bool = True
) -> Module:
    """Keep the rows of a weight orthogonal in training, or the columns if there are fewer. Returns the module.

    `orthogonal_map`: "matrix_exp" or "cayley" of a skew-symmetric matrix, or products of "householder" reflections;
    None selects the first for square matrices, else the last. They rotate a base, the orthogonal factor of the initial
    weight: Lezcano-Casado, NeurIPS 2019. With `use_trivialization=False` there is no base: the map is applied to the
    weight itself, which then can't be assigned unless the map is "householder".

    >>> import retrograd as rg
    >>> from retrograd import nn
    >>> weight = nn.utils.parametrizations.orthogonal(nn.Linear(5, 3)).weight
    >>> bool((weight @ weight.mT - rg.eye(3)).abs().amax() < 1e-5)
    True
    """
    weight = _get_weight("orthogonal", module, name)
    if weight.ndim < 2:
        raise ValueError(f"orthogonal: expected a matrix or several, got shape {weight.shape}")
    if orthogonal_map is None:
        orthogonal_map = "matrix_exp" if weight.shape[-2] == weight.shape[-1] else "householder"
    if orthogonal_map not in ("matrix_exp", "cayley", "householder"):
        raise ValueError(
            f"orthogonal: orthogonal_map must be 'matrix_exp', 'cayley' or 'householder', got {orthogonal_map!r}"
        )
    return register_parametrization(module, name, Orthogonal(weight, orthogonal_map, use_trivialization), unsafe=True)


suggest_in_module(globals())

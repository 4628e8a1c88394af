"""L-BFGS: a quasi-Newton method with a short history of steps."""

from collections.abc import Callable
from dataclasses import InitVar
from typing import Any

from retrograd.autograd import enable_grad, no_grad
from retrograd.core import Tensor, operator_named
from retrograd.foundation.number_arguments import check_number
from retrograd.nn.constructor_fields import field
from retrograd.optim.declared_settings import DeclaredOptimizer, check_non_negative, check_one_of, with_settings
from retrograd.optim.line_search import Point, strong_wolfe
from retrograd.optim.optimizer import Group, State, check_closure
from retrograd.optim.state_entries import count, declare_entries, list_of, number, vector

_cat = operator_named("cat")
_clone = operator_named("clone")
_view_as_real = operator_named("view_as_real")
_zeros_like = operator_named("zeros_like")
_HISTORY = {"d", "t", "prev_flat_grad", "old_dirs", "old_stps", "ro", "H_diag"}
_MIN_CURVATURE = 1e-10  # steps with less curvature are ignored


class _Closure:
    """A user's closure, and the parameters that it reads, as one vector of real numbers."""

    def __init__(self, function: Callable[[], Any], params: list[Any]) -> None:
        self.function = function
        self.params = params
        self.count = 0

    def __call__(self) -> Any:
        self.count += 1
        with enable_grad():
            return self.function()

    def gradient(self) -> Any:
        """Return all gradients as one vector; zeros for missing ones."""
        parts = [_zeros_like(p.detach()) if p.grad is None else p.grad.detach().to_dense() for p in self.params]
        return _cat([_real_parts(part).reshape(-1) for part in parts])

    def set_parameters(self, origin: list[Any], d: Any, t: float) -> None:
        """Set the parameters to origin + t d."""
        begin = 0
        for p, x in zip(map(_real_parts, self.params), map(_real_parts, origin), strict=True):
            p.copy_(x + d[begin : begin + p.numel()].reshape(p.shape) * t)
            begin += p.numel()

    def loss_along(self, origin: list[Any], d: Any) -> Callable[[float], Point]:
        """Return the loss as a function of t."""

        def evaluate(t: float) -> Point:
            self.set_parameters(origin, d, t)
            loss = _as_float(self())
            g = self.gradient()
            return Point(t, loss, g, _dot(g, d))

        return evaluate


@with_settings
class LBFGS(DeclaredOptimizer):
    """Minimise by steps -H g, where the inverse Hessian H is estimated from the last steps: Liu and Nocedal, 1989.

    `step(closure)` takes up to `max_iter` steps, and calls the closure, which clears the gradients, computes the loss
    and calls backward, up to `max_eval` times (None: 5/4 max_iter). It ends early if no element of the gradient is
    above `tolerance_grad`, or if neither the loss nor any element of a parameter changes by more than
    `tolerance_change`. The step has length `lr`, or with `line_search_fn="strong_wolfe"` one that satisfies the strong
    Wolfe conditions. All parameters must be in one group. Returns the loss before the steps.

    >>> import retrograd as rg
    >>> from retrograd.optim import LBFGS
    >>> x = rg.tensor([4.0, -2.0], requires_grad=True)
    >>> optimizer = LBFGS([x], line_search_fn="strong_wolfe")
    >>> def closure():
    ...     optimizer.zero_grad()
    ...     loss = (x - rg.tensor([1.0, 2.0])).square().sum()
    ...     loss.backward()
    ...     return loss
    >>> optimizer.step(closure).item(), [round(v, 3) for v in x.tolist()]
    (25.0, [1.0, 2.0])
    """

    entries = declare_entries(
        d=vector, prev_flat_grad=vector, old_dirs=list_of(vector), old_stps=list_of(vector), ro=list_of(number),
        t=number, H_diag=number, prev_loss=number, func_evals=count, n_iter=count,
    )  # fmt: skip

    lr: InitVar[float] = field(default=1, check=check_non_negative)
    max_iter: InitVar[int] = 20
    max_eval: InitVar[int | None] = None
    tolerance_grad: InitVar[float] = field(default=1e-7, check=check_non_negative)
    tolerance_change: InitVar[float] = field(default=1e-9, check=check_non_negative)
    history_size: InitVar[int] = 100
    line_search_fn: InitVar[str | None] = field(default=None, check=check_one_of(None, "strong_wolfe"))

    @classmethod
    def complete_defaults(cls, settings: dict[str, Any]) -> dict[str, Any]:
        """Return the defaults, with 5/4 max_iter for `max_eval` None."""
        check_number("LBFGS: max_iter", int, settings["max_iter"])
        most = settings["max_eval"]
        return {**settings, "max_eval": settings["max_iter"] * 5 // 4 if most is None else most}

    def check(self, group: Group) -> None:
        """Check the settings."""
        super().check(group)
        if group["max_iter"] < 1 or group["history_size"] < 1:
            raise ValueError(
                f"max_iter and history_size must be at least 1, got {group['max_iter']} and {group['history_size']}"
            )

    def add_param_group(self, param_group: Group) -> None:
        """Add the group; there is only one."""
        if self.param_groups:
            raise ValueError(
                "LBFGS: all parameters must be in one group; LBFGS doesn't support per-parameter options (parameter "
                "groups)"
            )
        super().add_param_group(param_group)

    def _params_with_shared_state(self) -> list[Any]:
        return self._params()

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Take steps; return the loss before them."""
        if closure is None:
            raise TypeError("LBFGS.step: pass a closure that clears the gradients, computes the loss, calls backward")
        check_closure(self, closure)
        (group,) = self.param_groups
        state = self.state.setdefault(group["params"][0], {})
        with no_grad():
            return self._iterate(_Closure(closure, group["params"]), state, group)

    def _iterate(self, closure: _Closure, state: State, group: Group) -> Any:
        first = closure()
        loss, g = _as_float(first), closure.gradient()
        state["func_evals"] = state.get("func_evals", 0) + 1
        state.setdefault("n_iter", 0)
        for left in range(group["max_iter"] - 1, -1, -1):
            if _max_abs(g) <= group["tolerance_grad"]:
                break
            state["n_iter"] += 1
            d = _direction(g, state, group["history_size"])
            t = float(group["lr"]) * (min(1.0, 1 / float(g.abs().sum())) if state["n_iter"] == 1 else 1.0)
            state.update(d=d, t=t, prev_flat_grad=g, prev_loss=loss)
            slope = _dot(g, d)
            if slope > -group["tolerance_change"]:
                break
            start = Point(0.0, loss, g, slope)
            before = closure.count
            now = self._take_step(closure, start, d, t, group, last=left == 0)
            state["t"], loss, g = now.t, now.value, now.gradient
            state["func_evals"] += closure.count - before
            if closure.count >= group["max_eval"] or _is_converged(now, start, d, group["tolerance_change"]):
                break
        return first

    def _take_step(self, closure: _Closure, start: Point, d: Any, t: float, group: Group, last: bool) -> Point:
        """Move the parameters along d; return the new point, not evaluated after a `last` step of fixed length."""
        origin = [_clone(p) for p in group["params"]]
        if group["line_search_fn"]:
            evaluate = closure.loss_along(origin, d)
            most = group["max_eval"] - closure.count
            now = strong_wolfe(evaluate, start, t, _max_abs(d), group["tolerance_change"], most)
            closure.set_parameters(origin, d, now.t)
            return now
        if not last:
            return closure.loss_along(origin, d)(t)
        closure.set_parameters(origin, d, t)
        return start._replace(t=t)


def _real_parts(x: Any) -> Any:
    """Return a real tensor itself; the parts of a complex one along a last dimension of size 2."""
    return _view_as_real(x) if x.dtype.kind == "c" else x


def _as_float(loss: Any) -> float:
    return float(loss.detach() if isinstance(loss, Tensor) else loss)


def _dot(a: Any, b: Any) -> float:
    return float((a * b).sum())


def _max_abs(x: Any) -> float:
    return float(x.abs().amax()) if x.numel() else 0.0


def _is_converged(now: Point, start: Point, d: Any, tolerance: float) -> bool:
    return _max_abs(d) * now.t <= tolerance or abs(now.value - start.value) < tolerance


def _direction(g: Any, state: State, size: int) -> Any:
    """Return -H g; H is estimated from the pairs of steps (`old_stps`) and changes of the gradient (`old_dirs`)."""
    if state["n_iter"] == 1 or not state.keys() >= _HISTORY:
        state.update(old_dirs=[], old_stps=[], ro=[], H_diag=1.0)
        return -g
    change, step = g - state["prev_flat_grad"], state["d"] * state["t"]
    curvature = _dot(change, step)
    if curvature > _MIN_CURVATURE:
        pairs = {"old_dirs": change, "old_stps": step, "ro": 1 / curvature}
        for name, value in pairs.items():
            state[name] = [*state[name], value][-size:]
        state["H_diag"] = curvature / _dot(change, change)
    return _two_loops(-g, list(zip(state["old_dirs"], state["old_stps"], state["ro"], strict=True)), state["H_diag"])


def _two_loops(q: Any, pairs: list[tuple[Any, Any, float]], scale: float) -> Any:
    """Apply the two-loop recursion: Nocedal and Wright, algorithm 7.4."""
    alphas = []
    for change, step, ro in reversed(pairs):
        alpha = _dot(step, q) * float(ro)
        q = q - change * alpha
        alphas.append(alpha)
    q = q * float(scale)
    for (change, step, ro), alpha in zip(pairs, reversed(alphas), strict=True):
        q = q + step * (alpha - _dot(change, q) * float(ro))
    return q

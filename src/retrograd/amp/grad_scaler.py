"""Loss scaling: gradients of a scaled loss do not underflow in float16."""

from collections.abc import Iterable
from typing import Any

from retrograd.amp.autocast_mode import is_autocast_available
from retrograd.autograd.grad_mode import no_grad
from retrograd.core import Tensor
from retrograd.core.dtype import float32
from retrograd.foundation.source_location import warn_user
from retrograd.foundation.suggestions import suggests_keywords
from retrograd.nn.tensor_part import local_tensor, split_by_division
from retrograd.ops.create import ones, tensor
from retrograd.ops.dtype_aliases import half
from retrograd.ops.join import stack


def _all_of(flags: list[Tensor]) -> Tensor:
    """Return whether all of several flags are True, on the device of the first."""
    return stack([flag.to(flags[0].device) for flag in flags]).all()


def _has_finite_grad(param: Any) -> Tensor:
    numbers: Tensor = param.grad.coalesce().values() if param.grad.is_sparse else param.grad
    return numbers.isfinite().all()


@suggests_keywords
class GradScaler:
    """Scale losses before `backward()`, unscale gradients before a step, and skip steps with infinite or NaN gradients.

    The scale begins with `init_scale`. `update()` multiplies it by `backoff_factor` after a skipped step, and by
    `growth_factor` after `growth_interval` steps in a row that were not skipped. With `enabled=False`, and for devices
    that are not there (with a warning), all methods do what a script without a scaler does. Whether gradients on a GPU
    are finite is read once per optimizer and step.

    Raises ValueError for factors that would not grow or shrink the scale.

    >>> import retrograd as rg
    >>> w = rg.ones(2, requires_grad=True)
    >>> optimizer = rg.optim.SGD([w], lr=0.1)
    >>> scaler = GradScaler("cpu", init_scale=1024.0)
    >>> scaler.scale((w * w).sum()).backward()
    >>> w.grad
    tensor([2048., 2048.])
    >>> scaler.step(optimizer)
    >>> scaler.update()
    >>> w
    tensor([0.8000, 0.8000], requires_grad=True)
    """

    def __init__(
        self,
        device: str = "cuda",
        init_scale: float = 2.0**16,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ) -> None:
        self._device = device
        if enabled and not is_autocast_available(device):
            warn_user(f"GradScaler: there is no device {device!r} here: the scaler is disabled")
            enabled = False
        if not growth_factor > 1.0:
            raise ValueError(f"GradScaler: growth_factor must be greater than 1, got {growth_factor}")
        if not 0.0 < backoff_factor < 1.0:
            raise ValueError(f"GradScaler: backoff_factor must be between 0 and 1, got {backoff_factor}")
        self._enabled = enabled
        self._scale = tensor(float(init_scale), dtype=float32)  # written in place, so a compiled step may read it
        self._growth_factor = growth_factor
        self._backoff_factor = backoff_factor
        self._growth_interval = growth_interval
        self._growth_tracker = 0
        # By the id of an optimizer since the last `update()`: whether its unscaled gradients are finite.
        self._unscaled: dict[int, bool] = {}
        self._stepped: set[int] = set()

    def scale(self, outputs: Any) -> Any:
        """Return a tensor, or each tensor of an iterable, times the scale."""
        if not self._enabled:
            return outputs
        if isinstance(outputs, Tensor):
            return outputs * self._scale.to(outputs.device)
        if isinstance(outputs, Iterable):
            scaled = [self.scale(x) for x in outputs]
            return type(outputs)(scaled) if isinstance(outputs, list | tuple) else iter(scaled)
        raise ValueError("outputs must be a Tensor or an iterable of Tensors")

    def unscale_(self, optimizer: Any) -> None:
        """Divide the gradients of an optimizer's parameters by the scale, for example before clipping.

        Raises RuntimeError if they are unscaled already, or stepped since the last `update()`, and ValueError for
        gradients in float16, before anything changes. If gradients are divided among ranks, as by `fully_shard`,
        `ZeroRedundancyOptimizer(shard_gradients=True)` and a `Pipeline` over processes, all ranks must call it.
        """
        if not self._enabled:
            return
        if id(optimizer) in self._stepped:
            raise RuntimeError("unscale_() is being called after step().")
        if id(optimizer) in self._unscaled:
            raise RuntimeError("unscale_() has already been called on this optimizer since the last update().")
        whole, divided = split_by_division(p for group in optimizer.param_groups for p in group["params"])
        params = [*whole, *(p for each in divided for p in each.tensors)]
        if any(p.grad.dtype == half for p in params):
            raise ValueError("Attempting to unscale FP16 gradients. Keep the parameters in float32.")
        factor = 1.0 / self.get_scale()
        with no_grad():
            for p in params:
                local_tensor(p.grad).mul_(factor)
            finite = [_has_finite_grad(p) for p in whole]
            for each in divided:
                own = _all_of([_has_finite_grad(p) for p in each.tensors]) if each.tensors else ones(())
                finite.append(each.stack_over_ranks(own.float()).all())
            self._unscaled[id(optimizer)] = not finite or bool(_all_of(finite))

    def step(self, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
        """Return `optimizer.step(*args, **kwargs)` on unscaled gradients; None, without a step, if some are not finite.

        Raises RuntimeError for a closure, which would compute other gradients, and for a second step before `update()`.
        """
        if not self._enabled:
            return optimizer.step(*args, **kwargs)
        if args or kwargs.get("closure") is not None:
            raise RuntimeError("Closure use is not currently supported if GradScaler is enabled.")
        if id(optimizer) in self._stepped:
            raise RuntimeError("step() has already been called since the last update().")
        if id(optimizer) not in self._unscaled:
            self.unscale_(optimizer)
        result = optimizer.step(**kwargs) if self._unscaled[id(optimizer)] else None
        self._stepped.add(id(optimizer))
        return result

    def update(self, new_scale: float | Tensor | None = None) -> None:
        """Set the scale for the next step; `new_scale` sets it to a number."""
        if not self._enabled:
            return
        if new_scale is not None:
            self._scale.fill_(float(new_scale))
        else:
            if not self._unscaled:
                raise RuntimeError("No inf checks were recorded prior to update: call step() or unscale_() first")
            if all(self._unscaled.values()):
                self._growth_tracker += 1
                if self._growth_tracker == self._growth_interval:
                    grown = (self._scale.double() * self._growth_factor).float()
                    if grown.isfinite():
                        self._scale.copy_(grown)
                    self._growth_tracker = 0
            else:
                self._scale.copy_(self._scale.double() * self._backoff_factor)
                self._growth_tracker = 0
        self._unscaled.clear()
        self._stepped.clear()

    def get_scale(self) -> float:
        """Return the scale; 1.0 if disabled."""
        return self._scale.item() if self._enabled else 1.0

    def get_growth_factor(self) -> float:
        """Return the factor by which the scale grows."""
        return self._growth_factor

    def set_growth_factor(self, new_factor: float) -> None:
        """Set the factor by which the scale grows."""
        self._growth_factor = new_factor

    def get_backoff_factor(self) -> float:
        """Return the factor by which the scale shrinks after a skipped step."""
        return self._backoff_factor

    def set_backoff_factor(self, new_factor: float) -> None:
        """Set the factor by which the scale shrinks after a skipped step."""
        self._backoff_factor = new_factor

    def get_growth_interval(self) -> int:
        """Return the number of steps in a row after which the scale grows."""
        return self._growth_interval

    def set_growth_interval(self, new_interval: int) -> None:
        """Set the number of steps in a row after which the scale grows."""
        self._growth_interval = new_interval

    def is_enabled(self) -> bool:
        """Return whether the scaler scales."""
        return self._enabled

    def state_dict(self) -> dict[str, Any]:
        """Return the scale, the settings and the count of steps as plain data; an empty dict if disabled."""
        if not self._enabled:
            return {}
        return {
            "scale": self.get_scale(),
            "growth_factor": self._growth_factor,
            "backoff_factor": self._backoff_factor,
            "growth_interval": self._growth_interval,
            "_growth_tracker": self._growth_tracker,
        }

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Load a `state_dict`; RuntimeError for that of a disabled scaler, unless this one is disabled too."""
        if not self._enabled:
            return
        if not state_dict:
            raise RuntimeError(
                "The source state dict is empty, possibly because it was saved from a disabled GradScaler"
            )
        self._scale.fill_(float(state_dict["scale"]))
        self._growth_factor = state_dict["growth_factor"]
        self._backoff_factor = state_dict["backoff_factor"]
        self._growth_interval = state_dict["growth_interval"]
        self._growth_tracker = state_dict["_growth_tracker"]

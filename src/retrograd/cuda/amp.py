"""The older names of `rg.amp` for CUDA: without a CUDA device they are disabled, with a warning."""

from functools import partial
from typing import Any

from retrograd import amp
from retrograd.ops.dtype_aliases import half

custom_fwd, custom_bwd = (partial(function, device_type="cuda") for function in (amp.custom_fwd, amp.custom_bwd))


class autocast(amp.autocast):
    """`rg.autocast("cuda", ...)`.

    >>> with autocast(enabled=False) as block:
    ...     pass
    """

    def __init__(self, enabled: bool = True, dtype: Any = half, cache_enabled: bool = True) -> None:
        super().__init__("cuda", dtype, enabled, cache_enabled)


class GradScaler(amp.GradScaler):
    """`rg.amp.GradScaler("cuda", ...)`.

    >>> GradScaler(enabled=False).scale(3.0)
    3.0
    """

    def __init__(
        self,
        init_scale: float = 2.0**16,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ) -> None:
        super().__init__("cuda", init_scale, growth_factor, backoff_factor, growth_interval, enabled)

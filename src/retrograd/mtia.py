"""Meta's accelerators under the names of torch.mtia: there are none here, and scripts that ask run on the CPU."""

from retrograd.foundation.absent_devices import (
    device_count,
    is_available,
    is_initialized,
    manual_seed,
    manual_seed_all,
    refuse_device,
)

__all__ = ["device_count", "is_available", "is_initialized", "manual_seed", "manual_seed_all"]

__getattr__ = refuse_device("retrograd.mtia")

"""Intel's GPUs under the names of torch.xpu: there are none here, and scripts that ask run on the CPU."""

from retrograd.foundation.absent_devices import device_count as device_count
from retrograd.foundation.absent_devices import is_available as is_available
from retrograd.foundation.absent_devices import is_initialized as is_initialized
from retrograd.foundation.absent_devices import manual_seed as manual_seed
from retrograd.foundation.absent_devices import manual_seed_all as manual_seed_all
from retrograd.foundation.absent_devices import refuse_device

__getattr__ = refuse_device("retrograd.xpu")

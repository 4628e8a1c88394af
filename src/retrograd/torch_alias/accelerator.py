"""`torch.accelerator`: the device other than the CPU, CUDA's where there is one."""

from retrograd import cuda
from retrograd.core.device import device
from retrograd.cuda import device_count as device_count
from retrograd.cuda import is_available as is_available
from retrograd.cuda import synchronize as synchronize

current_device_index, set_device_index = cuda.current_device, cuda.set_device


def current_accelerator(check_available: bool = False) -> device | None:
    """Return that device, without an index; None if there is none."""
    return device("cuda") if cuda.is_available() else None

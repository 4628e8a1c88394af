"""Apple's GPU under the names of torch.mps: there are none here, and scripts that ask run on the CPU."""

from retrograd.foundation.absent_devices import *  # noqa: F403
from retrograd.foundation.absent_devices import __all__ as __all__
from retrograd.foundation.absent_devices import refuse_device

__getattr__ = refuse_device("retrograd.mps")

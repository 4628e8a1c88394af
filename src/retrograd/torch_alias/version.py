"""`torch.version`: the version of PyTorch whose behavior retrograd follows, without libraries for devices."""

from retrograd import torch_alias

__version__ = torch_alias.PYTORCH_VERSION
cuda = hip = xpu = git_version = None
debug = False

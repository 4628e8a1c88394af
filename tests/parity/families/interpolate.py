"""PyTorch's calls and known differences of resizing and sampling."""

from torch.nn import functional

from ..quiet import quiet

CALLS = {name: quiet(getattr(functional, name)) for name in ("upsample", "upsample_bilinear", "upsample_nearest")}

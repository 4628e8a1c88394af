"""The version of the package, under the names of torch.version; there is no CUDA, ROCm or XPU that it was built for.

>>> from retrograd import version
>>> version.cuda is None
True
"""

from retrograd import __version__ as __version__

cuda: str | None = None
hip: str | None = None
rocm: str | None = None
xpu: str | None = None
git_version: str | None = None
debug = False

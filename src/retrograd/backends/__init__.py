"""Settings of PyTorch's compute libraries, under the names of torch.backends.

None of these libraries computes here, so the settings can be assigned and have no effect: `cudnn.benchmark = True`.
"""

from retrograd.backends import cpu as cpu
from retrograd.backends import cuda as cuda
from retrograd.backends import cudnn as cudnn
from retrograd.backends import mha as mha
from retrograd.backends import mkl as mkl
from retrograd.backends import mkldnn as mkldnn
from retrograd.backends import mps as mps
from retrograd.backends import openmp as openmp
from retrograd.backends import opt_einsum as opt_einsum

"""PyTorch's calls of convolutions."""

import torch

from ..quiet import quiet

CALLS = {  # PyTorch warns that padding="same" is slow with even kernels
    "conv2d": quiet(torch.conv2d),
    "conv3d": quiet(torch.conv3d),
}

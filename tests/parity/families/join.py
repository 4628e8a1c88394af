"""PyTorch's calls and known differences of joining and broadcasting tensors."""

import torch

CALLS = {
    "block_diag": lambda tensors: torch.block_diag(*tensors),
    "cartesian_prod": lambda tensors: torch.cartesian_prod(*tensors),
    "meshgrid": lambda tensors, indexing: torch.meshgrid(*tensors, indexing=indexing),
}

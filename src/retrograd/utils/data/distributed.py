"""`DistributedSampler`, under the name of its module in PyTorch."""

from retrograd.utils.data.sampler import DistributedSampler as DistributedSampler

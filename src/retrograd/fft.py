"""Fourier transforms, under the names of torch.fft: every operator `fft.<name>` of the registry."""

from retrograd import ops

globals().update(ops.public("fft"))

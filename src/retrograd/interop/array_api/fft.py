"""The extension for Fourier transforms."""

from retrograd.interop.array_api.generated import GENERATED

globals().update(GENERATED["fft"])

__all__ = [*GENERATED["fft"]]

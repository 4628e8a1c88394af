"""Reference implementations of window functions."""

import numpy as np
import scipy.signal

BY_SCIPY = {
    "general_cosine": lambda M, a, sym: scipy.signal.windows.general_cosine(M, a, sym),
    "bartlett": lambda M, sym: scipy.signal.windows.bartlett(M, sym),
    "cosine": lambda M, sym: scipy.signal.windows.cosine(M, sym),
    "exponential": lambda M, center, tau, sym: scipy.signal.windows.exponential(M, center, tau, sym),
    "gaussian": lambda M, std, sym: scipy.signal.windows.gaussian(M, std, sym),
    "kaiser": lambda M, beta, sym: scipy.signal.windows.kaiser(M, beta, sym),
}


def in_its_dtype(window):
    return lambda dtype, **params: np.asarray(window(**params), dtype or "float32")


ORACLES = {f"signal.windows.{name}": in_its_dtype(window) for name, window in BY_SCIPY.items()}

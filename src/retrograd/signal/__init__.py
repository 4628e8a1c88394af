"""Signals: `rg.signal.windows` has the windows of torch.signal.windows."""

from retrograd.signal import windows as windows

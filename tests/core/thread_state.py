"""Read all modes that are active in a thread."""

import retrograd as rg
from retrograd.core import current
from retrograd.levels import dual
from retrograd.library import fake_context, sanitizer
from retrograd.ops import generator


def thread_state():
    """Return by name all state that must be restored when a program has ended, normally or by an error."""
    state = current()
    names = (
        "level", "grad_enabled", "inference", "saving", "saving_refused", "watchers", "running",
        "multithreading", "depth",
    )  # fmt: skip
    found = {name: getattr(state, name) for name in names}
    return {
        **found,
        "grad modes": list(state.grad_blocks),
        "forward mode": dual.forward_mode.on,
        "source of random numbers": generator._redirection.to,
        "operator whose fake runs": fake_context._operator.name,
        "sanitizer": sanitizer.state.on,
        "anomaly mode": rg.autograd.anomaly_mode.is_anomaly_enabled(),
        "default dtype": rg.get_default_dtype(),
    }

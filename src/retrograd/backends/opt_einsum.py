"""Settings of the package opt_einsum, under the names of torch.backends.opt_einsum: accepted, without effect.

`rg.einsum` chooses the order of its products by itself.
"""

enabled = False
strategy: str | None = None


def is_available() -> bool:
    """Whether `einsum` uses the package: never."""
    return False

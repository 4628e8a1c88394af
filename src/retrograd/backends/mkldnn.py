"""Whether oneDNN computes, under the names of torch.backends.mkldnn: never, the kernels here are retrograd's."""

enabled = False


def is_available() -> bool:
    """Whether oneDNN computes: never."""
    return False

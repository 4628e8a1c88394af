"""Devices by PyTorch's names; only the CPU has tensors."""

# Devices that programs may name, to test whether they are available.
DEVICE_NAMES = ("cpu", "cuda", "mps", "xpu", "xla", "meta", "hpu", "mtia")


class device:
    """A device, as `device("cpu")`, `device("cuda:1")` or `device("cuda", 1)`.

    NumPy's arrays are on the CPU: other devices can be named, and are refused where a tensor is to be made there.
    A device equals its name.

    >>> device("cpu").type, device("cpu") == "cpu", device("cuda:1")
    ('cpu', True, device(type='cuda', index=1))
    """

    __slots__ = ("index", "type")

    def __init__(self, type, index=None):
        kind, _, number = str(type).partition(":")
        if kind not in DEVICE_NAMES or (number and (index is not None or not number.isdigit())):
            raise RuntimeError(
                f"device: expected one of {' '.join(DEVICE_NAMES)}, perhaps with a number as in 'cuda:1', got {type!r}"
            )
        self.type = kind
        self.index = int(number) if number else index

    def __str__(self):
        return self.type if self.index is None else f"{self.type}:{self.index}"

    def __repr__(self):
        index = "" if self.index is None else f", index={self.index}"
        return f"device(type={self.type!r}{index})"

    def __eq__(self, other):
        return str(self) == str(other) if isinstance(other, (device, str)) else NotImplemented

    def __hash__(self):
        return hash(str(self))


CPU = device("cpu")

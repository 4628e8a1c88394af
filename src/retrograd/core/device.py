"""Devices by PyTorch's names, and those that have tensors: the CPU, and registered ones."""

from typing import Any

# Devices that programs may name, to test whether they are available.
DEVICE_NAMES = ("cpu", "cuda", "mps", "xpu", "xla", "meta", "hpu", "mtia")


_registered = {}  # types of devices that are not among these -> None


def add_device_type(kind):
    """Let a device of this type be named."""
    if kind not in DEVICE_NAMES:
        _registered[kind] = None


def is_device_type(kind):
    """Return whether a string is the type of a device that may be named.

    >>> is_device_type("cuda"), is_device_type("gpu")
    (True, False)
    """
    return kind in DEVICE_NAMES or kind in _registered


class device:
    """A device, as `device("cpu")`, `device("cuda:1")` or `device("cuda", 1)`.

    Other devices than the CPU can be named; without a library for their arrays, no tensor can be made there.
    A device equals its name.  In a block `with device("meta"):`, tensors are made there unless `device=` says where.

    >>> import retrograd as rg
    >>> device("cpu").type, device("cpu") == "cpu", device("cuda:1")
    ('cpu', True, device(type='cuda', index=1))
    >>> with device("meta"):
    ...     rg.nn.Linear(100_000, 100_000).weight
    Parameter containing:
    tensor(..., device='meta', size=(100000, 100000), dtype=float32, requires_grad=True)
    """

    __slots__ = ("index", "type")

    def __init__(self, type, index=None):
        kind, colon, number = str(type).partition(":")
        plain = number.isdigit() and str(int(number)) == number  # no further zeros, signs or spaces
        if not is_device_type(kind) or (colon and (index is not None or not plain)) or (index or 0) < 0:
            raise RuntimeError(
                f"device: expected one of {' '.join((*DEVICE_NAMES, *_registered))}, perhaps with a number as in "
                f"'cuda:1', got {type!r}"
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


class ArrayDevice:
    """A device with a plain kind of array of its own, and the ways between it and host memory.

    `device` names it, `array_type` is the type of its arrays, and `namespace` has the functions on them. Operators run
    on it if an operand is there. `has_elements` is False if its arrays have a shape and a dtype only.
    """

    device = CPU
    array_type: Any = None
    namespace: Any = None
    has_elements = True

    def from_host(self, array):
        """Return a copy of a NumPy array on the device."""
        raise NotImplementedError

    def to_host(self, array):
        """Return a copy of an array of the device as a NumPy array."""
        raise NotImplementedError

    def share_memory(self, a, b):
        """Return whether two arrays of the device are in one allocation."""
        raise NotImplementedError

    def has_index(self, index):
        """Return whether this is the device of its type with an index; None is any."""
        return index in (None, 0)

    def uniform(self, state, size, dtype):
        """Return random numbers of a state of NumPy's Philox generator; None if they must be drawn in host memory."""
        return None

    def update_kernel(self, name):
        """Return the kernel of an optimizer's step, None for the formula."""
        return None


array_devices = {}  # array type -> `ArrayDevice`, filled by retrograd.backend.devices

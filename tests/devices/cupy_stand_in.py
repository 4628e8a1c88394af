"""A module like CuPy 14.2 over host memory, for tests: the strict device's arrays, and CuPy's own names around them.

It has no other names than those that this package may use, each with CuPy's signature. `installed` makes it what
`import cupy` gives. Streams and events do nothing but note the order of their calls in `calls`.
"""

import itertools
import sys
from contextlib import contextmanager
from types import SimpleNamespace

import numpy as np
import scipy.sparse
from tests.devices import cuda_on_host, cupy_names, cupy_signatures
from tests.devices.devices import load_again

from retrograd.backend import cupy as backend_cupy
from retrograd.backend.devices import device_named, forget_device
from retrograd.core.device import array_devices

CUDA, HOST = 2, 1  # device types of DLPack
strict = load_again("strict_for_cupy")

calls: list[tuple] = []  # (what, ...) of streams, events, graphs and pools, in the order of the calls
_numbers = itertools.count(1)


class Device:
    """CuPy's Device; there are two, of which one is current."""

    current = 0

    def __init__(self, device=None):
        self.id = Device.current if device is None else device
        self.compute_capability = "90"
        self.mem_info = (3 << 30, 4 << 30)

    def use(self):
        Device.current = self.id

    def synchronize(self):
        calls.append(("synchronize device", self.id))


class Event:
    def __init__(self, block=False, disable_timing=False, interprocess=False):
        self.number, self.timed, self.done = next(_numbers), not disable_timing, True

    def record(self, stream=None):
        calls.append(("record", self.number, (stream or get_current_stream()).ptr))

    def synchronize(self):
        calls.append(("synchronize event", self.number))


def get_elapsed_time(start_event, end_event):
    if not (start_event.timed and end_event.timed):
        raise RuntimeError("cudaErrorInvalidResourceHandle: invalid resource handle")
    return float(end_event.number - start_event.number)


class Graph:
    def __init__(self, *args, **kwargs):
        raise NotImplementedError("currently this class cannot be initiated by the user")

    def launch(self, stream=None):
        calls.append(("launch graph", (stream or get_current_stream()).ptr))


class Stream:
    def __init__(self, null=False, non_blocking=False, ptds=False, priority=None):
        self.ptr = 0 if null else next(_numbers)
        self.device_id, self.done, self.is_non_blocking = Device.current, True, non_blocking
        self._capturing = False

    def __eq__(self, other):
        return isinstance(other, Stream) and self.ptr == other.ptr

    __hash__ = None

    def __enter__(self):
        _streams.append(self)
        return self

    def __exit__(self, *args):
        _streams.pop()

    def use(self):
        _streams[-1] = self
        return self

    def synchronize(self):
        calls.append(("synchronize stream", self.ptr))

    def record(self, event=None):
        event = Event() if event is None else event
        event.record(self)
        return event

    def wait_event(self, event):
        calls.append(("wait", self.ptr, event.number))

    def begin_capture(self, mode=None):
        if self.ptr == 0:
            raise RuntimeError("cannot capture on the default (legacy) stream")
        if get_current_stream() != self:
            raise RuntimeError("the stream that captures is not the current one: work would go elsewhere")
        self._capturing = True
        calls.append(("begin capture", self.ptr))

    def end_capture(self):
        self._capturing = False
        calls.append(("end capture", self.ptr))
        return Graph.__new__(Graph)

    def is_capturing(self):
        return self._capturing


Stream.null = Stream(null=True)
_streams = [Stream.null]


def get_current_stream(device_id=-1):
    return _streams[-1]


class MemoryPool:
    """The pool: bytes in use are those of the arrays that are alive."""

    def used_bytes(self):
        return sum(memory.root.nbytes for memory in list(strict.Memory.known.values()))

    def total_bytes(self):
        return self.used_bytes() + 512

    def malloc(self, size):
        raise NotImplementedError("arrays of the stand-in are in host memory")

    def free_all_blocks(self, stream=None):
        calls.append(("free all blocks",))


@contextmanager
def using_allocator(allocator=None):
    assert isinstance(allocator.__self__, MemoryPool)
    calls.append(("use pool", id(allocator.__self__)))
    yield
    calls.append(("use default pool",))


class MemoryHook:
    """Only the methods that are called by `allocate`, below."""

    active: list = []  # noqa: RUF012

    def __enter__(self):
        MemoryHook.active.append(self)
        return self

    def __exit__(self, *args):
        MemoryHook.active.remove(self)

    def malloc_postprocess(self, **kwargs):
        pass


class PinnedMemoryPointer(bytearray):
    """Pinned memory."""


def empty_pinned(shape, dtype=float, order="C"):
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    return np.ndarray(shape, dtype, buffer=PinnedMemoryPointer(max(size, 1)), order=order)


class RawModule(cuda_on_host.RawModule):
    ndarray = strict.ndarray


def _dlpack(self, *, stream=None, max_version=None, dl_device=None, copy=None):
    if dl_device not in (None, (CUDA, 0)):
        raise BufferError("CuPy exports to the array's own device only")
    return self._host.__dlpack__(max_version=max_version)


def from_dlpack(array, *, device=None, copy=None):
    if array.__dlpack_device__()[0] != CUDA:
        raise TypeError("CuPy imports memory of a GPU only")
    capsule = array.__dlpack__(max_version=(1, 0))
    host = np.from_dlpack(SimpleNamespace(__dlpack__=lambda **_: capsule, __dlpack_device__=lambda: (HOST, 0)))
    return strict.wrap(host.copy() if copy else host)


strict.ndarray.__dlpack__ = _dlpack
strict.ndarray.__dlpack_device__ = lambda self: (CUDA, Device.current)
strict.ndarray.device = property(lambda self: Device())


class csr_matrix:
    """CuPy's sparse matrix: a product sums repeated entries first, for which it looks at values."""

    def __init__(self, arg1, shape=None, dtype=None, copy=False):
        data, indices, indptr = arg1
        assert dtype is None
        assert data.dtype.char in "?fdFD"
        self._host = scipy.sparse.csr_array((data._host, indices._host, indptr._host), shape=shape)
        self.has_canonical_format = False

    def __matmul__(self, other):
        if not self.has_canonical_format:
            strict.transfers["to host"] += 1
        return strict.wrap(np.asfortranarray(self._host @ other._host))


_properties = {"name": b"Stand-in", "totalGlobalMem": 4 << 30, "multiProcessorCount": 7, "major": 9, "minor": 0}
pool = MemoryPool()
cuda = SimpleNamespace(
    is_available=lambda: True, Device=Device, Stream=Stream, Event=Event, Graph=Graph, MemoryHook=MemoryHook,
    get_current_stream=get_current_stream, MemoryPool=MemoryPool,
    using_allocator=using_allocator, get_elapsed_time=get_elapsed_time, PinnedMemoryPointer=PinnedMemoryPointer,
    runtime=SimpleNamespace(
        getDeviceCount=lambda: 2, getDeviceProperties=lambda device: dict(_properties),
        deviceSynchronize=lambda: calls.append(("synchronize device", Device.current)),
    ),
)  # fmt: skip
cupy = strict.Module(
    np, cupy_names.NUMPY, cupy_signatures.NUMPY,
    **{name: value for name, value in vars(strict.library).items() if name[0] != "_"},
    cuda=cuda, RawModule=RawModule, from_dlpack=from_dlpack, get_default_memory_pool=lambda: pool,
)  # fmt: skip


def _refuse_recording(module, name):
    """Let a function that calls cuBLAS or cuSOLVER refuse to be recorded, as CuPy does."""
    function = getattr(module, name)

    def call(*args, **kwargs):
        if get_current_stream().is_capturing():
            raise NotImplementedError("calling cuBLAS API during stream capture is currently unsupported")
        return function(*args, **kwargs)

    setattr(module, name, call)


for _name in ("dot", "einsum", "inner", "matmul", "tensordot", "vdot"):
    _refuse_recording(cupy, _name)
for _name in cupy_names.LINALG - {"LinAlgError"}:
    _refuse_recording(cupy.linalg, _name)
for _name in ("__matmul__", "__rmatmul__", "dot"):
    _refuse_recording(strict.ndarray, _name)

compute_types: dict[str, int] = {}
core = SimpleNamespace(set_compute_type=lambda dtype, kind: compute_types.update({np.dtype(dtype).name: kind}))
MODULES = {
    "cupy": cupy, "cupy._core": core, "cupyx": SimpleNamespace(empty_pinned=empty_pinned),
    "cupyx.scipy.special": strict.special, "cupyx.scipy.sparse": SimpleNamespace(csr_matrix=csr_matrix),
}  # fmt: skip


@contextmanager
def installed():
    """Let `import cupy` give the stand-in within a block, with a device "cuda"; yields the device."""
    before = {name: sys.modules.get(name) for name in MODULES}
    sys.modules.update(MODULES)
    backend_cupy.forget_cupy()
    try:
        yield device_named("cuda")
    finally:
        for found in [found for found in array_devices.values() if found.device.type == "cuda"]:
            forget_device(found)
        backend_cupy.forget_cupy()
        Device.current = 0
        for name, module in before.items():
            sys.modules.pop(name) if module is None else sys.modules.update({name: module})

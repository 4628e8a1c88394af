"""CUDA graphs: work on the device that is recorded once, and launched again by one call."""

from contextlib import suppress
from typing import Any

from retrograd.core.blocks import generator_block
from retrograd.cuda.runtime import require_library
from retrograd.cuda.streams import Stream, current_stream


class CUDAGraph:
    """Work that a block of `rg.cuda.graph` recorded: `replay()` launches it on the tensors of the block.

    New inputs are written to these tensors, by `copy_`, and results are read from them. Their memory belongs to the
    graph. Numbers in Python, as the count of steps in Adam's corrections, are those of the recording; random numbers
    would be, too, and are refused. RuntimeError without a device.
    """

    def __init__(self, keep_graph: bool = False) -> None:
        require_library("CUDAGraph")
        self._graph: Any = None
        self._pool: Any = None

    def replay(self) -> None:
        """Launch the work on the current stream. RuntimeError for a graph that recorded nothing."""
        if self._graph is None:
            raise RuntimeError("CUDAGraph.replay: nothing was recorded; run the work in `with rg.cuda.graph(g):` first")
        self._graph.launch()

    def reset(self) -> None:
        """Drop the work and its memory; tensors of the block stay valid as long as they are referenced."""
        self._graph = self._pool = None


@generator_block
def graph(cuda_graph: CUDAGraph, pool: Any = None, stream: Stream | None = None) -> Any:
    """Context manager: record the work of the block in a graph, without doing it.

    Run the work once before, so that its kernels are compiled. Whatever waits for the device, as `item()`, raises.
    `stream` is another one than the default stream, None a new one.
    """
    library = require_library("graph")
    stream = Stream() if stream is None else stream
    stream.wait_stream(current_stream())
    # A pool of its own: memory that the block frees must not go to later work, because a replay writes to it.
    cuda_graph._pool = library.cuda.MemoryPool()
    with library.cuda.using_allocator(cuda_graph._pool.malloc), stream._stream:
        stream._stream.begin_capture()
        try:
            yield
        except BaseException:
            with suppress(RuntimeError):  # the error invalidated the recording
                stream._stream.end_capture()
            raise
        cuda_graph._graph = stream._stream.end_capture()
    current_stream().wait_stream(stream)

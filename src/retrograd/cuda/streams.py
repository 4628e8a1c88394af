"""Streams and events of the device, under the names of torch.cuda: CuPy's."""

from typing import Any

from retrograd.cuda.runtime import require_library


class Event:
    """A mark in a stream's work: when it was reached, and whether.

    `enable_timing` lets `elapsed_time` be asked for. RuntimeError without a device.
    """

    def __init__(self, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False) -> None:
        self._library = require_library("Event")
        self._event = self._library.cuda.Event(
            block=blocking, disable_timing=not enable_timing, interprocess=interprocess
        )

    def record(self, stream: "Stream | None" = None) -> None:
        """Put the mark behind the work that a stream, None being the current one, has now."""
        self._event.record(None if stream is None else stream._stream)

    def wait(self, stream: "Stream | None" = None) -> None:
        """Let later work of a stream, None being the current one, wait for the mark."""
        (current_stream() if stream is None else stream)._stream.wait_event(self._event)

    def query(self) -> bool:
        """Return whether the mark has been reached."""
        return bool(self._event.done)

    def synchronize(self) -> None:
        """Wait until the mark has been reached."""
        self._event.synchronize()

    def elapsed_time(self, end_event: "Event") -> float:
        """Return the milliseconds between this mark and another one; both have `enable_timing`, and were reached."""
        return float(self._library.cuda.get_elapsed_time(self._event, end_event._event))


class Stream:
    """A queue of work on the device; work of several streams may run at the same time. RuntimeError without a device.

    `priority`: a lower number is served first; 0 is the default.
    """

    def __init__(self, device: Any = None, priority: int = 0, **given: Any) -> None:
        library = require_library("Stream")
        self._stream = given.pop("stream", None)
        if given:
            raise TypeError(f"Stream: unexpected arguments {', '.join(given)}")
        if self._stream is None:
            self._stream = library.cuda.Stream(non_blocking=True, priority=priority or None)

    @property
    def cuda_stream(self) -> int:
        """The address of CUDA's stream."""
        return int(self._stream.ptr)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Stream) and self.cuda_stream == other.cuda_stream

    def __hash__(self) -> int:
        return hash(self.cuda_stream)

    def __repr__(self) -> str:
        return f"<retrograd.cuda.Stream cuda_stream={self.cuda_stream:#x}>"

    def query(self) -> bool:
        """Return whether all work of the stream is done."""
        return bool(self._stream.done)

    def synchronize(self) -> None:
        """Wait for all work of the stream."""
        self._stream.synchronize()

    def record_event(self, event: Event | None = None) -> Event:
        """Put an event, or a new one, behind the stream's work; return the event."""
        event = Event() if event is None else event
        event.record(self)
        return event

    def wait_event(self, event: Event) -> None:
        """Let later work of the stream wait for an event."""
        event.wait(self)

    def wait_stream(self, stream: "Stream") -> None:
        """Let later work of the stream wait for the work that another one has now."""
        self.wait_event(stream.record_event())


def current_stream(device: Any = None) -> Stream:
    """Return the stream that gets the work of this thread. RuntimeError without a device."""
    return Stream(stream=require_library("current_stream").cuda.get_current_stream())


def default_stream(device: Any = None) -> Stream:
    """Return the stream that gets the work where no other one was chosen. RuntimeError without a device."""
    return Stream(stream=require_library("default_stream").cuda.Stream.null)


def set_stream(stream: Stream) -> None:
    """Let a stream get the work of this thread from now on."""
    stream._stream.use()


class StreamContext:
    """Context manager of `stream`: the stream gets the work of the block; None changes nothing."""

    def __init__(self, stream: Stream | None) -> None:
        self.stream = stream

    def __enter__(self) -> None:
        require_library("stream")
        if self.stream is not None:
            self.stream._stream.__enter__()

    def __exit__(self, *error: object) -> None:
        if self.stream is not None:
            self.stream._stream.__exit__(*error)


def stream(stream: Stream | None) -> StreamContext:
    """Context manager: the stream gets the work of the block; None changes nothing. RuntimeError without a device."""
    return StreamContext(stream)

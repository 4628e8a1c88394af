"""TensorBoard's event files: records with checksums, each a protocol buffers message of tensorboardX.

tensorboardX's own file writer is not used: it writes in a thread, which loses errors, and its files of one second have
one name.
"""

import os
import socket
import struct
import threading
import time
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Any, BinaryIO

_files = count()
BUFFER_SIZE = 2**16  # bytes to buffer before a write


def import_tensorboardx() -> Any:
    """Return tensorboardX, imported at the first call; ImportError names the extra to install."""
    try:
        import tensorboardX.proto.plugin_hparams_pb2
    except ImportError as error:
        raise ImportError("SummaryWriter needs tensorboardX: pip install 'retrograd[tensorboard]'") from error
    return tensorboardX


class EventFile:
    """A new event file in a folder; added events reach the disk by `flush`, and at the latest by `close`.

    The file always ends with a complete record.  Raises OSError that names the file if it cannot be written; the
    events then remain buffered for the next attempt.
    """

    def __init__(self, folder: Path, suffix: str = "") -> None:
        event = import_tensorboardx().proto.event_pb2.Event
        folder.mkdir(parents=True, exist_ok=True)
        name = f"events.out.tfevents.{int(time.time())}.{socket.gethostname()}.{os.getpid()}.{next(_files)}{suffix}"
        self.path = folder / name
        self._file: BinaryIO = open(self.path, "xb", buffering=0)  # noqa: SIM115 (closed by `close`)
        self._lock = threading.Lock()
        self._written = 0
        self._buffer = bytearray()
        self.add(event(wall_time=time.time(), file_version="brain.Event:2").SerializeToString())
        self.flush()

    def add(self, event: bytes) -> None:
        """Write a serialized event as a record."""
        with self._lock:
            if self._file.closed:
                raise ValueError(f"{self.path} is closed")
            self._buffer += encode_record(event)
            if len(self._buffer) >= BUFFER_SIZE:
                self._write()

    def flush(self) -> None:
        """Pass buffered events to the operating system."""
        with self._lock:
            self._write()

    def close(self) -> None:
        """Write all events, and close the file."""
        with self._lock:
            try:
                if not self._file.closed:
                    self._write()
            finally:
                self._file.close()

    def __del__(self) -> None:
        if hasattr(self, "_lock"):  # fully constructed
            self.close()

    def _write(self) -> None:
        """Write the whole buffer or nothing: records after a partial one could not be read."""
        remaining = memoryview(bytes(self._buffer))
        try:
            while remaining:
                remaining = remaining[self._file.write(remaining) :]
        except OSError as error:
            with suppress(OSError):
                self._file.truncate(self._written)
                self._file.seek(self._written)
            raise OSError(error.errno, error.strerror, str(self.path)) from error
        self._written += len(self._buffer)
        self._buffer.clear()


def encode_record(data: bytes) -> bytes:
    """Return data preceded by its length, with a checksum after each.

    >>> encode_record(b"").hex()
    '000000000000000029039807d8ea82a2'
    """
    checksum, length = import_tensorboardx().record_writer.masked_crc32c, struct.pack("<Q", len(data))
    return length + struct.pack("<I", checksum(length)) + data + struct.pack("<I", checksum(data))

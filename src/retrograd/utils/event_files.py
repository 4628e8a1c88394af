"""TensorBoard's event files: records with checksums, each a protocol buffers message, encoded without a library.

Sources of the formats: "TFRecord and tf.train.Example" in TensorFlow's guide, "Encoding" in the documentation of
protocol buffers, and for the checksum CRC-32C, RFC 3720, appendix B.4.
"""

import os
import socket
import struct
import threading
import time
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import BinaryIO

_files = count()
MOST_WAITING = 2**16  # bytes to buffer before a write


class EventFile:
    """A new event file in a folder; added events reach the disk by `flush`, and at the latest by `close`.

    The file always ends with a complete record.  Raises OSError that names the file if it cannot be written; the
    events then remain buffered for the next attempt.
    """

    def __init__(self, folder: Path, suffix: str = "") -> None:
        folder.mkdir(parents=True, exist_ok=True)
        name = f"events.out.tfevents.{int(time.time())}.{socket.gethostname()}.{os.getpid()}.{next(_files)}{suffix}"
        self.path = folder / name
        self._file: BinaryIO = open(self.path, "xb", buffering=0)  # noqa: SIM115 (closed by `close`)
        self._lock = threading.Lock()
        self._written = 0
        self._waiting = bytearray()
        self.add(double(1, time.time()) + message(3, b"brain.Event:2"))
        self.flush()

    def add(self, event: bytes) -> None:
        """Write an event as a record."""
        with self._lock:
            if self._file.closed:
                raise ValueError(f"{self.path} is closed")
            self._waiting += record(event)
            if len(self._waiting) >= MOST_WAITING:
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
        left = memoryview(bytes(self._waiting))
        try:
            while left:
                left = left[self._file.write(left) :]
        except OSError as error:
            with suppress(OSError):
                self._file.truncate(self._written)
                self._file.seek(self._written)
            raise OSError(error.errno, error.strerror, str(self.path)) from error
        self._written += len(self._waiting)
        self._waiting.clear()


def record(data: bytes) -> bytes:
    """Return data preceded by its length, with a checksum after each.

    >>> record(b"").hex()
    '000000000000000029039807d8ea82a2'
    """
    length = struct.pack("<Q", len(data))
    return length + _checksum(length) + data + _checksum(data)


# ---------------------------------------------------------------------------------------- fields of messages


def whole(field: int, value: int) -> bytes:
    """Encode an integer field; a negative value as 64 bits."""
    return varint(field << 3) + varint(value % 2**64)


def double(field: int, value: float) -> bytes:
    """Encode a 64-bit float field."""
    return varint(field << 3 | 1) + struct.pack("<d", value)


def single(field: int, value: float) -> bytes:
    """Encode a 32-bit float field; a value that is too large becomes infinite."""
    try:
        return varint(field << 3 | 5) + struct.pack("<f", value)
    except OverflowError:
        return single(field, float("inf") if value > 0 else float("-inf"))


def message(field: int, value: bytes | str) -> bytes:
    """Encode a field with bytes, text or a message."""
    data = value.encode() if isinstance(value, str) else value
    return varint(field << 3 | 2) + varint(len(data)) + data


def doubles(field: int, values: list[float]) -> bytes:
    """Encode a field with 64-bit floats."""
    return message(field, struct.pack(f"<{len(values)}d", *values))


def varint(value: int) -> bytes:
    """Encode an integer, seven bits per byte.

    >>> varint(300).hex()
    'ac02'
    """
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


# ------------------------------------------------------------------------------------------------ checksums


def _table() -> list[int]:
    """Return the CRC-32C remainder of each byte: division by the polynomial with reversed bits."""
    table = []
    for rest in range(256):
        for _ in range(8):
            rest = rest >> 1 ^ (0x82F63B78 if rest & 1 else 0)
        table.append(rest)
    return table


TABLE = _table()


def crc32c(data: bytes) -> int:
    """Return the CRC-32C checksum.

    >>> hex(crc32c(b"123456789"))
    '0xe3069283'
    """
    rest = 0xFFFFFFFF
    for byte in data:
        rest = TABLE[(rest ^ byte) & 255] ^ rest >> 8
    return rest ^ 0xFFFFFFFF


def _checksum(data: bytes) -> bytes:
    """Return the masked checksum, as the format requires: checksums of data with checksums are weak otherwise."""
    crc = crc32c(data)
    return struct.pack("<I", (crc >> 15 | crc << 17) + 0xA282EAD8 & 0xFFFFFFFF)

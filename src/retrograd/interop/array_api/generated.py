"""The standard's functions that are operators under other names, generated from the table of all faces."""

from collections.abc import Callable

from retrograd.interop.array_api.promotion import promote
from retrograd.interop.function_table import TABLE
from retrograd.interop.numpy_protocol import sorting as sorting  # registers `unique_all` and its relatives
from retrograd.interop.numpy_protocol.shared import function_of_row
from retrograd.interop.signatures import Operands, parse

OPERANDS = Operands(None, None, promote)


def _generate() -> dict[str, dict[str, Callable]]:
    """Return the functions by name, by extension; those of the main namespace have the extension ""."""
    found: dict[str, dict[str, Callable]] = {"": {}, "fft": {}, "linalg": {}}
    for row in TABLE:
        for signature in row.standard:
            home, _, name = parse(signature)[0].rpartition(".")
            found[home][name] = function_of_row(
                row, signature, OPERANDS, f"retrograd.interop.array_api.{home}".rstrip(".")
            )
    return found


GENERATED = _generate()

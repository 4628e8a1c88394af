"""Arrow tables as datasets."""

from collections.abc import Sequence
from typing import Any

from retrograd.core import dtype as dtypes
from retrograd.ops.as_tensor import from_numpy, tensor
from retrograd.utils.data.dataset import Dataset


class ArrowDataset(Dataset[dict[str, Any]]):
    """The rows of an Arrow table: dicts from the columns' names to values.

    table: a `pyarrow.Table` or `RecordBatch`, or an object with Arrow's C interface, such as a data frame; also
    memory-mapped ones, as nothing is copied. columns: their names, all by default. Numbers and booleans are tensors
    without dimensions, lists of numbers are tensors, which `nested_collate` puts into nested ones, and other values
    are as Arrow's `as_py` returns them.

    Raises ValueError for nulls, with their number and the index of the first, KeyError for unknown columns, and
    ImportError without pyarrow.

    >>> import pyarrow as pa
    >>> rows = ArrowDataset(pa.table({"words": [[1.5, 2.5], [3.5]], "label": [0, 1]}))
    >>> len(rows), rows[1]
    (2, {'words': tensor([3.5000], dtype=float64), 'label': tensor(1)})
    """

    def __init__(self, table: Any, columns: Sequence[str] | None = None) -> None:
        try:
            import pyarrow
            import pyarrow.compute
        except ImportError as error:
            raise ImportError("ArrowDataset needs pyarrow: pip install 'retrograd[arrow]'") from error
        if not hasattr(table, "column_names"):
            table = pyarrow.table(table)
        names = list(table.column_names if columns is None else columns)
        unknown = [name for name in names if name not in table.column_names]
        if unknown:
            raise KeyError(f"ArrowDataset: no columns {unknown}; there are {table.column_names}")
        self._columns = {name: _Column(pyarrow, name, table.column(name)) for name in names}
        self._length = table.num_rows

    def __getitem__(self, index: int) -> dict[str, Any]:
        position = index + self._length if index < 0 else index
        if not 0 <= position < self._length:
            raise IndexError(f"ArrowDataset: index {index} is out of range for {self._length} rows")
        return {name: column.value_at(position) for name, column in self._columns.items()}

    def __len__(self) -> int:
        return self._length


class _Column:
    """A column, which returns values by index."""

    def __init__(self, pa: Any, name: str, column: Any) -> None:
        if column.null_count:
            first = pa.compute.index(pa.compute.is_null(column), True).as_py()
            raise ValueError(
                f"ArrowDataset: column {name!r} has {column.null_count} nulls, the first in row {first}; see "
                f"pyarrow.compute.fill_null and drop_null"
            )
        self._column = column
        kind = column.type
        self._numbers = _is_number(pa, kind)
        self._dtype = None
        while _is_list(pa, kind):
            kind = kind.value_type
            self._dtype = kind.to_pandas_dtype() if _is_number(pa, kind) else None

    def value_at(self, position: int) -> Any:
        value = self._column[position]
        if self._numbers:
            return tensor(value.as_py(), dtype=dtypes.DType(self._column.type.to_pandas_dtype()))
        if self._dtype is None:
            return value.as_py()
        rows = value.values
        if hasattr(rows.type, "value_type"):
            return tensor(value.as_py(), dtype=self._dtype)
        return from_numpy(rows.to_numpy(zero_copy_only=False))


def _is_number(pa: Any, kind: Any) -> bool:
    types = pa.types
    return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind))


def _is_list(pa: Any, kind: Any) -> bool:
    types = pa.types
    return bool(types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind))

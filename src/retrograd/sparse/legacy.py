"""PyTorch's legacy classes of sparse tensors by dtype: `sparse.FloatTensor(indices, values, size)`."""

from typing import Any

from retrograd.core import Tensor
from retrograd.ops.layout import sparse_coo
from retrograd.ops.legacy import TENSOR_CLASSES, TensorClassMeta
from retrograd.sparse.construct import sparse_coo_tensor


class _SparseTensorClassMeta(TensorClassMeta):
    """The metaclass of classes whose instances are the sparse tensors of one dtype in COO format."""

    def __instancecheck__(cls, value):
        return super().__instancecheck__(value) and value.layout is sparse_coo

    def __call__(cls, *data):
        """Return a tensor of indices and values, in their dtype as in PyTorch; or of a shape, with zeros."""
        if data and isinstance(data[0], Tensor):
            return sparse_coo_tensor(*data)
        sizes = data if not data or isinstance(data[0], int) else data[0]
        return sparse_coo_tensor(sizes or (0,), dtype=cls.dtype)


def _sparse_class(dense: Any) -> Any:
    name = dense.__name__
    doc = f"The sparse tensors of {dense.dtype}, in COO format: `sparse.{name}(indices, values, size)` makes one."
    return _SparseTensorClassMeta(
        name, (), {"storage": dense.storage, "__doc__": doc, "__module__": "retrograd.sparse"}
    )


# Booleans have no such class in PyTorch.
(
    FloatTensor, DoubleTensor, HalfTensor, BFloat16Tensor, ByteTensor, CharTensor, ShortTensor, IntTensor, LongTensor,
) = (_sparse_class(dense) for dense in TENSOR_CLASSES if dense.__name__ != "BoolTensor")  # fmt: skip

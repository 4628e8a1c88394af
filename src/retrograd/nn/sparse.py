"""Embeddings: rows of a table by index, and sums, means and maxima of them."""

from typing import Any, TypeVar

from retrograd.autograd import no_grad
from retrograd.core import Tensor
from retrograd.core.errors import AssertedValueError
from retrograd.foundation.suggestions import suggest_keywords
from retrograd.nn import functional as F
from retrograd.nn import init
from retrograd.nn.module import Module
from retrograd.nn.parameter import Parameter
from retrograd.nn.settings import empty_parameter

EmbeddingType = TypeVar("EmbeddingType", bound="_EmbeddingBase")


_OPTIONS = ("max_norm", "norm_type", "scale_grad_by_freq")
_DEFAULTS = {"padding_idx": None, "max_norm": None, "norm_type": 2.0, "scale_grad_by_freq": False}


class _EmbeddingBase(Module):
    """Base of embeddings: `weight` (num_embeddings, embedding_dim), and a row that is not trained."""

    weight: Any
    mode: str

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        padding_idx: int | None,
        max_norm: float | None,
        norm_type: float,
        scale_grad_by_freq: bool,
        sparse: bool,
        initial: Tensor | None,
        freeze: bool,
        device: Any,
        dtype: Any,
    ) -> None:
        name = type(self).__name__
        if padding_idx is not None and not -num_embeddings <= padding_idx < num_embeddings:
            raise AssertedValueError(
                f"{name}: padding_idx must be within num_embeddings: within {num_embeddings} rows, got {padding_idx}"
            )
        if initial is not None and initial.shape != (num_embeddings, embedding_dim):
            raise AssertedValueError(
                f"{name}: the weight has shape {initial.shape}, not {(num_embeddings, embedding_dim)}"
            )
        super().__init__()
        self.num_embeddings = num_embeddings
        self.embedding_dim = embedding_dim
        self.padding_idx = None if padding_idx is None else padding_idx % num_embeddings
        self.max_norm = max_norm
        self.norm_type = norm_type
        self.scale_grad_by_freq = scale_grad_by_freq
        self.sparse = sparse
        if initial is None:
            self.weight = empty_parameter(True, (num_embeddings, embedding_dim), device, dtype)
            self.reset_parameters()
        else:
            self.weight = Parameter(initial, requires_grad=not freeze)
        if freeze:
            self.weight.requires_grad = False

    def reset_parameters(self) -> None:
        """Reinitialize the parameters."""
        init.normal_(self.weight)
        self._fill_padding_idx_with_zero()

    def _fill_padding_idx_with_zero(self) -> None:
        if self.padding_idx is not None:
            with no_grad():
                self.weight[self.padding_idx].zero_()

    @classmethod
    @suggest_keywords
    def from_pretrained(
        cls: type[EmbeddingType], embeddings: Tensor, freeze: bool = True, **settings: Any
    ) -> EmbeddingType:
        """Make the layer from an existing table (rows, size), sharing its memory; `freeze` excludes it from training.

        A frozen table of `Embedding` may hold integers. Further arguments are those of the class.

        >>> import retrograd as rg
        >>> from retrograd import nn
        >>> nn.Embedding.from_pretrained(rg.tensor([[1.0, 2.0], [3.0, 4.0]]))(rg.tensor(1))
        tensor([3., 4.])
        """
        if embeddings.ndim != 2:
            raise AssertedValueError(
                f"{cls.__name__}.from_pretrained: expected shape (rows, size), got {embeddings.shape}; Embeddings "
                f"parameter is expected to be 2-dimensional"
            )
        if issubclass(cls, Embedding):
            settings["_freeze"] = freeze
        layer: Any = cls
        table: EmbeddingType = layer(*embeddings.shape, _weight=embeddings, **settings)
        table.weight.requires_grad = not freeze
        return table

    def extra_repr(self) -> str:
        """Return sizes and options."""
        return ", ".join([f"{self.num_embeddings}, {self.embedding_dim}", *self._changed("padding_idx", *_OPTIONS)])

    def _changed(self, *names: str) -> list[str]:
        """Return the named settings that differ from their defaults, as they are shown."""
        return [f"{n}={getattr(self, n)!r}" for n in names if getattr(self, n) != _DEFAULTS[n]]


class Embedding(_EmbeddingBase):
    """Rows of `weight`, of shape (num_embeddings, embedding_dim), by index.

    Maps integers of any shape (...), nested tensors too, to (..., embedding_dim). Rows start standard normal; the row
    `padding_idx` starts as zeros and gets no gradient. Rows with a `norm_type`-norm of more than `max_norm` are scaled
    down to it, in place, when they are looked up. With `scale_grad_by_freq` the gradient of a row is divided by its
    number of occurrences. With `sparse` its gradient is a sparse tensor with an entry for each index, which
    `SparseAdam`, `SGD` and `Adagrad` take.

    >>> import retrograd as rg
    >>> from retrograd import nn
    >>> table = nn.Embedding(10, 3, padding_idx=0)
    >>> table(rg.tensor([[1, 0], [2, 4]])).shape
    (2, 2, 3)
    >>> table(rg.tensor(0)).tolist()
    [0.0, 0.0, 0.0]
    """

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        padding_idx: int | None = None,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        sparse: bool = False,
        _weight: Tensor | None = None,
        _freeze: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        options = (padding_idx, max_norm, norm_type, scale_grad_by_freq, sparse)
        super().__init__(num_embeddings, embedding_dim, *options, _weight, _freeze, device, dtype)

    def forward(self, input: Tensor) -> Tensor:
        """Map integers (...) to (..., embedding_dim)."""
        options = (self.padding_idx, self.max_norm, self.norm_type, self.scale_grad_by_freq, self.sparse)
        return F.embedding(input, self.weight, *options)

    def extra_repr(self) -> str:
        """Return sizes and options."""
        return f"{super().extra_repr()}, sparse=True" if self.sparse else super().extra_repr()


class EmbeddingBag(_EmbeddingBase):
    """Reduce the rows of `weight` in each bag of indices by `mode`: "sum", "mean" or "max".

    Bags are the rows of a matrix (bags, n), the components of a nested tensor (bags, j), or parts of a vector (n) that
    begin at `offsets` (bags); with `include_last_offset` the last offset is the end of the last bag. The result has
    shape (bags, embedding_dim), with zeros for empty bags. The row `padding_idx` is ignored; the other settings are
    those of `Embedding`.

    >>> import retrograd as rg
    >>> from retrograd import nn
    >>> bag = nn.EmbeddingBag.from_pretrained(rg.tensor([[1.0], [2.0], [4.0]]), mode="sum")
    >>> bag(rg.tensor([0, 1, 2]), rg.tensor([0, 2])).tolist()
    [[3.0], [4.0]]
    >>> bag(rg.nested.nested_tensor([[0, 1], [2]])).tolist()
    [[3.0], [4.0]]
    """

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        mode: str = "mean",
        sparse: bool = False,
        _weight: Tensor | None = None,
        include_last_offset: bool = False,
        padding_idx: int | None = None,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        if mode not in ("sum", "mean", "max"):
            raise ValueError(f"EmbeddingBag: mode must be 'sum', 'mean' or 'max', got {mode!r}")
        options = (padding_idx, max_norm, norm_type, scale_grad_by_freq, sparse)
        super().__init__(num_embeddings, embedding_dim, *options, _weight, False, device, dtype)
        self.mode = mode
        self.include_last_offset = include_last_offset

    def forward(self, input: Tensor, offsets: Tensor | None = None, per_sample_weights: Tensor | None = None) -> Tensor:
        """Reduce bags of indices to (bags, embedding_dim); `per_sample_weights`, in the same shape, weight a sum."""
        return F.embedding_bag(
            input,
            self.weight,
            offsets,
            self.max_norm,
            self.norm_type,
            self.scale_grad_by_freq,
            self.mode,
            self.sparse,
            per_sample_weights=per_sample_weights,
            include_last_offset=self.include_last_offset,
            padding_idx=self.padding_idx,
        )

    def extra_repr(self) -> str:
        """Return sizes, mode and options."""
        shown = [*self._changed(*_OPTIONS), f"mode={self.mode!r}", *self._changed("padding_idx")]
        return ", ".join([f"{self.num_embeddings}, {self.embedding_dim}", *shown])

"""How a tensor is divided among the ranks along one dimension of a mesh."""

from dataclasses import dataclass


class Placement:
    """Base class of `Shard`, `Replicate` and `Partial`."""

    def is_shard(self, dim: int | None = None) -> bool:
        """Return whether a dimension is divided; dim: whether it is this one."""
        return isinstance(self, Shard) and dim in (None, self.dim)

    def is_replicate(self) -> bool:
        """Return whether each rank has the whole tensor."""
        return isinstance(self, Replicate)

    def is_partial(self, reduce_op: str | None = None) -> bool:
        """Return whether each rank has a term of the values; reduce_op: whether this operation combines them."""
        return isinstance(self, Partial) and reduce_op in (None, self.reduce_op)


@dataclass(frozen=True)
class Shard(Placement):
    """Each rank has a part of the indices of a dimension; a negative one counts from the last."""

    dim: int = 0

    def __str__(self) -> str:
        return f"S({self.dim})"


@dataclass(frozen=True)
class StridedShard(Shard):
    """As `Shard`, but what the later dimensions of the mesh have divided is divided again.

    So are parameters that `parallelize_module` has divided, and then `fully_shard`, along the same dimension: a rank
    has a range of its range.

    split_factor: into how many parts the later dimensions of the mesh have divided this dimension.
    """

    split_factor: int = 1

    def __str__(self) -> str:
        return f"_S({self.dim}, {self.split_factor})"


@dataclass(frozen=True)
class Replicate(Placement):
    """Each rank has the whole tensor."""

    def __str__(self) -> str:
        return "R"


@dataclass(frozen=True)
class Partial(Placement):
    """Each rank has a tensor of the whole shape, and the values are their combination.

    reduce_op: "sum", "avg", "product", "min", "max", "band", "bor" or "bxor".  ValueError for another one.
    """

    reduce_op: str = "sum"

    def __post_init__(self) -> None:
        if self.reduce_op not in REDUCTIONS:
            raise ValueError(f"Partial: reduce_op must be one of {REDUCTIONS}, got {self.reduce_op!r}")

    def __repr__(self) -> str:
        return f"Partial({self.reduce_op})"

    def __str__(self) -> str:
        return f"P({self.reduce_op})"


REDUCTIONS = ("sum", "avg", "product", "min", "max", "band", "bor", "bxor")

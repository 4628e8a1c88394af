"""The gradients of a pipeline whose stages are in several processes, for clipping and loss scaling."""

from collections.abc import Callable, Iterable
from typing import Any

from retrograd.core import Tensor
from retrograd.nn.module import Module
from retrograd.nn.tensor_part import GradientHolder, exchanges_of, gradient_holder, set_gradient_holder
from retrograd.ops.join import stack


def set_gradients_of_step(model: Module, held: "StageGradients | None") -> None:
    """Note where the gradients of a step are: in `.grad`, of the parameters of all stages or those of this process.

    It replaces other holders, as that of `ZeroRedundancyOptimizer(shard_gradients=True)`, whose hooks have not run.
    """
    for p in model.parameters():
        if gradient_holder(p) is not held:
            set_gradient_holder(p, held)


def check_exchanges(model: Module, peers: Iterable[int]) -> None:
    """Raise ValueError if an exchange of parameters takes part on ranks that do not all run the same stages.

    peers: the ranks of all replicas that run this process's stages.
    """
    ranks = sorted(peers)
    for name, p in model.named_parameters():
        for exchange in exchanges_of(p):
            if sorted(exchange.ranks) != ranks:
                raise ValueError(
                    f"Pipeline: {type(exchange.owner()).__name__} exchanges {name} among the ranks "
                    f"{sorted(exchange.ranks)}, but the stages of this rank are on {ranks}; give it their group: "
                    f"init_device_mesh('cpu', (replicas, ranks)).get_group(0)"
                )


class StageGradients(GradientHolder):
    """Each process has the gradients of its stages; together those of one replica are the whole ones.

    ranks: the number of ranks of a replica.  owners: returns for each name in the model's state the ranks that have it.
    on_ranks: `Pipeline.on_ranks`.
    """

    def __init__(
        self,
        model: Module,
        rank: int,
        ranks: int,
        owners: Callable[[], dict[str, list[int]]],
        on_ranks: Callable[[Callable[[int], Any]], list[Any]],
    ) -> None:
        self._model, self._rank, self._owners, self._on_ranks = model, rank, owners, on_ranks
        self._replica = range(rank // ranks * ranks, (rank // ranks + 1) * ranks)  # this process's

    def holders(self, params: Iterable[Tensor]) -> list[Tensor]:
        """Return those of some parameters that this process's stages have."""
        own = {id(p) for p, ranks in self._ranks_of_parameters() if self._rank in ranks}
        return [p for p in params if id(p) in own]

    def norm_members(self, tensors: Iterable[Tensor]) -> list[Tensor]:
        """Return those that no earlier rank of the replica has: stages may share a parameter."""
        first = {id(p): min(r for r in ranks if r in self._replica) for p, ranks in self._ranks_of_parameters()}
        return [p for p in tensors if first[id(p)] == self._rank]

    def stack_over_ranks(self, x: Tensor) -> Tensor:
        """Return the scalars of the replica's ranks as a vector; all ranks must call it."""
        of_all = self._on_ranks(lambda rank: x.detach())
        found: Tensor = stack([of_all[rank] for rank in self._replica])
        return found

    def _ranks_of_parameters(self) -> list[tuple[Tensor, list[int]]]:
        state = self._model.state_dict(keep_vars=True)
        return [(state[name], ranks) for name, ranks in self._owners().items()]

"""`ZeroRedundancyOptimizer`: each rank keeps the state of its share of the parameters only."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import repeat
from typing import Any

from retrograd.autograd import enable_grad, no_grad
from retrograd.core import Tensor, registry
from retrograd.core.blocks import generator_block
from retrograd.distributed.algorithms.join import Join, Joinable, JoinHook
from retrograd.distributed.exchange import agree_on_parameters
from retrograd.distributed.groups import chosen_rank, initialized_group
from retrograd.distributed.objects import all_gather_object, gather_object
from retrograd.distributed.optim.shards import GradientShards, Piece, divide
from retrograd.nn.tensor_part import gradient_holder, note_exchange
from retrograd.optim.optimizer import Group, Optimizer, State
from retrograd.pipelining.transports.process_group import ProcessGroup

BUCKET_MB = 25
PLAIN = (bool, int, float, complex, str, tuple, list, Tensor, type(None))


class ZeroRedundancyOptimizer(Optimizer, Joinable):
    """An optimizer whose state is divided among the ranks; each rank updates its share and gets those of the others.

    Optimizers that update each element by itself, as Adam and SGD do, are divided by elements, so each of r ranks has
    1/r of the state; others, such as Muon, are divided by parameters.  Results are those of `optimizer_class` on one
    rank.  All ranks must call its methods, with the same parameters.

    - params: tensors, named tensors or groups.
    - optimizer_class: a class of `retrograd.optim`, called with `defaults`.
    - shard_gradients: average gradients here, without `DistributedDataParallel`, and keep those of this rank's share
      only (ZeRO 2).  They are reduced while the backward pass continues; after it, `.grad` of the parameters is None.
      A `Pipeline` with replicas sums them itself, and leaves them in `.grad`, as one rank alone does.
    - parameters_as_bucket_view: without effect.

    With a `Pipeline`, process_group is that of the replicas of this rank's stages, whose parameters the ranks have.

    Raises NotImplementedError for overlap_with_ddp, and for optimizers that have one state for all parameters, such as
    LBFGS; RankMismatchError, on every rank, if the ranks differ in parameters, settings, optimizer_class or
    shard_gradients; what the class raises.

    Source: S. Rajbhandari et al., ZeRO, SC 2020.

    >>> import retrograd as rg
    >>> import retrograd.distributed as dist
    >>> from retrograd.distributed.optim import ZeroRedundancyOptimizer
    >>> def script():
    ...     x = rg.ones(6, requires_grad=True)
    ...     optimizer = ZeroRedundancyOptimizer([x], rg.optim.Adam, lr=0.5)
    ...     x.sum().backward()
    ...     optimizer.step()
    ...     state = next(iter(optimizer.optim.state.values()))
    ...     return x.detach().tolist(), state["exp_avg"].shape
    >>> dist.run_threads(script, 2)[0]
    ([0.5, 0.5, 0.5, 0.5, 0.5, 0.5], (3,))
    """

    def __init__(
        self,
        params: Iterable[Any],
        optimizer_class: type[Optimizer],
        process_group: ProcessGroup | None = None,
        parameters_as_bucket_view: bool = False,
        overlap_with_ddp: bool = False,
        shard_gradients: bool = False,
        **defaults: Any,
    ) -> None:
        if overlap_with_ddp:
            raise NotImplementedError("ZeroRedundancyOptimizer: overlap_with_ddp is not supported; use shard_gradients")
        self.process_group = initialized_group(process_group)
        self._optimizer_class = optimizer_class
        self._by_elements = getattr(optimizer_class.update, "elementwise", False)
        self._pieces: list[Piece] = []
        self._shards: list[Any] = []
        self._gradients: list[GradientShards] = []
        self._shards_gradients = shard_gradients
        self.consolidated: dict[str, Any] | None = None  # the state of all ranks, as it was gathered last
        self.optim: Any = None  # the optimizer of this rank's share
        super().__init__(params, defaults)
        self.optim = optimizer_class([self._local(group) for group in self.param_groups], **defaults)
        if self.optim._params_with_shared_state():
            raise NotImplementedError(
                f"ZeroRedundancyOptimizer: {optimizer_class.__name__} has one state for all parameters, which cannot "
                f"be divided"
            )
        for group, local in zip(self.param_groups, self.optim.param_groups, strict=True):
            group.update({name: value for name, value in local.items() if name != "params"})

    def add_param_group(self, param_group: Group) -> None:
        """Add a group, whose parameters are divided among the ranks.

        Raises RankMismatchError, on every rank, if the ranks differ in parameters; what the optimizer's method raises.
        """
        super().add_param_group(param_group)
        params = self.param_groups[-1]["params"]
        try:
            self._compare_over_ranks(self.param_groups[-1])
        except BaseException:
            self.param_groups.pop()
            raise
        shards = divide(params, self.process_group, self._by_elements, BUCKET_MB)
        self._shards += shards
        self._pieces += [piece for shard in shards for piece in shard.pieces]
        note_exchange(params, self, self.process_group.ranks)
        if self._shards_gradients and self.process_group.size() > 1:
            self._gradients.append(GradientShards(params, shards, self.process_group))
        if self.optim is not None:
            self.optim.add_param_group(self._local(self.param_groups[-1]))

    def _compare_over_ranks(self, group: Group) -> None:
        """Raise RankMismatchError, on every rank, if the ranks would divide different parameters."""
        named = zip(group.get("param_names") or repeat(""), group["params"])  # noqa: B905 (endless)
        options = {
            "optimizer_class": self._optimizer_class.__name__,
            "shard_gradients": bool(self._shards_gradients),
            **_settings([group]),
        }
        agree_on_parameters(self.process_group, "ZeroRedundancyOptimizer", named, options)

    def _local(self, group: Group) -> Group:
        """Return a group of this rank's pieces of the parameters, with its settings."""
        members = {id(p) for p in group["params"]}
        pieces = [piece.tensor for piece in self._pieces if id(piece.param) in members]
        return {**{name: value for name, value in group.items() if name != "param_names"}, "params": pieces}

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update this rank's share, and exchange the values; return the loss if a closure computes it first.

        Raises RankMismatchError, on every rank, if the ranks' settings differ, such as the learning rate.
        """
        loss = None
        if closure is not None:
            with enable_grad():
                loss = closure()
        Join.notify_join_context(self)
        self._update_share()
        return loss

    def _update_share(self) -> None:
        self._share_settings()
        # Those of a step of a pipeline, whose replicas have summed them, are in `.grad` also if gradients are divided.
        whole = [piece for piece in self._pieces if gradient_holder(piece.param) not in self._gradients]
        with no_grad():
            for piece in self._pieces:
                piece.refresh()
            for piece in whole:
                piece.tensor.grad = piece.part_of_gradient()
        self.optim.step()
        with no_grad():
            for piece in whole:
                piece.tensor.grad = None
            settings = _settings(self.param_groups)
            for shard in self._shards:
                shard.exchange_values(settings)
        self.consolidated = None

    def join_hook(self, **kwargs: Any) -> JoinHook:
        """Return what updates this rank's share while other ranks still have batches.

        Its gradients come from a `DistributedDataParallel`, which is before this optimizer in the list of the `Join`.
        Raises NotImplementedError with shard_gradients.
        """
        if self._shards_gradients:
            raise NotImplementedError(
                "Join: a ZeroRedundancyOptimizer with shard_gradients reduces gradients while the backward pass runs, "
                "which ranks without batches have none of; use DistributedDataParallel"
            )
        return _JoinedOptimizer(self)

    @property
    def join_device(self) -> Any:
        """Return the device of the parameters."""
        return self._params()[0].device

    @property
    def join_process_group(self) -> ProcessGroup:
        """Return the ranks that share the state."""
        return self.process_group

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Clear the gradients of all parameters, and those of this rank's share."""
        super().zero_grad(set_to_none)
        self.optim.zero_grad()

    @generator_block
    def no_sync(self) -> Iterator[None]:
        """Leave gradients of passes inside the block on their ranks; the first pass after it reduces the sums."""
        for gradients in self._gradients:
            gradients.enabled = False
        try:
            yield
        finally:
            for gradients in self._gradients:
                gradients.enabled = True

    # ---------------------------------------------------------------------------------------------- its state

    @property
    def pieces(self) -> list[Piece]:
        """Return the parts of parameters that this rank updates."""
        return list(self._pieces)

    def consolidate_state_dict(self, to: int = 0) -> None:
        """Gather the state of all ranks on rank `to`, whose `state_dict` then returns it; all ranks must call it."""
        root = chosen_rank("consolidate_state_dict", self.process_group, to, None, None)
        found = [None] * self.process_group.size() if self.process_group.rank() == root else None
        gather_object(self._own_states(), found, group=self.process_group, group_dst=root)
        self.consolidated = None if found is None else self._whole_state(found)

    def full_state_dict(self) -> dict[str, Any]:
        """Return the state of all ranks on every rank; all ranks must call it."""
        found: list[Any] = [None] * self.process_group.size()
        all_gather_object(found, self._own_states(), self.process_group)
        return self._whole_state(found)

    def state_dict(self) -> dict[str, Any]:
        """Return the state as that of `optimizer_class` on one rank.

        Raises RuntimeError unless `consolidate_state_dict` was called on all ranks, for this rank, since the last step.
        """
        if self.consolidated is None:
            raise RuntimeError(
                f"Optimizer state has not been consolidated on this rank. Please call "
                f"`consolidate_state_dict(to={self.process_group.rank()})` on all ranks beforehand if you meant to "
                f"save the global state."
            )
        return self.consolidated

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Load this rank's share of a state of `optimizer_class` on one rank, or of `state_dict`.

        Raises TypeError or ValueError as that class does.
        """
        states, groups = self._check_groups(state_dict)
        numbers = [number for group in groups for number in group["params"]]
        by_param = {id(p): state for p, state in self._load_states(states, numbers, self.optim.entries).items()}
        number_of_piece = {id(p): n for n, p in enumerate(self.optim._params())}
        own = {
            number_of_piece[id(piece.tensor)]: self._part_of_state(by_param[id(piece.param)], piece)
            for piece in self._pieces
            if id(piece.param) in by_param
        }
        local = self.optim.state_dict()["param_groups"]
        settings = [
            {**{name: value for name, value in given.items() if name != "param_names"}, "params": mine["params"]}
            for given, mine in zip(groups, local, strict=True)
        ]
        self.optim.load_state_dict({"state": own, "param_groups": settings})
        for group, given in zip(self.param_groups, self.optim.param_groups, strict=True):
            group.update({name: value for name, value in given.items() if name != "params"})
        self.consolidated = None

    def _share_settings(self) -> None:
        """Give the optimizer of this rank's share the settings of the groups, which schedulers change."""
        for group, local in zip(self.param_groups, self.optim.param_groups, strict=True):
            local.update({name: value for name, value in group.items() if name not in ("params", "param_names")})

    def _own_states(self) -> list[tuple[int, int, State]]:
        """Return the number of a parameter, the first element and the state, of each piece with a state."""
        number = {id(p): i for i, p in enumerate(self._params())}
        states = self.optim.state
        return [
            (number[id(piece.param)], piece.low, dict(states[piece.tensor]))
            for piece in self._pieces
            if states.get(piece.tensor)
        ]

    def _whole_state(self, by_rank: list[Any]) -> dict[str, Any]:
        """Return the state of whole parameters from those of pieces."""
        pieces: defaultdict[int, list[tuple[int, State]]] = defaultdict(list)
        for number, low, state in (entry for own in by_rank for entry in own):
            pieces[number].append((low, state))
        params = self._params()
        number_of = {id(p): i for i, p in enumerate(params)}
        return {
            "state": {number: _joined(params[number], found) for number, found in sorted(pieces.items())},
            "param_groups": [
                {**group, "params": [number_of[id(p)] for p in group["params"]]} for group in self.param_groups
            ],
        }

    def _part_of_state(self, state: Any, piece: Piece) -> State:
        return {name: _part(value, piece) for name, value in state.items()}


class _JoinedOptimizer(JoinHook):
    def __init__(self, optimizer: ZeroRedundancyOptimizer) -> None:
        self._optimizer = optimizer

    def main_hook(self) -> None:
        """Update this rank's share by the mean of the gradients of the other ranks."""
        self._optimizer._update_share()


def _settings(groups: Iterable[Group]) -> dict[str, Any]:
    """Return the settings of groups by names for errors; of objects, whose texts may differ, only the class."""
    return {
        f"{name} of group {i}": value if isinstance(value, PLAIN) else type(value).__name__
        for i, group in enumerate(groups)
        for name, value in group.items()
        if name not in ("params", "param_names")
    }


def _joined(param: Tensor, found: list[tuple[int, State]]) -> State:
    """Return the state of a parameter from the states of its pieces."""
    from_first = [state for _, state in sorted(found, key=lambda pair: pair[0])]
    joined: State = {}
    for name, value in from_first[0].items():
        parts = [state[name] for state in from_first]
        if isinstance(value, Tensor) and len(parts) > 1 and value.ndim == 1:
            joined[name] = _cat(parts).reshape(param.shape)
        elif isinstance(value, Tensor) and value.ndim == 1 and value.numel() == param.numel():
            joined[name] = value.reshape(param.shape)
        else:
            joined[name] = value
    return joined


def _part(value: Any, piece: Piece) -> Any:
    """Return the elements of a state's tensor that belong to a piece; other values as they are."""
    fits = hasattr(value, "shape") and tuple(value.shape) == tuple(piece.param.shape)
    if not fits or tuple(piece.tensor.shape) == tuple(piece.param.shape):
        return value
    return value.reshape(-1)[piece.low : piece.high]


def _cat(parts: list[Tensor]) -> Tensor:
    found: Tensor = registry["cat"](parts)
    return found

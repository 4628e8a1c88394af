"""A stage that is a module of the user, as in PyTorch."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import optree

from retrograd.core import Tensor, registry
from retrograd.foundation.suggestions import suggest_in_module, suggest_keywords
from retrograd.pipelining.runtime.stage import PipelineStageBase, PipeliningMetadataError, Value

ARGUMENT, KEYWORD, OUTPUT = "argument_{:04}", "keyword_{:04}", "stage_{}_{:04}"  # padded, so that names sort


class PipelineStage(PipelineStageBase):
    """A module as one stage of a chain: it is called with the results of the previous stage, as in PyTorch.

    submodule: any module; the first stage takes the arguments of `step`, and every stage its keyword arguments.  It
     returns a tensor, or a tuple or list of tensors, which the next stage takes as its positional arguments.
    device: where its parameters and buffers are.  group: the ranks of the pipeline; None: the default group.
    input_args, output_args: examples of the positional arguments and of the results for one microbatch; their shapes,
     except for dimension 0, and dtypes are checked in every run.  Without them nothing is checked.

    dw_builder: returns, after each backward pass, a function without arguments that computes the weight gradients which
     the submodule's own backward has postponed: it is called at once, or in the weight half of a split pass.

    output_grads, input_grads and get_mesh are for distributed tensors, and have no effect.  Raises ValueError for an
    index that is out of range, RuntimeError for a missing device, and TypeError for a submodule that is no function.

    >>> import retrograd as rg
    >>> stage = PipelineStage(rg.nn.Linear(4, 2), 0, 1, "cpu", input_args=(rg.ones(3, 4),))
    >>> stage.is_first, stage.is_last, stage.num_stages
    (True, True, 1)
    """

    def __init__(
        self,
        submodule: Any,
        stage_index: int,
        num_stages: int,
        device: Any,
        input_args: Tensor | Sequence[Tensor] | None = None,
        output_args: Tensor | Sequence[Tensor] | None = None,
        output_grads: Any = None,
        input_grads: Any = None,
        group: Any = None,
        dw_builder: Callable[[], Callable[..., None]] | None = None,
        get_mesh: Any = None,
    ) -> None:
        if not callable(submodule):
            raise TypeError(f"PipelineStage: submodule must be a module, got {type(submodule).__name__}")
        super().__init__(submodule, stage_index, num_stages, device, group, dw_builder)
        if hasattr(submodule, "to"):
            submodule.to(device)
        self._declared = {"input": _as_list(input_args), "output": _as_list(output_args)}
        self._received: tuple[str, ...] = ()
        self._argument_names: tuple[str, ...] = ()
        self._arguments: Any = optree.tree_structure(((), {}), none_is_leaf=True)  # type: ignore[arg-type]
        self._returned: tuple[str, ...] = ()
        self.single = True  # whether the last run returned a tensor, not several

    @property
    def inputs(self) -> tuple[Value, ...]:
        """Return the values that the stage took in its last run."""
        before = tuple(Value(name, self.stage_index - 1) for name in self._received)
        return before + tuple(Value(name, None) for name in self._argument_names)

    @property
    def outputs(self) -> tuple[str, ...]:
        """Return the names of the values that the stage returned in its last run."""
        return self._returned

    def model_inputs(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """Return the tensors and other values of the arguments by name; those of `args` go to the first stage only."""
        given: Any = (tuple(args) if self.is_first else (), dict(kwargs))
        leaves, self._arguments = optree.tree_flatten(given, none_is_leaf=True)
        count = len(optree.tree_leaves(given[0], none_is_leaf=True))
        names = [ARGUMENT.format(i) if i < count else KEYWORD.format(i - count) for i in range(len(leaves))]
        self._argument_names = tuple(names)
        return dict(zip(names, leaves, strict=True))

    def result(self, outputs: Mapping[str, Any]) -> Any:
        """Return the result of the submodule, from its outputs by name."""
        values = [outputs[name] for name in self._returned]
        return values[0] if self.single else tuple(values)

    def _ordered_inputs(self, values: Mapping[str, Any]) -> list[Any]:
        prefix = f"stage_{self.stage_index - 1}_"
        self._received = tuple(sorted(name for name in values if name.startswith(prefix)))
        return [values[name] for name in (*self._received, *self._argument_names)]

    def _run_submodule(self, inputs_in_order: Sequence[Any]) -> tuple[Any, ...]:
        received = list(inputs_in_order[: len(self._received)])
        args, kwargs = self._arguments.unflatten(inputs_in_order[len(received) :])
        self._check("input", [*received, *args])
        out = self.submod(*received, *args, **kwargs)
        self.single = isinstance(out, Tensor)
        found = (out,) if isinstance(out, Tensor) else out
        if not isinstance(found, (tuple, list)) or not all(isinstance(x, Tensor) for x in found):
            raise TypeError(
                f"stage {self.stage_index} must return a tensor, or a tuple or list of tensors, got {_type_names(out)}"
            )
        self._check("output", found)
        self._returned = tuple(OUTPUT.format(self.stage_index, index) for index in range(len(found)))
        return tuple(found)

    # ------------------------------------------------------------------------- one microbatch, without a schedule

    def set_local_fwd_input(self, prev_stage_outputs: Any, mb_index: int) -> None:
        """Take the result of the previous stage, on the same rank, as input of a microbatch."""
        single = isinstance(prev_stage_outputs, Tensor)
        self._local_inputs[mb_index] = (prev_stage_outputs,) if single else tuple(prev_stage_outputs)

    def set_local_bwd_input(self, next_stage_bwd_outputs: tuple[Tensor | None, ...], mb_index: int) -> None:
        """Take the gradients that the next stage, on the same rank, has returned for a microbatch."""
        if not isinstance(next_stage_bwd_outputs, tuple):
            raise AssertionError(f"Expected tuple, got {type(next_stage_bwd_outputs)}")
        self._local_gradients[mb_index] = next_stage_bwd_outputs

    def get_local_bwd_output(self, mb_index: int) -> tuple[Tensor | None, ...]:
        """Return the gradients of a microbatch's inputs after its backward pass, for the previous stage."""
        if not self.has_backward:
            raise AssertionError("can't steal_bwd_input if this stage doesn't have backward")
        if self.is_first:
            raise AssertionError("can't get bwd output if this stage is first")
        return self._input_gradients.pop(mb_index)

    @suggest_keywords
    def forward_one_chunk(
        self, fwd_chunk_id: int, args: tuple, kwargs: dict[str, Any] | None = None, save_forward_output: bool = True
    ) -> Any:
        """Run a microbatch forward and return its result, with its graph if there is a backward pass.

        args, kwargs: of the microbatch; another stage than the first takes what `set_local_fwd_input` was given.
        save_forward_output: whether the last stage adds the result to `output_chunks`.

        >>> import retrograd as rg
        >>> stage = PipelineStage(rg.nn.Linear(4, 2), 0, 1, "cpu")
        >>> stage.has_backward = True
        >>> stage.backward_one_chunk(0, loss=stage.forward_one_chunk(0, (rg.ones(3, 4),)).sum())
        >>> stage.submod.bias.grad
        tensor([3., 3.])
        """
        values = self.model_inputs(args, kwargs or {})
        received = () if self.is_first else self._local_inputs.pop(fwd_chunk_id)
        values |= {OUTPUT.format(self.stage_index - 1, i): value for i, value in enumerate(received)}
        sent = self.forward(fwd_chunk_id, values, keep=self.has_backward)
        run = self._runs.get(fwd_chunk_id)
        out = self.result({name: message.value for name, message in sent.items()} if run is None else run.outputs)
        if self.is_last and save_forward_output:
            self.output_chunks.append(out)
        return out

    def backward_one_chunk(
        self, bwd_chunk_id: int, loss: Tensor | None = None, full_backward: bool = True, last_backward: bool = False
    ) -> None:
        """Run a microbatch backward: from its loss in the last stage, else from `set_local_bwd_input`.

        full_backward: whether the weights' gradients are computed, too; else `backward_weight_one_chunk` does it.
        last_backward: without effect.
        """
        if not self.has_backward:
            return
        if self.is_last:
            assert loss is not None, "the last stage starts from its loss"
            self.attach(bwd_chunk_id, lambda outputs: loss)
            seeds: dict[str, Tensor | None] = {"loss": registry["ones_like"](loss.detach())}
        else:
            names = self._runs[bwd_chunk_id].outputs
            seeds = dict(zip(names, self._local_gradients.pop(bwd_chunk_id), strict=True))
        found = (self.backward if full_backward else self.backward_input)(bwd_chunk_id, seeds)
        self._input_gradients[bwd_chunk_id] = tuple([found[v.name] for v in self.inputs if v.stage is not None])

    def backward_weight_one_chunk(self, bwd_chunk_id: int, last_backward: bool = False) -> None:
        """Compute the weights' gradients that `backward_one_chunk` has left out; last_backward is without effect."""
        if not self.has_backward:
            return
        if bwd_chunk_id not in self._pending_weights:
            raise AssertionError(
                f"{self.log_prefix} Attempted to run backward_weight_one_chunk for chunk {bwd_chunk_id} "
                f"without first calling `backward_one_chunk(full_backward=False)`"
            )
        self.backward_weight(bwd_chunk_id)

    def _check(self, what: str, tensors: Sequence[Any]) -> None:
        """Raise PipeliningMetadataError for a value unlike the declared one; any size of dimension 0 is right."""
        declared = self._declared[what]
        if declared is None:
            return
        where = f"stage {self.stage_index}: forward {what}"
        if len(declared) != len(tensors):
            raise PipeliningMetadataError(f"{where}s: {len(declared)} are declared, got {len(tensors)}")
        for index, (expected, actual) in enumerate(zip(declared, tensors, strict=True)):
            if isinstance(expected, Tensor) and not _matches(expected, actual):
                raise PipeliningMetadataError(f"{where} {index}: {_difference(expected, actual)}")


def _as_list(given: Any) -> list[Any] | None:
    return None if given is None else [given] if isinstance(given, Tensor) else list(given)


def _matches(a: Tensor, b: Any) -> bool:
    return isinstance(b, Tensor) and a.dtype == b.dtype and a.ndim == b.ndim and a.shape[1:] == b.shape[1:]


def _difference(expected: Tensor, actual: Any) -> str:
    """Return what differs, in PyTorch's words, and both types."""
    if not isinstance(actual, Tensor):
        return f"expected {expected.aval}, got {actual!r}"
    shapes = expected.ndim != actual.ndim or expected.shape[1:] != actual.shape[1:]
    found = ["shape mismatch"] * shapes + ["dtype mismatch"] * (expected.dtype != actual.dtype)
    return f"{', '.join(found)}: expected {expected.aval}, got {actual.aval}"


def _type_names(value: Any) -> str:
    if isinstance(value, (tuple, list)):
        return f"{type(value).__name__} of {', '.join(type(part).__name__ for part in value)}"
    return type(value).__name__


suggest_in_module(globals())

"""Make a module without initializing it, and initialize parts of a module that has no memory."""

from collections.abc import Callable, Iterable
from typing import Any

from retrograd.autograd import no_grad
from retrograd.core import Tensor
from retrograd.foundation.suggestions import suggest_in_module
from retrograd.nn.module import Module
from retrograd.nn.parameter import give_memory, is_on_meta
from retrograd.nn.settings import uninitialized
from retrograd.ops.generator import Generator, default_generator, redirect_draws


def skip_init(module_cls: Any, *args: Any, **kwargs: Any) -> Any:
    """Return `module_cls(*args, **kwargs)` with parameters of undefined values, which are not drawn at random.

    Layers inside of it whose own constructors initialize them do so.  Raises TypeError for a class that is no module,
    and RuntimeError for one whose constructor takes no `device`, as in PyTorch.

    >>> import retrograd as rg
    >>> from retrograd import nn
    >>> nn.init.orthogonal_(nn.utils.skip_init(nn.Linear, 4, 3).weight).shape
    (3, 4)
    """
    return uninitialized("skip_init", module_cls, args, kwargs)


def materialize(
    module: Module, tensors: Iterable[Tensor] | None = None, init: Callable[[Module], Any] | None = None
) -> None:
    """Give parameters and buffers on the device "meta" memory in host memory and initial values, in place.

    tensors: those that get memory; None: all.  init: called with each submodule that has one of them, to set its
    own values; None: its method `reset_parameters`.

    Each submodule draws from a generator of its own, so values do not depend on which tensors are chosen: ranks that
    have different parts of a model have those of one and the same model.  A shared tensor gets the values of the first
    submodule that has it.  At most one submodule's other tensors have memory meanwhile.

    Raises ValueError, before anything changes, if a submodule has no `reset_parameters` and no `init` is given.

    >>> import retrograd as rg
    >>> from retrograd import nn
    >>> with rg.device("meta"):
    ...     model = nn.Sequential(nn.Linear(4, 1 << 40), nn.ReLU(), nn.Linear(4, 2))
    >>> nn.utils.materialize(model, model[2].parameters())
    >>> model[0].weight.device, model[2].weight.device
    (device(type='meta'), device(type='cpu'))
    """
    wanted = None if tensors is None else {id(x) for x in tensors}
    parts = [(part, [*part.parameters(False), *part.buffers(False)]) for part in module.modules()]

    def pending(own: list[Tensor]) -> list[Tensor]:
        return [x for x in own if is_on_meta(x) and (wanted is None or id(x) in wanted)]

    helpless = [type(p).__name__ for p, own in parts if pending(own) and init is None and not _resets(p)]
    if helpless:
        raise ValueError(f"materialize: {', '.join(helpless)} have no reset_parameters(); pass init=")
    seeds = Generator(int(default_generator.draw("integers", 0, 2**63)))
    for part, own in parts:
        source = Generator(int(seeds.draw("integers", 0, 2**63)))
        chosen = pending(own)
        if chosen:
            _initialize(part, own, chosen, init or _reset, source)


def _initialize(
    part: Module, own: list[Tensor], chosen: list[Tensor], init: Callable[[Module], Any], source: Generator
) -> None:
    """Initialize the own tensors of a module; those that are not chosen are afterwards as before."""
    before = [x.value for x in own]
    for x in own:
        give_memory(x)
    with no_grad(), redirect_draws(lambda _: source):
        init(part)
    keep = {id(x) for x in chosen}
    for x, value in zip(own, before, strict=True):
        if id(x) not in keep:
            x.value = value


def _resets(part: Module) -> bool:
    return hasattr(part, "reset_parameters")


def _reset(part: Any) -> None:
    part.reset_parameters()


suggest_in_module(globals())

"""Make a module without initializing it."""

from typing import Any

from retrograd.nn.settings import uninitialized


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

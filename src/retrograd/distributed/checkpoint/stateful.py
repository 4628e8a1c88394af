"""`Stateful`: objects that checkpoints save and restore by their methods."""

from typing import Any, Protocol, runtime_checkable


@runtime_checkable
class Stateful(Protocol):
    """An object with `state_dict` and `load_state_dict`, which `save` and `load` call."""

    def state_dict(self) -> dict[str, Any]:
        """Return the state, also for `load`, which reads into its tensors."""

    def load_state_dict(self, state_dict: dict[str, Any]) -> Any:
        """Take a state that was read."""

"""Checkpoints of the demo: the complete state of a training, so that it can resume exactly."""

import json
from pathlib import Path
from typing import Any

import retrograd as rg
from retrograd import Tensor
from retrograd.cli.demo.training import History, Trainer
from retrograd.cli.errors import UsageError
from retrograd.interop.safetensors import load_file, load_metadata, save_file

MODEL, OPTIMIZER = "model.", "optimizer."
FORMAT = "retrograd demo 1"


def save(path: Path, trainer: Trainer) -> None:
    """Write model and optimizer as tensors, and the rest as JSON in the file's metadata."""
    moments, numbers = _optimizer_state(trainer)
    tensors = {MODEL + name: tensor for name, tensor in trainer.model.state_dict().items()} | moments
    state = {
        "format": FORMAT,
        "seed": trainer.seed,
        "epochs": trainer.epochs,
        "losses": trainer.history.losses,
        "accuracies": trainer.history.accuracies,
        "optimizer": numbers,
        "random": rg.get_rng_state().tolist(),
    }
    save_file(tensors, path, {"state": json.dumps(state)})


def read(path: Path) -> dict[str, Any]:
    """Return the metadata of a checkpoint; UsageError if it is missing, damaged or not of the demo."""
    try:
        text = load_metadata(path).get("state", "{}")
    except FileNotFoundError as error:
        raise UsageError(f"--resume: there is no checkpoint {path}; run without --resume to begin") from error
    except (ValueError, OSError) as error:
        raise UsageError(f"--resume: {error}") from error
    try:
        state = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"--resume: {path} is damaged: {error}") from error
    if type(state) is not dict or state.get("format") != FORMAT:
        raise UsageError(f"--resume: {path} is no checkpoint of this demo")
    wrong = [name for name, kind in _KINDS.items() if type(state.get(name)) not in kind]
    if wrong:
        raise UsageError(f"--resume: {path} is damaged: it lacks {', '.join(wrong)}")
    return state


_KINDS = {
    "seed": (int,),
    "epochs": (int,),
    "losses": (list,),
    "accuracies": (list,),
    "optimizer": (dict,),
    "random": (list, dict),  # a dict in files of earlier versions
}


def restore(path: Path, state: dict[str, Any], trainer: Trainer) -> None:
    """Restore the saved state of a trainer."""
    tensors = load_file(path)
    trainer.model.load_state_dict(_strip_prefix(MODEL, tensors))
    _load_optimizer(trainer, _strip_prefix(OPTIMIZER, tensors), state["optimizer"])
    random = state["random"]
    rg.set_rng_state(random if isinstance(random, dict) else rg.tensor(random, dtype=rg.uint8))
    trainer.resume_from(History(state["losses"], state["accuracies"]))


def _strip_prefix(prefix: str, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    return {name.removeprefix(prefix): tensor for name, tensor in tensors.items() if name.startswith(prefix)}


def _optimizer_state(trainer: Trainer) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Return the optimizer's tensors as "optimizer.<state>/<parameter>", and its numbers."""
    state = trainer.optimizer.state_dict()
    names = [name for name, _ in trainer.model.named_parameters()]
    values = {(what, names[i]): value for i, own in state["state"].items() for what, value in own.items()}
    tensors = {f"{OPTIMIZER}{what}/{name}": v for (what, name), v in values.items() if isinstance(v, Tensor)}
    numbers = {f"{what}/{name}": v for (what, name), v in values.items() if not isinstance(v, Tensor)}
    return tensors, {"groups": state["param_groups"], "numbers": numbers}


def _load_optimizer(trainer: Trainer, tensors: dict[str, Tensor], state: dict[str, Any]) -> None:
    index = {name: i for i, (name, _) in enumerate(trainer.model.named_parameters())}
    states: dict[int, dict[str, Any]] = {}
    for key, value in {**tensors, **state["numbers"]}.items():
        what, _, name = key.partition("/")
        states.setdefault(index[name], {})[what] = value
    trainer.optimizer.load_state_dict({"state": states, "param_groups": state["groups"]})

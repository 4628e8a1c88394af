"""Save to disks that fail: old files remain, errors name the path, and no incomplete file loads.

python -m tests.files.faults FOLDER: save to the (small) file system of FOLDER until it is full.
"""

import ctypes
import errno
import os
import resource
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import retrograd as rg
from retrograd import export, fx, nn
from retrograd.autograd.drawing.draw import draw
from retrograd.autograd.profiler import profile
from retrograd.pipelining import Pipeline, simulate, write_html, write_perfetto, write_png
from retrograd.pipelining.checkpoint import Checkpoints
from retrograd.pipelining.planning.simulate import unit_cost
from retrograd.pipelining.schedules import make_schedule
from retrograd.pipelining.schedules.lowering import chain
from retrograd.pipelining.schedules.tables import read_csv, write_csv
from retrograd.utils.plot_metrics import plot_curves


class Saver(NamedTuple):
    """A function that saves a version (0, 1, ...) under a path of that name, and one that loads it."""

    name: str
    save: Callable[[Path, int], Any]
    read: Callable[[Path], Any]


def _state(version: int) -> dict[str, Any]:
    return {"weight": rg.full((3000,), version), "bias": rg.full((5,), version)}


def _version(state: dict[str, Any]) -> int:
    [version] = {value for tensor in state.values() for value in tensor.reshape(-1).tolist()}
    return int(version)


def _scaled(version: int) -> fx.GraphModule:
    module = nn.Linear(40, 40)
    with rg.no_grad():
        module.weight.fill_(version)
        module.bias.fill_(version)
    return fx.trace(module, rg.ones(1, 40))


def _model(version: int) -> nn.Module:
    model = nn.Sequential(nn.Linear(30, 40), nn.Linear(40, 30))
    with rg.no_grad():
        for parameter in model.parameters():
            parameter.fill_(version)
    return model


def _pipeline(version: int) -> Pipeline:
    return Pipeline(_model(version), 2, loss_fn=nn.functional.mse_loss)


def _save_checkpoint(made: Callable[[int], Any]) -> Callable[[Path, int], None]:
    def save(path: Path, version: int) -> None:
        checkpoints = Checkpoints(path, keep=2)
        checkpoints._at = checkpoints.latest()  # the run continues
        checkpoints.save(version, made(version), extra=version)

    return save


def _restore(path: Path) -> int:
    model = _model(-1)
    found = Checkpoints(path).restore(model)
    assert found is not None
    assert _version(model.state_dict()) == found.step == found.extra
    return found.step


def _timelines(version: int) -> dict[str, Any]:
    stages = version + 2
    return {
        f"version {version}": simulate(make_schedule("1f1b", stages=stages, micro_batches=4), chain(stages), unit_cost)
    }


def _timeline_writer(write: Callable[..., None]) -> Callable[[Path, int], None]:
    return lambda path, version: write(path, _timelines(version))


def _traced(path: Path, version: int) -> None:
    with profile() as prof:
        for _ in range(version + 1):
            rg.ones(3).exp()
    prof.export_chrome_trace(str(path))


def _bytes(path: Path) -> bytes:
    return path.read_bytes()


SAVERS = {
    "rg.save": Saver("a.pt", lambda path, v: rg.save(_state(v), path), lambda path: _version(rg.load(path))),
    "safetensors": Saver(
        "a.safetensors", lambda path, v: rg.save(_state(v), path), lambda path: _version(rg.load(path))
    ),
    "export.save": Saver(
        "program", lambda path, v: export.save(_scaled(v), path), lambda path: _version(export.load(path).state_dict())
    ),
    "export.save, zip": Saver(
        "a.zip", lambda path, v: export.save(_scaled(v), path), lambda path: _version(export.load(path).state_dict())
    ),
    "Checkpoints": Saver("run", _save_checkpoint(_model), _restore),
    "Checkpoints of a pipeline": Saver("run", _save_checkpoint(_pipeline), _restore),
    "write_csv": Saver(
        "plan.csv",
        lambda path, v: write_csv(make_schedule("1f1b", stages=2, micro_batches=20 + v), path),
        lambda path: max(action.micro_batch for action in read_csv(path)[0]) - 19,
    ),
    "write_html": Saver("a.html", _timeline_writer(write_html), _bytes),
    "write_perfetto": Saver("a.json", _timeline_writer(write_perfetto), _bytes),
    "write_png": Saver("a.png", _timeline_writer(write_png), _bytes),
    "plot_curves": Saver("b.png", lambda path, v: plot_curves(path, {"loss": [3.0, 2.0, 1.0 + v]}), _bytes),
    "profiler": Saver("trace.json", _traced, _bytes),
    "graph drawing": Saver("a.svg", lambda path, v: draw(rg.ones(v + 2, requires_grad=True).exp()).save(path), _bytes),
}


# ------------------------------------------------------------------------------------------------------ faults


@contextmanager
def files_of_at_most(count: int) -> Iterator[None]:
    """Limit the length of files: a write stops at the limit, as on a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (count, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


CALLS = ["fsync", "replace", "rename", "mkdir", "rmdir", "unlink"]


class Disk:
    """Replace calls of os that change a disk: the one of this number fails, or with `stays` all from there on."""

    def __init__(self, number: int, error: int, stays: bool = False) -> None:
        self.number, self.error, self.stays, self.count = number, error, stays, 0

    @contextmanager
    def __call__(self) -> Iterator["Disk"]:
        before = {name: getattr(os, name) for name in CALLS}
        for name, call in before.items():
            setattr(os, name, self._counting(name, call))
        try:
            yield self
        finally:
            for name, call in before.items():
                setattr(os, name, call)

    def _counting(self, name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def instead(*args: Any, **kwargs: Any) -> Any:
            at, self.count = self.count, self.count + 1
            if at == self.number or (self.stays and at > self.number):
                named = [os.fspath(arg) for arg in args if isinstance(arg, (str, os.PathLike))][:1]
                raise OSError(self.error, os.strerror(self.error), *named)
            return call(*args, **kwargs)

        return instead


@contextmanager
def read_only(folder: Path) -> Iterator[None]:
    """Make a folder read-only; root gives up its permission to write everywhere meanwhile."""
    folder.chmod(0o555)
    libc = ctypes.CDLL(None, use_errno=True)
    header, held = (ctypes.c_uint32 * 2)(0x20080522, 0), (ctypes.c_uint32 * 6)()  # see capset(2); effective ones first
    libc.capget(header, held)
    effective = held[0]
    try:
        held[0] = effective & ~(1 << DAC_OVERRIDE)
        assert libc.capset(header, held) == 0
        yield
    finally:
        held[0] = effective
        assert libc.capset(header, held) == 0
        folder.chmod(0o755)


DAC_OVERRIDE = 1  # the number of that capability


# ------------------------------------------------------------------------------------------------------ checks


def listed(folder: Path) -> list[str]:
    """Return the names of all files in a folder."""
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


ERRORS = (errno.ENOSPC, errno.EFBIG, errno.EIO, errno.EACCES)


def check_failure(saver: Saver, path: Path, error: OSError, before: list[str], old: Any, tidy: bool = True) -> None:
    """Check after an error that it names the path, the old file remains, and temporary files are removed."""
    assert str(path) in str(error), f"the error does not name {path}: {error!r}"
    assert error.errno in ERRORS
    assert saver.read(path) == old
    assert not tidy or listed(path.parent) == before


def fill(folder: Path, saver: Saver) -> str:
    """Save to a small file system, filled page by page until no space is left; return how often saving failed."""
    path, ballast = folder / saver.name, folder / "ballast"
    saver.save(path, 0)
    old, failed, version = saver.read(path), 0, 0
    for _ in range(200):
        free = shutil.disk_usage(folder).free
        with open(ballast, "ab") as file:
            file.write(bytes(min(free, max(4096, free - 2**18))))
        before = listed(folder)
        try:
            saver.save(path, version + 1)
        except OSError as error:
            failed += 1
            check_failure(saver, path, error, before, old)
        else:
            version, old = version + 1, saver.read(path)
        if not free:
            break
    ballast.unlink()
    saver.save(path, version + 1)
    assert saver.read(path) != old
    shutil.rmtree(path) if path.is_dir() else path.unlink()
    return f"{version + failed} saves, {failed} on a full disk; the last ones are whole, all errors name the path"


if __name__ == "__main__":
    where = Path(sys.argv[1])
    assert shutil.disk_usage(where).total < 2**24, f"{where} is no small file system"
    for title, one in SAVERS.items():
        with tempfile.TemporaryDirectory(dir=where) as space:
            print(f"{title}: {fill(Path(space), one)}", flush=True)

"""Load randomly damaged files: each loads correctly or is refused with a named error, in little memory.

python -m tests.files.damage [COUNT] [LOADER]...: try COUNT damaged files for each loader and print the outcomes.
"""

import copy
import json
import math
import os
import random
import resource
import signal
import sys
import tempfile
import time
import tracemalloc
import warnings
import zipfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import retrograd as rg
from retrograd import export, fx, nn
from retrograd.cli.demo import checkpoint as demo
from retrograd.cli.demo.data import load_digits
from retrograd.cli.demo.run import _resumed_trainer as resumed_demo
from retrograd.cli.demo.training import Settings, Trainer
from retrograd.cli.errors import UsageError
from retrograd.interop import pytorch, safetensors
from retrograd.optim import AdamW
from retrograd.pipelining.checkpoint import Checkpoints, manifest
from retrograd.pipelining.schedules import make_schedule
from retrograd.pipelining.schedules.tables import read_csv, write_csv

EVIL = "(open('/tmp/evil', 'w'), 1)[1]"
SPARE = 8 * 2**20  # bytes that a loader may take beyond a multiple of the file
MULTIPLE = 40  # of a file's bytes, which a loader may take: Python's objects for small rows of JSON are that large

# ---------------------------------------------------------------------------------------------------- bytes

SIGNS = [b"PK\1\2", b"PK\3\4", b"PK\5\6", b"PK\6\6", b"PK\6\7"]  # where the parts of a zip begin
EXTREMES = [0, 1, 0x7F, 0x80, 0xFE, 0xFF]


def damaged(data: bytes, source: random.Random) -> bytes:
    """Return the bytes with a few faults, most of them where a format stores sizes."""
    made = bytearray(data)
    for _ in range(source.randrange(1, 4)):
        if made:
            source.choice(_FAULTS)(made, _position(made, source), source)
    return bytes(made)


def _position(data: bytearray, source: random.Random) -> int:
    """Return a position, likely in a header."""
    kind = source.random()
    if kind < 0.5:
        sign, start = source.choice(SIGNS), source.randrange(len(data))
        found = max(data.find(sign, start), data.rfind(sign))
        if found >= 0:
            return min(found + source.randrange(56), len(data) - 1)
    if kind < 0.65:
        return source.randrange(min(len(data), 600))
    return source.randrange(len(data)) if kind < 0.85 else len(data) - 1 - source.randrange(min(len(data), 300))


def _set_field(data: bytearray, at: int, source: random.Random) -> None:
    width = source.choice([1, 1, 2, 4, 8])
    value = source.choice(EXTREMES) if source.random() < 0.7 else source.randrange(256)
    data[at : at + width] = bytes([value]) * min(width, len(data) - at)


def _flip(data: bytearray, at: int, source: random.Random) -> None:
    data[at] ^= 1 << source.randrange(8)


def _cut(data: bytearray, at: int, source: random.Random) -> None:
    del data[at:]


def _remove(data: bytearray, at: int, source: random.Random) -> None:
    del data[at : at + source.randrange(1, 40)]


def _repeat(data: bytearray, at: int, source: random.Random) -> None:
    data[at:at] = data[at : at + source.randrange(1, 200)] * source.randrange(1, 4)


def _move(data: bytearray, at: int, source: random.Random) -> None:
    start = _position(data, source)
    part = data[start : start + source.randrange(1, 100)]
    data[at : at + len(part)] = part


def _digits(data: bytearray, at: int, source: random.Random) -> None:
    """Replace the digits of a number stored as text."""
    found = [i for i in range(at, min(at + 200, len(data))) if 48 <= data[i] < 58]
    for i in found[:1]:
        data[i : i + 1] = source.choice([b"0", b"-1", b"9" * 9, b"9" * 18, b"9" * 30, b"1e9", b"9" * 5000])


_FAULTS = [_set_field, _set_field, _set_field, _flip, _flip, _cut, _remove, _repeat, _move, _digits]

# ----------------------------------------------------------------------------------------------------- JSON

VALUES = [
    None, True, -1, 0, 2**70, 1.5, "", "x", EVIL, [], {}, [[]], {"node": "x"}, {"tuple": []}, {"dict": [[1, 2]]},
    {"slice": [None, "a", {}]}, {"float": "nan"}, {"bytes": "AA="}, {"aval": ["float32", [2]]},
    {"structure": [[[1]], None]}, {"structure": [[[]], None]}, {"ragged size": [{"structure": [[[1]], [0]]}, 0, 0, 1]},
    {"size": [1]}, {"slot": None},
    {"dtype": "float8"}, {"complex": [1, 2]}, {"ellipsis": 0}, 10**400, {"float": "inf"}, "*", "float32",
    {"tensor": "model/weight"}, 2**40, {"aval": ["float64", [2**40, 2**10]]},
]  # fmt: skip


def json_paths(value: Any, found: list | None = None, path: tuple = ()) -> list:
    """Return all paths into JSON."""
    found = [] if found is None else found
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, member in items:
        found.append((*path, key))
        json_paths(member, found, (*path, key))
    return found


def mutated(document: Any, source: random.Random) -> Any:
    """Return JSON with a fault: a part is missing, duplicated, renamed, or replaced."""
    document = copy.deepcopy(document)
    *way, last = source.choice(json_paths(document))
    holder = document
    for key in way:
        holder = holder[key]
    others = json_paths(document)
    action = source.randrange(5)
    if action == 0:
        del holder[last]
    elif action == 1 and isinstance(holder, list):
        holder.insert(source.randrange(len(holder) + 1), copy.deepcopy(holder[last]))
    elif action == 2 and isinstance(holder, dict):
        holder[source.choice(["x", EVIL, "name", "args"])] = holder.pop(last)
    elif action == 3:
        value = document
        for key in source.choice(others):
            value = value[key]
        holder[last] = copy.deepcopy(value)
    else:
        holder[last] = copy.deepcopy(source.choice(VALUES))
    return document


# -------------------------------------------------------------------------------------------------- loaders


class Loader(NamedTuple):
    """A loader and a file for it.

    write: write into a folder; return the argument of `load`, and the files to be damaged.
    load: return the loaded value, as text.
    errors: the kinds of errors documented for damaged files.
    checked: whether checksums guarantee that a loaded value equals the saved one.
    change: how the bytes are damaged.
    """

    write: Callable[[Path], tuple[Any, list[Path]]]
    load: Callable[[Any], str]
    errors: tuple[type[Exception], ...]
    checked: bool = False
    change: Callable[[bytes, random.Random], bytes] = damaged


def text(value: Any) -> str:
    """Return plain data with tensors as text; different values give different text."""
    if isinstance(value, rg.Tensor):
        return f"{value.dtype}{tuple(value.shape)}{hash(value.contiguous().numpy().tobytes())}"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{text(k)}: {text(v)}" for k, v in value.items()) + "}"
    return f"[{', '.join(map(text, value))}]" if isinstance(value, (list, tuple)) else repr(value)


STATE = {
    "model": {"weight": rg.arange(12.0).reshape(3, 4), "bias": rg.ones(3), "mask": rg.tensor([True, False])},
    "optimizer": [{"lr": 0.1, "betas": (0.9, 0.99)}, rg.arange(7), {1, 2}],
    "note": "ünï", "raw": bytes(range(9)), "z": rg.ones(2, dtype=rg.complex64), "view": rg.ones(4)[::2],
}  # fmt: skip
LARGE = {f"layers.{i}.weight": rg.full((100 + i,), i) for i in range(200)} | {"table": rg.zeros(300_000)}


def _saved(state: Any, name: str) -> Callable[[Path], tuple[Any, list[Path]]]:
    def write(folder: Path) -> tuple[Any, list[Path]]:
        rg.save(state, folder / name)
        return folder / name, [folder / name]

    return write


def _opened(path: Path) -> str:
    with open(path, "rb") as file:
        return text(pytorch.load_file(file))


def _halves(folder: Path) -> tuple[Any, list[Path]]:
    """Write a safetensors file with bfloat16, as other libraries do, and text."""
    header = {
        "__metadata__": {"made by": "hand"},
        "a": {"dtype": "F32", "shape": [2, 2], "data_offsets": [0, 16]},
        "half": {"dtype": "BF16", "shape": [2, 2], "data_offsets": [16, 24]},
    }
    packed, path = json.dumps(header).encode(), folder / "a.safetensors"
    path.write_bytes(len(packed).to_bytes(8, "little") + packed + bytes(range(24)))
    return path, [path]


def _tensors(path: Path) -> str:
    return text([safetensors.load_file(path), safetensors.load_metadata(path)])


class Net(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.linear = nn.Linear(3, width)
        self.register_buffer("mean", rg.zeros(width, dtype=rg.complex128))

    def forward(self, x, *, scale=-0.0):
        return {"y": self.linear(x) * scale, "top": [self.mean.real.sum(), None]}


def _program(suffix: str, width: int = 2) -> Callable[[Path], tuple[Any, list[Path]]]:
    def write(folder: Path) -> tuple[Any, list[Path]]:
        path = folder / f"program{suffix}"
        with rg.random.fork_rng():
            rg.manual_seed(0)
            export.save(fx.trace(Net(width), rg.ones(2, 3)), path)
        return path, [path] if suffix else sorted(path.iterdir())

    return write


def _loaded_program(path: Path) -> str:
    module = export.load(path)
    module.graph.lint()
    return text([module.code, module.state_dict()])


def _compiled(folder: Path) -> tuple[Any, list[Path]]:
    """Write a compiled function as the two files of a zip, which may be read from a folder, too."""
    net, y = Net(2), rg.ones(2)

    def f(batch: dict[str, Any], scale: float) -> Any:
        out = net(batch["x"], scale=scale)["y"].relu()
        y.add_(out.sum(0))
        return [out[0], out.T, rg.tensor([1.0, 2.0]) * y, scale]

    with rg.random.fork_rng(), rg.no_grad():
        rg.manual_seed(0)
        compiled = rg.compile(f, fullgraph=True).aot_compile((({"x": rg.ones(3, 3)}, 0.5), {}))
    compiled.save_compiled_function(folder / "function.zip")
    with zipfile.ZipFile(folder / "function.zip") as archive:
        archive.extractall(folder / "function")
    return folder / "function", sorted((folder / "function").iterdir())


def _loaded_function(path: Path) -> str:
    """Return what a function computes; it may fail, but not crash."""
    loaded = rg.compiler.load_compiled_function(path)
    try:
        return text(loaded({"x": rg.ones(3, 3)}, 0.5))
    except Exception as error:
        return type(error).__name__


def _trained() -> tuple[nn.Module, AdamW]:
    with rg.random.fork_rng():
        rg.manual_seed(0)
        model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4))
    return model, AdamW(model.parameters(), lr=0.1)


def _checkpoint(folder: Path) -> tuple[Any, list[Path]]:
    model, optimizer = _trained()
    (model(rg.arange(6.0).reshape(2, 3)) ** 2).sum().backward()
    optimizer.step()
    with rg.random.fork_rng():
        rg.manual_seed(1)
        Checkpoints(folder / "run").save(3, model, optimizer, extra={"note": ["x", 1.5]})
    return folder / "run", sorted((folder / "run" / "step-00000003").iterdir())


def _restored(folder: Path) -> str:
    """Return the restored value; if restoring fails, check that nothing has changed."""
    model, optimizer = _trained()
    with rg.random.fork_rng():
        before = text([model.state_dict(), optimizer.state_dict(), rg.get_rng_state()])
        try:
            found = Checkpoints(folder).restore(model, optimizer)
        except Exception:
            assert text([model.state_dict(), optimizer.state_dict(), rg.get_rng_state()]) == before
            raise
        return text([found, model.state_dict(), optimizer.state_dict(), rg.get_rng_state()])


def _manifest(data: bytes, source: random.Random) -> bytes:
    """Return a manifest with a fault but a correct checksum; other files are unchanged."""
    if not data.startswith(b"{\n"):
        return data
    body = json.loads(data)
    del body["sha256"]
    changed = mutated(body, source)
    return json.dumps({**changed, "sha256": manifest._content_checksum(changed)}).encode()


def _graph(data: bytes, source: random.Random) -> bytes:
    return json.dumps(mutated(json.loads(data), source)).encode() if data.startswith(b"{\n") else damaged(data, source)


def _schedule(folder: Path) -> tuple[Any, list[Path]]:
    write_csv(make_schedule("1f1b", stages=3, micro_batches=4), folder / "plan.csv")
    return folder / "plan.csv", [folder / "plan.csv"]


def _demo(folder: Path) -> tuple[Any, list[Path]]:
    path = folder / "checkpoint.safetensors"
    with rg.random.fork_rng():
        demo.save(path, Trainer(_settings(path), load_digits(), 1, 0))
    return path, [path]


def _settings(path: Path) -> Settings:
    return Settings(1, 1, "1f1b", None, None, path.parent, resume=True)


def _resumed(path: Path) -> str:
    with rg.random.fork_rng():
        trainer = resumed_demo(_settings(path), path)
    return text([trainer.model.state_dict(), trainer.history])


STORED = (export.StorageError,)
LOADERS = {
    "rg.load": Loader(_saved(STATE, "a.pt"), lambda p: text(rg.load(p)), (ValueError,), True),
    "rg.load, mapped": Loader(_saved(STATE, "a.pt"), lambda p: text(rg.load(p, mmap=True)), (ValueError,)),
    "rg.load, open": Loader(_saved(STATE, "a.pt"), _opened, (ValueError,), True),
    "rg.load, large": Loader(_saved(LARGE, "a.pt"), lambda p: text(rg.load(p)), (ValueError,), True),
    "rg.load, large, mapped": Loader(_saved(LARGE, "a.pt"), lambda p: text(rg.load(p, mmap=True)), (ValueError,)),
    "safetensors": Loader(_saved(STATE["model"], "a.safetensors"), _tensors, (ValueError,)),
    "safetensors, halves": Loader(_halves, _tensors, (ValueError,)),
    "safetensors, large": Loader(_saved(LARGE, "a.safetensors"), _tensors, (ValueError,)),
    "export.load": Loader(_program(""), _loaded_program, STORED),
    "export.load, graph": Loader(_program(""), _loaded_program, STORED, change=_graph),
    "export.load, zip": Loader(_program(".zip"), _loaded_program, STORED),
    "export.load, large": Loader(_program(".zip", 40_000), _loaded_program, STORED),
    "compiled function": Loader(_compiled, _loaded_function, STORED, change=_graph),
    "Checkpoints": Loader(_checkpoint, _restored, STORED, True),
    "Checkpoints, summed": Loader(_checkpoint, _restored, (ValueError,), change=_manifest),
    "read_csv": Loader(_schedule, lambda path: text(read_csv(path)), (ValueError,)),
    "demo": Loader(_demo, _resumed, (UsageError,)),
}


class Trial:
    """A loader's file, which is damaged repeatedly."""

    def __init__(self, name: str, folder: Path) -> None:
        self.name, self.loader = name, LOADERS[name]
        self.target, self.files = self.loader.write(folder)
        self.contents = [file.read_bytes() for file in self.files]
        self.bound = SPARE + MULTIPLE * sum(map(len, self.contents))
        self.whole = self.loader.load(self.target)  # warms caches, too

    def run(self, seed: int) -> str:
        """Damage the file and load it: return "whole", "other", or "refused"; AssertionError for any other outcome."""
        source = random.Random(f"{self.name} {seed}")
        at = source.randrange(len(self.files))
        self.files[at].write_bytes(self.loader.change(self.contents[at], source))
        try:
            return self._end(f"{self.name}, seed {seed}")
        finally:
            self.files[at].write_bytes(self.contents[at])

    def _end(self, case: str) -> str:
        tracemalloc.start()
        try:
            found = self.loader.load(self.target)
        except Exception as error:
            self._check(case, error)
            return "refused"
        finally:
            peak = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
            assert peak < self.bound, f"{case}: {peak} bytes for a file of {sum(map(len, self.contents))}"
        assert not self.loader.checked or found == self.whole, f"{case}: loads something else than was saved"
        return "whole" if found == self.whole else "other"

    def _check(self, case: str, error: Exception) -> None:
        """Check that an error has the documented kind and names the file; valid files of unknown dtypes: TypeError."""
        lacking = type(error) is TypeError and "NumPy does not have" in str(error)
        kinds = tuple({*self.loader.errors} - {Exception})
        assert lacking or isinstance(error, kinds), f"{case}: {type(error).__name__}: {error}"
        assert not isinstance(error, UnicodeError), f"{case}: {error}"
        assert str(self.target) in str(error), f"{case}: the error does not name the file: {error}"
        assert len(str(error)) < 2000, f"{case}: an error of {len(str(error))} characters"


def soak(name: str, count: int) -> str:
    """Damage a loader's file often, with limits of time and memory; return a line with the outcomes."""
    start = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        trial, ends, slowest = Trial(name, Path(folder)), Counter[str](), 0.0
        for seed in range(count):
            signal.alarm(60)
            begin = time.monotonic()
            ends[trial.run(seed)] += 1
            slowest = max(slowest, time.monotonic() - begin)
            signal.alarm(0)
    told = ", ".join(f"{ends[kind]} {kind}" for kind in ("refused", "whole", "other"))
    return f"{name}: {count} damaged, {told}; slowest {slowest:.2f} s, all {time.monotonic() - start:.0f} s"


if __name__ == "__main__":
    warnings.simplefilter("error")
    limit = 2**30 + int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    wanted = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    for one in sys.argv[2:] or LOADERS:
        print(soak(one, math.ceil(wanted)), flush=True)

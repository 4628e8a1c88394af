"""Steps on a GPU compared with PyTorch's, and the bandwidth, overhead and graphs of operators there.

`make device` runs it after the laws: one command gives every figure. It needs CuPy, a GPU, and PyTorch for comparison,
without which only our times are shown. `--device cpu --small` runs the same code without a GPU, to see that it works;
its times say nothing. Times are medians of several runs between two events on the device, so that launches that the
device waits for count, and the work of the host that it does not wait for does not.

Nothing of this has run to its end on a GPU so far; budgets are those of issue 32.
"""

import argparse
import importlib
import json
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

RUNS = 7
REPORT = Path(__file__).parents[1] / "build" / "device.json"


class Library:
    """retrograd or PyTorch on a device: both have the same names."""

    def __init__(self, name: str, device: str) -> None:
        self.name, self.device = name, device
        self.root = importlib.import_module(name)
        self.nn, self.functional = self.root.nn, importlib.import_module(f"{name}.nn.functional")

    def time(self, run: Callable[[], Any], repeats: int) -> float:
        """Return the milliseconds of one run: the median over several series of `repeats`."""
        for _ in range(3):
            run()
        return statistics.median(self._series(run, repeats) for _ in range(RUNS))

    def _series(self, run: Callable[[], Any], repeats: int) -> float:
        if self.device == "cpu":
            start = time.perf_counter()
            for _ in range(repeats):
                run()
            return (time.perf_counter() - start) * 1000 / repeats
        begin, end = (self.root.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        for _ in range(repeats):
            run()
        end.record()
        end.synchronize()
        return begin.elapsed_time(end) / repeats

    def host_time(self, run: Callable[[], Any], repeats: int) -> float:
        """Return the microseconds of the host for one run, while the device need not have finished."""
        run()
        start = time.perf_counter()
        for _ in range(repeats):
            run()
        return (time.perf_counter() - start) * 1e6 / repeats

    def rand(self, *shape: int) -> Any:
        """Return random numbers on the device."""
        return self.root.rand(*shape, device=self.device)

    def classes(self, count: int, *shape: int) -> Any:
        """Return random classes on the device."""
        return self.root.randint(0, count, shape, device=self.device)


def step_of(lib: Library, model: Any, loss_of: Callable[[Any], Any]) -> Callable[[], Any]:
    """Return a function that takes a training step with AdamW."""
    model = model.to(lib.device)
    optimizer = lib.root.optim.AdamW(model.parameters(), lr=1e-3)

    def step() -> Any:
        optimizer.zero_grad()
        loss = loss_of(model)
        loss.backward()
        optimizer.step()
        return loss

    return step


def product(lib: Library, small: bool) -> Callable[[], Any]:
    """A product of square matrices."""
    size = 64 if small else 4096
    a, b = lib.rand(size, size), lib.rand(size, size)
    return lambda: a @ b


def perceptron(lib: Library, small: bool) -> Callable[[], Any]:
    """A step of a perceptron with three layers."""
    rows, width = (8, 16) if small else (512, 2048)
    nn = lib.nn
    layers = [nn.Linear(width, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 10)]
    x, y = lib.rand(rows, width), lib.classes(10, rows)
    return step_of(lib, nn.Sequential(*layers), lambda model: lib.functional.cross_entropy(model(x), y))


def convolutions(lib: Library, small: bool) -> Callable[[], Any]:
    """A step of a small convolutional network."""
    nn, (count, size) = lib.nn, (2, 8) if small else (64, 32)
    first = [nn.Conv2d(3, 64, 3, padding=1), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(2)]
    second = [nn.Conv2d(64, 128, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(128, 10)]
    x, y = lib.rand(count, 3, size, size), lib.classes(10, count)
    return step_of(lib, nn.Sequential(*first, *second), lambda model: lib.functional.cross_entropy(model(x), y))


def encoder(lib: Library, small: bool) -> Callable[[], Any]:
    """A step of an encoder layer."""
    count, length, width = (2, 4, 16) if small else (16, 256, 512)
    layer = lib.nn.TransformerEncoderLayer(width, 4 if small else 8, 4 * width, dropout=0.0, batch_first=True)
    x = lib.rand(count, length, width)
    return step_of(lib, layer, lambda model: model(x).square().mean())


def decoder(lib: Library, small: bool) -> Callable[[], Any]:
    """A step of a GPT with four blocks."""
    count, length, width, words = (2, 4, 16, 11) if small else (8, 256, 384, 8192)
    nn, root = lib.nn, lib.root

    class Decoder(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.words, self.places = nn.Embedding(words, width), nn.Embedding(length, width)
            self.blocks = nn.ModuleList(
                [
                    nn.TransformerEncoderLayer(width, 4, 4 * width, 0.0, "gelu", batch_first=True, norm_first=True)
                    for _ in range(1 if small else 4)
                ]
            )
            self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, words)

        def forward(self, x: Any, mask: Any) -> Any:
            states = self.words(x) + self.places(root.arange(length, device=x.device))
            for block in self.blocks:
                states = block(states, src_mask=mask, is_causal=True)
            return self.head(self.norm(states))

    x = lib.classes(words, count, length)
    mask = root.full((length, length), -float("inf"), device=lib.device).triu(1)
    flat = x.reshape(-1)
    return step_of(lib, Decoder(), lambda model: lib.functional.cross_entropy(model(x, mask).reshape(-1, words), flat))


# Cases: how to build them, how often to run them between two events, and the budget: our time over PyTorch's.
CASES = {
    "product": (product, 20, 1.0),
    "encoder layer": (encoder, 5, 1.2),
    "GPT step": (decoder, 5, 1.2),
    "MLP step": (perceptron, 10, 1.2),
    "CNN step": (convolutions, 10, 1.2),
}


def compare_steps(ours: Library, theirs: Library | None, small: bool) -> list[dict[str, Any]]:
    """Return our time and PyTorch's for each case, also by its compiler."""
    rows = []
    for name, (build, repeats, budget) in CASES.items():
        row: dict[str, Any] = {"case": name, "ours_ms": ours.time(build(ours, small), repeats), "budget": budget}
        if theirs is not None:
            row["torch_ms"] = theirs.time(build(theirs, small), repeats)
            row["ratio"] = row["ours_ms"] / row["torch_ms"]
            if theirs.device != "cpu":
                row["compiled_ms"] = theirs.time(theirs.root.compile(build(theirs, small)), repeats)
        rows.append(row)
    return rows


def compare_graphs(ours: Library, theirs: Library | None) -> dict[str, Any]:
    """Return the time of a small MLP's forward and backward pass from a CUDA graph, and PyTorch's eager time."""
    found: dict[str, Any] = {"case": "small MLP, CUDA graph", "budget": 0.5}
    for lib, key in ((ours, "ours_ms"), (theirs, "torch_ms")):
        if lib is None:
            continue
        layers = [lib.nn.Linear(64, 64), lib.nn.ReLU(), lib.nn.Linear(64, 10)]
        model, x = lib.nn.Sequential(*layers).to(lib.device), lib.rand(32, 64)

        def run(model: Any = model, x: Any = x) -> None:
            for p in model.parameters():
                p.grad = None
            model(x).square().mean().backward()

        if lib is ours:
            run()
            graph = lib.root.cuda.CUDAGraph()
            with lib.root.cuda.graph(graph):
                run()
            run = graph.replay
        found[key] = lib.time(run, 100)
    if theirs is not None:
        found["ratio"] = found["ours_ms"] / found["torch_ms"]
    return found


def measure_bandwidth(ours: Library, small: bool) -> list[dict[str, Any]]:
    """Return the bytes per second of memory-bound operators as shares of those of a copy; the budget is 0.85."""
    count = 1 << (12 if small else 28)
    x, y = ours.rand(count), ours.rand(count)
    weight = ours.rand(1024 if not small else 64)
    rows = x.reshape(-1, len(weight))
    copy = 2 * x.nbytes / ours.time(lambda: x.clone(), 5)
    cases: dict[str, tuple[Callable[[], Any], int]] = {
        "add": (lambda: x + y, 3), "exp": (lambda: x.exp(), 2), "gelu": (lambda: ours.functional.gelu(x), 2),
        "sum": (lambda: x.sum(), 1), "sum of rows": (lambda: rows.sum(-1), 1),
        "softmax": (lambda: ours.functional.softmax(rows, -1), 2),
        "layer norm": (lambda: ours.functional.layer_norm(rows, (len(weight),), weight, weight), 2),
    }  # fmt: skip
    return [
        {"case": name, "share_of_copy": moved * x.nbytes / ours.time(run, 5) / copy, "budget": 0.85}
        for name, (run, moved) in cases.items()
    ]


def measure_overhead(ours: Library) -> dict[str, Any]:
    """Return the host's microseconds for a small addition, and CuPy's own; the budget is a ratio of 1.5."""
    a, b = ours.rand(8), ours.rand(8)
    found: dict[str, Any] = {"case": "launch of an addition", "ours_us": ours.host_time(lambda: a + b, 2000)}
    if ours.device != "cpu":
        cupy = importlib.import_module("cupy")
        c, d = cupy.ones(8, "f"), cupy.ones(8, "f")
        found |= {"cupy_us": ours.host_time(lambda: c + d, 2000), "budget": 1.5}
        found["ratio"] = found["ours_us"] / found["cupy_us"]
    return found


def find_torch(device: str) -> Library | None:
    """Return PyTorch on the device, None where it is missing."""
    try:
        found = Library("torch", device)
    except ImportError:
        return None
    return found if device == "cpu" or found.root.cuda.is_available() else None


def main(arguments: list[str] | None = None) -> None:
    """Measure, print a table, and write build/device.json."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--small", action="store_true")
    options = parser.parse_args(arguments)
    ours, theirs = Library("retrograd", options.device), find_torch(options.device)
    on_gpu = options.device != "cpu"
    rows = compare_steps(ours, theirs, options.small)
    rows += [compare_graphs(ours, theirs)] if on_gpu else []
    rows += [*measure_bandwidth(ours, options.small), measure_overhead(ours)]
    name = ours.root.cuda.get_device_name() if on_gpu else "CPU"
    print(name)
    for row in rows:
        print("  ".join(f"{key} {value:.3g}" if isinstance(value, float) else f"{value}" for key, value in row.items()))
    REPORT.parent.mkdir(exist_ok=True)
    REPORT.write_text(json.dumps({"device": name, "rows": rows}, indent=1))


if __name__ == "__main__":
    main()

"""The checks of `retrograd doctor` apart from versions: the build, the threads, and a self-test."""

import math
import os
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from threadpoolctl import threadpool_info

import retrograd
from retrograd.interop.safetensors import load_file, save_file
from retrograd.kernels.processors import available_processors


def threads() -> Iterator[str]:
    """Return a line for the machine's cores, and one for each library with its own threads."""
    limits = [f"{name}={os.environ[name]}" for name in LIMITS if name in os.environ]
    usable = f"{available_processors()} of which this process may use"
    yield f"{os.cpu_count()} cores, {usable}; {', '.join(limits) or 'no limit of threads in the environment'}"
    for pool in threadpool_info():
        if pool["user_api"] == "blas":
            name, version, count = pool["internal_api"], pool["version"] or "", pool["num_threads"]
            yield f"BLAS: {name} {version}, {count} threads, {pool['filepath']}"


LIMITS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


def problems(config: Mapping[str, Any]) -> Iterator[str]:
    """Return the faults of a build that `show_config` describes, and what to do."""
    pure_requested = os.environ.get("RETROGRAD_PURE", "") not in ("", "0")
    rebuild = 'install a C and C++ compiler, then: pip install --force-reinstall --no-cache-dir "retrograd"'
    if pure_requested:
        yield "RETROGRAD_PURE is set, so nothing compiled is used, and small operators are slower: unset RETROGRAD_PURE"
    elif config["core"] == "mixed":
        pure = ", ".join(name for name, build in config["modules"].items() if build == "pure")
        yield f"only some modules of the core are compiled ({pure} are not), which is never tested: {rebuild}"
    elif config["core"] == "pure":
        yield f"the core is not compiled, so small operators are slower: {rebuild}"
    if config["kernels"] == "pure" and not pure_requested:
        yield f"the kernels are not compiled, so NumPy makes gelu, norms and others in more passes: {rebuild}"
    if config["kernels"] == "outdated":
        yield f"the kernels were compiled from older sources, so NumPy does their work: {rebuild}"
    if not any(pool["user_api"] == "blas" for pool in threadpool_info()):
        yield "no BLAS is known behind NumPy, so matrix products may be slow: pip install --force-reinstall numpy"


def self_test() -> Iterator[tuple[str, str]]:
    """Return each check, and its failure, or ""."""
    for name, check in CHECKS.items():
        try:
            yield name, "" if check() else "the result is wrong"
        except Exception as error:
            yield name, f"{type(error).__name__}: {error}"


def timed_self_test() -> tuple[list[tuple[str, str]], float]:
    """Return the results of the self-test, and its seconds."""
    start = time.perf_counter()
    results = list(self_test())
    return results, time.perf_counter() - start


# ------------------------------------------------------------------------------------------- self-test


def _gradient() -> bool:
    x = retrograd.tensor([0.5, 2.0], requires_grad=True)
    (grad,) = retrograd.autograd.grad((x.sin() * x).sum(), x)
    assert grad is not None
    expected = [math.sin(v) + v * math.cos(v) for v in (0.5, 2.0)]
    return all(math.isclose(a, b, rel_tol=1e-5) for a, b in zip(grad.tolist(), expected, strict=True))


def _product() -> bool:
    """Compute a product that is large enough for the BLAS's threads."""
    size = 200
    row = retrograd.arange(size).to("float64")
    product = row.reshape(size, 1).expand(size, size).matmul(retrograd.ones(size, size, dtype="float64"))
    return bool(product[3, 7].item() == 3 * size and product.sum().item() == size * size * sum(range(size)))


def _kernels() -> bool:
    x = retrograd.tensor([-1.0, 0.0, 1.0])
    gelu = retrograd.nn.functional.gelu(x).tolist()
    return all(
        math.isclose(got, v * (1 + math.erf(v / 2**0.5)) / 2, abs_tol=1e-6)
        for got, v in zip(gelu, x.tolist(), strict=True)
    )


def _transforms() -> bool:
    second = retrograd.func.vmap(retrograd.func.grad(retrograd.func.grad(lambda x: x**3)))
    return bool(second(retrograd.tensor([1.0, 2.0])).tolist() == [6.0, 12.0])


def _nested() -> bool:
    ragged = retrograd.nested.nested_tensor([[1.0], [2.0, 3.0]])
    return bool((ragged * 2).tolist() == [[2.0], [4.0, 6.0]])


def _training() -> bool:
    model = retrograd.nn.Linear(1, 1)
    optimizer = retrograd.optim.SGD(model.parameters(), lr=0.1)
    x = retrograd.tensor([[1.0]])
    losses = []
    for _ in range(3):
        optimizer.zero_grad()
        loss = ((model(x) - 5) ** 2).sum()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses[0] > losses[1] > losses[2]


def _files() -> bool:
    with TemporaryDirectory() as folder:
        path = Path(folder, "a.safetensors")
        save_file({"a": retrograd.ones(2)}, path)
        return bool(load_file(path)["a"].tolist() == [1.0, 1.0])


CHECKS: dict[str, Callable[[], bool]] = {
    "gradients": _gradient,
    "matrix products": _product,
    "kernels": _kernels,
    "transforms": _transforms,
    "nested tensors": _nested,
    "training": _training,
    "files": _files,
}

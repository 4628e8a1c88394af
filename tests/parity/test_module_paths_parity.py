"""Modules of PyTorch that scripts import by their paths: names that exist here have the same paths as there."""

import importlib.util
import pkgutil
import subprocess
import sys
from collections.abc import Iterator

import pytest
import torch

import retrograd as rg

from ..case_groups import group_cases
from .public_names.absent import matching
from .public_names.namespaces import NAMESPACES, _find, _public, names

# Packages of one device, of TorchScript and other languages, and of quantization; the tests of PyTorch; those of
# which `retrograd.pipelining`, `fx`, `export` and `sparse` have tests of their own names.
NOT_COMPARED = (
    "accelerator", "ao", "backends", "bin", "contrib", "csrc", "cuda", "distributed", "export", "fx", "headeronly",
    "include", "jit", "lib", "monitor", "mps", "mtia", "nativert", "nn.intrinsic", "nn.qat", "nn.quantizable",
    "nn.quantized", "numa", "onnx", "package", "quantization", "share", "sparse", "utils.benchmark", "utils.bottleneck",
    "utils.data.datapipes", "utils.hipify", "utils.jit", "utils.viz", "xpu",
)  # fmt: skip


def modules(package=torch) -> Iterator[str]:
    """Yield the paths of PyTorch's public modules, as "nn.modules.conv"."""
    for found in pkgutil.iter_modules(package.__path__, package.__name__ + "."):
        path = found.name.removeprefix("torch.")
        if not path.rpartition(".")[2].startswith("_") and path not in NOT_COMPARED:
            yield path
            if found.ispkg:
                yield from modules(importlib.import_module(found.name))


# Modules of PyTorch that an `import torch` happens to load; its documentation has programs import them.
NOT_LOADED = ("distributed.", "profiler.profiler", "signal.windows.windows")
MODULES = sorted(modules())
# A public name that exists here, by the identity of its function or class in PyTorch.
KNOWN = {
    id(_find(torch, name.path)): name.path
    for namespace in NAMESPACES
    if namespace != "Tensor"
    for name in names(namespace)
    if name.exists and callable(_find(torch, name.path))
}


@group_cases
@pytest.mark.filterwarnings("ignore")  # of modules that are deprecated
@pytest.mark.parametrize("path", MODULES)
def test_a_name_that_exists_here_has_the_same_paths_as_in_pytorch(path):
    theirs = importlib.import_module(f"torch.{path}")
    objects = {name: id(getattr(theirs, name)) for name in _public(theirs) if not matching(f"{path}.{name}")}
    wanted = {name: KNOWN[key] for name, key in objects.items() if key in KNOWN}
    if wanted:
        ours = importlib.import_module(f"retrograd.{path}")
        assert {
            name: known for name, known in wanted.items() if getattr(ours, name, None) is not _find(rg, known)
        } == {}


def test_most_modules_have_a_name_that_exists_here():
    assert len(MODULES) > 200
    assert len(KNOWN) > 1200


# Names that begin with an underscore, or belong to no namespace of docs/names.md, and that scripts use all the same.
USED = {
    "_C": "_get_tracing_state _log_api_usage_once",
    "backends.mkldnn": "is_available",
    "distributions.transforms": "_InverseTransform",
    "distributions.utils": "_standard_normal _sum_rightmost",
    "nn.common_types": "_size_1_t _size_2_t _size_3_t _size_any_t",
    "nn.init": "_calculate_fan_in_and_fan_out",
    "nn.modules.batchnorm": "_BatchNorm _NormBase",
    "nn.modules.conv": "_ConvNd _ConvTransposeNd",
    "nn.modules.dropout": "_DropoutNd",
    "nn.modules.instancenorm": "_InstanceNorm",
    "nn.modules.lazy": "LazyModuleMixin",
    "nn.modules.loss": "_Loss",
    "nn.modules.module": "_IncompatibleKeys",
    "nn.modules.padding": "_CircularPadNd _ConstantPadNd _ReflectionPadNd _ReplicationPadNd",
    "nn.modules.pooling": "_AdaptiveAvgPoolNd _AdaptiveMaxPoolNd _AvgPoolNd _LPPoolNd _MaxPoolNd _MaxUnpoolNd",
    "nn.modules.utils": "_ntuple _pair _quadruple _reverse_repeat_tuple _single _triple",
    "optim.lr_scheduler": "_LRScheduler",
    "optim.optimizer": "ParamsT required",
    "serialization": "MAP_LOCATION",
    "utils.data._utils.collate": "default_collate",
    "utils.dlpack": "from_dlpack",
    "utils.hooks": "RemovableHandle",
}


@pytest.mark.parametrize("path", USED)
def test_names_that_scripts_use_have_their_paths(path):
    theirs, ours = (importlib.import_module(f"{root}.{path}") for root in ("torch", "retrograd"))
    for name in USED[path].split():
        assert hasattr(theirs, name)
        assert hasattr(ours, name), name


CLASSES = [
    (path, name)
    for path, listed in USED.items()
    for name in listed.split()
    if isinstance(getattr(importlib.import_module(f"torch.{path}"), name), type)
]


@pytest.mark.parametrize(("path", "name"), CLASSES)
def test_the_same_layers_are_instances_of_a_base_class(path, name):
    def subclasses(library):
        base = getattr(importlib.import_module(f"{library.__name__}.{path}"), name)
        return {n for n in dir(library.nn) if isinstance(c := getattr(library.nn, n), type) and issubclass(c, base)}

    theirs = subclasses(torch) & set(dir(rg.nn))
    assert subclasses(rg) & set(dir(torch.nn)) == theirs


SIZES = ["3", "(1, 2)", "[4, 5, 6]", "'ab'", "range(2)", "None", "2.5"]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", ["_single", "_pair", "_triple", "_quadruple"])
def test_sizes_are_repeated_as_in_pytorch(name, size):
    ours, theirs = (
        getattr(importlib.import_module(f"{root}.nn.modules.utils"), name)(eval(size))
        for root in ("retrograd", "torch")
    )
    assert ours == theirs
    assert type(ours) is type(theirs) is tuple


def test_sides_are_repeated_in_reverse_as_in_pytorch():
    ours, theirs = (importlib.import_module(f"{root}.nn.modules.utils") for root in ("retrograd", "torch"))
    assert ours._reverse_repeat_tuple((1, 2, 3), 2) == theirs._reverse_repeat_tuple((1, 2, 3), 2)


LIST = """
import types, torch
def attributes(package, path=()):
    for name, value in list(vars(package).items()):
        inner = (*path, name)
        if isinstance(value, types.ModuleType) and value.__name__ == f"torch.{'.'.join(inner)}":
            print(".".join(inner))
            attributes(value, inner)
attributes(torch)
"""
LOOK_UP = """
import sys, operator, retrograd
for path in sys.argv[1:]:
    operator.attrgetter(path)(retrograd)
"""


def test_modules_are_attributes_of_their_packages_after_import_as_in_pytorch():
    listed = run_python(LIST).split()
    found = [path for path in listed if exists(path) and not path.startswith(NOT_LOADED)]
    assert len(found) > 100
    run_python(LOOK_UP, *found)


def run_python(script, *arguments):
    """Return the output of a script in a process of its own, in which no test has imported anything."""
    command = [sys.executable, "-W", "ignore", "-c", script, *arguments]
    return subprocess.run(command, check=True, text=True, stdout=subprocess.PIPE).stdout


def exists(path):
    """Return whether there is a module of this path here."""
    try:
        return importlib.util.find_spec(f"retrograd.{path}") is not None
    except ModuleNotFoundError:
        return False

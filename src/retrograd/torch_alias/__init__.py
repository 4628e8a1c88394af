"""Make `import torch` import this package, for unmodified programs and libraries.

python -m retrograd.torch_alias script.py [arguments]
python -m retrograd.torch_alias -m module [arguments]
"""

import functools
import importlib.util
import os
import runpy
import sys
from collections.abc import Callable
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

from retrograd.core import Tensor
from retrograd.core.dtype import TABLE, complex_of, is_floating, is_signed, real_of
from retrograd.distributions import Distribution
from retrograd.foundation.class_members import add_members, set_special_method
from retrograd.nn.members import Members
from retrograd.ops import legacy
from retrograd.ops.as_strided import broadcast_shapes
from retrograd.ops.dtype_aliases import dtype
from retrograd.ops.layout import Size, layout
from retrograd.torch_alias import foreach, private_names
from retrograd.torch_alias.private_names import ADDED
from retrograd.torch_alias.torch_version import TorchVersion
from retrograd.utils._pytree import register_pytree_node

PYTORCH_VERSION = TorchVersion(
    "2.13.0"
)  # whose behavior the tests compare: what libraries that ask for `torch.__version__` get

# Older paths of modules below `torch` -> those below this package.
OLDER_PATHS = {"distributed._composable": "distributed", "distributed._tensor": "distributed.tensor"}

# Paths of modules below `torch` that exist only for the alias -> their names in this package.
ALIAS_ONLY = {
    "_C._functorch": "functorch_levels",
    "_C._nn": "nn_private",
    "__config__": "config",
    "_dynamo": "dynamo",
    "_dynamo._trace_wrapped_higher_order_op": "dynamo",
    "_dynamo.config": "dynamo_config",
    "_dynamo.eval_frame": "dynamo",
    "_dynamo.utils": "dynamo",
    "_functorch": "functorch_package",
    "_functorch.apis": "functorch",
    "_functorch.deprecated": "functorch",
    "_functorch.eager_transforms": "functorch",
    "_functorch.functional_call": "functorch",
    "_functorch.make_functional": "functorch",
    "_functorch.vmap": "functorch_vmap",
    "_guards": "fake_tensor",
    "_ops": "operator_names",
    "_subclasses": "fake_tensor",
    "_subclasses.fake_tensor": "fake_tensor",
    "_subclasses.functional_tensor": "fake_tensor",
    "_tensor_str": "private_names",
    "_utils": "utils_private",
    "_vmap_internals": "private_names",
    "accelerator": "accelerator",
    "ao": "absent",
    "ao.nn": "absent",
    "ao.nn.intrinsic": "absent",
    "ao.nn.intrinsic.qat": "absent",
    "ao.nn.qat": "absent",
    "ao.nn.quantized": "absent",
    "ao.quantization": "absent",
    "cuda.nvtx": "nvtx",
    "distributed.autograd": "absent",
    "distributed.elastic": "elastic",
    "distributed.elastic.multiprocessing": "elastic",
    "distributed.elastic.multiprocessing.errors": "elastic",
    "distributed.rpc": "absent",
    "hub": "hub",
    "jit": "jit",
    "jit.annotations": "jit",
    "nn._reduction": "private_names",
    "nn.utils._named_member_accessor": "nn_private",
    "nn.attention.flex_attention": "flex_attention",
    "onnx": "onnx",
    "onnx.symbolic_helper": "onnx",
    "quantization": "absent",
    "utils._foreach_utils": "foreach_utils",
    "utils._contextlib": "contextlib",
    "torch_version": "torch_version",
    "utils.data._utils.worker": "data_worker",
    "utils.model_zoo": "hub",
    "version": "version",
}


SPAWNED = os.path.join(os.path.dirname(__file__), "spawned")  # the folder of the `torch` that spawned processes import

LAUNCHED = {"WORLD_SIZE", "PMI_SIZE", "OMPI_COMM_WORLD_SIZE"}  # variables that launchers set for each process


class _Alias(ModuleType):
    """The module `torch`: the attributes of retrograd, and PyTorch's version."""

    __version__ = PYTORCH_VERSION

    def __getattr__(self, name: str) -> Any:
        """Look a name up when it is first read; later reads find it in the module."""
        if _own(f"torch.{name}").startswith(__name__) or name == "distributed":
            found: Any = importlib.import_module(f"torch.{name}")
        elif name in foreach.NAMES:
            found = foreach.function(name)
        else:
            found = getattr(importlib.import_module("retrograd"), name)
        vars(self)[name] = found
        return found

    def __dir__(self) -> list[str]:
        return dir(importlib.import_module("retrograd"))


class _Finder:
    """A finder and loader of `sys.meta_path` for the modules below `torch`: they are those below `retrograd`."""

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        """Return the spec of a module below `torch`, where this package has one; None for all others."""
        if not name.startswith(("torch.", "functorch")) or not _exists(_own(name)):
            return None
        return ModuleSpec(name, self, is_package=True)  # type: ignore[arg-type]  # a loader without the base class

    def create_module(self, spec: ModuleSpec) -> None:
        """Let Python create a module, in whose place `exec_module` puts the one that exists."""

    def exec_module(self, module: ModuleType) -> None:
        """Register the module of this package under its name in PyTorch."""
        own = importlib.import_module(_own(module.__name__))
        vars(own).setdefault("__path__", [])  # so that Python looks below it for modules that exist only for the alias
        if module.__name__ == "torch.distributed":
            own.is_available = _launched  # type: ignore[attr-defined]
        sys.modules[module.__name__] = own


def _own(name: str) -> str:
    """Return the name here of a module of PyTorch: one that exists for this alias alone, or that below the package."""
    path = name.removeprefix("torch.")
    if path.partition(".")[0] == "functorch":  # a package of its own, which PyTorch installs
        return f"{__name__}.{path}"
    for old, new in OLDER_PATHS.items():
        if path == old or path.startswith(f"{old}."):
            path = new + path.removeprefix(old)
    return f"{__name__}.{ALIAS_ONLY[path]}" if path in ALIAS_ONLY else f"retrograd.{path}"


def _exists(name: str) -> bool:
    """Return whether there is a module of this name, and a package for each part of its path."""
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:
        return False


def _add_names(alias: Any) -> None:
    """Add what exists only for the alias to the modules of this package: names, and modules below them."""
    for path, names in ADDED.items():
        module: Any = importlib.import_module(f"retrograd.{path}") if path else alias
        for name in names.split():
            setattr(module, name, getattr(private_names, name))
    for path, name in ALIAS_ONLY.items():
        parent, _, child = path.rpartition(".")
        if parent and not hasattr(importlib.import_module(_own(f"torch.{parent}")), child):
            setattr(
                importlib.import_module(_own(f"torch.{parent}")), child, importlib.import_module(f"{__name__}.{name}")
            )


def _launched() -> bool:
    """Return whether this process is one of several, or has a process group.

    In all other processes `torch.distributed.is_available()` is False, as in a PyTorch built without `distributed`:
    libraries then import none of its parts that retrograd lacks, such as FullyShardedDataParallel.
    """
    initialized: bool = importlib.import_module("retrograd.distributed").is_initialized()
    return initialized or not LAUNCHED.isdisjoint(os.environ)


def _size(plain: property) -> property:
    """Return a property of a shape as one of a `Size`."""
    get = plain.__get__
    return property(lambda self: tuple.__new__(Size, get(self)))


def _broadcast_shapes(*shapes: Any) -> Size:
    """Return the shape that arrays of these shapes are broadcast to, as a `Size`."""
    return Size(broadcast_shapes(*shapes))


def _extended_shape(self: Distribution, sample_shape: Any = ()) -> Size:
    """Return the shape of draws as a `Size`."""
    return Size((*sample_shape, *self._batch_shape, *self._event_shape))


def _give_sizes(alias: Any) -> None:
    """Make the shapes that libraries get instances of `Size`."""
    Tensor.shape = _size(Tensor.shape)  # type: ignore[assignment,method-assign,arg-type]
    Distribution.batch_shape = _size(Distribution.batch_shape)  # type: ignore[assignment,method-assign,arg-type]
    Distribution.event_shape = _size(Distribution.event_shape)  # type: ignore[assignment,method-assign,arg-type]
    Distribution._extended_shape = _extended_shape  # type: ignore[method-assign]
    alias.broadcast_shapes = _broadcast_shapes
    legacy.shapes_are_sizes = True


def _name_package() -> None:
    """Make shapes, layouts and names of tensor types print as PyTorch's, which libraries compare and show."""
    Size.__repr__ = lambda self: f"torch.Size({list(self)})"  # type: ignore[method-assign]
    for cls, member in ((layout.__base__, "__repr__"), (Tensor, "type")):
        setattr(cls, member, _named_as_torch(getattr(cls, member)))


def _named_as_torch(method: Any) -> Any:
    """Return a method whose result, if it is a text, has PyTorch's name for the name of this package."""

    @functools.wraps(method)
    def call(*args: Any, **kwargs: Any) -> Any:
        result = method(*args, **kwargs)
        return result.replace("retrograd.", "torch.", 1) if isinstance(result, str) else result

    return call


def _unflatten_members(values: list, names: list) -> dict:
    """Return members as a dict, which they are in PyTorch."""
    return dict(zip(names, values, strict=True))


def _add_to_dtypes() -> None:
    """Give dtypes PyTorch's attributes; their class refuses `setattr`, as those of extension modules do."""
    attributes = {
        "is_floating_point": property(is_floating),
        "is_complex": property(lambda dtype: dtype.kind == "c"),
        "is_signed": property(is_signed),
        "to_complex": lambda dtype: complex_of(dtype),
        "to_real": lambda dtype: real_of(dtype),
    }
    add_members(dtype, attributes)
    for kind in {type(row.dtype) for row in TABLE.values()}:
        set_special_method(kind, "__str__", _text_as_torch(kind))


def _text_as_torch(kind: Any) -> Callable[[Any], str]:
    """Return a method of a class of dtypes that returns "torch.float32" to code of packages that have imported `torch`.

    Libraries take the name after the dot. NumPy, pandas and other packages get NumPy's text of the same dtypes.
    """

    show = kind.__str__

    def text(self: Any) -> str:
        package = sys._getframe(1).f_globals.get("__name__", "").partition(".")[0]
        return f"torch.{self.name}" if _imports_torch(package, len(sys.modules)) else show(self)

    return text


@functools.lru_cache
def _imports_torch(package: str, modules: int) -> bool:
    """Return whether a module of a package has imported `torch`; the number of all modules keeps answers up to date."""
    loaded = [module for name, module in [*sys.modules.items()] if name.partition(".")[0] == package]
    return any(isinstance(getattr(module, "__dict__", {}).get("torch"), _Alias) for module in loaded)


def install() -> None:
    """Make `import torch` and imports from it import this package, for every module of the process.

    Call it before importing what imports PyTorch; RuntimeError if PyTorch itself has been imported. It changes the
    process: `torch.__version__` is that of the PyTorch whose behavior retrograd follows, shapes of tensors and
    distributions become `rg.Size`, with `numel()`, and NumPy's dtypes get `is_floating_point`, `is_complex` and
    `is_signed`.

    >>> install()  # doctest: +SKIP
    >>> import torchdiffeq  # doctest: +SKIP
    """
    if isinstance(sys.modules.get("torch"), _Alias):
        return
    if "torch" in sys.modules:
        raise RuntimeError("install: torch has been imported already; call install() before whatever imports it")
    alias = _Alias("torch", "retrograd under PyTorch's name.")
    alias.torch = alias  # type: ignore[attr-defined]  # which PyTorch's module has, too
    alias.__path__ = []  # a package: Python looks for the modules below it by the finder
    alias.__spec__ = ModuleSpec("torch", None, is_package=True)
    sys.modules["torch"] = alias
    sys.meta_path.insert(0, _Finder())
    _add_to_dtypes()
    _give_sizes(alias)
    _name_package()
    Tensor._cdata = property(id)  # type: ignore[attr-defined]  # the address of PyTorch's object, which Pyro compares
    register_pytree_node(Members, lambda members: ([*members.values()], [*members]), _unflatten_members)
    _add_names(alias)


def main(arguments: list[str]) -> None:
    """Run a script or a module under this alias, as `python` does."""
    if not arguments or arguments == ["-m"]:
        sys.exit(__doc__)
    install()
    if arguments[0] == "-m":
        sys.argv = arguments[1:]
        runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)
    else:
        sys.argv = arguments
        sys.path[:1] = [os.path.dirname(os.path.abspath(arguments[0])), SPAWNED]
        runpy.run_path(arguments[0], run_name="__main__")

"""Operators, by family of use: those that most programs need are imported here, the others on first use."""

from retrograd import backend as backend
from retrograd.core import Operator as Operator
from retrograd.core import bind_arithmetic, registry
from retrograd.foundation.lazy_imports import lazy_submodule
from retrograd.ops import complex as complex
from retrograd.ops import create as create
from retrograd.ops import dtype_aliases as dtype_aliases
from retrograd.ops import functions as functions
from retrograd.ops import generator as generator
from retrograd.ops import index as index
from retrograd.ops import layout as layout
from retrograd.ops import layout_methods as layout_methods
from retrograd.ops import legacy as legacy
from retrograd.ops import linalg as linalg
from retrograd.ops import methods as methods
from retrograd.ops import mutate as mutate
from retrograd.ops import pickling as pickling
from retrograd.ops import pointwise as pointwise
from retrograd.ops import publish
from retrograd.ops import reduce as reduce
from retrograd.ops import to_dtype as to_dtype
from retrograd.ops import view as view
from retrograd.ops.contents import CONTENTS
from retrograd.ops.functions import functions as _functions
from retrograd.ops.functions import public_members
from retrograd.ops.user_namespaces import Namespace

_ARITHMETIC = "add sub mul div matmul pow neg remainder floor_divide lt le gt ge eq ne"

bind_arithmetic({name: registry[name] for name in _ARITHMETIC.split()})


def public_names(home=""):
    """Return the names in the namespace `rg.<home>` ("": `rg` itself) of operators and functions."""
    begin = f"{home}." if home else ""
    rest = [name.removeprefix(begin) for name in public_members.names() if name.startswith(begin)]
    return sorted(name for name in rest if "." not in name)


def public(home=""):
    """Return the operators and functions in the namespace `rg.<home>` ("": `rg` itself), by name."""
    return {name: public_members[f"{home}.{name}".lstrip(".")] for name in public_names(home)}


def imported():
    """Return the operators and functions in `rg` whose modules are imported with it, by name."""
    return {name: member for name, member in public_members.imported().items() if "." not in name}


def result_of(operator):
    """Return the annotation of a composite operator's result; None without one."""
    return getattr(getattr(operator.definition, "compose", None), "__annotations__", {}).get("return")


def return_types():
    """Return the classes of the named results of public operators and functions, by their names: "linalg_qr"."""
    kinds = {name: operator.definition.result_class for operator in registry.values() for name in operator.public_names}
    returned = {name: getattr(f, "__annotations__", {}).get("return") for name, f in _functions.items()}
    return {name.replace(".", "_"): kind for name, kind in (kinds | returned).items() if hasattr(kind, "_fields")}


def __getattr__(name):
    """A module of operators, imported on first use; or `rg.ops.ns`, if somebody has registered an operator there."""
    if name in CONTENTS:
        return lazy_submodule("retrograd.ops", name)
    if any(n.startswith(f"{name}::") for n in registry.names()):
        return Namespace(name)
    raise AttributeError(f"module 'retrograd.ops' has no attribute {name!r}, nor is there an operator '{name}::...'")


def __dir__():
    return sorted({*globals(), *CONTENTS})


publish.announce(CONTENTS)
publish.publish()

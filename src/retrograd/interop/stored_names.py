"""Names in files: operators with the schemas that they had, and classes; nothing is imported, and no code runs."""

import sys
from typing import Any

from retrograd.core import parse, registry
from retrograd.core.schema import Schema
from retrograd.foundation import result_classes
from retrograd.interop.json_values import StorageError, expect, text

MAX_SCHEMA_LENGTH = 4_000


def read_schema(name: str, stored: Any) -> Schema:
    """Return the schema that an operator had when the file was written; StorageError if the operator is unknown."""
    text(name, "the name of an operator")
    if name not in registry:
        package = name.partition("::")[0] if "::" in name else ""
        hint = (
            f"import the code that registers the operators of {package!r}, then load again"
            if package
            else "it is of another version of retrograd, or of code that is not imported"
        )
        raise StorageError(f"no operator named {name!r} is registered: {hint}")
    current = registry[name].schema
    if stored == str(current):
        return current
    expect(type(stored) is str and len(stored) <= MAX_SCHEMA_LENGTH, f"the schema of {name}", stored)
    try:
        schema = parse(stored, type(current))
    except Exception as error:  # the parser raises various errors for invalid text
        raise StorageError(f"the schema of {name!r} can't be read: {error}") from None
    if schema.name != name or schema.returns != current.returns:
        raise StorageError(f"the operator {name!r} is {current} here, and was {schema} where the file was written")
    return schema


def class_name(kind: type) -> tuple[str, str]:
    """Return the module and name by which a class can be looked up."""
    if find_class(kind.__module__, kind.__qualname__) is not kind:
        raise StorageError(
            f"the class {kind.__qualname__} is not to be found under that name in {kind.__module__}: define it at the "
            f"top of a module"
        )
    return kind.__module__, kind.__qualname__


def find_class(module: str, name: str) -> Any:
    """Return the object with a dotted name in an imported module, or None.  Nothing is imported, and no code runs."""
    found: Any = sys.modules.get(module)
    if module == result_classes.MODULE:  # which nobody needs to import for the results of operators
        return result_classes.classes.get(name)
    for part in name.split("."):
        found = vars(found).get(part) if isinstance(found, (type, type(sys))) else None
    return found

"""The functions of the library that keep a call from being compiled whole: an edit elsewhere can't change them."""

import types
from pathlib import Path

from retrograd.compiler.python_watch import _PURE, _kind_of
from retrograd.foundation.source_location import PACKAGE

LISTED = Path(__file__).with_name("functions_with_effects.txt")
WHOLE = [name for name in _PURE if (Path(PACKAGE) / name).is_dir()]  # packages of which a step may call anything


def functions_in(code):
    """Yield the code of the functions and methods that a module or a class defines."""
    for member in code.co_consts:
        if isinstance(member, types.CodeType):
            if not member.co_flags & 2:  # the body of a class, which has no fast variables
                yield from functions_in(member)
            elif "<" not in member.co_name:
                yield member


def functions_with_effects():
    """Return the names of the functions in packages without effects that nevertheless refuse a capture."""
    paths = [path for name in WHOLE for path in sorted((Path(PACKAGE) / name).rglob("*.py"))]
    found = [(path, code) for path in paths for code in functions_in(compile(path.read_text(), str(path), "exec"))]
    run = [(path, code) for path, code in found if code.co_name != "__annotate__"]  # annotations, from Python 3.14 on
    names = [(path.relative_to(PACKAGE).with_suffix(""), code) for path, code in run if _kind_of(code)]
    return [f"{module.as_posix().replace('/', '.')}.{code.co_qualname}" for module, code in names]


def test_functions_with_effects_are_the_listed_ones():
    found, listed = functions_with_effects(), LISTED.read_text().split()
    added, gone = sorted(set(found) - set(listed)), sorted(set(listed) - set(found))
    assert not added, (
        f"{added} keep steps from being compiled: list them in {LISTED.name}, or have them in other modules"
    )
    assert not gone, f"{gone} are not refused by compile any more: drop them from {LISTED.name} if they have no effects"
    assert listed == sorted(listed), "keep the list sorted"

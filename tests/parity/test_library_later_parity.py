"""Functions that are registered for an operator before it is defined."""

import pytest
import torch

import retrograd as rg

PROGRAMS = [
    "lib.impl('f', lambda x: x * 2, 'CPU'); lib.define('f(Tensor x) -> Tensor')",
    "lib.impl('f', lambda x: x * 2); lib.define('f(Tensor x) -> Tensor')",
    "lib.impl('f', lambda x: x * 2, 'CompositeExplicitAutograd'); lib.define('f(Tensor x) -> Tensor')",
    "m.library.Library(ns, 'IMPL').impl('f', lambda x: x * 2, 'CPU'); lib.define('f(Tensor x) -> Tensor')",
    "k = m.library.Library(ns, 'IMPL'); k.impl('f', lambda x: x * 2, 'CPU'); lib.define('f(Tensor x) -> Tensor')",
    "lib.impl('f', lambda x: x * 2, 'CPU'); lib._destroy(); new.define('f(Tensor x) -> Tensor')",
    "m.library.impl(ns + '::f', 'cpu', lambda x: x * 2, lib=lib); lib.define('f(Tensor x) -> Tensor')",
    "m.library.impl(ns + '::f', 'cpu')(lambda x: x * 3); lib.define('f(Tensor x) -> Tensor')",
    "m.library.impl(ns + '::f', 'CPU')(lambda x: x * 3); lib.define('f(Tensor x) -> Tensor')",
    "lib.impl('f', lambda x: x * 2, 'CPU'); lib.impl('f', lambda x: x * 3, 'CPU'); lib.define('f(Tensor x) -> Tensor')",
    "lib.impl('f', lambda x: x * 2, 'CPU')",
]  # fmt: skip


def called_after(m, program, ns):
    """Return the result of an operator after a program that defines it, or the class of the error."""
    lib, new = (m.library.Library(ns, "FRAGMENT") for _ in range(2))
    scope = {"m": m, "ns": ns, "lib": lib, "new": new}
    try:
        exec(program, scope)
        return getattr(m.ops, ns).f(m.ones(2)).tolist()
    except (AttributeError, NotImplementedError) as error:
        return type(error)


@pytest.mark.parametrize("number", range(len(PROGRAMS)))
@pytest.mark.filterwarnings("ignore")
def test_a_function_may_be_registered_before_its_operator_is_defined(number):
    results = [called_after(m, PROGRAMS[number], f"defined_later_{number}") for m in (rg, torch)]
    assert results[0] == results[1]

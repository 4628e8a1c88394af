"""Functions on lists of tensors, `torch._foreach_NAME`, give PyTorch's results under the alias."""

import numpy as np
import pytest
import torch

import retrograd as rg
from retrograd.torch_alias import foreach, foreach_utils

NAMES = sorted(name for name in dir(torch) if name.startswith(foreach.PREFIX))
LISTS = "[a, a], [b, b]"
ARGUMENTS = {
    "add": ("a", "2.0", "[1.0, 2.0]", "a, alpha=3.0", "m.tensor(2.0)"),
    "addcdiv": ("a, a", "a, a, 2.0", "a, a, [1.0, 2.0]", "a, a, value=0.5"),
    "addcmul": ("a, a", "a, a, 2.0", "a, a, [1.0, 2.0]", "a, a, value=0.5"),
    "clamp_max": ("0.7", "[0.3, 0.6]", "a"),
    "copy_": ("[x * 2 for x in a]", "[x * 2 for x in a], non_blocking=True"),
    "div": ("a", "2.0", "[1.0, 2.0]", "m.tensor(2.0)"),
    "lerp": ("[x + 1 for x in a], 0.3", "[x + 1 for x in a], a", "[x + 1 for x in a], [0.1, 0.2]"),
    "mm": ("[x.T for x in a]",),
    "norm": ("", "1", "ord=float('inf')", "2, dtype=m.float64"),
    "pow": ("2", "a", "[2, 3]"),
    "sub": ("a", "2.0", "[1.0, 2.0]", "a, alpha=3.0"),
}
ARGUMENTS |= dict.fromkeys(["clamp_min", "maximum", "minimum"], ARGUMENTS["clamp_max"])
ARGUMENTS |= {"mul": ARGUMENTS["div"], "powsum": ARGUMENTS["norm"]}


def outcome(library, functions, name, arguments):
    numbers = np.random.default_rng(0)
    a = [library.tensor(numbers.uniform(0.2, 0.9, size=size).astype("float32")) for size in ((2, 3), (3, 2))]
    result = eval(f"f(a, {arguments})", {"f": functions(name), "a": a, "m": library})
    assert type(result) is (list if name.endswith("_") else tuple)
    return [x.numpy() for x in (*result, *a)]


@pytest.mark.parametrize("name", NAMES)
def test_a_function_on_lists_gives_pytorchs_results(name):
    plain = name.removeprefix(foreach.PREFIX)
    for arguments in ARGUMENTS.get(plain) or ARGUMENTS.get(plain.removesuffix("_"), ("",)):
        theirs = outcome(torch, lambda n: getattr(torch, n), name, arguments)
        ours = outcome(rg, foreach.function, name, arguments)
        for found, expected in zip(ours, theirs, strict=True):
            assert found.dtype == expected.dtype
            np.testing.assert_allclose(found, expected, rtol=2e-6, err_msg=arguments)


def test_a_number_is_raised_to_the_powers_of_a_list():
    powers = foreach.function("_foreach_pow")(2.0, [rg.ones(1), rg.zeros(1)])
    assert [x.item() for x in powers] == [x.item() for x in torch._foreach_pow(2.0, [torch.ones(1), torch.zeros(1)])]


def test_the_names_are_pytorchs():
    assert set(NAMES) == foreach.NAMES


@pytest.mark.parametrize("library", [rg, torch])
def test_lists_of_other_lengths_are_refused(library):
    add = foreach.function("_foreach_add") if library is rg else torch._foreach_add
    with pytest.raises(RuntimeError, match="Tensor lists must have the same number of tensors, got 2 and 1"):
        add([library.ones(1), library.ones(1)], [library.ones(1)])


@pytest.mark.parametrize("with_indices", [False, True])
def test_lists_are_grouped_as_in_pytorch(with_indices):
    def groups(library, group):
        a = [library.ones(1), library.ones(1, dtype=library.float64), library.zeros(1)]
        found = group([a, [1, 2, 3] if library is rg else [None] * 3, []], with_indices)
        return [([x.item() for x in lists[0]], len(lists[2]), indices) for lists, indices in found.values()]

    theirs = groups(torch, torch.utils._foreach_utils._group_tensors_by_device_and_dtype)
    ours = groups(rg, foreach_utils._group_tensors_by_device_and_dtype)
    assert sorted(ours) == sorted(theirs)

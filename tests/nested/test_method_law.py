"""Every public method and function on nested tensors agrees with the components, or raises a clear error."""

import copy
import inspect
import io
import pickle
import re
import types
import warnings

import numpy as np
import pytest

import retrograd as rg
from retrograd.core import Tensor
from retrograd.foundation.lazy_imports import load_all
from retrograd.nested import nested_tensor
from retrograd.ops.batch_loop import PerformanceWarning

from ..case_groups import group_cases
from ..tables import ALL_SAMPLES
from .test_aliasing import KINDS, leaves

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")

KINDS = {
    **KINDS,
    "integers": lambda: nested_tensor([[1, 2], [3]]),
    "flags": lambda: nested_tensor([[True, False], [True]]),
    "unsqueezed": lambda: KINDS["jagged"]().unsqueeze(0),
}


@pytest.fixture(autouse=True)
def quiet():
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore", PerformanceWarning)
        yield


# ------------------------------------------------------------------------------------------------- writing in place

WRITERS = sorted(n for n in dir(Tensor) if n.endswith("_") and n[0] != "_" and hasattr(getattr(Tensor, n), "writes"))
OTHERS = {
    "nothing": lambda x: (),
    "a number": lambda x: (2,),
    "itself": lambda x: (x.clone(),),
    "a row": lambda x: (rg.full((3,), 2.0),),
    "two numbers": lambda x: (0, 1),
    "two": lambda x: (x.clone(), x.clone()),
}


def outcome(call):
    """Return the result of a call, or its error."""
    try:
        return call(), None
    except (RuntimeError, ValueError, TypeError, IndexError, ZeroDivisionError) as error:
        return None, error


def numbers(x):
    """Return all elements as one array, and the structure."""
    return np.asarray([v for leaf in leaves(x) for v in flat(leaf.tolist())]), shape_of(x.tolist())


def flat(value):
    return [number for member in value for number in flat(member)] if isinstance(value, list) else [value]


def shape_of(value):
    return [shape_of(member) for member in value] if isinstance(value, list) else None


@group_cases
@pytest.mark.parametrize("name", WRITERS)
def test_in_place_is_the_operator_written_into_the_tensor(name):
    operator = getattr(Tensor, name).writes
    for kind in ("holes", "several", "sets", "integers"):
        make = KINDS[kind]
        for which, others in OTHERS.items():
            rg.manual_seed(0)
            x = make()
            expected, refusal = outcome(lambda x=x, others=others: operator(x, *others(x)))
            rg.manual_seed(0)
            y, before = make(), make().tolist()
            found, error = outcome(lambda y=y, others=others: getattr(y, name)(*others(y)))
            if error is not None:
                assert y.tolist() == before, f"{kind}, {which}: {error}"
                fits = refusal is None and expected.shape == x.shape and rg.can_cast(expected.dtype, x.dtype)
                assert not fits, f"{kind}, {which}: {error}"
            else:
                assert refusal is None, f"{kind}, {which}: {refusal}"
                assert found is y
                assert numbers(y)[1] == numbers(expected)[1]
                np.testing.assert_array_equal(
                    numbers(y)[0], numbers(expected.to(y.dtype))[0], err_msg=f"{kind} {which}"
                )


@pytest.mark.parametrize("kind", KINDS)
def test_functions_of_numbers_are_applied_to_every_element(kind):
    x = KINDS[kind]()
    kind_of = type(x.dtype.type(0).item())
    y = x.clone()
    assert y.apply_(lambda v: v * 3) is y
    assert y.tolist() == each_number(lambda v: kind_of(v * 3), x.tolist())
    assert y.map_(x, lambda a, b: a - 2 * b).tolist() == each_number(lambda v: kind_of(v * 3 - 2 * v), x.tolist())
    with pytest.raises(TypeError, match="apply_: expected a function of numbers, got int"):
        y.apply_(3)
    with pytest.raises(TypeError, match="map_: expected a Tensor, got int"):
        y.map_(3, max)


def each_number(function, value):
    return [each_number(function, member) for member in value] if isinstance(value, list) else function(value)


# ---------------------------------------------------------------------------------------------- others of one shape

LIKE = sorted(n for n in dir(rg) if n.endswith("_like"))
GIVEN = {"full_like": (7,), "randint_like": (5,)}


@group_cases
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", LIKE)
def test_tensors_like_a_nested_one_have_its_structure(name, kind):
    x = KINDS[kind]()
    if name.startswith("rand") and x.dtype.kind not in "fc":
        return
    if name.startswith("randint") and x.dtype.kind == "c":
        return
    made = getattr(rg, name)(x, *GIVEN.get(name, ()))
    assert (made.is_nested, made.shape, made.dtype) == (True, x.shape, x.dtype)
    assert shape_of(made.tolist()) == shape_of(x.tolist())
    value = {"zeros_like": 0, "ones_like": 1, "full_like": 7}.get(name)
    assert value is None or all(v == x.dtype.type(value) for v in flat(made.tolist()))
    wide = getattr(rg, name)(x, *GIVEN.get(name, ()), dtype=rg.float64, requires_grad=True)
    assert (wide.dtype, wide.requires_grad, wide.shape) == (rg.float64, True, x.shape)


@pytest.mark.parametrize("call", [rg.Tensor.contiguous, rg.empty_like, rg.zeros_like, rg.Tensor.double])
def test_orders_of_dense_dimensions_are_refused(call):
    x = nested_tensor([rg.ones(1, 2, 3), rg.ones(1, 1, 3)])
    found, error = outcome(lambda: call(x, memory_format=rg.channels_last))
    assert error is None or re.search(r"memory_format", str(error)), (found, error)


# ------------------------------------------------------------------------------------------------ storing and copying


def saved(x):
    file = io.BytesIO()
    rg.save({"x": x, "again": [x]}, file)
    found = rg.load(file)
    assert found["again"][0] is found["x"]
    return found["x"]


WAYS = {"saved": saved, "pickled": lambda x: pickle.loads(pickle.dumps(x)), "deepcopied": copy.deepcopy}


@group_cases
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", KINDS)
def test_stored_tensors_come_back(kind, way):
    x = KINDS[kind]()
    y = WAYS[way](x)
    assert (y.tolist(), y.shape, y.dtype, y.is_nested) == (x.tolist(), x.shape, x.dtype, True)
    y.mul_(0) if x.dtype.kind != "b" else y.logical_not_()
    assert x.tolist() == KINDS[kind]().tolist()


def test_state_dicts_with_nested_tensors_are_saved():
    module = rg.nn.Module()
    module.w = rg.nn.Parameter(KINDS["jagged"]())
    rg.save(module.state_dict(), file := io.BytesIO())
    module.w.data.zero_()
    module.load_state_dict(rg.load(file))
    assert module.w.tolist() == KINDS["jagged"]().tolist()


def test_values_share_memory_in_a_file_as_they_did():
    x = rg.nested.as_nested_tensor(KINDS["jagged"](), layout=rg.jagged)
    rg.save([x, x.values()], file := io.BytesIO())
    y, rows = rg.load(file)
    rows.zero_()
    assert y.tolist() == (x * 0).tolist()


# ------------------------------------------------------------------------------------- no error is an internal one

INTERNAL = re.compile(
    r"object has no attribute|Ragged\b|Structure\b|unsupported operand|object is not subscriptable|shape mismatch|"
    r"could not be broadcast|operands could not|cannot unpack|values to unpack"
)
ALLOWED = (RuntimeError, ValueError, TypeError, IndexError, NotImplementedError, ZeroDivisionError, BufferError)
TRIED = [
    lambda x: (),
    lambda x: (2,),
    lambda x: (x,),
    lambda x: (rg.ones(3),),
    lambda x: (0, 1),
    lambda x: (1, rg.tensor([0])),
    lambda x: (x, x),
    lambda x: (1, rg.tensor([0]), x),
    lambda x: (None,),
    lambda x: ("sum",),
    lambda x: (lambda v: v,),
]
SKIPPED = (
    "__deepcopy__ __array_ufunc__ __class__ __init_subclass__ __subclasshook__ __new__ __init__ __reduce_ex__ "
    "__setattr__ __delattr__ __getattribute__ __tensor_function__ save load compile manual_seed seed set_default_dtype "
    "set_num_threads set_printoptions tofile"
)
SKIPPED = set(SKIPPED.split())
FEW = ("several", "sets")


def public_functions():
    for home in (rg, rg.nn.functional, rg.linalg, rg.special, rg.fft, rg.nested):
        for name in getattr(home, "__all__", None) or sorted(vars(home)):
            f = getattr(home, name)
            if callable(f) and not isinstance(f, type | types.ModuleType) and name[0] != "_" and name not in SKIPPED:
                yield f"{home.__name__}.{name}", f


def internal_error(call, x, args):
    """Return the error of a call if it is an internal one; None for any other outcome."""
    try:
        call(x, *args)
    except ALLOWED as error:
        return error if INTERNAL.search(str(error)) or not str(error) else None
    except Exception as error:
        return error
    return None


def faults(call, kinds=FEW):
    for kind in kinds:
        # Calls with many arguments are refused before the kind matters: the first kind is given all of them.
        for number, arguments in enumerate(TRIED if ALL_SAMPLES or kind == kinds[0] else TRIED[:4]):
            x = KINDS[kind]()
            error = internal_error(call, x, arguments(x))
            if error is not None:
                yield f"{kind}, arguments {number}: {type(error).__name__}: {error}"


load_all()
METHODS = sorted(n for n in dir(Tensor) if n not in SKIPPED and callable(inspect.getattr_static(Tensor, n)))


@group_cases
@pytest.mark.parametrize("name", METHODS)
def test_no_method_ends_in_an_internal_error(name):
    assert list(faults(getattr(Tensor, name))) == []


FUNCTIONS = dict(public_functions())


@group_cases
@pytest.mark.parametrize("name", [n for n in FUNCTIONS if n.rpartition(".")[2] not in METHODS])
def test_no_function_ends_in_an_internal_error(name):
    assert list(faults(FUNCTIONS[name])) == []


def test_an_internal_error_is_detected():
    assert list(faults(lambda x, *args: x.nothing))
    assert list(faults(lambda x, *args: None)) == []

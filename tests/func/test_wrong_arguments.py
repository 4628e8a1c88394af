"""Arguments of another kind than a transform takes are refused by its name and theirs, in every transform."""

import inspect

import pytest
from tests.case_groups import group_cases
from tests.test_suggestions import NAMES, member

import retrograd as rg
from retrograd import func, hips, nn

X = rg.ones(3)
FUNCTIONS = ("func", "fun", "f", "fn", "function", "combine_fn")  # names of parameters that are functions
# They take modules or vectors, have a decorator's form, or raise PyTorch's errors with words of their own.
OTHERS = ("compile", "save", "load", "checkpoint", "has_side_effect", "map_nodes", "redispatch_function", "primitive")
OTHERS += (
    "associative_scan",
    "scan",
    "map",
    "disabled_override",
    "is_tensor_method_or_property",
    "resolve_name",
    "fallback",
    "gradients",
    "dispatch",
    "return_and_correct_aliasing",
    "apply",
    "leslie",
)


def takes_function(name):
    return inspect.isfunction(member(name)) and next(iter(inspect.signature(member(name)).parameters), "") in FUNCTIONS


CALLERS = [name for name in NAMES if name.rpartition(".")[2] not in OTHERS and takes_function(name)]


def required(function):
    """Return a value for each further argument without a default, by position and by keyword."""
    parameters = list(inspect.signature(function).parameters.values())[1:]
    needed = [p for p in parameters if p.default is p.empty and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    position = [X for p in needed if p.kind is not p.KEYWORD_ONLY]
    return position, {p.name: sum for p in needed if p.kind is p.KEYWORD_ONLY}


def test_there_are_such_functions_in_all_packages_that_take_functions():
    owners = {name.split(".")[1] for name in CALLERS}
    assert owners >= {"func", "vmap", "autograd", "implicit", "ode", "hips", "testing", "grad"}


@group_cases
@pytest.mark.parametrize("name", CALLERS)
def test_an_argument_that_is_no_function_is_named(name):
    function = member(name)
    args, kwargs = required(function)
    parameter = next(iter(inspect.signature(function).parameters))
    for wrong, got in ((3, "3"), ("sin", "'sin'"), (X, r"a Tensor of shape \(3,\) .*; pass the function, not its")):
        with pytest.raises(TypeError, match=rf"^{function.__name__}: {parameter} must be a function, got {got}"):
            function(wrong, *args, **kwargs)


@pytest.mark.parametrize("solve", [rg.implicit.root, rg.implicit.fixed_point, rg.implicit.argmin])
def test_so_is_one_by_keyword(solve):
    with pytest.raises(TypeError, match=f"{solve.__name__}: solver must be a function, got 'newton'"):
        solve(lambda x: x, 1.0, solver="newton")
    with pytest.raises(TypeError, match=f"{solve.__name__}: f must be a function, got 3"):
        solve(f=3, x0=1.0, solver=sum)


BY_ARGNUMS = (func.grad, func.grad_and_value, func.jacrev, func.jacfwd, func.hessian)
WRONG_ARGNUMS = {
    "text": ("x", "argnums must be an int or a tuple of ints, got 'x'"),
    "a number": (0.0, "argnums must be an int or a tuple of ints, got 0.0"),
    "a list": ([0], r"argnums must be an int or a tuple of ints, got \[0\]"),
    "a tensor": (X, r"argnums must be an int or a tuple of ints, got a Tensor of shape \(3,\)"),
    "none": ((), "argnums must not be empty"),
    "one too many": (1, "argnums has 1, but there are only 1 positional"),
    "one twice": ((0, -1), r"argnums elements must be unique, got \(0, -1\)"),
}


@pytest.mark.parametrize("transform", BY_ARGNUMS)
@pytest.mark.parametrize("case", WRONG_ARGNUMS)
def test_argnums_are_refused_by_the_transform_that_was_called(transform, case):
    argnums, message = WRONG_ARGNUMS[case]
    with pytest.raises(RuntimeError, match=f"^{transform.__name__}: .*{message}"):
        transform(lambda x: (x**3).sum(), argnums)(X)


@pytest.mark.parametrize("transform", [func.sparse_jacobian, func.sparse_hessian, func.jacobian_sparsity])
def test_sparse_transforms_take_one_argnum(transform):
    with pytest.raises(TypeError, match=rf"^{transform.__name__}: argnums must be one int, got \(0,\)"):
        transform(lambda x: x.sum(), (0,))(X)


@pytest.mark.parametrize("name", ["grad", "value_and_grad", "elementwise_grad", "jacobian", "deriv", "make_vjp"])
def test_so_are_argnums_of_transforms_of_arrays(name):
    transform = getattr(hips, name)
    for wrong in ("x", 1.5, None, True, (0, "x"), X):
        with pytest.raises(TypeError, match=f"^{name}: argnum must be an int or a tuple of them, got "):
            transform(lambda x: x.sum(), wrong)
    for wrong in (1, -2, (0, 1)):
        with pytest.raises(IndexError, match=f"^{name}: argnum has -?[12], but there are only 1 positional arguments"):
            transform(lambda x: x.sum(), wrong)(X)


def test_a_result_without_scalar_is_refused_by_the_transform_that_was_called():
    for transform in (func.grad, func.grad_and_value):
        with pytest.raises(RuntimeError, match=f"^{transform.__name__}: .*the function must return a real scalar"):
            transform(lambda x: x)(X)
    for transform in (func.jacrev, func.jacfwd, func.hessian):
        with pytest.raises(RuntimeError, match=f"^{transform.__name__}: .*must return tensors only, got int"):
            transform(lambda x: 3)(X)
        with pytest.raises(RuntimeError, match=f"^{transform.__name__}: .*real.* but received complex"):
            transform(lambda x: x.sum())(X + 0j)


@pytest.mark.parametrize("wrong", ["a", 1.5, X, None, [0], {0: 0}])
def test_in_dims_of_another_kind_are_refused(wrong):
    with pytest.raises(ValueError, match=r"^vmap\(.*in_dims must be an int, or a tuple"):
        func.vmap(lambda x: x, in_dims=wrong)(X)


@pytest.mark.parametrize("wrong", ["a", 1.5])
def test_in_dims_and_out_dims_hold_ints_and_none(wrong):
    with pytest.raises(ValueError, match=r"^vmap\(.*in_dims may hold ints and None"):
        func.vmap(lambda x: x, in_dims=(wrong,))(X)
    with pytest.raises(ValueError, match=r"^vmap\(.*out_dims may hold ints and None"):
        func.vmap(lambda x: x, out_dims=wrong)(X)


@pytest.mark.parametrize("transform", [func.vmap, func.jacrev, func.jacfwd, func.sparse_jacobian, func.sparse_hessian])
def test_sizes_of_chunks_are_whole_numbers_from_1_up(transform):
    for wrong, error in (("2", TypeError), (1.5, TypeError), (0, ValueError), (-1, ValueError)):
        with pytest.raises(error, match=f"^{transform.__name__}: .*chunk_size must be at least 1, got {wrong!r}"):
            transform(lambda x: x, chunk_size=wrong)


@pytest.mark.parametrize("transform", [func.vmap, func.jacfwd])
def test_randomness_is_refused_by_the_transform_that_was_called(transform):
    with pytest.raises(RuntimeError, match=f"{transform.__name__}: randomness must be one of"):
        transform(lambda x: x, randomness="maybe")


@pytest.mark.parametrize("wrong", [X, {}, nn.Linear, lambda x: x])
def test_functions_of_modules_take_modules(wrong):
    for name, call in {
        "functional_call": lambda: func.functional_call(wrong, {}, X),
        "stack_module_state": lambda: func.stack_module_state([wrong]),
        "replace_all_batch_norm_modules_": lambda: func.replace_all_batch_norm_modules_(wrong),
    }.items():
        with pytest.raises(TypeError, match=f"^{name}: expected a Module, got "):
            call()
    with pytest.raises(TypeError, match=r"^stack_module_state: expected a list of models, got Linear"):
        func.stack_module_state(nn.Linear(2, 2))

"""PyTorch's databases of custom Functions, custom operators, control flow and layers give the same results here."""

import importlib
import inspect
import re
import types
from itertools import count
from types import SimpleNamespace

import pytest
import torch
from torch.testing._internal import common_nn

import retrograd as rg

from .module_database import Sample, functional_differences, tensor
from .operator_database.comparison import Comparison
from .operator_database.conversion import Converter, rebind, same_path
from .operator_database.sides import seed

pytestmark = pytest.mark.filterwarnings("ignore")

# What is replaced in the source of a database, so that the same lines define our functions.
REPLACED = {
    "import torch\n": "import retrograd as torch\n",
    "from torch import Tensor": "from retrograd import Tensor",
    "from functorch.experimental.control_flow import map": "from retrograd.higher_order import map",
    "all_types_and(torch.bool, torch.half)": "()",
    "custom_types(*dtypes)": "()",
    "    OpInfo(": "    Entry(",
}
ABSENT = {
    "map nested": "PyTorch's compiler fails for it if other tests have run in the process; its values alone agree",
    "map triple_nested": "takes PyTorch's compiler seconds, and has no more than the nested one",
    "invoke_subgraph": "a mark for PyTorch's compiler",
    "invoke_quant": "a mark for PyTorch's compiler",
    "invoke_quant_packed": "a mark for PyTorch's compiler",
    "while_loop_stack_output": "a part of PyTorch's derivative of while_loop",
    "flex_attention": "for GPUs in PyTorch; its masks and scores are arguments of nested attention here",
    "flex_attention_backward": "a part of PyTorch's derivative of flex_attention",
    "flex_attention_backward explicit_buffers": "a part of PyTorch's derivative of flex_attention",
    "local_map_hop": "for distributed tensors",
    "register_hook": "a mark for PyTorch's compiler; Tensor.register_hook is here",
    "inline_asm_elementwise": "an instruction of a GPU",
}


def name_of_entry(entry):
    return f"{entry.name} {entry.variant_test_name}".removesuffix("simple").strip()


# Random results; a layer that PyTorch has deprecated; sparse gradients, which tests/parity/test_sparse* compare.
LEFT_OUT = "RReLU|CrossMapLRN2d|Embedding(Bag)?_sparse"


def pairs(database):
    """Return (name, PyTorch's entry, our function) of the entries of a database."""
    theirs = importlib.import_module(f"torch.testing._internal.{database}")
    source = inspect.getsource(theirs)
    for old, new in REPLACED.items():
        source = source.replace(old, new)
    ours = types.ModuleType(f"ours_{database}")
    ours.Entry = lambda name, **settings: SimpleNamespace(name=name, **settings)
    exec(compile(source, theirs.__file__, "exec"), vars(ours))
    entries = zip(getattr(theirs, database), getattr(ours, database), strict=True)
    return [(name_of_entry(e), e, own.op) for e, own in entries if name_of_entry(e) not in ABSENT]


PAIRS = [pair for database in ("autograd_function_db", "custom_op_db", "hop_db") for pair in pairs(database)]


@pytest.mark.parametrize(("entry", "function"), [pair[1:] for pair in PAIRS], ids=[pair[0] for pair in PAIRS])
def test_functions_and_operators_give_the_results_of_pytorch(entry, function):
    seed()
    plain = SimpleNamespace(
        op=entry.op, gradcheck_wrapper=entry.gradcheck_wrapper, inplace_variant=None, supports_out=False
    )
    for sample in entry.sample_inputs("cpu", torch.float64, requires_grad=entry.supports_autograd):
        assert Comparison(entry.name, plain, function, sample).run().differences == {}


def layer_tests():
    """Return the settings of PyTorch's older tests of layers and losses, by name."""
    numbers = count()
    named = {}
    for settings in [*common_nn.module_tests, *common_nn.get_new_module_tests(), *common_nn.criterion_tests]:
        name = settings.get("fullname") or settings.get("module_name") or settings["constructor"].__name__
        if not re.match(LEFT_OUT, name):
            named[f"{name} {settings.get('desc', '')} {next(numbers)}"] = settings
    return named


LAYERS = layer_tests()


def value(settings, name):
    """Return an argument of a test: as it is, made by a function, or of a size."""
    if f"{name}_fn" in settings:
        return settings[f"{name}_fn"]()
    if f"{name}_size" in settings:
        return of_size(settings[f"{name}_size"])
    return settings.get(name, ())


def of_size(size):
    return [of_size(s) for s in size] if isinstance(size, list) else torch.randn(size)


def our_constructor(settings):
    """Return our layer for a test: of the same name, or a function as a module."""
    if "module_name" in settings:
        return getattr(rg.nn, settings["module_name"], None)
    made = settings["constructor"]
    if not isinstance(made, type):
        return rebind(made)
    function, kwargs = (cell.cell_contents for cell in made.forward.__closure__)
    call = same_path(function)
    forward = lambda self, *args: call(*args, **Converter().convert(kwargs))  # noqa: E731
    return type("FunctionalModule", (rg.nn.Module,), {"forward": forward})


@pytest.mark.parametrize("name", LAYERS)
def test_layers_and_losses_give_the_results_of_pytorch(name):
    settings = LAYERS[name]
    seed()
    their_class = settings.get("constructor") or getattr(torch.nn, settings["module_name"])
    our_class = our_constructor(settings)
    args, given = value(settings, "constructor_args"), value(settings, "input")
    given = given if isinstance(given, tuple) else (given,)
    targets = (value(settings, "target"),) if {"target_fn", "target_size", "target"} & settings.keys() else ()
    call = double((*given, *targets, *value(settings, "extra_args")))
    converter = Converter()
    modules = their_class(*args).double(), our_class(*converter.convert(args)).double()
    sample = Sample(name, *modules, (call, {}), (converter.convert(call), {}))
    sample.ours.load_state_dict({k: tensor(v) for k, v in sample.theirs.state_dict().items()})
    assert functional_differences(name, sample) == {}


def double(values):
    floats = [isinstance(v, torch.Tensor) and v.is_floating_point() for v in values]
    return tuple(v.double().requires_grad_() if chosen else v for v, chosen in zip(values, floats, strict=True))

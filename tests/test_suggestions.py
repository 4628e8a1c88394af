"""A misspelt name, keyword or option is answered by the right one: every public callable is drawn."""

import contextlib
import inspect
import io
import re
import sys
from pathlib import Path

import pytest
from tests.case_groups import group_cases

import retrograd as rg
import retrograd.nested
from retrograd.core import registry
from retrograd.core.dispatch import call
from retrograd.core.schema import REQUIRED
from retrograd.foundation.suggestions import for_family
from retrograd.testing.sampler import samples_of

NAMES = [
    line.split(": ")[0].split("(")[0]
    for line in (Path(__file__).parent / "api.txt").read_text().splitlines()
    if line.startswith("rg.") and not line.endswith((": attribute", ": module"))
]
# Errors of these calls are not Python's: scikit-learn makes methods for its metadata, context managers compiled with
# Cython check their arguments when they are entered, and a wrapped step looks for its optimizer first.
NOT_DRAWN = ("rg.sklearn.", "rg.fx.Tracer.module_scope", "rg.library.sanitize", "rg.random.fork_rng")
NOT_DRAWN += ("rg.utils.short_turns", "rg.optim.Optimizer.step")


def member(path):
    found = rg
    for name in path.split(".")[1:]:
        found = getattr(found, name)
    return found


def misspelt(name):
    """Return a name without its next to last letter."""
    return name[:-2] + name[-1]


def keywords(function):
    """Return the names of arguments that are long enough for a misspelling to be recognized."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return []
    if any(p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters):
        return []
    names = [p.name for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]
    ambiguous = {"self", *(f"{name}s" for name in names)}  # graphs, next to graph
    return [name for name in names if len(name) >= 5 and misspelt(name) not in names and name not in ambiguous]


CALLABLES = [name for name in NAMES if not name.startswith(NOT_DRAWN) and keywords(member(name))]


FAMILIES = (
    rg.nn.Module,
    rg.optim.Optimizer,
    rg.optim.lr_scheduler.LRScheduler,
    rg.distributions.Distribution,
    rg.distributions.Transform,
    rg.utils.data.Dataset,
    rg.utils.data.Sampler,
    rg.utils.data.DataLoader,
    rg.amp.GradScaler,
    rg.pipelining.Pipeline,
    rg.pipelining.PipelineScheduleSingle,
    rg.pipelining.PipelineScheduleMulti,
)


# Modules whose functions suggest keywords before Python 3.13: they run once a step or more rarely.
NAMES_OF_MODULES = """func.batch func.reverse func.forward func.jacobians func.modules func.taylor func.sparse
autograd.functional.products distributed.collectives implicit.solvers nn.init nn.utils.clip_grad
nn.utils.convert_parameters nn.utils.fusion nn.utils.parametrizations nn.utils.parametrize nn.utils.rnn
testing.calculus func.autograd_api ode distributed distributed.objects distributed.groups distributed.point_to_point
interop.safetensors pipelining.schedules nn.parallel"""
MODULES_THAT_SUGGEST = [f"retrograd.{name}" for name in NAMES_OF_MODULES.split()]


def suggests_keywords(path):
    """Return whether an error of a call suggests keywords: Python itself does so for its functions from 3.13 on."""
    function = member(path)
    ours = issubclass(function, FAMILIES) if isinstance(function, type) else not inspect.isroutine(function)
    home = function.__module__
    listed = inspect.isfunction(function) and (home in MODULES_THAT_SUGGEST or home.startswith("retrograd.scipy."))
    python = sys.version_info >= (3, 13) and type(function).__name__ != "cython_function_or_method"
    return ours or python or (listed and function.__qualname__ == function.__name__)


def message_of(call):
    with pytest.raises(TypeError) as caught:
        call()
    return str(caught.value)


@pytest.mark.filterwarnings("ignore::FutureWarning")  # of older names
@group_cases
@pytest.mark.parametrize("path", CALLABLES)
def test_a_misspelt_keyword_is_answered_by_the_right_one(path):
    function = member(path)
    for name in keywords(function):
        text = message_of(lambda n=name: function(**{misspelt(n): None}))
        assert f"got an unexpected keyword argument '{misspelt(name)}'" in text, name
        if suggests_keywords(path):
            assert f"Did you mean '{name}'?" in text, name
        if isinstance(function, type) and issubclass(function, FAMILIES):
            assert text.startswith(f"{function.__name__}.__init__() "), name  # not the base that defines it


OTHER_NAMES = [
    (lambda: rg.optim.Adam([rg.ones(1)], learning_rate=0.1), "lr"),
    (lambda: rg.nn.Dropout(prob=0.1), "p"),
    (lambda: rg.nn.LayerNorm(3, epsilon=1e-5), "eps"),
    (lambda: rg.nn.Linear(3, 4, use_bias=False), "bias"),
    (lambda: rg.func.grad(rg.sin, argnum=0), "argnums"),
    (lambda: rg.vmap(rg.sin, in_axes=0), "in_dims"),
]


@pytest.mark.parametrize(("call", "name"), OTHER_NAMES)
@pytest.mark.skipif(sys.version_info >= (3, 13), reason="Python's own suggestions know similar names only")
def test_names_of_other_libraries_are_answered_by_ours(call, name):
    assert message_of(call).endswith(f"Did you mean '{name}'?")


@pytest.mark.parametrize("path", ["arange", "empty", "full", "eye", "zeros_like", "hann_window", "fft.fftfreq"])
def test_keywords_that_creation_functions_have_in_common_are_suggested(path):
    create = member(f"rg.{path}")
    text = message_of(lambda: create(rg.ones(2) if "like" in path else 3, devie="cpu"))
    assert f"{path.split('.')[-1]}() got an unexpected keyword argument 'devie'. Did you mean 'device'?" in text


MODULES = """nn nn.functional nn.init nn.utils optim optim.lr_scheduler autograd func linalg fft special distributions
utils.data nested fx export library pipelining amp signal.windows"""
OBJECTS = {
    "rg": rg,
    **{f"rg.{name}": member(f"rg.{name}") for name in MODULES.split()},
    "a tensor": rg.ones(2),
    "a layer": rg.nn.Linear(2, 3),
    "an optimizer": rg.optim.SGD([rg.ones(1)], lr=0.1),
    "a distribution": rg.distributions.Normal(0.0, 1.0),
}


def printed_error(owner, name):
    """Return what Python prints when an attribute is missing."""
    printed = io.StringIO()
    with contextlib.redirect_stderr(printed):
        try:
            getattr(owner, name)
        except AttributeError as error:
            sys.__excepthook__(type(error), error, None)
    return printed.getvalue()


@group_cases
@pytest.mark.parametrize("owner", OBJECTS)
def test_a_misspelt_name_is_answered_by_the_right_one(owner):
    names = [name for name in dir(OBJECTS[owner]) if name[0].isalpha() and len(name) >= 6]  # pytest adds "@" names
    assert names
    for name in names[:: max(1, len(names) // 40)]:
        printed = printed_error(OBJECTS[owner], misspelt(name))
        assert not printed or printed.count("Did you mean") == 1, name
        suggested = re.findall(r"Did you mean:? '(\w+)'", printed)
        assert not printed or suggested[0] in dir(OBJECTS[owner]), name


@pytest.mark.parametrize(
    ("call", "suggested"),
    [
        (lambda: rg.sofmax, "softmax"),
        (lambda: rg.nn.Liner, "Linear"),
        (lambda: rg.nn.functional.rellu, "relu"),
        (lambda: rg.ones(2).requires_gard, "requires_grad"),
        (lambda: rg.nn.Linear(2, 3).wieght, "weight"),
        (lambda: rg.optim.AdmW, "AdamW"),
    ],
)
def test_the_nearest_name_is_suggested(call, suggested):
    printed = io.StringIO()
    with contextlib.redirect_stderr(printed):
        try:
            call()
        except AttributeError as error:
            sys.__excepthook__(type(error), error, None)
    assert re.search(f"Did you mean:? '{suggested}'", printed.getvalue())


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda: rg.jit, "rg.compile"),
        (lambda: rg.nn.Dense, "rg.nn.Linear"),
        (lambda: rg.jvp, "rg.func.jvp or rg.autograd.functional.jvp"),
        (lambda: rg.Adam, "rg.optim.Adam"),
        (lambda: rg.nn.cross_entropy, "rg.nn.functional.cross_entropy"),
        (lambda: rg.optim.StepLR, "rg.optim.lr_scheduler.StepLR"),
        (lambda: rg.autograd.draw, "rg.autograd.graph.draw or rg.fx.draw"),
        (lambda: rg.nn.tensor, "rg.tensor"),
        (lambda: rg.optim.kaiming_normal_, "rg.nn.init.kaiming_normal_"),
    ],
)
def test_a_name_of_another_module_or_library_is_answered_by_the_full_one(call, name):
    with pytest.raises(AttributeError) as caught:
        call()
    assert str(caught.value).endswith(f"; use {name}")  # the message itself: notebooks show nothing else


def test_the_message_itself_suggests_a_layer_written_otherwise():
    for written, name in (("Conv2D", "Conv2d"), ("Relu", "ReLU"), ("Layer_Norm", "LayerNorm")):
        assert not hasattr(rg.nn, written)
        with pytest.raises(AttributeError, match=f"Did you mean '{name}'"):
            getattr(rg.nn, written)


def test_a_missing_name_costs_no_search_until_it_is_printed(monkeypatch):
    monkeypatch.setattr("retrograd.foundation.suggestions.did_you_mean", lambda name, known: 1 / 0)
    assert not hasattr(rg, "sofmax")
    assert not hasattr(rg.nn.Linear(1, 1), "wieght")


@pytest.mark.parametrize(
    "make", [lambda: rg.utils.data.DataLoader([1], pin_memory=True), lambda: rg.amp.GradScaler("cuda")]
)
def test_warnings_of_constructors_name_the_line_that_calls_them(make):
    with pytest.warns(UserWarning, match="there is no") as caught:
        make()
    assert [warning.filename for warning in caught] == [__file__]


def test_errors_inside_of_a_constructor_get_no_suggestion():
    def factor(epoch):
        raise TypeError("scale() got an unexpected keyword argument 'lastepoch'")

    with pytest.raises(TypeError) as caught:
        rg.optim.lr_scheduler.LambdaLR(rg.optim.SGD([rg.ones(1)], lr=0.1), factor)
    assert "Did you mean" not in str(caught.value)


# -------------------------------------------------------------------------------------------------------- options

OPTIONAL = [
    (name, p.name)
    for name, op in registry.items()
    for p in op.schema.parameters
    if p.type.startswith("str") and p.default is not REQUIRED
]


def message_about_option(call):
    with pytest.raises((ValueError, RuntimeError, TypeError)) as caught:
        call()
    return str(caught.value)


@group_cases
@pytest.mark.parametrize(("name", "option"), OPTIONAL)
def test_a_misspelt_option_of_an_operator_is_answered_by_the_options(name, option):
    op = registry[name]
    (parameter,) = [p for p in op.schema.parameters if p.name == option]
    inputs, params = next(iter(samples_of(op)))
    text = message_about_option(lambda: call(op, inputs, {**params, option: "misspelt"}))
    assert "misspelt" in text
    assert option.removeprefix("pad_") in text
    assert parameter.default in text if parameter.default else " or " in text or "one of" in text


ARGUMENTS = {
    "rg.nn.Conv": (1, 1, 1),
    "rg.nn.LazyConv": (1, 1),
    "rg.nn.EmbeddingBag": (3, 2),
    "rg.nn.RNN": (2, 3),
    "rg.nn.TransformerE": (4, 2),
    "rg.nn.TransformerD": (4, 2),
    "rg.nn.init.": (rg.ones(2, 2),),
    "rg.optim.": (rg.optim.SGD([rg.ones(1)], lr=0.1, momentum=0.5),),
    "rg.optim.lr_scheduler.CyclicLR": (rg.optim.SGD([rg.ones(1)], lr=0.1, momentum=0.5), 0.1, 0.2),
    "rg.optim.swa_utils.SWALR": (rg.optim.SGD([rg.ones(1)], lr=0.1), 0.1),
    "rg.nn.utils.rnn.pad_sequence": ([rg.ones(2)],),
    "rg.func.": (rg.sin,),
    "rg.vmap": (rg.sin,),
    "rg.nn.LinearCrossEntropyLoss": (2, 3),
}
REQUIRED_KEYWORDS = {"rg.optim.lr_scheduler.OneCycleLR": {"max_lr": 0.1, "total_steps": 3}}
# The arguments of a second call, where the first returns a function or a layer that checks its options when it runs.
CALLED_WITH = {"rg.func.jacfwd": rg.ones(2), "rg.nn.GELU": rg.ones(2), "rg.nn.Upsample": rg.ones(1, 1, 4)}
# Names that users choose, and objects that are looked up by name when they are used.
FREE = {
    "name",
    "prefix",
    "device",
    "device_type",
    "class_name",
    "root_module",
    "order",
    "casting",
    "new_order",
    "transport",
}


def options(path):
    """Return the string options of a callable that is no operator, with their defaults."""
    try:
        parameters = inspect.signature(member(path)).parameters.values()
    except (TypeError, ValueError):
        return []
    return [(p.name, p.default) for p in parameters if isinstance(p.default, str) and p.name not in FREE]


CHOICES = [
    (path, *option)
    for path in NAMES
    if path.startswith(("rg.nn.", "rg.optim.", "rg.func.", "rg.vmap"))
    and path.removeprefix("rg.nn.functional.") == path
    for option in options(path)
]


@pytest.mark.filterwarnings("ignore::FutureWarning")
@group_cases
@pytest.mark.parametrize(("path", "option", "default"), CHOICES)
def test_a_misspelt_option_is_answered_by_the_options(path, option, default):
    args = next((ARGUMENTS[prefix] for prefix in sorted(ARGUMENTS, reverse=True) if path.startswith(prefix)), ())
    keywords = {**REQUIRED_KEYWORDS.get(path, {}), option: "misspelt"}

    def call():
        made = member(path)(*args, **keywords)
        if path in CALLED_WITH:
            made(CALLED_WITH[path])

    text = message_about_option(call)
    assert "misspelt" in text
    assert default in text


def test_a_family_keeps_what_its_base_does_with_subclasses():
    @for_family(lambda subclass: None)
    class Base:
        def __init_subclass__(cls, **options):
            super().__init_subclass__(**options)
            cls.noted = True

    class Derived(Base):
        pass

    assert Derived.noted

"""Suggestions for misspelt names: "Did you mean 'x'?".

Python suggests attributes in tracebacks, and from 3.13 on keywords in messages.  This adds what it does not suggest.
"""

import functools
import importlib
import inspect
import operator
import sys
import types
from collections.abc import Mapping

from retrograd.foundation.describe_value import describe
from retrograd.foundation.function_arguments import check_function_arguments, explain_kind, function_parameters

_SUGGESTS_KEYWORDS = sys.version_info >= (3, 13)
# Names of arguments in other libraries, and ours.
SYNONYMS = {
    "learning_rate": "lr", "l2": "weight_decay", "beta_1": "betas", "beta1": "betas", "epsilon": "eps", "prob": "p",
    "rate": "p", "axis": "dim", "axes": "dim dims", "keepdims": "keepdim", "argnum": "argnums", "use_bias": "bias",
    "filters": "out_channels", "units": "out_features", "file": "f", "path": "f", "filename": "f",
    "size_average": "reduction", "reduce": "reduction", "seed": "generator", "in_axes": "in_dims",
    "out_axes": "out_dims", "epochs": "max_iter", "gpu": "cuda",
}  # fmt: skip
# Names of JAX, HIPS autograd, Flax and Keras, and ours.
FOREIGN_NAMES = {
    "jit": "rg.compile", "lax": "rg.cond, rg.higher_order", "tree": "optree", "tree_util": "optree",
    "tree_map": "optree.tree_map", "custom_vjp": "rg.library.custom_op", "custom_jvp": "rg.library.custom_op",
    "make_jaxpr": "rg.fx.trace", "extend": "retrograd.hips.extend", "PRNGKey": "rg.Generator", "key": "rg.Generator",
    "Dense": "rg.nn.Linear", "Conv": "rg.nn.Conv2d", "Embed": "rg.nn.Embedding", "Variable": "rg.tensor",
    "onnx": "rg.export",
}  # fmt: skip
# The modules where a name is looked for that another module lacks.
_SEARCHED = (
    "func nn nn.functional nn.init nn.utils optim optim.lr_scheduler nested utils utils.data utils.checkpoint "
    "distributions linalg special fft autograd autograd.functional autograd.graph fx export library sparse pipelining"
)
_UNKNOWN_KEYWORD = " got an unexpected keyword argument '"
# The errors of functions for arguments of another kind.
_EXPLAINED = AttributeError, TypeError, ValueError, ArithmeticError, LookupError, StopIteration, RuntimeError


def did_you_mean(name, known):
    """Return ". Did you mean 'x'?" for the known name that is most similar to a misspelt one; "" if there is none.

    >>> did_you_mean("kepdim", ["dim", "keepdim", "dtype"]), did_you_mean("x", ["dim"])
    (". Did you mean 'keepdim'?", '')
    >>> did_you_mean("learning_rate", ["params", "lr"])
    ". Did you mean 'lr'?"
    """
    known = [*known]
    synonyms = [word for word in SYNONYMS.get(name, "").split() if word in known]
    spelt = [word for word in known if _letters(word) == _letters(name)]  # Conv2D, crossentropy
    similar = synonyms or spelt or importlib.import_module("difflib").get_close_matches(name, known, 1)
    return f". Did you mean {similar[0]!r}?" if similar else ""


def _letters(name):
    return name.replace("_", "").lower()


def suggest_entry(checkpoint, fits):
    """Return which entry of a checkpoint to load instead of the whole; "" if there is no mapping for which fits(entry).

    >>> suggest_entry({"epoch": 3, "model": {"weight": 1.0}}, lambda entry: "weight" in entry)
    "Its entry 'model' is such a state: load_state_dict(checkpoint['model'])"
    """
    found = [key for key, entry in checkpoint.items() if isinstance(entry, Mapping) and fits(entry)]
    return f"Its entry {found[0]!r} is such a state: load_state_dict(checkpoint[{found[0]!r}])" if found else ""


def unfit_argument(function, parameter, type_name, value, dtypes=(), takes_list=False):
    """Return the message for a value that can't be converted to the type of a parameter.

    dtypes: names of dtypes, for a parameter of that type. takes_list: whether the function takes a list of tensors.

    >>> unfit_argument("zeros", "dtype", "dtype", "flot32", ["float32", "int32"])
    "zeros(): dtype must be dtype, got 'flot32' (str). Did you mean 'float32'?"
    """
    shape = getattr(value, "shape", None)
    got = f"{describe(value)} ({type(value).__name__})" if shape is None else describe(value)
    hint = did_you_mean(value, dtypes) if isinstance(value, str) and type_name.startswith("dtype") else ""
    if takes_list and shape is not None:
        hint = f"; put the tensors into a list: {function}([a, b])"
    expected = f"{type_name[:-1]} or None" if type_name.endswith("?") else type_name
    return f"{function}(): {parameter} must be {expected}, got {got}{hint}"


class MissingNameError(AttributeError):
    """A name that a module of the package lacks; looks for the right one only when the message is read."""

    def __init__(self, module, name, known):
        super().__init__(f"module {module!r} has no attribute {name!r}", name=name, obj=None)
        self.known = known

    def __str__(self):
        found = FOREIGN_NAMES.get(self.name) or _full_name(self.name)
        return super().__str__() + (f"; use {found}" if found else did_you_mean(self.name, self.known))


def _full_name(name):
    """Return the names under which other modules of the package have a member; "" if none has."""
    package, found = __name__.partition(".")[0], {}
    for part in (*_SEARCHED.split(), ""):
        module = operator.attrgetter(part)(sys.modules[package]) if part else sys.modules[package]
        member = getattr(module, name, None)
        if str(getattr(member, "__module__", "")).startswith(package):
            found.setdefault(id(member), f"rg.{part}.{name}" if part else f"rg.{name}")
    return " or ".join(found.values())


def suggest_keyword(error, known):
    """Add a suggestion to the message of a TypeError for an unknown keyword; leave other errors as they are."""
    call, found, words = str(error).partition(_UNKNOWN_KEYWORD)
    name, _, rest = words.partition("'")
    suggested = did_you_mean(name, known) if found and rest[:1] in ("", ".") and "Did you mean" not in rest else ""
    if suggested:
        error.args = (f"{call}{found}{name}'{suggested}{rest.removeprefix('.')}",)


def _is_for_unknown_keyword_of(function, error):
    """Return whether a TypeError is that for an unknown keyword of this function, or of a class of its name."""
    called, found, _ = str(error).partition(f"(){_UNKNOWN_KEYWORD}")
    return bool(found) and called.removesuffix(".__init__") == function.__qualname__.removesuffix(".__init__")


def bind_arguments(name, signature, args, kwargs):
    """Return the bound arguments of a call; raise the TypeErrors of Python for a function of this name."""
    try:
        return signature.bind(*args, **kwargs)
    except TypeError as error:
        unknown = [key for key in kwargs if key not in signature.parameters]
        words = f"got an unexpected keyword argument {unknown[0]!r}" if unknown else str(error)
        refused = TypeError(f"{name}() {words}")
        suggest_keyword(refused, signature.parameters)
        raise refused from None


def suggest_keywords(function):
    """Decorator: append a suggestion to Python's TypeError for an unknown keyword of this function.

    Arguments that are annotated as Callable are checked, `check_function_arguments`, and other annotated ones after a
    failure: `explain_kind`.

    >>> @suggest_keywords
    ... def scale(x, factor=2):
    ...     return x * factor
    >>> scale(3, facter=3)
    Traceback (most recent call last):
    TypeError: scale() got an unexpected keyword argument 'facter'. Did you mean 'factor'?
    """
    functions = function_parameters(function)
    if _SUGGESTS_KEYWORDS and not function.__annotations__.keys() - {"return"}:
        function._suggests_for = function  # wrappers of a constructor copy it: `suggest_init_keywords`
        return function

    @functools.wraps(function)
    def call(*args, **kwargs):
        check_function_arguments(function.__name__, functions, args, kwargs)
        try:
            return function(*args, **kwargs)
        except _EXPLAINED as error:
            if isinstance(error, TypeError) and _is_for_unknown_keyword_of(function, error):
                suggest_keyword(error, inspect.signature(function).parameters)
            else:
                explain_kind(function, args, kwargs, error)
            raise

    call._suggests_for = function
    return call


def suggest_in_module(namespace):
    """Make the public functions and classes that a module defines suggest keywords: its last line, given `globals()`.

    For modules whose functions run once a step or more rarely: each call costs a Python frame more.  A function that
    a decorator registers elsewhere needs `suggest_keywords` below that decorator, or it is another one there.
    """
    suggesting = {}  # function -> the one that suggests: two names of one function stay one
    for name, value in namespace.items():
        own = getattr(value, "__module__", None) == namespace["__name__"] and name[0] != "_"
        if own and inspect.isfunction(value) and not hasattr(value, "__wrapped__"):
            namespace[name] = suggesting[value] = suggesting.get(value) or suggest_keywords(value)
        elif (
            own
            and inspect.isclass(value)
            and not hasattr(vars(value).get("__init__", suggest_keywords), "_suggests_for")
        ):
            suggest_init_keywords(value)


def suggest_init_keywords(cls):
    """Make the constructor of a class of this package suggest keywords, under the name of this class; return the class.

    An inherited constructor is copied: errors of `Conv2d(kernel=3)` name `Conv2d`, not a base that nobody has called.
    Users' classes are left alone: their tracebacks would get longer.
    """
    if cls.__module__.partition(".")[0] == __name__.partition(".")[0]:
        init = vars(cls).get("__init__") or getattr(cls.__init__, "_suggests_for", cls.__init__)
        if isinstance(init, types.FunctionType):
            own = "__init__" in vars(cls)
            cls.__init__ = suggest_keywords(init if own else _renamed(init, f"{cls.__qualname__}.__init__"))
    return cls


def _renamed(function, qualname):
    """Return a copy of a function whose errors show another qualified name."""
    copy = types.FunctionType(
        function.__code__, function.__globals__, function.__name__, function.__defaults__, function.__closure__
    )
    copy.__kwdefaults__, copy.__qualname__ = function.__kwdefaults__, qualname
    return functools.update_wrapper(copy, function, ("__module__", "__doc__", "__annotations__"), ())


def for_family(change):
    """Return a decorator of the base of a family of classes, which calls `change` with it and with each subclass.

    A common base class would do so too, but all families would then share it, and Python would order the bases of a
    class of two families, such as a module that is a distribution, in another way than the two families say.

    >>> @for_family(lambda cls: print(cls.__name__))
    ... class Layer: ...
    Layer
    >>> class Dense(Layer): ...
    Dense
    """

    def decorate(cls):
        own = vars(cls).get("__init_subclass__")

        def init_subclass(subclass, **options):
            if own is None:
                super(cls, subclass).__init_subclass__(**options)
            else:
                own.__func__(subclass, **options)
            change(subclass)

        cls.__init_subclass__ = classmethod(init_subclass)
        change(cls)
        return cls

    return decorate


suggests_keywords = for_family(suggest_init_keywords)  # of each constructor

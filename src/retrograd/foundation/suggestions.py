"""Suggestions for misspelt names: "Did you mean 'x'?".

Python suggests attributes in tracebacks, and from 3.13 on keywords in messages.  This adds what it does not suggest.
"""

import functools
import importlib
import inspect
import sys

LARGEST_NAMESPACE = 750  # in a larger one, Python does not look for similar names
_SUGGESTS_KEYWORDS = sys.version_info >= (3, 13)
CALLER_OF_INIT = 2 if _SUGGESTS_KEYWORDS else 3  # stacklevel of warnings in a constructor that suggests keywords
# Names of arguments in other libraries, and ours.
SYNONYMS = {
    "learning_rate": "lr", "l2": "weight_decay", "beta_1": "betas", "beta1": "betas", "epsilon": "eps", "prob": "p",
    "rate": "p", "axis": "dim", "axes": "dim dims", "keepdims": "keepdim", "argnum": "argnums", "use_bias": "bias",
    "filters": "out_channels", "units": "out_features", "file": "f", "path": "f", "filename": "f",
    "size_average": "reduction", "reduce": "reduction", "seed": "generator",
}  # fmt: skip
_UNKNOWN_KEYWORD = " got an unexpected keyword argument '"


def did_you_mean(name, known):
    """Return ". Did you mean 'x'?" for the known name that is most similar to a misspelt one; "" if there is none.

    >>> did_you_mean("kepdim", ["dim", "keepdim", "dtype"]), did_you_mean("x", ["dim"])
    (". Did you mean 'keepdim'?", '')
    >>> did_you_mean("learning_rate", ["params", "lr"])
    ". Did you mean 'lr'?"
    """
    known = [*known]
    synonyms = [word for word in SYNONYMS.get(name, "").split() if word in known]
    similar = synonyms or importlib.import_module("difflib").get_close_matches(name, known, 1)
    return f". Did you mean {similar[0]!r}?" if similar else ""


def unfit_argument(function, parameter, type_name, value, dtypes=(), takes_list=False):
    """Return the message for a value that can't be converted to the type of a parameter.

    dtypes: names of dtypes, for a parameter of that type. takes_list: whether the function takes a list of tensors.

    >>> unfit_argument("zeros", "dtype", "dtype", "flot32", ["float32", "int32"])
    "zeros(): dtype must be dtype, got 'flot32' (str). Did you mean 'float32'?"
    """
    shape = getattr(value, "shape", None)
    got = f"{value!r} ({type(value).__name__})" if shape is None else f"a {type(value).__name__} of shape {shape}"
    hint = did_you_mean(value, dtypes) if isinstance(value, str) and type_name.startswith("dtype") else ""
    if takes_list and shape is not None:
        hint = f"; put the tensors into a list: {function}([a, b])"
    return f"{function}(): {parameter} must be {type_name}, got {got}{hint}"


def missing_name(message, name, known):
    """Return the AttributeError of a name that a module lacks; Python suggests another one if it has few."""
    return AttributeError(message) if len(known) <= LARGEST_NAMESPACE else MissingNameError(message, name, known)


class MissingNameError(AttributeError):
    """A name that a large module lacks; looks for a similar one only when the message is read."""

    def __init__(self, message, name, known):
        super().__init__(message, name=name, obj=None)
        self.known = known

    def __str__(self):
        return super().__str__() + did_you_mean(self.name, self.known)


def suggest_keyword(error, known):
    """Add a suggestion to the message of a TypeError for an unknown keyword; leave other errors as they are."""
    call, found, words = str(error).partition(_UNKNOWN_KEYWORD)
    name, _, rest = words.partition("'")
    suggested = did_you_mean(name, known) if found and rest[:1] in ("", ".") and "Did you mean" not in rest else ""
    if suggested:
        error.args = (f"{call}{found}{name}'{suggested}{rest.removeprefix('.')}",)


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

    >>> @suggest_keywords
    ... def scale(x, factor=2):
    ...     return x * factor
    >>> scale(3, facter=3)
    Traceback (most recent call last):
    TypeError: scale() got an unexpected keyword argument 'facter'. Did you mean 'factor'?
    """
    if _SUGGESTS_KEYWORDS:
        return function

    @functools.wraps(function)
    def call(*args, **kwargs):
        try:
            return function(*args, **kwargs)
        except TypeError as error:
            if error.__traceback__.tb_next is None:  # the function itself did not begin
                suggest_keyword(error, inspect.signature(function).parameters)
            raise

    return call


def suggest_in_module(namespace):
    """Make the public functions that a module defines suggest keywords: its last line, given its `globals()`.

    For modules whose functions run once a step or more rarely: before Python 3.13 each call costs a Python frame more.
    """
    for name, value in namespace.items():
        own = inspect.isfunction(value) and value.__module__ == namespace["__name__"]
        if own and name[0] != "_" and not hasattr(value, "__wrapped__"):
            namespace[name] = suggest_keywords(value)


def suggest_init_keywords(cls):
    """Make the constructor that a class of this package defines suggest keywords; return the class.

    Users' classes are left alone: their tracebacks would get longer.
    """
    if "__init__" in vars(cls) and cls.__module__.partition(".")[0] == __name__.partition(".")[0]:
        cls.__init__ = suggest_keywords(vars(cls)["__init__"])
    return cls


class SuggestsKeywords:
    """Base of families of classes, of which each one suggests keywords of its constructor."""

    def __init_subclass__(cls, **options):
        super().__init_subclass__(**options)
        suggest_init_keywords(cls)

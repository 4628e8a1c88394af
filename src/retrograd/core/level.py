"""Levels: the active transforms, which interpret operators."""

from typing import Any

from retrograd.core.state import at, current
from retrograd.core.tensor import TensorBase, make
from retrograd.foundation.source_location import describe_function

if __file__.endswith(".py"):  # compiled, this is a cast without a check: see tensor.pxd
    globals()["known_tensor"] = lambda tensor: tensor


class ReadError(RuntimeError):
    """A transform cannot give the value of a tensor as a number or an array."""


class NotBatchedError(ReadError):
    """A program, or an operator in it, can't run on all examples at once."""


def graph_level():
    """Return the level at which operators are recorded now: the innermost that is not transparent."""
    return _recording_level(current().level)


def transform_level():
    """Return the innermost level that transforms operators, as the one below those that only observe."""
    level = current().level
    while level is not None and level.observes:
        level = level.parent
    return level


def is_transformed():
    """Return whether a level is active that does more than measure."""
    level = current().level
    while isinstance(level, MeasuringLevel):
        level = level.parent
    return level is not None


def graph_below(level):
    """Return the level that records the operators that run below a level; None is the ground."""
    return _recording_level(level.parent)


def _recording_level(level):
    """Return the level that records the operators that run at a level: itself, unless it is transparent."""
    while level is not None and level.transparent:
        level = level.parent
    return level


def grad_at(level, tensor):
    """Return the `.grad` of a tensor that the program at a level sees; level None is the ground."""
    return tensor._grad if level is None or level is tensor.level else level.get_grad(tensor)


def set_grad_at(level, tensor, value):
    """Set the `.grad` of a tensor that the program at a level sees."""
    if level is None or level is tensor.level:
        tensor._grad = value
    else:
        level.set_grad(tensor, value)


def grad_mode_below(level, state):
    """Return the grad mode in which a level's rules run."""
    if level.own_mode:
        return level.parent_grad_enabled
    return state.grad_enabled if level.mode_below is None else level.mode_below


def values_at(level, args):
    """Return operands one level below: the values of tensors of this level, anything else as it is."""
    values = []
    for a in args:
        if isinstance(a, TensorBase):
            t: TensorBase = known_tensor(a)  # noqa: F821
            values.append(t.value if t.level is level else a)
        else:
            values.append(a)
    return tuple(values)


def tags_at(level, args):
    """Return the tag of each operand at a level; None if no operand has one there."""
    tags = []
    found = False
    for a in args:
        tag = None
        if isinstance(a, TensorBase):
            t: TensorBase = known_tensor(a)  # noqa: F821
            if t.level is level and t.tag is not None:
                tag = t.tag
                found = True
        tags.append(tag)
    return tuple(tags) if found else None


def tagged_at(level, args):
    """Return for each operand whether it has a tag at a level."""
    found = []
    for a in args:
        if isinstance(a, TensorBase):
            t: TensorBase = known_tensor(a)  # noqa: F821
            found.append(t.level is level and t.tag is not None)
        else:
            found.append(False)
    return tuple(found)


def broadcasts_batched(args, batched, masks):
    """Return whether batches and shared operands broadcast along the batch dimension, and agree in dtype, as they are.

    The first operands, as many as `masks` says, may have other dtypes.
    """
    rank = -1  # of the batches
    shared = 0
    dtype = None
    for i in range(len(args)):
        a = args[i]
        if isinstance(a, TensorBase):
            t: TensorBase = known_tensor(a)  # noqa: F821
            ndim = len(t.value.shape if t.level is None else t.shape)
            if i >= masks:
                own = t.value.dtype
                if dtype is not None and own is not dtype:
                    return False
                dtype = own
            if not batched[i]:
                shared = max(shared, ndim)
            elif rank >= 0 and ndim != rank:
                return False
            else:
                rank = ndim
        elif type(a) is not float and type(a) is not int and a is not None:
            return False
    return rank > shared


def wrap_result(level, out, tag):
    """Return an operator's result from one level below as tensors of a level; a result may be a tuple or list."""
    if isinstance(out, TensorBase):
        return make(out, level, tag)
    if isinstance(out, tuple):
        return tuple([wrap_result(level, o, tag) for o in out])
    if isinstance(out, list):  # only a user's Function returns lists
        return [wrap_result(level, o, tag) for o in out]
    return out


class Level:
    """One active transform: it interprets operators on its tensors.

    Its tensors are `(value: tensor of the parent level, level, tag)`; the level defines what the tag holds. Its rules
    run one level below.
    """

    parent: Any = None
    parent_grad_enabled = True
    modes_around = (True, False)  # the grad mode and the inference mode that hold when the level is left
    active = False
    transparent = False  # see `TransparentLevel`
    own_mode = True  # records whatever the grad mode outside is; if False, it has no grad mode of its own
    mode_below = None  # the grad mode of the levels below, if it differs from the current one
    forward_mode = False  # its tags are tangents
    intercept: Any = None  # of a level that gets each call before anything else: see `call` in dispatch
    observes = False  # a transparent level that must see all that runs below it, and nothing else than without it
    traces = False  # records calls as they are, on composite arrays and of users' Functions too: see `record_call`
    recording = True  # of a level that traces: whether its program records, while `process` runs
    on_write: Any = None  # of a level that stores data about tensors: called for each write, `on_write(x, src)`
    function: Any = None  # the transformed function
    wrapper = ""  # PyTorch's name of its tensors, for printing; "": they are printed by their types

    def __enter__(self):
        state = current()
        self.parent, self.modes_around = state.level, (state.grad_enabled, state.inference)
        self.parent_grad_enabled = state.grad_enabled and not state.inference
        self.active = True
        state.level, state.grad_enabled = self, state.grad_enabled or self.own_mode
        state.inference = state.inference and not self.own_mode  # it holds for the program around, as no_grad() does
        return self

    def __exit__(self, kind=None, error=None, traceback=None):
        state = current()
        finish = None
        try:
            finish = self.on_exit(error)
        finally:
            state.level = self.parent
            if self.own_mode:
                state.grad_enabled, state.inference = self.modes_around
            self.active = False
        if finish is not None:
            finish()
        if type(error) is ValueError and isinstance(error.__cause__, ReadError) and str(error).startswith("setting an"):
            raise error.__cause__.with_traceback(traceback) from None  # `array[0] = x`: NumPy hides it

    def on_exit(self, error):
        """Return a function to call when the program, which has ended with `error` or None, has left the level."""
        return None

    def below(self):
        """Return a block in which this level's rules run: at the parent level, with the grad mode that holds there."""
        return at(self.parent, grad_mode_below(self, current()))

    def unrecorded(self):
        """Return a block in which nothing is recorded at this level; the levels below record as before."""
        return at(self, False) if self.own_mode or self.transparent else _NoRecording(self)

    def process(self, op, args, params):
        """Interpret one operator; called one level below."""
        raise NotImplementedError(f"{type(self).__name__}: a level defines process")

    def shape(self, tensor):
        """Return the shape that the user's code sees."""
        return tensor.value.shape

    def read(self, tensor):
        """Return the parent's tensor from which a value is read, where the user's code asks for one."""
        return tensor.value

    def read_memory(self, tensor):
        """Return the parent's tensor whose memory holds this one, with any batch dimension first; None if unknown."""
        return None

    def value_as_given(self, tensor):
        """Return a tensor's value one level below as the caller laid it out, and its batch dimension or None."""
        return tensor.value, None

    def lost_derivatives(self, tensor):
        """Return what an array or number would lose of this level's tensor, for errors; "" if nothing."""
        return "has a tangent" if self.forward_mode and tensor.tag is not None else ""

    def escape_error(self, tensor):
        """Return the error for a tensor of this level that is used while the level is not current."""
        where = "" if self.function is None else f" {describe_function(self.function)}"
        return RuntimeError(
            f"this tensor, of shape {tensor.shape}, belongs to a {type(self).__name__} that is "
            f"{'not the current one' if self.active else 'over'}: it has escaped the function{where} that was "
            f"transformed. Return it from that function instead."
        )

    def lower_write(self, name, x, operands):
        """Return the tensors of a write to a tensor from outside one level below, to write there; None refuses it."""
        return None

    def record_call(self, op, args, kwargs):
        """Return the result of a user's Function, recorded as one call, at a level that `traces`."""
        raise NotImplementedError

    def lower(self, tensor, cotangent):
        """Return a tensor and its cotangent one level below, where a backward pass continues."""
        return tensor.value, cotangent.value if cotangent.level is self else cotangent

    def lower_passes(self, pairs, per_example):
        """Return the passes to run one level below, as lists of pairs from `lower`: one, or one for each example."""
        return [[self.lower(x, g) for x, g in pairs]]

    def get_grad(self, tensor):
        """Return the `.grad` of a tensor of a level below that the program at this level sees."""
        return grad_at(graph_below(self), tensor)

    def set_grad(self, tensor, value):
        """Set the `.grad` of a tensor of a level below that the program at this level sees."""
        set_grad_at(graph_below(self), tensor, value)

    def vjp_below(self, pullback, roots, cotangents, inputs):
        """Return the cotangents of inputs of a level below, computed by `pullback(roots, cotangents, inputs)` there."""
        raise NotImplementedError(
            f"grad: the inputs must belong to the program that runs, not to what is around: {type(self).__name__}"
        )


class TransparentLevel(Level):
    """A level that only observes or replaces operators: its tensors are those of the level below, which records them.

    Its `process` calls the operator again, at the parent level.
    """

    transparent, own_mode = True, False


class MeasuringLevel(TransparentLevel):
    """A level that only measures: work on other threads, which it does not see, runs as without it."""

    observes = True


class _NoRecording:
    """A block without recording at one level that has no grad mode of its own."""

    def __init__(self, level):
        self._level = level

    def __enter__(self):
        state = current()
        self._mode, self._mode_below = state.grad_enabled, self._level.mode_below
        if self._mode_below is None:
            self._level.mode_below = self._mode
        state.grad_enabled = False

    def __exit__(self, *exception):
        self._level.mode_below = self._mode_below
        current().grad_enabled = self._mode

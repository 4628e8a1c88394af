"""Which transform interprets operators now: levels, and the state of each thread."""

import threading

compiled = not __file__.endswith(".py")


class State:
    """What one thread is doing: the level that interprets operators, and whether gradients are recorded."""

    __slots__ = ("level", "grad_enabled")

    def __init__(self):
        self.level = None  # None is the ground: arrays themselves
        self.grad_enabled = True

    def __dealloc__(self):  # compiled only: a thread that Python did not start may lose its state and go on
        thread_state_forget(self)  # noqa: F821 (declared in level.pxd)


class _Thread(threading.local):
    def __init__(self):
        self.state = State()


_thread = _Thread()


def current():
    """The state of the running thread."""
    if compiled:  # a C thread-local pointer saves the dictionary look-up
        state = thread_state_get()  # noqa: F821 (declared in level.pxd)
        if state is None:
            state = _thread.state  # which the thread itself keeps alive
            thread_state_set(state)  # noqa: F821
        return state
    return _thread.state


class at:
    """Run a block at a level, with a grad mode: the only way in which either changes."""

    __slots__ = ("_level", "_grad_enabled", "_old_level", "_old_grad_enabled")

    def __init__(self, level, grad_enabled):
        self._level = level
        self._grad_enabled = grad_enabled

    def __enter__(self):
        state = current()
        self._old_level, self._old_grad_enabled = state.level, state.grad_enabled
        state.level, state.grad_enabled = self._level, self._grad_enabled
        return self

    def __exit__(self, *exception):
        state = current()
        state.level, state.grad_enabled = self._old_level, self._old_grad_enabled


class Level:
    """One active transform: how operators are interpreted on its tensors.

    Above the ground a tensor is `(value: tensor of the parent level, level, tag)`; what the tag holds is
    the transform's own business. Operators are processed one level below.
    """

    parent = None
    parent_grad_enabled = True
    active = False

    def __enter__(self):
        state = current()
        self.parent, self.parent_grad_enabled = state.level, state.grad_enabled
        self.active = True
        state.level, state.grad_enabled = self, True
        return self

    def __exit__(self, *exception):
        state = current()
        state.level, state.grad_enabled = self.parent, self.parent_grad_enabled
        self.active = False

    def below(self):
        """A block in which this level's rules run: the parent's level and grad mode."""
        return at(self.parent, self.parent_grad_enabled)

    def process(self, op, args, params):
        """Interpret one operator; runs below."""
        raise NotImplementedError(f"{type(self).__name__}: a level defines process")

    def shape(self, tensor):
        """The shape that the user's code sees."""
        return tensor.value.shape

    def read(self, tensor):
        """The parent's tensor to read a value from, where the user's code asks for one."""
        return tensor.value

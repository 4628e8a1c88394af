"""The dict in which Python stores the attributes of an object, whatever its class returns as `__dict__`."""


class AttributeOwner:
    """Base of modules: its descriptor `__dict__` is Python's own."""


# The functions that read and set this dict of a module, which returns another one as `__dict__`, with PyTorch's names.
stored_attributes = vars(AttributeOwner)["__dict__"].__get__
share_attributes = vars(AttributeOwner)["__dict__"].__set__


def own_attributes(value):
    """Return the dict of an object's attributes as they are stored; AttributeError if it has none."""
    return stored_attributes(value) if isinstance(value, AttributeOwner) else value.__dict__


def restore_state(value, state):
    """Give an object the state that pickled data has for it: attributes, or a pair of attributes and slots."""
    if hasattr(value, "__setstate__"):
        value.__setstate__(state)
        return
    attributes, slots = state if type(state) is tuple and len(state) == 2 else (state, None)
    if attributes:
        value.__dict__.update(attributes)
    for name, slot in (slots or {}).items():
        setattr(value, name, slot)

"""Add a member to a class whose `setattr` refuses it."""

import ctypes
import gc

_IMMUTABLE = 1 << 8  # Py_TPFLAGS_IMMUTABLETYPE


def add_members(cls, members):
    """Add members to the namespace of a class, even of an extension module, or under a name such as `__dict__`."""
    gc.get_referents(vars(cls))[0].update(members)
    ctypes.pythonapi.PyType_Modified(ctypes.py_object(cls))  # which forgets the attributes that were looked up before


def set_special_method(cls, name, method):
    """Set a special method, such as `__str__`, of an immutable class, with its slot, which C code calls.

    A namespace alone does not have the slots: `setattr` fills them, and the flag that forbids it is taken for a moment.
    """
    fields = (ctypes.c_ulong * (type.__basicsize__ // ctypes.sizeof(ctypes.c_ulong))).from_address(id(cls))
    flags = [*fields].index(cls.__flags__)
    fields[flags] &= ~_IMMUTABLE
    try:
        setattr(cls, name, method)
    finally:
        fields[flags] |= _IMMUTABLE

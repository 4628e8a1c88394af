"""Add a member to a class whose `setattr` refuses it: its namespace is an ordinary dict."""

import ctypes
import gc


def add_members(cls, members):
    """Add members to the namespace of a class, even of an extension module, or under a name such as `__dict__`."""
    gc.get_referents(vars(cls))[0].update(members)
    ctypes.pythonapi.PyType_Modified(ctypes.py_object(cls))  # which forgets the attributes that were looked up before

"""PyTorch's names of the values that a node saved: `_saved_self`, `_saved_other`, `_saved_result`."""


def saved_by_name(fn, name):
    """Return a param of the call, or what the node saved, by the name of an input, `self`, `other` or `result`."""
    if name in fn.params:
        return fn.params[name]
    index = saved_index(fn, name)
    if fn.saved is None and not fn.freed:
        raise AttributeError(f"{fn.name()!r} saves nothing, so no '_saved_{name}'")
    if index >= 0:
        return fn.value(index)
    return None if fn.saved is not None and fn.saved[-1] is None else fn.output()


def saved_index(fn, name):
    """Return the index in `fn.saved` of an input, by its name, `self` or `other`; -1 for the output."""
    inputs = [p.name for p in fn.op.schema.inputs]
    index = inputs.index(name) if name in inputs else {"self": 0, "other": 1}.get(name, len(inputs))
    if name not in ("result", "out") and index >= len(inputs):
        raise AttributeError(f"{fn.name()!r} saves no '_saved_{name}'; its inputs are {inputs}")
    return index if index < len(inputs) else -1

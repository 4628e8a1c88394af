"""Parameters of PyTorch's functions compared with ours."""

import inspect


def missing(peer, mine, except_for=()):
    """Return the parameters of PyTorch's that ours lacks, or has elsewhere or with another default."""
    theirs = [p for p in inspect.signature(peer).parameters.values() if p.name not in ("self", *except_for)]
    ours = [p for p in inspect.signature(mine).parameters.values() if p.name != "self"]
    found = []
    for position, p in enumerate(theirs):
        if p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD):  # whose names no call uses
            found += [] if any(q.kind is p.kind for q in ours) else [p.name]
            continue
        found += [] if any(_accepts(q, p, position, ours) for q in ours) else [str(p)]
    return found


def _accepts(q, p, position, ours):
    """Return whether a parameter of ours accepts every call that uses one of PyTorch's, with the same default."""
    at_position = ours.index(q) == position and q.kind in (q.POSITIONAL_ONLY, q.POSITIONAL_OR_KEYWORD)
    by_name = q.name == p.name and q.kind in (q.KEYWORD_ONLY, q.POSITIONAL_OR_KEYWORD)
    passed = at_position if p.kind is p.POSITIONAL_ONLY else by_name and (at_position or p.kind is p.KEYWORD_ONLY)
    return passed and (p.default is p.empty or _is_same_default(p.default, q.default))


def _is_same_default(peer, mine):
    """Return whether two defaults are equal, or functions or objects of the same name."""
    names = [getattr(value, "__name__", str(value).rpartition(".")[2]) for value in (peer, mine)]
    return peer == mine or (names[0] == names[1] and not isinstance(peer, str))

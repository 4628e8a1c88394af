"""Parity cases of splitting a batch into microbatches, and merging them."""

from .common import numbers, pp, replicate


def split(m, args, kwargs, chunks, *specs):
    """Return the arguments of each microbatch."""
    return list(zip(*pp(m).split_args_kwargs_into_chunks(args, kwargs, chunks, *specs), strict=True))


def along(m, *dims):
    return tuple(pp(m).TensorChunkSpec(dim) for dim in dims)


def sizes(total, chunks):
    return lambda m: [len(args[0]) for args, _ in split(m, (numbers(m, total, 2),), {}, chunks)]


def there_and_back(total, chunks, dim=0):
    def case(m):
        x = numbers(m, 6 if dim else total, total if dim else 3)
        parts = split(m, (x,), {}, chunks, along(m, dim))
        merged = pp(m).merge_chunks([args for args, _ in parts], along(m, dim))
        return merged[0]

    return case


def merged(chunks, spec=lambda m: None):
    return lambda m: pp(m).merge_chunks(chunks(m), spec(m))


SPLIT = {
    "even": sizes(6, 3),
    "uneven": sizes(7, 3),
    "uneven, the larger ones first": sizes(11, 4),
    "one": sizes(5, 1),
    "one example each": sizes(4, 4),
    "more than examples": sizes(2, 3),
    "none": sizes(4, 0),
    "numbers": lambda m: split(m, (numbers(m, 5, 2),), {}, 2),
    "a keyword": lambda m: split(m, (numbers(m, 4, 2),), {"y": numbers(m, 4, seed=2)}, 2),
    "keywords only": lambda m: split(m, (), {"y": numbers(m, 4, seed=2)}, 2),
    "no keywords": lambda m: split(m, (numbers(m, 4, 2),), None, 2),
    "a number": lambda m: split(m, (numbers(m, 4, 2), 3), {"k": 0.5}, 2),
    "a string and None": lambda m: split(m, (numbers(m, 4, 2),), {"mode": "mean", "mask": None}, 2),
    "nested": lambda m: split(m, ([numbers(m, 4, 2), {"a": numbers(m, 4)}],), {}, 2),
    "another dimension": lambda m: split(m, (numbers(m, 2, 6),), {}, 3, along(m, 1)),
    "the last dimension": lambda m: split(m, (numbers(m, 2, 6),), {}, 3, along(m, -1)),
    "a dimension each": lambda m: split(m, (numbers(m, 4, 3), numbers(m, 3, 4)), {}, 2, along(m, 0, 1)),
    "a keyword's dimension": lambda m: split(
        m, (numbers(m, 4, 3),), {"y": numbers(m, 3, 4)}, 2, along(m, 0), {"y": along(m, 1)[0]}
    ),
    "replicated": lambda m: split(m, (numbers(m, 4, 3), numbers(m, 5)), {}, 2, (*along(m, 0), replicate(m))),
    "a keyword replicated": lambda m: split(
        m, (numbers(m, 4, 3),), {"y": numbers(m, 3)}, 2, along(m, 0), {"y": replicate(m)}
    ),
    "a dimension that is not there": lambda m: split(m, (numbers(m, 4),), {}, 2, along(m, 1)),
    "no dimension": lambda m: split(m, (numbers(m, 4), m.tensor(1.0)), {}, 2),
    "too few specs": lambda m: split(m, (numbers(m, 4), numbers(m, 4)), {}, 2, along(m, 0)),
    "batches of two sizes": lambda m: split(m, (numbers(m, 4), numbers(m, 6)), {}, 2),
    "nothing to split": lambda m: split(m, (3,), {}, 2),
    "keywords of another size": lambda m: split(m, (numbers(m, 7, 2),), {"y": numbers(m, 3)}, 3),
    "no arguments": lambda m: split(m, (), {}, 3),
    "a nested spec": lambda m: split(
        m, ({"a": numbers(m, 4), "b": numbers(m, 3, 4)},), {}, 2, ({"a": along(m, 0)[0], "b": along(m, 1)[0]},)
    ),
    "specs from dimensions": lambda m: split(
        m,
        (numbers(m, 4, 3), numbers(m, 3, 4)),
        {"y": numbers(m, 2, 2)},
        2,
        pp(m).TensorChunkSpec.from_tuple((0, 1)),
        pp(m).TensorChunkSpec.from_dict({"y": 1}),
    ),
    "a gradient flows": lambda m: _gradient(m),
}


def _gradient(m):
    x = numbers(m, 5, 2, grad=True)
    for weight, (args, _) in enumerate(split(m, (x,), {}, 2), 1):
        (args[0] * weight).sum().backward()
    return x.grad


MERGE = {
    "there and back": there_and_back(6, 3),
    "there and back, uneven": there_and_back(7, 3),
    "there and back, along 1": there_and_back(6, 3, dim=1),
    "without spec": merged(lambda m: [numbers(m, 2, 3), numbers(m, 1, 3, seed=1)]),
    "a dict": merged(lambda m: [{"y": numbers(m, 2)}, {"y": numbers(m, 3)}]),
    "a tuple": merged(lambda m: [(numbers(m, 2), [numbers(m, 1)])] * 2),
    "one": merged(lambda m: [numbers(m, 2, 3)]),
    "along 1": merged(lambda m: [numbers(m, 2, 3)] * 2, lambda m: pp(m).TensorChunkSpec(1)),
    "no dimension": merged(lambda m: [m.tensor(1.0), m.tensor(2.0)]),
    "shapes that do not fit": merged(lambda m: [numbers(m, 2, 3), numbers(m, 2, 4)]),
    "of another structure": merged(lambda m: [(numbers(m, 2),), (numbers(m, 2), numbers(m, 2))]),
    "nothing": merged(lambda m: []),
    "replicated": merged(lambda m: [7, 7], replicate),
}

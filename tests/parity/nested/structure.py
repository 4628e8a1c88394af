"""Construction of nested tensors, their attributes, and unbinding."""

from .common import ids, nested, rows, x


def three(m, layout="jagged", **kwargs):
    return m.nested.nested_tensor(rows(m), layout=getattr(m, layout), **kwargs)


def jagged(m, *args, **kwargs):
    return m.nested.nested_tensor_from_jagged(*args, **kwargs)


def gradient_to_components(m):
    leaves = [part.requires_grad_() for part in rows(m)]
    m.nested.as_nested_tensor(leaves, layout=m.jagged).values().sum().backward()
    return [leaf.grad for leaf in leaves]


def gradient_to_values(m):
    values = x(m, 6, 2).requires_grad_()
    (jagged(m, values, m.tensor([0, 2, 6])) * 3).values().sum().backward()
    return values.grad


def gradient_to_padded(m):
    leaves = [part.requires_grad_() for part in rows(m)]
    padded = m.nested.as_nested_tensor(leaves, layout=m.jagged).to_padded_tensor(7.0)
    (padded * padded).sum().backward()
    return [leaf.grad for leaf in leaves]


def gradient_of_narrow(m):
    dense = x(m, 3, 5, 2).requires_grad_()
    part = m.nested.narrow(dense, 1, m.tensor([0, 1, 2]), m.tensor([2, 4, 1]), layout=m.jagged)
    (part * part).unbind()[1].sum().backward()
    return dense.grad


def shares_values(m):
    values = x(m, 6, 2)
    made = jagged(m, values, m.tensor([0, 2, 6]))
    values[0, 0] = 9.0
    return made.unbind()[0]


def copies_components(m):
    first = x(m, 2, 2)
    made = m.nested.nested_tensor([first, x(m, 3, 2)], layout=m.jagged)
    first[0, 0] = 9.0
    return made.unbind()[0]


def components_share_memory(m):
    made = nested(m)
    made.unbind()[1][0, 0] = 9.0
    return made.values()


def narrow_by_numbers(m, layout):
    return m.nested.narrow(x(m, 3, 5, 2), 1, 1, 3, layout=getattr(m, layout))


def narrow_by_tensors(m, layout="jagged"):
    starts, lengths = m.tensor([0, 1, 2]), m.tensor([2, 4, 1])
    return m.nested.narrow(x(m, 3, 5, 2), 1, starts, lengths, layout=getattr(m, layout))


def equal_shapes(m):
    made = nested(m)
    return made.shape == made.sin().shape


def images(m, layout="strided"):
    parts = [x(m, 2, 3, seed=1), x(m, 4, 2, seed=2), x(m, 1, 5, seed=3)]
    return m.nested.nested_tensor(parts, layout=getattr(m, layout))


MAKING = {
    "of tensors, jagged": lambda m: three(m),
    "of tensors, strided": lambda m: three(m, "strided"),
    "of lists, jagged": lambda m: m.nested.nested_tensor([[1.0, 2.0], [3.0]], layout=m.jagged),
    "of lists, strided": lambda m: m.nested.nested_tensor([[1.0, 2.0], [3.0]], layout=m.strided),
    "in the default layout": lambda m: m.nested.nested_tensor(rows(m)),
    "in another dtype": lambda m: three(m, dtype=m.float32),
    "of integers": lambda m: m.nested.nested_tensor([m.arange(2), m.arange(5)], layout=m.jagged),
    "of one component": lambda m: m.nested.nested_tensor([x(m, 3, 2)], layout=m.jagged),
    "with an empty component, jagged": lambda m: m.nested.nested_tensor(
        [x(m, 2, 2), m.zeros(0, 2, dtype=m.float64)], layout=m.jagged
    ),
    "with an empty component, strided": lambda m: m.nested.nested_tensor(
        [x(m, 2, 2), m.zeros(0, 2, dtype=m.float64)], layout=m.strided
    ),
    "of components without dimensions": lambda m: m.nested.nested_tensor([x(m), x(m, seed=2)], layout=m.strided),
    "of no components, strided": lambda m: len(m.nested.nested_tensor([], layout=m.strided).unbind()),
    "of no components, jagged": lambda m: len(m.nested.nested_tensor([], layout=m.jagged).unbind()),
    "of images, strided": images,
    "of images, jagged": lambda m: images(m, "jagged"),
    "ragged in the last dimension": lambda m: m.nested.nested_tensor([x(m, 2, 3), x(m, 2, 5)], layout=m.jagged),
    "a leaf": lambda m: (three(m, requires_grad=True).requires_grad, three(m, requires_grad=True).is_leaf),
    "copies its components": copies_components,
    "as_nested_tensor": lambda m: m.nested.as_nested_tensor(rows(m), layout=m.jagged),
    "as_nested_tensor of a nested tensor": lambda m: m.nested.as_nested_tensor(three(m), layout=m.jagged),
    "as_nested_tensor of a dense tensor": lambda m: m.nested.as_nested_tensor(x(m, 2, 3, 4), layout=m.jagged),
    "as_nested_tensor in another dtype": lambda m: m.nested.as_nested_tensor(rows(m), dtype=m.float32, layout=m.jagged),
    "gradients flow to components": gradient_to_components,
    "of offsets": lambda m: jagged(m, x(m, 6, 2), m.tensor([0, 2, 2, 6])),
    "of lengths": lambda m: jagged(m, x(m, 6, 2), lengths=m.tensor([2, 0, 4])),
    "of offsets and lengths": lambda m: jagged(m, x(m, 6, 2), m.tensor([0, 3, 6]), lengths=m.tensor([2, 1])),
    "of offsets along dimension 2": lambda m: jagged(m, x(m, 2, 6), m.tensor([0, 2, 6]), jagged_dim=2),
    "gradients flow to values": gradient_to_values,
    "values are shared": shares_values,
    "narrow by numbers, jagged": lambda m: narrow_by_numbers(m, "jagged"),
    "narrow by numbers, strided": lambda m: narrow_by_numbers(m, "strided"),
    "narrow by tensors, jagged": narrow_by_tensors,
    "narrow by tensors, strided": lambda m: narrow_by_tensors(m, "strided"),
    "gradient of narrow": gradient_of_narrow,
    "masked_select": lambda m: m.nested.masked_select(x(m, 3, 4), x(m, 3, 4, seed=2) > 0),
    "masked_select of a row": lambda m: m.nested.masked_select(x(m, 4), x(m, 3, 4, seed=2) > 0),
}

WRONG = {
    "components of other depths": lambda m: m.nested.nested_tensor([x(m, 2), x(m, 2, 2)], layout=m.jagged),
    "a number": lambda m: m.nested.nested_tensor(3.0, layout=m.jagged),
    "of neither offsets nor lengths": lambda m: jagged(m, x(m, 6, 2)),
    "offsets that are floats": lambda m: jagged(m, x(m, 6, 2), m.tensor([0.0, 2.0, 6.0])),
    "offsets that fall": lambda m: jagged(m, x(m, 6, 2), m.tensor([0, 4, 2, 6])),
    "offsets behind the end": lambda m: jagged(m, x(m, 6, 2), m.tensor([0, 2, 9])),
    "offsets that are a matrix": lambda m: jagged(m, x(m, 6, 2), m.tensor([[0, 2, 6]])),
    "a ragged size as a number": lambda m: nested(m).size(1) + 1,
    "offsets of a dense tensor": lambda m: x(m, 3, 2).offsets(),
    "to_padded_tensor to a smaller size": lambda m: nested(m).to_padded_tensor(0.0, (3, 2, 4)),
}

ASKING = {
    "dim": lambda m: [nested(m).dim(), nested(m, "strided").dim()],
    "is_nested": lambda m: [nested(m).is_nested, nested(m, "strided").is_nested, x(m, 2).is_nested],
    "size": lambda m: [nested(m).size(0), nested(m).size(2), nested(m).size(-1)],
    "size of a strided one": lambda m: [nested(m, "strided").size(0), nested(m, "strided").size(-1)],
    "size of a ragged dimension, strided": lambda m: nested(m, "strided").size(1),
    "numel": lambda m: [nested(m).numel(), nested(m, "strided").numel()],
    "dtype": lambda m: [nested(m).dtype == m.float64, nested(m, "strided").dtype == m.float64],
    "layout": lambda m: [nested(m).layout == m.jagged, nested(m, "strided").layout == m.strided],
    "values": lambda m: nested(m).values(),
    "values, strided": lambda m: nested(m, "strided").values(),
    "offsets": lambda m: nested(m).offsets(),
    "lengths": lambda m: nested(m).lengths(),
    "lengths with holes": lambda m: narrow_by_tensors(m).lengths(),
    "offsets with holes": lambda m: narrow_by_tensors(m).offsets(),
    "values with holes": lambda m: narrow_by_tensors(m).values(),
    "is_contiguous": lambda m: [nested(m).is_contiguous(), narrow_by_tensors(m).is_contiguous()],
    "contiguous": lambda m: narrow_by_tensors(m).contiguous(),
    "_nested_tensor_size": lambda m: nested(m, "strided")._nested_tensor_size(),
    "_nested_tensor_size of images": lambda m: images(m)._nested_tensor_size(),
    "unbind": lambda m: list(nested(m).unbind()),
    "unbind, strided": lambda m: list(nested(m, "strided").unbind()),
    "unbind along another dimension": lambda m: list(nested(m).unbind(1)),
    "unbind shares memory": components_share_memory,
    "tolist": lambda m: nested(m).tolist(),
    "len": lambda m: len(nested(m)),
    "iteration": lambda m: list(nested(m)),
    "requires_grad": lambda m: nested(m).requires_grad_().requires_grad,
    "equal shapes": equal_shapes,
    "equal shapes of two": lambda m: nested(m).shape == nested(m).shape,
}

PADDING = {
    "to_padded_tensor": lambda m: nested(m).to_padded_tensor(0.0),
    "to_padded_tensor, strided": lambda m: nested(m, "strided").to_padded_tensor(0.0),
    "to_padded_tensor of a function": lambda m: m.nested.to_padded_tensor(nested(m), -1.0),
    "to_padded_tensor to a larger size": lambda m: nested(m).to_padded_tensor(0.0, (3, 6, 4)),
    "to_padded_tensor to a larger size, strided": lambda m: nested(m, "strided").to_padded_tensor(0.0, (3, 6, 4)),
    "to_padded_tensor of integers": lambda m: ids(m).to_padded_tensor(-1),
    "to_padded_tensor of images": lambda m: images(m).to_padded_tensor(0.0),
    "to_padded_tensor with holes": lambda m: narrow_by_tensors(m).to_padded_tensor(0.0),
    "gradient of to_padded_tensor": gradient_to_padded,
}

"""The memory order of results, by the trait `memory` of their operators."""

from numpy import ndarray

from retrograd.core.device import array_devices

IMAGES = {4: (0, 2, 3, 1), 5: (0, 2, 3, 4, 1)}  # dimensions of the longest stride first
ORDERS = {"rows": {}, "images": IMAGES, "channels": {3: (0, 2, 1)}}  # for each value of the trait


def is_in_order(array, order):
    """Return whether an array has an order in memory; there may be gaps, but no repetitions."""
    least = 1
    for dim in reversed(order):
        if array.strides[dim] < least:
            return False
        least = array.strides[dim] * array.shape[dim]
    return 0 not in array.shape


def order_of(op, arrays):
    """Return the order of an operator's operands in memory; None if it is row-major, or none that the trait names.

    Operands in a list must all have it; otherwise it is that of the first operand that has one.
    """
    orders = [find_order(op.orders, a) for a in arrays if getattr(a, "ndim", 0) in op.orders]
    if op.variadic and len(set(orders)) > 1:
        return None
    return next((order for order in orders if order is not None), None)


def find_order(orders, array):
    """Return which of some orders an array has in memory; None for row-major arrays."""
    if (type(array) is not ndarray and type(array) not in array_devices) or array.flags.c_contiguous:
        return None
    order = orders.get(array.ndim)
    return order if order is not None and is_in_order(array, order) else None


def inverse_order(order):
    """Return the order that undoes an order."""
    return tuple([order.index(dim) for dim in range(len(order))])


def put_in_order(xp, array, order):
    """Return an array in an order, None being row-major: itself if it has that without gaps, else a copy by xp."""
    if order is None or array.ndim != len(order):
        return array if array.flags.c_contiguous else xp.ascontiguousarray(array)
    turned = array.transpose(order)
    return array if turned.flags.c_contiguous else xp.row_major(turned).transpose(inverse_order(order))

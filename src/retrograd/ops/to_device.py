"""Moving tensors between host memory and devices."""

from retrograd.backend.devices import move
from retrograd.core import Internal, op
from retrograd.ops.family import Pointwise


@op("to_device(Tensor x, any device, any source) -> Tensor")
class to_device(Internal, Pointwise, linear="x", promotion=None, in_place=False, crosses_devices=True,
                node_name="ToCopyBackward0"):  # fmt: skip
    """A copy of x, which is on the device `source`, on another one; None is host memory."""

    def impl(xp, x, *, device, source):
        out = move(x, device)
        return xp.copy(x) if out is x else out

    def shape(x, *, device, source):
        return x

    def vjp_x(g, device, source):
        return to_device(g, source, device)

    def oracle(np, x, device, source):
        return np.array(x)

    def samples(r):
        yield (r(3, 2),), {"device": None, "source": None}

"""Dropout: random elements become 0, and the others are scaled so that the mean does not change."""

from retrograd.core import Internal, op, registry, xp
from retrograd.foundation.older_forms import other_names
from retrograd.foundation.source_location import warn_user
from retrograd.ops.family import Composite, Pointwise
from retrograd.ops.functions import function
from retrograd.ops.layout import arrange_like
from retrograd.ops.mutate import inplace_function
from retrograd.ops.pointwise import ge, to
from retrograd.ops.view import squeeze, unsqueeze


@op("keep(Tensor kept, Tensor x, *, float scale) -> Tensor")
class keep(Internal, Pointwise, linear="x", masks=1, in_place=False):
    """scale * x where the mask is true, else 0 * x."""

    impl = xp.dropout_mask_scale

    def vjp_x(g, kept, scale):
        return keep(kept, g, scale=scale)

    def oracle(np, kept, x, scale):
        return kept * x * scale

    def samples(r):
        yield (r.booleans(3, 4), r(3, 4)), {"scale": 2.0}
        yield (r.booleans(3, 1), r(2, 3, 4)), {"scale": 1.25}


def _apply_random_mask(name, x, p, training, shape, mixed):
    """Return `mixed(x, mask, p)`, the mask true with probability 1 - p; x itself, or 0, where nothing is random."""
    if not 0 <= p <= 1:
        raise ValueError(
            f"{name}: p must be from 0 to 1, got {p}; dropout probability has to be between 0 and 1, but got {p}"
        )
    if not training or p == 0:
        return x
    if p == 1:
        return x * 0
    check_scalable(name, x)
    kept = ge(registry["rand"](shape), p)
    return mixed(x, arrange_like(kept, x) if shape == x.shape else kept, p)


def check_scalable(name, x):
    """Raise TypeError for integers and booleans, which can't hold the scaled elements."""
    if x.dtype.kind in "biu":
        raise TypeError(
            f"{name}: expected floating or complex elements, got {x.dtype}: result type Float can't be cast to the "
            f"desired output type; convert with .to('float32')"
        )


def _dropout(name, x, p, training, shape):
    """Zero elements with probability p, or whole slices where shape has size 1, and divide the others by 1 - p."""
    return _apply_random_mask(name, x, p, training, shape, _mask_and_scale)


def _mask_and_scale(x, kept, p):
    return keep(kept, x, scale=1 / (1 - p))


def _channel_mask_shape(name, x):
    """Return the shape of a mask of whole channels."""
    if x.ndim < 2:
        raise RuntimeError(f"{name}: expected at least 2 dimensions, (n, channels, ...), got shape {x.shape}")
    return (*x.shape[:2], *(1,) * (x.ndim - 2))


def _deterministic_samples(keyword, *shape):
    """Return a `samples` function without randomness."""

    def samples(r):
        yield (r(*shape),), {"p": 0.5, keyword: False}
        yield (r(*shape),), {"p": 1.0, keyword: True}

    return samples


def _without_randomness(np, x, p, training=None, train=None):
    """Return the oracle's result of such samples."""
    return x * (p < 1) if training or train else x


def _error_samples(r):
    yield (r(3, 4, 2),), {"p": 1.5}, ValueError, "p must be from 0 to 1, got 1.5"


_TRAIN = other_names("input p train", train="training")  # of `torch.dropout` and its relatives


@op("dropout(Tensor x, float p=0.5, bool training=True) -> Tensor")
class dropout(Composite, in_place="argument", aliases="nn.functional.dropout"):
    """Zero each element with probability p and divide the others by 1 - p; x itself when not training.

    N. Srivastava et al., Dropout, JMLR 15 (2014).

    >>> import retrograd as rg
    >>> rg.dropout(rg.tensor([1.0, 2.0]), 0.5, training=False).tolist()
    [1.0, 2.0]
    """

    method = False
    older_form = _TRAIN

    def compose(x, *, p, training):
        return _dropout("dropout", x, p, training, x.shape)

    oracle = _without_randomness
    samples = _deterministic_samples("training", 3, 4)
    errors = _error_samples


def _channel_dropout(name, x, p, training):
    """Zero whole channels of x (n, channels, ...); it may have fewer dimensions where nothing is random."""
    return _dropout(name, x, p, training, _channel_mask_shape(name, x) if training and 0 < p < 1 else x.shape)


@op("feature_dropout(Tensor x, float p, bool train) -> Tensor")
class feature_dropout(Composite, in_place=True, method=False):
    """Zero each channel of x (n, channels, ...) with probability p, divide the others by 1 - p; x when not training."""

    def compose(x, *, p, train):
        return _channel_dropout("feature_dropout", x, p, train)

    oracle = _without_randomness
    samples = _deterministic_samples("train", 3, 4, 2)

    def errors(r):
        yield (r(3),), {"p": 0.5, "train": True}, RuntimeError, "expected at least 2 dimensions"


def _feature_dropout(name, x, p, training, ndim):
    """Return `feature_dropout` of x with ndim dimensions, or with another number: then without n."""
    if x.ndim == ndim:
        return _channel_dropout(name, x, p, training)
    return squeeze(_channel_dropout(name, unsqueeze(x, 0), p, training), 0)


def _check_dimensions(name, x, ndim):
    """Warn of other dimensions than ndim - 1 and ndim, which old programs have; ValueError for fewer than two."""
    if x.ndim not in (ndim - 1, ndim):
        message = (
            f"{name}: Received a {x.ndim}-D input to {name}: expected {ndim - 1} or {ndim} dimensions, got shape "
            f"{x.shape}"
        )
        if x.ndim < 2:
            raise ValueError(message)
        warn_user(f"{message}; rg.dropout zeros single elements")


@op("dropout1d(Tensor x, float p=0.5, bool training=True) -> Tensor")
class dropout1d(Composite, in_place="argument", home="nn.functional"):
    """Zero whole channels at random: `feature_dropout` of x (n, channels, l), or (channels, l)."""

    def compose(x, *, p, training):
        if x.ndim not in (2, 3):
            raise ValueError(
                f"dropout1d: Expected 2D or 3D input, but received a {x.ndim}D input: got shape {x.shape}, not "
                f"(n, channels, l) or (channels, l)"
            )
        return _feature_dropout("dropout1d", x, p, training, 3)

    oracle = _without_randomness
    samples = _deterministic_samples("training", 3, 4, 2)

    def errors(r):
        yield (r(3),), {}, ValueError, "dropout1d: Expected 2D or 3D input, but received a 1D input"


@op("dropout2d(Tensor x, float p=0.5, bool training=True) -> Tensor")
class dropout2d(Composite, in_place="argument", home="nn.functional"):
    """Zero whole channels at random: `feature_dropout` of x (n, channels, h, w); (n, channels, l) also, as in PyTorch.

    With a warning, x of three dimensions, as they may be meant as (channels, h, w), and x of other sizes: each element
    of (n, channels).
    J. Tompson et al., Efficient object localization using convolutional networks, arXiv 1411.4280.
    """

    def compose(x, *, p, training):
        _check_dimensions("dropout2d", x, 4)
        if x.ndim == 3:
            warn_user(
                f"dropout2d: Received a 3D input to dropout2d and assuming that channel-wise 1D dropout behavior is "
                f"desired: shape {x.shape} is (n, channels, l); use dropout1d, or x.unsqueeze(0) for (channels, h, w)"
            )
        return _channel_dropout("dropout2d", x, p, training)

    oracle = _without_randomness
    samples = _deterministic_samples("training", 3, 4, 2, 2)

    def errors(r):
        yield (r(3),), {}, ValueError, "dropout2d: .* expected 3 or 4 dimensions"


@op("dropout3d(Tensor x, float p=0.5, bool training=True) -> Tensor")
class dropout3d(Composite, in_place="argument", home="nn.functional"):
    """Zero whole channels at random: `feature_dropout` of x (n, channels, d, h, w), or (channels, d, h, w).

    With a warning, x of other sizes: slices along the first dimension become zero.
    """

    def compose(x, *, p, training):
        _check_dimensions("dropout3d", x, 5)
        return _feature_dropout("dropout3d", x, p, training, 5)

    oracle = _without_randomness
    samples = _deterministic_samples("training", 2, 3, 1, 2, 2)

    def errors(r):
        yield (r(3),), {}, ValueError, "dropout3d: .* expected 4 or 5 dimensions"


# ----------------------------------------------------------------------- to the saturation value of selu

SATURATED = -1.7580993408473766  # limit of `selu` at minus infinity: -alpha * scale


def _alpha_dropout(name, x, p, training, shape):
    """Set elements to SATURATED with probability p, then restore mean 0 and variance 1 by an affine map."""
    return _apply_random_mask(name, x, p, training, shape, _saturate)


def _saturate(x, kept, p):
    scale = ((1 - p) * (1 + p * SATURATED**2)) ** -0.5
    kept = to(kept, x.dtype)
    return x * (kept * scale) + ((1 - kept) * (SATURATED * scale) - SATURATED * scale * p)


@op("alpha_dropout(Tensor x, float p=0.5, bool training=False) -> Tensor")
class alpha_dropout(
    Composite, in_place="argument", method=False, aliases="nn.functional.alpha_dropout"
):
    """Set elements to the saturation value of `selu` with probability p, then rescale to keep mean 0 and variance 1.

    x itself when not training, 0 where p is 1.  G. Klambauer et al., Self-normalizing neural networks,
    arXiv 1706.02515.
    """

    older_form = _TRAIN

    def compose(x, *, p, training):
        return _alpha_dropout("alpha_dropout", x, p, training, x.shape)

    oracle = _without_randomness
    samples = _deterministic_samples("training", 3, 4)
    errors = _error_samples


@op("feature_alpha_dropout(Tensor x, float p=0.5, bool training=False) -> Tensor")
class feature_alpha_dropout(
    Composite, in_place="argument", method=False, aliases="nn.functional.feature_alpha_dropout"
):
    """Set whole channels to the saturation value of `selu` at random: `alpha_dropout` of x (n, channels, ...)."""

    older_form = _TRAIN

    def compose(x, *, p, training):
        shape = _channel_mask_shape("feature_alpha_dropout", x) if training and 0 < p < 1 else x.shape
        return _alpha_dropout("feature_alpha_dropout", x, p, training, shape)

    oracle = _without_randomness
    samples = _deterministic_samples("training", 3, 4, 2)
    errors = _error_samples


for _operator in (dropout, feature_dropout, alpha_dropout, feature_alpha_dropout):
    function(f"{_operator.name}_")(inplace_function(_operator))

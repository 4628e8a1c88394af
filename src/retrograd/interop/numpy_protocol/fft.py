"""`numpy.fft` on tensors: the operators of `rg.fft`, with NumPy's names for their arguments."""

from retrograd.interop.numpy_protocol.table import O, implements, tensor


def _of_one_axis(name):
    operator = getattr(O.fft, name)

    def transform(a, n=None, axis=-1, norm=None, out=None):
        return operator(tensor(a), n, axis, norm)

    implements(f"fft.{name}")(transform)


def _of_axes(name, last_two):
    operator, default = getattr(O.fft, name), (-2, -1) if last_two else None

    def transform(a, s=None, axes=default, norm=None, out=None):
        return operator(tensor(a), s, axes, norm)

    implements(f"fft.{name}")(transform)


def _shift(name):
    operator = getattr(O.fft, name)

    def shift(x, axes=None):
        return operator(tensor(x), axes)

    implements(f"fft.{name}")(shift)


for _name in ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft"):
    if hasattr(O.fft, _name):
        _of_one_axis(_name)

for _name in ("fft2", "ifft2", "rfft2", "irfft2", "fftn", "ifftn", "rfftn", "irfftn"):
    if hasattr(O.fft, _name):
        _of_axes(_name, _name.endswith("2"))

for _name in ("fftshift", "ifftshift"):
    if hasattr(O.fft, _name):
        _shift(_name)

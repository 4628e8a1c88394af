"""`install()`: code that imports autograd runs on this package; each test in a process of its own."""

import subprocess
import sys
import textwrap

import pytest

import retrograd.hips as hips

from ..case_groups import group_cases

START = "import numpy as onp; import retrograd as rg; import retrograd.hips; retrograd.hips.install()\n"


def run(program):
    """Run the program in a new interpreter; its assertions must hold."""
    return subprocess.run([sys.executable, "-W", "error", "-c", program], capture_output=True, text=True, timeout=120)


def check(body):
    done = run(START + textwrap.dedent(body))
    assert done.returncode == 0, done.stderr


def test_every_module_that_libraries_import_is_there():
    check(
        """
        import autograd, autograd.numpy as np, autograd.numpy.random as npr, autograd.scipy.stats as stats
        import autograd.scipy.stats.norm as norm
        from autograd import elementwise_grad as egrad, grad, make_vjp
        from autograd.builtins import DictBox, dict, isinstance, tuple
        from autograd.core import make_jvp, make_vjp as vjp_at, primitive as one
        from autograd.differential_operators import make_jvp_reversemode
        from autograd.extend import defvjp, primitive as two
        from autograd.misc import flatten
        from autograd.misc.flatten import flatten_func
        from autograd.misc.optimizers import adam
        from autograd.numpy.linalg import inv
        from autograd.numpy.numpy_boxes import ArrayBox
        from autograd.numpy.numpy_vjps import unbroadcast_f
        from autograd.scipy.special import gammaln
        from autograd.test_util import check_grads
        from autograd.tracer import getval, isbox
        from autograd.wrap_util import unary_to_nary
        assert one is two and autograd.numpy is rg.numpy and norm is stats.norm
        seen = []
        def square(x):
            seen.append((isbox(x), type(getval(x)), isinstance(x, ArrayBox)))
            return x**2
        assert vjp_at(onp.square, 3.0)[0](2.0) == 12.0 and make_jvp(onp.square, 3.0)(2.0) == (9.0, 12.0)
        assert unary_to_nary(lambda f, x: vjp_at(f, x)[0](1.0))(onp.multiply, 1)(3.0, 4.0) == 3.0
        assert grad(square)(3.0) == 6.0 and seen == [(True, onp.ndarray, True)]
        """
    )


def test_methods_have_the_meaning_that_numpy_gives_them():
    check(
        """
        from autograd import grad
        from autograd.tracer import getval
        import autograd.numpy as np
        def looks(x):
            y = x[None]
            return dict(
                var=x.var(), std=x.std(axis=0), ddof=x.var(ddof=1), max=x.max(axis=0), repeat=x.repeat(2),
                all_axes=y.transpose(2, 0, 1), turned=y.transpose(), tuple=y.transpose((1, 0, 2)), dot=x.dot(x.T),
                columns=x.reshape((3, 2), order="F"), rows=x.reshape(3, 2), flat=x.reshape(-1), sums=x.cumsum(),
                round=(x / 3).round(1), places=x.nonzero()[1], half=(x > 2) * 0.1,
            )
        def probe(x):
            seen.update({name: getval(value) for name, value in looks(x).items()})
            assert np.all(x[::-1].sort(axis=1) == x[::-1]) and x.ptp() == 25.0
            return np.sum(x)
        seen, x = {}, onp.arange(6.0).reshape(2, 3) ** 2
        grad(probe)(x)
        for name, value in looks(x).items():
            found = seen[name]
            assert found.shape == value.shape and onp.allclose(found, value) and found.dtype == value.dtype, name
        """
    )


def test_layers_work_after_install():
    check(
        """
        from retrograd import nn
        rnn, attention = nn.GRU(3, 4, batch_first=True), nn.MultiheadAttention(4, 2, batch_first=True)
        out, _ = rnn(rg.ones(2, 5, 3, dtype=rg.float64))
        assert attention(out, out, out)[0].shape == (2, 5, 4)
        """
    )


def test_dict_views_of_tensors_may_be_stacked():
    check(
        """
        from autograd import grad
        import autograd.numpy as np
        slope = grad(lambda d: np.sum(np.stack(d.values()).var(axis=0)))({"b": onp.array([1.0, 2.0]), "a": onp.ones(2)})
        assert slope["b"].tolist() == [0.0, 0.5] and slope["a"].tolist() == [0.0, -0.5]
        """
    )


def test_it_may_be_called_twice_and_comes_too_late_after_autograd():
    check("retrograd.hips.install()")
    done = run("import sys, types; sys.modules['autograd'] = types.ModuleType('autograd')\n" + START)
    assert done.returncode == 1
    assert "RuntimeError: install: autograd has been imported already; call install() before" in done.stderr


def test_a_module_that_is_not_there_is_not_found():
    done = run(START + "import autograd.tensors")
    assert "ModuleNotFoundError: No module named 'autograd.tensors'" in done.stderr


@group_cases
@pytest.mark.parametrize("name", hips.__all__)
def test_its_names_are_there(name):
    assert hasattr(hips, name)

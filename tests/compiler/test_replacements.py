"""Whatever a function reads may be replaced between calls, in any way that Python has: later calls see it.

Each case is code for a scene with a function `f`, which reads something, and code that changes it. A compiled scene and
an eager one have the same results before the change and after it.
"""

import textwrap
import warnings

import pytest
from tests.case_groups import group_cases

import retrograd as rg

from .comparison import observe

PREAMBLE = """
import builtins, collections, dataclasses, enum, functools, math, operator, types
from typing import NamedTuple
import retrograd as rg
from retrograd import nn
from retrograd.nn import functional as F
rg.manual_seed(0)
x = rg.arange(6.0).reshape(2, 3) / 4 - 0.5
"""

# ------------------------------------------------------------------------- functions and classes of the library

MODEL = """
model = nn.Sequential(nn.Linear(3, 3), nn.GELU(), nn.LayerNorm(3))
optimizer = rg.optim.Adam(model.parameters(), lr=0.1)
def f(x):
    optimizer.zero_grad()
    loss = F.mse_loss(model(x), x)
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 0.1)
    optimizer.step()
    return loss.detach(), [p.detach().clone() for p in model.parameters()]
"""
NEGATED = "lambda *args, old={old}, **kwargs: -old(*args, **kwargs)"


def library(use, target, name, replacement=NEGATED, setup=""):
    """Return a case: a use of the library, in which `target.name` is replaced."""
    change = f"patch({target}, '{name}', {replacement.format(old=f'{target}.{name}')})"
    return f"{setup}\ndef f(x):\n    return {use}" if use else MODEL, change


LIBRARY = {
    "a function of nn.functional": library("F.gelu(x)", "F", "gelu"),
    "a function of nn.functional by a longer path": library("nn.functional.gelu(x)", "nn.functional", "gelu"),
    "a function of the package": library("rg.relu(x)", "rg", "relu"),
    "an operator of the package": library("rg.sin(x)", "rg", "sin"),
    "a function in a namespace": library("rg.linalg.norm(x)", "rg.linalg", "norm"),
    "a function by getattr": library("getattr(F, 'gelu')(x)", "F", "gelu"),
    "a function by a computed name": library("getattr(F, 'ge' + end)(x)", "F", "gelu", setup="end = 'lu'"),
    "a function in the dict of a module": library("vars(F)['gelu'](x)", "F", "gelu"),
    "a submodule of the package": (
        "def f(x): return rg.special.expit(x)",
        "patch(rg, 'special', types.SimpleNamespace(expit=lambda x: x + 1))",
    ),
    "a class of layers": (
        "def f(x): return nn.Softplus(beta=2)(x)",
        "patch(nn, 'Softplus', lambda beta: lambda x: x * beta)",
    ),
    "a function that a layer calls": library("", "F", "linear"),
    "a function that another one calls": library("", "F", "layer_norm"),
    "a method of a layer": library("", "nn.Linear", "forward"),
    "a method of all modules": (MODEL, "patch(nn.Module, '__call__', lambda self, x: self.forward(x) * 2)"),
    "a method that a class of layers inherits": (
        MODEL,
        "patch(nn.Sequential, '__call__', lambda self, x: x * self[0].weight.sum())",
    ),
    "a method of tensors": library("x.sigmoid()", "rg.Tensor", "sigmoid"),
    "an operator of tensors": library("x * 2", "rg.Tensor", "__mul__"),
    "another operator of tensors": library("2 - x", "rg.Tensor", "__rsub__"),
    "indexing of tensors": library("x[0]", "rg.Tensor", "__getitem__"),
    "an attribute of tensors": (
        "def f(x): return x * getattr(x, 'factor', 2.0)",
        "patch(rg.Tensor, 'factor', 5.0, raising=False)",
    ),
    "a property of tensors": ("def f(x): return x.mT * 1", "patch(rg.Tensor, 'mT', property(lambda t: t.sin()))"),
    "the backward method of tensors": (MODEL, "patch(rg.Tensor, 'backward', lambda self: None)"),
    "the step of an optimizer": (MODEL, "patch(rg.optim.Adam, 'step', lambda self: None)"),
    "the step of all optimizers": (MODEL, "patch(rg.optim.Optimizer, 'step', lambda self: None)"),
    "the zero_grad of an optimizer": (MODEL, "patch(rg.optim.Adam, 'zero_grad', lambda self: None, raising=False)"),
    "the update of an optimizer": (MODEL, "patch(rg.optim.Adam, 'next_update', rg.optim.AdamW.next_update)"),
    "clipping": library("", "nn.utils", "clip_grad_norm_", "lambda params, limit: None"),
    "a loss": library("", "F", "mse_loss"),
    "the class of a grad mode": (
        "w = rg.ones(3, requires_grad=True)\ndef f(x):\n"
        "    with rg.no_grad():\n        return (x * w).requires_grad, x * w",
        "patch(rg, 'no_grad', rg.enable_grad)",
    ),
    "a distribution's method": (
        "d = rg.distributions.Normal(rg.zeros(3), rg.ones(3))\ndef f(x): return d.log_prob(x)",
        "patch(rg.distributions.Normal, 'log_prob', lambda self, x: x)",
    ),
    "a distribution's parameter": (
        "d = rg.distributions.Normal(rg.zeros(3), rg.ones(3))\ndef f(x): return d.log_prob(x)",
        "d.loc = rg.full((3,), 2.0)",
    ),
    "a transform": library("rg.func.grad(lambda x: x.sin().sum())(x)", "rg.func", "grad", "lambda f: f"),
    "a function in the dict of a library module": ("def f(x): return F.gelu(x)", "patch_item(vars(F), 'gelu', F.relu)"),
    "a function that is deleted": ("def f(x): return F.gelu(x) if hasattr(F, 'gelu') else x", "unpatch(F, 'gelu')"),
    "a builtin function": ("def f(x): return x * divmod(5, 2)[0]", "patch(builtins, 'divmod', lambda a, b: (7,))"),
    "a builtin function by a global": ("def f(x): return x * max(1, 2)", "globals()['max'] = min"),
    "a function of math": ("def f(x): return x * math.sqrt(4.0)", "patch(math, 'sqrt', lambda x: 7.0)"),
    "a setting of a module": (
        "from retrograd.nn.utils import parametrize\n"
        "class Twice(nn.Module):\n    def forward(self, w): return w * 2\n"
        "layer = nn.Linear(3, 3)\nparametrize.register_parametrization(layer, 'weight', Twice())\n"
        "def f(x): return layer(x).detach()",
        "Twice.forward = lambda self, w: w * 3",
    ),
    "the forward of a user's Function": (
        "class Own(rg.autograd.Function):\n"
        "    @staticmethod\n    def forward(ctx, x): return x * 2\n"
        "    @staticmethod\n    def backward(ctx, g): return g\n"
        "def f(x): return Own.apply(x)",
        "Own.forward = staticmethod(lambda ctx, x: x * 3)",
    ),
    "the backward of a user's Function": (
        "class Own(rg.autograd.Function):\n"
        "    @staticmethod\n    def forward(ctx, x): return x * 2\n"
        "    @staticmethod\n    def backward(ctx, g): return g\n"
        "w = rg.ones(3, requires_grad=True)\n"
        "def f(x):\n    w.grad = None\n    Own.apply(x * w).sum().backward()\n    return w.grad.clone()",
        "Own.backward = staticmethod(lambda ctx, g: g * 3)",
    ),
    "a check that a layer calls": (
        "class Norm(nn.BatchNorm1d):\n    def _check_input_dim(self, x): return None\n"
        "model = Norm(3)\n"
        "def f(x): return model(x).detach()",
        "def fail(self, x): raise ValueError('refused')\nNorm._check_input_dim = fail",
    ),
    "the kernel of a custom operator": (
        "def twice(x: rg.Tensor) -> rg.Tensor: return x.clone() * 2\n"
        "op = rg.library.custom_op('replacements::twice', twice, mutates_args=())\n"
        ""
        "op.register_fake(lambda x: rg.empty_like(x))\n"
        "def f(x): return op(x) + 1",
        "op.register_kernel('cpu')(lambda x: x.clone() * 5)",
    ),
}

# --------------------------------------------------------------------------------------------- the user's objects

OWN = """
class Meta(type):
    offset = 0.5
    @property
    def doubled(cls): return cls.scale * 2
class Base(metaclass=Meta):
    scale = 2.0
    shift = 0.25
class Config(Base):
    def __init__(self):
        self.scale, self.unused = 3.0, 1
    def __getattr__(self, name):
        if name.startswith("_"):
            raise AttributeError(name)
        return 7.0
    def __len__(self): return 2
class Plain:
    factor = 4.0
    def __init__(self):
        self.scale, self.unused = 3.0, 1
    def __eq__(self, other): return True
config, plain = Config(), Plain()
name = "scale"
"""

READS = {
    "an attribute": "config.scale",
    "getattr": "getattr(config, 'scale')",
    "getattr with a default": "getattr(plain, 'scale', 9.0)",
    "getattr by a variable": "getattr(config, name)",
    "getattr by a computed name": "getattr(config, 'sc' + 'ale'[:3])",
    "getattr by an f-string": "getattr(config, f'{name}')",
    "getattr in a loop": "sum(getattr(plain, key) for key in ('scale', 'factor'))",
    "getattr by map": "sum(map(functools.partial(getattr, plain), ('scale',)))",
    "attrgetter": "operator.attrgetter('scale')(plain)",
    "the dict": "config.__dict__['scale']",
    "vars": "vars(config)['scale']",
    "vars by a variable": "vars(config)[name]",
    "the members of the dict": "sum(v for v in vars(plain).values())",
    "the length of the dict": "len(vars(plain))",
    "membership in the dict": "('scale' in vars(plain)) + 1",
    "__getattribute__": "object.__getattribute__(config, 'scale')",
    "an attribute by __getattr__": "config.missing",
    "getattr of what __getattr__ gives": "getattr(config, 'missing', 1.0)",
    "a default": "getattr(plain, 'missing', 1.0)",
    "hasattr": "hasattr(plain, 'missing') + 1",
    "hasattr by a computed name": "hasattr(plain, 'miss' + 'ing'[:3]) + 1",
    "an attribute of the class": "plain.factor",
    "an attribute of the class by type": "type(plain).factor",
    "an attribute of a base class": "config.shift",
    "an attribute of the class itself": "Config.shift",
    "a default of the class": "getattr(Plain, 'missing', 1.0)",
    "an attribute of the metaclass": "Config.offset",
    "a property of the metaclass": "Config.doubled",
    "the length": "len(config)",
    "a comparison": "(plain == 3) + 1",
    "a truth value": "2 if config else 3",
    "a pattern": "match(plain)",
    "isinstance": "isinstance(config, Base) + 1",
}
CHANGES = {
    "an instance's attribute": "config.scale = plain.scale = 11.0",
    "an instance's dict": "vars(config).update(scale=11.0); plain.__dict__['scale'] = 11.0",
    "another dict": "config.__dict__ = {'scale': 11.0, 'unused': 1}; plain.__dict__ = {'scale': 11.0, 'unused': 1}",
    "a new attribute": "config.missing = plain.missing = 11.0",
    "a new attribute in place of another": "del config.unused, plain.unused; config.missing = plain.missing = 11.0",
    "a shadowing attribute": "config.shift = plain.factor = 11.0",
    "a deleted attribute": "del config.scale, vars(plain)['scale']; Plain.scale = 12.0",
    "an attribute of the class": "Config.shift = Plain.factor = 11.0",
    "a new attribute of the class": "Config.missing = Plain.missing = 11.0",
    "an attribute of the base": "Base.shift = Base.scale = 11.0",
    "a new attribute of the base": "Base.missing = 11.0",
    "an attribute of the metaclass": "Meta.offset = 11.0",
    "a property of the metaclass": "Meta.doubled = property(lambda cls: 11.0)",
    "a property of the class": "Config.scale = Plain.scale = property(lambda self: 11.0)",
    "another base": "Config.__bases__ = (type('Other', (Base,), {'shift': 11.0, 'missing': 12.0}),)",
    "another class": "config.__class__ = plain.__class__ = type('Other', (), {'factor': 11.0, 'shift': 12.0})",
    "another __getattr__": "Config.__getattr__ = Plain.__getattr__ = lambda self, name: 11.0",
    "a __getattribute__": "Config.__getattribute__ = Plain.__getattribute__ = lambda self, name: 11.0",
    "a special method": "Config.__len__ = Plain.__len__ = lambda self: 0",
    "another special method": "Config.__bool__ = lambda self: False; Plain.__eq__ = lambda self, other: False",
    "the name": "name = 'shift'",
    "the object": "config, plain = Config(), Plain(); config.scale = plain.scale = 11.0",
}
MATCH = """
def match(value):
    match value:
        case Plain(scale=3.0): return 2
        case Plain(missing=11.0): return 3
    return 4
"""

# ------------------------------------------------------------------------------------------ other kinds of values

OTHERS = {
    "a slot": (
        "class Slotted:\n    __slots__ = ('scale',)\ns = Slotted()\ns.scale = 2.0\ndef f(x): return x * s.scale",
        "s.scale = 3.0",
    ),
    "an empty slot": (
        "class Slotted:\n    __slots__ = ('scale', 'other')\n"
        "s = Slotted()\ndef f(x): return x * getattr(s, 'scale', 2.0)",
        "s.scale = 3.0",
    ),
    "a slot and a dict": (
        "class Slotted:\n    __slots__ = ('scale',)\nclass Open(Slotted): pass\n"
        "s = Open()\ns.scale = 2.0\ndef f(x): return x * s.scale",
        "s.scale = 3.0",
    ),
    "an attribute of a number": (
        "class Level(int): factor = 2.0\nlevel = Level(3)\ndef f(x): return x * level.factor * level",
        "Level.factor = 3.0",
    ),
    "an attribute of one number": (
        "class Level(float): pass\nlevel = Level(3)\nlevel.factor = 2.0\ndef f(x): return x * level.factor",
        "level.factor = 3.0",
    ),
    "an attribute of a string": (
        "class Name(str): pass\nword = Name('a')\nword.factor = 2.0\ndef f(x): return x * word.factor",
        "word.factor = 3.0",
    ),
    "an attribute of a list": (
        "class Many(list): pass\nmany = Many([1.0])\nmany.factor = 2.0\ndef f(x): return x * many.factor * many[0]",
        "many.factor = 3.0",
    ),
    "an attribute of a dict": (
        "class Many(dict): pass\nmany = Many(a=1.0)\nmany.factor = 2.0\ndef f(x): return x * many.factor * many['a']",
        "many.factor = 3.0",
    ),
    "a method of a dict's class": (
        "class Many(dict):\n    def __getitem__(self, key): return 2.0\n"
        "many = Many(a=1.0)\ndef f(x): return x * many['a']",
        "Many.__getitem__ = lambda self, key: 3.0",
    ),
    "a missing key": (
        "class Many(dict):\n    def __missing__(self, key): return 2.0\n"
        "many = Many(a=1.0)\ndef f(x): return x * many['b']",
        "many['b'] = 3.0",
    ),
    "a dict with attributes": (
        "class Attr(dict):\n    __getattr__ = dict.__getitem__\nmany = Attr(a=1.0)\ndef f(x): return x * many.a",
        "many['a'] = 3.0",
    ),
    "an ordered dict": (
        "many = collections.OrderedDict(a=1.0, b=2.0)\ndef f(x): return x * list(many.values())[0]",
        "many.move_to_end('a')",
    ),
    "an ordered dict with numbers": (
        "many = collections.OrderedDict([(0, 1.0), (1, 2.0)])\ndef f(x): return x * list(many.values())[0]",
        "many.move_to_end(0)",
    ),
    "the order of a dict with numbers": (
        "many = {0: 1.0, 1: 2.0}\ndef f(x): return x * list(many.values())[0]",
        "many[0] = many.pop(0)",
    ),
    "a deque": ("many = collections.deque([2.0])\ndef f(x): return x * many[0]", "many[0] = 3.0"),
    "a counter": ("many = collections.Counter(a=2)\ndef f(x): return x * many['a']", "many['a'] = 3"),
    "a chain of maps": (
        "many = collections.ChainMap({}, {'a': 2.0})\ndef f(x): return x * many['a']",
        "many.maps[0]['a'] = 3.0",
    ),
    "a set": ("many = {1, 2}\ndef f(x): return x * sum(many)", "many.add(3)"),
    "a bytearray": ("many = bytearray(b'ab')\ndef f(x): return x * many[0]", "many[0] = 3"),
    "a view of a dict": ("many = {'a': 2.0}\nview = many.values()\ndef f(x): return x * sum(view)", "many['a'] = 3.0"),
    "a proxy of a dict": (
        "many = {'a': 2.0}\nview = types.MappingProxyType(many)\ndef f(x): return x * view['a']",
        "many['a'] = 3.0",
    ),
    "an attribute of a member of an enum": (
        "class Mode(enum.Enum):\n    A = 1\nMode.A.factor = 2.0\nmode = Mode.A\ndef f(x): return x * mode.factor",
        "Mode.A.factor = 3.0",
    ),
    "an attribute of an enum": (
        "class Mode(enum.Enum):\n    A = 1\n    def factor(self): return 2.0\n"
        "mode = Mode.A\ndef f(x): return x * mode.factor()",
        "Mode.factor = lambda self: 3.0",
    ),
    "a field of a dataclass": (
        "@dataclasses.dataclass\nclass C:\n    scale: float = 2.0\nc = C()\n"
        "def f(x): return x * dataclasses.asdict(c)['scale']",
        "c.scale = 3.0",
    ),
    "a default of a dataclass": (
        "@dataclasses.dataclass\nclass C:\n    scale: float = 2.0\nc = C()\ndef f(x): return x * C.scale",
        "C.scale = 3.0",
    ),
    "the copy of an object": (
        "import copy\nc = types.SimpleNamespace(scale=2.0)\ndef f(x): return x * copy.copy(c).scale",
        "c.scale = 3.0",
    ),
    "a namespace": ("c = types.SimpleNamespace(scale=2.0)\ndef f(x): return x * c.scale", "c.scale = 3.0"),
    "an attribute of a module": (
        "c = types.ModuleType('c')\nc.scale = 2.0\ndef f(x): return x * c.scale",
        "c.scale = 3.0",
    ),
    "what a module's __getattr__ gives": (
        "c = types.ModuleType('c')\nc.__getattr__ = lambda name: 2.0\ndef f(x): return x * c.scale",
        "c.scale = 3.0",
    ),
    "a module's __getattr__": (
        "c = types.ModuleType('c')\nc.__getattr__ = lambda name: 2.0\ndef f(x): return x * c.scale",
        "c.__getattr__ = lambda name: 3.0",
    ),
    "a default of keywords in place": (
        "def g(x, *, scale=2.0): return x * scale\ndef f(x): return g(x) * 1",
        "g.__kwdefaults__['scale'] = 3.0",
    ),
    "an attribute of a function": (
        "def g(x): return x * g.scale\ng.scale = 2.0\ndef f(x): return g(x) * 1",
        "g.scale = 3.0",
    ),
    "a partial's keywords": (
        "def g(x, scale): return x * scale\np = functools.partial(g, scale=2.0)\ndef f(x): return p(x) * 1",
        "p.keywords['scale'] = 3.0",
    ),
    "a partial's state": (
        "def g(x, scale): return x * scale\np = functools.partial(g, scale=2.0)\ndef f(x): return p(x) * 1",
        "p.__setstate__((g, (), {'scale': 3.0}, None))",
    ),
    "an implementation of a generic function": (
        "@functools.singledispatch\ndef g(n, x): return x * 2\ndef f(x): return g(1, x) * 1",
        "g.register(int, lambda n, x: x * 3)",
    ),
    "a cached property": (
        "class C:\n    scale = 2.0\n    @functools.cached_property\n    def doubled(self): return self.scale * 2\n"
        "c = C()\ndef f(x): return x * c.doubled",
        "c.__dict__['doubled'] = 3.0",
    ),
    "a descriptor": (
        "class D:\n    def __init__(self, value): self.value = value\n"
        "    def __get__(self, instance, owner): return self.value\n"
        "class C:\n    scale = D(2.0)\nc = C()\ndef f(x): return x * c.scale",
        "vars(C)['scale'].value = 3.0",
    ),
    "the method of a descriptor": (
        "class D:\n    def __get__(self, instance, owner): return 2.0\n"
        "class C:\n    scale = D()\nc = C()\ndef f(x): return x * c.scale",
        "D.__get__ = lambda self, instance, owner: 3.0",
    ),
    "a descriptor that gains a method": (
        "class D:\n    def __get__(self, instance, owner): return 2.0\n"
        "class C:\n    scale = D()\nc = C()\nvars(c)['scale'] = 5.0\ndef f(x): return x * c.scale",
        "D.__set__ = lambda self, instance, value: None",
    ),
    "a virtual base": (
        "import abc\nclass A(abc.ABC): pass\nclass C: pass\nc = C()\ndef f(x): return x * (isinstance(c, A) + 1)",
        "A.register(C)",
    ),
    "a weak reference": (
        "import weakref\nclass C: scale = 2.0\nc = C()\nr = weakref.ref(c)\n"
        "def f(x): return x * (3.0 if r() is None else r().scale)",
        "del c",
    ),
    "a variable of a context": (
        "import contextvars\nv = contextvars.ContextVar('v', default=2.0)\ndef f(x): return x * v.get()",
        "v.set(3.0)",
    ),
    "a variable of the environment": (
        "import os\nos.environ['RETROGRAD_CASE'] = '2.0'\ndef f(x): return x * float(os.environ['RETROGRAD_CASE'])",
        "os.environ['RETROGRAD_CASE'] = '3.0'",
    ),
    "an attribute of a thread": (
        "import threading\nlocal = threading.local()\nlocal.scale = 2.0\ndef f(x): return x * local.scale",
        "local.scale = 3.0",
    ),
    "a method bound to an object": (
        "class C:\n    scale = 2.0\n    def call(self, x): return x * self.scale\n"
        "c = C()\ng = c.call\ndef f(x): return g(x) * 1",
        "c.scale = 3.0",
    ),
    "a proxy": (
        "class Proxy:\n    def __init__(self, inner): self.__dict__['_inner'] = inner\n"
        "    def __getattr__(self, name): return getattr(self._inner, name)\n"
        "inner = types.SimpleNamespace(scale=2.0)\nproxy = Proxy(inner)\ndef f(x): return x * proxy.scale",
        "inner.scale = 3.0",
    ),
    "what a __getattribute__ reads of its own attributes": (
        "class C:\n    def __init__(self): self.names, self.size = {'scale': 'size'}, 2.0\n"
        "    def __getattribute__(self, name):\n"
        "        names = object.__getattribute__(self, 'names')\n"
        "        return object.__getattribute__(self, names.get(name, name))\n"
        "c = C()\ndef f(x): return x * c.scale",
        "c.size = 3.0",
    ),
    "an attribute that a __getattribute__ finds first": (
        "class C:\n"
        "    def __getattribute__(self, name):\n"
        "        return object.__getattribute__(self, '__dict__').get('own_' + name, 2.0)\n"
        "c = C()\ndef f(x): return x * c.scale",
        "c.own_scale = 3.0",
    ),
    "a member of a dict whose class overrides get": (
        "class Table(dict):\n    def get(self, key): return 2.0\n    def __len__(self): return 0\n"
        "    def __iter__(self): return iter(())\n"
        "table = Table(scale=2.0)\ndef f(x): return x * table['scale']",
        "table['scale'] = 3.0",
    ),
    "a member of a list whose class overrides its length": (
        "class Table(list):\n    def __len__(self): return 0\n    def __iter__(self): return iter(())\n"
        "table = Table([2.0])\ndef f(x): return x * table[0]",
        "table[0] = 3.0",
    ),
    "a context variable": (
        "import contextvars\nscale = contextvars.ContextVar('scale', default=2.0)\ndef f(x): return x * scale.get()",
        "scale.set(3.0)",
    ),
    "a variable of a class of ctypes": (
        "import ctypes\nclass Pair(ctypes.Structure): scale = 2.0\ndef f(x): return x * Pair.scale",
        "Pair.scale = 3.0",
    ),
    "a class in a set": (
        "kinds = {int}\ndef f(x): return x * 3 if float in kinds else x * 2",
        "kinds.add(float)",
    ),
    "a module that is imported in the function": (
        "import sys\nsettings = types.ModuleType('settings')\nsettings.scale = 2.0\n"
        "sys.modules['own_settings'] = settings\n"
        "def f(x):\n    import own_settings\n    return x * own_settings.scale",
        "settings.scale = 3.0",
    ),
    "a member that is imported in the function": (
        "import sys\nsettings = types.ModuleType('settings')\nsettings.scale = 2.0\n"
        "sys.modules['own_settings'] = settings\n"
        "def f(x):\n    from own_settings import scale\n    return x * scale",
        "settings.scale = 3.0",
    ),
    "another module of a name": (
        "import sys\nsettings = types.ModuleType('settings')\nsettings.scale = 2.0\n"
        "sys.modules['own_settings'] = settings\n"
        "def f(x):\n    from own_settings import scale\n    return x * scale",
        "sys.modules['own_settings'] = types.SimpleNamespace(scale=3.0)",
    ),
    "what a __getattribute__ reads": (
        "class C:\n    def __init__(self): self.table = {'scale': 2.0}\n"
        "    def __getattribute__(self, name): return object.__getattribute__(self, 'table')[name]\n"
        "c = C()\ndef f(x): return x * c.scale",
        "object.__getattribute__(c, 'table')['scale'] = 3.0",
    ),
    "what a module's __getattribute__ reads": (
        "class C(nn.Linear):\n"
        "    def __getattribute__(self, name):\n"
        "        if name == 'factor': return factors[0]\n"
        "        return super().__getattribute__(name)\n"
        "    def forward(self, x): return super().forward(x) * self.factor\n"
        "factors = [2.0]\nmodel = C(3, 3)\ndef f(x): return model(x).detach()",
        "factors[0] = 3.0",
    ),
    "what a module's __getattr__ reads": (
        "class C(nn.Linear):\n"
        "    def __getattr__(self, name):\n"
        "        if name == 'factor': return factors[0]\n"
        "        return super().__getattr__(name)\n"
        "    def forward(self, x): return super().forward(x) * self.factor\n"
        "factors = [2.0]\nmodel = C(3, 3)\ndef f(x): return model(x).detach()",
        "factors[0] = 3.0",
    ),
    "an attribute that a module's __getattr__ gave": (
        "class C(nn.Linear):\n"
        "    def __getattr__(self, name): return 2.0 if name == 'factor' else super().__getattr__(name)\n"
        "    def forward(self, x): return super().forward(x) * self.factor\n"
        "model = C(3, 3)\ndef f(x): return model(x).detach()",
        "C.factor = 3.0",
    ),
    "another dict of a module": (
        "model = nn.Linear(3, 3)\nother = nn.Linear(3, 3)\ndef f(x): return model(x).detach()",
        "model.__dict__ = other.__dict__",
    ),
    "a class variable of a module": (
        "class C(nn.Linear):\n    factor = 2.0\n    def forward(self, x): return super().forward(x) * self.factor\n"
        "model = C(3, 3)\ndef f(x): return model(x).detach()",
        "C.factor = 3.0",
    ),
    "a base of a module's class": (
        "class B(nn.Linear):\n    def forward(self, x): return x * 2\nclass C(B): pass\n"
        "model = C(3, 3)\ndef f(x): return model(x).detach()",
        "C.__bases__ = (nn.Linear,)",
    ),
    "a global that a called function reads": (
        "scale = 2.0\ndef h(x): return x * scale\ndef g(x): return h(x)\ndef f(x): return g(x) + 1",
        "scale = 3.0",
    ),
    "a global that a function inside reads": ("scale = 2.0\ndef f(x): return (lambda: x * scale)() + 1", "scale = 3.0"),
    "a global that a comprehension reads": ("scale = 2.0\ndef f(x): return [y * scale for y in x]", "scale = 3.0"),
    "a variable of a class body": (
        "scale = 2.0\ndef f(x):\n    class C:\n        factor = scale\n    return x * C.factor",
        "scale = 3.0",
    ),
    "a function that is another one's attribute": (
        "def g(x): return x * 2\n@functools.wraps(g)\ndef h(x): return h.__wrapped__(x)\ndef f(x): return h(x) + 1",
        "h.__wrapped__ = lambda x: x * 3",
    ),
    "a callable object's method": (
        "class C:\n    def __call__(self, x): return x * 2\nc = C()\ndef f(x): return c(x) + 1",
        "C.__call__ = lambda self, x: x * 3",
    ),
    "a number that is an argument's attribute": (
        "c = types.SimpleNamespace(scale=2.0)\ndef g(x, c): return x * c.scale\ndef f(x): return g(x, c) + 1",
        "c.scale = 3.0",
    ),
}


class Scene:
    """A scene of one case, whose function may be compiled."""

    def __init__(self, setup, monkeypatch):
        self.names = {"__name__": "scene", "patch": monkeypatch.setattr, "unpatch": monkeypatch.delattr,
                      "patch_item": monkeypatch.setitem}  # fmt: skip
        self.run(PREAMBLE + setup)

    def run(self, code):
        exec(compile(textwrap.dedent(code), "<scene>", "exec"), self.names)

    def call(self, f):
        try:
            return observe(f(self.names["x"]))
        except Exception as error:
            return type(error), str(error)


def check(setup, change, monkeypatch):
    """Check that calls equal eager ones before a change and after it."""
    compiled, eager = Scene(setup, monkeypatch), Scene(setup, monkeypatch)
    f = rg.compile(compiled.names["f"])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        before = [(compiled.call(f), eager.call(eager.names["f"])) for _ in range(4)]
        with monkeypatch.context() as patched:
            compiled.names.update(patch=patched.setattr, unpatch=patched.delattr, patch_item=patched.setitem)
            compiled.run(change)
            if "patch(" not in change and "patch_item(" not in change:
                eager.run(change)
            after = [(compiled.call(f), eager.call(eager.names["f"])) for _ in range(3)]
        restored = [(compiled.call(f), eager.call(eager.names["f"])) for _ in range(2)]
    for pairs in (before, after, restored):
        for found, expected in pairs:
            assert found == expected
    return f


@group_cases
@pytest.mark.parametrize("name", LIBRARY)
def test_calls_notice_a_part_of_the_library_that_is_replaced(name, monkeypatch):
    check(*LIBRARY[name], monkeypatch)


@group_cases
@pytest.mark.parametrize("name", OTHERS)
def test_calls_notice_another_value_wherever_it_is(name, monkeypatch):
    check(*OTHERS[name], monkeypatch)


@group_cases
@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("read", READS)
def test_calls_notice_a_change_however_the_code_reads(read, change, monkeypatch):
    check(f"{OWN}{MATCH}\ndef f(x): return x * ({READS[read]})", CHANGES[change], monkeypatch)

"""Steps that call functions of Python's standard library, and what changes between their calls.

The code of a step makes `step(x, y)`, and perhaps `change(i)`, which runs before call number i. So a comparison with
the eager run finds whether a program has a result of the library as a constant that depends on the change.
"""

STEPS = {
    # ------------------------------------------------------------------------------------------- ids as keys
    "a set of ids of parameters": """
def step(x, y):
    seen, total = set(), 0.0
    for p in [*model.parameters(), *model.parameters()]:
        if id(p) not in seen:
            seen.add(id(p))
            total = total + p.detach().square().sum()
    return total
def change(i): model[0].bias = model[2].bias if i % 2 else nn.Parameter(rg.ones(8))
""",
    "a dict by ids of arguments": """
def step(x, y):
    names = {id(x): "x"}
    first = names.setdefault(id(y), "y")
    return (x * len(names), names.get(id(x)), first)
""",
    "a comprehension of ids": """
def step(x, y):
    frozen = {id(p) for p in model[0].parameters()}
    kept = [p for p in model.parameters() if id(p) not in frozen]
    return sum(p.detach().sum() for p in kept) * x
def change(i): model[2].weight = model[0].weight if i == 3 else nn.Parameter(rg.ones(3, 8) * i)
""",
    # ------------------------------------------------------------------------------------------------- copies
    "a deep copy of a configuration": """
import copy
class Config:
    def __init__(self): self.scale, self.sizes, self.inner = 2.0, [1, 2], {"shift": 1.0}
config = Config()
def step(x, y):
    mine = copy.deepcopy(config)
    mine.scale *= mine.sizes[-1]
    return x * mine.scale + mine.inner["shift"]
def change(i):
    if i == 2: config.scale = 3.0
    if i == 3: config.sizes.append(5)
    if i == 4: config.inner["shift"] = 4.0
    if i == 5: config.sizes[-1] = 6
""",
    "a shallow copy of a configuration": """
import copy
class Config:
    def __init__(self): self.scale, self.inner = 2.0, {"shift": 1.0}
config = Config()
def step(x, y):
    mine = copy.copy(config)
    mine.scale = mine.scale + 1
    del mine.inner
    return x * mine.scale + config.inner["shift"], hasattr(mine, "inner"), hasattr(mine, "extra")
def change(i):
    if i == 2: config.scale = 3.0
    if i == 3: config.inner["shift"] = 4.0
    if i == 4: config.extra = 1
""",
    "a copy of a dataclass with another field": """
@dataclasses.dataclass
class Config:
    scale: float = 2.0
    shift: float = 1.0
config = Config()
def step(x, y):
    mine = dataclasses.replace(config, shift=3.0)
    return x * mine.scale + mine.shift, dataclasses.asdict(mine)
def change(i): config.scale = 2.0 + i // 3
""",
    "a frozen set of classes": """
kinds, scale = frozenset([int, complex]), 2
def step(x, y): return x * scale if type(scale) in kinds else x + scale
def change(i):
    global kinds
    kinds = frozenset([int, complex] if i < 3 else [float])
""",
    "a deep copy by a method of its own": """
import copy
class Config:
    scale = 2.0
    def __deepcopy__(self, memo):
        made = Config()
        made.scale = self.scale * factor
        return made
factor, config = 1.0, Config()
def step(x, y):
    return x * copy.deepcopy(config).scale
def change(i):
    global factor
    factor = 1.0 + i // 3
""",
    # --------------------------------------------------------------------------------------------- signatures
    "the signature of a method": """
import inspect
class Chunks:
    def chunk(self, a, b=2.0): return a * b
chunks = Chunks()
def step(x, y):
    parameters = inspect.signature(chunks.chunk).parameters
    return chunks.chunk(x) * len(parameters) + parameters["b"].default
def other(self, a, b=3.0, c=1.0): return a * b
def change(i):
    if i == 2: Chunks.chunk.__defaults__ = 4.0,
    if i == 4: Chunks.chunk = other
""",
    "the signature of a function that is not called": """
import inspect
def described(a, scale=2.0): pass
def step(x, y):
    names = list(inspect.signature(described).parameters)
    return x * len(names) * inspect.signature(described).parameters["scale"].default
def change(i):
    if i == 2: described.__defaults__ = 4.0,
    if i == 4: described.__code__ = (lambda a, b, scale: 0).__code__
""",
    "the signature of a decorated function": """
import inspect
def decorated(f):
    @functools.wraps(f)
    def wrapper(*args, **kwargs): return f(*args, **kwargs)
    return wrapper
@decorated
def scaled(a, scale=2.0): return a * scale
def other(a, b, c, scale=3.0): return a
def step(x, y):
    return scaled(x) * len(inspect.signature(scaled).parameters)
def change(i):
    if i == 2: scaled.__wrapped__ = other
    if i == 4: other.__code__ = (lambda scale=1.0: 0).__code__
""",
    "arguments that are bound to a signature": """
import inspect
def scaled(a, scale=2.0): return a * scale
def step(x, y):
    bound = inspect.signature(scaled).bind(x)
    bound.apply_defaults()
    return scaled(*bound.args, **bound.kwargs)
def change(i): scaled.__defaults__ = 2.0 + i // 3,
""",
    # --------------------------------------------------------------------------------- warnings and messages
    "a warning that is shown once": """
import warnings
def step(x, y):
    if scale > 1: warnings.warn("the scale is large", UserWarning)
    return x * scale
scale = 2.0
def change(i):
    global scale
    scale = 2.0 + i // 3
""",
    "messages at levels that are off": """
import logging
logger = logging.getLogger("retrograd.tests.quiet")
logger.setLevel(logging.ERROR)
def step(x, y):
    logger.debug("shape %s", x.shape)
    logger.info(f"shape {x.shape}")
    logger.warning("a scale of %s", scale)
    return x * scale if logger.isEnabledFor(logging.INFO) else x + scale
scale = 2.0
def change(i):
    global scale
    scale = 2.0 + i // 3
""",
    # ------------------------------------------------------------------------------- functions of attributes
    "attributes along a path": """
config = dataclasses.make_dataclass("Config", ["model"])(dataclasses.make_dataclass("Model", ["scale"])(2.0))
import operator
def step(x, y):
    a = functools.reduce(getattr, "model.scale".split("."), config)
    return x * a + operator.attrgetter("model.scale")(config)
def change(i): config.model.scale = 2.0 + i // 3
""",
    "partial functions and caches": """
def scaled(a, scale, shift=0.0): return a * scale + shift
@functools.lru_cache
def root(n): return math.sqrt(n)
def step(x, y):
    return functools.partial(scaled, scale=scale)(x, shift=root(4)) + functools.partial(root, 9)()
scale = 2.0
def change(i):
    global scale
    scale = 2.0 + i // 3
""",
    "a function by the class of its argument": """
@functools.singledispatch
def scaled(a): return 1.0
@scaled.register
def _(a: rg.Tensor): return a * 2
@scaled.register
def _(a: list): return a[0] * 3
def step(x, y):
    return scaled(x) + scaled([y]) + scaled(None)
""",
    "classes and subclasses": """
class Base: scale = 2.0
class Sub(Base): pass
thing = Sub()
def step(x, y):
    found = [kind.__name__ for kind in type(thing).__mro__ if issubclass(kind, Base)]
    return x * type(thing).scale * len(found) + isinstance(thing, Base) * callable(thing)
def change(i):
    if i == 2: Base.scale = 3.0
    if i == 4: Sub.scale = 4.0
""",
    "an enumeration": """
import enum
class Mode(enum.Enum):
    SUM = "sum"
    MEAN = "mean"
mode = "sum"
def step(x, y):
    kind = Mode(mode)
    return x.sum() if kind is Mode.SUM else x.mean() * len(Mode) + len(Mode["SUM"].value)
def change(i):
    global mode
    mode = "mean" if i > 2 else "sum"
""",
    "text, regular expressions and JSON": """
import json, re, textwrap
def step(x, y):
    found = {name: p.detach().sum() for name, p in model.named_parameters() if re.match(pattern, name)}
    return sum(found.values()) * len(re.sub("a+", "b", text)) + len(json.dumps({"a": text}))
pattern, text = r"0[.]w", "banana"
def change(i):
    global pattern, text
    if i == 2: pattern = r".*bias$"
    if i == 4: text = "aaa"
""",
    "containers of collections": """
def step(x, y):
    merged = collections.ChainMap({"scale": 2.0}, settings)
    counted = collections.Counter(n for n, _ in model.named_parameters() for n in n.split("."))
    return x * merged["scale"] + merged["shift"] * counted["bias"]
settings = {"shift": 1.0}
def change(i): settings["shift"] = 1.0 + i // 3
""",
    "heaps, bisections and statistics": """
import bisect, heapq, operator, statistics, string
edges = [0.5, 1.5]
def step(x, y):
    return x * bisect.bisect(edges, 1.0) + heapq.nlargest(1, edges)[0] + statistics.fmean(edges)
def change(i):
    if i == 3: edges[0] = 1.25
""",
    "a named tuple with other fields": """
class Pair(NamedTuple):
    a: float
    b: float
pair = Pair(2.0, 1.0)
def step(x, y):
    mine = pair._replace(b=3.0)
    return x * mine.a + mine.b, mine._asdict()
def change(i):
    global pair
    pair = Pair(2.0 + i // 3, 1.0)
""",
    "a simple namespace": """
import types
settings = types.SimpleNamespace(scale=2.0)
def step(x, y):
    mine = types.SimpleNamespace(**vars(settings), shift=1.0)
    return x * mine.scale + mine.shift
def change(i): settings.scale = 2.0 + i // 3
""",
}

# Steps whose results depend on what no guard compares, or whose effects the eager run repeats: they run in parts.
REFUSED = {
    "an id that is a number": """
def step(x, y): return x * (id(x) % 2)
""",
    "ids from outside": """
known = set()
def step(x, y): return x * 2.0 if id(x) in known else x * 3.0
def change(i): known.add(i + 100_000)
""",
    "an id as an attribute": """
import types
latest = types.SimpleNamespace(key=0)
def step(x, y):
    latest.key = id(x)
    return x * 2.0
""",
    "a list of ids": """
def step(x, y):
    ids = [id(x), id(y)]
    return x * ids.index(min(ids))
""",
    "a warning that is always shown": """
import warnings
warnings.simplefilter("always")
def step(x, y):
    warnings.warn("each time")
    return x * 2.0
""",
    "a message that is written": """
import logging
logger = logging.getLogger("retrograd.tests.loud")
logger.addHandler(logging.NullHandler())
def step(x, y):
    logger.error("each time")
    return x * 2.0
""",
    "a weak reference": """
import weakref
class Config: scale = 2.0
configs = [Config(), Config()]
reference = weakref.ref(configs[0])
def step(x, y):
    return x * reference().scale
def change(i):
    global reference
    if i == 2: configs[0].scale = 3.0
    if i == 4: reference = weakref.ref(configs[1])
""",
    "the signature of a class": """
import inspect
class Config:
    def __init__(self, a, b=2.0): pass
def step(x, y): return x * len(inspect.signature(Config).parameters)
""",
}

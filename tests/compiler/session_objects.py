"""Random sessions on objects that change between calls: models, variables and classes, counters and lists."""

from .session_preamble import PREAMBLE, USUAL
from .sessions import Family

MODELS = Family(
    PREAMBLE
    + """
import pickle, sys
class Wide(nn.Module):
    def __init__(self, n=2):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(3, 3) for _ in range(n)])
        self.heads = nn.ModuleDict({"x": nn.Linear(3, 3), "y": nn.Sequential(nn.Linear(3, 3), nn.ReLU())})
        self.scales = nn.ParameterList([nn.Parameter(rg.ones(3)), nn.Parameter(rg.ones(1))])
        self.register_buffer("mean", rg.zeros(3))
        self.register_buffer("none", None)
        self.head = "x"
        self.tied = nn.Linear(3, 3)
        self.tied.weight = self.layers[0].weight
    def forward(self, x):
        for i, layer in enumerate(self.layers): x = layer(x).tanh() * self.scales[i % 2]
        if self.training: self.mean.lerp_(x.detach().mean(0), 0.1)
        return self.heads[self.head](x - self.mean) + self.tied(x)
rg.manual_seed(1)
model = Wide()
sys.modules.setdefault("session_models", types.ModuleType("session_models")).Wide = Wide
Wide.__module__ = "session_models"  # where pickle finds it
def pickled(value): return pickle.loads(pickle.dumps(value))
def remade(optimizer, model):
    new = type(optimizer)(model.parameters(), lr=0.05)
    state = optimizer.state_dict()
    try: new.load_state_dict(state)
    except ValueError: pass
    return new
def add_others(optimizer, model):
    known = {id(p) for group in optimizer.param_groups for p in group["params"]}
    optimizer.add_param_group({"params": [p for p in model.parameters() if id(p) not in known]})
compiled = compile(model)
ema = copy.deepcopy(model)
state = lambda: [log, s.h, s.n, [p for p in ema.parameters()], [n for n, _ in model.named_modules()]]
""",
    [
        [
            "{v} = model({a})", "{v} = model.layers[0]({a})", "{v} = model.heads['y']({a})",
            "{v} = {a} * model.scales[0]",
            "{v} = model.tied({a}) + {a}", "{v} = {a}.tanh()", "{v} = compiled({a})", "{v} = ema({a})",
            "{v} = {a} + model.mean",
            "{v} = {a} * sum(p.square().mean() for p in model.parameters())", "{v} = {a} * len(model.layers)",
            "{v} = {a} if model.none is None else {a} + model.none",
            "{v} = {a} * (2 if hasattr(model, 'extra') else 1)",
            "{v} = model.extra({a}) if hasattr(model, 'extra') else {a} + 1", "{v} = {a} * len(list(model.children()))",
            "{v} = func.functional_call(model, dict(model.named_parameters()), ({a},))",
            "{v} = {a} + model.get_parameter('layers.0.bias')",
            "{v} = {a} * model.state_dict()['mean'].sum()", "{v} = {a} * (model.layers[0].weight is model.tied.weight)",
            "{v} = nn.utils.parameters_to_vector(model.parameters())[:3] * {a}", "{v} = copy.deepcopy(model)({a})",
            "{v} = {a} * sum(p.requires_grad for p in model.parameters())",
        ],
        [
            "for p, q in zip(ema.parameters(), model.parameters()): p.data.lerp_(q.data, 0.1)", "s.h = {a}.detach()",
            "s.n += 1",
            "ema.load_state_dict(model.state_dict())", "log.append({a}.detach().mean())", "model.zero_grad()",
            "model.mean = {a}.detach().mean(0)",
            "for p in model.heads.parameters(): p.requires_grad_(s.n % 2 == 0)", "model.train(not model.training)",
            "model.head = 'y'", "model.layers[0].bias.data = model.layers[0].bias.data * 0.9",
        ],
    ],
    [
        "optimizer.zero_grad()\n    loss = F.mse_loss(model({a}), {a}.detach())\n"
        "    if loss.requires_grad: loss.backward(); optimizer.step()\n    log.append(loss.detach())",
        "loss = (model({a}) - ema({a}).detach()).square().mean()\n"
        "    if loss.requires_grad: loss.backward(); optimizer.step()",
        "for p in model.parameters(): p.grad = None\n    loss = model({a}).mean()\n"
        "    if loss.requires_grad: loss.backward()",
    ],
    ["{a}", "{a}.detach()", "({a}, x)", "[{a}.detach(), model.mean]"],
    [
        "model = copy.deepcopy(model)", "model = pickled(model)",
        "model, optimizer = copy.deepcopy((model, optimizer))",
        "model, optimizer = pickled((model, optimizer))", "optimizer = remade(optimizer, model)",
        "optimizer = copy.deepcopy(optimizer)",
        "model.layers.append(nn.Linear(3, 3))", "model.layers = nn.ModuleList(list(model.layers)[:1])",
        "del model.layers[-1]",
        "model.heads['x'] = nn.Linear(3, 3)", "model.heads.update({{'x': nn.Identity()}})", "model.heads.pop('y')",
        "model.head = 'y' if model.head == 'x' else 'x'", "model.add_module('extra', nn.Linear(3, 3))",
        "vars(model)['_modules'].pop('extra', None)", "model.extra = lambda x: x * 2",
        "model.tied.weight = nn.Parameter(num({i}, 3, 3))",
        "model.layers[0].weight = model.tied.weight", "model.layers[0].bias = nn.Parameter(num({i}, 3))",
        "model.layers[0].bias = None",
        "model.scales[0] = nn.Parameter(num({i}, 3))", "model.scales[1].requires_grad_(False)",
        "model.requires_grad_(False)",
        "model.requires_grad_(True)", "model.heads.requires_grad_(False)", "model.none = num({i}, 3)",
        "model.register_buffer('none', None)",
        "model.mean = num({i}, 3)", "model.layers[0].weight.data = num({i}, 3, 3)", "model.eval()", "model.train()",
        "ema = copy.copy(model)",
        "ema = model", "ema = copy.deepcopy(model)", "nn.utils.parametrizations.weight_norm(model.layers[0])",
        "nn.utils.parametrizations.spectral_norm(model.tied)",
        "nn.utils.parametrize.remove_parametrizations(model.layers[0], 'weight')",
        "model.layers[0].forward = lambda x: x * 2",
        "nn.init.normal_(model.tied.weight)", "model.apply(lambda m: setattr(m, 'training', not m.training))",
        "model.load_state_dict(copy.deepcopy(ema.state_dict()), strict=False)",
        "model.load_state_dict(ema.state_dict(), strict=False, assign=True)",
        "model.__class__ = type('Wider', (Wide,), {{'forward': lambda self, x: self.layers[0](x) * 3}})",
        "f = copy.deepcopy(f)",
        "f = copy.copy(f)", "compiled = compile(model)", "model.layers.insert(0, nn.Tanh())",
        "model.layers[0].weight.grad = None",
        "optimizer.param_groups[0]['params'].pop(); optimizer.state.clear()", "add_others(optimizer, model)",
        "swapped = model; model = ema; ema = swapped",
        "optimizer.state.clear()", "model.double().float()",
        "model.tied.weight, model.layers[0].weight = model.layers[0].weight, model.tied.weight",
    ],
    [*USUAL[:1], "num({i}).requires_grad_()", "num({i}, 2, 3)"],
    ["num({i})", "num({i}, 5, 3)", "num({i}).requires_grad_()", "model.tied.weight", "s.h",
     "model.layers[0](num({i}))"],
    ["rg.no_grad()({f})({x})", "backward({f}({x}))", "backward({f}({x}))", "backward(compiled({x}))", "compiled({x})",
     "in_thread({f}, {x})"],
    (("optimizer", [f"rg.optim.{o}" for o in ("SGD(model.parameters(), lr=0.1, momentum=0.9)",
    "Adam(model.parameters(), lr=0.05)",
                    "RMSprop(model.parameters(), lr=0.01)", "Adagrad(model.parameters(), lr=0.1)",
                    "AdamW(model.parameters(), lr=0.1)",
                    "NAdam(model.parameters())")]),),
)  # fmt: skip

OBJECTS = Family(
    PREAMBLE
    + """
import collections, contextlib, dataclasses, enum, typing
optimizer = rg.optim.SGD(model.parameters(), lr=0.1)
class Mode(enum.Enum):
    ONE = 1
    TWO = 2
class Flag(enum.Flag):
    A = 1
    B = 2
@dataclasses.dataclass
class Config:
    scale: float = 2.0
    mode: Mode = Mode.ONE
    names: list = dataclasses.field(default_factory=lambda: ["a"])
    shift: typing.Any = None
@dataclasses.dataclass(frozen=True)
class Fixed:
    k: float = 1.5
    t: typing.Any = None
class Carry(typing.NamedTuple):
    h: typing.Any
    n: int = 0
class Base:
    factor = 2.0
    table = {"a": 1.0}
    def __init__(self): self.own, self.calls, self.past = 1.0, 0, collections.deque([1.0, 2.0], maxlen=2)
    @property
    def scaled(self): return self.own * self.factor
    @classmethod
    def of(cls, x): return x * cls.factor
    @staticmethod
    def plus(x): return x + 1
    def __call__(self, x): return x * self.scaled
class Derived(Base):
    def __call__(self, x): return super().__call__(x) + 1
class Lazy:
    def __getattr__(self, name):
        if name.startswith("_"): raise AttributeError(name)
        return len(name)
class Stop(Exception): pass
def check(x, n):
    if n > 2: raise Stop(n)
    return x * 2
def closure():
    k, calls = 2.0, [0]
    def read(x): return x * k
    def bump():
        nonlocal k
        k += 1.0
    def count(x):
        calls[0] += 1
        return x + calls[0]
    return read, bump, count
read, bump, count = closure()
@contextlib.contextmanager
def scaled(x):
    try: yield x * 2
    finally: s.n += 1
def default(x, k=2.0, *rest, flag=None): return x * k + len(rest) + (flag is None)
config, fixed, carry, base, derived = Config(), Fixed(), Carry(num(2)), Base(), Derived()
lazy, flags = Lazy(), Flag.A
seen, table, chain = {1, 2}, collections.defaultdict(float, a=1.0), collections.ChainMap({"k": 1.0}, {"j": 2.0})
local = threading.local()
local.k = 1.5
def state():
    values = [config.__dict__, carry, base.own, base.calls, list(base.past), Base.factor, Base.table]
    return [s.h, s.n, log, *values, sorted(seen), dict(table), read(1.0), flags.value]
""",
    [
        [
            "{v} = {a} * config.scale", "{v} = {a} * (2 if config.mode is Mode.ONE else 3)",
            "{v} = {a} * config.mode.value", "{v} = {a} * len(config.names)",
            "{v} = {a} if config.shift is None else {a} + config.shift", "{v} = {a} * fixed.k",
            "{v} = {a} if fixed.t is None else {a} + fixed.t",
            "{v} = {a} + carry.h.mean(0)", "{v} = {a} * carry.n", "{v} = base({a})", "{v} = derived({a})",
            "{v} = Base.of({a})", "{v} = derived.of({a})", "{v} = base.plus({a})", "{v} = {a} * base.table['a']",
            "{v} = {a} * lazy.abc", "{v} = read({a})", "{v} = count({a})", "{v} = check({a}, s.n)",
            "{v} = default({a})", "{v} = default({a}, 3.0, 1, 2)", "{v} = default({a}, flag=1)",
            "{v} = {a} * len(seen)", "{v} = {a} * (1 in seen)", "{v} = {a} * table['a']", "{v} = {a} * chain['k']",
            "{v} = {a} * bool(flags & Flag.B)", "{v} = {a} * getattr(s, 'extra', 1.0)", "{v} = {a} * local.k",
            "{v} = {a} * sum(base.past)", "{v} = dataclasses.replace(config, scale=3.0).scale * {a}",
            "{v} = {a} * isinstance(base, Derived)", "{v} = {a} * len(vars(config))",
            "{v} = {a} * globals()['factor']", "{v} = {a} * sum(table.values())",
            "{v} = {a} * {{Mode.ONE: 1.0, Mode.TWO: 2.0}}[config.mode]",
            "{v} = {a} * max(Base.table.values())", "{v} = {a} * len(dataclasses.fields(config))",
            "{v} = {a} * dataclasses.asdict(fixed)['k']", "{v} = {a} * carry._asdict()['n']",
            "{v} = {a} * hash(config.mode.name) * 0 + 1", "{v} = {a} * (config == Config())",
            "{v} = {a} * len(f'{{config.scale}}')",
        ],
        [
            "try: {v} = check({a}, s.n)\n    except Stop: {v} = {a} + 1",
            "with scaled({a}) as {v}: {v} = {v} + 1; {v} = {v} * 2",
            "try: {v} = {a} @ {a}\n    except RuntimeError: {v} = {a} * 3",
            "with contextlib.suppress(Stop): check({a}, s.n)",
            "match config.mode:\n        case Mode.ONE: {v} = {a} + 1\n        case _: {v} = {a} + 2",
            "try: {v} = {a}[7]\n    except IndexError as error: {v} = {a} + len(str(error)) * 0",
            "try: {v} = {a} + 1; s.n += 1; check({a}, s.n)\n    except Stop: {v} = {a} - 1",
            "try: {v} = table['zz'] * {a}\n    finally: s.n += 1",
            "for k in sorted(Base.table): {v} = {a} * Base.table[k]",
        ],
        [
            "s.n += 1", "base.calls += 1", "Base.factor = 3.0", "config.scale = 4.0", "config.mode = Mode.TWO",
            "s.h = {a}.detach()", "base.past.append(3.0)", "config.names.append('b')", "table['a'] += 1.0",
            "seen.add(3)", "bump()", "config.shift = {a}.detach().mean(0)",
            "s.carry = Carry({a}.detach().mean(0), 1)", "base.own = {a}.detach().sum()",
            "log.append({a}.detach().sum())", "Base.table['a'] = 2.0", "s.extra = 2.0", "local.k += 0.5",
            "if s.n > 3: raise Stop(s.n)", "s.n += 1; check({a}, s.n)",
        ],
    ],
    ["loss = {a}.square().mean()\n    if loss.requires_grad: loss.backward()"],
    ["{a}", "{a}.detach()", "({a}, s.n)", "Carry({a}, s.n)", "[{a}, config.mode]", "{{'a': {a}, 'c': config.scale}}"],
    [
        "config.scale = 3.0", "config.mode = Mode.TWO", "config.mode = Mode.ONE", "config.names.append('b')",
        "config.names = []", "config.shift = num({i})[0]", "config.shift = None", "config = Config(scale=5.0)",
        "config = dataclasses.replace(config, mode=Mode.TWO)", "fixed = Fixed(2.5)", "fixed = Fixed(t=num({i})[0])",
        "carry = Carry(num({i}), 2)", "carry = carry._replace(n=3)", "carry = Carry(num({i}))", "base.own = 2.0",
        "base.own = rg.tensor(2.0)", "Base.factor = 5.0", "Derived.factor = 7.0",
        "Derived.factor = 7.0; del Derived.factor", "Base.table['a'] = 4.0", "Base.table = {{'a': 6.0}}",
        "Base.plus = staticmethod(lambda x: x + 5)",
        "Base.scaled = property(lambda self: 2.0)", "Base.__call__ = lambda self, x: x * 9", "Lazy.abc = 8",
        "base = Derived()", "base.__class__ = Derived", "bump()", "read, bump, count = closure()", "s.n = 0",
        "s.n = 3", "s.n += 1", "s.extra = 5.0", "vars(s).pop('extra', None)", "default.__defaults__ = (4.0,)",
        "default.__kwdefaults__ = {{'flag': 1}}",
        "def default(x, k=1.0, *rest, flag=None): return x - k", "seen.add({i})", "seen.discard(1)", "seen = set()",
        "table['a'] = 9.0", "table['z'] = 1.0", "chain.maps[0]['k'] = 4.0", "chain = chain.new_child({{'k': 7.0}})",
        "flags = Flag.A | Flag.B", "local.k = 2.5", "base.past.append(5.0)",
        "base.past = collections.deque([9.0], maxlen=3)", "check = lambda x, n: x * 3",
        "Carry.__new__.__defaults__ = (5,)", "f, g = g, f", "factor = 4.0",
        "config.__class__ = type('Other', (Config,), {{}})", "Config.scale = 8.0",
        "object.__setattr__(fixed, 'k', 4.5)", "del config.scale", "Mode.ONE._value_ = 4",
        "check.__code__ = (lambda x, n: x * 5).__code__", "base = copy.deepcopy(base)", "vars(base)['own'] = 6.0",
    ],
    ["num({i})", "num({i}).requires_grad_()"],
    ["num({i})", "num({i}, 2, 3)", "num({i}).double()", "num({i}, 3, 3)", "carry.h", "num({i}).requires_grad_()"],
    ["rg.no_grad()({f})({x})", "backward({f}({x}))", "in_thread({f}, {x})", "{f}(x={x})",
     "under(contextlib.suppress(Stop), {f}, {x})"],
)  # fmt: skip

NUMBERS = [
    "agent.n",
    "agent.stats.count",
    "agent.counts['a']",
    "s.n",
    "counts['a']",
    "Agent.steps",
    "agent.slotted.n",
    "past[0]",
    "latest[0]",
]
LISTS = ["past", "agent.past", "agent.latest", "latest", "agent.stats.past", "agent.slotted.past", "agent.pair.items"]
COUNTERS = Family(
    PREAMBLE
    + """
import collections, dataclasses, typing
optimizer = rg.optim.SGD(model.parameters(), lr=0.1)
@dataclasses.dataclass
class Stats:
    count: int = 0
    total: float = 0.0
    past: list = dataclasses.field(default_factory=list)
class Pair(typing.NamedTuple):
    n: int
    items: list
class Slotted:
    __slots__ = ("n", "past")
    def __init__(self): self.n, self.past = 0, [1]
class Agent:
    steps = 0
    def __init__(self):
        self.n, self.time, self.past, self.latest = 0, 0.0, [0], collections.deque([1, 2], maxlen=4)
        self.counts, self.stats, self.pair, self.slotted = {"a": 0, "b": 1}, Stats(), Pair(0, [1]), Slotted()
    def count(self, k=1):
        self.n += k
        return k
    def note(self, x): self.past.append(x)
    def last(self): return self.past[-1]
agent, past, latest, counts, number = Agent(), [1], collections.deque([1, 2]), collections.Counter(a=1), 0
def bump():
    global number
    number += 1
    return number
def state():
    a = agent
    values = [a.n, a.time, a.past, list(a.latest), a.counts, vars(a.stats), a.pair, a.slotted.n, a.slotted.past]
    return [log, s.n, Agent.steps, *values, past, list(latest), dict(counts), number]
""",
    [
        [
            "{n} += 1", "{n} -= 2", "{n} += len(x)", "{n} = {n} + 1", "{n} += {m}", "{n} = {m} + 1", "{n} *= 2",
            "{n} = max({n}, 2)", "{n} += agent.count()", "{n} += bump()", "{n} += 1 if {m} else 2",
            "{n}, {m} = {m}, {n}", "{n} = {m} = 1", "{n} += ({n} > 2)", "if {n} < 3: {n} += 1",
            "for _ in range(2): {n} += 1", "{n} += int({a}.shape[0])", "agent.time += 0.5",
            "agent.stats.total += 0.25 + 0.0", "agent.time += agent.stats.total", "agent.time = agent.time + 0.1",
            "while {n} % 3: {n} += 1", "{n} += 1; {m} += {n}", "agent.n += 1; agent.count({m})",
        ],
        [
            "{l}.append(1)", "{l}.append({l}[-1] + 1)", "{l}.append({n})", "{l}.append(len({l}))", "{l} += [1]",
            "{l}.extend([{n}, 2])", "{l}.append({a}.detach().sum()); {v} = {l}[-1] * {a}", "{l}.append(agent.last())",
            "{l}.append({k}[-1])", "{l}[0] += 1", "{l}[-1] += 1", "{l}[0] = {l}[-1]",
            "{l}.append({l}.pop())", "{l}.append(bump())", "agent.note({n})", "agent.note(agent.last() + 1)",
            "{l}.append(2); {v} = {a} * {l}[-1]", "{l}.append({n}); {n} += 1", "{l}.append(1) if {n} > 2 else None",
            "{l}.append([{l}[-1]][0])", "{l}.append({a}.detach()); {l}.append(float({l}[-1].shape[0]))",
            "{l}.append(1); {k}.append(2); {v} = {a} + {l}[-1]", "{l}.extend(list({k}))", "{l} += [{l}[-1]]",
            "for m in (1, 2): {l}.append(m)", "{l}.append({l}[-1]); {l}.append({l}[-1])",
            "{l}.extend([1]); {v} = {a} * {l}[-1]", "{l}.append(3); {l}.extend([{l}[-1]])", "{l}.append(sum({l}))",
            "agent.counts.setdefault('z', []).append(1)",
            "agent.counts.setdefault('z', []).append(len(agent.counts))", "agent.pair.items.append(agent.pair.n)",
            "agent.pair = agent.pair._replace(n=agent.pair.n + 1)",
            "agent.pair = Pair(agent.pair.n + 1, agent.pair.items)",
            "agent.latest.append(agent.latest.popleft() + 1)", "latest.appendleft(0)", "latest.rotate(1)",
            "{l}.insert(0, 1)", "{l}.reverse()", "agent.past = [*agent.past, 1]",
            "agent.past = agent.past + [agent.past[-1]]", "agent.stats = Stats(agent.stats.count + 1)",
            "agent.stats = dataclasses.replace(agent.stats, count=agent.stats.count + 1)", "del {l}[0]",
        ],
        ["{v} = {a} * 2", "{v} = {a} + {n}", "{v} = {a} * len({l})", "{v} = {a} * {l}[0]",
         "{v} = {a} + (1 if {n} > 3 else 2)", "{v} = {a} * agent.time", "{v} = {a}.sin()", "{v} = model.a({a})",
         "{v} = {a} + agent.last()"],
    ],
    [],
    ["{a}", "({a}, {n})", "[{a}, *{l}]", "{{'a': {a}, 'n': {n}}}"],
    ["{n} = 0", "{n} += 5", "{l}.append(7)", "{l}.clear(); {l}.append(3)", "agent = Agent()", "past = agent.past",
     "agent.past = past", "agent.time = 0.0", "latest = agent.latest", "agent.counts = counts",
     "agent.stats.past = past", "agent.slotted.past = agent.past", "latest = collections.deque([1, 2, 3])"],
    ["num({i})"],
    ["num({i})", "num({i}, 2, 3)"],
    ["rg.no_grad()({f})({x})", "{f}({x})"],
    names=(("n", NUMBERS), ("m", NUMBERS), ("l", LISTS), ("k", LISTS)),
)  # fmt: skip

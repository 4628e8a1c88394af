"""Steps that keep state between calls, as people write it: the way it runs, and the most recordings of ten calls."""

from .common_steps import PARTS, WHOLE

STATES = {
    # ---------------------------------------------------------------------------------------------- numbers
    "a moving average of losses, as a number": (PARTS, 3, """
class Trainer:
    def __init__(self): self.ema = 0.0
    def step(self, x, y):
        loss = F.mse_loss(model(x), y)
        train(loss)
        self.ema = 0.9 * self.ema + 0.1 * loss.item()
        return loss.detach(), self.ema
step = Trainer().step
"""),
    "a sum of losses, as a number": (PARTS, 3, """
class Trainer:
    def __init__(self): self.total, self.count = 0.0, 0
    def step(self, x, y):
        loss = F.mse_loss(model(x), y)
        train(loss)
        self.total += loss.item()
        self.count += 1
        return self.total / self.count
step = Trainer().step
"""),
    "the time of a simulation": (WHOLE, 2, """
class Simulation:
    def __init__(self): self.time = 0.0
    def step(self, x, y):
        self.time += 0.1
        return x * 2 + y
simulation = Simulation()
step = simulation.step
state = lambda: simulation.time
"""),
    "a number of examples as a float": (PARTS, 3, """
class Meter:
    def __init__(self): self.seen, self.sum = 0.0, rg.zeros(())
    def step(self, x, y):
        self.seen += len(x)
        self.sum = self.sum + x.sum()
        return self.sum
meter = Meter()
step = meter.step
state = lambda: meter.seen
"""),
    "a counter of a class": (WHOLE, 2, """
class Trainer:
    steps = 0
    def step(self, x, y):
        Trainer.steps += 1
        loss = F.mse_loss(model(x), y)
        train(loss)
        return loss.detach()
step = Trainer().step
state = lambda: Trainer.steps
"""),
    "a tensor of a class": (WHOLE, 2, """
class Stats:
    mean = rg.zeros(3)
    @classmethod
    def update(cls, x): cls.mean = cls.mean * 0.9 + x.mean(0) * 0.1
def step(x, y):
    Stats.update(x)
    return x - Stats.mean
state = lambda: Stats.mean.tolist()
"""),
    # ---------------------------------------------------------------------------------------------- objects
    "an object with slots": (WHOLE, 2, """
class Carry:
    __slots__ = ("hidden", "count")
    def __init__(self): self.hidden, self.count = rg.zeros(4, 3), 0
carry = Carry()
def step(x, y):
    carry.hidden = (carry.hidden + x).tanh()
    carry.count += 1
    return carry.hidden * y
state = lambda: carry.count
"""),
    "a dataclass": (WHOLE, 2, """
@dataclasses.dataclass
class Carry:
    hidden: rg.Tensor
    count: int = 0
carry = Carry(rg.zeros(4, 3))
def step(x, y):
    carry.hidden = (carry.hidden + x).tanh()
    carry.count += 1
    return carry.hidden * y
state = lambda: carry.count
"""),
    "a dataclass with slots": (WHOLE, 2, """
@dataclasses.dataclass(slots=True)
class Carry:
    hidden: rg.Tensor
    count: int = 0
carry = Carry(rg.zeros(4, 3))
def step(x, y):
    carry.hidden = (carry.hidden + x).tanh()
    carry.count += 1
    return carry.hidden * y
state = lambda: carry.count
"""),
    "a dataclass that is replaced": (WHOLE, 2, """
@dataclasses.dataclass(frozen=True)
class Carry:
    hidden: rg.Tensor
    cell: rg.Tensor
class Agent:
    def __init__(self): self.carry = Carry(rg.zeros(4, 3), rg.zeros(4, 3))
    def step(self, x, y):
        self.carry = dataclasses.replace(self.carry, hidden=(self.carry.hidden + x).tanh())
        self.carry = Carry(self.carry.hidden * 2, self.carry.cell + y)
        return self.carry.cell * self.carry.hidden
agent = Agent()
step = agent.step
"""),
    "a named tuple that is replaced": (WHOLE, 2, """
class Carry(NamedTuple):
    hidden: rg.Tensor
    cell: rg.Tensor
class Agent:
    def __init__(self): self.carry = Carry(rg.zeros(4, 3), rg.zeros(4, 3))
    def step(self, x, y):
        self.carry = self.carry._replace(hidden=(self.carry.hidden + x).tanh())
        self.carry = Carry(self.carry.hidden * 2, self.carry.cell + y)
        return self.carry.cell * self.carry.hidden
agent = Agent()
step = agent.step
"""),
    "a named tuple with a counter": (PARTS, 10, """
class Carry(NamedTuple):
    hidden: rg.Tensor
    count: int
class Agent:
    def __init__(self): self.carry = Carry(rg.zeros(4, 3), 0)
    def step(self, x, y):
        hidden, count = self.carry
        self.carry = Carry((hidden + x).tanh(), count + 1)
        return self.carry.hidden * y
agent = Agent()
step = agent.step
state = lambda: agent.carry.count
"""),
    "an enumeration that changes once": (WHOLE, 3, """
import enum
class Phase(enum.Enum):
    WARMUP = 0
    TRAIN = 1
class Agent:
    def __init__(self): self.phase, self.count = Phase.WARMUP, 0
    def step(self, x, y):
        out = x * 2 if self.phase is Phase.WARMUP else x * 3 + y
        self.phase = Phase.TRAIN
        return out
agent = Agent()
step = agent.step
state = lambda: agent.phase.name
"""),
    "an enumeration that alternates": (WHOLE, 3, """
import enum
class Side(enum.Enum):
    LEFT = 0
    RIGHT = 1
class Agent:
    def __init__(self): self.side = Side.LEFT
    def step(self, x, y):
        out = x * 2 if self.side is Side.LEFT else x * 3 + y
        self.side = Side.RIGHT if self.side is Side.LEFT else Side.LEFT
        return out
agent = Agent()
step = agent.step
state = lambda: agent.side.name
"""),
    "a deque that is replaced": (PARTS, 10, """
class Agent:
    def __init__(self): self.latest = collections.deque([rg.zeros(4, 3)] * 3, maxlen=3)
    def step(self, x, y):
        self.latest = collections.deque([*self.latest, x * 2], maxlen=3)
        return sum(self.latest) * y
agent = Agent()
step = agent.step
"""),
    "a simple namespace": (WHOLE, 2, """
import types
carry = types.SimpleNamespace(hidden=rg.zeros(4, 3), count=0)
def step(x, y):
    carry.hidden = (carry.hidden + x).tanh()
    carry.count += 1
    return carry.hidden * y
state = lambda: carry.count
"""),
    "objects that are replaced": (PARTS, 10, """
class Carry:
    def __init__(self, hidden): self.hidden = hidden
class Agent:
    def __init__(self): self.carry = Carry(rg.zeros(4, 3))
    def step(self, x, y):
        self.carry = Carry((self.carry.hidden + x).tanh())
        return self.carry.hidden * y
agent = Agent()
step = agent.step
"""),
    # ---------------------------------------------------------------------------------------------- results
    "a dataclass as result, with a number of the step": (WHOLE, 2, """
@dataclasses.dataclass
class Out:
    loss: rg.Tensor
    size: int
def step(x, y):
    loss = F.mse_loss(model(x), y)
    train(loss)
    return Out(loss.detach(), len(x))
"""),
    "a dataclass as result, with fields made after": (WHOLE, 2, """
@dataclasses.dataclass
class Out:
    loss: rg.Tensor
    double: rg.Tensor = dataclasses.field(init=False)
    def __post_init__(self): self.double = self.loss * 2
def step(x, y):
    return Out(F.mse_loss(model(x), y).detach())
"""),
}  # fmt: skip

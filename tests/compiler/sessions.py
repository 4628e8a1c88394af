"""Random sessions: functions that share state are called, and anything changes between the calls."""

import random
from dataclasses import dataclass

import retrograd as rg

from .comparison import observe, state_of
from .test_common_steps import compile_source


@dataclass(frozen=True)
class Family:
    """The parts that the sessions of one subject are made of.

    `lines` are lists of statements, equally frequent; `{v}` is assigned, and `{a}` is a value before. `ends` are
    statements of which some functions have one, before they return one of `results`. `events` run between calls, which
    are `{f}({x})` or one of `calls`, with usual arguments or one of `arguments`; `{i}` is a seed. The preamble defines
    `model`, `optimizer`, and the function `state`.
    """

    preamble: str
    lines: list[list[str]]
    ends: list[str]
    results: list[str]
    events: list[str]
    usual: list[str]
    arguments: list[str]
    calls: list[str]
    choices: tuple[tuple[str, list[str]], ...] = ()  # assignments after the preamble, each with its values
    names: tuple[tuple[str, list[str]], ...] = ()  # further placeholders, each with its values

    def fill(self, choose, part, **values):
        """Return a part with values for its placeholders."""
        return part.format(**values, **{name: choose.choice(found) for name, found in self.names})


def random_function(choose, family, name):
    """Return the code of a function that computes, and may change state."""
    known, lines = ["x"], []
    for i in range(choose.randint(1, 6)):
        part = choose.choice(choose.choice(family.lines))
        line = family.fill(choose, part, v=f"v{i}", a=choose.choice(known[-3:]))
        lines.append(line)
        known += [f"v{i}"] if f"v{i} = " in line else []
    if family.ends and choose.random() < 0.4:
        lines.append(family.fill(choose, choose.choice(family.ends), a=known[-1]))
    lines.append(f"return {family.fill(choose, choose.choice(family.results), a=known[-1])}")
    return f"@compile\ndef {name}(x):\n" + "".join(f"    {line}\n" for line in lines)


def random_session(seed, family):
    """Return the code of the functions, and the changes and calls that follow; those begin with "="."""
    choose = random.Random(seed)
    code = family.preamble
    for name, values in family.choices:
        code += f"{name} = {choose.choice(values)}\n"
    code += random_function(choose, family, "f")
    code += random_function(choose, family, "g") if choose.random() < 0.7 else "g = f\n"
    usual, changes, events = choose.choice(family.usual), choose.choice([0.15, 0.35, 0.65]), []
    for i in range(choose.randint(6, 16)):
        if choose.random() < changes:
            events.append(family.fill(choose, choose.choice(family.events), i=30 + i))
        x = (usual if choose.random() < 0.7 else choose.choice(family.arguments)).format(i=30 + i)
        call = "{f}({x})" if choose.random() < 0.75 else choose.choice(family.calls)
        events.append("=" + call.format(f=choose.choice("ffg"), x=x))
    return code, events


def seen_of(value):
    """Return what is observed of a value: of a tensor of inference mode, which has no version, the numbers."""
    if isinstance(value, tuple | list):
        return [type(value).__name__, *[seen_of(member) for member in value]]
    if isinstance(value, dict):
        return [(key, seen_of(member)) for key, member in value.items()]
    if not isinstance(value, rg.Tensor):
        return repr(value)
    try:
        if value.is_nested:
            return ["nested", value.requires_grad, *[seen_of(part.detach()) for part in value.unbind()]]
        return (type(value).__name__, observe(value)) if not value.is_inference() else repr(value.tolist())
    except RuntimeError as error:  # it has escaped a transform
        return type(error)


def content_of(value):
    """Return the numbers of a value: versions of states depend on whether parameters take a step together."""
    try:
        return seen_of(value * 1)
    except RuntimeError as error:  # it has escaped a transform
        return type(error)


def outcomes(session, compile):
    """Return what is observed of each change and call, or its error, and the functions."""
    code, events = session
    names, seen = {"compile": compile, "__name__": "session"}, []
    exec(compile_source(code), names)
    for event in events:
        try:
            seen.append(seen_of(eval(event[1:], names)) if event[0] == "=" else exec(event, names))
        except Exception as error:  # which a random call may raise, of any type
            seen.append((type(error).__name__, str(error).partition(" at ")[0]))
        model, optimizer = names["model"], names["optimizer"]
        seen.append(seen_of(names["state"]()))
        seen.append(state_of([t for t in [*model.parameters(), *model.buffers()] if not t.is_inference()]))
        states = optimizer.state_dict()["state"]
        seen.append({n: {key: content_of(t) for key, t in sorted(states[n].items())} for n in sorted(states)})
        seen.append([repr([group["lr"] for group in optimizer.param_groups]), str(rg.get_rng_state())])
    return seen, [names["f"], names["g"]]

"""The state outside that a call replaces: attributes, items and variables, which a program sets as the call did.

What the call has replaced shows after it: the guards of what was there before do not hold. A program reads the tensors
there as further arguments, so that it holds for those of the next call, and sets the new values when all of them are
made. If it fails before that, nothing has changed.
"""

import enum
import types
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterable
from itertools import islice
from typing import Any

from retrograd.compiler.arguments import members_of
from retrograd.compiler.guards import KEYS, LENGTH, Absent, ClassFields, CounterEntry, Entry, Slots
from retrograd.compiler.namespaces import MISSING, is_library
from retrograd.compiler.output_tree import make_record
from retrograd.compiler.plain_values import is_plain_value, is_same
from retrograd.compiler.state_accesses import is_only_appended_to, is_only_counted, numbers_added
from retrograd.compiler.surroundings import Surroundings
from retrograd.core import Tensor
from retrograd.core.tensor import attributes_of
from retrograd.foundation.own_attributes import own_attributes

MOST_TIMES = 100  # that a call may add a constant to a float
_DICTS = (dict, OrderedDict, defaultdict, Counter)
_Members = Callable[[Any], dict[Any, Any] | None]
_KEYS = (str, int, bool)  # the types of keys that code has as constants


class StateUpdates:
    """The changes of state by one call, and the values that a program reads and sets in their place."""

    def __init__(self, surroundings: Surroundings, changed: list[Entry]) -> None:
        self.refusal = ""
        self.replaced: list[Entry] = []  # get another value
        self.counters: list[tuple[Entry, float, int]] = []  # numbers, by how much they increase, and how often
        self.appended: list[tuple[Any, int]] = []  # lists and deques, and the number of members before
        self.inputs: list[Entry] = []  # of which the program reads the values that are there
        self.paths: dict[int, tuple[Any, ...]] = {}  # by ids of changed containers in `inputs`: how to find the next
        self._surroundings = surroundings
        self._counted: set[tuple[int, Any]] = set()  # the ids of containers and keys of counters
        self._free: set[tuple[int, Any]] = set()  # what may have any value: ids of containers and keys
        self._inside: set[int] = set()  # the ids of the containers in such values
        self._tensors: set[int] = set()  # the ids of the tensors in such values
        self._changed = {id(entry.container) for entry in changed}
        for entry in _with_new_members(surroundings, changed):
            self._sort(entry)
        if not self.refusal:
            self._find_inputs()

    # ------------------------------------------------------------------------------------ what the call has changed

    def _sort(self, entry: Entry) -> None:
        """Note how a program makes a change."""
        container, before, now = entry.container, entry.value, entry.now()
        if type(container) in (list, deque) and entry.key is LENGTH:
            self._note_appended(container, before, entry.name)
        elif _is_length_of_dict(entry):
            if [*container] != _order_after(self._surroundings, container):
                self._refuse(entry)
        elif not _may_set(entry):
            self._refuse(entry)
        elif is_plain_value(now) or now is MISSING or _differ_in_plain_values(before, now):
            self._note_plain(entry, before, now)
        else:
            self.replaced.append(entry)

    def _refuse(self, entry: Entry) -> None:
        name = entry.name
        if isinstance(entry.key, Absent):
            name = f"{name}.{entry.now()[0]}"
        self.refusal = self.refusal or f"the function changes {name}"

    def _note_plain(self, entry: Entry, before: Any, now: Any) -> None:
        """Note a change to a plain value: only what counts calls may differ each time."""
        was_plain = before is MISSING or is_plain_value(before)
        is_switched = _is_mode(before) and _is_mode(now)  # of which there are few, unlike numbers
        if is_switched or (not was_plain and (now is MISSING or is_plain_value(now))):
            self.replaced.append(entry)
        elif type(before) is int and type(now) is int and self._is_used_so(entry, is_only_counted):
            self._note_counter(entry, now - before, 1)
        elif type(before) is float and type(now) is float and (found := self._sum_of(entry, before, now)):
            self._note_counter(entry, *found)
        else:
            self._refuse(entry)

    def _note_counter(self, entry: Entry, more: float, times: int) -> None:
        self.counters.append((entry, more, times))
        self._counted.add((id(entry.container), entry.key))

    def _sum_of(self, entry: Entry, before: float, now: float) -> tuple[float, int] | None:
        """Return the constant that all code adds to a float, and how often it did; None if that is not known."""
        path = self._path_of(entry)
        if path is None or not self._is_used_so(entry, is_only_counted):
            return None
        found = [numbers_added(code, path[0], path[2]) for code in self._surroundings.user_codes]
        numbers = {number for numbers in found for number in numbers or ()}
        if None in found or len(numbers) != 1:
            return None
        (number,) = numbers
        times, value = 0, before
        while not is_same(value, now) and times < MOST_TIMES:
            value, times = value + number, times + 1
        return (number, times) if is_same(value, now) and value + number != value else None

    def _is_used_so(self, entry: Entry, check: Callable[[types.CodeType, str, tuple], bool], keys: tuple = ()) -> bool:
        """Return whether all code uses a variable, attribute or item as a check says, and has no other way to it.

        `keys` lead on from there.
        """
        found, path = self._surroundings, self._path_of(entry)
        if path is None or found.has_other_readers(path[0], path[1]):
            return False
        return all(check(code, path[0], (*path[2], *keys)) for code in found.user_codes)

    def _path_of(self, entry: Entry) -> tuple[str, Any, tuple] | None:
        """Return the variable or attribute by which code has a value, its container, and the keys that lead on."""
        keys: list[Any] = []
        while (name := self._name_of(entry)) is None:
            home, inside = self._home_of(entry.container)
            is_plain = type(entry.container) in (*_DICTS, list, tuple, deque) and type(entry.key) in _KEYS
            if home is None or not is_plain or self._surroundings.is_namespace(entry.container):
                return None
            keys += [entry.key, *inside]
            entry = home
        return name, entry.container, tuple(reversed(keys))

    def _home_of(self, value: Any) -> tuple[Entry | None, list[int]]:
        """Return the only entry that has a value, and the places in tuples on the way there, the innermost first."""
        found, key, inside = self._surroundings, id(value), list[int]()
        while True:
            homes = [*found.parents.get(key, ())]
            if len(homes) != 1 or homes[0] is None:
                return None, inside
            home = found.first.get(homes[0])
            if home is not None or type(homes[0][1]) is not int:
                return (home if home is not None and home.holds() else None), inside
            key = homes[0][0]
            inside.append(homes[0][1])

    def _name_of(self, entry: Entry) -> str | None:
        """Return the name by which code has an attribute or variable; None for an item."""
        container = entry.container
        if isinstance(container, types.CellType):
            return entry.name
        if type(container) in (Slots, ClassFields):
            return entry.key
        is_namespace = type(container) is dict and id(container) not in self._surroundings.parents
        return entry.key if is_namespace and type(entry.key) is str else None

    def _note_appended(self, members: Any, count: int, name: str) -> None:
        """Note a list or deque that has got members, if the code does nothing else with it."""
        home, inside = self._home_of(members)
        if (
            len(members) < count
            or home is None
            or getattr(members, "maxlen", None) == len(members)  # it may have lost some
            or not self._is_used_so(home, is_only_appended_to, tuple(reversed(inside)))
        ):
            self.refusal = self.refusal or f"the function changes {name}"
            return
        self.appended.append((members, count))

    # ------------------------------------------------------------------------------ values that the next call finds

    def _find_inputs(self) -> None:
        """Find the replaced values which only replaced attributes have: those of the next call may be others."""
        lists = {id(members) for members, _ in self.appended}
        earlier = [member for members, count in self.appended for member in islice(members, count)]
        found = [e for e in self.replaced if self._tensors_in(e.value) or self._containers_in(e.value)]
        kept: list[Entry] | None = None
        alone, before = earlier, None
        while kept != found or alone != before:  # a value that is also elsewhere may be in others
            kept, before = found, alone
            self._free = {*self._counted, *[(id(e.container), e.key) for e in kept]}
            self._inside = lists.union(*map(self._containers_in, [*[e.value for e in kept], *alone]))
            found = [e for e in kept if self._is_free(e.value)]
            alone = [member for member in alone if self._is_free(member)]
        self.inputs = found = [entry for entry in found if id(entry.container) not in self._inside]
        self._tensors = set().union(*map(self._tensors_in, [*[e.value for e in found], *alone]))
        changed = {id(entry.container) for entry in self.replaced} & self._inside
        pairs = [pair for e in found for pair in self._paths_in(e.value, (e.container, e.key))]
        self.paths = {key: path for key, path in pairs if key in changed}
        if len(self.paths) < len(changed):
            self.refusal = "the function changes a container, and replaces it"
        if any(id(members) in self._inside - lists for members, _ in self.appended):
            self.refusal = "the function appends to a list, and replaces it"

    def _members(self, value: Any) -> dict[Any, Any] | None:
        """Return the members that a container had before the call; None for other values."""
        key, found = id(value), self._surroundings
        if key not in self._changed or type(value) not in (dict, list):
            return members_of(value)
        keys = found.keys[key][1] if type(value) is dict else range(found.first[key, LENGTH].value)
        return {one: found.first[key, one].value for one in keys}

    def _tensors_in(self, value: Any) -> set[int]:
        return _tensors_in(value, self._members)

    def _containers_in(self, value: Any) -> list[int]:
        return _containers_in(value, self._members)

    def _before(self, value: Any) -> Any:
        """Return a value with the members that containers had before the call."""
        if self._changed.isdisjoint(self._containers_in(value)):
            return value
        members = {key: self._before(member) for key, member in (self._members(value) or {}).items()}
        if type(value) is dict:
            return members
        if type(value) in (list, tuple) or isinstance(value, tuple):
            return getattr(type(value), "_make", type(value))(members.values())
        return make_record(type(value), tuple(members), [*members.values()])

    def input_values(self) -> list[Any]:
        """Return the values of `inputs` before the call."""
        return [self._before(entry.value) for entry in self.inputs]

    def _paths_in(self, value: Any, path: tuple[Any, ...]) -> Iterable[tuple[int, tuple[Any, ...]]]:
        """Yield the ids of the dicts and lists that a value has only once, with the keys that lead to them."""
        if type(value) not in (dict, list, tuple):
            return
        if type(value) is not tuple and len(self._surroundings.parents.get(id(value), ())) == 1:
            yield id(value), path
        for key, member in (self._members(value) or {}).items():
            yield from self._paths_in(member, (*path, key))

    def _is_free(self, value: Any) -> bool:
        """Return whether only replaced attributes have a value and the tensors and containers in it."""
        ids = {id(each) for each in _walk(value, self._members) if not is_plain_value(each)}
        return not any(map(attributes_of, _each_tensor(value, self._members))) and all(map(self._has_free_homes, ids))

    def _has_free_homes(self, key: int) -> bool:
        homes = self._surroundings.parents.get(key, {None})
        return all(home is not None and (home in self._free or home[0] in self._inside) for home in homes)

    # ---------------------------------------------------------------------------------------------- the program

    def drops(self, entry: Entry) -> bool:
        """Return whether a guard is left out: of what may be any, or is compared with the arguments."""
        return (id(entry.container), entry.key) in self._free or id(entry.container) in self._inside

    def other_guards(self) -> list[Entry]:
        """Return the guards in place of those left out."""
        modes = [e for e in self.replaced if type(e.container) is ClassFields and not self.drops(e)]
        return modes + [CounterEntry(e.container, e.key, e.value, e.name, e.attribute) for e, *_ in self.counters]

    def of_classes(self) -> dict[type, set[str]]:
        """Return the names of the attributes that change, by class: the program guards them itself."""
        found: dict[type, set[str]] = {}
        for entry in [*self.replaced, *[e for e, *_ in self.counters]]:
            if type(entry.container) is ClassFields:
                found.setdefault(entry.container.owner, set()).add(entry.key)
        return found

    def constants(self) -> list[Any]:
        """Return the tensors from outside that are the same in all calls."""
        return [t for key, t in self._surroundings.tensors.items() if key not in self._tensors]

    def forgets(self, t: Tensor) -> bool:
        """Return whether only lists that grow have a tensor: no program reads it."""
        return id(t) in self._tensors and not any(id(t) in self._tensors_in(entry.value) for entry in self.inputs)

    def values(self) -> list[Any]:
        """Return the values that the call has set, in the order in which `set` takes them."""
        new = [member for members, count in self.appended for member in islice(members, count, None)]
        return [*[entry.now() for entry in self.replaced if entry.now() is not MISSING], *new]

    def setter(self) -> "StateSetter":
        """Return the function that sets the values of a later call."""
        deleted = [entry for entry in self.replaced if entry.now() is MISSING]
        kept = [entry for entry in self.replaced if entry.now() is not MISSING]
        lists = [(members, len(members) - count) for members, count in self.appended]
        counters = [(e.container, e.key, more) for e, more, times in self.counters for _ in range(times)]
        return StateSetter(self._targets(kept), self._targets(deleted), lists, counters)

    def _targets(self, entries: list[Entry]) -> list[tuple[Any, Any]]:
        paths = {key: Path(*path) for key, path in self.paths.items()}
        return [(paths.get(id(e.container), e.container), e.key) for e in entries]

    def own_containers(self) -> "OwnContainers | None":
        """Return the guard of the containers that a program finds by paths, and changes; None if there are none."""
        others = {id(entry.container) for entry in self._surroundings.guards().entries}  # which keep them alive
        return OwnContainers([Path(*path) for path in self.paths.values()], others) if self.paths else None


class StateSetter:
    """Sets attributes, items and variables to the values of a call, and returns the result of the call."""

    __slots__ = ("_counters", "_deleted", "_lists", "_targets")

    def __init__(
        self,
        targets: list[tuple[Any, Any]],
        deleted: list[tuple[Any, Any]],
        lists: list[tuple[Any, int]],
        counters: list[tuple[Any, Any, float]],
    ) -> None:
        self._targets, self._deleted, self._lists, self._counters = targets, deleted, lists, counters

    def __call__(self, tree: tuple) -> Any:
        """Set the values that follow the result in a tuple."""
        number = 1
        deleted, targets = map(_found, (self._deleted, self._targets))  # before any of them changes
        for container, key in deleted:
            del container[key]
        for container, key in targets:
            if type(container) is types.CellType:
                container.cell_contents = tree[number]
            else:
                container[key] = tree[number]
            number += 1
        for members, count in self._lists:
            members += tree[number : number + count]
            number += count
        for container, key, more in self._counters:
            if type(container) is types.CellType:
                container.cell_contents += more
            else:
                container[key] += more
        return tree[0]


class Path:
    """A container that a call finds by the keys that lead to it from another one."""

    __slots__ = ("_keys", "_start")

    def __init__(self, start: Any, *keys: Any) -> None:
        self._start, self._keys = start, keys

    def find(self) -> Any:
        """Return the container that is there now."""
        found = self._start
        for key in self._keys:
            found = found.cell_contents if type(found) is types.CellType else found[key]
        return found


def _found(targets: list[tuple[Any, Any]]) -> list[tuple[Any, Any]]:
    return [(container.find() if type(container) is Path else container, key) for container, key in targets]


class OwnContainers:
    """The guard of containers that a program finds by paths, and changes: nothing else that it reads has them."""

    def __init__(self, paths: list[Path], others: set[int]) -> None:
        self._paths, self._others = paths, others  # `others`: the ids of what is the same in all calls

    def hold(self, values: Iterable[Any]) -> bool:
        """Return whether each of the containers is there once in the arguments and the state, and nowhere else."""
        seen = Counter([key for value in values for key in _containers_in(value)])
        return all(seen[key] == 1 and key not in self._others for key in [id(path.find()) for path in self._paths])


class TreeWithState:
    """The results of a call, followed by the values that it sets outside."""

    def __init__(self, results: Any, setter: StateSetter) -> None:
        self._results, self._setter = results, setter

    def slots(self) -> list[Any]:
        """Return the slots that the results and values are made from."""
        found: list[Any] = self._results.slots()
        return found

    def write(self, source: Any) -> str:
        """Return the expression of the result, which also sets the values."""
        tree = self._results.write(source)
        return f"{source.constant(self._setter, 'f')}({tree})"


def _with_new_members(surroundings: Surroundings, changed: list[Entry]) -> Iterable[Entry]:
    """Yield the entries of what has changed, each once, and those of attributes and items that are new."""
    seen: set[tuple[int, Any]] = set()
    for entry in changed:
        container = entry.container
        is_new = isinstance(entry.key, Absent) or _is_length_of_dict(entry)
        keys = [key for key in container if (id(container), key) not in surroundings.first] if is_new else []
        found = [Entry(container, key, MISSING, f"{entry.name}.{key}", None) for key in keys]
        for one in [*([] if isinstance(entry.key, Absent) and found else [entry]), *found]:
            if (id(one.container), one.key) not in seen:
                seen.add((id(one.container), one.key))
                yield one


def _is_length_of_dict(entry: Entry) -> bool:
    return type(entry.container) in _DICTS and entry.key in (LENGTH, KEYS)


def _may_set(entry: Entry) -> bool:
    if entry.key in (LENGTH, KEYS) or isinstance(entry.key, Absent):
        return False
    if entry.now() is MISSING and type(entry.container) is types.CellType:
        return False
    if type(entry.container) is Slots:
        return not any(map(is_library, type(entry.container.owner).__mro__))
    return type(entry.container) in (*_DICTS, list, deque, types.CellType, ClassFields)


def _is_mode(value: Any) -> bool:
    """Return whether a value is one of few: each has a program, which sets the next one."""
    return value is None or type(value) in (bool, str) or isinstance(value, enum.Enum)


def _order_after(surroundings: Surroundings, container: dict) -> list[Any]:
    """Return the keys of a dict in the order that they have if a program deletes and adds what the call did."""
    known = [key for home, key in surroundings.first if home == id(container)]
    known = [key for key in known if key not in (LENGTH, KEYS) and not isinstance(key, Absent)]
    before = [key for key in known if key in container and surroundings.first[id(container), key].value is not MISSING]
    return [*before, *[key for key in container if key not in before]]


def _differ_in_plain_values(before: Any, now: Any) -> bool:
    """Return whether containers of the same members differ in numbers, or other plain values."""
    if is_plain_value(before) or is_plain_value(now):
        return is_plain_value(before) and is_plain_value(now) and not is_same(before, now)
    old, new = members_of(before), members_of(now)
    if old is None or new is None or [*old] != [*new]:
        return False
    return any(_differ_in_plain_values(old[key], new[key]) for key in old)


def _walk(value: Any, members: _Members = members_of) -> Iterable[Any]:
    """Yield a value, and the values in it, if it is a container that is an argument by its members."""
    yield value
    for member in [] if is_plain_value(value) else (members(value) or {}).values():
        yield from _walk(member, members)


def _each_tensor(value: Any, members: _Members) -> list[Any]:
    return [each for each in _walk(value, members) if issubclass(type(each), Tensor)]


def _tensors_in(value: Any, members: _Members) -> set[int]:
    return {id(each) for each in _each_tensor(value, members)}


def _containers_in(value: Any, members: _Members = members_of) -> list[int]:
    """Return the ids of the containers in a value, and of the dicts of attributes, each as often as it is there."""
    found = [each for each in _walk(value, members) if not is_plain_value(each) and members_of(each) is not None]
    return [id(each) for each in found] + [id(own_attributes(each)) for each in found if hasattr(each, "__dict__")]

"""`import retrograd` imports what most programs need; the rest comes with its first use, and changes nothing else."""

import inspect
import subprocess
import sys
import threading
from types import ModuleType

import pytest

import retrograd as rg
from retrograd import kernels
from retrograd.core import Tensor, registry
from retrograd.foundation.lazy_imports import (
    LazyAttribute,
    LazyTable,
    add_attribute,
    complete_on_first_use,
    load,
    load_all,
)
from retrograd.ops.contents import CONTENTS

# Modules of operators that other modules of the library need as soon as they are imported, or whose properties or
# special methods a class must have from the beginning. Each one costs every program about a millisecond.
AT_ONCE = {
    "as_tensor", "batch_loop", "batching", "complex", "contents", "create", "diagonal", "dtype_aliases", "family",
    "functions", "generator", "index", "inplace", "jvp_rules", "layout", "layout_methods", "legacy", "linalg",
    "methods", "mutate", "opmath", "pickling", "pointwise", "publish", "reduce", "to_dtype", "user_namespaces", "view",
}  # fmt: skip
PACKAGES_AT_ONCE = {"autograd", "backend", "core", "foundation", "interop", "kernels", "levels", "ops"}
# Of the standard library, beyond what `import numpy` imports.
STANDARD_AT_ONCE = {"_heapq", "cmath", "copy", "errno", "heapq", "importlib", "threading"}
# What neither an import nor a training step of a linear model needs, in the compiled build.
ON_FIRST_USE = {
    "autograd.anomaly_mode", "autograd.explain", "autograd.function", "autograd.saving", "autograd.variable",
    "backend.attention", "backend.conv", "backend.images", "backend.pooling", "backend.recurrent", "backend.sampling",
    "interop.array_namespace", "interop.notebooks", "kernels.build_report", "kernels.reference", "levels.batch",
    "levels.dual", "levels.grad", "ops.storage",
}  # fmt: skip


def printed(code: str) -> set[str]:
    """Return the words that a new process prints."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return set(done.stdout.split())


def imported_by(code: str) -> set[str]:
    """Return the names of the modules that code imports in a new process, beyond those of NumPy."""
    return printed(f"import sys, numpy; there = set(sys.modules)\n{code}\nprint(*set(sys.modules) - there)")


def modules_of_operators(names: set[str]) -> set[str]:
    return {name.rpartition(".")[2] for name in names if name.startswith("retrograd.ops.")}


class TestANewProcess:
    def test_imports_no_more_modules_than_listed(self):
        names = imported_by("import retrograd")
        assert modules_of_operators(names) <= AT_ONCE
        assert {name.split(".")[1] for name in names if name.startswith("retrograd.")} <= PACKAGES_AT_ONCE
        others = {name.split(".")[0] for name in names if not name.startswith("retrograd")}
        assert {name for name in others if "cython" not in name} <= STANDARD_AT_ONCE

    @pytest.mark.skipif(not kernels.compiled, reason="without compiled kernels their references are imported at once")
    def test_imports_what_few_programs_need_on_first_use(self):
        step = """
import retrograd as rg
w = rg.ones(2, requires_grad=True)
loss = ((rg.ones(3, 2) @ w).relu() ** 2).mean()
loss.backward()
w.detach().sub_(w.grad)
"""
        assert not {f"retrograd.{name}" for name in ON_FIRST_USE} & imported_by(step)

    def test_defines_only_the_operators_of_the_modules_that_it_imports(self):
        counted = """
import sys
import retrograd as rg
from retrograd.core import registry
print(dict.__len__(registry), len(registry))
"""
        few, all_ = sorted(map(int, printed(counted)))
        assert 0 < few < all_ / 2

    @pytest.mark.parametrize(
        "use",
        [
            "rg.svd(rg.ones(2, 2))",
            "rg.ones(2, 2).svd()",
            "rg.Tensor.svd(rg.ones(2, 2))",
            "from retrograd import svd",
            "rg.ops.svd",
            "registry['svd']",
            "registry.get('svd')",
            "pickle.loads(b'cretrograd.core.op\\noperator_named\\n(Vsvd\\ntR.')",
            "rg.linalg.svd",
        ],
    )
    def test_imports_a_module_with_each_way_to_use_it(self, use):
        begin = "import retrograd as rg, pickle\nfrom retrograd.core import registry\n"
        assert "retrograd.ops.svd" not in imported_by(begin)
        assert "retrograd.ops.svd" in imported_by(begin + use)

    def test_imports_nothing_to_answer_whether_an_operator_exists(self):
        begin = "import retrograd as rg\nfrom retrograd.core import registry\n"
        asked = "assert 'svd' in registry and 'svd' in dir(rg) and 'svd' in dir(rg.Tensor) and 'svd' in rg.__all__"
        assert modules_of_operators(imported_by(begin + asked)) <= AT_ONCE

    def test_has_every_name_after_a_star_import(self):
        names = printed("from retrograd import *\nprint(*[name for name in dir() if name[0] != '_'])")
        assert names >= {name for name in rg.ops.public_names() if name[0] != "_"}

    def test_lists_all_operators_however_it_lists_them(self):
        begin = "from retrograd.core import registry\n"
        counts = {
            listing: printed(f"{begin}print(len({listing}))")
            for listing in ("[*registry]", "registry", "registry.items()", "{**registry}", "dict(registry)")
        }
        assert len(set.union(*counts.values())) == 1
        assert counts.pop("registry") != printed(f"{begin}print(dict.__len__(registry))")

    def test_threads_that_begin_at_once_get_the_same_operators(self):
        code = """
import threading
import retrograd as rg
start = threading.Barrier(8)
found = []
def use():
    start.wait()
    x = rg.tensor([[2.0, 0.0], [0.0, 1.0]], requires_grad=True)
    loss = x.svd()[1].sum() + rg.nn.functional.elu(x).sum() + rg.fft.fft(x).abs().sum() + rg.sort(x).values.sum()
    loss.backward()
    found.append((rg.svd, rg.Tensor.svd, rg.Tensor.elu_ if hasattr(rg.Tensor, "elu_") else None, x.grad.tolist()))
threads = [threading.Thread(target=use) for _ in range(8)]
for thread in threads: thread.start()
for thread in threads: thread.join()
assert len(found) == 8 and all(f == found[0] for f in found), found
"""
        printed(code)


def test_operators_run_where_scipy_is_not_installed():
    program = "import sys; sys.modules['scipy'] = None; import retrograd as rg; print((rg.ones(3) + 1).sum().item())"
    assert subprocess.check_output([sys.executable, "-c", program], text=True).strip() == "6.0"


def test_modules_imported_on_first_use_are_those_of_the_table():
    assert not AT_ONCE & set(CONTENTS)
    load_all()
    late = {member for member in vars(Tensor).values() if isinstance(member, LazyAttribute)}
    assert {attribute.name for attribute in late} == set()


def test_members_of_the_table_are_what_its_modules_define():
    load_all()
    for module, (operators, _, _, methods) in CONTENTS.items():
        assert all(name in registry for name in operators.split())
        assert all(inspect.getattr_static(Tensor, name) is not None for name in methods.split()), module


# -------------------------------------------------------------------------------- tables that modules fill, in general


@pytest.fixture
def tables(tmp_path, monkeypatch):
    """A module with a table and a class; its function `register` makes a module that adds members to them."""
    found = ModuleType("late_tables")
    found.table, found.Owner, found.begun, found.go_on = LazyTable(), type("Owner", (), {}), threading.Event(), None

    def register(name, text, members="", attributes=""):
        (tmp_path / f"{name}.py").write_text(f"from late_tables import *\nimport late_tables\n{text}")
        found.table.homes.update(dict.fromkeys(members.split(), name))
        late = [LazyAttribute(found.Owner, attribute, name) for attribute in attributes.split()]
        for attribute in late:
            setattr(found.Owner, attribute.name, attribute)
        complete_on_first_use(name, lambda home: [attribute.publish() for attribute in late])

    found.register, found.add_attribute, found.load = register, add_attribute, load
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setitem(sys.modules, "late_tables", found)
    yield found
    for name in [name for name in sys.modules if name.startswith("late_module")]:
        del sys.modules[name]


def test_a_member_is_found_while_its_module_is_being_imported(tables):
    tables.register("late_module_1", "table.add('a', 1)\ntable.add('b', table['a'] + 1)", members="a b")
    assert tables.table["b"] == 2


def test_an_attribute_is_found_while_its_module_is_being_imported(tables):
    text = "add_attribute(Owner, 'double', lambda x: 2)\ntable.add('two', Owner().double())"
    tables.register("late_module_2", text, members="two", attributes="double")
    assert tables.table["two"] == 2
    assert not isinstance(vars(tables.Owner)["double"], LazyAttribute)


def test_another_thread_waits_for_the_end_of_an_import(tables):
    text = "table.add('early', 1)\nbegun.set()\nassert late_tables.go_on.wait(60)\nlate = 5"
    tables.register("late_module_3", text, members="early")
    tables.go_on, found = threading.Event(), []

    def look_up():
        tables.table["early"]
        found.append(hasattr(sys.modules["late_module_3"], "late"))

    first = threading.Thread(target=look_up)
    first.start()
    assert tables.begun.wait(60)
    second = threading.Thread(target=look_up)
    second.start()
    tables.go_on.set()
    first.join()
    second.join()
    assert found == [True, True]


def test_a_method_of_a_subclass_calls_the_one_of_its_base_once(tables):
    tables.register("late_module_4", "add_attribute(Owner, 'name', lambda x: 'base')", attributes="name")

    class Child(tables.Owner):
        def name(self):
            return f"child of {super().name()}"

    assert Child().name() == "child of base"


def test_an_attribute_that_a_user_has_assigned_stays(tables):
    tables.register("late_module_5", "add_attribute(Owner, 'name', 'ours')\ntable.add('a', 1)", "a", "name")
    tables.Owner.name = "the user's"
    assert tables.table["a"] == 1
    assert tables.Owner.name == "the user's"


def test_a_deleted_member_is_gone(tables):
    tables.register("late_module_6", "table.add('a', 1)", members="a")
    assert tables.table["a"] == 1
    del tables.table["a"]
    assert "a" not in tables.table
    assert tables.table.get("a", "nothing") == "nothing"


def test_a_name_without_a_member_is_a_key_error(tables):
    with pytest.raises(KeyError, match="nowhere"):
        tables.table["nowhere"]


def test_a_second_member_of_a_name_is_noticed_before_its_module_is_imported(tables):
    tables.register("late_module_7", "assert not table.has('a')\ntable.add('a', 1)", members="a")
    assert tables.table.has("a")
    assert tables.table["a"] == 1
    assert tables.table.has("a")
    assert not tables.table.has("b")


def test_the_report_of_the_build_knows_compiled_modules_that_are_imported_on_first_use():
    assert "retrograd" in printed("import retrograd; retrograd.show_config()")


def test_members_are_in_the_order_of_the_table_whichever_was_looked_up_first(tables):
    """Tests that are drawn from the registry are the same in all processes, whatever these have imported before."""
    tables.register("late_module_8", "table.add('a', 1)\ntable.add('b', 2)", members="a b")
    tables.register("late_module_9", "table.add('c', 3)", members="c")
    assert tables.table["c"] == 3
    assert list(tables.table) == ["a", "b", "c"]

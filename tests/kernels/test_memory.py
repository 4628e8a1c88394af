"""What of the memory of arrays stays with the process."""

import subprocess
import sys

import pytest

from retrograd.kernels import memory

FAULTS = """
import resource, sys
import retrograd as rg
x = rg.ones(400_000)
for _ in range(3):
    x * x
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(10):
    (x * x) * x
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def faults(kept):
    environment = {"RETROGRAD_KEEP_MEMORY": kept, "PATH": "", "PYTHONPATH": ":".join(sys.path)}
    done = subprocess.run([sys.executable, "-c", FAULTS], env=environment, capture_output=True, text=True, check=True)
    return int(done.stdout)


@pytest.mark.skipif(not memory.keep(memory.asked_for()), reason="the C library takes no such orders")
def test_arrays_find_the_memory_of_those_before_them():
    assert faults("64") * 5 < faults("0")


@pytest.mark.parametrize(("asked", "kept"), [("", memory.DEFAULT), ("0", 0), ("64", 64)])
def test_the_environment_says_how_much_memory_is_kept(monkeypatch, asked, kept):
    monkeypatch.setenv("RETROGRAD_KEEP_MEMORY", asked)
    assert memory.asked_for() == kept


def test_an_amount_that_is_no_number_is_refused(monkeypatch):
    monkeypatch.setenv("RETROGRAD_KEEP_MEMORY", "much")
    with pytest.raises(ValueError, match=r"RETROGRAD_KEEP_MEMORY: expected a number of MiB, .* got 'much'"):
        memory.asked_for()


def test_nothing_asked_for_changes_nothing():
    assert not memory.keep(0)

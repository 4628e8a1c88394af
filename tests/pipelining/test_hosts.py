"""The MPI transport between hosts: two network namespaces of this machine, connected only by a network."""

import importlib.util
import json
import os
import subprocess

import pytest

from retrograd.cli.jobs import Job
from retrograd.cli.mpi import command

from . import conformance
from .two_hosts import NAMES, ON_FIRST, NoHostsError, launcher_variables, two_hosts

STARTS = 8


@pytest.fixture
def hosts():
    """Create two network namespaces with a cable between them."""
    try:
        with two_hosts() as addresses:
            yield addresses
    except NoHostsError as error:
        pytest.skip(str(error))


def output_of(command, environment):
    """Return the output of MPI's processes.  Over a new cable, its network layer may find no peer while MPI starts."""
    for _ in range(STARTS):
        run = subprocess.run(command, env=environment, text=True, capture_output=True, check=False)
        if run.returncode == 0 or "Destination is unreachable" not in run.stderr:
            break
    assert run.returncode == 0, run.stderr
    return run.stdout


@pytest.mark.skipif("RETROGRAD_PURE" in os.environ, reason="the compiled pass has run it")
@pytest.mark.skipif(importlib.util.find_spec("mpi4py") is None, reason="needs mpi4py")
def test_over_processes_of_two_hosts(hosts, tmp_path):
    (tmp_path / "hosts").write_text(f"{hosts[0]}:1\n{hosts[1]}:2\n")
    line = command(Job([conformance.__file__, "mpi"], ranks=conformance.RANKS, hosts=tmp_path / "hosts"))
    environment = {**os.environ, **launcher_variables(tmp_path)}
    by_rank = json.loads(output_of([*ON_FIRST, *line], environment))
    assert [text for found in by_rank for text in found.values() if text] == []
    assert len(by_rank) == conformance.RANKS
    counted = subprocess.run(
        ["ip", "-j", "-s", "-n", NAMES[0], "link", "show", "wire"], check=True, capture_output=True, text=True
    )
    assert json.loads(counted.stdout)[0]["stats64"]["tx"]["bytes"] > 5 << 20  # the large messages have gone that way

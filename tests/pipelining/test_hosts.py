"""The MPI transport between hosts: two network namespaces of this machine, connected only by a network."""

import importlib.util
import json
import os
import shutil
import subprocess

import pytest

from retrograd.cli.jobs import Job
from retrograd.cli.mpi import command

from . import conformance

NAMES = [f"rg{os.getpid()}x{number}" for number in (1, 2)]
STARTS = 8
ADDRESSES = ["10.213.77.1", "10.213.77.2"]
# A replacement of ssh: options, a host, and the command to run there.
SHELL = f"""#!/bin/sh
while [ "${{1#-}}" != "$1" ]; do shift; done
case $1 in {ADDRESSES[0]}) name={NAMES[0]};; *) name={NAMES[1]};; esac
shift
exec ip netns exec $name sh -c "$*"
"""


def ip(line):
    return subprocess.run(["ip", *line.split()], check=True, capture_output=True)


@pytest.fixture
def hosts():
    """Create two network namespaces with a cable between them."""
    if os.name != "posix" or os.geteuid() != 0 or not shutil.which("ip"):
        pytest.skip("network namespaces need root and the command `ip`")
    try:
        for name in NAMES:
            ip(f"netns add {name}")
        ip(f"link add name wire netns {NAMES[0]} type veth peer name wire netns {NAMES[1]}")
        for name, address in zip(NAMES, ADDRESSES, strict=True):
            ip(f"-n {name} addr add {address}/24 dev wire")
            ip(f"-n {name} link set wire addrgenmode none")  # IPv6 would be a second before its address can be used
            ip(f"-n {name} link set wire up")
            ip(f"-n {name} link set lo up")
        yield ADDRESSES
    except subprocess.CalledProcessError as error:
        pytest.skip(f"network namespaces are not allowed here: {error.stderr.decode().strip()}")
    finally:
        for name in NAMES:
            subprocess.run(["ip", "netns", "del", name], check=False, capture_output=True)


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
    (tmp_path / "shell").write_text(SHELL)
    (tmp_path / "shell").chmod(0o755)
    line = command(Job([conformance.__file__, "mpi"], ranks=conformance.RANKS, hosts=tmp_path / "hosts"))
    launcher = {"HYDRA_LAUNCHER": "ssh", "HYDRA_LAUNCHER_EXEC": str(tmp_path / "shell"), "HYDRA_IFACE": "wire"}
    # They have one host name, so MPICH would use the memory that they share.
    network = {"MPIR_CVAR_NOLOCAL": "1", "UCX_TLS": "tcp,self", "UCX_NET_DEVICES": "wire", "UCX_TCP_AF_PRIO": "inet"}
    environment = {**os.environ, **launcher, **network, "OMP_NUM_THREADS": "1"}
    by_rank = json.loads(output_of(["ip", "netns", "exec", NAMES[0], *line], environment))
    assert [text for found in by_rank for text in found.values() if text] == []
    assert len(by_rank) == conformance.RANKS
    counted = subprocess.run(
        ["ip", "-j", "-s", "-n", NAMES[0], "link", "show", "wire"], check=True, capture_output=True, text=True
    )
    assert json.loads(counted.stdout)[0]["stats64"]["tx"]["bytes"] > 5 << 20  # the large messages have gone that way

"""Two hosts on this machine: network namespaces with a cable between them, which can be unplugged."""

import os
import shutil
import subprocess
from contextlib import contextmanager

NAMES = [f"rg{os.getpid()}x{number}" for number in (1, 2)]
ADDRESSES = ["10.213.77.1", "10.213.77.2"]
# A replacement of ssh: options, a host, and the command to run there.
SHELL = f"""#!/bin/sh
while [ "${{1#-}}" != "$1" ]; do shift; done
case $1 in {ADDRESSES[0]}) name={NAMES[0]};; *) name={NAMES[1]};; esac
shift
exec ip netns exec $name sh -c "$*"
"""
ON_FIRST = ["ip", "netns", "exec", NAMES[0]]  # before a command that runs on the first host


class NoHostsError(Exception):
    """Network namespaces are not allowed here."""


def ip(line):
    """Run the command `ip`."""
    return subprocess.run(["ip", *line.split()], check=True, capture_output=True)


@contextmanager
def two_hosts():
    """Create two network namespaces with a cable between them, which exist while entered."""
    if os.name != "posix" or os.geteuid() != 0 or not shutil.which("ip"):
        raise NoHostsError("network namespaces need root and the command `ip`")
    try:
        for name in NAMES:
            ip(f"netns add {name}")
        ip(f"link add name wire netns {NAMES[0]} type veth peer name wire netns {NAMES[1]}")
        for name, address in zip(NAMES, ADDRESSES, strict=True):
            ip(f"-n {name} addr add {address}/24 dev wire")
            ip(f"-n {name} link set wire addrgenmode none")  # IPv6 would be a second before its address can be used
            ip(f"-n {name} link set lo up")
        plug()
        yield ADDRESSES
    except subprocess.CalledProcessError as error:
        raise NoHostsError(f"network namespaces are not allowed here: {error.stderr.decode().strip()}") from error
    finally:
        for name in NAMES:
            subprocess.run(["ip", "netns", "del", name], check=False, capture_output=True)


def plug():
    """Plug the cable in, on both hosts."""
    for name in NAMES:
        ip(f"-n {name} link set wire up")


def unplug():
    """Pull the cable out of the first host."""
    ip(f"-n {NAMES[0]} link set wire down")


def launcher_variables(folder):
    """Write the replacement of ssh to a folder, and return the variables by which MPICH uses it and the cable."""
    (folder / "shell").write_text(SHELL)
    (folder / "shell").chmod(0o755)
    launcher = {"HYDRA_LAUNCHER": "ssh", "HYDRA_LAUNCHER_EXEC": str(folder / "shell"), "HYDRA_IFACE": "wire"}
    # They have one host name, so MPICH would use the memory that they share.
    network = {"MPIR_CVAR_NOLOCAL": "1", "UCX_TLS": "tcp,self", "UCX_NET_DEVICES": "wire", "UCX_TCP_AF_PRIO": "inet"}
    return {**launcher, **network, "OMP_NUM_THREADS": "1"}

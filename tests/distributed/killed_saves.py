"""Save checkpoints in processes that are killed at each change of the folder; argument: the folder.

After each kill, the folder's checkpoint is that of the last complete save or of the killed one, and another save leaves
its own files only.  It prints how many saves were killed.
"""

import os
import signal
import sys
from pathlib import Path

import retrograd as rg
import retrograd.distributed.checkpoint as checkpoint

CALLS = ("open", "os.rename", "os.remove", "os.scandir")


def save(folder, value):
    checkpoint.save({"x": rg.full((9,), value), "step": value}, checkpoint_id=folder)


def kill_at(folder, call, suffix=""):
    """End this process at the given call on a path of the folder with a suffix."""
    left = call

    def count(name, arguments):
        nonlocal left
        path = str(arguments[0]) if arguments else ""
        if name in CALLS and path.startswith(str(folder)) and path.endswith(suffix):
            left -= 1
            if not left:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(count)


def in_child(run, *args):
    """Return the signal that has ended a child in which a function runs; 0: none."""
    child = os.fork()
    if not child:
        run(*args)
        os._exit(0)
    status = os.waitpid(child, 0)[1]
    assert os.WIFSIGNALED(status) or status == 0
    return os.WTERMSIG(status)


def killed_save(folder, value, call, suffix=""):
    kill_at(folder, call, suffix)
    save(folder, value)


def loaded(folder):
    state = {"x": rg.zeros(9), "step": -1.0}
    checkpoint.load(state, checkpoint_id=folder)
    assert (state["x"] == state["step"]).all()
    return state["step"]


def files(folder):
    return sorted(path.name for path in folder.iterdir())


def run(folder):
    save(folder, 0.0)
    complete = files(folder)
    call = 1
    while in_child(killed_save, folder, float(call), call):
        assert loaded(folder) in (0.0, float(call)), call
        for value in (-1.0, -2.0):  # killed while the first file is written: files of several do not add up
            assert in_child(killed_save, folder, value, 2, ".tmp")
            assert len(files(folder)) <= len(complete) + 3, files(folder)
        save(folder, 0.0)
        assert loaded(folder) == 0.0
        assert len(files(folder)) == len(complete), files(folder)
        call += 1
    return call - 1


if __name__ == "__main__":
    print(run(Path(sys.argv[1])))

"""A test process that crashes names the test and writes its native stack and its Python stack."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
LIBRARY = ROOT / "build" / "crash_stack.so"


@pytest.mark.skipif(not LIBRARY.exists(), reason="needs build/crash_stack.so, which `make test` compiles")
def test_a_crashed_worker_names_the_test_and_both_stacks():
    command = [sys.executable, "-m", "pytest", "-q", "-n", "1", "tests/crashing.py"]
    output = subprocess.run(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    ).stdout
    assert "crashed in tests/crashing.py::test_reading_from_address_zero; the native stack" in output
    assert re.search(r"^\S*ffi\S*\.so\S*\(ffi_call\+0x\w+\)", output, re.MULTILINE)  # the function that ctypes calls
    assert "Fatal Python error: Segmentation fault" in output
    assert re.search(r'crashing\.py", line \d+ in test_reading_from_address_zero', output)
    assert re.search(r"worker 'gw0' crashed while running", output)

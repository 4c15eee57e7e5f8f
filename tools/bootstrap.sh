#!/bin/sh
# Brings the environment in .venv up to date with uv.lock, from nothing if need be.
#
#   tools/bootstrap.sh            make or update .venv
#   tools/bootstrap.sh lock ...   run uv itself, with these arguments
#
# Needs a Python >= 3.12, on PATH or from pyenv; set PYTHON to choose one. uv is taken from PATH if it can read our
# lock file, and is otherwise installed with pip into .tools, apart from the environment that it keeps in order.
set -eu

root=$(cd "$(dirname "$0")/.." && pwd -P)
cd "$root"

export UV_PROJECT_ENVIRONMENT="$root/.venv"
export UV_PYTHON_DOWNLOADS=never
# Trust the system's certificates, as pip does: behind a proxy that inspects TLS, uv's own list is not enough.
export UV_SYSTEM_CERTS="${UV_SYSTEM_CERTS:-true}"
export UV_NATIVE_TLS="$UV_SYSTEM_CERTS" # its name in older releases
unset VIRTUAL_ENV PYTHONHOME PYTHONPATH CONDA_PREFIX || true

say() {
    printf '%s\n' "$*" >&2
}

# A version manager's stand-in may be on PATH and refuse to start, so a candidate has to run to count.
is_suitable() {
    "$1" -c 'import sys, ensurepip, venv; sys.exit(sys.version_info < (3, 12))' >/dev/null 2>&1
}

# Oldest first: the lock file has built wheels for those, while a Python that is a few weeks old may have none.
find_python() {
    for candidate in ${PYTHON:+"$PYTHON"} python3.12 python3.13 python3.14 python3 python \
        "${PYENV_ROOT:-${HOME:-}/.pyenv}"/versions/*/bin/python; do
        if is_suitable "$candidate"; then
            "$candidate" -c 'import sys; print(sys.executable)'
            return
        fi
    done
    say "No Python >= 3.12 (with venv and ensurepip) was found on PATH or under ~/.pyenv/versions."
    say "Install one (on Debian or Ubuntu: python3 and python3-venv), or name it: PYTHON=/path/to/python make ..."
    return 1
}

# Reading the lock file is the test: it fails for a uv that is too old for it.
can_read_lock() {
    "$1" tree --quiet --frozen --depth 0 --python "$python" >/dev/null 2>&1
}

find_uv() {
    for candidate in uv .tools/bin/uv; do
        if can_read_lock "$candidate"; then
            printf '%s\n' "$candidate"
            return
        fi
    done
    say "Installing uv into .tools"
    "$python" -m venv --clear .tools
    .tools/bin/python -m pip install --quiet --disable-pip-version-check 'uv>=0.8' >&2
    printf '%s\n' .tools/bin/uv
}

# What .venv was made from. A moved checkout counts as new, because scripts in .venv carry its path.
fingerprint() {
    printf '%s\n' "$root"
    cksum pyproject.toml uv.lock tools/bootstrap.sh
}

stamp=.venv/.bootstrapped

if [ "$#" -eq 0 ] && [ -f "$stamp" ] && [ "$(cat "$stamp")" = "$(fingerprint)" ]; then
    exit 0
fi

python=$(find_python)
uv=$(find_uv)

if [ "$#" -gt 0 ]; then
    exec "$uv" "$@"
fi

if [ -f "$stamp" ] && [ "$(head -n 1 "$stamp")" != "$root" ]; then
    rm -rf .venv
fi
say "Making .venv with $("$python" --version) from uv.lock"
"$uv" sync --quiet --frozen --all-extras --group dev --python "$python"
fingerprint >"$stamp"

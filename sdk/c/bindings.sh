#!/bin/sh
# Makes bindings/ in a clone: a copy of those that the program `gristmill` has. GRISTMILL names
# another one than that on the PATH. Run it again when the contract (../../wit) has changed.
set -eu
sdk=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"${GRISTMILL:-gristmill}" plugin new scores --language c --folder "$work/scores" > /dev/null
unpacked=$(sed -n 's/^SDK ?= //p' "$work/scores/Makefile")
rm -rf "$sdk/bindings"
cp -rp "$unpacked/bindings" "$sdk/bindings"

#!/bin/sh
# Makes bindings/ in a clone, from ../../wit. The program `gristmill` has it already, by the same
# tool (host/cli/build.rs): this is for a machine without the program.
#   cargo install --locked wit-bindgen-cli@0.60.0 --no-default-features --features c
set -eu
sdk=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/wit" "$work/all"
for world in imports preprocessor postprocessor processor handler initializer; do
    wit-bindgen c "$sdk/../../wit" --world "$world" --out-dir "$work" > /dev/null
done
# The functions of all worlds: those of handlers, too. A plugin imports those that it calls.
cp "$sdk"/../../wit/*.wit "$work/wit/"
sed -i 's/^world imports {$/&\n    import models;/' "$work/wit/worlds.wit"
wit-bindgen c "$work/wit" --world imports --out-dir "$work/all" > /dev/null
# Only now, so that build.sh finds all of them or none.
mkdir -p "$sdk/bindings"
cp "$work"/*_component_type.o "$work"/all/imports.[hc] "$sdk/bindings/"

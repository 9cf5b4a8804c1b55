#!/bin/sh
# Writes the files in this folder from the contract in wit/. Needed only when the contract changes:
#   cargo install --locked wit-bindgen-cli@0.60.0 --no-default-features --features c
#   sdk/c/bindings/generate.sh wit
# Version 0.60 writes component types as wit-component 0.254 and wasmtime 48 read them. The bindings
# of the worlds' exports are not kept: src/export_*.c has them, on the generated types.
set -eu
wit=${1:?usage: generate.sh WIT_FOLDER}
here=$(dirname "$0")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for world in imports preprocessor postprocessor processor handler initializer; do
    wit-bindgen c "$wit" --world "$world" --out-dir "$work" > /dev/null
    cp "$work/${world}_component_type.o" "$here/"
done
# The functions of all worlds: those of handlers, too. A plugin imports those that it calls.
mkdir "$work/wit"
cp "$wit"/*.wit "$work/wit/"
sed -i 's/^world imports {$/&\n    import models;/' "$work/wit/worlds.wit"
wit-bindgen c "$work/wit" --world imports --out-dir "$work" > /dev/null
# All memory of a call is freed at its end (src/memory.c), so nobody calls the functions that free a
# value of one type.
for file in imports.h imports.c; do
    awk '
        /^\/\/ / { comment = comment $0 "\n"; next }
        /^void [a-z0-9_]+_free\(/ { skipping = !/;$/; blank = 1; comment = ""; next }
        skipping { if (/^}/) skipping = 0; next }
        blank && /^$/ { blank = 0; next }
        { blank = 0; printf "%s", comment; comment = ""; print }
    ' "$work/$file" > "$here/$file"
done

#!/bin/sh
# Builds a plugin: C files in, a core module with its component type out.
#
#   build.sh [--wasi] [--init] WORLD OUT FILE...
#
# WORLD is preprocessor, postprocessor, processor or handler. FILE is a C file, or an option for clang, such as
# -Iinclude or -DNAME. --init exports gm_init. --wasi leaves libc's WASI imports as they are.
# CLANG names another clang. The command is printed if VERBOSE is set.
set -eu
sdk=$(cd "$(dirname "$0")" && pwd)
init=
wasi=
while :; do
    case ${1:-} in
    --init) init="$sdk/src/export_init.c $sdk/bindings/initializer_component_type.o" ;;
    --wasi) wasi=-DGM_WASI ;;
    *) break ;;
    esac
    shift
done
[ $# -ge 3 ] || { sed -n '2,8s/^# \{0,1\}//p' "$0" >&2; exit 2; }
world=$1
out=$2
shift 2
case $world in
preprocessor) exports=$sdk/src/export_preprocess.c ;;
postprocessor) exports=$sdk/src/export_postprocess.c ;;
processor) exports="$sdk/src/export_preprocess.c $sdk/src/export_postprocess.c" ;;
handler) exports=$sdk/src/export_handle.c ;;
*) echo "build.sh: WORLD is \"$world\", not preprocessor, postprocessor, processor or handler" >&2; exit 2 ;;
esac
[ -e "$sdk/bindings" ] || {
    echo "build.sh: $sdk has no bindings: run \`gristmill plugin build\` in its place, or first $sdk/bindings.sh" >&2
    exit 2
}
[ -z "${VERBOSE:-}" ] || set -x
library="arrays.c call.c failure.c handle.c http.c image.c json_read.c json_value.c json_write.c keep.c log.c \
    memory.c models.c number_read.c number_write.c outputs.c panic.c powers_of_ten.c request.c response.c \
    stdio.c tables.c tensor.c text.c"
sources=
for file in $library; do sources="$sources $sdk/src/$file"; done
# Functions that the compiler calls for what WebAssembly lacks, such as long double. Some of libc's
# functions need them.
clang=${CLANG:-clang}
builtins=$("$clang" --target=wasm32-wasi -print-libgcc-file-name) && [ -e "$builtins" ] || builtins=
# The stack lies below the data, so that its overflow traps; memory for the arena and a small heap.
# shellcheck disable=SC2086
if ! "$clang" --target=wasm32-wasi -mexec-model=reactor -nodefaultlibs \
    -std=gnu11 -Wall -Wextra -Wno-unused-parameter \
    -O3 -msimd128 -flto -ffunction-sections -fno-math-errno \
    -Wl,--stack-first -Wl,-z,stack-size=1048576 -Wl,--strip-debug \
    -ffile-prefix-map="$sdk=gristmill" -I"$sdk/include" "$@" $sources $wasi $exports $init \
    "$sdk/bindings/imports.c" "$sdk/bindings/imports_component_type.o" \
    "$sdk/bindings/${world}_component_type.o" -lc -lm $builtins -o "$out"
then
    [ -n "$builtins" ] || echo "build.sh: if a function such as __muloti4 or __addtf3 is missing," \
        "on Debian: apt-get install libclang-rt-dev-wasm32" >&2
    exit 1
fi

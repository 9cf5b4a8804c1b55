#!/bin/sh
# Builds a plugin and its test natively, on the reference host, and runs the test.
#
#   test.sh FILE...
#
# FILE is a C file of the plugin or of its test, or an option for the compiler. CC names another
# compiler; SANITIZE=1 adds the address and undefined behaviour sanitizers. GM_TEST_DIR names a
# folder that keeps the compiled library for the next run.
set -eu
sdk=$(cd "$(dirname "$0")" && pwd)
[ $# -ge 1 ] || { sed -n '2,8s/^# \{0,1\}//p' "$0" >&2; exit 2; }
[ -e "$sdk/bindings" ] || { echo "test.sh: $sdk has no bindings: run first $sdk/bindings.sh" >&2; exit 2; }
if [ -n "${GM_TEST_DIR:-}" ]; then
    mkdir -p "$GM_TEST_DIR"
    work=$(cd "$GM_TEST_DIR" && pwd)
else
    work=$(mktemp -d)
    trap 'rm -rf "$work"' EXIT
fi
flags="-std=gnu11 -O1 -g -Wall -Wextra -I$sdk/include"
[ -z "${SANITIZE:-}" ] || flags="$flags -fsanitize=address,undefined -fno-sanitize-recover=all"
library=$work/library.a
# Of the library, the linker takes only the exports that the test calls.
if [ ! -e "$library" ] || [ -n "$(find "$sdk/src" "$sdk/host" "$sdk/include" "$sdk/bindings" -newer "$library")" ]; then
    # shellcheck disable=SC2086
    (cd "$work" && "${CC:-cc}" $flags -c "$sdk"/src/*.c "$sdk"/host/*.c)
    rm -f "$work/export_init.o" "$library"
    ar rc "$library" "$work"/*.o
fi
# shellcheck disable=SC2086
"${CC:-cc}" $flags "$@" "$library" -lm -o "$work/test"
"$work/test"

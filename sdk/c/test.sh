#!/bin/sh
# Builds a plugin and its test natively, on the reference host, and runs the test.
#
#   test.sh FILE...
#
# FILE is a C file of the plugin or of its test, or an option for the compiler. CC names another
# compiler; SANITIZE=1 adds the address and undefined behaviour sanitizers.
set -eu
sdk=$(cd "$(dirname "$0")" && pwd)
[ $# -ge 1 ] || { sed -n '2,7s/^# \{0,1\}//p' "$0" >&2; exit 2; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
flags=
[ -z "${SANITIZE:-}" ] || flags="-fsanitize=address,undefined -fno-sanitize-recover=all"
# Of the library, the linker takes only the exports that the test calls.
(
    cd "$work"
    # shellcheck disable=SC2086
    "${CC:-cc}" -std=gnu11 -O1 -g $flags -Wall -Wextra -I"$sdk/include" -c \
        "$sdk"/src/*.c "$sdk"/host/*.c
    rm -f export_init.o
    ar rc library.a ./*.o
)
# shellcheck disable=SC2086
"${CC:-cc}" -std=gnu11 -O1 -g $flags -Wall -Wextra -I"$sdk/include" "$@" "$work/library.a" -lm \
    -o "$work/test"
"$work/test"

#!/bin/sh
# Makes the root file system of the image: Debian 12's C library and certificates, the server, the
# runtimes of languages, and ONNX Runtime. The Dockerfile runs it, and so does the check, which
# starts a container of the result.
#
# usage: rootfs.sh FOLDER PROGRAM RUNTIMES ONNXRUNTIME
#   FOLDER       is made; if it is there, it gets these files of the server in place of its own
#   PROGRAM      the binary gristmill
#   RUNTIMES     the folder with python.wasm and javascript.wasm, or these and .zst
#   ONNXRUNTIME  its library
set -eu
folder=$1 program=$2 runtimes=$3 onnxruntime=$4
umask 022

if [ ! -e "$folder" ]; then
    # Packages are unpacked and not configured. Nothing of them runs, so no rights are needed, and
    # root does not endanger the host, of which newer versions of mmdebstrap warn.
    mmdebstrap --quiet --mode=chrootless --skip=check/chrootless --variant=extract \
        --include=base-files,bash,ca-certificates,libstdc++6,tzdata \
        --dpkgopt='path-exclude=/usr/share/doc/*' \
        --dpkgopt='path-include=/usr/share/doc/*/copyright' \
        --dpkgopt='path-exclude=/usr/share/man/*' --dpkgopt='path-exclude=/usr/share/locale/*' \
        --dpkgopt='path-exclude=/usr/lib/*/gconv/*' \
        bookworm "$folder"

    # What the packages' scripts would do.
    cat "$folder"/usr/share/ca-certificates/mozilla/*.crt \
        >"$folder/etc/ssl/certs/ca-certificates.crt"
    ln -sf bash "$folder/bin/sh"
    cat >"$folder/etc/passwd" <<'EOF'
root:x:0:0:root:/:/usr/sbin/nologin
gristmill:x:10001:10001::/data:/usr/sbin/nologin
EOF
    printf 'root:x:0:\ngristmill:x:10001:\n' >"$folder/etc/group"
    install -d "$folder/data" "$folder/etc/gristmill"
fi

install -D -m 755 "$program" "$folder/usr/bin/gristmill"
install -D -m 644 -t "$folder/usr/share/gristmill/runtimes" "$runtimes"/*.wasm*
install -D -m 644 "$onnxruntime" "$folder/usr/lib/gristmill/libonnxruntime.so"
install -D -m 755 "$(dirname "$0")/healthcheck" "$folder/usr/lib/gristmill/healthcheck"

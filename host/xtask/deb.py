"""Pack a built gristmill as a Debian package. `cargo xtask deb` runs this.

dpkg-deb, which every Debian has, packs a folder. cargo-deb would have to be built first, and it
packs the program that cargo builds, not the one that a profile has guided.
"""

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

from wheel import ROOT, Elf, files_below, stripped, write_symbols

DEPLOY = ROOT / "host/deploy"
ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
SCRIPTS = ["postinst", "prerm", "postrm"]

# The files of the package, beside the program and what it shares.
FILES = {
    "etc/gristmill/gristmill.toml": DEPLOY / "systemd/gristmill.toml",
    "lib/systemd/system/gristmill.service": DEPLOY / "systemd/gristmill.service",
    "usr/lib/sysusers.d/gristmill.conf": DEPLOY / "systemd/gristmill.sysusers",
    "usr/lib/tmpfiles.d/gristmill.conf": DEPLOY / "systemd/gristmill.tmpfiles",
    "usr/share/doc/gristmill/copyright": DEPLOY / "debian/copyright",
    "usr/share/doc/gristmill/NOTICE": ROOT / "NOTICE",
}


def stage(folder, options, program):
    """Lay out the package's files in an empty folder."""

    def write(path, content, mode=0o644):
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
        file.chmod(mode)

    write("usr/bin/gristmill", program, 0o755)
    for path, source in FILES.items():
        write(path, source.read_bytes())
    for share in options.share:
        for inner, file in files_below(share):
            write(f"usr/share/gristmill/{share.name}/{inner}", file.read_bytes())
    size = sum(file.stat().st_size for _, file in files_below(folder))
    elf = Elf(program)
    control = (DEPLOY / "debian/control").read_text().format(
        version=options.version,
        architecture=ARCHITECTURES[elf.machine],
        size=-(-size // 1024),
        glibc=".".join(map(str, elf.glibc())),
    )
    write("DEBIAN/control", control.encode())
    settings = [f"/{path}\n" for path in FILES if path.startswith("etc/")]
    write("DEBIAN/conffiles", "".join(settings).encode())
    for script in SCRIPTS:
        write(f"DEBIAN/{script}", (DEPLOY / f"debian/{script}").read_bytes(), 0o755)
    for path in [folder, *folder.rglob("*")]:
        if path.is_dir():
            path.chmod(0o755)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--version", required=True, help="of the program")
    parser.add_argument("--binary", required=True, type=Path, help="the program")
    parser.add_argument("--out", required=True, type=Path, help="the folder of the package")
    parser.add_argument("--share", action="append", default=[], type=Path, metavar="FOLDER",
                        help="a folder of /usr/share/gristmill, under its own name")
    parser.add_argument("--quick", action="store_true",
                        help="not compressed: for tests")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as name:
        # The package's files, beside those that are made of the program.
        folder = Path(name) / "package"
        folder.mkdir()
        program, symbols = stripped(options.binary, Path(name), options.quick)
        stage(folder, options, program)
        if symbols:
            print(write_symbols(options, Elf(program), symbols))
        compression = "none" if options.quick else "xz"
        pack = ["dpkg-deb", "--root-owner-group", f"-Z{compression}", "--build", folder]
        sys.exit(subprocess.run([*pack, options.out]).returncode)


if __name__ == "__main__":
    main()

"""Pack a built gristmill as a wheel and as a tarball. `cargo xtask wheel` runs this.

maturin makes wheels of programs, too, also guided by a profile, but only of those that it builds
itself. This packs any program: the check of each change packs the one that it has built anyway, and
the one that ships was built by `cargo xtask dist`, with a flag for the counters.

The same input makes the same bytes: entries are sorted, and their times are fixed.
"""

import argparse
import base64
import gzip
import hashlib
import io
import platform
import shutil
import struct
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[2]
LICENCES = ["LICENSE", "NOTICE"]

# What people wait for when they install it: the target.
WHEEL_MIB = 40

# What a manylinux wheel may link to beside the C library: PEP 600 and its policy files.
LIBRARIES = {
    "libc.so.6", "libm.so.6", "libdl.so.2", "libpthread.so.0", "librt.so.1", "libgcc_s.so.1",
    "libstdc++.so.6", "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1",
}
MACHINES = {62: "x86_64", 183: "aarch64"}

METADATA = """\
Metadata-Version: 2.4
Name: gristmill
Version: {version}
Summary: A multi-tenant inference host: tenants' sandboxed plugins around one shared batcher
License-Expression: Apache-2.0
License-File: LICENSE
License-File: NOTICE
Requires-Dist: onnxruntime>=1.23
Description-Content-Type: text/markdown

{readme}"""

WHEEL = """\
Wheel-Version: 1.0
Generator: cargo xtask wheel
Root-Is-Purelib: false
Tag: {tag}
"""


def machine_of(content):
    """The machine that a program is for, by its first bytes."""
    if content[:6] != b"\x7fELF\x02\x01":
        raise SystemExit("error: the binary is not a 64-bit program for Linux")
    machine = struct.unpack_from("<H", content, 18)[0]
    if machine not in MACHINES:
        raise SystemExit(f"error: the binary is for a machine with the number {machine}")
    return MACHINES[machine]


class Elf:
    """What a program for Linux says about the machine and the libraries that it needs."""

    DYNAMIC, VERSIONS_NEEDED = 6, 0x6FFFFFFE

    def __init__(self, content):
        self.content, self.machine = content, machine_of(content)
        start, size, count = (
            struct.unpack_from("<Q", content, 40)[0],
            *struct.unpack_from("<HH", content, 58),
        )
        self.sections = []
        for place in range(start, start + count * size, size):
            _, kind, _, _, offset, length, link = struct.unpack_from("<IIQQQQI", content, place)
            self.sections.append((kind, offset, length, link))

    def _section(self, wanted):
        """The place and the size of the first section of a kind, and the place of its texts."""
        for kind, offset, size, link in self.sections:
            if kind == wanted:
                return offset, size, self.sections[link][1]
        raise SystemExit("error: the binary is linked statically, or has no table of sections")

    def _text(self, at):
        return self.content[at : self.content.index(b"\0", at)].decode()

    def libraries(self):
        """The libraries that it links to."""
        offset, size, texts = self._section(self.DYNAMIC)
        entries = struct.iter_unpack("<QQ", self.content[offset : offset + size])
        return {self._text(texts + value) for tag, value in entries if tag == 1}

    def glibc(self):
        """The C library's version that it needs, as (major, minor)."""
        at, _, texts = self._section(self.VERSIONS_NEEDED)
        versions = []
        while True:
            _, _, _, first, following = struct.unpack_from("<HHIII", self.content, at)
            need = at + first
            while True:
                _, _, _, name, next_need = struct.unpack_from("<IHHII", self.content, need)
                versions.append(self._text(texts + name))
                if not next_need:
                    break
                need += next_need
            if not following:
                break
            at += following
        # A feature of the loader instead of a version.
        versions = ["GLIBC_2.36" if name == "GLIBC_ABI_DT_RELR" else name for name in versions]
        found = [version[6:].split(".") for version in versions if version[:7] == "GLIBC_2"]
        return max((int(major), int(minor)) for major, minor, *_ in found)


# The file with a program's symbols. The program names it: profiles and debuggers look beside it.
SYMBOLS = "gristmill.debug"


def stripped(binary, folder, is_quick):
    """The program's bytes without names of functions and tables of lines, and the file with these.

    Both are made in the folder, but for what `cargo xtask dist` left beside the program. A quick
    one has no such file.
    """
    with open(binary, "rb") as file:
        machine = machine_of(file.read(64))

    def run(name, *arguments):
        # That of another machine is in Debian's package binutils-MACHINE-linux-gnu.
        of_machine = name if machine == platform.machine() else f"{machine}-linux-gnu-{name}"
        subprocess.run([of_machine, *arguments], check=True)

    program, symbols = folder / "gristmill", folder / SYMBOLS
    try:
        run("strip", "--strip-all", "-o", program, binary)
        if is_quick:
            return program.read_bytes(), None
        if binary.with_suffix(".debug").is_file():
            symbols.symlink_to(binary.with_suffix(".debug").resolve())
        else:
            run("objcopy", "--only-keep-debug", binary, symbols)
        link = ["--remove-section=.gnu_debuglink", f"--add-gnu-debuglink={symbols}"]
        run("objcopy", *link, program)
    except (OSError, subprocess.CalledProcessError) as error:
        print(f"warning: the program is packed as it is: {error}", file=sys.stderr)
        return binary.read_bytes(), None
    return program.read_bytes(), symbols


def files_below(folder):
    """The paths of a folder's files from the folder, and the files."""
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    return [(path.relative_to(folder).as_posix(), path) for path in paths]


def shared(folders, is_quick):
    """What lies in share/gristmill/: paths and contents.

    The server reads runtimes of languages compressed by Zstandard, too, which makes them smaller
    than a wheel's and a tarball's own compression does.
    """
    contents = []
    for folder in folders:
        for path, file in files_below(folder):
            path, content = f"{folder.name}/{path}", file.read_bytes()
            if folder.name == "runtimes" and file.suffix == ".wasm":
                compress = ["zstd", "-q", "-c", "-1" if is_quick else "-19", file]
                try:
                    content = subprocess.run(compress, check=True, stdout=subprocess.PIPE).stdout
                    path += ".zst"
                except (OSError, subprocess.CalledProcessError) as error:
                    print(f"warning: {file} is packed as it is: {error}", file=sys.stderr)
            contents.append((path, content))
    return contents


class Wheel:
    """The file of a wheel, and the record of what is in it."""

    def __init__(self, name, file, level):
        self.name = name
        self.zip = zipfile.ZipFile(file, "w")
        self.level = level
        self.record = []

    def _write(self, path, content, mode):
        about = zipfile.ZipInfo(path, (1980, 1, 1, 0, 0, 0))
        about.create_system = 3
        about.external_attr = (0o100000 | mode) << 16
        self.zip.writestr(about, content, zipfile.ZIP_DEFLATED, self.level)

    def add(self, path, content, mode=0o644):
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        self.record.append(f"{path},sha256={digest},{len(content)}\n")
        self._write(path, content, mode)

    def close(self):
        path = f"{self.name}.dist-info/RECORD"
        self._write(path, "".join([*self.record, f"{path},,\n"]).encode(), 0o644)
        self.zip.close()


def write_wheel(options, program, elf, share):
    """Returns the wheel's path."""
    major, minor = elf.glibc()
    tag = f"py3-none-manylinux_{major}_{minor}_{elf.machine}"
    name = f"gristmill-{options.version}"
    path = options.out / f"{name}-{tag}.whl"
    readme = (ROOT / "README.md").read_text("utf-8")
    metadata = METADATA.format(version=options.version, readme=readme)
    contents = [
        (f"{name}.data/scripts/gristmill", program, 0o755),
        (f"{name}.dist-info/METADATA", metadata.encode(), 0o644),
        (f"{name}.dist-info/WHEEL", WHEEL.format(tag=tag).encode(), 0o644),
    ]
    for licence in LICENCES:
        text = (ROOT / licence).read_bytes()
        contents.append((f"{name}.dist-info/licenses/{licence}", text, 0o644))
    for inner, content in share:
        contents.append((f"{name}.data/data/share/gristmill/{inner}", content, 0o644))
    wheel = Wheel(name, path, 0 if options.quick else 9)
    for content in sorted(contents):
        wheel.add(*content)
    wheel.close()
    return path


def write_tarball(options, program, elf, share):
    """Returns the tarball's path."""
    name = f"gristmill-{options.version}"
    path = options.out / f"{name}-{elf.machine}-linux.tar.gz"
    others = [(licence, (ROOT / licence).read_bytes()) for licence in LICENCES]
    others += [(f"share/gristmill/{inner}", content) for inner, content in share]
    contents = [(f"{name}/{inner}", content, 0o644) for inner, content in others]
    contents.append((f"{name}/bin/gristmill", program, 0o755))
    archived = io.BytesIO()
    with tarfile.open(fileobj=archived, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for inner, content, mode in sorted(contents):
            about = tarfile.TarInfo(inner)
            about.size, about.mode = len(content), mode
            archive.addfile(about, io.BytesIO(content))
    # The same input makes the same bytes.
    path.write_bytes(gzip.compress(archived.getvalue(), 9, mtime=0))
    return path


def write_symbols(options, elf, symbols):
    """The file beside what is packed, compressed. Returns its path."""
    path = options.out / f"gristmill-{options.version}-{elf.machine}-linux.debug.gz"
    with open(symbols, "rb") as source, open(path, "wb") as file:
        with gzip.GzipFile("", "wb", 6, file, 0) as packed:
            shutil.copyfileobj(source, packed)
    return path


def write(options, program, symbols):
    """Write all packages. Returns their paths."""
    elf = Elf(program)
    if others := elf.libraries() - LIBRARIES:
        raise SystemExit(f"error: not every Linux has these libraries: {', '.join(sorted(others))}")
    share = shared(options.share, options.quick)
    options.out.mkdir(parents=True, exist_ok=True)
    made = [write_wheel(options, program, elf, share)]
    if not options.quick:
        made.append(write_tarball(options, program, elf, share))
    if symbols:
        made.append(write_symbols(options, elf, symbols))
    return made


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--version", required=True, help="of the program")
    parser.add_argument("--binary", required=True, type=Path, help="the program")
    parser.add_argument("--out", required=True, type=Path, help="the folder of what is made")
    parser.add_argument("--share", action="append", default=[], type=Path, metavar="FOLDER",
                        help="a folder of share/gristmill/, under its own name")
    parser.add_argument("--quick", action="store_true",
                        help="only the wheel, and larger: for tests")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        program, symbols = stripped(options.binary, Path(folder), options.quick)
        made = write(options, program, symbols)
    for path in made:
        target = f" (target: {WHEEL_MIB})" if path.suffix == ".whl" else ""
        print(f"{path} {path.stat().st_size / (1 << 20):.1f} MiB{target}")


if __name__ == "__main__":
    main()

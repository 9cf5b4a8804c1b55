"""The systemd unit and the Debian package. Only dpkg is needed: what needs more says so."""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from functools import cached_property
from pathlib import Path

EXPOSURE_MAX = 2.0

# The first systemd-analyze that looks at a unit which is not installed.
SYSTEMD_MIN = 250

# What the package's scripts run, beside a shell's own commands.
OF_SCRIPTS = ["systemd-sysusers", "systemd-tmpfiles", "deb-systemd-helper"]

# dpkg looks for programs that only root's PATH has.
PATH = f"{os.environ.get('PATH', '')}:/usr/local/sbin:/usr/sbin:/sbin"


class NotRun(Exception):
    """This machine lacks what a check needs."""


def run(*command):
    ran = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                         env={**os.environ, "PATH": PATH})
    assert ran.returncode == 0, f"{command}: {ran.stdout}"
    return ran.stdout


class Debian:
    def __init__(self, options):
        self.options = options

    def check_unit(self):
        if not shutil.which("systemd-analyze"):
            raise NotRun("how exposed the unit is: no systemd-analyze")
        version = int(re.search(r"^systemd (\d+)", run("systemd-analyze", "--version"))[1])
        if version < SYSTEMD_MIN:
            raise NotRun(f"how exposed the unit is: systemd {version} is older than {SYSTEMD_MIN}")
        unit = self.options.root / "host/deploy/systemd/gristmill.service"
        shown = run("systemd-analyze", "security", "--offline=true", unit)
        exposure = float(re.search(r"Overall exposure level for \S+: (\d+\.\d+)", shown)[1])
        assert exposure <= EXPOSURE_MAX, shown
        return f"an exposure of {exposure}"

    def check_settings(self):
        """The program takes the file that the package brings, by `gristmill doctor`."""
        settings = self.options.root / "host/deploy/systemd/gristmill.toml"
        environment = {name: value for name, value in os.environ.items()
                       if not name.startswith("GRISTMILL_")}
        with tempfile.TemporaryDirectory(dir=self.options.work) as folder:
            command = [self.options.gristmill, "doctor", "--config", settings,
                       "--data-dir", folder, "--output", "json"]
            ran = subprocess.run(command, capture_output=True, text=True, cwd=folder,
                                 env={**environment, "HOME": folder})
        # It fails where a port is in use, and that is no fault of the file.
        assert ran.returncode in [0, 1], ran.stderr
        found = {one["subject"]: one for one in json.loads(ran.stdout)}
        assert "settings" not in found, found["settings"]
        assert {"listen", "grpc_listen", "admin_listen"} <= found.keys(), found
        return "the settings of the package"

    @cached_property
    def folder(self):
        """Goes when this object goes. The program is too large for some machines' /tmp."""
        return tempfile.TemporaryDirectory(dir=self.options.work)

    @cached_property
    def package(self):
        script = self.options.root / "host/xtask/deb.py"
        run(sys.executable, script, "--version", "0.1.0", "--binary", self.options.gristmill,
            "--out", self.folder.name, "--share", self.options.runtimes, "--quick")
        [package] = Path(self.folder.name).glob("gristmill_0.1.0_*.deb")
        return package

    def check_package(self):
        """What is in it: all of it root's, nothing that others can change."""
        listed = [line.split(maxsplit=5) for line in
                  run("dpkg-deb", "--contents", self.package).splitlines()]
        for mode, owner, *_, path in listed:
            assert owner == "root/root" and mode[5] == mode[8] == "-", f"{mode} {owner} {path}"
            assert not set("sStT") & set(mode), f"{mode} {path}"
        root = Path(self.folder.name) / "unpacked"
        run("dpkg-deb", "--raw-extract", self.package, root)
        assert run(root / "usr/bin/gristmill", "--version").startswith("gristmill ")
        for script in ["postinst", "prerm", "postrm"]:
            run("sh", "-n", root / "DEBIAN" / script)
        conffiles = (root / "DEBIAN/conffiles").read_text().split()
        assert conffiles == ["/etc/gristmill/gristmill.toml"], conffiles
        shutil.rmtree(root)
        return f"a package of {len(listed)} files and folders"

    def check_install(self):
        """Install, remove and purge. Scripts run outside of the root, which has no programs."""
        lacking = [name for name in OF_SCRIPTS if not shutil.which(name, path=PATH)]
        if os.getuid() != 0 or lacking:
            lacking = ", ".join(lacking) if os.getuid() == 0 else "root's rights"
            raise NotRun(f"the package's way in and out: it needs {lacking}")
        package, root = self.package, Path(self.folder.name) / "root"
        for made in ["var/lib/dpkg/info", "var/lib/dpkg/updates", "etc"]:
            (root / made).mkdir(parents=True)
        (root / "var/lib/dpkg/status").touch()
        # What the package depends on is not in this root.
        dpkg = ["dpkg", f"--root={root}", "--force-script-chrootless", "--force-depends",
                "--log=/dev/null"]
        run(*dpkg, "--install", package)
        settings = root / "etc/gristmill/gristmill.toml"
        data = root / "var/lib/gristmill"
        user = re.search(r"^gristmill:x:(\d+):", (root / "etc/passwd").read_text(), re.M)
        about = data.stat()
        assert (about.st_uid, about.st_mode & 0o777) == (int(user[1]), 0o700), about
        wanted = root / "etc/systemd/system/multi-user.target.wants/gristmill.service"
        assert wanted.is_symlink()
        # An operator's settings and the data stay when the package goes, but not the unit.
        settings.write_text("# changed\n" + settings.read_text())
        (data / "hash-key").write_text("kept")
        run(*dpkg, "--install", package)
        assert settings.read_text().startswith("# changed")
        run(*dpkg, "--remove", "gristmill")
        assert settings.exists() and (data / "hash-key").exists()
        assert not (root / "lib/systemd/system/gristmill.service").exists()
        # What the server's user has put there cannot lead the removal, as root, elsewhere.
        outside = Path(self.folder.name) / "outside"
        outside.mkdir()
        (outside / "kept").touch()
        (data / "link").symlink_to(outside)
        run(*dpkg, "--purge", "gristmill")
        assert (outside / "kept").exists()
        left = [path for path in root.rglob("*gristmill*") if "dpkg" not in path.parts]
        assert not left, left
        return "a package that comes and goes"

    def checks(self):
        return [self.check_unit, self.check_settings, self.check_package, self.check_install]

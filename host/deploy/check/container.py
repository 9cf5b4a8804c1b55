"""The image's root file system as a container without root, capabilities and a writable root."""

import hashlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
import zlib
from pathlib import Path

from debian import NotRun

TOKEN = "the-token-of-the-check"
# This user's ids stand for the image's user, and nothing stands for root.
USER, NOBODY = 10001, 65534
PATIENCE_S = 120

# Without ONNX Runtime's library for GPUs.
IMAGE_MIB_MAX = 120


def free_ports(count):
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


PORTS = dict(zip(["listen", "grpc_listen", "admin_listen"], free_ports(3)))

# The host's control groups may be those of version 1, which crun does not take, and the folders
# above the root file system may be closed to others.
MOUNTS = """
{ umount -R /sys/fs/cgroup; mount -t cgroup2 none /sys/fs/cgroup; } 2>/dev/null
mount --bind "$1" "$2" && shift 2 && exec "$@"
"""

NAMESPACES = ["unshare", "--user", "--map-root-user", "--mount", "--pid", "--fork", "--mount-proc"]

CURE = ("sysctl -w user.max_user_namespaces=10000, and on Ubuntu "
        "kernel.apparmor_restrict_unprivileged_userns=0; in Docker --privileged")


def seccomp(profile):
    """Podman's profile, which is Docker's, as crun reads it: for x86-64 and no capability."""
    rules = []
    for rule in profile["syscalls"]:
        needs, lacks = rule.get("includes") or {}, rule.get("excludes") or {}
        fits = "caps" not in needs and "amd64" in needs.get("arches", ["amd64"])
        if fits and "amd64" not in lacks.get("arches", []):
            keys = ["names", "action", "args", "errnoRet"]
            rules.append({key: rule[key] for key in keys if rule.get(key) not in (None, [])})
    return {
        "defaultAction": profile["defaultAction"],
        "defaultErrnoRet": profile["defaultErrnoRet"],
        "architectures": ["SCMP_ARCH_X86_64"],
        "syscalls": rules,
    }


def packed_bytes(files):
    """The bytes of files in a layer of an image, which gzip packs."""
    packer = zlib.compressobj(6)
    return sum(len(packer.compress(path.read_bytes())) for path in files) + len(packer.flush())


class Container:
    def __init__(self, options):
        self.options = options
        self.image = options.root / "host/deploy/image"
        self.root = options.work / "rootfs"
        self.name = f"gristmill-{os.getpid()}"

    def check_image(self):
        """Make the root file system. That of an earlier check gets the files of this server."""
        script = self.image / "rootfs.sh"
        wanted = hashlib.sha256(script.read_bytes()).hexdigest()
        stamp = self.options.work / "rootfs.sources"
        program = self.options.work / "gristmill"
        subprocess.run(["strip", "-o", program, self.options.gristmill], check=True)
        if not stamp.exists() or stamp.read_text() != wanted:
            stamp.unlink(missing_ok=True)
            shutil.rmtree(self.root, ignore_errors=True)
        subprocess.run([script, self.root, program, self.options.runtimes,
                        self.options.onnxruntime], check=True)
        stamp.write_text(wanted)
        files = [path for path in self.root.rglob("*") if path.is_file() and not path.is_symlink()]
        others = sum(path.stat().st_size for path in files if path.name != "gristmill")
        size = f"{others / (1 << 20):.0f} MiB beside its program"
        # The program of the check is another one than people get.
        shipped = self.options.shipped
        if shipped and shipped.exists():
            packed = packed_bytes([*(path for path in files if path.name != "gristmill"), shipped])
            whole = (others + shipped.stat().st_size) / (1 << 20)
            packed /= 1 << 20
            size = f"{whole:.0f} MiB, {packed:.0f} as registries send it (at most {IMAGE_MIB_MAX})"
            assert packed <= IMAGE_MIB_MAX, f"an image of {size}"
        writable = [path for path in files if path.stat().st_mode & 0o6022]
        assert not writable, f"others can change them, or they give rights: {writable}"
        return f"an image of {size}"

    def check_container(self):
        """Start it, deploy a model and a plugin, and end it under load: no request fails."""
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            (folder / "data").mkdir()
            self.write_bundle(folder, self.config(folder / "data"))
            probe = self.as_nobody(folder, [*NAMESPACES, "true"])
            tried = subprocess.run(probe, capture_output=True, text=True)
            if tried.returncode != 0:
                why = " ".join(tried.stderr.split())
                raise NotRun(f"the container: this machine allows no user namespaces ({why}). "
                             f"To allow them: {CURE}")
            run = self.as_nobody(folder, self.crun(folder, "run", "--bundle", folder, self.name))
            with open(folder / "log", "w+") as log:
                process = subprocess.Popen(run, stdout=log, stderr=log, start_new_session=True)
                try:
                    return self.check_server(process)
                except BaseException:
                    print(Path(log.name).read_text()[-4000:], file=sys.stderr)
                    raise
                finally:
                    if process.poll() is None:
                        # Without crun the container would stay.
                        kill = self.crun(folder, "kill", self.name, "KILL")
                        subprocess.run(self.as_nobody(folder, kill))
                        os.killpg(process.pid, signal.SIGKILL)
                        process.wait()

    def crun(self, folder, *command):
        return ["crun", "--root", folder / "run", "--cgroup-manager=disabled", *command]

    def as_nobody(self, folder, command):
        """The command as a user without rights. It ends with the process that starts it."""
        setpriv = ["setpriv", "--pdeathsig=TERM"]
        if os.getuid() != 0:
            return [*setpriv, *command]
        return ["unshare", "--mount", "sh", "-c", MOUNTS, "sh", self.root, folder / "rootfs",
                *setpriv, f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", *command]

    def write_bundle(self, folder, config):
        """What crun reads, in an empty folder."""
        (folder / "run").mkdir(mode=0o700)
        (folder / "config.json").write_text(json.dumps(config))
        rootfs = folder / "rootfs"
        if os.getuid() != 0:
            return rootfs.symlink_to(self.root)
        rootfs.mkdir()
        for path in [folder, *folder.rglob("*")]:
            os.chown(path, NOBODY, NOBODY)

    def config(self, data):
        host_id = NOBODY if os.getuid() == 0 else os.getuid()
        environment = {"PATH": "/usr/bin", "GRISTMILL_ADMIN_TOKEN": TOKEN,
                       "GRISTMILL_DATA_DIR": "/data", "GRISTMILL_SHUTDOWN_DELAY_S": "1",
                       "GRISTMILL_PREPARE_RUNTIMES": "false",
                       "ORT_DYLIB_PATH": "/usr/lib/gristmill/libonnxruntime.so"}
        for plane, port in PORTS.items():
            environment[f"GRISTMILL_{plane.upper()}"] = f"127.0.0.1:{port}"
        mapped = [{"containerID": USER, "hostID": host_id, "size": 1}]
        profile = json.loads(self.options.seccomp.read_text())
        none = {kind: [] for kind in
                ["bounding", "effective", "inheritable", "permitted", "ambient"]}
        return {
            "ociVersion": "1.0.2",
            "root": {"path": "rootfs", "readonly": True},
            "process": {
                "user": {"uid": USER, "gid": USER},
                "cwd": "/data",
                "args": ["/usr/bin/gristmill", "serve"],
                "env": [f"{name}={value}" for name, value in environment.items()],
                "capabilities": none,
                "noNewPrivileges": True,
            },
            "mounts": [
                {"destination": "/proc", "type": "proc", "source": "proc"},
                {"destination": "/dev", "type": "tmpfs", "source": "tmpfs", "options": ["nosuid"]},
                {"destination": "/tmp", "type": "tmpfs", "source": "tmpfs", "options": ["nosuid"]},
                {"destination": "/data", "type": "bind", "source": str(data),
                 "options": ["bind", "rw"]},
            ],
            "linux": {
                # The network is the host's: the check calls the server.
                "namespaces": [{"type": name} for name in ["pid", "ipc", "uts", "mount", "user"]],
                "uidMappings": mapped,
                "gidMappings": mapped,
                "seccomp": seccomp(profile),
            },
        }

    def check_server(self, process):
        until = time.monotonic() + PATIENCE_S
        while get("/readyz") != 200:
            assert process.poll() is None, f"it ended with {process.returncode}"
            assert time.monotonic() < until, "it is not ready"
            time.sleep(0.05)
        server = self.server_process()
        status = dict(line.split(":\t", 1) for line in
                      (server / "status").read_text().splitlines() if ":\t" in line)
        assert int(status["CapEff"], 16) == int(status["CapBnd"], 16) == 0, status
        assert (status["NoNewPrivs"], status["Seccomp"]) == ("1", "2"), status
        assert "0" not in status["Uid"].split(), status
        mounts = [line.split() for line in (server / "mountinfo").read_text().splitlines()]
        [options] = [mount[5] for mount in mounts if mount[4] == "/"]
        assert "ro" in options.split(","), options
        assert self.is_healthy(), "the health check fails"
        self.deploy()
        seven = (self.options.root / "models/digits/samples/seven.png").read_bytes()
        answered, failed, ended = [0], [], threading.Event()

        def load():
            while not ended.is_set():
                code = get("/v1/demo/infer/digits", seven)
                if code == 200:
                    answered[0] += 1
                # None: the port is closed, so the server has drained.
                elif code is None:
                    return
                else:
                    failed.append(code)

        sender = threading.Thread(target=load)
        sender.start()
        while answered[0] < 20 and not failed:
            time.sleep(0.01)
        before = answered[0]
        os.kill(int(server.name), signal.SIGTERM)
        code = process.wait(PATIENCE_S)
        ended.set()
        sender.join()
        assert code == 0 and not failed, f"ended with {code}, failed: {failed}"
        assert answered[0] > before, "it did not serve on after SIGTERM"
        assert not self.is_healthy(), "the health check passes without a server"
        return f"a container that answered {answered[0]} requests and drained"

    def server_process(self):
        """The folder in /proc of the server, which listens in a namespace of its own."""
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                command = (folder / "cmdline").read_bytes().split(b"\0")
                environment = (folder / "environ").read_bytes()
            except OSError:
                continue
            if command[0] == b"/usr/bin/gristmill" and TOKEN.encode() in environment:
                return folder
        raise AssertionError("no process of the server")

    def is_healthy(self):
        listen = f"127.0.0.1:{PORTS['listen']}"
        command = ["bash", self.image / "healthcheck"]
        return subprocess.run(command, env={**os.environ, "GRISTMILL_LISTEN": listen},
                              stderr=subprocess.DEVNULL).returncode == 0

    def deploy(self):
        pipeline = {"pre": "digits", "model": "digits", "post": "digits"}
        plugin = (self.options.components / "digits.wasm").read_bytes()
        for path, body in [
            ("models/digits", (self.options.root / "models/digits/digits.onnx").read_bytes()),
            ("tenants/demo", b'{"open": true}'),
            ("tenants/demo/plugins/digits", plugin),
            ("tenants/demo/pipelines/digits", json.dumps(pipeline).encode()),
        ]:
            url = f"http://127.0.0.1:{PORTS['admin_listen']}/admin/v1/{path}"
            headers = {"Authorization": f"Bearer {TOKEN}"}
            request = urllib.request.Request(url, body, headers, method="PUT")
            urllib.request.urlopen(request, timeout=PATIENCE_S).close()

    def checks(self):
        return [self.check_image, self.check_container]


def get(path, body=None):
    """The status of an answer, or None if nothing listens."""
    url = f"http://127.0.0.1:{PORTS['listen']}{path}"
    try:
        return urllib.request.urlopen(urllib.request.Request(url, body), timeout=60).status
    except urllib.error.HTTPError as error:
        return error.code
    except urllib.error.URLError as error:
        return None if isinstance(error.reason, ConnectionRefusedError) else 0
    except OSError:
        return 0

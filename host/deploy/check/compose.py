"""The compose file, read as YAML: no Docker starts it here. What it names is there, and the server
takes its settings."""

import json
import os
import re
import subprocess

import yaml

SETTING = re.compile(r"GRISTMILL_(\w+)")


def listed(value):
    return value if isinstance(value, list) else list(value or {})


class Compose:
    def __init__(self, options):
        self.folder = options.root / "host/deploy/compose"
        self.file = yaml.safe_load((self.folder / "compose.yaml").read_text())
        self.services = self.file["services"]
        self.gristmill, self.work = options.gristmill, options.work

    def check_names(self):
        """All that services name is declared, or a file of the clone."""
        for name, service in self.services.items():
            # The image gristmill is built before.
            image = service["image"]
            assert image == "gristmill" or re.search(r":[\w.-]+$", image), f"{name}: {image}"
            for volume in service.get("volumes", []):
                source = volume.split(":")[0]
                is_there = (self.folder / source).exists() if "/" in source \
                    else source in self.file["volumes"]
                assert is_there, f"{name}: {volume}"
            for key in ["configs", "secrets"]:
                for one in service.get(key, []):
                    source = one["source"] if isinstance(one, dict) else one
                    assert source in self.file[key], f"{name}: {key} {source}"
            others = listed(service.get("depends_on"))
            assert all(other in self.services for other in others), f"{name}: {others}"
            for port in service.get("ports", []):
                assert port.startswith("127.0.0.1:"), f"{name}: {port} is open to others"
        return f"{len(self.services)} services of the compose file"

    def check_settings(self):
        """The server reads the settings, flags and variables that the file gives it."""
        server = self.services["gristmill"]
        variables = {name: str(value) for name, value in server["environment"].items()}
        key, config = self.work / "compose-hash-key", self.work / "compose.toml"
        key.write_text("0" * 64 + "\n")
        config.write_text(self.file["configs"]["settings"]["content"])
        secret = f"/run/secrets/{server['secrets'][0]}"
        assert variables["GRISTMILL_HASH_KEY_FILE"] == secret, variables
        [target] = [one["target"] for one in server["configs"]]
        assert server["command"] == ["serve", "--config", target], server["command"]
        helped = [self.gristmill, "serve", "--help"]
        helped = subprocess.run(helped, capture_output=True, text=True, check=True).stdout
        for name in variables:
            flag = SETTING.fullmatch(name)
            known = not flag or f"--{flag[1].lower().replace('_', '-')} " in helped
            assert known, f"{name} is no setting"
        # The store of the file is not there; only the settings count.
        variables |= {"GRISTMILL_HASH_KEY_FILE": str(key), "GRISTMILL_STORE": "file:///nowhere"}
        command = [self.gristmill, "doctor", "--config", config, "--output", "json"]
        command += ["--data-dir", self.work / "none"]
        made = subprocess.run(command, capture_output=True, text=True,
                              env={**os.environ, **variables})
        faults = [one for one in json.loads(made.stdout) if one["subject"] == "settings"]
        assert not faults, faults
        return f"{len(variables)} variables of the server in the compose file"

    def check_parts(self):
        """Prometheus asks where the server has its metrics; Grafana reads what is mounted."""
        server = self.services["gristmill"]
        port = server["environment"]["GRISTMILL_METRICS_LISTEN"].rsplit(":", 1)[1]
        scraped = yaml.safe_load((self.folder / "prometheus.yml").read_text())
        targets = [target for job in scraped["scrape_configs"]
                   for static in job["static_configs"] for target in static["targets"]]
        assert targets == [f"gristmill:{port}"], targets

        def mounted(service):
            return {volume.split(":")[1] for volume in self.services[service]["volumes"]}

        for rules in scraped["rule_files"]:
            assert rules.rsplit("/", 1)[0] in mounted("prometheus"), rules
        provided = yaml.safe_load((self.folder / "grafana/dashboards.yml").read_text())
        folders = {provider["options"]["path"] for provider in provided["providers"]}
        assert folders <= mounted("grafana"), folders
        sources = yaml.safe_load((self.folder / "grafana/datasource.yml").read_text())
        assert [one["url"] for one in sources["datasources"]] == ["http://prometheus:9090"], sources
        return "the metrics of the compose file, from the server to Grafana"

    def checks(self):
        return [self.check_names, self.check_settings, self.check_parts]

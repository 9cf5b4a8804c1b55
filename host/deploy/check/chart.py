"""The Helm chart: rendered by Helm, against the schemas of Kubernetes and the Kustomize base."""

import json
import re
import subprocess
from pathlib import Path

import jsonschema
import kubernetes_validate
import yaml

VERSIONS = ["1.30", "1.33", "1.37"]
# Kinds that Prometheus' and KEDA's operators bring. Their schemas are not Kubernetes'.
OF_OPERATORS = json.loads((Path(__file__).parent / "operators.json").read_text())

# Settings that the chart makes, and secrets: values cannot have them.
MADE = {
    "admin_client_ca", "admin_listen", "admin_tls_certificate", "admin_tls_key", "admin_token",
    "data_dir", "drain_timeout_s", "grpc_listen", "hash_key_file", "listen", "metrics_listen",
    "replica_name", "shutdown_delay_s", "store", "tls_certificate", "tls_key",
}

# Values that cannot work, each with the place that the schema must name.
NONSENSE = [
    ({"store": {"url": ""}}, "store/url"),
    ({"store": {"url": "file:///data"}}, "store/url"),
    ({"store": {"env": {"AWS_SECRET_ACCESS_KEY": "in plain text"}}}, "store/env"),
    ({"replicas": 0}, "replicas"),
    ({"replicas": "three"}, "replicas"),
    ({"replica": 3}, ""),
    ({"shutdown": {"drainSeconds": -1}}, "shutdown/drainSeconds"),
    ({"settings": {"listen": "0.0.0.0:1"}}, "settings"),
    ({"settings": {"admin_token": "in plain text"}}, "settings"),
    ({"settings": {"cors_origins": {"a": 1}}}, "settings/cors_origins"),
    ({"settings": {"compile_concurency": 4}}, "settings"),
    ({"settings": {"poll_ms": "often"}}, "settings/poll_ms"),
    ({"settings": {"access_log": 1}}, "settings/access_log"),
    ({"canary": {"settings": {"tenants_bytes_max": 1}}}, "canary/settings"),
    ({"stores": {"Features": {"redis": "redis://cache"}}}, "stores"),
    ({"stores": {"items": {"redis": "redis://mill:in-plain-text@cache"}}}, "stores/items/redis"),
    ({"stores": {"items": {"redis": ["redis://a", "redis://b"]}}}, "stores/items"),
    ({"stores": {"items": {"redis": "redis://cache", "embedded": True}}}, "stores/items"),
    ({"stores": {"items": {"redis": "redis://cache", "timeout_ms": 0}}}, "stores/items/timeout_ms"),
    ({"image": {"digest": "sha256:short"}}, "image/digest"),
    ({"podDisruptionBudget": {"maxUnavailable": 0}}, "podDisruptionBudget/maxUnavailable"),
    ({"autoscaling": {"kind": "gpu"}}, "autoscaling/kind"),
    ({"autoscaling": {"keda": {"queueAgeSeconds": 0}}}, "autoscaling/keda/queueAgeSeconds"),
    ({"gpu": {"count": -1}}, "gpu/count"),
    ({"secrets": {"hashKey": "Not a name"}}, "secrets/hashKey"),
    ({"serviceMonitor": {"interval": "often"}}, "serviceMonitor/interval"),
]


def merged(into, values):
    result = dict(into)
    for key, value in values.items():
        both = isinstance(value, dict) and isinstance(result.get(key), dict)
        result[key] = merged(result[key], value) if both else value
    return result


def objects(text):
    return [document for document in yaml.safe_load_all(text) if document]


def of_kind(documents, kind, name="gristmill"):
    found = [one for one in documents if (one["kind"], one["metadata"]["name"]) == (kind, name)]
    assert len(found) == 1, f"{len(found)} of {kind} {name}"
    return found[0]


class Chart:
    def __init__(self, options):
        self.deploy, self.helm = options.root / "host/deploy", options.helm
        self.chart = self.deploy / "helm/gristmill"
        self.gristmill, self.work = options.gristmill, options.work
        reference = options.root / "host/docs/reference"
        self.metrics = (reference / "metrics.md").read_text()
        self.settings = (reference / "settings.md").read_text()

    def render(self, *flags):
        command = [self.helm / "helm", "template", "gristmill", self.chart]
        command += ["--namespace", "gristmill"]
        return subprocess.run([*command, *flags], capture_output=True, text=True)

    def rendered(self, values):
        made = self.render("--values", self.chart / f"ci/{values}.yaml")
        assert made.returncode == 0, f"{values}: {made.stderr}"
        return made.stdout

    def write_base(self):
        self.schema().write_text(self.made_schema())
        (self.deploy / "kustomize/base/resources.yaml").write_text(self.rendered("base"))

    def schema(self):
        return self.chart / "values.schema.json"

    def made_schema(self):
        """The schema with the settings of the server, as its reference has them."""
        schema = json.loads(self.schema().read_text())
        rows = re.findall(r"^\| `(\w+)` \| (?:`(.*?)`|none) \|", self.settings, re.M)
        defaults = {key: default for key, default in rows if key not in MADE}
        assert len(rows) - len(defaults) == len(MADE), "one of MADE is no setting"
        typed = {}
        for key, default in defaults.items():
            if default in ["true", "false"]:
                typed[key] = {"enum": [True, False, "true", "false"]}
            elif re.fullmatch(r"[\d.]+", default):
                typed[key] = {"type": ["number", "string"], "pattern": r"^[0-9.]+$"}
        settings = schema["definitions"]["settings"]
        settings["propertyNames"] = {"enum": list(defaults)}
        settings["properties"] = typed
        return json.dumps(schema, indent=1) + "\n"

    def check_objects(self):
        """Every object of every set of values, against every version."""
        checked, of_operators = 0, set()
        for values in ["base", "cpu", "keda"]:
            for one in objects(self.rendered(values)):
                if schema := OF_OPERATORS.get(one["kind"]):
                    jsonschema.validate(one, schema)
                    of_operators.add(one["kind"])
                    continue
                for version in VERSIONS:
                    kubernetes_validate.validate(one, version, strict=True)
                    checked += 1
        assert checked > 50 and of_operators == set(OF_OPERATORS), (checked, of_operators)
        return f"{checked} objects of Kubernetes {', '.join(VERSIONS)}"

    def check_base(self):
        """The Kustomize base is the chart's, and kustomize takes it."""
        base = self.deploy / "kustomize/base"
        written, made = (base / "resources.yaml").read_text(), self.rendered("base")
        assert written == made, "the Kustomize base is old: run cargo xtask deploy"
        command = [self.helm / "kubectl", "kustomize", base]
        built = subprocess.run(command, capture_output=True, text=True)
        assert built.returncode == 0, built.stderr
        kinds = sorted(one["kind"] for one in objects(built.stdout))
        assert kinds == sorted(one["kind"] for one in objects(made)), kinds
        return f"a Kustomize base with {len(kinds)} objects"

    def check_nonsense(self):
        """The schema refuses what cannot work, and says where. Helm refuses one of them, too."""
        text = self.schema().read_text()
        assert text == self.made_schema(), "the schema's settings are old: run cargo xtask deploy"
        schema = json.loads(text)
        validator = jsonschema.Draft7Validator(schema)
        usual = yaml.safe_load((self.chart / "values.yaml").read_text())
        usual = merged(usual, {"store": {"url": "s3://bucket/folder"}})
        assert validator.is_valid(usual)
        for values, place in NONSENSE:
            faults = list(validator.iter_errors(merged(usual, values)))
            places = ["/".join(map(str, fault.absolute_path)) for fault in faults]
            assert places == [place], f"{values}: {places}"
        refused = self.render("--set", "store.url=s3://bucket,replicas=0")
        assert refused.returncode != 0 and "/replicas" in refused.stderr, refused.stderr
        refused = self.render("--set", "store.url=s3://bucket,autoscaling.minReplicas=11")
        assert refused.returncode != 0 and "minReplicas" in refused.stderr, refused.stderr
        return f"{len(NONSENSE) + 2} nonsense values"

    def check_rules(self):
        """What no schema says: times that fit, planes that stay closed, metrics that exist."""
        base, full = objects(self.rendered("base")), objects(self.rendered("cpu"))
        settings = of_kind(base, "ConfigMap")["data"]["gristmill.toml"]
        delay, drain = (
            int(re.search(rf"^{name} = (\d+)$", settings, re.M)[1])
            for name in ["shutdown_delay_s", "drain_timeout_s"]
        )
        pod = of_kind(base, "Deployment")["spec"]["template"]["spec"]
        assert pod["terminationGracePeriodSeconds"] > delay + drain
        assert 'admin_listen = "127.0.0.1:8081"' in settings
        assert not any(one["metadata"]["name"].endswith("-admin") for one in base)
        opened = of_kind(full, "ConfigMap")["data"]["gristmill.toml"]
        assert 'admin_listen = "0.0.0.0:8081"' in opened
        # Both kinds of servers are behind one Service, and only one is scaled.
        selector = of_kind(full, "Service")["spec"]["selector"].items()
        for name in ["gristmill", "gristmill-canary"]:
            labels = of_kind(full, "Deployment", name)["spec"]["template"]["metadata"]["labels"]
            assert selector <= labels.items(), labels
        scaled = objects(self.rendered("keda"))
        assert "replicas" not in of_kind(scaled, "Deployment")["spec"], "two would scale it"
        triggers = of_kind(scaled, "ScaledObject")["spec"]["triggers"]
        names = [re.search(r"gristmill_\w+", one["metadata"]["query"])[0] for one in triggers]
        assert names == ["gristmill_queue_age_seconds", "gristmill_queue_rows"], names
        assert all(f"`{name}`" in self.metrics for name in names)
        for one in base + full + scaled:
            assert one["kind"] != "Secret", "a secret in plain text"
        return "the rules between objects"

    def check_stores(self):
        """The server reads the stores of the values, and their passwords are in the pod."""
        full = objects(self.rendered("cpu"))
        settings = of_kind(full, "ConfigMap")["data"]["gristmill.toml"]
        stores = re.search(r"^\[stores\..*", settings, re.M | re.S)[0]
        pod = of_kind(full, "Deployment")["spec"]["template"]["spec"]
        sources = {one["name"]: one for one in pod["volumes"]}["passwords"]["projected"]["sources"]
        files = [item["path"] for one in sources for item in one["secret"]["items"]]
        mounts = {one["name"]: one["mountPath"] for one in pod["containers"][0]["volumeMounts"]}
        named = re.findall(r'^password_file = "(.*)"$', stores, re.M)
        assert named == [f"{mounts['passwords']}/{name}" for name in files] and named, named
        password, file = self.work / "password", self.work / "stores.toml"
        password.write_text("secret\n")
        for path in named:
            stores = stores.replace(path, str(password))

        def fault_with(stores):
            file.write_text(stores)
            command = [self.gristmill, "doctor", "--config", file, "--output", "json"]
            command += ["--data-dir", self.work / "none"]
            made = subprocess.run(command, capture_output=True, text=True)
            found = [one for one in json.loads(made.stdout) if one["subject"] == "settings"]
            return found[0]["text"] if found else ""

        assert fault_with(stores) == "", fault_with(stores)
        assert "timeout_s" in fault_with(stores.replace("timeout_ms", "timeout_s"))
        return f"{stores.count('[stores.')} stores with {len(named)} passwords"

    def checks(self):
        checks = [self.check_objects, self.check_base, self.check_nonsense, self.check_rules]
        return [*checks, self.check_stores]

//! Putting tenants, plugins, models and pipelines on a server, and reading its state.

use serde_json::{Value, json};

use crate::support::files;
use crate::support::server::Server;

impl Server {
    /// Make a change by `PUT`. Returns the number of its release.
    #[track_caller]
    pub(crate) fn put(&self, path: &str, body: &[u8]) -> u64 {
        self.admin.put(&format!("/admin/v1/{path}"), body).ok()["release"].as_u64().unwrap()
    }

    #[track_caller]
    pub(crate) fn put_json(&self, path: &str, body: &Value) -> u64 {
        let answer = self.admin.put_json(&format!("/admin/v1/{path}"), body);
        answer.ok()["release"].as_u64().unwrap()
    }

    /// A tenant that needs no key.
    #[track_caller]
    pub(crate) fn open_tenant(&self, tenant: &str) -> u64 {
        self.put_json(&format!("tenants/{tenant}"), &json!({ "open": true }))
    }

    /// The tenant `tenant` with the key `key`.
    #[track_caller]
    pub(crate) fn keyed_tenant(&self, tenant: &str, key: &str) -> u64 {
        self.put_json(&format!("tenants/{tenant}"), &json!({ "api_keys": [key] }))
    }

    /// The built plugin `file` as the tenant's plugin `name`.
    #[track_caller]
    pub(crate) fn plugin(&self, tenant: &str, name: &str, file: &str) -> u64 {
        self.put(&format!("tenants/{tenant}/plugins/{name}"), &files::plugin(file))
    }

    #[track_caller]
    pub(crate) fn model(&self, name: &str) -> u64 {
        self.put(&format!("models/{name}"), &files::model(name))
    }

    #[track_caller]
    pub(crate) fn pipeline(&self, tenant: &str, name: &str, spec: &Value) -> u64 {
        self.put_json(&format!("tenants/{tenant}/pipelines/{name}"), spec)
    }

    /// An open tenant with the pipeline `digits`.
    #[track_caller]
    pub(crate) fn digits(&self, tenant: &str) {
        self.open_tenant(tenant);
        self.digits_for(tenant);
    }

    /// A server with the open tenant `acme`, which may call the model `ranker` and has the
    /// pipeline `digits`.
    #[track_caller]
    pub(crate) fn with_acme() -> Self {
        let server = Self::start();
        server.model("ranker");
        server.put_json("tenants/acme", &json!({ "open": true, "models": ["ranker"] }));
        server.digits_for("acme");
        server
    }

    /// The pipeline `digits` for an existing tenant.
    #[track_caller]
    pub(crate) fn digits_for(&self, tenant: &str) {
        self.model("digits");
        self.plugin(tenant, "digits", "digits");
        self.pipeline(tenant, "digits", &processor("digits", json!({})));
    }

    /// An open tenant with the pipeline `ranker`.
    #[track_caller]
    pub(crate) fn ranker(&self, tenant: &str) {
        self.open_tenant(tenant);
        self.model("ranker");
        self.plugin(tenant, "ranker-pre", "ranker-pre");
        self.plugin(tenant, "ranker-post", "ranker-post");
        let spec = json!({ "pre": "ranker-pre", "model": "ranker", "post": "ranker-post" });
        self.pipeline(tenant, "ranker", &spec);
    }

    /// An open tenant whose plugin misbehaves, with two pipelines: `hostile` has the default
    /// limits, `patient` has so much time that only the other limits end a call.
    #[track_caller]
    pub(crate) fn hostile(&self, tenant: &str) {
        self.open_tenant(tenant);
        self.model("digits");
        self.plugin(tenant, "hostile", "hostile");
        self.pipeline(tenant, "hostile", &processor("hostile", json!({})));
        let patient = json!({ "cpu_ms": 60_000, "timeout_ms": 100_000 });
        self.pipeline(tenant, "patient", &processor("hostile", patient));
    }

    pub(crate) fn status(&self) -> Value {
        self.admin.get("/admin/v1/status").ok()
    }

    /// The status without the figures of the process and of its memory, which differ each time.
    pub(crate) fn served(&self) -> Value {
        let mut status = self.status();
        let parts = status.as_object_mut().unwrap();
        parts.retain(|name, _| !["process", "memory", "requests"].contains(&name.as_str()));
        for model in parts["models"].as_object_mut().unwrap().values_mut() {
            model.as_object_mut().unwrap().remove("memory_bytes");
        }
        status
    }

    /// The release that serves.
    pub(crate) fn release(&self) -> u64 {
        self.status()["release"].as_u64().unwrap()
    }

    /// Fails unless the tenant's pipeline `digits` reads every digit.
    #[track_caller]
    pub(crate) fn assert_reads_digits(&self, tenant: &str) {
        for digit in 0..10 {
            self.assert_reads(tenant, digit);
        }
    }

    /// Fails unless the tenant's pipeline `digits` reads this digit.
    #[track_caller]
    pub(crate) fn assert_reads(&self, tenant: &str, digit: usize) {
        let answer = self.data.post(&format!("/v1/{tenant}/infer/digits"), &files::digit(digit));
        assert_eq!(answer.ok()["label"], digit);
    }

    /// Fails unless the tenant's pipeline `ranker` gives the recorded scores, the best first.
    #[track_caller]
    pub(crate) fn assert_ranks(&self, tenant: &str) {
        for (rows, scores) in files::ranker_golden() {
            let path = format!("/v1/{tenant}/infer/ranker");
            let answer = self.data.post(&path, ranker_body(&rows).to_string().as_bytes()).ok();
            let ranked = answer["items"].as_array().unwrap();
            let mut order: Vec<_> = (0..rows.len()).collect();
            order.sort_by(|one, other| scores[*other].total_cmp(&scores[*one]));
            let ids: Vec<_> = ranked.iter().map(|item| item["id"].as_str().unwrap()).collect();
            assert_eq!(ids, order.iter().map(usize::to_string).collect::<Vec<_>>());
            for (item, index) in ranked.iter().zip(order) {
                let score = item["score"].as_f64().unwrap();
                assert!((score - scores[index]).abs() < 1e-4, "{item}: {}", scores[index]);
            }
        }
    }
}

/// A pipeline around the model `digits` whose one plugin does both.
pub(crate) fn processor(plugin: &str, limits: Value) -> Value {
    json!({ "pre": plugin, "model": "digits", "post": plugin, "limits": limits })
}

/// A ranker's request: one item for each row, named by its position.
pub(crate) fn ranker_body(rows: &[Value]) -> Value {
    let item = |(index, features)| json!({ "id": format!("{index}"), "features": features });
    json!({ "items": rows.iter().enumerate().map(item).collect::<Vec<_>>() })
}

//! Uploading and calling guests, and checking after each that a neighbour is served.

use serde_json::{Value, json};

use crate::support::deeds::{End, TRAPPED};
use crate::support::modules::{Guest, numbering};
use crate::support::server::Server;

/// The upload is refused.
pub(super) const UNLOADABLE: End = (422, "invalid_plugin");

pub(super) struct Case {
    name: &'static str,
    guest: Guest,
    end: End,
}

pub(super) fn case(name: &'static str, guest: Guest, end: End) -> Case {
    Case { name, guest, end }
}

/// More than the server and one call's memory, tensors and images take together.
const RESIDENT_BYTES_MAX: usize = 1 << 30;

/// Upload and call each guest, and call a neighbour after each. Guests that can share a module are
/// compiled as one.
pub(super) fn run(cases: impl IntoIterator<Item = Case>) {
    let mut server = Server::start();
    server.digits("good");
    server.hostile("bad");
    server.put("tenants/bad/plugins/numbering", &numbering().file());
    for (role, pre) in [("pre", "pre"), ("post", "numbering")] {
        let mut spec = json!({ "pre": pre, "model": "digits", "post": "hostile" });
        spec[role] = role.into();
        // Until the first of its kind comes.
        server.plugin("bad", role, "hostile");
        server.pipeline("bad", role, &spec);
    }
    let mut modules: Vec<(Guest, Vec<(&str, End)>)> = Vec::new();
    for Case { name, guest, end } in cases {
        match modules.iter_mut().find_map(|(module, ends)| module.takes_in(&guest).then_some(ends))
        {
            Some(ends) => ends.push((name, end)),
            None => modules.push((guest, vec![(name, end)])),
        }
    }
    for (module, ends) in modules {
        assert_eq!(module.deeds(), ends.len());
        let role = module.role();
        let put =
            server.admin.put(&format!("/admin/v1/tenants/bad/plugins/{role}"), &module.file());
        let mut refused = (!matches!(put.status, 200 | 201)).then_some(put);
        for (index, (name, end)) in ends.into_iter().enumerate() {
            let answer = refused.take().unwrap_or_else(|| {
                let body = vec![b' '; index + 1];
                server.data.post(&format!("/v1/bad/infer/{role}"), &body)
            });
            let document = serde_json::from_slice::<Value>(&answer.body).unwrap_or_default();
            let ended = (answer.status, document["code"].as_str().unwrap_or_default());
            assert_eq!(ended, end, "{name}: {}", answer.text());
            if end == TRAPPED {
                let detail = document["detail"].as_str().unwrap();
                assert!(detail.starts_with(role), "{name}: {detail}");
            }
            server.assert_reads("good", index % 10);
        }
    }
    server.assert_alive();
    let peak = server.peak_resident_bytes();
    assert!(peak < RESIDENT_BYTES_MAX, "the server grew to {peak} bytes");
}

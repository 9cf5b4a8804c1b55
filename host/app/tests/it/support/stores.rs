//! Servers with stores, and what a plugin gets from them.

use std::fs;

use serde_json::{Value, json};

use super::server::Server;
use super::setup::Setup;

/// A configuration with these tables of stores.
pub(crate) fn configured(stores: &str) -> Setup {
    let setup = Setup::new();
    let file = setup.data_dir().with_file_name("stores.toml");
    fs::write(&file, stores).unwrap();
    setup.flag("--config", file.to_str().unwrap())
}

/// An open tenant with the plugin `hostile`, which is granted these stores.
pub(crate) fn granted(server: &Server, tenant: &str, stores: Value) {
    server.hostile(tenant);
    server.put_json(&format!("tenants/{tenant}"), &json!({ "open": true, "stores": stores }));
}

/// What the plugin got, or why it got nothing.
#[track_caller]
pub(crate) fn asked(server: &Server, tenant: &str, query: &str) -> String {
    let path = format!("/v1/{tenant}/infer/hostile?do=store&{query}");
    let answer = server.data.post(&path, b"");
    assert_eq!(answer.status, 200, "{query}: {}", answer.text());
    answer.text()
}

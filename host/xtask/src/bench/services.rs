//! Gristmill with the demo's services and a picture classifier.

use std::path::Path;

use anyhow::Result;
use serde_json::{Value, json};

use crate::admin::Admin;
use crate::bench::made_models;
use crate::bench::processes::start_server;
use crate::bench::shipped::Shipped;
use crate::server::Server;
use crate::shell::step;

/// A load of each service: its name, its path, and the flags of `gristmill bench` that say what is
/// sent.
pub(crate) const LOADS: [Load; 4] = [
    load("ranker", "v1/demo/infer/ranker", ["--body", "benches/scenarios/ranker.json"]),
    load("digits", "v1/demo/infer/digits", ["--body", "models/digits/samples/7.png"]),
    load("photos", "v1/demo/infer/photos", ["--body", "benches/scenarios/photo.jpg"]),
    load("/v2, ranker", "v2/models/ranker", ["--rows", "1"]),
];

pub(crate) struct Load {
    pub(crate) name: &'static str,
    pub(crate) path: &'static str,
    pub(crate) sent: [&'static str; 2],
}

const fn load(name: &'static str, path: &'static str, sent: [&'static str; 2]) -> Load {
    Load { name, path, sent }
}

/// The configuration of the picture classifier: as many sessions of one thread as the peers have.
pub(super) fn photos_config() -> Value {
    json!({ "threads": 1, "instances": 2 })
}

/// Start the server as it ships, with the demo's tenants. The tenant `demo` gets the picture
/// classifier and its pipeline as well.
pub(super) fn start(shipped: &Shipped) -> Result<Server> {
    step("starting Gristmill");
    let server = start_server(shipped)?;
    add_photos(&server.admin, &shipped.components)?;
    Ok(server)
}

/// Give the tenant `demo` the picture classifier and its pipeline.
pub(crate) fn add_photos(admin: &Admin, components: &Path) -> Result<()> {
    admin.put_file("models/photos", &made_models::photos()?)?;
    admin.put_json("models/photos/config", &photos_config())?;
    let models = ["digits", "ranker", "photos"];
    let tenant = json!({ "open": true, "default_pipeline": "digits", "models": models });
    admin.put_json("tenants/demo", &tenant)?;
    admin.put_file("tenants/demo/plugins/photos", &components.join("photos.wasm"))?;
    let pipeline = json!({ "pre": "photos", "model": "photos", "post": "photos" });
    admin.put_json("tenants/demo/pipelines/photos", &pipeline)
}

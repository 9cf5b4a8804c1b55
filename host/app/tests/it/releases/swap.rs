//! Replacing plugins and models while they serve.

use serde_json::json;

use crate::support::client::TestAnswer;
use crate::support::files;
use crate::support::load::under_load;
use crate::support::server::Server;

/// The plugin that answered.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Version {
    Digits,
    Hostile,
}

#[track_caller]
fn version_of(answer: &TestAnswer) -> Version {
    if answer.status == 200 && answer.text() == "harmless" {
        return Version::Hostile;
    }
    assert_eq!(answer.ok()["label"], 7);
    Version::Digits
}

#[test]
fn a_plugin_is_replaced_between_two_requests() {
    let server = Server::start();
    server.digits("acme");
    let seven = files::digit(7);
    let ask = || server.data.post("/v1/acme/infer/digits", &seven);
    under_load(
        4,
        |_| version_of(&ask()),
        |versions| {
            for _ in 0..3 {
                for (file, version) in [("hostile", Version::Hostile), ("digits", Version::Digits)]
                {
                    let release = server.plugin("acme", "digits", file);
                    let answer = ask();
                    assert_eq!(version_of(&answer), version);
                    assert_eq!(answer.header("gristmill-release"), release.to_string());
                    // The others got many answers of the old plugin while the new one was compiled.
                    versions.try_iter().for_each(drop);
                    let seen = versions.iter().take(10_000).any(|seen| seen == version);
                    assert!(seen, "the others still get another version than {version:?}");
                }
            }
        },
    );
}

#[test]
fn a_models_configuration_changes_under_load() {
    let server = Server::start();
    server.digits("acme");
    under_load(
        4,
        |_| server.assert_reads("acme", 7),
        |answers| {
            for max_batch_size in [1, 4, 256, 2, 16] {
                let config = json!({ "max_batch_size": max_batch_size, "instances": 2 });
                server.put_json("models/digits/config", &config);
                server.assert_reads("acme", 3);
                assert_eq!(answers.iter().take(20).count(), 20);
                let model = &server.status()["models"]["digits"];
                assert_eq!(model["config"]["max_batch_size"], max_batch_size);
                let batches = model["statistics"]["batch_sizes"].as_object().unwrap();
                let rows = batches.keys().map(|rows| rows.parse::<usize>().unwrap());
                assert!(rows.max().unwrap() <= max_batch_size, "{batches:?}");
            }
        },
    );
}

#[test]
fn another_tenants_changes_disturb_nobody() {
    let server = Server::start();
    server.digits("acme");
    under_load(
        4,
        |_| server.assert_reads("acme", 7),
        |answers| {
            for _ in 0..3 {
                server.hostile("other");
                server.admin.delete("/admin/v1/tenants/other?cascade=true").ok();
                assert_eq!(answers.iter().take(20).count(), 20);
            }
        },
    );
}

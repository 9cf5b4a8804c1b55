//! The versions of the plugin contract: plugins of 0.1 run unchanged beside those of 0.2.
//!
//! The plugins of 0.1 are files in `plugins/fixtures/0.1.0`, built before there was 0.2.

use serde_json::json;

use crate::support::deploy::processor;
use crate::support::files;
use crate::support::server::Server;

#[test]
fn plugins_of_the_old_contract_run_unchanged() {
    let server = Server::start();
    server.open_tenant("old");
    server.model("digits");
    server.put("tenants/old/plugins/digits", &files::old_plugin("digits"));
    server.pipeline("old", "digits", &processor("digits", json!({})));
    server.assert_reads_digits("old");
}

#[test]
fn plugins_of_both_contracts_serve_one_pipeline() {
    let server = Server::start();
    // Deploys the plugins of 0.2.
    server.ranker("acme");
    server.assert_ranks("acme");
    server.put("tenants/acme/plugins/ranker-pre", &files::old_plugin("ranker-pre"));
    server.assert_ranks("acme");
    server.put("tenants/acme/plugins/ranker-post", &files::old_plugin("ranker-post"));
    server.assert_ranks("acme");
}

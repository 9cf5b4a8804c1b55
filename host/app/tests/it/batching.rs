//! A model's batching, as its configuration says, changed while the server runs.

use serde_json::json;

use crate::files;
use crate::server::Server;

#[test]
fn a_preferred_size_is_waited_for_and_a_new_configuration_applies_at_once() {
    let server = Server::start();
    server.digits("acme");
    let config = json!({ "max_queue_delay_us": 60_000_000, "preferred_batch_sizes": [2] });
    server.put_json("models/digits/config", &config);
    // Neither is answered before the other has come, or a minute has passed, which is over the timeout.
    std::thread::scope(|scope| {
        for digit in [1, 6] {
            let server = &server;
            scope.spawn(move || server.assert_reads("acme", digit));
        }
    });
    let statistics = server.status()["models"]["digits"]["statistics"].clone();
    assert_eq!(statistics["batch_sizes"], json!({ "2": 1 }));
    server.put_json("models/digits/config", &json!({}));
    server.assert_reads("acme", 3);
}

#[test]
fn what_is_queued_for_longer_than_its_level_allows_is_refused() {
    let server = Server::start();
    server.digits("acme");
    // Waits for a second request that never comes.
    let policy = json!({ "default_timeout_us": 1000 });
    let config = json!({
        "max_queue_delay_us": 60_000_000, "preferred_batch_sizes": [2], "default_queue_policy": policy,
    });
    server.put_json("models/digits/config", &config);
    let answer = server.data.post("/v1/acme/infer/digits", &files::digit(1));
    answer.refused(504, "deadline_exceeded", &["while the request was queued"]);
    let statistics = server.status()["models"]["digits"]["statistics"].clone();
    assert_eq!((&statistics["expired"], &statistics["batches"]), (&json!(1), &json!(0)));
}

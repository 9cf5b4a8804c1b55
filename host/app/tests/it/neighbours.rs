//! A tenant beside one that does all that a plugin can do wrong.

use std::thread;

use crate::bad_plugins::{bomb_picture, small_picture};
use crate::load::under_load;
use crate::server::Server;

/// Every deed, and the statuses it may end with: with time running out beside many others, that of
/// a timeout too. Each may end with 429 as well, where the others hold all that the tenant may.
const DEEDS: [(&str, &[u16]); 36] = [
    ("trap", &[500]),
    ("post-trap", &[500]),
    ("panic", &[500]),
    ("loop", &[504]),
    ("post-loop", &[504]),
    ("recurse", &[500]),
    ("eat-memory", &[500, 504]),
    ("eat-handles", &[500, 504]),
    ("eat-host-memory", &[500, 504]),
    ("huge-tensor", &[500]),
    ("flood-log", &[200, 504]),
    ("long-error", &[400, 504]),
    ("internal-error", &[500]),
    ("wrong-name", &[500]),
    ("wrong-dtype", &[500]),
    ("wrong-shape", &[500]),
    ("wrong-length", &[500]),
    ("no-rows", &[500]),
    ("no-inputs", &[500]),
    ("bomb", &[422]),
    ("huge-response", &[500, 504]),
    ("bad-status", &[500]),
    ("bad-header", &[500]),
    ("remember", &[200]),
    ("top-k", &[500, 504]),
    ("argmax", &[500, 504]),
    ("empty-strings", &[500, 504]),
    ("many-dims", &[500, 504]),
    ("fill-memory", &[500, 504]),
    ("large-tensors", &[500, 504]),
    ("resize-chain", &[422, 500, 504]),
    ("log-empty", &[200, 504]),
    ("long-name", &[500, 504]),
    ("30000-headers", &[500, 504]),
    ("huge-headers", &[500, 504]),
    ("", &[200]),
];

const ROUNDS: usize = 2;

#[test]
fn an_honest_tenant_notices_nothing() {
    let mut server = Server::start();
    server.digits("honest");
    server.hostile("hostile");
    let work =
        |index| (0..10).for_each(|digit| server.assert_reads("honest", (digit + index) % 10));
    let rounds = under_load(3, work, |rounds| {
        for _ in 0..ROUNDS {
            misbehave(&server);
        }
        rounds.try_iter().count()
    });
    assert!(rounds > 0, "no honest request was answered meanwhile");
    server.assert_alive();
    server.assert_reads_digits("honest");
    let tenants = &server.status()["models"]["digits"]["statistics"]["tenants"];
    assert_eq!(tenants["honest"]["fail"], 0, "{tenants}");
    assert!(tenants["hostile"]["fail"].as_u64().unwrap() > 0, "{tenants}");
}

/// All deeds at the same time.
fn misbehave(server: &Server) {
    thread::scope(|scope| {
        for (deed, statuses) in DEEDS {
            scope.spawn(move || {
                let path = format!("/v1/hostile/infer/hostile?do={deed}");
                let picture = if deed == "bomb" { bomb_picture() } else { small_picture() };
                let answer = server.data.post(&path, &picture);
                // Deeds share their tenant's budget and places: on a busy machine some come too late.
                let waited = [429, 504].contains(&answer.status);
                let contained = waited || statuses.contains(&answer.status);
                assert!(contained, "{deed}: {}: {}", answer.status, answer.text());
            });
        }
    });
}

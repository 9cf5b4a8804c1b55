//! A tenant beside another one whose plugins do everything wrong that a plugin can.

use std::thread;

use crate::support::deeds::{SIMULTANEOUS, bomb_picture, small_picture};
use crate::support::load::under_load;
use crate::support::server::Server;

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

/// Many deeds at the same time. So each may also end with a timeout, or with 429 if the others hold
/// the whole budget of the tenant.
fn misbehave(server: &Server) {
    thread::scope(|scope| {
        for (deed, ends) in SIMULTANEOUS {
            scope.spawn(move || {
                let path = format!("/v1/hostile/infer/hostile?do={deed}");
                let picture = if deed == "bomb" { bomb_picture() } else { small_picture() };
                let answer = server.data.post(&path, &picture);
                // The deeds share their tenant's budget and places, so some may come too late on a
                // busy machine.
                let waited = [429, 503, 504].contains(&answer.status);
                let contained = waited || ends.iter().any(|(status, _)| *status == answer.status);
                assert!(contained, "{deed}: {}: {}", answer.status, answer.text());
            });
        }
    });
}

//! Flame graphs of the server under load, and of which functions its processor time is.

use std::thread;
use std::time::Duration;

use anyhow::{Result, anyhow};

use super::own_client::Round;
use super::services;
use super::shipped::Shipped;
use crate::shell::{program, root, run, step, target};

const CONCURRENCY: u32 = 16;
const PROFILE_SECONDS: u32 = 10;
/// The load begins a moment before the profile, and ends after it.
const LOAD_SECONDS: u32 = PROFILE_SECONDS + 3;

/// Write a flame graph for each of the services into benches/results, and a profile for pprof into
/// target.
pub(crate) fn run_flames(shipped: &Shipped) -> Result<()> {
    let server = services::start(shipped)?;
    for load in services::LOADS {
        let name = load.name.replace("/v2, ", "v2-");
        step(&format!("a profile of {name}"));
        let url = format!("{}/{}", server.url, load.path);
        let round = Round { concurrency: CONCURRENCY, seconds: LOAD_SECONDS };
        thread::scope(|scope| {
            let loading = scope.spawn(|| round.measure(&shipped.gristmill, &url, &load.sent));
            // The client warms up meanwhile.
            thread::sleep(Duration::from_secs(2));
            for (ending, seconds) in [("svg", PROFILE_SECONDS / 2), ("pb.gz", PROFILE_SECONDS / 2)]
            {
                let file = match ending {
                    "svg" => root().join(format!("benches/results/flames-{name}.svg")),
                    _ => target().join(format!("flames-{name}.{ending}")),
                };
                let mut profile = program(&shipped.gristmill);
                profile.args(["profile", "--seconds", &seconds.to_string(), "--file"]).arg(file);
                profile.env("GRISTMILL_ADMIN_URL", &server.admin.url);
                run(profile.env("GRISTMILL_ADMIN_TOKEN", &server.admin.token))?;
            }
            let measured = loading.join().map_err(|_| anyhow!("the load panicked"))??;
            println!("{name}: {:.0} answers a second while it was recorded", measured.per_second);
            Ok::<_, anyhow::Error>(())
        })?;
    }
    Ok(())
}

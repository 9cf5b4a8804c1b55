//! Flame graphs of the server under load, and of which functions its CPU time is.

use std::fs;
use std::thread;
use std::time::Duration;

use anyhow::{Result, anyhow};

use super::clients::Round;
use super::harness::Bench;
use super::loads::LOADS;
use crate::shell::{run as run_command, step};

const FOLDER: &str = "target/flames";
const PROFILE_SECONDS: u32 = 5;
/// The load begins a moment before the profile, and ends after it.
const LOAD: Round = Round { concurrency: 16, seconds: PROFILE_SECONDS + 3 };

/// Write a flame graph for each of the services into target/flames/.
pub(super) fn run(bench: &mut Bench<'_>) -> Result<()> {
    fs::create_dir_all(FOLDER)?;
    let server = bench.start_with_photos()?;
    for load in LOADS {
        let name = load.name().replace("/v2, ", "v2-");
        step(&format!("a profile of {name}"));
        thread::scope(|scope| {
            let loading = scope.spawn(|| bench.measure(&server, &load, LOAD));
            // The client warms up meanwhile.
            thread::sleep(Duration::from_secs(2));
            let mut profile = server.cli(&bench.gristmill);
            profile.args(["profile", "--seconds", &PROFILE_SECONDS.to_string(), "--file"]);
            run_command(profile.arg(format!("{FOLDER}/{name}.svg")))?;
            let measured = loading.join().map_err(|_| anyhow!("the load panicked"))??;
            println!("{name}: {:.0} answers a second while it was recorded", measured.per_second);
            anyhow::Ok(())
        })?;
    }
    Ok(())
}

//! What a team that writes Python brings: a RandomForest of scikit-learn, with the plugin that
//! `plugin new --model` writes; edits that go live while the server is loaded; and many plugins of
//! one runtime.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use bytes::Bytes;
use gristmill_client::{Client, block_on};
use http::Request;
use serde_json::json;

use super::clients::{Round, wrk_script};
use super::harness::{Bench, grant};
use super::peers::peer::FOREST;
use super::rounds::{Measured, compare, in_turns, median};
use crate::server::Server;
use crate::shell::{program, root, run as run_program, step, target};
use crate::table::Bound::{AtLeast, AtMost};
use crate::table::Table;
use crate::{runtimes, setup};

const ROUNDS: usize = 3;
const ROUND: Round = Round { concurrency: 16, seconds: 4 };

/// The targets over FastAPI as people write it, in the template's instances and in ones that stay,
/// and over FastAPI tuned by hand, in ones that stay.
const PLAIN_MIN: [f64; 2] = [1.0, 2.0];
const TUNED_MIN: f64 = 1.2;

/// The edits that go live under load, and the target for the slowest.
const EDITS: usize = 10;
const LIVE_S_MAX: f64 = 2.0;

/// The plugins whose memory is measured, and the target for each.
const IDLE_PLUGINS: usize = 40;
const IDLE_MIB_MAX: f64 = 3.0;

/// The plugins that are called in turn, the clients, the time, and the target over one plugin.
const TURN_PLUGINS: usize = 1000;
const TURN_CLIENTS: usize = 4;
const TURN_TIME: Duration = Duration::from_secs(6);
const TURN_RATIO_MIN: f64 = 0.7;

/// Measures, and adds rows.
type Case<'a> = fn(&Team<'a>, &mut Table) -> Result<()>;

pub(super) fn run(bench: &mut Bench<'_>) -> Result<()> {
    if bench.options.build {
        runtimes::build()?;
    }
    let work = target().join("forest");
    let _ = fs::remove_dir_all(&work);
    fs::create_dir_all(&work)?;
    let model = work.join("forest.onnx");
    let trainer =
        setup::python_environment("forest-python", "benches/scenarios/forest/requirements.txt")?;
    run_program(
        program(trainer).arg(root().join("benches/scenarios/forest/train.py")).arg(&model),
    )?;
    let server = bench.start()?;
    server.admin.put_file("models/forest", &model)?;
    grant(&server.admin, &["digits", "ranker", "forest"])?;
    let cases: [(&str, Case<'_>); 4] = [
        ("forest", Team::over_fastapi),
        ("edits", Team::edits_under_load),
        ("memory", Team::memory_of_each),
        ("turn", Team::many_in_turn),
    ];
    let wanted: Vec<_> = cases.into_iter().filter(|(case, _)| bench.wants(case)).collect();
    let team = Team { gristmill: &bench.gristmill, server: &server, work, model };
    for (case, measure) in wanted {
        step(case);
        measure(&team, &mut bench.table)?;
    }
    Ok(())
}

/// What the team has.
struct Team<'a> {
    gristmill: &'a Path,
    server: &'a Server,
    work: PathBuf,
    model: PathBuf,
}

impl Team<'_> {
    /// Make a plugin as `plugin new` does. Returns its folder.
    fn plugin(&self, name: &str, language: &str) -> Result<PathBuf> {
        let folder = self.work.join(name);
        let mut new = program(self.gristmill);
        new.args(["plugin", "new", name, "--language", language, "--folder"]).arg(&folder);
        new.arg("--model").arg(&self.model);
        new.env("ORT_DYLIB_PATH", setup::install_onnxruntime()?).stdout(Stdio::null());
        setup::set_build_folders(&mut new);
        run_program(&mut new)?;
        Ok(folder)
    }

    /// Build a plugin. Returns the file.
    fn build(&self, folder: &Path) -> Result<PathBuf> {
        let file = folder.with_extension("tar");
        let mut build = program(self.gristmill);
        build.args(["plugin", "build"]).arg(folder).arg("--out").arg(&file);
        build.stdout(Stdio::null());
        setup::set_build_folders(&mut build);
        run_program(&mut build)?;
        Ok(file)
    }

    /// Upload a plugin and serve it in a pipeline of the same name.
    fn serve(&self, name: &str, file: &Path, reuse: Option<&str>) -> Result<()> {
        let admin = &self.server.admin;
        admin.put_file(&format!("tenants/demo/plugins/{name}"), file)?;
        let mut pipeline = json!({ "pre": name, "model": "forest", "post": name });
        if let Some(reuse) = reuse {
            pipeline["instance_reuse"] = reuse.into();
        }
        admin.put_json(&format!("tenants/demo/pipelines/{name}"), &pipeline)
    }

    fn url(&self, pipeline: &str) -> String {
        format!("{}/v1/demo/infer/{pipeline}", self.server.url)
    }

    fn over_fastapi(&self, table: &mut Table) -> Result<()> {
        let file = self.build(&self.plugin("forest", "python")?)?;
        self.serve("forest", &file, None)?;
        self.serve("forest-tenant", &file, Some("tenant"))?;
        let _peer = FOREST.start(&FOREST.install()?, "app")?;
        let peer = FOREST.address();
        let body = root().join("benches/scenarios/forest/rows.json");
        let script = wrk_script("forest", &body, &[("content-type", "application/json")])?;
        let by_wrk = |url: &str| ROUND.by_wrk(url, &script);
        let [plain, tuned, template, tenant] = in_turns(
            ROUNDS,
            [
                &|| by_wrk(&format!("http://{peer}/plain")),
                &|| by_wrk(&format!("http://{peer}/tuned")),
                &|| by_wrk(&self.url("forest")),
                &|| by_wrk(&self.url("forest-tenant")),
            ],
        )?;
        for (how, ours, theirs, ratio_min) in [
            ("as the template makes it, over pydantic", &template, &plain, Some(PLAIN_MIN[0])),
            ("tenant, over pydantic", &tenant, &plain, Some(PLAIN_MIN[1])),
            ("as the template makes it, over tuned by hand", &template, &tuned, None),
            ("tenant, over tuned by hand", &tenant, &tuned, Some(TUNED_MIN)),
        ] {
            let compared = compare(ours, theirs);
            let figures = compared.figures("gristmill_per_s", "fastapi_per_s");
            let what = format!("RandomForest, 3 rows of JSON, 16 clients: {how}");
            let row = table.row(what, figures);
            if let Some(ratio_min) = ratio_min {
                row.with_bound(compared.ratio, AtLeast(ratio_min), "x FastAPI");
            }
        }
        Ok(())
    }

    /// The time from the start of an upload to its answer, after which it is live.
    fn edits_under_load(&self, table: &mut Table) -> Result<()> {
        for (language, source) in [("python", "app.py"), ("js", "plugin.js")] {
            let folder = self.plugin(&format!("edited-{language}"), language)?;
            let name = format!("edited-{language}");
            self.serve(&name, &self.build(&folder)?, None)?;
            let body = root().join("benches/scenarios/forest/rows.json");
            let script = wrk_script("forest", &body, &[("content-type", "application/json")])?;
            let seconds = u32::try_from(4 * EDITS)?;
            let round = Round { concurrency: 16, seconds };
            let (times, load) = thread::scope(|scope| {
                let load = scope.spawn(|| round.by_wrk(&self.url(&name), &script));
                let times = (0..EDITS).map(|edit| {
                    let path = folder.join(source);
                    let comment = if language == "python" { "#" } else { "//" };
                    let text = fs::read_to_string(&path)? + &format!("\n{comment} edit {edit}\n");
                    fs::write(&path, text)?;
                    let file = self.build(&folder)?;
                    let began = Instant::now();
                    self.server.admin.put_file(&format!("tenants/demo/plugins/{name}"), &file)?;
                    Ok(began.elapsed().as_secs_f64())
                });
                let times = times.collect::<Result<Vec<_>>>();
                (times, load.join())
            });
            let per_second = load.map_err(|_| anyhow::anyhow!("the client panicked"))??.per_second;
            let times = times?;
            let slowest = times.iter().copied().fold(0.0, f64::max);
            let bytes = fs::metadata(folder.with_extension("tar"))?.len();
            let figures = json!({
                "median_s": median(times), "slowest_s": slowest, "bytes": bytes,
                "answers_per_s": per_second,
            });
            let row = table.row(format!("upload to live under 16 clients, {language}"), figures);
            row.with_bound(slowest, AtMost(LIVE_S_MAX), "s, the slowest");
        }
        Ok(())
    }

    /// The server's memory for each further plugin that was called once.
    fn memory_of_each(&self, table: &mut Table) -> Result<()> {
        for (language, source) in [("python", "app.py"), ("js", "plugin.js")] {
            let folder = self.plugin(&format!("idle-{language}"), language)?;
            let path = folder.join(source);
            let text = fs::read_to_string(&path)?;
            let comment = if language == "python" { "#" } else { "//" };
            let add = |number: usize| -> Result<()> {
                fs::write(&path, format!("{text}\n{comment} {number}\n"))?;
                let name = format!("idle-{language}-{number}");
                self.serve(&name, &self.build(&folder)?, None)?;
                self.call(&Client::new(self.server.url.parse()?), &name)
            };
            // The runtime and the pools are there after some.
            (0..5).try_for_each(add)?;
            let memory = || -> Result<[f64; 2]> {
                Ok([self.server.memory_kib("RssAnon")?, self.server.memory_kib("VmRSS")?])
            };
            let before = memory()?;
            (5..5 + IDLE_PLUGINS).try_for_each(add)?;
            let after = memory()?;
            let each = |at: usize| (after[at] - before[at]) / IDLE_PLUGINS as f64 / 1024.0;
            // Pages of the compiled file can be dropped and read again.
            let figures = json!({ "mib": each(0), "with_pages_of_files_mib": each(1) });
            let row =
                table.row(format!("memory of each further plugin, idle, {language}"), figures);
            row.with_bound(each(0), AtMost(IDLE_MIB_MAX), "MiB");
        }
        Ok(())
    }

    fn call(&self, client: &Client, pipeline: &str) -> Result<()> {
        let body =
            Bytes::from_static(include_bytes!("../../../../benches/scenarios/forest/rows.json"));
        let request = Request::post(format!("/v1/demo/infer/{pipeline}")).body(body)?;
        block_on(client.send(request))?.ok().map(drop)?;
        Ok(())
    }

    fn many_in_turn(&self, table: &mut Table) -> Result<()> {
        let folder = self.plugin("turn", "python")?;
        let path = folder.join("app.py");
        let text = fs::read_to_string(&path)?;
        let names: Vec<_> = (0..TURN_PLUGINS).map(|number| format!("turn-{number}")).collect();
        for (number, name) in names.iter().enumerate() {
            fs::write(&path, format!("{text}\n# {number}\n"))?;
            self.serve(name, &self.build(&folder)?, Some("tenant"))?;
        }
        let measure = |names: &[String]| -> Result<Measured> {
            let (next, began) = (AtomicUsize::new(0), Instant::now());
            let client = || {
                let client = Client::new(self.server.url.parse()?);
                let mut count = 0_u32;
                while began.elapsed() < TURN_TIME {
                    let at = next.fetch_add(1, Ordering::Relaxed) % names.len();
                    self.call(&client, &names[at])?;
                    count += 1;
                }
                Ok::<_, anyhow::Error>(count)
            };
            let counts = thread::scope(|scope| {
                let clients: Vec<_> = (0..TURN_CLIENTS).map(|_| scope.spawn(client)).collect();
                clients
                    .into_iter()
                    .map(|client| client.join().ok().context("it panicked")?)
                    .sum::<Result<u32>>()
            })?;
            ensure!(counts > 0, "there were no answers");
            let per_second = f64::from(counts) / began.elapsed().as_secs_f64();
            Ok(Measured { per_second, ..Measured::default() })
        };
        // Each is there once before it counts.
        measure(&names)?;
        let [many, one] = in_turns(ROUNDS, [&|| measure(&names), &|| measure(&names[..1])])?;
        let compared = compare(&many, &one);
        let what = format!("{TURN_PLUGINS} Python plugins in turn, tenant, over one");
        let row = table.row(what, compared.figures("many_per_s", "one_per_s"));
        row.with_bound(compared.ratio, AtLeast(TURN_RATIO_MIN), "x one");
        Ok(())
    }
}

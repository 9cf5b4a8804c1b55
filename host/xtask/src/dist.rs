//! `cargo xtask dist`: the release build of the server, optimised for the requests that it serves
//! (profile-guided optimisation).
//!
//! The server is built twice: first with counters, which record what runs while it serves the
//! demo's tenants, then with what they recorded.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use gristmill_client::Listen;

use crate::bench::{LOADS, Round, add_photos};
use crate::server::Server;
use crate::setup;
use crate::shell::{cargo, output, program, run as run_command, step, target};

/// The connections of the loads while the counters record.
const CONNECTIONS: [u32; 3] = [1, 16, 64];
const SECONDS: u32 = 5;

pub(crate) fn run() -> Result<()> {
    let tools = Tools::find()?;
    let onnxruntime = setup::install_onnxruntime()?;
    setup::install_wasm_toolchain()?;
    let folder = target().join("guided");
    let counts = folder.join("counts");
    let _ = fs::remove_dir_all(&counts);
    // Counts of earlier runs and of the client go to another folder.
    let (of_server, of_others) = (counts.join("server"), counts.join("others"));
    fs::create_dir_all(&of_server)?;

    step("building the server with counters (about 15 minutes on 2 cores)");
    let counting = folder.join("gristmill-counting");
    let flag = format!("-Cprofile-generate={}", of_others.display());
    tools.build(&[&flag, "--cfg", "gristmill_counting"], &counting)?;
    let components = setup::build_components(&counting)?;
    step("recording what runs while it serves");
    record(&counting, &onnxruntime, &components, &of_server)?;

    let merged = folder.join("gristmill.profdata");
    let files = fs::read_dir(&of_server)?.map(|file| Ok(file?.path()));
    let files = files.collect::<Result<Vec<_>>>()?;
    if files.is_empty() {
        bail!("the server recorded nothing in {}", of_server.display());
    }
    run_command(program(&tools.profdata).arg("merge").arg("-o").arg(&merged).args(files))?;

    step("building the server with what was recorded (about 15 minutes on 2 cores)");
    let gristmill = built();
    tools.build(&[&format!("-Cprofile-use={}", merged.display())], &gristmill)?;
    tools.check_names(&merged, &gristmill)?;
    // Names of functions and tables of lines go beside the program, which says what file has them.
    let symbols = gristmill.with_extension("debug");
    let link = format!("--add-gnu-debuglink={}", symbols.display());
    run_command(program("objcopy").arg("--only-keep-debug").args([&gristmill, &symbols]))?;
    run_command(program("strip").arg("--strip-all").arg(&gristmill))?;
    run_command(program("objcopy").arg(link).arg(&gristmill))?;
    println!("built {}", gristmill.display());
    Ok(())
}

/// Where the optimised server is, once it is built.
pub(crate) fn built() -> PathBuf {
    target().join("guided/gristmill")
}

/// The programs that are needed beside cargo.
struct Tools {
    /// The target triple. Named, so that flags do not apply to build scripts and macros.
    host: String,
    profdata: PathBuf,
}

impl Tools {
    /// Find them. rustup installs what is missing.
    ///
    /// # Errors
    /// There is no `llvm-profdata` of rustc's LLVM.
    fn find() -> Result<Self> {
        let version = output(program("rustc").arg("-vV"))?;
        let host = version.lines().find_map(|line| line.strip_prefix("host: "));
        let host = host.context("rustc does not name its host")?.to_owned();
        let sysroot = output(program("rustc").args(["--print", "sysroot"]))?;
        let bin = Path::new(sysroot.trim()).join("lib/rustlib").join(&host).join("bin");
        let profdata = bin.join("llvm-profdata");
        if !profdata.exists() {
            step("installing llvm-tools");
            run_command(program("rustup").args(["component", "add", "llvm-tools"]))
                .context("llvm-profdata is missing, and rustup cannot install it")?;
        }
        Ok(Self { host, profdata })
    }

    /// Build the server with these flags of the compiler, and copy it to `to`. Settings of the
    /// profile are the same in both builds: cargo puts them into the names of functions, by which
    /// the compiler finds what was recorded.
    fn build(&self, flags: &[&str], to: &Path) -> Result<()> {
        let mut build = cargo();
        build.args(["build", "--release", "--workspace", "--bin", "gristmill"]);
        build.args(["--target", &self.host]);
        build.env("CARGO_PROFILE_RELEASE_STRIP", "none");
        run_command(build.env("CARGO_ENCODED_RUSTFLAGS", flags.join("\x1f")))?;
        let built = target().join(&self.host).join("release/gristmill");
        fs::copy(&built, to).with_context(|| built.display().to_string())?;
        Ok(())
    }

    /// Check that the server's functions have the names of the recorded ones. The compiler uses
    /// nothing of a profile with other names, and does not say so.
    ///
    /// # Errors
    /// It has none of them.
    fn check_names(&self, profile: &Path, gristmill: &Path) -> Result<()> {
        const CRATE: &str = "gristmill_serve";
        let recorded =
            output(program(&self.profdata).args(["show", "--all-functions"]).arg(profile))?;
        let lines = recorded.lines().map(|line| line.trim().trim_end_matches(':'));
        // Those that only their file calls are behind its name.
        let names = lines.filter_map(|line| line.rsplit(';').next());
        let recorded: HashSet<_> = names.filter(|name| name.contains(CRATE)).collect();
        let symbols = output(program("nm").arg(gristmill))?;
        let symbols = symbols.lines().filter_map(|line| line.split_whitespace().last());
        let common = symbols.filter(|name| recorded.contains(name)).count();
        println!("{common} functions of {CRATE} have the name of a recorded one");
        ensure!(
            common > 0,
            "the profile has other names of functions than the server, so it was not used"
        );
        Ok(())
    }
}

/// Serve the demo's tenants under load, and end, so that the counters are written.
fn record(gristmill: &Path, onnxruntime: &Path, components: &Path, counts: &Path) -> Result<()> {
    let data = target().join("guided/data");
    let mut server = Server::command(gristmill, &data, onnxruntime, Listen::FREE_PORTS);
    // Its children, which compile and prove, have an environment of their own: they record nothing.
    server.env("LLVM_PROFILE_FILE", counts.join("gristmill-%m.profraw"));
    let server = Server::spawn(&mut server)?;
    server.deploy_demo(components)?;
    add_photos(&server.admin, components)?;
    let over_http = LOADS.map(|load| (format!("{}/{}", server.url, load.path), load.flags()));
    let over_grpc = (format!("grpc://{}/ranker", server.grpc), ["--rows", "1"]);
    for (url, sent) in over_http.into_iter().chain([over_grpc]) {
        for concurrency in CONNECTIONS {
            let round = Round { concurrency, seconds: SECONDS };
            let measured = round.measure(gristmill, &url, &sent)?;
            println!("{url}, {concurrency}: {:.0} answers a second", measured.per_second);
        }
    }
    server.end()
}

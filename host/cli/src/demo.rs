//! `gristmill demo`: a server with two tenants around two models, a proof that their requests
//! shared batches, and commands to paste.
//!
//! Its plugins, models and requests are files that came with this program: a wheel has them, and
//! `cargo xtask demo` makes them in a clone.

mod batches;
mod signals;

use std::fs;
use std::io::IsTerminal;
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use clap::{ArgMatches, value_parser};
use gristmill_client::{Addresses, Listen, ServerProcess};

use self::signals::Signals;
use crate::admin::Admin;
use crate::args::{option, switch};
use crate::output::{escaped, quoted};
use crate::own_server;
use crate::plugin::library;

const TOKEN: &str = "demo-admin-token-not-for-production";
/// The key of the second tenant, `acme`.
const ACME_KEY: &str = "acme-demo-key-0001";

/// The folder with the demo's files, from the folder above that of the program, and in it the
/// manifest and the server's configuration, which has a store.
const FILES: &str = "share/gristmill/demo";
const MANIFEST: &str = "demo.toml";
const CONFIG: &str = "demo-server.toml";

/// The page of the open tenant, for everybody.
const TRY: &str = "/v1/demo/try";

/// The server's ports, if no other program has them: data plane, gRPC, admin plane.
const PORTS: [u16; 3] = [8080, 8082, 8081];

/// The lines of the server's log that are shown.
const LOG: &str = "warn,ort=error";

pub(crate) fn command() -> clap::Command {
    clap::Command::new("demo")
        .about("Start a server with two tenants around two models, and print commands to paste")
        .after_help(
            "Examples:\n  \
             gristmill demo\n  \
             gristmill demo --data ./try\n\n\
             It starts `gristmill serve` on 127.0.0.1, deploys the tenants `demo`, which is open, \
             and `acme`, which has a key, and sends requests of both: they meet in batches of one \
             model. Plugins, models and sample requests came with this program. If another program \
             has a port, the demo takes a free one. On a desktop it opens a page to try them. Ctrl-C \
             ends the server and removes its data, unless --data names their folder.\n\n\
             The admin token is always the same, so every program on this machine can change the \
             demo: it is for trying, not for serving.",
        )
        .args([
            option("data", "FOLDER")
                .value_parser(value_parser!(PathBuf))
                .help("Where the data are kept [default: a temporary folder]"),
            switch("no-browser")
                .help("Open no page. None is opened without a terminal and a desktop either"),
        ])
}

pub(crate) fn run(matches: &ArgMatches) -> Result<()> {
    let files = files()?;
    let temporary;
    let data = match matches.get_one::<PathBuf>("data") {
        Some(data) => {
            let data = std::path::absolute(data).context("--data")?;
            fs::create_dir_all(&data).with_context(|| format!("--data {}", data.display()))?;
            data
        }
        None => {
            let made = tempfile::Builder::new().prefix("gristmill-demo-").tempdir();
            temporary = made.context("cannot make a temporary folder")?;
            temporary.path().to_owned()
        }
    };
    step("starting the server");
    let signals = Signals::catch()?;
    let mut server = ServerProcess::spawn(&mut server_command(&data, &files.join(CONFIG))?)?;
    signals.pass_on(&server.child)?;
    let addresses = server.wait_until_serving()?;
    step("deploying two tenants");
    deploy(&files.join(MANIFEST), &addresses.admin)?;
    step("sending digits of both at the same time");
    let picture = files.join("seven.png");
    batches::send(&addresses.data, &picture, ACME_KEY)?;
    let admin = Admin::of_own_server(&addresses.admin, TOKEN.to_owned())?;
    let lane = admin.get("status")?["models"]["digits"]["statistics"].take();
    // Programs that start the demo read its addresses as those of a server.
    print!("{}", addresses.to_text(env!("CARGO_PKG_VERSION")));
    println!("{}", commands(&addresses, &files)?);
    println!("{}\n\nCtrl-C stops it.", batches::summary(&lane));
    if !matches.get_flag("no-browser") {
        open_page(&format!("{}{TRY}", addresses.data));
    }
    let ended = server.child.wait()?;
    ensure!(ended.success(), "the server ended: {ended}");
    Ok(())
}

/// Show a page in the browser, for somebody at a desktop. Without one, the page's address is read.
fn open_page(url: &str) {
    let has_desktop =
        ["DISPLAY", "WAYLAND_DISPLAY"].iter().any(|name| std::env::var_os(name).is_some());
    if has_desktop && std::io::stdout().is_terminal() {
        let mut opening = Command::new("sh");
        // Some ways to open a page last as long as the browser.
        opening.args(["-c", "xdg-open \"$1\" </dev/null >/dev/null 2>&1 &", "sh", url]);
        let _ = opening.status();
    }
}

/// Print the step that begins.
fn step(what: &str) {
    eprintln!("==> {what}");
}

/// The folder with the demo's files. Never one in the current folder, which may be another user's:
/// a manifest says which files become readable with the demo's known token.
fn files() -> Result<PathBuf> {
    let program = own_server::program()?;
    let folder = program.ancestors().nth(2).unwrap_or(&program).join(FILES);
    ensure!(
        folder.join(MANIFEST).is_file(),
        "the demo's files are not in {}: install the wheel of gristmill, or run `cargo xtask demo` \
         in a clone",
        folder.display()
    );
    Ok(folder)
}

/// The command of the server.
fn server_command(data: &Path, config: &Path) -> Result<Command> {
    let [data_plane, grpc, admin] = PORTS.map(address);
    let listen = Listen { data: &data_plane, grpc: &grpc, admin: &admin };
    let mut command = own_server::command(data, listen)?;
    command
        .arg("--config")
        .arg(config)
        .args(["--open-tenant", "demo", "--log", LOG, "--shutdown-delay-s", "0"])
        // Nothing is compiled beside what is tried.
        .args(["--prepare-runtimes", "false"])
        .env("GRISTMILL_ADMIN_TOKEN", TOKEN)
        // Ctrl-C of a terminal goes to a group. The server gets it from this process, once.
        .process_group(0);
    // Not a flag: a library that was found and cannot be used does not stop the server.
    if let Some(library) = library::find(None) {
        command.env("ORT_DYLIB_PATH", std::path::absolute(library)?);
    }
    Ok(command)
}

/// The loopback address with this port, or with a free one if another program has it.
fn address(port: u16) -> String {
    let is_free = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok();
    if !is_free {
        step(&format!("another program has port {port}, the demo takes a free one"));
    }
    format!("127.0.0.1:{}", if is_free { port } else { 0 })
}

/// Run `gristmill deploy`. What it prints is shown only if it fails.
fn deploy(manifest: &Path, admin_url: &str) -> Result<()> {
    let mut command = Command::new(own_server::program()?);
    own_server::remove_variables(&mut command);
    command
        .arg("deploy")
        .arg(manifest)
        .args(["--yes", "--message", "the demo"])
        .env("GRISTMILL_ADMIN_URL", admin_url)
        .env("GRISTMILL_ADMIN_TOKEN", TOKEN)
        .env("ACME_DEMO_KEY", ACME_KEY);
    let output = command.output().context("cannot run `gristmill deploy`")?;
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "`gristmill deploy` failed:\n{}", errors.trim_end());
    Ok(())
}

/// What people can paste.
fn commands(addresses: &Addresses, files: &Path) -> Result<String> {
    let Addresses { data: url, admin, .. } = addresses;
    let bin = own_server::program()?.parent().map(quoted).unwrap_or_default();
    let (host, grpc) = (addresses.data_authority(), addresses.grpc_authority());
    let [seven, three, ranker] =
        ["seven.png", "three.jpg", "ranker.json"].map(|name| quoted(&files.join(name)));
    let text = format!(
        "
The server is running. Try it in a browser, or see the whole server with the token {TOKEN}:

  {url}{TRY}
  {admin}/

In another terminal, let the other commands of gristmill find it:

  export PATH={bin}:$PATH
  export GRISTMILL_ADMIN_URL={admin} GRISTMILL_ADMIN_TOKEN={TOKEN}

Read a handwritten digit:

  curl --data-binary @{seven} {url}/v1/demo/infer

The same as the tenant acme, which has a key and a pipeline of its own:

  curl -H 'authorization: Bearer {ACME_KEY}' \\
    --data-binary @{three} {url}/v1/acme/infer/digits

Rank ten items:

  curl --data-binary @{ranker} {url}/v1/demo/infer/ranker

Ask as any client of the Open Inference Protocol does, over HTTP, or over gRPC at {grpc}:

  curl {url}/v2/models/ranker
  perf_analyzer -u {host} -m ranker --shape input:32 --concurrency-range 16

See what is loaded, and under recent_mixed_batches which tenants shared a batch:

  curl -H 'authorization: Bearer {TOKEN}' {admin}/admin/v1/status
"
    );
    Ok(escaped(&text))
}

//! A server for one plugin: `gristmill serve` as a child, on this machine, whose data are made anew
//! each time. Compiled code stays, so that a second start does not compile the runtimes again.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::thread;

use anyhow::{Context, Result, bail};
use gristmill_client::{Listen, ServerProcess};
use gristmill_core::Name;
use serde_json::{Value, json};
use tokio::signal::unix::{SignalKind, signal};

use crate::admin::Admin;
use crate::file_upload::HashedFile;
use crate::model::signature;
use crate::output::state_and_reason;
use crate::own_server;
use crate::plugin::build_folder::BuildFolder;
use crate::plugin::library;

/// The server's only tenant.
pub(super) const TENANT: &str = "dev";

/// The folder with compiled code, in that of a server's data, and the file in it by which the
/// server knows its own.
const COMPILED: &str = "compiled";
const KEY: &str = "key";

/// The exit code of a program that Ctrl-C has ended, as shells have it.
const ENDED_BY_SIGNAL: i32 = 130;

/// The lines of the log that are shown: the plugin's, and the server's faults.
const LOG: &str = "warn,ort=error,plugin=trace";

/// A running server. It ends when this is dropped, or when this process is told to end.
pub(super) struct Local {
    process: Arc<Mutex<ServerProcess>>,
    /// Held as long as the server uses its folder.
    _lock: File,
    admin_url: String,
    token: String,
    /// Where requests to the plugin go.
    url: String,
    models: Vec<Name>,
}

impl Local {
    /// Start it with these models.
    pub(super) fn start(
        listen: &str,
        models: &BTreeMap<Name, HashedFile>,
        library: Option<PathBuf>,
    ) -> Result<Self> {
        let (data, lock) = empty_folder()?;
        let listen = Listen { data: listen, ..Listen::FREE_PORTS };
        let mut command = own_server::command(&data, listen)?;
        // The author waits for what is compiled.
        command.args(["--log", LOG, "--prepare-runtimes", "false", "--compile-timeout-s", "600"]);
        if let Some(library) = library::find(library) {
            command.arg("--onnxruntime-library").arg(std::path::absolute(library)?);
        }
        let mut process = ServerProcess::spawn(&mut command)?;
        let addresses = process.wait_until_serving()?;
        let token = process.lines.iter().find_map(|line| line.strip_prefix("admin token "));
        let token = token.and_then(|rest| rest.split(' ').next());
        let token = token.context("the server shows no admin token")?.to_owned();
        let process = Arc::new(Mutex::new(process));
        end_with_this_process(Arc::downgrade(&process))?;
        let url = format!("{}/v1/{TENANT}/infer", addresses.data);
        let admin_url = addresses.admin;
        let names = models.keys().cloned().collect();
        let local = Self { process, _lock: lock, admin_url, token, url, models: names };
        local.put_models(models)?;
        Ok(local)
    }

    pub(super) fn url(&self) -> &str {
        &self.url
    }

    /// How it has ended, if it has.
    pub(super) fn ended(&self) -> Result<Option<ExitStatus>> {
        let mut process = self.process.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(process.child.try_wait()?)
    }

    pub(super) fn admin(&self) -> Result<Admin> {
        Admin::of_own_server(&self.admin_url, self.token.clone())
    }

    fn put_models(&self, models: &BTreeMap<Name, HashedFile>) -> Result<()> {
        let admin = self.admin()?;
        let mut changes = Vec::new();
        for (name, file) in models {
            file.upload(&admin)?;
            changes.push(json!({ "kind": "put_model", "model": name, "digest": file.digest }));
        }
        changes.push(self.tenant(None));
        let files: Vec<_> = models.values().map(|file| file.path.display().to_string()).collect();
        admin
            .post("releases?dry_run=false", &json!({ "changes": changes }))
            .with_context(|| format!("--model: {}", files.join(", ")))?;
        let status = admin.get("status")?;
        for name in &self.models {
            let model = &status["models"][name.as_str()];
            println!("{name}: {}", signature(model).unwrap_or_else(|| state_and_reason(model)));
        }
        Ok(())
    }

    /// The change of the tenant, whose default pipeline is that of the plugin.
    pub(super) fn tenant(&self, pipeline: Option<&Name>) -> Value {
        let document = json!({ "open": true, "models": self.models, "default_pipeline": pipeline });
        json!({ "kind": "put_tenant", "tenant": TENANT, "document": document })
    }
}

/// A folder for the data of a server, which no other server uses, and its lock. Of earlier data
/// only compiled code is left.
fn empty_folder() -> Result<(PathBuf, File)> {
    const MOST: usize = 64;
    let builds = BuildFolder::open()?;
    for number in 1..=MOST {
        let name = format!("dev-{number}");
        let folder = builds.path().join(&name);
        let shown = || folder.display().to_string();
        fs::create_dir_all(&folder).with_context(shown)?;
        let Some(lock) = builds.try_lock(&name)? else { continue };
        for entry in fs::read_dir(&folder).with_context(shown)? {
            let entry = entry.with_context(shown)?;
            if entry.file_name() == COMPILED {
                continue;
            }
            let remove = match entry.file_type().with_context(shown)?.is_dir() {
                true => fs::remove_dir_all,
                false => fs::remove_file,
            };
            remove(entry.path()).with_context(|| entry.path().display().to_string())?;
        }
        // The runtimes that builds have compiled. Without them the server compiles its own.
        take_compiled(&builds.runtimes(), &folder.join(COMPILED)).with_context(shown)?;
        return Ok((folder, lock));
    }
    bail!("{MOST} servers of `gristmill plugin dev` run already")
}

/// Copy compiled code to a server's folder, unless the server has it.
fn take_compiled(from: &Path, to: &Path) -> io::Result<()> {
    let Some(key) = unless_missing(fs::read(from.join(KEY)))? else { return Ok(()) };
    // Code belongs to the key that was there when it was compiled.
    if unless_missing(fs::read(to.join(KEY)))?.is_some_and(|own_key| own_key != key) {
        fs::remove_dir_all(to)?;
    }
    copy_missing(from, to)
}

/// Copy the files of a folder, and those of its folders, but for what is there already. A file that
/// a build removes meanwhile is left out.
fn copy_missing(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let (from, to) = (entry.path(), to.join(entry.file_name()));
        if entry.file_type()?.is_dir() {
            copy_missing(&from, &to)?;
        } else if !to.exists() {
            unless_missing(fs::copy(&from, &to))?;
        }
    }
    Ok(())
}

fn unless_missing<T>(done: io::Result<T>) -> io::Result<Option<T>> {
    match done {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        done => done.map(Some),
    }
}

/// End the server, and this process, when this process is told to end: Ctrl-C in a terminal reaches
/// both, but other signals reach this process alone.
fn end_with_this_process(server: Weak<Mutex<ServerProcess>>) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let (mut end, mut interrupt) = {
        let _entered = runtime.enter();
        (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?)
    };
    let ends = async move {
        tokio::select! {
            _ = end.recv() => {}
            _ = interrupt.recv() => {}
        }
    };
    thread::Builder::new().name("signals".into()).spawn(move || {
        runtime.block_on(ends);
        if let Some(server) = server.upgrade() {
            server.lock().unwrap_or_else(PoisonError::into_inner).kill();
        }
        std::process::exit(ENDED_BY_SIGNAL);
    })?;
    Ok(())
}

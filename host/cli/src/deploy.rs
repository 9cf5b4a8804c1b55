//! `gristmill deploy` and `gristmill diff`: bring a server to what a manifest says, and show what
//! that would change.
//!
//! In reading order: `manifest` reads the files, with `position` for the faults in them; `files`
//! builds and hashes what they name; `current` asks the server what it has; `plan` finds the
//! changes; `release` tries them on the server, and makes them.

mod current;
mod files;
mod manifest;
mod plan;
mod position;
mod release;

use std::path::Path;

use anyhow::{Result, bail};
use clap::{Arg, ArgMatches, Command};
use serde_json::{Value, json};

use self::current::Current;
use self::files::Files;
use self::manifest::{DEFAULT_FILE, Manifest};
use self::plan::{Plan, plan};
use self::release::{Release, Tried};
use crate::admin::{self, Admin};
use crate::args::{required, switch};
use crate::ask::ask;
use crate::exit::Exit;
use crate::oci::{self, RegistryAccess};
use crate::output::{self, Output};
use crate::release_flags;
use crate::{change, differences};

/// Maximum times that the changes are found anew because another release was made meanwhile.
const ROUNDS_MAX: usize = 5;

const MANIFEST: &str = "\
A manifest is a TOML file, or a folder with several that are read as one:

  [models.digits]
  file = \"models/digits.onnx\"           # or digest = \"sha256:...\"
  config = { max_batch_size = 32 }      # without it, the server's stays

  [tenants.acme]                        # what PUT takes for a tenant
  models = [\"digits\"]
  api_keys = [{ name = \"web\" }, { name = \"ci\", env = \"ACME_CI_KEY\" }]

  [tenants.acme.plugins.brightness]
  folder = \"plugins/brightness\"         # built first; or file = \"x.wasm\", or digest

  [tenants.acme.plugins.reader]
  file = \"oci://registry.example/acme/reader:1.2\"    # with its signatures; of a file of this
                                        # machine, signature = \"x.wasm.sig\"

  [tenants.acme.assets.prices]          # a file that plugins open, if a pipeline names it
  file = \"prices.json\"                  # or digest

  [tenants.acme.pipelines.main]         # what PUT takes for a pipeline
  pre = \"brightness\"
  model = \"digits\"
  post = \"brightness\"

Paths begin at the folder of their file. API keys are never in it: env names the variable that has \
one, and a name alone is a key that the tenant has. A tenant that has only plugins and pipelines \
here keeps its document as it is on the server.";

pub(crate) fn command() -> Command {
    with_manifest(Command::new("deploy"))
        .about("Bring a server to what a manifest says, in one release")
        .after_help(format!(
            "Examples:\n  \
             gristmill deploy                                 {DEFAULT_FILE} in this folder\n  \
             gristmill deploy production/ --context production\n  \
             gristmill deploy --yes --message \"$(git log -1 --format=%s)\"\n\n\
             It builds plugins, uploads the files that the server does not have, shows what would \
             change, asks, and makes one release. If nothing differs it makes none.\n\n\
             {MANIFEST}\n\n\
             Exit codes: 0 if the server is as the manifest says, 1 if something was refused or \
             failed, 2 for a wrong command line; with --dry-run also 2 if something differs.",
        ))
        .args([
            change::message(),
            switch("dry-run").help("Only show what would change"),
            admin::yes(),
        ])
}

pub(crate) fn diff_command() -> Command {
    with_manifest(Command::new("diff"))
        .about("Show what `gristmill deploy` would change")
        .after_help(format!(
            "Examples:\n  \
             gristmill diff\n  \
             gristmill diff production/ --context production --output json\n\n\
             It builds plugins, and uploads the files that the server does not have, because the \
             server tries them. Nothing that serves is changed.\n\n\
             Exit codes: 0 if nothing differs, 2 if something does (or for a wrong command line), \
             1 if something was refused or failed.\n\n\
             {MANIFEST}",
        ))
}

fn with_manifest(command: Command) -> Command {
    command
        .args([
            Arg::new("manifest")
                .value_name("FILE or FOLDER")
                .default_value(DEFAULT_FILE)
                .help("The manifest"),
            switch("prune").help(
                "Delete plugins, assets, pipelines and keys that the manifest's tenants have and \
                 the manifest does not name",
            ),
            release_flags::force(),
            release_flags::skip_samples(),
            release_flags::wait_all(),
        ])
        .args(oci::arguments())
        .args(admin::asking())
}

/// `gristmill diff`.
pub(crate) fn diff(matches: &ArgMatches) -> Result<Exit> {
    let deploy = Deploy::of(matches, None)?;
    let planned = deploy.find()?;
    deploy.print_differences(&planned);
    Ok(if planned.differences().is_empty() { Exit::Done } else { Exit::Differs })
}

/// `gristmill deploy`.
pub(crate) fn run(matches: &ArgMatches) -> Result<Exit> {
    if matches.get_flag("dry-run") {
        return diff(matches);
    }
    let message = matches.get_one::<String>("message").cloned();
    let deploy = Deploy::of(matches, message)?;
    let planned = deploy.find()?;
    let Some(tried) = planned.tried.as_ref().filter(|_| !planned.differences().is_empty()) else {
        deploy.print_differences(&planned);
        return Ok(Exit::Done);
    };
    deploy.admin.announce();
    eprint!("{}", differences::of_answer(&tried.answer));
    hint(&planned.plan.kept);
    if !matches.get_flag("yes") {
        ask("Make this release?")?;
    }
    let Some(made) = deploy.release(&planned.plan).make(tried)? else {
        bail!(
            "another release was made meanwhile, so nothing was changed: run the command again, \
             and it shows what differs now"
        );
    };
    deploy.output.print(deploy.document(&planned, &made), || change::serves(&made));
    Ok(Exit::Done)
}

/// What is to be deployed, and where.
struct Deploy {
    admin: Admin,
    output: Output,
    manifest: Manifest,
    files: Files,
    prune: bool,
    /// Parameters of the request for a release.
    query: String,
    message: Option<String>,
}

/// The changes, and what the server says about them.
struct Found {
    plan: Plan,
    /// None if there are no changes.
    tried: Option<Tried>,
    /// The release that serves.
    release: u64,
}

impl Found {
    fn differences(&self) -> &[Value] {
        self.tried.as_ref().map_or(&[], Tried::differences)
    }
}

impl Deploy {
    /// Read the manifest, build and hash its files.
    fn of(matches: &ArgMatches, message: Option<String>) -> Result<Self> {
        // Flags are checked before anything is built.
        let admin = Admin::of(matches)?;
        let path = required(matches, "manifest")?;
        let manifest = manifest::read(Path::new(path), &|name| std::env::var(name).ok())?;
        let on_server = current::builds(&admin, &manifest)?;
        let files = Files::of(&manifest, &on_server, &RegistryAccess::of(matches))?;
        Ok(Self {
            admin,
            output: Output::of(matches),
            manifest,
            files,
            prune: matches.get_flag("prune"),
            query: release_flags::query(matches),
            message,
        })
    }

    /// Find the changes, upload what they need, and try them on the server.
    fn find(&self) -> Result<Found> {
        for _ in 0..ROUNDS_MAX {
            let current = Current::read(&self.admin, &self.manifest)?;
            let plan = plan(&self.manifest, &self.files, &current, self.prune)?;
            let release = current.release;
            if plan.changes.is_empty() {
                return Ok(Found { plan, tried: None, release });
            }
            if let Some(tried) = self.release(&plan).try_out(release, &self.files)? {
                return Ok(Found { plan, tried: Some(tried), release });
            }
        }
        bail!("other releases are made all the time: nothing was changed; try again later")
    }

    fn release<'a>(&'a self, plan: &'a Plan) -> Release<'a> {
        let Self { admin, message, query, .. } = self;
        Release { admin, changes: &plan.changes, message: message.as_deref(), query }
    }

    fn print_differences(&self, planned: &Found) {
        let none = json!({ "release": planned.release, "dry_run": true, "differences": [] });
        let answer = planned.tried.as_ref().map_or(&none, |tried| &tried.answer);
        self.output.print(self.document(planned, answer), || match planned.differences() {
            [] => "nothing to change\n".to_owned(),
            _ => differences::of_answer(answer),
        });
        hint(&planned.plan.kept);
    }

    /// The answer of the server, with what it does not know.
    fn document(&self, planned: &Found, answer: &Value) -> Value {
        let mut document = answer.clone();
        document["kept"] = planned.plan.kept.clone().into();
        document
    }
}

/// Name the things that could be pruned.
fn hint(kept: &[String]) {
    if !kept.is_empty() {
        let kept = output::escaped(&kept.join(", "));
        eprintln!("not in the manifest, and kept (--prune deletes it): {kept}");
    }
}

//! `gristmill plugin push`: upload a plugin from this machine or from a registry. It is live when
//! the command returns.

mod pipeline;

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use bytes::Bytes;
use clap::{Arg, ArgAction, ArgMatches, Command};
use gristmill_core::{Digest, Name};
use gristmill_sandbox::is_archive;
use gristmill_state::PluginSignature;

use self::pipeline::{Pipeline, Pushed};
use super::build::build;
use super::component_file::name_of;
use super::new::REUSE_HINT;
use crate::admin::{self, Admin};
use crate::args::{option, text};
use crate::file_upload::HashedFile;
use crate::oci::{self, Reference, RegistryAccess};
use crate::progress::{Progress, bytes_text};
use crate::{change, differences, names, release_flags, signature};

pub(crate) fn command() -> Command {
    Command::new("push")
        .about("Upload a plugin, which is live in every pipeline that names it when the command returns")
        .after_help(
            "Examples:\n  \
             gristmill plugin push --tenant acme                    build and push this folder\n  \
             gristmill plugin push plugins/rust/digits --tenant acme\n  \
             gristmill plugin push digits.wasm --tenant acme --name reader\n  \
             gristmill plugin push digits.wasm --tenant acme --signature digits.wasm.sig\n  \
             gristmill plugin push oci://registry.example/acme/digits:1.2 --tenant acme\n  \
             gristmill plugin push reader/ --tenant acme --pipeline main --model digits\n  \
             gristmill plugin push --tenant acme --admin https://admin.example:8081\n\n\
             Give the token in GRISTMILL_ADMIN_TOKEN rather than with --token, because flags are \
             visible in the list of processes. The server prints the token at its first start.\n\n\
             With --pipeline the plugin and a pipeline of it are one release. If the pipeline is \
             there, it stays as it is, but for the models that --model names.\n\n\
             A version with which a pipeline would not answer its samples as expected is refused, \
             and the one before continues to serve.\n\n\
             From a registry the plugin comes with the signatures that `cosign sign --key` made. A \
             tenant whose document has plugin_signers takes only plugins that one of them signed.\n\n\
             Over http:// the token is sent unencrypted. For a server on another machine give an \
             address with https://; --ca-file names the authority of its certificate, unless the \
             system knows it.",
        )
        .args([
            Arg::new("plugin").value_name("PLUGIN").default_value(".").help(
                "The file of a plugin, a folder, which is built first, or its name in a registry \
                 (oci://REGISTRY/REPOSITORY:TAG or @sha256:...)",
            ),
            names::tenant_flag("The plugin's tenant"),
            option("name", "NAME").help("The plugin's name [default: the name of the file]"),
            option("pipeline", "NAME")
                .help("A pipeline of the plugin, which is made if it is not there"),
            option("model", "MODEL").action(ArgAction::Append).requires("pipeline").help(
                "The pipeline's model; for a handler NAME=MODEL, as its code names it, maybe \
                 several times",
            ),
            option("signature", "FILE").help(
                "A signature over the plugin's file, as `openssl dgst -sha256 -sign` makes it",
            ),
        ])
        .args(oci::arguments())
        .args([
            change::message().requires("pipeline"),
            release_flags::skip_samples(),
            release_flags::wait_all(),
        ])
        .args(admin::change_arguments())
}

pub(crate) fn run(matches: &ArgMatches) -> Result<()> {
    // All flags are checked before the build, which may take a minute.
    let admin = Admin::to_change(matches)?;
    let tenant = names::given_tenant(matches)?;
    let name = names::optional(matches, "name")?;
    let pipeline = Pipeline::of(matches)?;
    if let Some(pipeline) = &pipeline {
        pipeline.check(&admin, &tenant)?;
    }
    let given_signature = text(matches, "signature").map(|file| signature::read(Path::new(file)));
    let given_signature = given_signature.transpose()?;
    let plugin = Plugin::at(text(matches, "plugin").unwrap_or("."), matches)?;
    let name = match name {
        Some(name) => name,
        None => admin::name(&format!("{} (--name gives another)", plugin.named_by), &plugin.name)?,
    };
    let body = &plugin.body;
    let has_interpreter = is_archive(body);
    let shown = plugin.path.display();
    let failed = || format!("cannot push {shown} as {tenant}/{name}");
    let signature = match given_signature {
        Some(signature) => Some(signature),
        None => plugin.signature(&admin, &tenant)?,
    };
    if let Some(pipeline) = pipeline {
        let pushed =
            Pushed { admin: &admin, tenant: &tenant, name: &name, signature: signature.as_ref() };
        let file = HashedFile::fetched(&plugin.path, body.clone())?;
        let made = pushed.release(&file, &pipeline, matches).with_context(failed)?;
        eprint!("{}", differences::power(&made));
        let (release, pipeline) = (&made["release"], &pipeline.name);
        println!("{tenant}/{name} is live in release {release}, in pipeline {pipeline}");
    } else {
        let size = bytes_text(body.len() as u64);
        let what = format!("uploading {size}, which the server compiles (up to a minute)");
        let waiting = Progress::wait(&what);
        let query = release_flags::query(matches);
        let path = format!("tenants/{tenant}/plugins/{name}?{query}");
        let answer = admin.put_plugin(&path, body.clone(), signature.as_ref());
        let answer = answer.with_context(failed)?;
        drop(waiting);
        eprint!("{}", differences::power(&answer));
        println!("{tenant}/{name} is live in release {}", answer["release"]);
    }
    if has_interpreter {
        eprintln!("{REUSE_HINT}");
    }
    Ok(())
}

/// A plugin to be pushed.
struct Plugin {
    /// Where it is, for messages.
    path: PathBuf,
    body: Bytes,
    /// Its name, unless another is given, and what that is from.
    name: String,
    named_by: &'static str,
    /// Those that came with it.
    signatures: Vec<PluginSignature>,
}

impl Plugin {
    /// Build, read or fetch it.
    fn at(place: &str, matches: &ArgMatches) -> Result<Self> {
        if let Some(reference) = Reference::of(place)? {
            let pulled = oci::pull(&reference, &RegistryAccess::of(matches))?;
            return Ok(Self {
                path: oci::shown(&pulled.reference),
                body: pulled.file,
                name: reference.usual_name(),
                named_by: "the name of the repository",
                signatures: pulled.signatures,
            });
        }
        let place = Path::new(place);
        let path = if place.is_dir() { build(place, None)?.path } else { place.to_owned() };
        let body = std::fs::read(&path).with_context(|| path.display().to_string())?.into();
        let (name, named_by) = (name_of(&path), "the name of the file");
        Ok(Self { path, body, name, named_by, signatures: Vec::new() })
    }

    /// The signature to send, of those that came with it.
    fn signature(&self, admin: &Admin, tenant: &Name) -> Result<Option<PluginSignature>> {
        if self.signatures.is_empty() {
            return Ok(None);
        }
        let document = admin.find(&format!("tenants/{tenant}"))?.unwrap_or_default();
        let signers = signature::signers(&document);
        Ok(signature::choose(&self.signatures, &signers, Digest::of(&self.body)))
    }
}

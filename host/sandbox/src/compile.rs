//! From an uploaded file to machine code. A child process does all of it, from reading the file to
//! writing the code.
//!
//! The child answers with one file: the code, a JSON document with the properties of the component
//! that the server needs ([`Verdict`]), and the lengths of both ([`Lengths`]). The server reads
//! only this document, as data. It never parses the uploaded bytes.

mod engine_config;
mod lengths;

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use gristmill_core::Digest;
use gristmill_platform::child::{ChildLimits, ChildRunner, Job, Output, Task};
use serde::{Deserialize, Serialize};
use wasmtime::Engine;

pub(crate) use self::engine_config::{compile_config, hash_of};
use self::lengths::Lengths;
use crate::asset_sections::asset_places;
use crate::assets::AssetPlace;
use crate::capability::is_provided;
use crate::check_component::{Bounds, CheckedComponent, border_of, check_within};
use crate::init::{InitError, after_init};
use crate::language::Language;
use crate::load_error::LoadError;
use crate::mapped::code_of;
use crate::runtime::{
    Archive, CompiledRuntime, ContentPlace, Image, LoadSourcesError, Loaded, RuntimeFile,
    code_component, component_in, is_archive, is_own_import, load, read_runtime,
};
use crate::sources::sources_of;
use crate::worlds::Roles;

/// The name of the job that [`compile`] does.
pub const COMPILE_JOB: &str = "compile-plugin";

/// The longest document. It is not short, because a refusal quotes the file.
const VERDICT_BYTES_MAX: u64 = 64 << 10;

/// The maximum of machine code of one plugin, ten times that of an interpreter in WebAssembly.
const CODE_BYTES_MAX: u64 = 512 << 20;

/// The seconds of real time that a child has for each second of CPU time. On a busy machine a
/// child gets a tenth of a core.
const WALL_PER_CPU: u32 = 10;

/// The limits of a child that checks or compiles a plugin.
pub fn child_limits(cpu: Duration, memory_bytes: u64) -> ChildLimits {
    let (wall, output_bytes) = (cpu * WALL_PER_CPU, CODE_BYTES_MAX);
    ChildLimits { wall, cpu, memory_bytes, address_bytes: None, output_bytes }
}

/// Where plugins are compiled.
#[derive(Clone, Debug)]
pub enum Compiler {
    /// In a child process, within limits.
    Child {
        /// Runs the child processes of this server.
        runner: Arc<ChildRunner>,
        /// The limits of one compilation.
        limits: ChildLimits,
    },
    /// In this process, without limits. Only for trusted files: in benchmarks and in tests.
    InProcess,
}

/// The child's task, besides the file.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct CompileRequest {
    /// The digest of the file.
    pub(crate) digest: Digest,
    /// The hash of the engine that will run the code.
    pub(crate) engine: String,
    pub(crate) bounds: Bounds,
    pub(crate) kind: Kind,
}

impl CompileRequest {
    /// Whether the runtime with this digest is one of this server.
    fn has_runtime(&self, digest: Digest) -> bool {
        match &self.kind {
            Kind::Plugin(runtimes) => runtimes.iter().any(|runtime| runtime.digest == digest),
            Kind::Runtime => false,
        }
    }
}

/// What is compiled.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Kind {
    /// An uploaded file. If it is an archive of sources, it needs one of these runtimes.
    Plugin(Vec<CompiledRuntime>),
    /// The code of a runtime.
    Runtime,
}

/// The child's answer about a file.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) enum Verdict {
    Compiled(Box<About>),
    Refused(String),
    /// A fault of this host, of which the file's owner learns nothing.
    Failed(String),
    /// It needs the code of this runtime.
    Needs(Language),
}

impl Verdict {
    /// The verdict with a text that fits into an answer.
    fn bounded(self) -> Self {
        match self {
            Self::Refused(why) => Self::Refused(cut(why)),
            Self::Failed(why) => Self::Failed(cut(why)),
            Self::Compiled(_) | Self::Needs(_) => self,
        }
    }
}

/// The properties of a component that the server needs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct About {
    /// The digest of the compiled file.
    pub(crate) digest: Digest,
    /// The hash of the engine that it was compiled for.
    pub(crate) engine: String,
    pub(crate) imports: Vec<String>,
    pub(crate) pre: bool,
    pub(crate) post: bool,
    #[serde(default)]
    pub(crate) handle: bool,
    /// The digest of its sources, if it says so.
    #[serde(default)]
    pub(crate) sources: Option<Digest>,
    /// The runtime that it was loaded into, for an archive of sources.
    #[serde(default)]
    pub(crate) runtime: Option<Digest>,
    /// The memory that an instance begins with, in bytes, if a runtime has its code.
    #[serde(default)]
    pub(crate) memory_bytes: Option<u64>,
    /// Where the content of this memory stands in the code.
    #[serde(default)]
    pub(crate) content: Option<ContentPlace>,
    /// Where the files that it brings stand in the uploaded file.
    #[serde(default)]
    pub(crate) assets: Vec<AssetPlace>,
}

impl About {
    pub(crate) fn roles(&self) -> Roles {
        Roles { pre: self.pre, post: self.post, handle: self.handle }
    }
}

/// The child's side: compile the task's file and write the answer.
///
/// # Errors
/// Only faults of this host. A file that is refused is an answer.
pub fn compile(task: &Task, out: &mut impl Write) -> Result<(), LoadError> {
    let request: CompileRequest =
        serde_json::from_slice(&task.document).map_err(io::Error::other)?;
    let (code, verdict) = compile_file(&request, &task.file)?;
    write_answer(&code, &verdict, out)
}

pub(crate) fn write_answer(
    code: &[u8],
    verdict: &Verdict,
    out: &mut impl Write,
) -> Result<(), LoadError> {
    let verdict = serde_json::to_vec(verdict).map_err(io::Error::other)?;
    let lengths = Lengths { code: code.len() as u64, verdict: verdict.len() as u64 };
    out.write_all(code)?;
    out.write_all(&verdict)?;
    out.write_all(&lengths.to_bytes())?;
    Ok(out.flush()?)
}

fn compile_file(request: &CompileRequest, file: &[u8]) -> Result<(Vec<u8>, Verdict), LoadError> {
    let mut config = compile_config();
    // Uses one core, at low priority: the other cores serve requests.
    config.parallel_compilation(false);
    let engine = Engine::new(&config).map_err(LoadError::Compile)?;
    let child_engine = hash_of(&engine);
    if child_engine != request.engine {
        let why = format!(
            "the child compiles for engine {child_engine}, the server is {}",
            request.engine
        );
        return Err(io::Error::other(why).into());
    }
    let made = match &request.kind {
        Kind::Runtime => runtime_code(file),
        Kind::Plugin(runtimes) if is_archive(file) => from_sources(&engine, runtimes, file),
        Kind::Plugin(_) => from_component(&engine, &request.bounds, file),
    };
    let compiled = made.and_then(|made| {
        let code = engine.precompile_component(&made.component);
        let refused = |error| Verdict::Refused(format!("compilation failed: {error:#}"));
        Ok((code.map_err(refused)?, made))
    });
    let (code, made) = match compiled {
        Ok(compiled) => compiled,
        Err(verdict) => return Ok((Vec::new(), verdict.bounded())),
    };
    let CompileRequest { digest, engine, .. } = request;
    let (digest, engine) = (*digest, engine.clone());
    let MadeComponent { imports, roles, sources, runtime, memory_bytes, image, assets, .. } = made;
    let Roles { pre, post, handle } = roles.unwrap_or_default();
    let content = image.place_in(&code);
    let about = About {
        digest,
        engine,
        imports,
        pre,
        post,
        handle,
        sources,
        runtime,
        memory_bytes,
        content,
        assets,
    };
    Ok((code, Verdict::Compiled(Box::new(about))))
}

/// The component that is compiled, and what the server has to know of it.
#[derive(Default)]
struct MadeComponent {
    component: Vec<u8>,
    imports: Vec<String>,
    roles: Option<Roles>,
    sources: Option<Digest>,
    runtime: Option<Digest>,
    memory_bytes: Option<u64>,
    image: Image,
    assets: Vec<AssetPlace>,
}

fn from_component(engine: &Engine, bounds: &Bounds, file: &[u8]) -> Result<MadeComponent, Verdict> {
    let checked =
        check_within(file, bounds).map_err(|error| Verdict::Refused(error.to_string()))?;
    let has_init = checked.has_init();
    let CheckedComponent { mut component, imports, roles, .. } = checked;
    if has_init {
        component = after_init(engine, &component).map_err(|error| match error {
            InitError::Host(error) => failed(error),
            error => Verdict::Refused(error.to_string()),
        })?;
    }
    let (roles, sources, assets) = (Some(roles), sources_of(file), places_of(file)?);
    Ok(MadeComponent { component, imports, roles, sources, assets, ..MadeComponent::default() })
}

fn from_sources(
    engine: &Engine,
    runtimes: &[CompiledRuntime],
    file: &[u8],
) -> Result<MadeComponent, Verdict> {
    let archive = Archive::read(file).map_err(|error| Verdict::Refused(error.to_string()))?;
    let assets = places_of(file)?;
    let language = archive.manifest.language;
    let runtime = runtimes.iter().find(|runtime| runtime.language == language);
    let Some(CompiledRuntime { digest, file, code: Some(code), .. }) = runtime else {
        return Err(Verdict::Needs(language));
    };
    let runtime = read_runtime(file, *digest).and_then(|file| component_in(file.into()));
    let runtime = runtime.and_then(|file| RuntimeFile::read(file.into_owned())).map_err(failed)?;
    let code = code_of(engine, code).map_err(failed)?;
    let loaded = load(engine, runtime, &code, archive).map_err(|error| match error {
        LoadSourcesError::Host(_) | LoadSourcesError::Runtime(_) => failed(error),
        error => Verdict::Refused(error.to_string()),
    });
    let Loaded { component, roles, memory_bytes, image } = loaded?;
    let (mut imports, _) = border_of(&component).map_err(failed)?;
    imports.retain(|import| !is_own_import(import));
    let (roles, runtime, memory_bytes) = (Some(roles), Some(*digest), Some(memory_bytes));
    let made = MadeComponent {
        component,
        imports,
        roles,
        runtime,
        memory_bytes,
        image,
        assets,
        ..MadeComponent::default()
    };
    Ok(made)
}

fn places_of(file: &[u8]) -> Result<Vec<AssetPlace>, Verdict> {
    asset_places(file).map_err(|error| Verdict::Refused(error.to_string()))
}

fn runtime_code(file: &[u8]) -> Result<MadeComponent, Verdict> {
    let file = component_in(file.into()).map_err(failed)?;
    let component = code_component(&file).map_err(failed)?;
    Ok(MadeComponent { component, ..MadeComponent::default() })
}

fn failed(error: impl std::fmt::Display) -> Verdict {
    Verdict::Failed(error.to_string())
}

fn cut(mut text: String) -> String {
    const MAX: usize = 8 << 10;
    if text.len() > MAX {
        text.truncate(text.floor_char_boundary(MAX));
        text.push_str(" [cut]");
    }
    text
}

impl Compiler {
    /// Write the answer about `file` into `out`.
    pub(crate) async fn run(
        &self,
        request: CompileRequest,
        file: Bytes,
        out: File,
    ) -> Result<(), LoadError> {
        let Self::Child { runner, limits } = self else {
            let compiling = tokio::task::spawn_blocking(move || {
                let (code, verdict) = compile_file(&request, &file)?;
                write_answer(&code, &verdict, &mut &out)
            });
            return compiling.await.map_err(io::Error::other)?;
        };
        let job = Job {
            job: COMPILE_JOB,
            subject: request.digest.to_string(),
            document: serde_json::to_vec(&request).map_err(io::Error::other)?,
            file,
            output: Output::File(out),
            limits: limits.clone(),
        };
        runner.run(job).await?;
        Ok(())
    }
}

/// Read the answer in `file`, which ends `after` bytes before the file's end, and check all of it
/// against what was `wanted`.
pub(crate) fn read_answer(
    mut file: &File,
    after: u64,
    wanted: &CompileRequest,
) -> Result<About, LoadError> {
    let wrong = |why: &str| LoadError::from(io::Error::other(why.to_owned()));
    let end = file.metadata()?.len().checked_sub(after + Lengths::BYTES);
    let end = end.ok_or_else(|| wrong("compiled code is too short"))?;
    let mut lengths = [0; Lengths::BYTES as usize];
    file.seek(SeekFrom::Start(end))?;
    file.read_exact(&mut lengths)?;
    let Lengths { code, verdict } = Lengths::from_bytes(lengths);
    if code.checked_add(verdict) != Some(end) || verdict > VERDICT_BYTES_MAX {
        return Err(wrong("compiled code does not have the lengths that its header says"));
    }
    file.seek(SeekFrom::Start(code))?;
    let mut text = Vec::new();
    file.take(verdict).read_to_end(&mut text)?;
    match serde_json::from_slice(&text).map_err(io::Error::other)? {
        Verdict::Refused(why) => Err(LoadError::Refused(why)),
        Verdict::Failed(why) => Err(io::Error::other(why).into()),
        Verdict::Needs(language) => Err(LoadError::NeedsRuntime(language)),
        Verdict::Compiled(about) => {
            if about.digest != wanted.digest || about.engine != wanted.engine {
                return Err(wrong("compiled code is of another component or for another engine"));
            }
            let is_known = |import: &String| is_provided(import);
            let has_role = about.roles().has_one() || wanted.kind == Kind::Runtime;
            if !about.imports.iter().all(is_known) || !has_role {
                return Err(wrong("compiled code names imports or exports that no plugin has"));
            }
            if !about.runtime.is_none_or(|runtime| wanted.has_runtime(runtime)) {
                return Err(LoadError::OtherRuntime);
            }
            Ok(*about)
        }
    }
}

//! The runtimes of this server, and their code once somebody needs it.

use std::borrow::Cow;
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use gristmill_core::Digest;
use ruzstd::decoding::StreamingDecoder;
use serde::{Deserialize, Serialize};
use tokio::sync::OnceCell;
use wasmtime::component::{Component, Linker};

use crate::capability::StoreData;
use crate::language::Language;

/// The runtimes whose files are in one folder. A file is read when a plugin needs a runtime: it is
/// large, and most servers and tools need none.
pub(crate) struct InstalledRuntimes {
    folder: Option<PathBuf>,
    found: OnceLock<Vec<InstalledRuntime>>,
}

/// A runtime whose code is compiled.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct CompiledRuntime {
    pub(crate) language: Language,
    /// The digest of its file.
    pub(crate) digest: Digest,
    /// Its file.
    pub(crate) file: PathBuf,
    /// The file with its compiled code. None before a plugin needed it.
    pub(crate) code: Option<PathBuf>,
}

/// A runtime with a file.
pub(crate) struct InstalledRuntime {
    pub(crate) language: Language,
    /// The digest that its file had when it was read first.
    pub(crate) digest: Digest,
    pub(crate) file: PathBuf,
    linked: OnceCell<Arc<LinkedRuntime>>,
    /// Whether its code could not be loaded the last time.
    failed: AtomicBool,
}

/// A runtime as one server has it. The digest of its file is its version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RuntimeVersion {
    /// The language.
    pub language: Language,
    /// The digest of its file.
    pub digest: Digest,
}

/// A runtime and its state, for the status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RuntimeStatus {
    /// The runtime.
    pub version: RuntimeVersion,
    /// Whether its code is loaded.
    pub is_loaded: bool,
    /// Whether its code could not be loaded the last time. The log says why.
    pub has_failed: bool,
}

/// A runtime whose code is loaded.
pub(crate) struct LinkedRuntime {
    pub(crate) version: RuntimeVersion,
    /// The host's functions and the runtime's code.
    pub(crate) linker: Linker<StoreData>,
    /// The component that exports the code, for profiles.
    pub(crate) code: Component,
    /// The file with its compiled code.
    pub(crate) path: PathBuf,
}

impl InstalledRuntimes {
    /// Those in `folder`: a file for each language.
    pub(crate) fn in_folder(folder: Option<&Path>) -> io::Result<Self> {
        // A child that reads a file has another working directory.
        let folder = folder.map(std::path::absolute).transpose()?;
        Ok(Self { folder, found: OnceLock::new() })
    }

    /// All of them. The first call reads their files.
    pub(crate) fn all(&self) -> io::Result<&[InstalledRuntime]> {
        if let Some(found) = self.found.get() {
            return Ok(found);
        }
        let mut found = Vec::new();
        for language in Language::ALL {
            let Some(folder) = &self.folder else { break };
            let files = language.runtime_files().map(|name| folder.join(name));
            for file in files {
                let content = match fs::read(&file) {
                    Ok(content) => content,
                    Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                    Err(error) => return Err(error),
                };
                let digest = Digest::of(&content);
                let (linked, failed) = (OnceCell::new(), AtomicBool::new(false));
                found.push(InstalledRuntime { language, digest, file, linked, failed });
                break;
            }
        }
        Ok(self.found.get_or_init(|| found))
    }

    pub(crate) fn of(&self, language: Language) -> io::Result<Option<&InstalledRuntime>> {
        Ok(self.all()?.iter().find(|runtime| runtime.language == language))
    }

    /// Whether the compiled code of a runtime is kept under this digest.
    pub(crate) fn has_code(&self, digest: Digest) -> io::Result<bool> {
        Ok(self.all()?.iter().any(|runtime| runtime.code_digest() == digest))
    }

    /// The runtime whose file has this digest.
    pub(crate) fn with_digest(&self, digest: Digest) -> io::Result<Option<&InstalledRuntime>> {
        Ok(self.all()?.iter().find(|runtime| runtime.digest == digest))
    }

    /// Those whose files were read, for the status. Never waits.
    pub(crate) fn statuses(&self) -> Vec<RuntimeStatus> {
        let status = |runtime: &InstalledRuntime| RuntimeStatus {
            version: runtime.version(),
            is_loaded: runtime.linked.get().is_some(),
            has_failed: runtime.failed.load(Ordering::Relaxed),
        };
        self.found.get().into_iter().flatten().map(status).collect()
    }

    /// All of them, for the child that loads sources.
    pub(crate) fn compiled(&self) -> io::Result<Vec<CompiledRuntime>> {
        let compiled = |runtime: &InstalledRuntime| CompiledRuntime {
            language: runtime.language,
            digest: runtime.digest,
            file: runtime.file.clone(),
            code: runtime.linked.get().map(|linked| linked.path.clone()),
        };
        Ok(self.all()?.iter().map(compiled).collect())
    }
}

/// The runtime's file, as it lies there. It must be the one whose digest is known: what is compiled
/// and loaded is kept under that digest.
pub(crate) fn read_runtime(file: &Path, digest: Digest) -> io::Result<Vec<u8>> {
    let content = fs::read(file)?;
    if Digest::of(&content) != digest {
        let why = format!("{} was changed while the server ran", file.display());
        return Err(io::Error::other(why));
    }
    Ok(content)
}

/// The component in a runtime's file, which a package compresses. Only what compiles asks for it:
/// a child, which ends. So the server never holds the component, and does not wait for it either.
pub(crate) fn component_in(file: Cow<'_, [u8]>) -> io::Result<Cow<'_, [u8]>> {
    /// What a file in Zstandard's format begins with.
    const ZSTANDARD: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
    if !file.starts_with(&ZSTANDARD) {
        return Ok(file);
    }
    let mut component = Vec::new();
    let mut decoder = StreamingDecoder::new(&*file).map_err(io::Error::other)?;
    decoder.read_to_end(&mut component)?;
    Ok(component.into())
}

impl InstalledRuntime {
    /// The digest under which its compiled code is kept. No file that a tenant uploads has it. The
    /// number changes with the form of the code (`parts`).
    pub(crate) fn code_digest(&self) -> Digest {
        Digest::of(format!("gristmill runtime code 1 {}", self.digest).as_bytes())
    }

    pub(crate) fn version(&self) -> RuntimeVersion {
        RuntimeVersion { language: self.language, digest: self.digest }
    }

    /// Its loaded code. The first caller loads it.
    pub(crate) async fn linked<E>(
        &self,
        load: impl Future<Output = Result<LinkedRuntime, E>>,
    ) -> Result<Arc<LinkedRuntime>, E> {
        let load = async { load.await.map(Arc::new) };
        let linked = self.linked.get_or_try_init(|| load).await.cloned();
        self.failed.store(linked.is_err(), Ordering::Relaxed);
        linked
    }
}

#[cfg(test)]
mod tests {
    use ruzstd::encoding::{CompressionLevel, compress_to_vec};

    use super::*;

    #[test]
    fn a_file_that_a_package_compressed_is_found_and_has_the_same_component() {
        let folder = tempfile::tempdir().unwrap();
        let component = b"\0asm and more".repeat(10_000);
        let packed = compress_to_vec(&*component, CompressionLevel::Fastest);
        fs::write(folder.path().join("python.wasm.zst"), &packed).unwrap();
        let runtimes = InstalledRuntimes::in_folder(Some(folder.path())).unwrap();
        assert!(runtimes.of(Language::JavaScript).unwrap().is_none());
        let runtime = runtimes.of(Language::Python).unwrap().unwrap();
        let read = read_runtime(&runtime.file, runtime.digest).unwrap();
        assert_eq!(read, packed);
        assert_eq!(*component_in(read.into()).unwrap(), component);
        assert_eq!(*component_in(Cow::Borrowed(&component)).unwrap(), component);
        component_in(Cow::Borrowed(&packed[..packed.len() / 2])).unwrap_err();

        // What a build of one's own made is taken first.
        fs::write(folder.path().join("python.wasm"), &component).unwrap();
        let runtimes = InstalledRuntimes::in_folder(Some(folder.path())).unwrap();
        let runtime = runtimes.of(Language::Python).unwrap().unwrap();
        assert_eq!(read_runtime(&runtime.file, runtime.digest).unwrap(), component);
    }
}

//! Compiled code on disk: a file of the cache, damaged in any way.
//!
//! What must hold: a file that is not byte for byte the one that the host wrote is never loaded.
//! The plugin is compiled anew then, and the file is whole again. The one way to be believed is a
//! right checksum, for which the target reads the cache's key; then the document behind the code
//! decides, and it must name the component and the engine that were asked for.
//!
//! The first byte chooses. If it is even, the others are patches of five bytes: three for the
//! place, one for the kind, one value. If it is odd, the others take the document's place. The code
//! itself is never changed under a right checksum: it would run.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use gristmill_core::ErrorCode;
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::guest;
use super::sandboxed::Sandboxed;

/// The end of a file: the length of the document, the length of the code, the checksum.
const LENGTHS_BYTES: usize = 16;
const CHECKSUM_BYTES: usize = 32;

/// The engine writes its own hash into the document, and the target into these words.
const DIGEST_WORD: &str = "DIGEST";
const ENGINE_WORD: &str = "ENGINE";

/// A plugin's file, and the file in the cache that the host made of it.
pub struct Cached {
    sandbox: Sandboxed,
    plugin: Vec<u8>,
    path: PathBuf,
    whole: Vec<u8>,
    /// The host's file of another plugin.
    other: Vec<u8>,
    key: [u8; 32],
}

/// The target.
pub fn run(bytes: &[u8]) {
    static CACHED: OnceLock<Cached> = OnceLock::new();
    CACHED.get_or_init(Cached::compiled).run(bytes);
}

impl Cached {
    /// Compile the plugin, and another one.
    pub fn compiled() -> Self {
        let sandbox = Sandboxed::new();
        let plugin = guest::smallest_file();
        // The same plugin under another digest: a custom section that says nothing.
        let other = [&plugin[..], &[0, 2, 1, b'x']].concat();
        sandbox.load(&other).expect("a plugin");
        let other_path = files_in(sandbox.directory()).pop().expect("a file of the cache");
        let other = fs::read(&other_path).expect("a file of the cache");
        sandbox.load(&plugin).expect("a plugin");
        let path = files_in(sandbox.directory()).into_iter().find(|path| *path != other_path);
        let path = path.expect("a file of the cache");
        let key = fs::read(sandbox.directory().join("key")).expect("the key");
        Self {
            whole: fs::read(&path).expect("a file of the cache"),
            key: key.try_into().expect("a key of 32 bytes"),
            sandbox,
            plugin,
            path,
            other,
        }
    }

    /// Change the file as the bytes say, and load the plugin.
    pub fn run(&self, bytes: &[u8]) {
        let Some((how, rest)) = bytes.split_first() else { return };
        if how.is_multiple_of(2) {
            self.put(&self.patched(rest));
            self.assert_loads_whole();
        } else if let Some((flags, document)) = rest.split_first() {
            self.document_is_believed_only_if_it_fits(document, flags.is_multiple_of(2));
        }
    }

    /// Replace the file, as the host does: a loaded plugin may still use the one before.
    fn put(&self, bytes: &[u8]) {
        let aside = self.path.with_extension("aside");
        fs::write(&aside, bytes).expect("a file beside it");
        fs::rename(&aside, &self.path).expect("its name");
    }

    /// The file after these patches.
    fn patched(&self, patches: &[u8]) -> Vec<u8> {
        let mut bytes = self.whole.clone();
        for patch in patches.as_chunks::<5>().0 {
            let [first, second, third, kind, value] = *patch;
            let place = u32::from_le_bytes([first, second, third, 0]) as usize;
            if bytes.is_empty() {
                break;
            }
            let at = place % bytes.len();
            // Counted from the end, where the lengths and the checksum are.
            let near_end = bytes.len() - 1 - at.min(255).min(bytes.len() - 1);
            match kind % 8 {
                0 => bytes[at] ^= value,
                1 => bytes[near_end] ^= value,
                2 => bytes.truncate(at),
                3 => bytes.insert(near_end, value),
                4 => drop(bytes.remove(near_end)),
                5 => bytes.iter_mut().skip(at).take(64 << (value % 8)).for_each(|byte| *byte = 0),
                6 => bytes.extend_from_slice(&self.other[at.min(self.other.len())..]),
                _ => bytes.clone_from(&self.other),
            }
        }
        bytes
    }

    /// Fails unless the plugin is loaded and its file is the one that the host wrote.
    #[track_caller]
    fn assert_loads_whole(&self) {
        let loaded = self.sandbox.load(&self.plugin);
        assert!(loaded.is_ok(), "a damaged file of the cache lost the plugin");
        let after = fs::read(&self.path).expect("a file of the cache");
        assert!(after == self.whole, "a damaged file of the cache was believed");
    }

    fn document_is_believed_only_if_it_fits(&self, document: &[u8], has_right_lengths: bool) {
        let code = self.code();
        let document = self.with_own_names(document);
        let mut file = [code, &document].concat();
        if has_right_lengths {
            file.extend((document.len() as u64).to_le_bytes());
            file.extend((code.len() as u64).to_le_bytes());
        }
        file.extend(hmac(&self.key, &file));
        self.put(&file);
        let loaded = self.sandbox.load(&self.plugin);
        let after = fs::read(&self.path).expect("a file of the cache");
        if after == self.whole {
            assert!(loaded.is_ok(), "a file of the cache lost the plugin");
            return;
        }
        assert!(after == file, "the cache holds a file that nobody wrote");
        // It was believed. Where it says what the component lacks, the plugin is refused.
        if let Err(error) = loaded {
            assert_eq!(error.code(), ErrorCode::InvalidPlugin, "{}", error.in_full());
        }
        let believed: Value = serde_json::from_slice(&document).unwrap_or_default();
        let (believed, own_document) = (&believed["Compiled"], self.document());
        for name in ["digest", "engine"] {
            assert_eq!(
                believed[name], own_document["Compiled"][name],
                "a file of another {name} was believed"
            );
        }
    }

    /// The machine code in the file.
    fn code(&self) -> &[u8] {
        let lengths = self.whole.len() - CHECKSUM_BYTES - LENGTHS_BYTES;
        let length = self.whole[lengths..][8..16].try_into().expect("eight bytes");
        &self.whole[..u64::from_le_bytes(length) as usize]
    }

    /// The host's own document.
    fn document(&self) -> Value {
        let end = self.whole.len() - CHECKSUM_BYTES - LENGTHS_BYTES;
        serde_json::from_slice(&self.whole[self.code().len()..end]).expect("a document")
    }

    /// The bytes, with the names of this component and this engine in place of the words for them.
    fn with_own_names(&self, document: &[u8]) -> Vec<u8> {
        let own_document = self.document();
        let Ok(text) = std::str::from_utf8(document) else { return document.to_vec() };
        let name =
            |name: &str| own_document["Compiled"][name].as_str().unwrap_or_default().to_owned();
        let text = text.replace(DIGEST_WORD, &name("digest"));
        text.replace(ENGINE_WORD, &name("engine")).into_bytes()
    }
}

/// The cached files, in the folders of engines.
fn files_in(directory: &Path) -> Vec<PathBuf> {
    let entries = |path: &Path| fs::read_dir(path).into_iter().flatten().flatten();
    let engines = entries(directory).map(|entry| entry.path()).filter(|path| path.is_dir());
    let files = engines.flat_map(|engine| entries(&engine).collect::<Vec<_>>());
    let files = files.map(|entry| entry.path());
    files.filter(|path| path.extension().is_some_and(|end| end == "code")).collect()
}

/// HMAC-SHA-256 (RFC 2104).
fn hmac(key: &[u8; 32], message: &[u8]) -> [u8; 32] {
    let pad = |with: u8| {
        let mut block = [with; 64];
        block.iter_mut().zip(key).for_each(|(byte, key)| *byte ^= key);
        block
    };
    let inner = Sha256::new().chain_update(pad(0x36)).chain_update(message).finalize();
    Sha256::new().chain_update(pad(0x5c)).chain_update(inner).finalize().into()
}

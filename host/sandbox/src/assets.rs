//! The files that a call may read: those of its plugin, and those that its pipeline names.
//!
//! Refuses to know where a file came from. Its bytes are held once, however many calls read them.
//! The tokenizer or the table that it is belongs to an owner: others with the same file read it for
//! themselves, so that nobody pays or waits for another one, or can tell who else has it.
//!
//! A plugin's own files are in the uploaded file (`asset_sections`): the child that compiles it
//! says where ([`AssetPlace`]). The server parses nothing: it checks the places, and copies the
//! bytes.

mod parsed;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Weak};

use bytes::Bytes;
use gristmill_core::{ByteBudget, HeldBytes};
use gristmill_tables::{Table, TableError};
use gristmill_text::{TextError, Tokenizer};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use tokio::sync::OnceCell;

pub(crate) use self::parsed::Parsed;
use crate::load_error::ComponentError;

/// Maximum files that a plugin brings, and that a pipeline names.
pub const ASSETS_MAX: usize = 256;

/// Maximum bytes of all files that a plugin brings.
const PLUGIN_ASSETS_BYTES_MAX: u64 = 64 << 20;

/// Maximum bytes of a file's name.
const NAME_BYTES_MAX: usize = 128;

/// Maximum names of files in the text of an error.
const SHOWN_MAX: usize = 16;

/// Files by the names under which a plugin opens them.
#[derive(Clone, Debug, Default)]
pub struct Assets(Arc<BTreeMap<Box<str>, File>>);

/// A file, and its forms for those who have it under this name.
#[derive(Clone, Debug)]
struct File {
    asset: Arc<Asset>,
    forms: Arc<FileForms>,
}

impl Assets {
    /// The file of this name.
    pub fn get(&self, name: &str) -> Option<&Arc<Asset>> {
        self.0.get(name).map(|file| &file.asset)
    }

    /// The forms of the file of this name.
    pub(crate) fn forms(&self, name: &str) -> Option<&Arc<FileForms>> {
        self.0.get(name).map(|file| &file.forms)
    }

    /// These files as those of an owner, whose forms count against this budget. All files of an
    /// owner with the same bytes share their forms, which are let go with the last of them.
    #[must_use]
    pub fn of_owner(&self, owner: &Arc<ByteBudget>) -> Self {
        let mut files = BTreeMap::clone(&self.0);
        for file in files.values_mut() {
            file.forms = file.asset.forms_of(owner);
        }
        Self(Arc::new(files))
    }

    /// All files.
    pub fn files(&self) -> impl Iterator<Item = &Arc<Asset>> {
        self.0.values().map(|file| &file.asset)
    }

    /// These files, and those of `others` whose names these do not have.
    pub fn over(&self, others: &Self) -> Self {
        match (self.0.is_empty(), others.0.is_empty()) {
            (true, _) => others.clone(),
            (_, true) => self.clone(),
            (false, false) => {
                let mut all = BTreeMap::clone(&others.0);
                all.extend(self.0.iter().map(|(name, file)| (name.clone(), file.clone())));
                Self(Arc::new(all))
            }
        }
    }

    /// The same files, each as [`Asset::held`] with what `hold` returns for it.
    ///
    /// # Errors
    /// `hold` refuses a file.
    pub fn held_by<E>(&self, hold: impl Fn(&Asset) -> Result<HeldBytes, E>) -> Result<Self, E> {
        let files = self.0.iter();
        let held = files.map(|(name, file)| {
            hold(&file.asset).map(|held| (name.clone(), Arc::new(file.asset.held(held))))
        });
        held.collect()
    }

    /// Why there is no file of this name, and what would add one.
    pub(crate) fn not_found(&self, name: &str) -> String {
        let name: String = name.chars().take(NAME_BYTES_MAX).collect();
        let names: Vec<_> = self.0.keys().take(SHOWN_MAX).map(|name| &**name).collect();
        let more = match self.0.len().saturating_sub(SHOWN_MAX) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let there_are = match names.is_empty() {
            true => "there are none".to_owned(),
            false => format!("there are {}{more}", names.join(", ")),
        };
        format!(
            "no asset {name:?}: {there_are}; put a file into the folder assets/ of the plugin and \
             build it again, or name an asset of the tenant in the pipeline's document, as in \
             \"assets\": {{{name:?}: \"NAME\"}}"
        )
    }
}

impl FromIterator<(Box<str>, Arc<Asset>)> for Assets {
    fn from_iter<I: IntoIterator<Item = (Box<str>, Arc<Asset>)>>(files: I) -> Self {
        let file = |(name, asset): (Box<str>, Arc<Asset>)| {
            let forms = FileForms::new(asset.bytes.clone(), None).into();
            (name, File { asset, forms })
        };
        Self(Arc::new(files.into_iter().map(file).collect()))
    }
}

/// One version of a file.
#[derive(Debug)]
pub struct Asset {
    bytes: Bytes,
    /// Those of each owner.
    forms: Mutex<Vec<(Arc<ByteBudget>, Weak<FileForms>)>>,
}

/// What a file is for its owner. It is read as each form once, when the first call asks.
#[derive(Debug)]
pub(crate) struct FileForms {
    pub(crate) bytes: Bytes,
    /// None: a form counts as that of the call which reads it.
    pub(crate) owner: Option<Arc<ByteBudget>>,
    pub(crate) tokenizer: FileForm<Tokenizer, TextError>,
    pub(crate) table: FileForm<Table, TableError>,
}

/// A form of a file, or why it does not have it. Empty until a call asks.
pub(crate) type FileForm<T, E> = OnceCell<Result<Arc<Parsed<T>>, E>>;

impl Asset {
    /// The file with these bytes.
    pub fn new(bytes: Bytes) -> Self {
        Self { bytes, forms: Mutex::default() }
    }

    /// Its bytes.
    pub fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    /// The same file, whose bytes count as `held` until nothing reads them as those of this one.
    #[must_use]
    pub fn held(self: &Arc<Self>, held: HeldBytes) -> Self {
        struct Owner {
            file: Arc<Asset>,
            _held: HeldBytes,
        }
        impl AsRef<[u8]> for Owner {
            fn as_ref(&self) -> &[u8] {
                self.file.bytes()
            }
        }
        Self::new(Bytes::from_owner(Owner { file: self.clone(), _held: held }))
    }

    /// Its forms for this owner.
    fn forms_of(&self, owner: &Arc<ByteBudget>) -> Arc<FileForms> {
        let mut all = self.forms.lock();
        all.retain(|(_, forms)| forms.strong_count() > 0);
        // Only this owner's: to upgrade another one's could be to drop it here.
        let mut of_owner = all.iter().filter(|(other, _)| Arc::ptr_eq(other, owner));
        if let Some(forms) = of_owner.find_map(|(_, forms)| forms.upgrade()) {
            return forms;
        }
        let forms = Arc::new(FileForms::new(self.bytes.clone(), Some(owner.clone())));
        all.push((owner.clone(), Arc::downgrade(&forms)));
        forms
    }
}

impl FileForms {
    fn new(bytes: Bytes, owner: Option<Arc<ByteBudget>>) -> Self {
        Self { bytes, owner, tokenizer: OnceCell::new(), table: OnceCell::new() }
    }
}

/// Where a file of a plugin stands in the uploaded file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct AssetPlace {
    pub(crate) name: String,
    /// Its first byte.
    pub(crate) at: u64,
    pub(crate) bytes: u64,
}

/// What is wrong with the name of a file, if something is: "must be 1 to 128 ..".
pub fn asset_name_fault(name: &str) -> Option<String> {
    let is_known = |byte: u8| byte.is_ascii_alphanumeric() || b"._-/".contains(&byte);
    let is_plain = name.split('/').all(|part| !matches!(part, "" | "." | ".."));
    let fits = name.len() <= NAME_BYTES_MAX && name.bytes().all(is_known) && is_plain;
    (!fits).then(|| {
        format!(
            "must be 1 to {NAME_BYTES_MAX} of A-Z, a-z, 0-9, '.', '_', '-' and '/', without an \
             empty part, `.` and `..`"
        )
    })
}

/// The files that a plugin brings, of which each one fits beside those before it.
#[derive(Default)]
struct Brought {
    names: BTreeSet<String>,
    bytes: u64,
}

impl Brought {
    /// Add one more file, if its name, its size and the number of files fit.
    ///
    /// # Errors
    /// Why it does not fit.
    fn add(&mut self, place: &AssetPlace) -> Result<(), String> {
        if self.names.len() == ASSETS_MAX {
            return Err(format!("a plugin has at most {ASSETS_MAX} assets"));
        }
        if let Some(fault) = asset_name_fault(&place.name) {
            return Err(format!("its name {fault}"));
        }
        if self.names.contains(&place.name) {
            return Err("it is there twice".into());
        }
        let bytes = self.bytes.saturating_add(place.bytes);
        if bytes > PLUGIN_ASSETS_BYTES_MAX {
            return Err(format!(
                "with it the plugin's assets have more than {PLUGIN_ASSETS_BYTES_MAX} bytes: \
                 give a larger file to the tenant, with `gristmill asset push`"
            ));
        }
        self.names.insert(place.name.clone());
        self.bytes = bytes;
        Ok(())
    }
}

/// Check the files that a plugin brings: their number, their names and their sizes.
///
/// # Errors
/// [`ComponentError::Asset`] names the file.
pub(crate) fn check_places(places: &[AssetPlace]) -> Result<(), ComponentError> {
    let mut brought = Brought::default();
    places.iter().try_for_each(|place| {
        brought.add(place).map_err(|why| {
            let name = place.name.chars().take(NAME_BYTES_MAX).collect();
            ComponentError::Asset { name, why }
        })
    })
}

/// The files that [`check_places`] allows together, without those that it would refuse.
pub(crate) fn fitting(mut places: Vec<AssetPlace>) -> Vec<AssetPlace> {
    let mut brought = Brought::default();
    places.retain(|place| brought.add(place).is_ok());
    places
}

/// The files of a plugin. Their bytes are copied, so that the uploaded file need not stay.
///
/// # Errors
/// The file does not have them there. The child checked what else could be wrong.
pub(crate) fn assets_in(file: &Bytes, places: &[AssetPlace]) -> Result<Assets, ComponentError> {
    check_places(places)?;
    let asset = |place: &AssetPlace| -> Result<(Box<str>, Arc<Asset>), ComponentError> {
        let range = usize::try_from(place.at).ok().zip(usize::try_from(place.bytes).ok());
        let bytes = range.and_then(|(at, bytes)| file.get(at..at.checked_add(bytes)?));
        let missing = || ComponentError::Asset {
            name: place.name.clone(),
            why: "the file does not have it where its compiler found it".into(),
        };
        let bytes = Bytes::copy_from_slice(bytes.ok_or_else(missing)?);
        Ok((place.name.as_str().into(), Arc::new(Asset::new(bytes))))
    };
    places.iter().map(asset).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn assets(names: &[(&str, &'static str)]) -> Assets {
        let asset =
            |bytes: &'static str| Arc::new(Asset::new(Bytes::from_static(bytes.as_bytes())));
        names.iter().map(|(name, bytes)| (Box::from(*name), asset(bytes))).collect()
    }

    fn place(name: &str, at: u64, bytes: u64) -> AssetPlace {
        AssetPlace { name: name.into(), at, bytes }
    }

    #[test]
    fn a_file_of_the_pipeline_hides_one_of_the_plugin() {
        let all = assets(&[("a", "pipeline")]).over(&assets(&[("a", "plugin"), ("b", "plugin")]));
        let bytes = |name| all.get(name).map(|asset| &asset.bytes()[..]);
        assert_eq!((bytes("a"), bytes("b")), (Some(&b"pipeline"[..]), Some(&b"plugin"[..])));
        assert_eq!(bytes("c"), None);
        assert_eq!(all.files().count(), 2);
    }

    #[test]
    fn each_owner_has_forms_of_its_own() {
        let (one, other) = (ByteBudget::new(1), ByteBudget::new(1));
        let files = assets(&[("a", "same")]);
        let forms =
            |owner| files.of_owner(owner).forms("a").map(Arc::downgrade).unwrap_or_default();
        let kept = files.of_owner(&one);
        let first = kept.forms("a").map(Arc::downgrade).unwrap_or_default();
        assert!(forms(&one).ptr_eq(&first));
        assert!(!forms(&other).ptr_eq(&first));
        let asset = |files: &Assets| files.get("a").map(Arc::as_ptr);
        assert_eq!(asset(&kept), asset(&files.of_owner(&other)));
        // They go with their owner's last file, though others have the file.
        drop(kept);
        assert_eq!(first.strong_count(), 0);
    }

    #[test]
    fn an_error_names_the_files_that_are_there_and_the_cure() {
        let text = Assets::default().not_found("x");
        assert!(text.starts_with("no asset \"x\": there are none; put a file into"), "{text}");
        assert!(text.ends_with("as in \"assets\": {\"x\": \"NAME\"}"), "{text}");
        let names: Vec<_> = (0..20).map(|at| format!("f{at:02}")).collect();
        let many: Vec<_> = names.iter().map(|name| (name.as_str(), "")).collect();
        let text = assets(&many).not_found(&"y".repeat(10_000));
        assert!(text.contains("f15 and 4 more;") && text.len() < 1000, "{text}");
    }

    #[test]
    fn names_are_plain_relative_paths() {
        for good in ["a", "labels.txt", "a/b-c_d.E", ".hidden", &"a".repeat(128)] {
            assert_eq!(asset_name_fault(good), None, "{good:?}");
        }
        for bad in ["", "/a", "a/", "a//b", "..", "a/../b", "./a", "a b", "ä", &"a".repeat(129)] {
            assert!(asset_name_fault(bad).is_some(), "{bad:?}");
        }
    }

    #[test]
    fn places_are_checked_before_bytes_are_copied() {
        let file = Bytes::from_static(b"0123456789");
        let found = assets_in(&file, &[place("a", 2, 3), place("b", 10, 0)]).unwrap();
        assert_eq!(&found.get("a").unwrap().bytes()[..], b"234");
        assert!(found.get("b").unwrap().bytes().is_empty());
        let many: Vec<_> = (0..257).map(|at| place(&format!("f{at}"), 0, 0)).collect();
        for (places, named) in [
            (vec![place("a", 8, 3)], "where its compiler found it"),
            (vec![place("a", u64::MAX, 1)], "where its compiler found it"),
            (vec![place("a", 1, u64::MAX)], "more than 67108864 bytes"),
            (vec![place("../a", 0, 1)], "its name must be"),
            (vec![place("a", 0, 1), place("a", 1, 1)], "twice"),
            (many, "at most 256 assets"),
        ] {
            let refused = assets_in(&file, &places).unwrap_err().to_string();
            assert!(refused.contains(named), "{refused}");
        }
    }
}

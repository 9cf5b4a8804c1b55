//! `assets`: the files that the thread's test has made, and those in the folder `assets/` of the
//! crate that is tested, where cargo runs its tests.

use std::cell::RefCell;
use std::fmt;
use std::path::Path;
use std::rc::Rc;

use super::types::Blob;

#[derive(Clone, Debug, PartialEq)]
pub enum AssetError {
    NotFound(String),
}

impl fmt::Display for AssetError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self:?}")
    }
}

impl std::error::Error for AssetError {}

/// A file with its name.
pub(crate) struct File {
    pub(crate) name: String,
    pub(crate) bytes: Vec<u8>,
}

thread_local! {
    /// The files, in the order in which they were made.
    static FILES: RefCell<Vec<Rc<File>>> = const { RefCell::new(Vec::new()) };
}

/// Let this thread's calls find the file, until [`remove`].
pub(crate) fn register(file: Rc<File>) {
    FILES.with_borrow_mut(|files| files.push(file));
}

pub(crate) fn remove(file: &Rc<File>) {
    FILES.with_borrow_mut(|files| files.retain(|other| !Rc::ptr_eq(other, file)));
}

pub fn open(name: &str) -> Result<Blob, AssetError> {
    let found = FILES.with_borrow(|files| {
        files.iter().rev().find(|file| file.name == name).map(|file| Blob::from_bytes(&file.bytes))
    });
    let is_plain = name.split('/').all(|part| !matches!(part, "" | "." | ".."));
    let of_crate = || std::fs::read(Path::new("assets").join(name)).ok().filter(|_| is_plain);
    found.or_else(|| of_crate().map(|bytes| Blob::from_bytes(&bytes))).ok_or_else(|| {
        AssetError::NotFound(format!(
            "no asset {name:?}: put a file into the folder assets/ of the plugin, or make one of \
             the pipeline with testing::asset({name:?}, ..)"
        ))
    })
}

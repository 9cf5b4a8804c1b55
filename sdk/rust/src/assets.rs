//! Files that the plugin reads: those in its folder `assets/`, and those of the tenant that the
//! pipeline's document names under `assets`, such as a price list that changes without a build.
//!
//! ```no_run
//! # use gristmill_plugin::{assets, Failure};
//! # fn example() -> Result<(), Failure> {
//! let labels = assets::text("labels.txt")?;
//! let labels: Vec<_> = labels.lines().collect();
//! // A large table stays on the host; parts of it are read.
//! let row = assets::open("table.bin")?.read(4096, 512);
//! # Ok(())
//! # }
//! ```
//!
//! A file that the pipeline names hides one of the plugin. The bytes lie on the host once, for all
//! calls: [`open`] copies nothing.
//!
//! In tests the files are those in `assets/` of the crate, and those of
//! [`testing::asset`](crate::testing::asset).

use crate::bindings::assets as host;
pub use crate::bindings::assets::AssetError;
use crate::{Blob, Failure};

/// The file of this name, such as `labels.txt`.
///
/// # Errors
/// There is none. The text says which files there are, and how to add one.
pub fn open(name: &str) -> Result<Blob, AssetError> {
    host::open(name)
}

/// All bytes of the file of this name.
///
/// # Errors
/// As for [`open`].
pub fn read(name: &str) -> Result<Vec<u8>, AssetError> {
    Ok(open(name)?.read(0, u64::MAX))
}

/// The text of the file of this name.
///
/// # Errors
/// As for [`open`]; or it is not UTF-8.
pub fn text(name: &str) -> Result<String, Failure> {
    String::from_utf8(read(name)?)
        .map_err(|error| Failure::internal(format!("asset {name:?} is not UTF-8: {error}")))
}

impl AssetError {
    /// What is missing, and what would add it.
    pub fn text(&self) -> &str {
        let Self::NotFound(text) = self;
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;

    #[test]
    fn a_file_of_a_test_is_there_until_it_is_dropped() {
        let labels = testing::asset("labels.txt", "a\nb");
        assert_eq!(open("labels.txt").unwrap().len(), 3);
        assert_eq!(text("labels.txt").unwrap(), "a\nb");
        let other = testing::asset("labels.txt", [0xff_u8]);
        assert!(matches!(text("labels.txt"), Err(Failure::Internal(why)) if why.contains("UTF-8")));
        drop(other);
        assert_eq!(read("labels.txt").unwrap(), b"a\nb");
        drop(labels);
        let missing = open("labels.txt").unwrap_err();
        assert!(missing.text().contains("testing::asset"), "{}", missing.text());
        assert!(matches!(Failure::from(missing), Failure::Internal(_)));
        assert!(open("../Cargo.toml").is_err());
    }
}

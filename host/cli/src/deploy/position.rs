//! Positions in a manifest, and the faults that are there.

use std::fmt;

/// A line of a manifest's file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct FilePosition {
    /// The file as it was given.
    pub(crate) file: String,
    pub(crate) line: usize,
}

impl fmt::Display for FilePosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.line)
    }
}

/// All faults of a manifest.
#[derive(Debug, Default)]
pub(crate) struct Faults(Vec<(Option<FilePosition>, String)>);

impl Faults {
    /// A fault at a position.
    pub(crate) fn at(&mut self, position: &FilePosition, text: impl fmt::Display) {
        self.0.push((Some(position.clone()), text.to_string()));
    }

    /// A fault of a whole file or folder, which the text names.
    pub(crate) fn add(&mut self, text: impl fmt::Display) {
        self.0.push((None, text.to_string()));
    }

    /// The result, if there are no faults.
    ///
    /// # Errors
    /// All faults.
    pub(crate) fn unless_any<T>(self, result: T) -> Result<T, Self> {
        if self.0.is_empty() { Ok(result) } else { Err(self) }
    }
}

/// A line for each, in the order of the files.
impl fmt::Display for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut faults: Vec<_> = self.0.iter().collect();
        faults.sort_by(|one, other| one.0.cmp(&other.0));
        f.write_str("the manifest is wrong:")?;
        faults.into_iter().try_for_each(|(position, text)| match position {
            Some(position) => write!(f, "\n  {position}: {text}"),
            None => write!(f, "\n  {text}"),
        })
    }
}

impl std::error::Error for Faults {}

//! Comment lines have at most 100 columns, in Rust, WIT and Python.
//!
//! rustfmt does not break comments, and no formatter runs over WIT. A comment line is a line with
//! nothing but a comment. Code may be longer: a long text in it cannot be broken.

use std::path::Path;

use anyhow::{Context, Result};

const COLUMNS_MAX: usize = 100;

/// The beginnings of comment lines, by the ending of the file's name.
const COMMENTS: [(&str, &str); 3] = [("rs", "//"), ("wit", "//"), ("py", "#")];

/// The comment lines under `root` that are too long, in words. Hidden folders and builds are left
/// out.
///
/// # Errors
/// A folder or a file cannot be read.
pub(super) fn faults(root: &Path) -> Result<Vec<String>> {
    let mut faults = Vec::new();
    add_faults(root, root, &mut faults).context("cannot check the width of comments")?;
    faults.sort_unstable();
    Ok(faults)
}

fn add_faults(root: &Path, folder: &Path, faults: &mut Vec<String>) -> Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let (path, kind) = entry.and_then(|entry| Ok((entry.path(), entry.file_type()?)))?;
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if kind.is_dir() && !name.starts_with('.') && !is_build(&path) {
            add_faults(root, &path, faults)?;
        }
        let ending = path.extension().unwrap_or_default();
        let comment = COMMENTS.iter().find(|(known, _)| ending == *known && kind.is_file());
        if let Some((_, comment)) = comment {
            let text = std::fs::read_to_string(&path).with_context(|| name.into_owned())?;
            let file = path.strip_prefix(root).unwrap_or(&path).display();
            let too_long = too_long(&text, comment);
            faults.extend(too_long.map(|(line, columns)| {
                format!("{file}:{line}: the comment has {columns} columns, over {COLUMNS_MAX}")
            }));
        }
    }
    Ok(())
}

/// Whether cargo builds into this folder: it is `target` beside a manifest.
fn is_build(folder: &Path) -> bool {
    folder.ends_with("target") && folder.with_file_name("Cargo.toml").is_file()
}

/// The comment lines of `text` that are too long: their numbers and their columns.
fn too_long(text: &str, comment: &str) -> impl Iterator<Item = (usize, usize)> {
    let comments = text.lines().enumerate().filter(move |(_, line)| is_comment(line, comment));
    comments
        .map(|(index, line)| (index + 1, line.chars().count()))
        .filter(|(_, columns)| *columns > COLUMNS_MAX)
}

fn is_comment(line: &str, comment: &str) -> bool {
    line.trim_start().starts_with(comment)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comment_lines_are_counted_in_characters() {
        let fits = format!("    //! {}", "ä".repeat(92));
        let over = format!("{fits}a");
        let text = ["code();", &fits, &over, "", &over].join("\n");
        let found: Vec<_> = too_long(&text, "//").collect();
        assert_eq!(found, [(3, 101), (5, 101)]);
    }

    #[test]
    fn code_may_be_longer() {
        let long = "a".repeat(101);
        let (text, behind) = (format!("let text = \"{long}\";"), format!("call(); // {long}"));
        for line in [&*text, &*behind, "# another language's comment"] {
            assert_eq!(too_long(line, "//").count(), 0, "{line}");
        }
        assert_eq!(too_long(&format!("    # {long}"), "#").count(), 1);
    }
}

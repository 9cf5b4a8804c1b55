//! Comment lines have at most 100 columns, in Rust, WIT and Python.
//!
//! rustfmt does not break comments, and no formatter runs over WIT. A comment line is a line with
//! nothing but a comment. Code may be longer: a long text in it cannot be broken.

use anyhow::Result;

use crate::shell::{output, program, root};

const COLUMNS_MAX: usize = 100;

/// The comment lines of the files in git, and of new files, that are too long, in words.
pub(super) fn faults() -> Result<Vec<String>> {
    let list = ["ls-files", "--cached", "--others", "--exclude-standard", "*.rs", "*.wit", "*.py"];
    let mut faults = Vec::new();
    for file in output(program("git").args(list))?.lines() {
        // A file that is deleted may still be in git.
        let text = std::fs::read_to_string(root().join(file)).unwrap_or_default();
        let comment = if file.ends_with(".py") { "#" } else { "//" };
        faults.extend(too_long(&text, comment).map(|(line, columns)| {
            format!("{file}:{line}: the comment has {columns} columns, over {COLUMNS_MAX}")
        }));
    }
    Ok(faults)
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

//! `cargo xtask docs`: the README's tables and the description of the admin API, as the server
//! itself prints them.
//!
//! A table stands between `<!-- begin NAME -->` and `<!-- end NAME -->`. `cargo xtask test` fails
//! if a table, or the file of the description, differs from the output of `gristmill reference`.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};

use crate::setup;
use crate::shell::{output, program, root};

const README: &str = "README.md";
const TABLES: [&str; 4] = ["settings", "limits", "errors", "metrics"];

/// The description of the admin API.
const OPENAPI: &str = "host/admin/openapi.json";

/// Build the server and write what it prints.
pub(crate) fn run() -> Result<()> {
    let gristmill = setup::build_server()?;
    for (file, before, after) in files(&gristmill)? {
        if before == after {
            println!("{file} is up to date");
        } else {
            fs::write(root().join(file), after)?;
            println!("{file} is written anew");
        }
    }
    Ok(())
}

/// Fail if a file differs from the server's output.
pub(crate) fn check(gristmill: &Path) -> Result<()> {
    for (file, before, after) in files(gristmill)? {
        let differs = before.lines().zip(after.lines()).find(|(before, after)| before != after);
        match differs {
            None if before == after => {}
            None => bail!("{file} has other lines: run cargo xtask docs"),
            Some((before, after)) => {
                bail!("{file} says\n  {before}\nand should say\n  {after}\nrun cargo xtask docs")
            }
        }
    }
    Ok(())
}

/// Each file with its text now, and as it should be.
fn files(gristmill: &Path) -> Result<[(&'static str, String, String); 2]> {
    let (readme, rendered) = rendered(gristmill)?;
    let kept = fs::read_to_string(root().join(OPENAPI)).unwrap_or_default();
    let described = output(program(gristmill).args(["reference", "openapi"]))?;
    Ok([(README, readme, rendered), (OPENAPI, kept, described)])
}

/// The README now, and with the current tables.
fn rendered(gristmill: &Path) -> Result<(String, String)> {
    let before = fs::read_to_string(root().join(README)).context(README)?;
    let mut after = before.clone();
    for name in TABLES {
        let table = output(program(gristmill).args(["reference", name]))?;
        after = replaced(&after, name, &table)?;
    }
    Ok((before, after))
}

/// `text` with `table` between the markers of `name`.
fn replaced(text: &str, name: &str, table: &str) -> Result<String> {
    let (begin, end) = (format!("<!-- begin {name} -->\n"), format!("<!-- end {name} -->"));
    let missing = || format!("{README} has no {}", begin.trim_end());
    let (head, rest) = text.split_once(&begin).with_context(missing)?;
    let (_, tail) = rest.split_once(&end).with_context(|| format!("{README} has no {end}"))?;
    Ok(format!("{head}{begin}{}\n{end}{tail}", table.trim_end()))
}

#[cfg(test)]
mod tests {
    use super::replaced;

    #[test]
    fn only_the_text_between_the_markers_changes() {
        let text = "a\n<!-- begin t -->\nold\nlines\n<!-- end t -->\nb\n";
        let new = replaced(text, "t", "new\n").unwrap();
        assert_eq!(new, "a\n<!-- begin t -->\nnew\n<!-- end t -->\nb\n");
        assert_eq!(replaced(&new, "t", "new\n").unwrap(), new);
    }

    #[test]
    fn a_missing_marker_is_named() {
        let said = replaced("a", "limits", "").unwrap_err().to_string();
        assert_eq!(said, "README.md has no <!-- begin limits -->");
        let said = replaced("<!-- begin limits -->\n", "limits", "").unwrap_err().to_string();
        assert_eq!(said, "README.md has no <!-- end limits -->");
    }
}

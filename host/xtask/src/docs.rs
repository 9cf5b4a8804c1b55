//! `cargo xtask docs`: the tables of `host/docs/reference` and the description of the admin API, as
//! the server itself prints them.
//!
//! A table stands between `<!-- begin NAME -->` and `<!-- end NAME -->` in the file `NAME.md`.
//! `cargo xtask test` fails if a table, or the file of the description, differs from the output of
//! `gristmill reference`, or if a link of a document leads nowhere.

mod links;

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};

use crate::setup;
use crate::shell::{output, program, root};

/// The folder with a file for each table.
const REFERENCE: &str = "host/docs/reference";
const TABLES: [&str; 4] = ["settings", "limits", "errors", "metrics"];

/// The description of the admin API.
const OPENAPI: &str = "host/admin/openapi.json";

/// A file that has the server's output.
struct Document {
    file: String,
    /// Its text now.
    before: String,
    /// Its text as it should be.
    after: String,
}

/// Build the server and write what it prints.
pub(crate) fn run() -> Result<()> {
    let gristmill = setup::build_server()?;
    for Document { file, before, after } in documents(&gristmill)? {
        if before == after {
            println!("{file} is up to date");
        } else {
            fs::write(root().join(&file), after)?;
            println!("{file} is written anew");
        }
    }
    Ok(())
}

/// Fail if a file differs from the server's output, or if a link of a document leads nowhere.
pub(crate) fn check(gristmill: &Path) -> Result<()> {
    for Document { file, before, after } in documents(gristmill)? {
        let differs = before.lines().zip(after.lines()).find(|(before, after)| before != after);
        match differs {
            None if before == after => {}
            None => bail!("{file} has other lines: run cargo xtask docs"),
            Some((before, after)) => {
                bail!("{file} says\n  {before}\nand should say\n  {after}\nrun cargo xtask docs")
            }
        }
    }
    links::check()
}

/// All files with output of the server.
fn documents(gristmill: &Path) -> Result<Vec<Document>> {
    let mut documents = Vec::new();
    for name in TABLES {
        let file = format!("{REFERENCE}/{name}.md");
        let before = fs::read_to_string(root().join(&file)).with_context(|| file.clone())?;
        let table = output(program(gristmill).args(["reference", name]))?;
        let after = replaced(&before, name, &table).context(file.clone())?;
        documents.push(Document { file, before, after });
    }
    let before = fs::read_to_string(root().join(OPENAPI)).unwrap_or_default();
    let after = output(program(gristmill).args(["reference", "openapi"]))?;
    documents.push(Document { file: OPENAPI.to_owned(), before, after });
    Ok(documents)
}

/// `text` with `table` between the markers of `name`.
fn replaced(text: &str, name: &str, table: &str) -> Result<String> {
    let (begin, end) = (format!("<!-- begin {name} -->\n"), format!("<!-- end {name} -->"));
    let missing = || format!("{} is missing", begin.trim_end());
    let (head, rest) = text.split_once(&begin).with_context(missing)?;
    let (_, tail) = rest.split_once(&end).with_context(|| format!("{end} is missing"))?;
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
        let error_text = replaced("a", "limits", "").unwrap_err().to_string();
        assert_eq!(error_text, "<!-- begin limits --> is missing");
        let error_text = replaced("<!-- begin limits -->\n", "limits", "").unwrap_err().to_string();
        assert_eq!(error_text, "<!-- end limits --> is missing");
    }
}

//! The relative links of the documents: the file exists, and so does the heading that an anchor
//! names.
//!
//! Read are all Markdown files that git has. A link is `[text](target)` outside of code; targets
//! with a scheme, such as `https:`, are not looked at. An anchor is the slug that GitHub makes of a
//! heading.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Component, Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::shell::{output, program, root};

/// Check the links of all documents.
///
/// # Errors
/// A document cannot be read, or links lead nowhere; all of them are named.
pub(super) fn check() -> Result<()> {
    let root = root();
    let files = output(program("git").args(["ls-files", "*.md"]))?;
    let mut documents = BTreeMap::new();
    for file in files.lines() {
        // A file that is deleted, but not yet in git.
        if root.join(file).is_file() {
            let text = fs::read_to_string(root.join(file)).with_context(|| file.to_owned())?;
            documents.insert(PathBuf::from(file), text);
        }
    }
    let slugs: BTreeMap<_, _> =
        documents.iter().map(|(file, text)| (file.as_path(), slugs(text))).collect();
    let exists = |path: &Path| root.join(path).exists();
    let mut faults = Vec::new();
    for (file, text) in &documents {
        for (line, target) in links(text) {
            if let Some(fault) = fault(file, &target, &slugs, &exists) {
                faults.push(format!("{}:{line}: {target}: {fault}", file.display()));
            }
        }
    }
    if faults.is_empty() {
        return Ok(());
    }
    bail!("links lead nowhere:\n  {}", faults.join("\n  "));
}

/// Why the link of `file` to `target` leads nowhere.
fn fault(
    file: &Path,
    target: &str,
    slugs: &BTreeMap<&Path, Vec<String>>,
    exists: &impl Fn(&Path) -> bool,
) -> Option<&'static str> {
    if target.contains("://") || target.starts_with("mailto:") {
        return None;
    }
    let (path, anchor) = match target.split_once('#') {
        Some((path, anchor)) => (path, Some(anchor)),
        None => (target, None),
    };
    let path = match path {
        "" => file.to_owned(),
        path => file.parent().unwrap_or(Path::new("")).join(path),
    };
    let Some(path) = normal(&path) else { return Some("it leads out of the repository") };
    if !exists(&path) {
        return Some("there is no such file");
    }
    let has = |anchor: &str| slugs.get(path.as_path()).is_some_and(|all| has_slug(all, anchor));
    let is_missing = anchor.is_some_and(|anchor| !has(anchor));
    is_missing.then_some("the document has no such heading")
}

fn has_slug(all: &[String], anchor: &str) -> bool {
    all.iter().any(|slug| slug == anchor)
}

/// The path without `.` and `..`. None if it leads out of the repository.
fn normal(path: &Path) -> Option<PathBuf> {
    let mut normal = PathBuf::new();
    for component in path.components() {
        match component {
            Component::ParentDir if !normal.pop() => return None,
            Component::Normal(name) => normal.push(name),
            _ => {}
        }
    }
    Some(normal)
}

/// The lines of a document that are not in a fence, with their numbers.
fn prose(text: &str) -> Vec<(usize, &str)> {
    let mut fence = None;
    let mut prose = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let trimmed = line.trim_start();
        let mark = ["```", "~~~"].into_iter().find(|mark| trimmed.starts_with(mark));
        match (fence, mark) {
            (None, Some(mark)) => fence = Some(mark),
            (Some(open), Some(mark)) if open == mark => fence = None,
            (None, None) => prose.push((index + 1, line)),
            _ => {}
        }
    }
    prose
}

/// The targets of all links, with the numbers of their lines.
fn links(text: &str) -> Vec<(usize, String)> {
    let mut links = Vec::new();
    // Code between backticks may go on in the next line, but not in the next paragraph.
    let mut is_code = false;
    for (number, line) in prose(text) {
        is_code &= !line.trim().is_empty();
        let mut shown = String::new();
        for (index, piece) in line.split('`').enumerate() {
            is_code ^= index > 0;
            if !is_code {
                shown.push_str(piece);
            }
        }
        let mut rest = shown.as_str();
        while let Some((_, after)) = rest.split_once("](") {
            let Some((target, tail)) = after.split_once(')') else { break };
            // A title may follow the target.
            links.extend(target.split_whitespace().next().map(|link| (number, link.to_owned())));
            rest = tail;
        }
    }
    links
}

/// The anchors of all headings.
fn slugs(text: &str) -> Vec<String> {
    let mut slugs: Vec<String> = Vec::new();
    for (_, line) in prose(text) {
        let title = line.trim_start_matches('#');
        let level = line.len() - title.len();
        if !(1..=6).contains(&level) || !title.starts_with(' ') {
            continue;
        }
        let slug = slug(title);
        let numbered = (1..).map(|number| format!("{slug}-{number}"));
        let free =
            [slug.clone()].into_iter().chain(numbered).find(|free_slug| !slugs.contains(free_slug));
        slugs.extend(free);
    }
    slugs
}

/// A heading's anchor by GitHub's rule: lower case, without punctuation, spaces become hyphens.
fn slug(title: &str) -> String {
    let mut text = title.trim().to_lowercase();
    // A link counts by its text.
    while let Some((before, rest)) = text.split_once("](") {
        let after = rest.split_once(')').map_or("", |(_, after)| after);
        text = format!("{before}{after}");
    }
    let kept = text.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.map(|c| if c == ' ' { '-' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slug_is_githubs() {
        for (title, expected) in [
            ("Your own model", "your-own-model"),
            ("Settings of `gristmill serve`", "settings-of-gristmill-serve"),
            ("`plugin_timeout`", "plugin_timeout"),
            ("Tokens, keys - and more?", "tokens-keys---and-more"),
            ("A model's configuration", "a-models-configuration"),
            ("See [the page](page.md#x)!", "see-the-page"),
            ("Größe 2", "größe-2"),
        ] {
            assert_eq!(slug(title), expected, "{title}");
        }
    }

    #[test]
    fn equal_headings_are_numbered_and_fences_have_none() {
        let text = "# A\n## A\n```sh\n# no heading\n```\n#hash\n####### deep\n### A\n";
        assert_eq!(slugs(text), ["a", "a-1", "a-2"]);
    }

    #[test]
    fn links_are_found_outside_of_code() {
        let text = "[a](x.md) `[b](y.md)` [`c`](z.md#c \"title\")\n```\n[d](w.md)\n```\n\
                    ![e](e.svg) `f\n[f](f.md)` [g](g.md)";
        let expected = [(1, "x.md"), (1, "z.md#c"), (5, "e.svg"), (6, "g.md")];
        assert_eq!(links(text), expected.map(|(line, target)| (line, target.to_owned())));
    }

    #[test]
    fn a_link_that_leads_nowhere_is_told() {
        let (here, other) = (Path::new("sdk/README.md"), Path::new("README.md"));
        let slugs = BTreeMap::from([(here, vec!["a".to_owned()]), (other, vec!["b".to_owned()])]);
        let exists = |path: &Path| slugs.contains_key(path) || path == Path::new("sdk");
        let fault_of = |target| fault(here, target, &slugs, &exists);
        for good in ["#a", "../README.md#b", "README.md", "../sdk", "https://example.org/#x"] {
            assert_eq!(fault_of(good), None, "{good}");
        }
        assert_eq!(fault_of("#b"), Some("the document has no such heading"));
        assert_eq!(fault_of("../README.md#a"), Some("the document has no such heading"));
        assert_eq!(fault_of("other.md"), Some("there is no such file"));
        assert_eq!(fault_of("../../other.md"), Some("it leads out of the repository"));
    }
}

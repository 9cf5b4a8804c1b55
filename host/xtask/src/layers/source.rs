//! Finds the paths in Rust source text. It does not know files or the meaning of a path.
//!
//! This is a scanner of tokens, not a parser of the language: it finds `mod`, `use` and paths of
//! more than one segment, and leaves out comments, texts and items under `#[cfg(test)]`. Paths that
//! a macro puts together are not found.

use std::collections::HashSet;

/// One module's own text, without that of its inline modules.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Source {
    /// Modules that are files of their own: `mod name;`.
    pub(super) files: Vec<String>,
    /// Modules within the text: `mod name { .. }`.
    pub(super) inline: Vec<(String, Source)>,
    pub(super) imports: Vec<Import>,
    /// Paths of two or more segments outside of imports.
    pub(super) paths: Vec<Vec<String>>,
    /// All identifiers outside of imports.
    pub(super) names: HashSet<String>,
}

/// One name that a `use` brings in.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Import {
    pub(super) path: Vec<String>,
    /// The name in this module; `*` for all of the path's.
    pub(super) name: String,
    /// Whether it is visible beyond this module: `pub use`, `pub(crate) use`.
    pub(super) is_export: bool,
}

/// The modules, imports and paths in `text`.
pub(super) fn read(text: &str) -> Source {
    let tokens = tokens(text);
    Scanner { tokens: &tokens, at: 0 }.module()
}

/// Identifiers, `::` and single characters. Comments, texts and lifetimes are left out.
fn tokens(text: &str) -> Vec<&str> {
    let mut tokens = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let length = match first {
            _ if rest.starts_with("//") => rest.find('\n').unwrap_or(rest.len()),
            _ if rest.starts_with("/*") => block_comment(rest),
            _ if raw_text(rest).is_some() => raw_text(rest).unwrap_or(1),
            '"' => quoted(rest, '"'),
            '\'' => character_or_lifetime(rest),
            _ if first.is_alphanumeric() || first == '_' => {
                let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_');
                let end = end.unwrap_or(rest.len());
                tokens.push(&rest[..end]);
                end
            }
            _ if rest.starts_with("::") => {
                tokens.push("::");
                2
            }
            _ => {
                if !first.is_whitespace() {
                    tokens.push(&rest[..first.len_utf8()]);
                }
                first.len_utf8()
            }
        };
        rest = &rest[length..];
    }
    tokens
}

/// The length of the comment at the start of `rest`. A comment may hold others.
fn block_comment(rest: &str) -> usize {
    let (mut depth, mut at) = (0, 0);
    while at < rest.len() {
        let bytes = &rest.as_bytes()[at..];
        if bytes.starts_with(b"/*") {
            (depth, at) = (depth + 1, at + 2);
        } else if bytes.starts_with(b"*/") {
            (depth, at) = (depth - 1, at + 2);
            if depth == 0 {
                return at;
            }
        } else {
            at += 1;
        }
    }
    rest.len()
}

/// The length of the raw text at the start of `rest`: `r"..."`, `br#"..."#`. None for other text.
fn raw_text(rest: &str) -> Option<usize> {
    let hashes_at = ["r", "br", "cr"].iter().find(|prefix| rest.starts_with(**prefix))?.len();
    let hashes = rest[hashes_at..].bytes().take_while(|byte| *byte == b'#').count();
    let body_at = hashes_at + hashes + 1;
    if rest.as_bytes().get(body_at - 1) != Some(&b'"') {
        return None;
    }
    let end = format!("\"{}", "#".repeat(hashes));
    let body = rest[body_at..].find(&end);
    Some(body.map_or(rest.len(), |length| body_at + length + end.len()))
}

/// The length of the text in `quote`s at the start of `rest`.
fn quoted(rest: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, character) in rest.char_indices().skip(1) {
        match character {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            _ if character == quote => return at + 1,
            _ => {}
        }
    }
    rest.len()
}

fn character_or_lifetime(rest: &str) -> usize {
    let mut characters = rest.chars().skip(1);
    let (first, second) = (characters.next(), characters.next());
    if first == Some('\\') || second == Some('\'') {
        return quoted(rest, '\'');
    }
    let end = rest[1..].find(|c: char| !c.is_alphanumeric() && c != '_');
    end.map_or(rest.len(), |end| 1 + end)
}

struct Scanner<'a> {
    tokens: &'a [&'a str],
    at: usize,
}

impl<'a> Scanner<'a> {
    fn peek(&self, ahead: usize) -> &'a str {
        self.tokens.get(self.at + ahead).copied().unwrap_or_default()
    }

    fn next(&mut self) -> &'a str {
        let token = self.peek(0);
        self.at += 1;
        token
    }

    fn before(&self) -> &'a str {
        self.at.checked_sub(1).map_or("", |at| self.tokens[at])
    }

    /// Read to the end of the module, which is the `}` that closes it or the end of the text.
    fn module(&mut self) -> Source {
        let mut source = Source::default();
        let mut depth = 0;
        while self.at < self.tokens.len() {
            match self.peek(0) {
                "{" => depth += 1,
                "}" if depth == 0 => return source,
                "}" => depth -= 1,
                "#" if self.skip_test_item() => continue,
                "mod" if is_identifier(self.peek(1)) && self.peek(2) == ";" => {
                    source.files.push(self.peek(1).to_owned());
                    self.at += 2;
                }
                "mod" if is_identifier(self.peek(1)) && self.peek(2) == "{" => {
                    let name = self.peek(1).to_owned();
                    self.at += 3;
                    source.inline.push((name, self.module()));
                }
                // `impl Trait + use<'a>` is not an import.
                "use" if self.peek(1) != "<" => {
                    let is_export = matches!(self.before(), "pub" | ")");
                    self.at += 1;
                    self.imports(&mut Vec::new(), is_export, &mut source.imports);
                    continue;
                }
                name if is_identifier(name) => {
                    self.path(&mut source);
                    continue;
                }
                _ => {}
            }
            self.at += 1;
        }
        source
    }

    /// An identifier, or a path that begins here.
    fn path(&mut self, source: &mut Source) {
        let is_own = !matches!(self.before(), "." | "::");
        let mut path = vec![self.next()];
        while self.peek(0) == "::" && is_identifier(self.peek(1)) {
            path.push(self.peek(1));
            self.at += 2;
        }
        source.names.extend(path.iter().map(|name| (*name).to_owned()));
        if is_own && path.len() > 1 {
            source.paths.push(path.into_iter().map(str::to_owned).collect());
        }
    }

    /// Add the imports of one tree of a `use` to `imports`. `prefix` is the path before the tree.
    /// Afterwards the scanner stands behind the tree.
    fn imports(&mut self, prefix: &mut Vec<String>, is_export: bool, imports: &mut Vec<Import>) {
        let before = prefix.len();
        loop {
            match self.next() {
                "::" => {}
                "{" => {
                    while self.peek(0) != "}" && self.at < self.tokens.len() {
                        self.imports(prefix, is_export, imports);
                        if self.peek(0) == "," {
                            self.at += 1;
                        }
                    }
                    self.at += 1;
                    break;
                }
                "*" => {
                    imports.push(Import { path: prefix.clone(), name: "*".into(), is_export });
                    break;
                }
                segment if is_identifier(segment) => {
                    if self.peek(0) == "::" {
                        prefix.push(segment.to_owned());
                        continue;
                    }
                    // `a::{self}` means `a`.
                    if segment != "self" || prefix.is_empty() {
                        prefix.push(segment.to_owned());
                    }
                    let mut name = prefix.last().cloned().unwrap_or_default();
                    if self.peek(0) == "as" {
                        name = self.peek(1).to_owned();
                        self.at += 2;
                    }
                    imports.push(Import { path: prefix.clone(), name, is_export });
                    break;
                }
                _ => break,
            }
        }
        prefix.truncate(before);
    }

    /// Skip an attribute that limits its item to tests, and the item, if such an attribute begins
    /// here. Returns whether it does.
    fn skip_test_item(&mut self) -> bool {
        let rest = &self.tokens[self.at..];
        let is_test = rest.starts_with(&["#", "[", "cfg", "(", "test", ")", "]"])
            || rest.starts_with(&["#", "[", "cfg", "(", "all", "(", "test", ","]);
        if !is_test {
            return false;
        }
        while self.peek(0) == "#" {
            self.skip_to_close();
        }
        // A field, a variant or an argument ends at its comma. An item may contain commas.
        let is_item = matches!(
            self.peek(0),
            "pub"
                | "use"
                | "mod"
                | "fn"
                | "impl"
                | "struct"
                | "enum"
                | "const"
                | "static"
                | "type"
                | "trait"
                | "async"
                | "unsafe"
                | "extern"
        );
        while self.at < self.tokens.len() {
            match self.peek(0) {
                ";" => {
                    self.at += 1;
                    break;
                }
                "," if !is_item => break,
                "}" => break,
                "{" => {
                    self.skip_to_close();
                    break;
                }
                "(" | "[" => self.skip_to_close(),
                _ => self.at += 1,
            }
        }
        true
    }

    /// Skip to behind the bracket that closes the next one that opens.
    fn skip_to_close(&mut self) {
        let mut depth = 0;
        while self.at < self.tokens.len() {
            match self.next() {
                "(" | "[" | "{" => depth += 1,
                ")" | "]" | "}" => {
                    depth -= 1;
                    if depth == 0 {
                        return;
                    }
                }
                _ => {}
            }
        }
    }
}

fn is_identifier(token: &str) -> bool {
    token.starts_with(|first: char| first.is_alphabetic() || first == '_')
}

#[cfg(test)]
mod tests;

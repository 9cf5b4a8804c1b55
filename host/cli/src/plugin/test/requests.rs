//! The sample requests of a folder.
//!
//! A file `NAME.EXT` is a body, whose content type follows from the extension. A file
//! `NAME.request.json` describes a request: its content type, its headers, its query and its body,
//! which is in the document or in another file of the folder. `NAME.expected.json` is the expected
//! answer (`expectation`). Nothing outside of the folder is read or written.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use bytes::Bytes;
use gristmill_client::http::request::Parts;
use gristmill_state::Document;
use serde_json::{Map, Value};

use crate::plugin::within::within;
use crate::request_run::head;

/// The content types of bodies, by the extensions of their files.
const CONTENT_TYPES: [(&str, &str); 12] = [
    ("json", "application/json"),
    ("txt", "text/plain"),
    ("csv", "text/csv"),
    ("png", "image/png"),
    ("jpg", "image/jpeg"),
    ("jpeg", "image/jpeg"),
    ("webp", "image/webp"),
    ("gif", "image/gif"),
    ("bmp", "image/bmp"),
    ("wav", "audio/wav"),
    ("npy", "application/octet-stream"),
    ("bin", "application/octet-stream"),
];

const EXPECTED: &str = ".expected.json";
const DESCRIBED: &str = ".request.json";

/// A sample request.
#[derive(Debug)]
pub(super) struct Sample {
    /// The name of its file.
    pub(super) file: String,
    /// The file of the expected answer, which may not exist.
    pub(super) expectation: PathBuf,
    pub(super) head: Parts,
    pub(super) body: Bytes,
}

/// The sample requests of a folder, by their names.
#[derive(Debug)]
pub(super) struct Samples {
    pub(super) list: Vec<Sample>,
    /// Files whose extension has no content type.
    pub(super) skipped: Vec<String>,
}

/// The parts of a request that a document describes.
#[derive(Default)]
struct Described {
    content_type: Option<String>,
    headers: Vec<(String, String)>,
    query: String,
    body: DescribedBody,
}

#[derive(Default)]
enum DescribedBody {
    #[default]
    None,
    /// With the content type that it has unless another is given.
    Given(Vec<u8>, &'static str),
    /// A file of the folder.
    File(String),
}

impl Samples {
    /// Read the requests in `folder`.
    ///
    /// # Errors
    /// The folder cannot be read or has no request, a document is faulty, or files do not fit
    /// together.
    pub(super) fn read(folder: &Path) -> Result<Self> {
        let files = files_of(folder)?;
        let mut described = BTreeMap::new();
        for file in files.iter().filter(|file| file.ends_with(DESCRIBED)) {
            let path = folder.join(file);
            let text = fs::read(&path).with_context(|| path.display().to_string())?;
            let read = Described::read(&text).with_context(|| path.display().to_string())?;
            described.insert(file.as_str(), read);
        }
        let used: BTreeSet<_> = described.values().filter_map(Described::body_file).collect();
        let (mut skipped, mut names) = (Vec::new(), BTreeMap::new());
        for file in &files {
            let Some(name) = name_of(file) else { continue };
            if used.contains(file.as_str()) {
                continue;
            }
            if !described.contains_key(file.as_str()) && content_type_of(file).is_none() {
                skipped.push(file.clone());
                continue;
            }
            if let Some(other) = names.insert(name, file) {
                bail!(
                    "{}: {other} and {file} would have the same expectation, {name}{EXPECTED}: \
                     rename one of them",
                    folder.display()
                );
            }
        }
        for file in &files {
            if let Some(name) = file.strip_suffix(EXPECTED)
                && !names.contains_key(name)
            {
                bail!("{}: there is no request {name:?}", folder.join(file).display());
            }
        }
        ensure!(
            !names.is_empty(),
            "{} has no requests: put a body there, such as sample.json or sample.png",
            folder.display()
        );
        let sample = |(name, file): (&str, &String)| {
            let description = described.get(file.as_str());
            let expectation = folder.join(format!("{name}{EXPECTED}"));
            let (head, body) = request(folder, file, description)
                .with_context(|| folder.join(file).display().to_string())?;
            Ok(Sample { file: file.clone(), expectation, head, body })
        };
        let list = names.into_iter().map(sample).collect::<Result<_>>()?;
        Ok(Self { list, skipped })
    }
}

/// The names of the folder's files in order, without hidden ones.
fn files_of(folder: &Path) -> Result<Vec<String>> {
    let cannot = || {
        format!(
            "cannot read the requests in {} (--requests names another folder)",
            folder.display()
        )
    };
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).with_context(cannot)? {
        let entry = entry.with_context(cannot)?;
        let name = entry.file_name();
        if name.as_encoded_bytes().starts_with(b".") {
            continue;
        }
        // Refuses links that lead out. Otherwise `--update` would write where they lead.
        let resolved = within(folder, &name).with_context(|| entry.path().display().to_string())?;
        if resolved.is_file() {
            let not_text =
                || format!("{}: its name is not UTF-8: rename it", entry.path().display());
            files.push(name.to_str().with_context(not_text)?.to_owned());
        }
    }
    files.sort_unstable();
    Ok(files)
}

/// The name of the request in a file; none for an expectation.
fn name_of(file: &str) -> Option<&str> {
    if file.ends_with(EXPECTED) {
        return None;
    }
    file.strip_suffix(DESCRIBED)
        .or_else(|| Some(file.rsplit_once('.').map_or(file, |(name, _)| name)))
}

fn content_type_of(file: &str) -> Option<&'static str> {
    let extension = file.rsplit_once('.')?.1.to_ascii_lowercase();
    CONTENT_TYPES
        .iter()
        .find(|(other, _)| *other == extension)
        .map(|(_, content_type)| *content_type)
}

/// The head and the body of the request in `file`.
fn request(folder: &Path, file: &str, described: Option<&Described>) -> Result<(Parts, Bytes)> {
    let read = |name: &str| {
        let path = within(folder, name)?;
        fs::read(&path).with_context(|| format!("cannot read {}", path.display()))
    };
    let Some(Described { content_type, headers, query, body }) = described else {
        let head = head(content_type_of(file), &[], "")?;
        return Ok((head, read(file)?.into()));
    };
    let (body, usual) = match body {
        DescribedBody::None => (Vec::new(), None),
        DescribedBody::Given(bytes, content_type) => (bytes.clone(), Some(*content_type)),
        DescribedBody::File(name) => {
            let bytes = read(name).with_context(|| format!("body_file is {name:?}"))?;
            (bytes, content_type_of(name))
        }
    };
    let head = head(content_type.as_deref().or(usual), headers, query)?;
    Ok((head, body.into()))
}

impl Described {
    fn read(text: &[u8]) -> Result<Self> {
        let keys: Map<String, Value> =
            serde_json::from_slice(text).context("not a JSON object that describes a request")?;
        let mut document = Document::new(keys);
        let content_type = document.text("content_type");
        let query = document.text("query").unwrap_or_default();
        let mut headers = Vec::new();
        for (name, value) in document.object("headers").unwrap_or_default() {
            match value {
                Value::String(value) => headers.push((name, value)),
                other => {
                    let key = format!("headers.{name}");
                    document.fault(&key, format_args!(" is {other}: must be text"));
                }
            }
        }
        let (file, body) = (document.text("body_file"), document.value("body"));
        let body = match (file, body) {
            (Some(_), Some(_)) => {
                document.fault("body", ": give body or body_file, not both");
                DescribedBody::None
            }
            (Some(file), None) => DescribedBody::File(file),
            (None, Some(Value::String(text))) => DescribedBody::Given(text.into(), "text/plain"),
            (None, Some(json)) => DescribedBody::Given(json.to_string().into(), "application/json"),
            (None, None) => DescribedBody::None,
        };
        let faults = document.finish();
        ensure!(faults.is_empty(), "{}", faults.into_texts().join("; "));
        Ok(Self { content_type, headers, query, body })
    }

    fn body_file(&self) -> Option<&str> {
        match &self.body {
            DescribedBody::File(file) => Some(file),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;
    use std::os::unix::fs::symlink;

    use gristmill_client::http::header::CONTENT_TYPE;

    use super::*;

    /// The requests of a folder with these files.
    fn samples(files: &[(&str, &str)]) -> Result<Samples> {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files {
            fs::write(folder.path().join(name), text).unwrap();
        }
        Samples::read(folder.path())
    }

    /// The error for a folder with these files, with its causes.
    #[track_caller]
    fn refused(files: &[(&str, &str)]) -> String {
        format!("{:#}", samples(files).unwrap_err())
    }

    fn content_type(sample: &Sample) -> &str {
        sample.head.headers[CONTENT_TYPE].to_str().unwrap()
    }

    #[test]
    fn a_file_is_a_body_whose_content_type_follows_from_its_extension() {
        let files =
            [("a.PNG", "png"), ("b.json", "[1]"), (".hidden", ""), ("b.expected.json", "{}")];
        let Samples { list, skipped } = samples(&files).unwrap();
        let [a, b] = &list[..] else { panic!("{list:?}") };
        assert_eq!(
            (a.file.as_str(), content_type(a), &a.body[..]),
            ("a.PNG", "image/png", &b"png"[..])
        );
        assert_eq!((b.file.as_str(), content_type(b)), ("b.json", "application/json"));
        assert!(b.expectation.ends_with("b.expected.json") && skipped.is_empty());
    }

    #[test]
    fn a_document_describes_a_request() {
        let document = r#"{"content_type": "a/b", "headers": {"x-a": "1"}, "query": "do=it&n=%20",
            "body_file": "c.dat"}"#;
        let files = [("one.request.json", document), ("c.dat", "bytes"), ("notes.md", "")];
        let Samples { list, skipped } = samples(&files).unwrap();
        let [one] = &list[..] else { panic!("{list:?}") };
        assert_eq!((content_type(one), &one.body[..]), ("a/b", &b"bytes"[..]));
        assert_eq!(one.head.uri.query(), Some("do=it&n=%20"));
        assert_eq!(one.head.headers["x-a"], "1");
        assert!(one.expectation.ends_with("one.expected.json"));
        assert_eq!(skipped, ["notes.md"]);
    }

    #[test]
    fn a_body_in_the_document_is_json_or_text() {
        let files = [
            ("a.request.json", r#"{"body": {"x": [1, 2]}}"#),
            ("b.request.json", r#"{"body": "plain"}"#),
            ("c.request.json", "{}"),
        ];
        let list = samples(&files).unwrap().list;
        assert_eq!(
            (content_type(&list[0]), &list[0].body[..]),
            ("application/json", &br#"{"x":[1,2]}"#[..])
        );
        assert_eq!((content_type(&list[1]), &list[1].body[..]), ("text/plain", &b"plain"[..]));
        assert!(list[2].body.is_empty() && !list[2].head.headers.contains_key(CONTENT_TYPE));
    }

    #[test]
    fn faults_name_the_file_the_field_and_the_value() {
        let error = refused(&[(
            "a.request.json",
            r#"{"boddy": 1, "query": 7, "headers": {"x": 2}, "body": 1, "body_file": "b"}"#,
        )]);
        for part in ["a.request.json", "\"boddy\"", "query is 7", "headers.x is 2", "not both"] {
            assert!(error.contains(part), "{part} in {error}");
        }
        let error = refused(&[("a.request.json", r#"{"body_file": "b.bin"}"#)]);
        assert!(error.contains("body_file") && error.contains("b.bin"), "{error}");
        let error = refused(&[("a.request.json", r#"{"query": "a b"}"#)]);
        assert!(error.contains("query is \"a b\""), "{error}");
        let error = refused(&[("a.png", ""), ("a.jpg", "")]);
        assert!(error.contains("a.jpg and a.png") && error.contains("a.expected.json"), "{error}");
        let error = refused(&[("a.png", ""), ("b.expected.json", "{}")]);
        assert!(error.contains("b.expected.json") && error.contains("no request \"b\""), "{error}");
        assert!(refused(&[]).contains("has no requests"));
    }

    #[test]
    fn a_file_whose_name_is_no_text_is_named() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("a.json"), "[1]").unwrap();
        let name = |bytes| folder.path().join(OsStr::from_bytes(bytes));
        fs::write(name(b".caf\xe9.json.swp"), "").unwrap();
        fs::create_dir(name(b"caf\xe9s")).unwrap();
        assert_eq!(Samples::read(folder.path()).unwrap().list.len(), 1);
        fs::write(name(b"caf\xe9.json"), "[1]").unwrap();
        let error = format!("{:#}", Samples::read(folder.path()).unwrap_err());
        assert!(error.ends_with("/caf\u{fffd}.json: its name is not UTF-8: rename it"), "{error}");
    }

    #[test]
    fn links_that_lead_out_of_the_folder_are_refused() {
        let outer = tempfile::tempdir().unwrap();
        let folder = outer.path().join("requests");
        fs::create_dir(&folder).unwrap();
        fs::write(folder.join("a.json"), "[1]").unwrap();
        symlink("a.json", folder.join("b.json")).unwrap();
        assert_eq!(Samples::read(&folder).unwrap().list.len(), 2);
        fs::write(outer.path().join("secret"), "{}").unwrap();
        for (link, to) in [
            ("a.expected.json", "../secret"),
            ("a.expected.json", "../not-yet-there"),
            ("c.request.json", "../secret"),
            ("c.json", "../secret"),
        ] {
            symlink(to, folder.join(link)).unwrap();
            let error = format!("{:#}", Samples::read(&folder).unwrap_err());
            assert!(error.contains(link), "{link} to {to}: {error}");
            fs::remove_file(folder.join(link)).unwrap();
        }
    }
}

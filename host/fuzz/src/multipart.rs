//! Forms: a content type up to the first line end, and then a body.
//!
//! The checks: each part lies in the body, after the part before it; the parts are not more than
//! the limit; and `multer` alone finds the same parts in the same form. An attacker could pass a
//! filter in front of the server if two readers of a form differed. The target does not compare two
//! kinds of forms that `multer` reads against RFC 2046: in a part without a header it takes the
//! first line end for the header's, and it accepts a first delimiter in the middle of a line.

use bytes::Bytes;
use futures_util::stream;
use gristmill_sandbox::FormPart;
use multer::Multipart;

use super::form::split;

/// The most parts of a form.
const PARTS_MAX: usize = 64;

/// The target.
pub fn run(bytes: &[u8]) {
    let end = memchr::memchr(b'\n', bytes).unwrap_or(bytes.len());
    let Ok(content_type) = std::str::from_utf8(&bytes[..end]) else { return };
    let body = Bytes::copy_from_slice(bytes.get(end + 1..).unwrap_or_default());
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    let Ok(parts) = runtime.block_on(split(content_type, body.clone())) else { return };
    assert!(parts.len() <= PARTS_MAX, "{} parts", parts.len());
    let mut after = body.as_ptr() as usize;
    let end = after + body.len();
    for part in &parts {
        let start = part.body.as_ptr() as usize;
        // An empty slice may point anywhere.
        if !part.body.is_empty() {
            assert!(start >= after && start + part.body.len() <= end, "a part is out of place");
            after = start + part.body.len();
        }
    }
    let found: Vec<_> = parts.iter().map(Field::of).collect();
    if found.iter().any(Field::has_no_header) {
        return;
    }
    if let Some(expected) = runtime.block_on(read_by_multer(content_type, &body)) {
        assert_eq!(found, expected, "another reader finds other parts");
    }
}

/// A part, as a plugin sees it.
#[derive(Debug, PartialEq)]
struct Field {
    name: String,
    filename: Option<String>,
    content_type: Option<String>,
    body: Bytes,
}

impl Field {
    fn of(part: &FormPart) -> Self {
        let FormPart { name, filename, content_type, body } = part.clone();
        Self { name, filename, content_type, body }
    }

    fn has_no_header(&self) -> bool {
        self.name.is_empty() && self.filename.is_none() && self.content_type.is_none()
    }
}

/// The parts that `multer` finds in the whole body. None if it refuses the form, or would look for
/// its beginning.
async fn read_by_multer(content_type: &str, body: &Bytes) -> Option<Vec<Field>> {
    let boundary = multer::parse_boundary(content_type).ok()?;
    body.strip_prefix(b"--")?.strip_prefix(boundary.as_bytes())?;
    let body = stream::iter([Ok::<_, std::io::Error>(body.clone())]);
    let mut form = Multipart::new(body, boundary);
    let mut fields = Vec::new();
    while let Some(field) = form.next_field().await.ok()? {
        let name = field.name().unwrap_or_default().to_owned();
        let filename = field.file_name().map(str::to_owned);
        let content_type = field.content_type().map(|mime| mime.essence_str().to_owned());
        let body = field.bytes().await.ok()?;
        fields.push(Field { name, filename, content_type, body });
    }
    Some(fields)
}

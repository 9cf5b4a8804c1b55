//! Forms: finding the parts of a multipart body.
//!
//! This module finds where parts begin and end. A body can be large, so it is searched in pieces
//! between which other tasks run, and it is not copied. `multer` reads the headers of the parts: it
//! gets a form with the same headers and empty parts.

use std::ops::Range;

use bytes::Bytes;
use futures_util::stream;
use gristmill_core::ErrorCode;
use gristmill_sandbox::FormPart;
use gristmill_transport::Problem;
use gristmill_transport::body::Turns;
use memchr::memmem::Finder;
use multer::Multipart;

/// The most parts of a form.
const PARTS_MAX: usize = 64;

/// The longest header of a part, in bytes.
const HEADER_BYTES_MAX: usize = 16 << 10;

/// The most bytes that are searched before other tasks run.
const PIECE_BYTES: usize = 64 << 10;

const BLANK_LINE: &[u8] = b"\r\n\r\n";

/// Split a `body` of this content type into its parts.
///
/// # Errors
/// The content type has no boundary, or the body is not such a form.
pub(super) async fn split(content_type: &str, body: Bytes) -> Result<Vec<FormPart>, Problem> {
    let boundary = multer::parse_boundary(content_type).map_err(unreadable)?;
    let places = places(&body, &boundary).await?;
    let mut headers = Vec::new();
    for PartSpan { header, .. } in &places {
        headers.extend_from_slice(b"--");
        headers.extend_from_slice(boundary.as_bytes());
        headers.extend_from_slice(&body[header.clone()]);
        headers.extend_from_slice(b"\r\n");
    }
    headers.extend_from_slice(format!("--{boundary}--\r\n").as_bytes());
    let headers = stream::iter([Ok::<_, std::io::Error>(headers)]);
    let mut form = Multipart::new(headers, boundary);
    let mut parts = Vec::with_capacity(places.len());
    for PartSpan { data, .. } in places {
        let part = form.next_field().await.map_err(unreadable)?;
        let part = part.ok_or_else(|| unreadable("a part has no header"))?;
        parts.push(FormPart {
            name: part.name().unwrap_or_default().to_owned(),
            filename: part.file_name().map(str::to_owned),
            content_type: part.content_type().map(|mime| mime.essence_str().to_owned()),
            body: body.slice(data),
        });
    }
    Ok(parts)
}

/// The position of a part in the body.
struct PartSpan {
    /// From the end of the boundary to the end of the blank line.
    header: Range<usize>,
    data: Range<usize>,
}

async fn places(body: &[u8], boundary: &str) -> Result<Vec<PartSpan>, Problem> {
    let delimiter = format!("\r\n--{boundary}");
    let mut search = Search { body, delimiter: Finder::new(&delimiter), turns: Turns::default() };
    // The first delimiter of a body has no line end before it.
    let first = &delimiter[2..];
    let mut next = match body.starts_with(first.as_bytes()) {
        true => first.len(),
        false => search.delimiter(0).await?.end,
    };
    let mut places = Vec::new();
    while !body[next..].starts_with(b"--") {
        if places.len() == PARTS_MAX {
            let detail = format!("the multipart body has more than {PARTS_MAX} parts");
            return Err(Problem::new(ErrorCode::InvalidRequest, detail));
        }
        let most = &body[next..body.len().min(next + HEADER_BYTES_MAX)];
        let blank = memchr::memmem::find(most, BLANK_LINE);
        let blank = blank.ok_or_else(|| unreadable("a part's header has no end"))?;
        let header = next..next + blank + BLANK_LINE.len();
        let delimiter = search.delimiter(header.end).await?;
        places.push(PartSpan { data: header.end..delimiter.start, header });
        next = delimiter.end;
    }
    Ok(places)
}

/// A search for the delimiters of a form.
struct Search<'a> {
    body: &'a [u8],
    delimiter: Finder<'a>,
    turns: Turns,
}

impl Search<'_> {
    /// The first delimiter from `start` on.
    async fn delimiter(&mut self, start: usize) -> Result<Range<usize>, Problem> {
        let len = self.delimiter.needle().len();
        for start in (start..self.body.len()).step_by(PIECE_BYTES) {
            self.turns.next().await;
            self.turns.took(PIECE_BYTES);
            let piece = &self.body[start..self.body.len().min(start + PIECE_BYTES + len - 1)];
            if let Some(at) = self.delimiter.find(piece) {
                return Ok(start + at..start + at + len);
            }
        }
        Err(unreadable("it does not end with its boundary"))
    }
}

fn unreadable(error: impl std::fmt::Display) -> Problem {
    let detail = format!("the multipart body cannot be read: {error}");
    Problem::new(ErrorCode::InvalidRequest, detail)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TYPE: &str = "multipart/form-data; boundary=b";

    async fn parts(body: impl AsRef<[u8]>) -> Result<Vec<FormPart>, String> {
        let body = Bytes::copy_from_slice(body.as_ref());
        split(TYPE, body).await.map_err(|problem| problem.detail)
    }

    #[tokio::test]
    async fn forms_are_split_into_their_parts() {
        let form = "--b\r\ncontent-disposition: form-data; name=\"photo\"; filename=\"a.png\"\r\n\
                    content-type: image/png\r\n\r\nPNG\r\n\
                    --b\r\nContent-Disposition: form-data; name=\"note\"\r\n\r\n\r\n--b--\r\n";
        for form in [form.to_owned(), format!("\r\n{form}"), format!("a preamble\r\n{form}")] {
            let parts = parts(form).await.unwrap();
            let [photo, note] = &parts[..] else { panic!("{} parts", parts.len()) };
            assert_eq!((photo.name.as_str(), &photo.body[..]), ("photo", &b"PNG"[..]));
            assert_eq!(photo.filename.as_deref(), Some("a.png"));
            assert_eq!(photo.content_type.as_deref(), Some("image/png"));
            assert_eq!((note.name.as_str(), note.filename.as_deref()), ("note", None));
            assert!(note.body.is_empty());
        }
        assert!(parts("--b--\r\n").await.unwrap().is_empty());
    }

    #[tokio::test]
    async fn parts_are_not_copied() {
        let data: Vec<u8> = (0..300_000_u32).map(|index| (index % 251) as u8).collect();
        let head = b"--b\r\ncontent-disposition: form-data; name=\"photo\"\r\n\r\n";
        // The delimiter crosses the boundary of two pieces, one byte further each time.
        for len in data.len() - 10..data.len() {
            let body = Bytes::from([head, &data[..len], b"\r\n--b--"].concat());
            let parts = split(TYPE, body.clone()).await.ok().unwrap();
            assert_eq!(parts[0].body, data[..len]);
            assert_eq!(parts[0].body.as_ptr(), body[head.len()..].as_ptr());
        }
    }

    #[tokio::test]
    async fn bodies_that_are_not_forms_are_refused() {
        let head = "--b\r\ncontent-disposition: form-data; name=\"x\"\r\n";
        let long = format!("{head}x: {}\r\n\r\n\r\n--b--", "y".repeat(HEADER_BYTES_MAX));
        for (body, why) in [
            (String::new(), "boundary"),
            ("no form at all".into(), "boundary"),
            (head.into(), "a part's header has no end"),
            (format!("{head}\r\n data"), "boundary"),
            (long, "a part's header has no end"),
            ("--b nonsense\r\n\r\n\r\n--b--".into(), ""),
            (format!("{head}\r\n\r\n").repeat(PARTS_MAX + 1) + "--b--", "more than 64 parts"),
        ] {
            let detail = parts(&body).await.err();
            let detail = detail.unwrap_or_else(|| panic!("{body:.60}"));
            assert!(detail.contains(why), "{detail}");
        }
        assert!(split("multipart/form-data", Bytes::new()).await.is_err());
    }
}

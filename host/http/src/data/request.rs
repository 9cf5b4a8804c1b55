//! What a plugin sees of a request.

use std::io;
use std::sync::Arc;
use std::task::{Poll, ready};

use bytes::{Bytes, BytesMut};
use futures_util::Stream;
use futures_util::stream::poll_fn;
use gristmill_core::{ByteBudget, ErrorCode};
use gristmill_sandbox::{Part, Request};
use http::header::CONTENT_TYPE;
use http::request::Parts;
use http::{HeaderMap, HeaderName};
use multer::{Constraints, Multipart, SizeLimit};

use crate::body::{self, Turns};
use crate::method::Refusal;
use crate::percent;
use crate::problem::Problem;

/// The most parts of a multipart body.
const PARTS_MAX: usize = 64;

/// Bytes of a multipart body that are looked at in one go.
const PIECE_BYTES: usize = 64 << 10;

/// The request for the preprocessor.
pub(super) async fn for_plugin(
    head: &Parts,
    body: Bytes,
    (settings, budget): (Arc<str>, &Arc<ByteBudget>),
) -> Result<Request, Refusal> {
    let full_type = head.headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let content_type =
        full_type.map(|value| value.split(';').next().unwrap_or_default().trim().to_lowercase());
    let (body, parts) = match full_type {
        Some(full) if content_type.as_deref() == Some("multipart/form-data") => {
            (Bytes::new(), split(full, body, budget).await?)
        }
        _ => (body, Vec::new()),
    };
    Ok(Request {
        content_type,
        headers: visible(&head.headers),
        query: query(head.uri.query().unwrap_or_default()),
        settings,
        body,
        parts,
    })
}

/// The headers a plugin may see.
fn visible(headers: &HeaderMap) -> Vec<(String, String)> {
    let allowed = |name: &HeaderName| {
        let name = name.as_str();
        matches!(name, "accept" | "accept-language" | "user-agent") || name.starts_with("x-")
    };
    let visible = headers.iter().filter(|(name, _)| allowed(name));
    visible
        .filter_map(|(name, value)| {
            Some((name.as_str().to_owned(), value.to_str().ok()?.to_owned()))
        })
        .collect()
}

fn query(query: &str) -> Vec<(String, String)> {
    let decode = |text: &str| percent::decode(&text.replace('+', " ")).into_owned();
    let pairs = query.split('&').filter(|pair| !pair.is_empty());
    pairs
        .map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            (decode(name), decode(value))
        })
        .collect()
}

/// The parts of a body, copied. They count against the budget, beside the body while that is there.
async fn split(
    content_type: &str,
    body: Bytes,
    budget: &Arc<ByteBudget>,
) -> Result<Vec<Part>, Refusal> {
    let invalid = |error: multer::Error| {
        let detail = format!("the multipart body cannot be read: {error}");
        Refusal::from(Problem::new(ErrorCode::InvalidRequest, detail))
    };
    let boundary = multer::parse_boundary(content_type).map_err(invalid)?;
    let whole = body.len() as u64;
    let limits = Constraints::new().size_limit(SizeLimit::new().whole_stream(whole));
    let mut multipart = Multipart::with_constraints(in_pieces(body), boundary, limits);
    let mut parts = Vec::new();
    while let Some(mut field) = multipart.next_field().await.map_err(invalid)? {
        if parts.len() == PARTS_MAX {
            let detail = format!("the multipart body has more than {PARTS_MAX} parts");
            return Err(Problem::new(ErrorCode::InvalidRequest, detail).into());
        }
        let name = field.name().unwrap_or_default().to_owned();
        let filename = field.file_name().map(str::to_owned);
        let content_type = field.content_type().map(|mime| mime.essence_str().to_owned());
        let (held, mut bytes) = (budget.hold(0), BytesMut::new());
        while let Some(piece) = field.chunk().await.map_err(invalid)? {
            held.try_add(piece.len()).map_err(Problem::from)?;
            bytes.extend_from_slice(&piece);
        }
        let body = body::kept(bytes.freeze(), Some(held));
        parts.push(Part { name, filename, content_type, body });
    }
    Ok(parts)
}

/// The body piece by piece, between which others go on: its reader copies each.
fn in_pieces(body: Bytes) -> impl Stream<Item = io::Result<Bytes>> + Send {
    let (mut rest, mut turns) = (body, Turns::default());
    poll_fn(move |context| {
        ready!(turns.poll_next(context));
        let piece = rest.split_to(rest.len().min(PIECE_BYTES));
        turns.took(piece.len());
        Poll::Ready((!piece.is_empty()).then_some(Ok(piece)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_are_decoded() {
        let expected = [("a", "1 2"), ("b", "ä/"), ("c", ""), ("d", "%zz")];
        let expected = expected.map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!(query("a=1+2&b=%C3%A4%2f&&c&d=%zz"), expected);
    }

    #[tokio::test]
    async fn multipart_bodies_come_apart() {
        let body = "--b\r\ncontent-disposition: form-data; name=\"photo\"; filename=\"a.png\"\r\n\
                    content-type: image/png\r\n\r\nPNG\r\n--b--\r\n";
        let kind = "multipart/form-data; boundary=b";
        let budget = ByteBudget::new(1 << 20);
        let split = |kind, body: &str| split(kind, body.to_owned().into(), &budget);
        let Ok(parts) = split(kind, body).await else { panic!("not split") };
        assert_eq!((parts[0].name.as_str(), &parts[0].body[..]), ("photo", &b"PNG"[..]));
        assert_eq!(parts[0].content_type.as_deref(), Some("image/png"));
        assert!(split("multipart/form-data", body).await.is_err());
        assert!(split(kind, &body[..60]).await.is_err());
    }

    #[test]
    fn credentials_are_not_for_plugins() {
        let mut headers = HeaderMap::new();
        headers.insert("authorization", "Bearer secret".parse().unwrap());
        headers.insert("cookie", "a=b".parse().unwrap());
        headers.insert("x-trace", "1".parse().unwrap());
        assert_eq!(visible(&headers), [("x-trace".to_owned(), "1".to_owned())]);
    }
}

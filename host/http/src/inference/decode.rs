//! Decompressing a body by its Content-Encoding.

use bytes::Bytes;
use gristmill_core::{ErrorCode, Name};
use gristmill_transport::body::ReadPlan;
use gristmill_transport::{Encoding, Problem};
use http::header::CONTENT_ENCODING;
use http::{HeaderMap, HeaderValue};

use super::Inference;

/// The longest compressed body, in bytes, that is inflated on a serving thread.
const INFLATED_INLINE_BYTES_MAX: usize = 4 << 10;

impl Inference {
    /// The body, which was read by this plan, without the encoding that `headers` name.
    ///
    /// # Errors
    /// The encoding is not supported, the body is not valid in it or too large, or the budget has
    /// no room for it.
    pub(crate) async fn decoded(
        &self,
        headers: &HeaderMap,
        body: Bytes,
        plan: ReadPlan<'_>,
        tenant: Option<&Name>,
    ) -> Result<Bytes, Problem> {
        let ReadPlan { bytes: limit, budget, .. } = plan;
        let mut given_encodings = headers.get_all(CONTENT_ENCODING).iter();
        let Some(first) = given_encodings.next() else { return Ok(body) };
        let encoding = match (given_encodings.next(), Encoding::of(first.as_bytes())) {
            (None, Some(encoding)) => encoding,
            (None, None) if first.as_bytes().eq_ignore_ascii_case(b"identity") => return Ok(body),
            _ => return Err(unknown_encoding(headers)),
        };
        if body.len() <= INFLATED_INLINE_BYTES_MAX {
            return encoding.decompress(&body, limit, budget);
        }
        let budget = budget.cloned();
        let decompress = move || encoding.decompress(&body, limit, budget.as_ref());
        self.offload().run(tenant, decompress).await?
    }
}

fn unknown_encoding(headers: &HeaderMap) -> Problem {
    let given_encodings = headers.get_all(CONTENT_ENCODING).iter().map(HeaderValue::as_bytes);
    let given_encodings = given_encodings.collect::<Vec<_>>().join(&b", "[..]);
    let given_encodings = String::from_utf8_lossy(&given_encodings);
    let detail = format!("content-encoding is {given_encodings:?}: gzip and deflate are supported");
    Problem::new(ErrorCode::UnsupportedMediaType, detail)
}

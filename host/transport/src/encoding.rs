//! Compressed bodies: those of requests on every data plane, and those of answers on `/v2`.

use std::io::{Read, Write};
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use flate2::Compression;
use flate2::bufread::{MultiGzDecoder, ZlibDecoder};
use flate2::write::{GzEncoder, ZlibEncoder};
use gristmill_core::{ByteBudget, ErrorCode};
use http::HeaderMap;
use http::header::ACCEPT_ENCODING;

use crate::body;
use crate::problem::Problem;

/// Maximum bytes that are decompressed before they are counted.
const INFLATED_BYTES: usize = 64 << 10;

/// The compression of a body.
#[derive(Clone, Copy)]
pub enum Encoding {
    /// `gzip`.
    Gzip,
    /// `deflate`.
    Deflate,
}

impl Encoding {
    /// The encoding with this name in a header, if it is supported.
    pub fn of(name: &[u8]) -> Option<Self> {
        let is = |encoding: &str| name.eq_ignore_ascii_case(encoding.as_bytes());
        if is("gzip") || is("x-gzip") {
            return Some(Self::Gzip);
        }
        is("deflate").then_some(Self::Deflate)
    }

    /// The encoding with the highest weight in `Accept-Encoding`, the first of several. Weight 0
    /// means that the client refuses it.
    pub fn accepted(headers: &HeaderMap) -> Option<Self> {
        let accepted = headers.get(ACCEPT_ENCODING)?.to_str().ok()?;
        let weighed = accepted.split(',').filter_map(|part| {
            let (name, weight) = part.split_once(';').unwrap_or((part, "q=1"));
            let weight: f32 = weight.trim().get(2..)?.parse().ok()?;
            Some((Self::of(name.trim().as_bytes())?, weight)).filter(|(_, weight)| *weight > 0.0)
        });
        let best = weighed.reduce(|best, other| if other.1 > best.1 { other } else { best });
        best.map(|(encoding, _)| encoding)
    }

    /// The name in a header.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Gzip => "gzip",
            Self::Deflate => "deflate",
        }
    }

    /// Decompress `body`. Its bytes are counted while they are made.
    ///
    /// # Errors
    /// `invalid_request` if the body is not valid, `body_too_large` over `limit`, `tenant_busy` if
    /// the budget is used up.
    pub fn decompress(
        self,
        mut body: &[u8],
        limit: usize,
        budget: Option<&Arc<ByteBudget>>,
    ) -> Result<Bytes, Problem> {
        let wrong = |why: String| {
            let detail = format!("the body is not valid {}: {why}", self.as_str());
            Problem::new(ErrorCode::InvalidRequest, detail)
        };
        let (mut all, held) = (BytesMut::new(), budget.map(|budget| budget.hold(0)));
        let mut part = vec![0; INFLATED_BYTES];
        let mut reader: Box<dyn Read> = match self {
            Self::Gzip => Box::new(MultiGzDecoder::new(&mut body)),
            Self::Deflate => Box::new(ZlibDecoder::new(&mut body)),
        };
        loop {
            let len = reader.read(&mut part).map_err(|error| wrong(error.to_string()))?;
            if len == 0 {
                break;
            }
            if all.len() + len > limit {
                let detail = format!("the decompressed body is over the limit of {limit} bytes");
                return Err(Problem::new(ErrorCode::BodyTooLarge, detail));
            }
            body::count(held.as_ref(), len)?;
            all.extend_from_slice(&part[..len]);
        }
        drop(reader);
        if !body.is_empty() {
            return Err(wrong(format!("{} bytes follow it", body.len())));
        }
        Ok(body::with_held(all.freeze(), held))
    }

    /// Compress `parts` into one body. Each part is dropped as soon as it is compressed.
    ///
    /// # Errors
    /// The compression fails.
    pub fn compress(self, parts: Vec<Bytes>) -> std::io::Result<Vec<u8>> {
        fn write_all(writer: &mut impl Write, parts: Vec<Bytes>) -> std::io::Result<()> {
            parts.into_iter().try_for_each(|part| writer.write_all(&part))
        }
        match self {
            Self::Gzip => {
                let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
                write_all(&mut encoder, parts)?;
                encoder.finish()
            }
            Self::Deflate => {
                let mut encoder = ZlibEncoder::new(Vec::new(), Compression::fast());
                write_all(&mut encoder, parts)?;
                encoder.finish()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_encoding_with_the_highest_weight_is_taken() {
        let cases = [
            ("gzip", Some("gzip")),
            ("DEFLATE, gzip", Some("deflate")),
            ("deflate;q=0.1, gzip;q=1", Some("gzip")),
            ("br, gzip; q=0, deflate;q=0.001", Some("deflate")),
            ("gzip;q=0.000", None),
            ("br, identity, *", None),
            ("gzip;q=, deflate;level=1", None),
        ];
        for (accepted, expected) in cases {
            let headers = [(ACCEPT_ENCODING, accepted.parse().unwrap())].into_iter().collect();
            assert_eq!(Encoding::accepted(&headers).map(Encoding::as_str), expected, "{accepted}");
        }
    }
}

//! A JSON document that is made for a plugin, within the limit on bodies.
//!
//! Invariant: its memory counts against the tenant's budget before it is taken.

use std::sync::Arc;

use bytes::Bytes;
use gristmill_core::{ByteBudget, Dtype, ErrorCode, HeldBytes};
use gristmill_transport::Problem;
use serde::Serialize;

/// The memory that is taken first.
const CAPACITY_MIN: usize = 512;

/// The bytes of a text that are written at once. JSON may make them six times as long.
const PIECE_BYTES: usize = 16 << 10;

/// A document that is being written.
pub(super) struct JsonBody {
    bytes: Vec<u8>,
    limit: usize,
    held: HeldBytes,
    /// Memory for single values.
    scratch: Vec<u8>,
}

impl JsonBody {
    /// An empty document, which becomes at most `limit` bytes long.
    pub(super) fn new(limit: usize, budget: &Arc<ByteBudget>) -> Self {
        Self { bytes: Vec::new(), limit, held: budget.hold(0), scratch: Vec::new() }
    }

    /// Append a piece of JSON.
    ///
    /// # Errors
    /// The document becomes too long, or the budget has no room for it.
    pub(super) fn push(&mut self, piece: &[u8]) -> Result<(), Problem> {
        let (needed, limit, capacity) =
            (self.bytes.len() + piece.len(), self.limit, self.bytes.capacity());
        if needed > limit {
            let detail = format!("the row as JSON is over the pipeline's limit of {limit} bytes");
            return Err(Problem::new(ErrorCode::BodyTooLarge, detail));
        }
        if needed > capacity {
            let larger = needed.max(2 * capacity).max(CAPACITY_MIN);
            self.held.try_add(larger - capacity)?;
            self.bytes.reserve_exact(larger - self.bytes.len());
        }
        self.bytes.extend_from_slice(piece);
        Ok(())
    }

    /// Append a text.
    ///
    /// # Errors
    /// As [`push`](Self::push).
    pub(super) fn text(&mut self, text: &str) -> Result<(), Problem> {
        self.push(b"\"")?;
        let mut rest = text;
        while !rest.is_empty() {
            let (piece, after) = rest.split_at(rest.floor_char_boundary(PIECE_BYTES));
            let quoted = self.written(&piece);
            self.push(&quoted[1..quoted.len() - 1])?;
            self.scratch = quoted;
            rest = after;
        }
        self.push(b"\"")
    }

    /// Append the number or the boolean with these bytes.
    ///
    /// # Errors
    /// As [`push`](Self::push), and that JSON does not have the number.
    pub(super) fn number(&mut self, datatype: Dtype, element: &[u8]) -> Result<(), Problem> {
        macro_rules! of {
            ($type:ty) => {
                self.written(&<$type>::from_le_bytes(array(element)))
            };
        }
        let written = match datatype {
            Dtype::Bool => self.written(&(element != [0])),
            Dtype::Uint8 => of!(u8),
            Dtype::Int8 => of!(i8),
            Dtype::Uint16 => of!(u16),
            Dtype::Int16 => of!(i16),
            Dtype::Uint32 => of!(u32),
            Dtype::Int32 => of!(i32),
            Dtype::Uint64 => of!(u64),
            Dtype::Int64 => of!(i64),
            Dtype::Float32 => {
                let value = f32::from_le_bytes(array(element));
                finite(value.into())?;
                self.written(&value)
            }
            // Signatures have no other datatypes.
            Dtype::Float64 | Dtype::Float16 | Dtype::Bfloat16 | Dtype::String => {
                let value = f64::from_le_bytes(array(element));
                finite(value)?;
                self.written(&value)
            }
        };
        let pushed = self.push(&written);
        self.scratch = written;
        pushed
    }

    /// Append lists of these sizes, whose elements `element` appends; one element without sizes.
    ///
    /// # Errors
    /// As [`push`](Self::push), and those of `element`.
    pub(super) fn lists(
        &mut self,
        sizes: &[usize],
        element: &mut dyn FnMut(&mut Self) -> Result<(), Problem>,
    ) -> Result<(), Problem> {
        let [size, rest @ ..] = sizes else { return element(self) };
        for index in 0..*size {
            self.push(if index == 0 { b"[" } else { b"," })?;
            self.lists(rest, element)?;
        }
        self.push(b"]")
    }

    /// The document, which counts until it is dropped.
    pub(super) fn into_bytes(self) -> Bytes {
        let Self { bytes, held, .. } = self;
        held.attach_to(bytes.into())
    }

    /// A value as JSON, in the memory for single values.
    fn written(&mut self, value: &impl Serialize) -> Vec<u8> {
        let mut written = std::mem::take(&mut self.scratch);
        written.clear();
        // Such values and writing to a vector do not fail.
        let _ = serde_json::to_writer(&mut written, value);
        written
    }
}

/// Check that JSON has this number.
fn finite(value: f64) -> Result<(), Problem> {
    match value.is_finite() {
        true => Ok(()),
        false => {
            let detail = format!("JSON, which the pipeline reads, has no number {value}");
            Err(Problem::new(ErrorCode::InvalidRequest, detail))
        }
    }
}

/// The bytes of an element; zeros if there is another number of them.
fn array<const SIZE: usize>(element: &[u8]) -> [u8; SIZE] {
    element.try_into().unwrap_or([0; SIZE])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn body(write: impl FnOnce(&mut JsonBody) -> Result<(), Problem>) -> Result<String, Problem> {
        let budget = ByteBudget::new(1 << 20);
        let mut body = JsonBody::new(100_000, &budget);
        write(&mut body)?;
        let bytes = body.into_bytes();
        let text = String::from_utf8(bytes.to_vec()).unwrap();
        drop(bytes);
        assert_eq!(budget.held(), 0);
        Ok(text)
    }

    #[test]
    fn values_are_written_as_json() {
        let text = "a\"\n\u{e4}".repeat(10_000);
        let written = body(|body| body.text(&text)).unwrap();
        assert_eq!(serde_json::from_str::<String>(&written).unwrap(), text);
        for (datatype, element, expected) in [
            (Dtype::Bool, &[1][..], "true"),
            (Dtype::Int8, &[255][..], "-1"),
            (Dtype::Uint64, &u64::MAX.to_le_bytes()[..], "18446744073709551615"),
            (Dtype::Float32, &0.1_f32.to_le_bytes()[..], "0.1"),
            (Dtype::Float64, &0.1_f64.to_le_bytes()[..], "0.1"),
        ] {
            let written = body(|body| body.number(datatype, element)).unwrap();
            assert_eq!(written, expected);
        }
        let mut next = 0;
        let mut count = |body: &mut JsonBody| {
            next += 1;
            body.number(Dtype::Uint8, &[next])
        };
        assert_eq!(body(|body| body.lists(&[2, 2], &mut count)).unwrap(), "[[1,2],[3,4]]");
    }

    #[test]
    fn what_has_no_place_is_refused() {
        let nan = f32::NAN.to_le_bytes();
        let refused = body(|body| body.number(Dtype::Float32, &nan)).unwrap_err();
        assert_eq!(refused.code, ErrorCode::InvalidRequest, "{}", refused.detail);
        let long = body(|body| body.text(&"x".repeat(100_000))).unwrap_err();
        assert_eq!(long.code, ErrorCode::BodyTooLarge);
        let budget = ByteBudget::new(1 << 10);
        let mut small = JsonBody::new(1 << 20, &budget);
        let refused = small.text(&"x".repeat(2000)).unwrap_err();
        assert_eq!(refused.code, ErrorCode::TenantBusy);
    }
}

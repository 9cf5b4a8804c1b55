//! Protobuf's wire format. Source: <https://protobuf.dev/programming-guides/encoding/>.

/// A message that is not well formed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("it is not a well-formed protobuf message")]
pub struct Malformed;

/// A field of a message.
#[derive(Clone, Copy, Debug)]
pub(super) struct Field<'a> {
    pub(super) number: u64,
    pub(super) value: Value<'a>,
    /// All of its bytes.
    pub(super) raw: &'a [u8],
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Value<'a> {
    Varint(u64),
    /// A text, bytes, a message, or packed numbers.
    Bytes(&'a [u8]),
    /// Four or eight bytes.
    Fixed,
}

impl<'a> Field<'a> {
    /// Its bytes; none if it is a number.
    pub(super) fn bytes(&self) -> &'a [u8] {
        match self.value {
            Value::Bytes(bytes) => bytes,
            Value::Varint(_) | Value::Fixed => &[],
        }
    }

    /// Its text. Bytes that are not UTF-8 are replaced.
    pub(super) fn text(&self) -> String {
        String::from_utf8_lossy(self.bytes()).into_owned()
    }

    /// Its numbers: one, or those that are packed in it.
    pub(super) fn numbers(&self) -> Result<Vec<u64>, Malformed> {
        match self.value {
            Value::Varint(number) => Ok(vec![number]),
            Value::Fixed => Err(Malformed),
            Value::Bytes(mut packed) => {
                let mut numbers = Vec::new();
                while !packed.is_empty() {
                    numbers.push(varint(&mut packed)?);
                }
                Ok(numbers)
            }
        }
    }
}

/// The fields of a message, in order. The first error is the last item.
pub(super) fn fields(mut rest: &[u8]) -> impl Iterator<Item = Result<Field<'_>, Malformed>> {
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let field = field(&mut rest);
        if field.is_err() {
            rest = &[];
        }
        Some(field)
    })
}

fn field<'a>(rest: &mut &'a [u8]) -> Result<Field<'a>, Malformed> {
    let whole = *rest;
    let tag = varint(rest)?;
    let value = match tag & 7 {
        0 => Value::Varint(varint(rest)?),
        1 => {
            take(rest, 8)?;
            Value::Fixed
        }
        2 => {
            let len = varint(rest)?;
            Value::Bytes(take(rest, len)?)
        }
        5 => {
            take(rest, 4)?;
            Value::Fixed
        }
        // Groups, which ONNX does not have.
        _ => return Err(Malformed),
    };
    let raw = &whole[..whole.len() - rest.len()];
    Ok(Field { number: tag >> 3, value, raw })
}

fn take<'a>(rest: &mut &'a [u8], len: u64) -> Result<&'a [u8], Malformed> {
    let len = usize::try_from(len).map_err(|_| Malformed)?;
    let (taken, after) = rest.split_at_checked(len).ok_or(Malformed)?;
    *rest = after;
    Ok(taken)
}

fn varint(rest: &mut &[u8]) -> Result<u64, Malformed> {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let byte = take(rest, 1)?[0];
        number |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Ok(number);
        }
    }
    Err(Malformed)
}

/// Append a field that has bytes.
pub(super) fn put_bytes(message: &mut Vec<u8>, number: u64, bytes: &[u8]) {
    put_varint(message, number << 3 | 2);
    put_varint(message, bytes.len() as u64);
    message.extend_from_slice(bytes);
}

/// Append a field that is a number.
pub(super) fn put_number(message: &mut Vec<u8>, number: u64, value: u64) {
    put_varint(message, number << 3);
    put_varint(message, value);
}

fn put_varint(message: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        message.push(number as u8 | 0x80);
        number >>= 7;
    }
    message.push(number as u8);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_read_as_they_were_written() {
        let mut message = Vec::new();
        put_number(&mut message, 1, u64::MAX);
        put_bytes(&mut message, 200, b"grain");
        message.extend_from_slice(&[3 << 3 | 5, 1, 2, 3, 4, 4 << 3 | 1, 1, 2, 3, 4, 5, 6, 7, 8]);
        let read: Vec<_> = fields(&message).collect::<Result<_, _>>().unwrap();
        let numbers: Vec<_> = read.iter().map(|field| field.number).collect();
        assert_eq!(numbers, [1, 200, 3, 4]);
        assert_eq!((read[0].numbers(), read[1].bytes()), (Ok(vec![u64::MAX]), &b"grain"[..]));
        let whole: Vec<_> = read.iter().flat_map(|field| field.raw).copied().collect();
        assert_eq!(whole, message);
        for bad in [&message[..message.len() - 1], &[11], &[0xff; 11], &[10, 5, 1]] {
            assert!(fields(bad).any(|field| field.is_err()), "{bad:?}");
        }
    }
}

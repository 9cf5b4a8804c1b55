//! Base64 and data URLs, with the host's rules and texts.

/// The bytes that `text` stands for, or what is wrong with it.
pub(super) fn decode(text: &str) -> Result<Vec<u8>, String> {
    let start = start_of_data(text)?;
    let (mut bytes, mut bits, mut count, mut padding) = (Vec::new(), 0_u32, 0, 0);
    for (at, character) in text[start..].char_indices() {
        match character {
            ' ' | '\t' | '\r' | '\n' => continue,
            '=' if count + padding >= 2 && count + padding < 4 => {
                padding += 1;
                continue;
            }
            _ => {}
        }
        let Some(value) = value_of(character).filter(|_| padding == 0) else {
            let (at, after) = (start + at, if padding > 0 { " after its end" } else { "" });
            return Err(format!("base64 has {character:?} at position {at}{after}"));
        };
        bits = bits << 6 | value;
        count += 1;
        if count == 4 {
            bytes.extend_from_slice(&bits.to_be_bytes()[1..]);
            (bits, count) = (0, 0);
        }
    }
    match count {
        0 => {}
        1 => return Err("base64 ends within a group of four characters".into()),
        _ => bytes.extend_from_slice(&(bits << (32 - 6 * count)).to_be_bytes()[..count - 1]),
    }
    Ok(bytes)
}

/// Where the data of a data URL begin; 0 in other texts.
fn start_of_data(text: &str) -> Result<usize, String> {
    if !text.get(..5).is_some_and(|scheme| scheme.eq_ignore_ascii_case("data:")) {
        return Ok(0);
    }
    let comma = text.find(',').ok_or("a data URL without a comma")?;
    match text[5..comma].rsplit(';').next() {
        Some(last) if last.trim().eq_ignore_ascii_case("base64") => Ok(comma + 1),
        _ => Err("a data URL whose data are not in base64: it has no \";base64\"".into()),
    }
}

fn value_of(character: char) -> Option<u32> {
    Some(match character {
        'A'..='Z' => character as u32 - 'A' as u32,
        'a'..='z' => character as u32 - 'a' as u32 + 26,
        '0'..='9' => character as u32 - '0' as u32 + 52,
        '+' | '-' => 62,
        '/' | '_' => 63,
        _ => return None,
    })
}

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// `bytes` in base64.
pub(super) fn encode(bytes: &[u8]) -> String {
    let mut text = String::new();
    for group in bytes.chunks(3) {
        let bits = group
            .iter()
            .chain(&[0, 0])
            .take(3)
            .fold(0_usize, |bits, byte| bits << 8 | *byte as usize);
        for place in 0..4 {
            let digit = ALPHABET[bits >> (18 - 6 * place) & 63];
            text.push(if place <= group.len() { digit.into() } else { '=' });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::decode;

    #[test]
    fn what_the_host_reads() {
        for text in ["TWFu", " TW\r\nFu", "data:image/png;base64,TWFu", "DATA:;BASE64,TWFu"] {
            assert_eq!(decode(text).unwrap(), b"Man", "{text}");
        }
        for text in ["TQ==", "TQ", "TQ = ="] {
            assert_eq!(decode(text).unwrap(), b"M", "{text}");
        }
        assert_eq!(decode("TWE=").unwrap(), b"Ma");
        assert_eq!(decode("_-__").unwrap(), decode("/+//").unwrap());
        assert_eq!(decode("").unwrap(), b"");
    }

    #[test]
    fn what_the_host_refuses() {
        assert_eq!(decode("TWF%").unwrap_err(), "base64 has '%' at position 3");
        assert_eq!(decode("TQ==T").unwrap_err(), "base64 has 'T' at position 4 after its end");
        assert_eq!(decode("T===").unwrap_err(), "base64 has '=' at position 1");
        assert!(decode("TWFuT").unwrap_err().contains("within a group"));
        assert!(decode("data:image/png,abc").unwrap_err().contains(";base64"));
        assert!(decode("data:image/png;base64").unwrap_err().contains("without a comma"));
    }
}

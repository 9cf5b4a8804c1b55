//! Base64 and data URLs.
//!
//! More is read than RFC 4648 asks for, because clients send more: both alphabets, white space, and
//! texts without padding. Refuses to know calls and limits.

/// The characters that are read between two questions whether the work may go on.
const CHARACTERS_PER_PART: usize = 256 << 10;

/// Values of characters that have none in base64.
const SPACE: u8 = 0xfd;
const PADDING: u8 = 0xfe;
const NONE: u8 = 0xff;

/// The value of each character.
const VALUES: [u8; 256] = {
    let mut values = [NONE; 256];
    let alphabet = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut value = 0;
    while value < alphabet.len() {
        values[alphabet[value] as usize] = value as u8;
        value += 1;
    }
    // The alphabet for URLs.
    values[b'-' as usize] = 62;
    values[b'_' as usize] = 63;
    values[b'=' as usize] = PADDING;
    let mut at = 0;
    while at < b" \t\r\n".len() {
        values[b" \t\r\n"[at] as usize] = SPACE;
        at += 1;
    }
    values
};

/// Maximum bytes that a text of `length` bytes can stand for.
pub fn bytes_max(length: usize) -> usize {
    length / 4 * 3 + 3
}

/// The bytes that `text` stands for, or what is wrong with it. `may_go_on` is asked between parts.
pub fn decode<E>(
    text: &str,
    may_go_on: impl Fn() -> Result<(), E>,
) -> Result<Result<Vec<u8>, String>, E> {
    let start = match start_of_data(text) {
        Ok(start) => start,
        Err(why) => return Ok(Err(why)),
    };
    let data = &text.as_bytes()[start..];
    let mut bytes = Vec::with_capacity(bytes_max(data.len()));
    // The bits that are read and not yet written, and the characters of the group under way.
    let (mut bits, mut count, mut padding) = (0_u32, 0_u32, 0_u32);
    for (part, characters) in data.chunks(CHARACTERS_PER_PART).enumerate() {
        may_go_on()?;
        for (at, character) in characters.iter().enumerate() {
            let value = VALUES[usize::from(*character)];
            if value < 64 && padding == 0 {
                bits = bits << 6 | u32::from(value);
                count += 1;
                if count == 4 {
                    bytes.extend_from_slice(&bits.to_be_bytes()[1..]);
                    (bits, count) = (0, 0);
                }
                continue;
            }
            match value {
                SPACE => {}
                PADDING if count + padding >= 2 && count + padding < 4 => padding += 1,
                _ => {
                    let at = start + part * CHARACTERS_PER_PART + at;
                    return Ok(Err(unexpected(text, at, padding)));
                }
            }
        }
    }
    match count {
        0 => {}
        1 => return Ok(Err("base64 ends within a group of four characters".into())),
        // 12 or 18 bits are one byte or two.
        _ => {
            bytes.extend_from_slice(&(bits << (32 - 6 * count)).to_be_bytes()[..count as usize - 1])
        }
    }
    Ok(Ok(bytes))
}

/// Where the data of a data URL begin; 0 in other texts.
fn start_of_data(text: &str) -> Result<usize, String> {
    let is_url = text.get(..5).is_some_and(|scheme| scheme.eq_ignore_ascii_case("data:"));
    if !is_url {
        return Ok(0);
    }
    let Some(comma) = text.find(',') else {
        return Err("a data URL without a comma".into());
    };
    let mut parameters = text[5..comma].rsplit(';');
    match parameters.next() {
        Some(last) if last.trim().eq_ignore_ascii_case("base64") => Ok(comma + 1),
        _ => Err("a data URL whose data are not in base64: it has no \";base64\"".into()),
    }
}

fn unexpected(text: &str, at: usize, padding: u32) -> String {
    // Everything before it is ASCII, so it begins at a character.
    let character = text.get(at..).and_then(|rest| rest.chars().next()).unwrap_or('\u{fffd}');
    let after = if padding > 0 { " after its end" } else { "" };
    format!("base64 has {character:?} at position {at}{after}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decoded(text: &str) -> Result<Vec<u8>, String> {
        decode(text, || Ok::<_, std::convert::Infallible>(())).unwrap()
    }

    #[test]
    fn both_alphabets_with_and_without_padding() {
        let all: Vec<u8> = (0..=255).collect();
        let standard = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8gISIjJCUmJygpKissLS4vMDEyMzQ1Njc4\
                        OTo7PD0+P0BBQkNERUZHSElKS0xNTk9QUVJTVFVWV1hZWltcXV5fYGFiY2RlZmdoaWprbG1ub3Bx\
                        cnN0dXZ3eHl6e3x9fn+AgYKDhIWGh4iJiouMjY6PkJGSk5SVlpeYmZqbnJ2en6ChoqOkpaanqKmq\
                        q6ytrq+wsbKztLW2t7i5uru8vb6/wMHCw8TFxsfIycrLzM3Oz9DR0tPU1dbX2Nna29zd3t/g4eLj\
                        5OXm5+jp6uvs7e7v8PHy8/T19vf4+fr7/P3+/w==";
        assert_eq!(decoded(standard).unwrap(), all);
        assert_eq!(decoded(&standard.replace('+', "-").replace('/', "_")).unwrap(), all);
        assert_eq!(decoded(standard.trim_end_matches('=')).unwrap(), all);
        assert_eq!(decoded("TQ==").unwrap(), b"M");
        assert_eq!(decoded("TWE=").unwrap(), b"Ma");
        assert_eq!(decoded(" TW\r\nFu\n").unwrap(), b"Man");
        assert_eq!(decoded("TQ = =").unwrap(), b"M");
        assert_eq!(decoded("").unwrap(), b"");
    }

    #[test]
    fn data_urls() {
        assert_eq!(decoded("data:image/png;base64,TWFu").unwrap(), b"Man");
        assert_eq!(decoded("DATA:;BASE64,TWFu").unwrap(), b"Man");
        assert_eq!(decoded("data:text/plain;charset=utf-8;base64,TQ").unwrap(), b"M");
        assert!(decoded("data:image/png,abc").unwrap_err().contains(";base64"));
        assert!(decoded("data:image/png;base64").unwrap_err().contains("without a comma"));
    }

    #[test]
    fn other_texts_are_refused_by_place() {
        assert_eq!(decoded("TWF%").unwrap_err(), "base64 has '%' at position 3");
        assert_eq!(decoded("TWFuTWFü").unwrap_err(), "base64 has 'ü' at position 7");
        assert_eq!(decoded("data:;base64,*").unwrap_err(), "base64 has '*' at position 13");
        assert_eq!(decoded("TQ==TQ==").unwrap_err(), "base64 has 'T' at position 4 after its end");
        assert!(decoded("T===").unwrap_err().contains("'='"));
        assert!(decoded("=").unwrap_err().contains("'='"));
        assert!(decoded("TWFuT").unwrap_err().contains("within a group"));
        let far = format!("{}!", "A".repeat(CHARACTERS_PER_PART + 1));
        let place = format!("position {}", CHARACTERS_PER_PART + 1);
        assert!(decoded(&far).unwrap_err().ends_with(&place));
    }

    #[test]
    fn decoding_stops_when_it_may_not_go_on() {
        let long = "A".repeat(3 * CHARACTERS_PER_PART);
        let asked = std::cell::Cell::new(0);
        let twice = || {
            asked.set(asked.get() + 1);
            if asked.get() > 2 { Err(()) } else { Ok(()) }
        };
        assert!(decode(&long, twice).is_err());
        assert_eq!(decoded(&long).unwrap().len(), long.len() / 4 * 3);
    }
}

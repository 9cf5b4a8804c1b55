//! The custom sections of a file in WebAssembly, outside of modules in it: data that its build
//! writes beside the code.

/// The length of the preamble of a file in WebAssembly, and the number of a custom section.
const PREAMBLE: usize = 8;
const CUSTOM: u8 = 0;

/// A custom section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Section<'a> {
    pub(crate) name: &'a [u8],
    /// Where its content begins in the file.
    pub(crate) at: usize,
    pub(crate) content: &'a [u8],
}

/// The custom sections of the file, up to where it is damaged.
pub(crate) fn custom_sections(file: &[u8]) -> impl Iterator<Item = Section<'_>> {
    let mut rest = file.get(PREAMBLE..).unwrap_or_default();
    std::iter::from_fn(move || {
        loop {
            let (&kind, after) = rest.split_first()?;
            let (bytes, after) = number(after)?;
            let section = after.get(..bytes)?;
            rest = &after[bytes..];
            if kind == CUSTOM
                && let Some((length, named)) = number(section)
                && let Some((name, content)) = named.split_at_checked(length)
            {
                let at = file.len() - rest.len() - content.len();
                return Some(Section { name, at, content });
            }
        }
    })
}

/// The content of the first custom section with this name.
pub(crate) fn custom_section<'a>(file: &'a [u8], name: &str) -> Option<&'a [u8]> {
    let named = custom_sections(file).find(|section| section.name == name.as_bytes());
    named.map(|section| section.content)
}

/// Write a custom section at the end of a file.
pub(crate) fn add_section(file: &mut Vec<u8>, name: &str, content: &[u8]) {
    let mut length_of_name = Vec::new();
    write_number(&mut length_of_name, name.len());
    file.push(CUSTOM);
    write_number(file, length_of_name.len() + name.len() + content.len());
    file.extend(length_of_name);
    file.extend(name.as_bytes());
    file.extend(content);
}

/// An unsigned number of 32 bits in LEB128, and the bytes behind it.
fn number(bytes: &[u8]) -> Option<(usize, &[u8])> {
    let mut number = 0;
    for (index, byte) in bytes.iter().enumerate().take(5) {
        number |= u64::from(byte & 0x7f) << (7 * index);
        if byte & 0x80 == 0 {
            return Some((usize::try_from(number).ok()?, &bytes[index + 1..]));
        }
    }
    None
}

/// Write a number in LEB128.
fn write_number(bytes: &mut Vec<u8>, mut number: usize) {
    while number > 0x7f {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sections_that_are_written_can_be_read() {
        let mut file = b"\0asm\x0d\0\x01\0".to_vec();
        let long = vec![7; 70_000];
        add_section(&mut file, "first", b"");
        add_section(&mut file, "second", &long);
        add_section(&mut file, &"n".repeat(200), b"last");
        assert!(wasmparser::Validator::new().validate_all(&file).is_ok());
        let found: Vec<_> = custom_sections(&file).collect();
        assert_eq!(found.len(), 3);
        for section in &found {
            assert_eq!(&file[section.at..section.at + section.content.len()], section.content);
        }
        assert_eq!(custom_section(&file, "first"), Some(&b""[..]));
        assert_eq!(custom_section(&file, "second"), Some(&long[..]));
        assert_eq!(custom_section(&file, "third"), None);
    }

    #[test]
    fn a_file_that_is_cut_has_the_sections_before_the_cut() {
        let mut file = b"\0asm\x0d\0\x01\0".to_vec();
        add_section(&mut file, "a", b"one");
        let whole = file.len();
        add_section(&mut file, "b", b"two");
        for end in 0..file.len() {
            let expected = usize::from(end >= whole);
            assert_eq!(custom_sections(&file[..end]).count(), expected, "{end}");
        }
        assert_eq!(custom_sections(&[0xff; 64]).count(), 0);
    }
}

//! The digest of a component's sources, which its build writes into the file.
//!
//! Some toolchains make another file at each build of the same sources. By this digest a client
//! sees that a server has a build of them. It is for clients alone: nothing is trusted because of
//! it.

use gristmill_core::Digest;

/// The custom section with the digest as text.
const SECTION: &str = "gristmill:sources";

/// The length of the preamble of a file in WebAssembly, and the number of a custom section.
const PREAMBLE: usize = 8;
const CUSTOM: u8 = 0;

/// The digest of the sources that `file` was built from, if it says so.
pub fn sources_of(file: &[u8]) -> Option<Digest> {
    std::str::from_utf8(custom_section(file, SECTION)?).ok()?.parse().ok()
}

/// The content of the first custom section with this name, outside of modules in the file.
pub(crate) fn custom_section<'a>(file: &'a [u8], name: &str) -> Option<&'a [u8]> {
    let mut rest = file.get(PREAMBLE..)?;
    while let Some((&kind, after)) = rest.split_first() {
        let (bytes, after) = number(after)?;
        let section = after.get(..bytes)?;
        rest = &after[bytes..];
        if kind == CUSTOM
            && let Some((length, named)) = number(section)
            && named.get(..length) == Some(name.as_bytes())
        {
            return Some(&named[length..]);
        }
    }
    None
}

/// Write the digest at the end of a component.
pub fn add_sources(component: &mut Vec<u8>, sources: Digest) {
    let content = sources.to_string();
    let length = |of: usize| u8::try_from(of).unwrap_or(u8::MAX) & 0x7f;
    let section = [&[length(SECTION.len())][..], SECTION.as_bytes(), content.as_bytes()].concat();
    component.extend([CUSTOM, length(section.len())]);
    component.extend(section);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_digest_that_is_written_can_be_read() {
        let digest = Digest::from_bytes([7; 32]);
        let mut file = b"\0asm\x0d\0\x01\0".to_vec();
        assert_eq!(sources_of(&file), None);
        // Another custom section, whose length has two bytes.
        file.extend([CUSTOM, 0x80 | 72, 1, 4]);
        file.extend(*b"name");
        file.extend([0; 195]);
        add_sources(&mut file, digest);
        assert_eq!(sources_of(&file), Some(digest));
        assert!(wasmparser::Validator::new().validate_all(&file).is_ok());
    }

    #[test]
    fn a_file_that_is_cut_or_has_no_digest_has_none() {
        let mut file = b"\0asm\x0d\0\x01\0".to_vec();
        add_sources(&mut file, Digest::from_bytes([7; 32]));
        for end in 0..file.len() {
            assert_eq!(sources_of(&file[..end]), None, "{end}");
        }
        let at = file.len() - 3;
        file[at] = b'z';
        assert_eq!(sources_of(&file), None);
        assert_eq!(sources_of(&[0xff; 64]), None);
    }
}

//! The digest of a component's sources, which its build writes into the file.
//!
//! Some toolchains make another file at each build of the same sources. By this digest a client
//! sees that a server has a build of them. It is for clients alone: nothing is trusted because of
//! it.

use gristmill_core::Digest;

use crate::sections::{add_section, custom_section};

/// The custom section with the digest as text.
const SECTION: &str = "gristmill:sources";

/// The digest of the sources that `file` was built from, if it says so.
pub fn sources_of(file: &[u8]) -> Option<Digest> {
    std::str::from_utf8(custom_section(file, SECTION)?).ok()?.parse().ok()
}

/// Write the digest at the end of a component.
pub fn add_sources(component: &mut Vec<u8>, sources: Digest) {
    add_section(component, SECTION, sources.to_string().as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_digest_that_is_written_can_be_read() {
        let digest = Digest::from_bytes([7; 32]);
        let mut file = b"\0asm\x0d\0\x01\0".to_vec();
        assert_eq!(sources_of(&file), None);
        add_section(&mut file, "name", &[0; 195]);
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

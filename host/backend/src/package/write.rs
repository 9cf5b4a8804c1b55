//! Writing a package: the same files always give the same bytes.

use super::header::{BLOCK, checksum};

/// Maximum characters of a name in a header.
const NAME_LEN: usize = 100;

/// The largest number in the eleven octal digits of a header.
const OCTAL_MAX: u64 = (1 << 33) - 1;

/// The end of a package.
pub const END: [u8; 1024] = [0; 1024];

/// The header of a file with this path and so many bytes.
pub fn header_of(name: &str, bytes: u64) -> Vec<u8> {
    let mut records = Vec::new();
    if name.len() > NAME_LEN {
        records.extend(record("path", name));
    }
    if bytes > OCTAL_MAX {
        records.extend(record("size", &bytes.to_string()));
    }
    let mut header = Vec::new();
    if !records.is_empty() {
        header.extend(block("pax", b'x', records.len() as u64));
        let padding = padding_of(records.len() as u64);
        header.extend(records);
        header.extend(padding);
    }
    header.extend(block(name, b'0', bytes.min(OCTAL_MAX)));
    header
}

/// The zeros behind a file of so many bytes.
pub fn padding_of(bytes: u64) -> Vec<u8> {
    vec![0; (bytes.next_multiple_of(BLOCK) - bytes) as usize]
}

/// A record, which begins with its own length.
fn record(key: &str, value: &str) -> Vec<u8> {
    let rest = format!(" {key}={value}\n");
    let mut len = rest.len();
    while len != rest.len() + len.to_string().len() {
        len = rest.len() + len.to_string().len();
    }
    format!("{len}{rest}").into_bytes()
}

fn block(name: &str, kind: u8, bytes: u64) -> [u8; BLOCK as usize] {
    let mut block = [0; BLOCK as usize];
    let mut put = |at: usize, text: &[u8]| block[at..at + text.len()].copy_from_slice(text);
    put(0, &name.as_bytes()[..name.len().min(NAME_LEN)]);
    put(100, b"0000644\0");
    put(108, b"0000000\0");
    put(116, b"0000000\0");
    put(124, format!("{bytes:011o}\0").as_bytes());
    put(136, b"00000000000\0");
    put(156, &[kind]);
    put(257, b"ustar\x0000");
    let sum = checksum(&block);
    block[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    block
}

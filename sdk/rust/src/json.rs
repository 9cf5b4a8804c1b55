//! Reading JSON fast: with simd-json, and with serde_json if that does not succeed.
//!
//! simd-json takes a little more than half of serde_json's time for numbers. serde_json has the
//! better errors, with line and column, and a limit on nesting. simd-json has none, and a plugin's
//! stack is small, so the nesting is checked here before values are made.

use serde::de::DeserializeOwned;
use simd_json::Node;

/// The deepest nesting that is read fast: serde_json's limit.
const DEPTH_MAX: usize = 127;

/// The value; none if simd-json refuses the text, or it is nested too deep. The text is changed.
pub(crate) fn read<T: DeserializeOwned>(text: &mut [u8]) -> Option<T> {
    let tape = simd_json::to_tape(text).ok()?;
    if is_too_deep(&tape.0) {
        return None;
    }
    tape.deserialize().ok()
}

fn is_too_deep(nodes: &[Node<'_>]) -> bool {
    // Where each of the lists and objects ends that the node lies in.
    let mut ends = Vec::new();
    for (index, node) in nodes.iter().enumerate() {
        while ends.last().is_some_and(|end| *end < index) {
            ends.pop();
        }
        if let Node::Object { count, .. } | Node::Array { count, .. } = node {
            ends.push(index + count);
        }
        if ends.len() > DEPTH_MAX {
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use serde::de::IgnoredAny;

    use super::{DEPTH_MAX, read};

    fn nested(depth: usize) -> Vec<u8> {
        ["[".repeat(depth), "]".repeat(depth)].concat().into_bytes()
    }

    #[test]
    fn values_are_read() {
        let mut text = br#"{"a": [1, -0.5, 1e3, "x\n\u00fc", null, true], "b": {}}"#.to_vec();
        let value: serde_json::Value = read(&mut text).unwrap();
        let expected = serde_json::json!({
            "a": [1, -0.5, 1000.0, "x\nü", null, true],
            "b": {},
        });
        assert_eq!(value, expected);
        assert_eq!(
            read::<Vec<f32>>(&mut b"[0.1, 3, -2.5e-3]".to_vec()).unwrap(),
            [0.1, 3.0, -2.5e-3]
        );
        assert!(read::<u8>(&mut b"x".to_vec()).is_none());
        assert!(read::<u8>(&mut b"1.5".to_vec()).is_none());
        assert!(read::<u8>(&mut b"1 2".to_vec()).is_none());
    }

    #[test]
    fn deep_nesting_is_left_to_serde_json() {
        assert!(read::<IgnoredAny>(&mut nested(DEPTH_MAX)).is_some());
        assert!(read::<IgnoredAny>(&mut nested(DEPTH_MAX + 1)).is_none());
        assert!(read::<IgnoredAny>(&mut nested(100_000)).is_none());
        let flat = format!("[{}[]]", "[[]],".repeat(1_000));
        assert!(read::<IgnoredAny>(&mut flat.into_bytes()).is_some());
    }
}

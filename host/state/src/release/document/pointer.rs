//! The places of faults, as JSON pointers (RFC 6901).

/// The longest name in a pointer, in bytes. The place of a value with a longer name is that of the
/// object around it.
const NAME_BYTES_MAX: usize = 256;

/// The pointer of a key as texts name it: `changes[3].limits.cpu_ms` is `/changes/3/limits/cpu_ms`.
pub(super) fn of_key(key: &str) -> String {
    let parts = key.split(['.', '[']).map(|part| part.trim_end_matches(']'));
    parts.filter(|part| !part.is_empty()).fold(String::new(), child)
}

/// The pointer of the value with this name in the object, or in the list, at `pointer`.
pub(super) fn child(mut pointer: String, name: &str) -> String {
    if name.len() <= NAME_BYTES_MAX {
        pointer.push('/');
        pointer.push_str(&name.replace('~', "~0").replace('/', "~1"));
    }
    pointer
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_has_a_pointer() {
        for (key, pointer) in [
            ("", ""),
            ("open", "/open"),
            ("changes[3].document.limits.cpu_ms", "/changes/3/document/limits/cpu_ms"),
            ("api_keys[0].name", "/api_keys/0/name"),
            ("lists[1][2]", "/lists/1/2"),
        ] {
            assert_eq!(of_key(key), pointer, "{key}");
        }
    }

    #[test]
    fn any_name_can_be_pointed_at_unless_it_is_long() {
        let at = || "/at".to_owned();
        assert_eq!(child(at(), "a/b~c.d[0]"), "/at/a~1b~0c.d[0]");
        assert_eq!(child(at(), ""), "/at/");
        assert_eq!(child(at(), &"x".repeat(257)), "/at");
    }
}

//! Reading the conditions of a request: the headers `If-Match` and `If-None-Match`, as RFC 9110 has
//! them.

use gristmill_core::ErrorCode;
use gristmill_state::{Conditions, Tag, Tags};
use gristmill_transport::Problem;
use http::HeaderMap;
use http::header::{HeaderName, IF_MATCH, IF_NONE_MATCH};

/// Maximum tags in a header.
const TAGS_MAX: usize = 64;

/// Maximum bytes of a wrong header that an error repeats.
const SHOWN_BYTES_MAX: usize = 100;

/// The conditions of a request with these headers.
///
/// # Errors
/// A header is not a list of tags.
pub(crate) fn conditions(headers: &HeaderMap) -> Result<Conditions, Problem> {
    Ok(Conditions {
        matches: tags(headers, "If-Match", &IF_MATCH)?,
        matches_none: tags(headers, "If-None-Match", &IF_NONE_MATCH)?,
    })
}

/// The tags in a header, if it is there. Several headers are one list.
fn tags(headers: &HeaderMap, shown: &str, header: &HeaderName) -> Result<Option<Tags>, Problem> {
    let invalid = |detail: String| Problem::new(ErrorCode::InvalidRequest, detail);
    let mut values = Vec::new();
    for value in headers.get_all(header) {
        let value = value.to_str();
        values.push(value.map_err(|_| invalid(format!("{shown} is not ASCII")))?);
    }
    let text = values.join(",");
    if values.is_empty() {
        return Ok(None);
    }
    if text.trim() == "*" {
        return Ok(Some(Tags::Any));
    }
    let Some(tags) = list(&text) else {
        let value = &text[..text.floor_char_boundary(SHOWN_BYTES_MAX)];
        return Err(invalid(format!(
            "{shown} is {value:?}: must be * or a list of tags in double quotes, such as \"abc\""
        )));
    };
    if tags.len() > TAGS_MAX {
        return Err(invalid(format!("{shown} has {} tags: the limit is {TAGS_MAX}", tags.len())));
    }
    Ok(Some(Tags::OneOf(tags)))
}

/// The tags of a list. Empty elements are skipped. None if it is not a list of at least one tag.
fn list(text: &str) -> Option<Vec<Tag>> {
    let blank = [' ', '\t'];
    let mut tags = Vec::new();
    let mut rest = text.trim_start_matches([' ', '\t', ',']);
    while !rest.is_empty() {
        let (is_weak, quoted) = match rest.strip_prefix("W/") {
            Some(quoted) => (true, quoted),
            None => (false, rest),
        };
        let (text, after) = quoted.strip_prefix('"')?.split_once('"')?;
        if text.contains([' ', '\t']) {
            return None;
        }
        tags.push(Tag { text: text.into(), is_weak });
        let after = after.trim_start_matches(blank);
        rest = match after.strip_prefix(',') {
            Some(rest) => rest.trim_start_matches([' ', '\t', ',']),
            None if after.is_empty() => after,
            None => return None,
        };
    }
    (!tags.is_empty()).then_some(tags)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(values: &[&str]) -> Result<Option<Tags>, String> {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(IF_MATCH, value.parse().unwrap());
        }
        conditions(&headers).map(|read| read.matches).map_err(|problem| problem.detail)
    }

    #[test]
    fn tags_are_read_as_the_rfc_writes_them() {
        let tag = |text: &str, is_weak| Tag { text: text.into(), is_weak };
        let list = |tags: &[Tag]| Ok(Some(Tags::OneOf(tags.to_vec())));
        assert_eq!(read(&[]), Ok(None));
        assert_eq!(read(&[" * "]), Ok(Some(Tags::Any)));
        assert_eq!(read(&["\"a\""]), list(&[tag("a", false)]));
        assert_eq!(read(&["\"\""]), list(&[tag("", false)]));
        let two = list(&[tag("a,b", true), tag("W/", false)]);
        assert_eq!(read(&[", W/\"a,b\" ,,\t\"W/\","]), two);
        assert_eq!(read(&["W/\"a,b\"", "\"W/\""]), two);
    }

    #[test]
    fn anything_else_is_refused_with_what_it_is() {
        for wrong in
            ["", ",", "a", "\"a", "\"a\" \"b\"", "*, \"a\"", "w/\"a\"", "W/ \"a\"", "\"a b\""]
        {
            let detail = read(&[wrong]).unwrap_err();
            assert!(
                detail.starts_with(&format!("If-Match is {wrong:?}: must be * or")),
                "{detail}"
            );
        }
        assert!(read(&["*", "*"]).is_err());
        let long = "x".repeat(9000);
        assert!(read(&[&long]).unwrap_err().len() < 300);
        let many = ["\"a\""; 65].join(",");
        assert_eq!(read(&[&many]).unwrap_err(), "If-Match has 65 tags: the limit is 64");
        let mut headers = HeaderMap::new();
        headers.insert(IF_NONE_MATCH, http::HeaderValue::from_bytes(b"\"\xe4\"").unwrap());
        assert_eq!(conditions(&headers).unwrap_err().detail, "If-None-Match is not ASCII");
    }
}

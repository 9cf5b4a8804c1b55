//! Reading what comes with a change besides its content: the conditions, and the message.

use gristmill_core::ErrorCode;
use gristmill_state::{ChangeOptions, ReleaseNote};
use gristmill_transport::Problem;
use http::HeaderMap;

use crate::caller::Caller;
use crate::conditions::conditions;

/// The header with the message of a release. Its text is UTF-8.
const MESSAGE: &str = "gristmill-message";

/// Maximum characters of a message.
pub(crate) const MESSAGE_CHARS_MAX: usize = 1000;

/// The form of a message: no control characters but line ends.
pub(crate) const MESSAGE_FORM: &str = r"^[^\x00-\x09\x0b-\x1f\x7f-\x9f]*$";

/// The options of a change by a request with these headers from this caller.
///
/// # Errors
/// A condition is not a list of tags, or the message is not one.
pub(crate) fn change_options(
    headers: &HeaderMap,
    caller: &Caller,
) -> Result<ChangeOptions, Problem> {
    let invalid = |why| Problem::new(ErrorCode::InvalidRequest, format!("Gristmill-Message {why}"));
    let message = match headers.get(MESSAGE) {
        None => None,
        Some(value) => {
            let text = std::str::from_utf8(value.as_bytes());
            let text = text.map_err(|_| invalid("is not UTF-8".into()))?;
            check_message(text).map_err(invalid)?;
            Some(text.to_owned())
        }
    };
    let note = ReleaseNote { by: Some(caller.name().into()), message };
    let (conditions, token_scope) = (conditions(headers)?, caller.token_scope());
    let token = caller.token().cloned();
    Ok(ChangeOptions { conditions, note, token_scope, token, skips_samples: false })
}

/// Check the text of a message. The error says what it must be.
pub(crate) fn check_message(text: &str) -> Result<(), String> {
    let chars = text.chars().count();
    if chars > MESSAGE_CHARS_MAX {
        return Err(format!("has {chars} characters: the limit is {MESSAGE_CHARS_MAX}"));
    }
    match text.chars().any(|char| char.is_control() && char != '\n') {
        true => Err("must have no control characters but line ends".into()),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn a_message_is_short_text() {
        let message = |value: &[u8]| {
            let mut headers = HeaderMap::new();
            headers.insert(MESSAGE, HeaderValue::from_bytes(value).unwrap());
            change_options(&headers, &Caller::root()).map_err(|problem| problem.detail)
        };
        let note = message("für alle".as_bytes()).unwrap().note;
        assert_eq!(
            (note.by.as_deref(), note.message.as_deref()),
            (Some("admin"), Some("für alle"))
        );
        assert_eq!(change_options(&HeaderMap::new(), &Caller::root()).unwrap().note.message, None);
        assert_eq!(message(b"\xff").unwrap_err(), "Gristmill-Message is not UTF-8");
        let detail = message("ä".repeat(1001).as_bytes()).unwrap_err();
        assert_eq!(detail, "Gristmill-Message has 1001 characters: the limit is 1000");
        assert!(check_message("two\nlines").is_ok() && check_message("\u{1b}[31m").is_err());
    }
}

//! The password of a server.

use std::fmt;

/// A password. It is not shown by `Debug`.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Password(String);

impl Password {
    /// The password in the content of a file. White space at its end is not part of it.
    pub fn of_file(content: &str) -> Self {
        Self(content.trim_end().to_owned())
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Password {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Password(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_not_shown() {
        let password = Password::of_file("word\n");
        assert_eq!((password.as_str(), format!("{password:?}").as_str()), ("word", "Password(..)"));
    }
}

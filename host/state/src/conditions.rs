//! The conditions of a change or of reading: RFC 9110's `If-Match` and `If-None-Match`, by the tags
//! of documents. Pure.

use std::fmt;

use gristmill_core::Digest;

use crate::fault::Subject;

/// Maximum bytes of the given tags that an error shows.
const SHOWN_BYTES_MAX: usize = 200;

/// The conditions of one request. Without any, every change is made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Conditions {
    /// `If-Match`: the thing must exist and have one of these tags.
    pub matches: Option<Tags>,
    /// `If-None-Match`: the thing must not exist, or have none of these tags.
    pub matches_none: Option<Tags>,
}

/// The tags that a condition names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Tags {
    /// `*`: that of anything that exists.
    Any,
    /// One of a list.
    OneOf(Vec<Tag>),
}

/// A tag as a client gives it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tag {
    /// The text between its quotes.
    pub text: String,
    /// Whether it is marked as weak.
    pub is_weak: bool,
}

/// Why a condition does not hold.
#[derive(Debug, thiserror::Error)]
#[error("{what} {}, but {header} is {condition}{advice}", shown(*.current))]
pub struct Unmet {
    what: String,
    header: &'static str,
    current: Option<Digest>,
    condition: String,
    advice: &'static str,
}

impl Conditions {
    /// Whether there are none.
    pub fn are_none(&self) -> bool {
        *self == Self::default()
    }

    /// Check that a thing with the tag `current` may be changed. It is none if the thing does not
    /// exist.
    ///
    /// # Errors
    /// A condition does not hold.
    pub fn check(&self, subject: &Subject, current: Option<Digest>) -> Result<(), Unmet> {
        self.check_match(subject, current)?;
        match &self.matches_none {
            Some(tags) if tags.match_weakly(current) => {
                let (what, condition) = (subject.to_string(), tags.to_string());
                let header = "If-None-Match";
                Err(Unmet { what, header, current, condition, advice: "" })
            }
            _ => Ok(()),
        }
    }

    /// Check that `what`, which has the tag `current`, may be read. Returns whether its reader has
    /// this version already.
    ///
    /// # Errors
    /// `If-Match` does not hold.
    pub fn check_read(&self, what: impl fmt::Display, current: Digest) -> Result<bool, Unmet> {
        self.check_match(what, Some(current))?;
        Ok(self.matches_none.as_ref().is_some_and(|tags| tags.match_weakly(Some(current))))
    }

    fn check_match(&self, what: impl fmt::Display, current: Option<Digest>) -> Result<(), Unmet> {
        match &self.matches {
            Some(tags) if !tags.match_strongly(current) => {
                let (what, condition) = (what.to_string(), tags.to_string());
                let advice = ": read it again, and change what is there now";
                Err(Unmet { what, header: "If-Match", current, condition, advice })
            }
            _ => Ok(()),
        }
    }
}

impl Tags {
    fn match_strongly(&self, current: Option<Digest>) -> bool {
        self.match_tag(current, |tag| !tag.is_weak)
    }

    fn match_weakly(&self, current: Option<Digest>) -> bool {
        self.match_tag(current, |_| true)
    }

    fn match_tag(&self, current: Option<Digest>, may: impl Fn(&Tag) -> bool) -> bool {
        match (self, current) {
            (_, None) => false,
            (Self::Any, Some(_)) => true,
            (Self::OneOf(tags), Some(current)) => {
                let current = current.hex();
                tags.iter().any(|tag| may(tag) && tag.text == current)
            }
        }
    }
}

/// As in the header. A long list is cut.
impl fmt::Display for Tags {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self::OneOf(tags) = self else { return f.write_str("*") };
        let tag =
            |Tag { text, is_weak }: &Tag| format!("{}\"{text}\"", if *is_weak { "W/" } else { "" });
        let list = tags.iter().map(tag).collect::<Vec<_>>().join(", ");
        match list.len() <= SHOWN_BYTES_MAX {
            true => f.write_str(&list),
            false => write!(f, "{}...", &list[..list.floor_char_boundary(SHOWN_BYTES_MAX)]),
        }
    }
}

fn shown(current: Option<Digest>) -> String {
    current.map_or("does not exist".into(), |tag| format!("has the tag \"{}\"", tag.hex()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{digest, name};

    fn tag(byte: u8) -> Tag {
        Tag { text: digest(byte).hex(), is_weak: false }
    }

    fn weak(byte: u8) -> Tag {
        Tag { is_weak: true, ..tag(byte) }
    }

    fn check(conditions: &Conditions, current: Option<u8>) -> Result<(), String> {
        let subject = Subject::Model(name("m"));
        conditions.check(&subject, current.map(digest)).map_err(|unmet| unmet.to_string())
    }

    #[test]
    fn a_change_is_made_only_to_what_matches() {
        let one_of = |tags| Conditions { matches: Some(Tags::OneOf(tags)), ..<_>::default() };
        let any = Conditions { matches: Some(Tags::Any), ..<_>::default() };
        for (conditions, current, expected) in [
            (Conditions::default(), None, true),
            (one_of(vec![tag(1), tag(2)]), Some(2), true),
            (one_of(vec![tag(1)]), Some(2), false),
            (one_of(vec![weak(2)]), Some(2), false),
            (one_of(vec![tag(1)]), None, false),
            (one_of(Vec::new()), Some(1), false),
            (any.clone(), Some(1), true),
            (any, None, false),
        ] {
            assert_eq!(check(&conditions, current).is_ok(), expected, "{conditions:?} {current:?}");
        }
    }

    #[test]
    fn something_new_is_made_only_where_nothing_matches() {
        let one_of = |tags| Conditions { matches_none: Some(Tags::OneOf(tags)), ..<_>::default() };
        let any = Conditions { matches_none: Some(Tags::Any), ..<_>::default() };
        for (conditions, current, expected) in [
            (one_of(vec![tag(1)]), Some(2), true),
            (one_of(vec![weak(2)]), Some(2), false),
            (one_of(vec![weak(2)]), None, true),
            (any.clone(), None, true),
            (any, Some(1), false),
        ] {
            assert_eq!(check(&conditions, current).is_ok(), expected, "{conditions:?} {current:?}");
            let knows = |current| conditions.check_read("m", digest(current)).unwrap();
            assert_eq!(current.is_some_and(knows), !expected);
        }
    }

    #[test]
    fn an_error_names_the_thing_and_both_tags() {
        let text = |text: &str| Tag { text: text.into(), is_weak: true };
        let matches = Some(Tags::OneOf(vec![text("mine"), tag(1)]));
        let conditions = Conditions { matches, ..<_>::default() };
        let (current, mine) = (digest(2).hex(), digest(1).hex());
        let expected = format!(
            "model \"m\" has the tag \"{current}\", but If-Match is W/\"mine\", \"{mine}\": read \
             it again, and change what is there now"
        );
        assert_eq!(check(&conditions, Some(2)).unwrap_err(), expected);
        let many = Tags::OneOf(vec![text("ä"); 1000]);
        let conditions = Conditions { matches: Some(many), ..<_>::default() };
        let error = check(&conditions, None).unwrap_err();
        assert!(
            error.starts_with("model \"m\" does not exist, but") && error.len() < 400,
            "{error}"
        );
    }
}

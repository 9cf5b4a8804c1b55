//! Lists and texts of a request's JSON. One that is longer than its bound is refused while it is
//! read, so that it is never in memory.

use std::borrow::Cow;
use std::fmt::{self, Display, Write};
use std::marker::PhantomData;

use serde::de::{Deserialize, Deserializer, Error, IgnoredAny, SeqAccess, Unexpected, Visitor};

use crate::limits::TEXT_BYTES_MAX;

/// The bytes that are kept of the beginning of an error's text. Such a text may quote the body.
const ERROR_BYTES_MAX: usize = 1 << 10;

/// An item of a list.
pub(crate) trait ListItem {
    /// Maximum items of a list.
    const MAX: usize;
    /// The name of such items in messages.
    const WHAT: &'static str;
}

/// A list of at most [`ListItem::MAX`] items.
pub(crate) struct List<T>(pub(crate) Vec<T>);

impl<'de, T: ListItem + Deserialize<'de>> Deserialize<'de> for List<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(ListVisitor(PhantomData))
    }
}

struct ListVisitor<T>(PhantomData<T>);

impl<'de, T: ListItem + Deserialize<'de>> Visitor<'de> for ListVisitor<T> {
    type Value = List<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a list of {}", T::WHAT)
    }

    /// The error does not quote the text, which may be long.
    fn visit_str<E: Error>(self, _: &str) -> Result<List<T>, E> {
        Err(E::invalid_type(Unexpected::Other("a text"), &self))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<List<T>, A::Error> {
        let mut list = Vec::new();
        while list.len() < T::MAX {
            let Some(part) = seq.next_element()? else { return Ok(List(list)) };
            list.push(part);
        }
        match seq.next_element::<IgnoredAny>()? {
            None => Ok(List(list)),
            Some(_) => {
                let detail = format!("more than {} {}", T::MAX, T::WHAT);
                Err(A::Error::custom(detail))
            }
        }
    }
}

/// A name or an id, of at most [`TEXT_BYTES_MAX`] bytes.
pub(crate) struct Text<'a>(Cow<'a, str>);

impl Text<'_> {
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    pub(crate) fn into_string(self) -> String {
        self.0.into_owned()
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Text<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(TextVisitor)
    }
}

struct TextVisitor;

impl<'de> Visitor<'de> for TextVisitor {
    type Value = Text<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text")
    }

    fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Text<'de>, E> {
        bounded(text).map(|text| Text(Cow::Borrowed(text)))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Text<'de>, E> {
        bounded(text).map(|text| Text(Cow::Owned(text.to_owned())))
    }
}

fn bounded<E: Error>(text: &str) -> Result<&str, E> {
    if text.len() <= TEXT_BYTES_MAX {
        return Ok(text);
    }
    let detail = format!("a name or id of {} bytes: the limit is {TEXT_BYTES_MAX}", text.len());
    Err(E::custom(detail))
}

/// The bytes that are kept of its end.
const ERROR_END: usize = 200;

/// The text of `error`. A long text loses its middle: its end says what was expected.
pub(crate) fn cut(error: &impl Display) -> String {
    #[derive(Default)]
    struct Cut {
        begin: String,
        end: String,
        is_cut: bool,
    }
    impl Write for Cut {
        fn write_str(&mut self, text: &str) -> fmt::Result {
            let room = ERROR_BYTES_MAX.saturating_sub(self.begin.len());
            let (begin, rest) = text.split_at(text.floor_char_boundary(room));
            self.begin.push_str(begin);
            self.end
                .push_str(&rest[rest.ceil_char_boundary(rest.len().saturating_sub(ERROR_END))..]);
            self.is_cut |= rest.len() > ERROR_END;
            let over = self.end.len().saturating_sub(2 * ERROR_END);
            if over > 0 {
                self.is_cut = true;
                self.end.drain(..self.end.ceil_char_boundary(over + ERROR_END));
            }
            Ok(())
        }
    }
    let mut text = Cut::default();
    // Writing to it cannot fail.
    let _ = write!(text, "{error}");
    let Cut { begin, end, is_cut } = text;
    if is_cut { format!("{begin} [..] {end}") } else { begin + &end }
}

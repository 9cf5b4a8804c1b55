//! A place in the list of a cluster's keys, which goes server by server.

use std::fmt;

/// Where a page begins. The text names the server by its place, so it tells no address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cursor {
    /// The division of the slots that the list began with.
    pub(crate) division: u64,
    /// The place of the server among those that have slots.
    pub(crate) server: usize,
    /// The cursor of that server, 0 at its beginning.
    pub(crate) at: u64,
}

impl Cursor {
    /// The cursor of this text. None if it is none.
    pub(crate) fn read(text: &str) -> Option<Self> {
        let mut parts = text.split('-');
        let division = u64::from_str_radix(parts.next()?, 16).ok()?;
        let (server, at) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
        parts.next().is_none().then_some(Self { division, server, at })
    }

    /// Where the next page begins, if this server gave `next` and there are so many. None after the
    /// last page.
    pub(crate) fn after(self, next: Option<u64>, servers: usize) -> Option<Self> {
        match next {
            Some(at) => Some(Self { at, ..self }),
            None => {
                let server = self.server.checked_add(1).filter(|server| *server < servers)?;
                Some(Self { server, at: 0, ..self })
            }
        }
    }
}

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:x}-{}-{}", self.division, self.server, self.at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_is_read_as_it_was_written() {
        let cursor = Cursor { division: u64::MAX, server: 1023, at: u64::MAX };
        let text = cursor.to_string();
        assert_eq!((Cursor::read(&text), text.len()), (Some(cursor), 42));
        for other in ["", "0", "7-1", "7-1-", "7-1-2-3", "g-1-2", "7--1-2", "7-1-x", "10.0.0.1:7"] {
            assert_eq!(Cursor::read(other), None, "{other}");
        }
    }

    #[test]
    fn a_list_goes_server_by_server() {
        let first = Cursor { division: 7, server: 0, at: 0 };
        let later = first.after(Some(9), 2).unwrap();
        assert_eq!(later, Cursor { at: 9, ..first });
        let second = later.after(None, 2).unwrap();
        assert_eq!(second, Cursor { server: 1, ..first });
        assert_eq!(second.after(None, 2), None);
    }
}

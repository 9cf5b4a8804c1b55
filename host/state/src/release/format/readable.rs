//! JSON that people can read, and that is hardly longer than it must be: its outer levels have a
//! line for each value. Within them, documents of tenants stand on one line: lists nested in lists
//! would become many times as long.

use std::io::{self, Write};

use serde::Serialize;
use serde_json::Serializer;
use serde_json::ser::{CompactFormatter, Formatter, PrettyFormatter};

/// The release, its changes, a change, and the thing that is put.
const LEVELS: usize = 4;

/// The document as text.
pub(super) fn to_string(document: &impl Serialize) -> serde_json::Result<String> {
    let mut text = Vec::new();
    document.serialize(&mut Serializer::with_formatter(&mut text, Readable::default()))?;
    String::from_utf8(text).map_err(serde::ser::Error::custom)
}

#[derive(Default)]
struct Readable {
    /// The lists and objects that are open.
    open: usize,
    outer: PrettyFormatter<'static>,
    inner: CompactFormatter,
}

/// Call the formatter of the level.
macro_rules! by_level {
    ($self:ident, $method:ident ( $($argument:expr),* )) => {
        match $self.open <= LEVELS {
            true => $self.outer.$method($($argument),*),
            false => $self.inner.$method($($argument),*),
        }
    };
}

impl Formatter for Readable {
    fn begin_array<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.open += 1;
        by_level!(self, begin_array(writer))
    }

    fn end_array<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        let ended = by_level!(self, end_array(writer));
        self.open -= 1;
        ended
    }

    fn begin_array_value<W: ?Sized + Write>(
        &mut self,
        writer: &mut W,
        first: bool,
    ) -> io::Result<()> {
        by_level!(self, begin_array_value(writer, first))
    }

    fn end_array_value<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        by_level!(self, end_array_value(writer))
    }

    fn begin_object<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.open += 1;
        by_level!(self, begin_object(writer))
    }

    fn end_object<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        let ended = by_level!(self, end_object(writer));
        self.open -= 1;
        ended
    }

    fn begin_object_key<W: ?Sized + Write>(
        &mut self,
        writer: &mut W,
        first: bool,
    ) -> io::Result<()> {
        by_level!(self, begin_object_key(writer, first))
    }

    fn begin_object_value<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        by_level!(self, begin_object_value(writer))
    }

    fn end_object_value<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        by_level!(self, end_object_value(writer))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn the_outer_levels_have_lines_and_nested_lists_stay_short() {
        let release =
            json!({ "changes": [{ "put": { "settings": { "a": [1, 2] } } }], "none": [] });
        let text = to_string(&release).unwrap();
        let lines = [
            "{",
            "  \"changes\": [",
            "    {",
            "      \"put\": {",
            "        \"settings\": {\"a\":[1,2]}",
            "      }",
            "    }",
            "  ],",
            "  \"none\": []",
            "}",
        ];
        assert_eq!(text, lines.join("\n"));
        let nested = (0..60).fold(json!(vec![1; 10_000]), |nested, _| json!([nested]));
        let release = json!({ "changes": [{ "put": nested }] });
        let text = to_string(&release).unwrap();
        let shortest = release.to_string();
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), release);
        assert!(text.len() < shortest.len() + 500, "{} of {}", text.len(), shortest.len());
    }
}

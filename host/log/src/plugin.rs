//! Log lines of plugins: their fields are data, and form an object of their own.

use std::fmt::Write as _;

use crate::text::{CutText, Escape};

/// The target of plugins' lines. In these lines, and in no others, the field `fields` is the text
/// of [`PluginFields`], which becomes an object in the line.
pub const PLUGIN_TARGET: &str = "plugin";

/// The longest name and the longest value of a field, in bytes before they are escaped. A value may
/// be a traceback.
const NAME_BYTES_MAX: usize = 1 << 10;
const VALUE_BYTES_MAX: usize = 8 << 10;

/// The longest object; fields that do not fit are left out.
pub(crate) const OBJECT_BYTES_MAX: usize = 16 << 10;

/// A line's own fields, as a JSON object.
#[derive(Debug)]
pub struct PluginFields(String);

impl Default for PluginFields {
    fn default() -> Self {
        Self("{}".into())
    }
}

impl PluginFields {
    /// Add a field, cut if it is too long. Returns false if the object has no room for it.
    pub fn push(&mut self, name: &str, value: &str) -> bool {
        let before = self.0.len();
        self.0.truncate(before - 1);
        self.0.push_str(if before > 2 { ",\"" } else { "\"" });
        self.push_text(name, NAME_BYTES_MAX);
        self.0.push_str("\":\"");
        self.push_text(value, VALUE_BYTES_MAX);
        self.0.push('"');
        let fits = self.0.len() < OBJECT_BYTES_MAX;
        if !fits {
            self.0.truncate(before - 1);
        }
        self.0.push('}');
        fits
    }

    /// The object.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    fn push_text(&mut self, text: &str, most: usize) {
        let mut cut = CutText::new(&mut self.0, most, Escape::Json);
        let _ = cut.write_str(text);
        cut.end();
    }
}

#[cfg(test)]
mod tests {
    use super::{OBJECT_BYTES_MAX, PluginFields};

    #[test]
    fn fields_are_an_object_and_bounded() {
        let mut fields = PluginFields::default();
        assert_eq!(fields.as_str(), "{}");
        assert!(fields.push("a\"}", "\n\u{1}\u{202e}\u{e0001}\\"));
        assert!(fields.as_str().is_ascii(), "{}", fields.as_str());
        assert!(fields.push("b", &"x".repeat(9000)));
        assert!(fields.push(&"c".repeat(2000), "x"));
        let object: serde_json::Value = serde_json::from_str(fields.as_str()).unwrap();
        assert_eq!(object["a\"}"], "\n\u{1}\u{202e}\u{e0001}\\");
        assert_eq!(object["b"].as_str().map(str::len), Some(8192 + " [cut]".len()));
        assert_eq!(object[format!("{} [cut]", "c".repeat(1024))], "x");
        let kept = (0..100).filter(|index| fields.push(&index.to_string(), &"x".repeat(1000)));
        assert_eq!(kept.count(), 7);
        assert!(fields.as_str().len() <= OBJECT_BYTES_MAX);
        serde_json::from_str::<serde_json::Value>(fields.as_str()).unwrap();
    }
}

//! Reads settings from the command line, the environment and the file, in that order of precedence,
//! and collects their faults.

use clap::ArgMatches;
use toml::Value as Toml;

use super::fault::Fault;
use super::setting::Setting;
use super::value::{LIST, Refusal, Rule, Value};

/// Reads settings.
pub(crate) struct Reader<'a> {
    /// Flags and variables.
    pub(crate) matches: &'a ArgMatches,
    /// The file's keys.
    pub(crate) file: toml::Table,
    /// Values in place of the usual defaults, by the keys of their settings.
    pub(crate) defaults: &'static [(&'static str, &'static str)],
    /// The faults found so far.
    pub(crate) faults: Vec<Fault>,
}

impl Reader<'_> {
    /// A setting without a default, if it is given.
    pub(crate) fn optional<T: Value>(
        &mut self,
        setting: &Setting,
        rule: &impl Rule<T>,
    ) -> Option<T> {
        let text = match self.text_in_file::<T>(setting) {
            Ok(text) => text?,
            Err(fault) => {
                self.faults.push(fault);
                return None;
            }
        };
        let value = match T::parse(&text, setting) {
            Ok(value) => value,
            Err(refusal) => {
                self.faults.push(refused(setting, text, refusal));
                return None;
            }
        };
        if let Some(range) = rule.broken_by(&value) {
            self.faults.push(Fault::Range { key: setting.key, text, range });
        }
        Some(value)
    }

    /// A setting with a default. On a fault it is the default, so that the remaining faults are
    /// found as well.
    #[expect(clippy::expect_used, reason = "each setting with a default has a valid one")]
    pub(crate) fn value<T: Value>(&mut self, setting: Option<&Setting>, rule: &impl Rule<T>) -> T {
        let setting = setting.expect("a setting");
        self.optional(setting, rule).unwrap_or_else(|| {
            let default = setting.default.expect("a default");
            T::parse(default, setting).ok().expect("a valid default")
        })
    }

    /// The setting's text: of flag or variable, else of the file, else the default.
    fn text_in_file<T: Value>(&self, setting: &Setting) -> Result<Option<String>, Fault> {
        let key = setting.key;
        // A command has the flags of the settings that it needs.
        if let Ok(Some(text)) = self.matches.try_get_one::<String>(key) {
            return Ok(Some(text.clone()));
        }
        match self.file.get(key) {
            Some(Toml::String(text)) => Ok(Some(text.clone())),
            Some(Toml::Integer(number)) => Ok(Some(number.to_string())),
            Some(Toml::Float(number)) if T::KIND != "text" => Ok(Some(number.to_string())),
            Some(Toml::Boolean(value)) if T::KIND == bool::KIND => Ok(Some(value.to_string())),
            Some(Toml::Array(items)) if T::KIND == LIST => {
                let texts: Option<Vec<_>> = items.iter().map(Toml::as_str).collect();
                let actual = "an array with other values";
                let texts = texts.ok_or(Fault::Kind { key, expected: T::KIND, actual })?;
                Ok(Some(texts.join(",")))
            }
            Some(other) => Err(Fault::Kind { key, expected: T::KIND, actual: with_article(other) }),
            None => {
                let of_command = self.defaults.iter().find(|(other, _)| *other == key);
                let default = of_command.map(|(_, value)| *value).or(setting.default);
                Ok(default.map(str::to_owned))
            }
        }
    }
}

fn refused(setting: &Setting, text: String, refusal: Refusal) -> Fault {
    let key = setting.key;
    match refusal {
        Refusal::Secret(why) => Fault::Secret { key, why },
        // A number that the file has as a number is not quoted.
        Refusal::Value(why) if text.parse::<f64>().is_ok() => Fault::Value { key, text, why },
        Refusal::Value(why) => Fault::Value { key, text: format!("{text:?}"), why },
    }
}

/// A value of the file, by its kind.
fn with_article(value: &Toml) -> &'static str {
    match value {
        Toml::String(_) => "text",
        Toml::Integer(_) | Toml::Float(_) => "a number",
        Toml::Boolean(_) => "a boolean",
        Toml::Datetime(_) => "a date",
        Toml::Array(_) => "an array",
        Toml::Table(_) => "a table",
    }
}

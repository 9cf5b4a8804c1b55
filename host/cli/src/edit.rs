//! Changes of a document that the command line names: `KEY=VALUE`, `KEY=`, `KEY+=VALUE` and
//! `KEY-=VALUE`. All else of the document stays as it is.

use anyhow::{Context, Result, ensure};
use clap::{Arg, ArgAction, ArgMatches};
use serde_json::{Map, Value, json};

use crate::args::texts;

/// What `KEY=VALUE` means, for the help of commands.
pub(crate) const MEANING: &str = "\
KEY=VALUE sets a key, and KEY= takes it away. KEY+=VALUE adds to a list, and KEY-=VALUE takes from \
it. A dot leads into an object. VALUE is JSON, or else text. Keys that are not named stay.";

/// The changes.
pub(crate) fn argument() -> Arg {
    Arg::new("edit")
        .value_name("KEY=VALUE")
        .action(ArgAction::Append)
        .help("A change of its document")
}

/// The changes that the command line names.
///
/// # Errors
/// One of them is not `KEY=VALUE`.
pub(crate) fn edits(matches: &ArgMatches) -> Result<Vec<Edit>> {
    let texts = texts(matches, "edit");
    texts.map(|text| Edit::of(text)).collect()
}

/// The document with the changes. A thing that is not there yet has none before.
///
/// # Errors
/// One of them cannot be made.
pub(crate) fn applied(edits: &[Edit], document: Option<Value>) -> Result<Value> {
    let mut document = document.unwrap_or_else(|| json!({}));
    edits.iter().try_for_each(|edit| edit.make(&mut document))?;
    Ok(document)
}

/// A change of a document.
#[derive(Debug, PartialEq)]
pub(crate) struct Edit {
    /// The keys that lead to the value.
    keys: Vec<String>,
    what: What,
}

#[derive(Debug, PartialEq)]
enum What {
    Set(Value),
    Remove,
    Add(Value),
    TakeOut(Value),
}

impl Edit {
    pub(crate) fn of(text: &str) -> Result<Self> {
        let (key, value) = text
            .split_once('=')
            .with_context(|| format!("{text:?} is not KEY=VALUE, KEY+=VALUE or KEY-=VALUE"))?;
        let json = || match serde_json::from_str(value) {
            Ok(json) => json,
            Err(_) => Value::from(value),
        };
        let (key, what) = if let Some(key) = key.strip_suffix('+') {
            (key, What::Add(json()))
        } else if let Some(key) = key.strip_suffix('-') {
            (key, What::TakeOut(json()))
        } else if value.is_empty() {
            (key, What::Remove)
        } else {
            (key, What::Set(json()))
        };
        let keys: Vec<_> = key.split('.').map(str::to_owned).collect();
        ensure!(keys.iter().all(|key| !key.is_empty()), "{text:?} has an empty key");
        Ok(Self { keys, what })
    }

    /// Make the change.
    ///
    /// # Errors
    /// A key on the way to the value has a value of another kind.
    pub(crate) fn make(&self, document: &mut Value) -> Result<()> {
        let (last, above) = self.keys.split_last().context("a change without a key")?;
        let mut at = document;
        for key in above {
            at = object(at, key)?.entry(key.as_str()).or_insert_with(|| json!({}));
        }
        let keys = object(at, last)?;
        match &self.what {
            What::Set(value) => drop(keys.insert(last.clone(), value.clone())),
            What::Remove => drop(keys.remove(last)),
            What::Add(value) => {
                let items = list(keys.entry(last.as_str()).or_insert_with(|| json!([])), last)?;
                if !items.contains(value) {
                    items.push(value.clone());
                }
            }
            What::TakeOut(value) => {
                let items = list(keys.entry(last.as_str()).or_insert_with(|| json!([])), last)?;
                ensure!(items.contains(value), "{last} does not have {value}");
                items.retain(|item| item != value);
            }
        }
        Ok(())
    }
}

fn object<'a>(value: &'a mut Value, key: &str) -> Result<&'a mut Map<String, Value>> {
    value.as_object_mut().with_context(|| format!("{key} would be in a value that is no object"))
}

fn list<'a>(value: &'a mut Value, key: &str) -> Result<&'a mut Vec<Value>> {
    value.as_array_mut().with_context(|| format!("{key} is not a list: set it with {key}=VALUE"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn changed(document: Value, changes: &[&str]) -> Result<Value> {
        let mut document = document;
        for change in changes {
            Edit::of(change)?.make(&mut document)?;
        }
        Ok(document)
    }

    #[test]
    fn keys_change_and_all_others_stay() {
        let tenant = json!({ "weight": 3, "models": ["a", "b"], "open": true });
        let changes =
            ["models+=c", "models+=a", "models-=b", "open=", "name=x y", "limits.cpu_ms=7"];
        let expected = json!({ "weight": 3, "models": ["a", "c"], "name": "x y",
            "limits": { "cpu_ms": 7 } });
        assert_eq!(changed(tenant, &changes).unwrap(), expected);
        let pair = changed(json!({}), &["api_keys=[{\"name\": \"ci\"}]", "t=\"1\""]).unwrap();
        assert_eq!(pair, json!({ "api_keys": [{ "name": "ci" }], "t": "1" }));
    }

    #[test]
    fn a_change_that_cannot_be_made_is_named() {
        let error = |change: &str| {
            let document = json!({ "weight": 3, "models": ["a"] });
            changed(document, &[change]).unwrap_err().to_string()
        };
        assert_eq!(error("weight"), "\"weight\" is not KEY=VALUE, KEY+=VALUE or KEY-=VALUE");
        assert_eq!(error("a..b=1"), "\"a..b=1\" has an empty key");
        assert_eq!(error("weight+=1"), "weight is not a list: set it with weight=VALUE");
        assert_eq!(error("weight.a=1"), "a would be in a value that is no object");
        assert_eq!(error("models-=c"), "models does not have \"c\"");
    }
}

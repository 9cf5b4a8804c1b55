//! The API keys of a tenant in a manifest: names, and the variables that have the keys. No fault
//! repeats a text that may be a key.

use gristmill_core::Name;

use super::parts::{Key, Secret, Variables};
use super::text::{Text, Toml};
use crate::deploy::position::Faults;

const FORM: &str = "must have name and, for a new key, env, the variable that has the key; a key \
                    itself does not belong into a manifest";

/// Reads keys.
pub(super) struct KeyReader<'a, 'b> {
    pub(super) file: &'a Text<'b>,
    pub(super) variables: Variables<'a>,
    pub(super) faults: &'a mut Faults,
}

impl KeyReader<'_, '_> {
    /// The keys at this path.
    pub(super) fn read(&mut self, path: &str, value: &Toml<'_>) -> Vec<Key> {
        let mut keys: Vec<Key> = Vec::new();
        let Some(items) = value.get_ref().as_array() else {
            self.fault(value, format!("{path} must be a list of tables: each {FORM}"));
            return keys;
        };
        for (at, item) in items.iter().enumerate() {
            let path = format!("{path}[{at}]");
            let key = self.key(&path, item);
            match key {
                Ok(key) if keys.iter().any(|other| other.name == key.name) => {
                    let name = key.name.as_str();
                    self.fault(item, format!("{path}.name is {name:?}, for a second key"));
                }
                Ok(key) => keys.push(key),
                Err(fault) => self.fault(item, fault),
            }
        }
        keys
    }

    fn key(&self, path: &str, item: &Toml<'_>) -> Result<Key, String> {
        let form = || format!("{path} {FORM}");
        let table = item.get_ref().as_table().ok_or_else(form)?;
        let is_known = |key: &str| ["name", "env"].contains(&key);
        if !table.keys().all(|key| is_known(key.get_ref())) {
            return Err(form());
        }
        let text = |key: &str| match table.get(key) {
            None => Ok(None),
            Some(value) => value.get_ref().as_str().map(Some).ok_or_else(form),
        };
        let name: Result<Name, _> = text("name")?.ok_or_else(form)?.parse();
        let name = name.map_err(|_| {
            format!("{path}.name is not a name: 1 to 64 of a-z, 0-9, '-', '_' and '.'")
        })?;
        let secret = text("env")?.map(|variable| {
            let set = (self.variables)(variable).filter(|key| !key.is_empty());
            set.map(Secret).ok_or_else(|| match is_plain(variable) {
                true => format!("{path}.env: the variable {variable} is not set"),
                false => format!("{path}.env does not name a variable that is set"),
            })
        });
        Ok(Key { name, secret: secret.transpose()?, position: self.file.position(item.span()) })
    }

    fn fault(&mut self, value: &Toml<'_>, text: String) {
        self.faults.at(&self.file.position(value.span()), text);
    }
}

/// Whether this is what variables are called. Another text may be the key itself.
fn is_plain(variable: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_';
    !variable.is_empty() && variable.bytes().all(is_plain)
}

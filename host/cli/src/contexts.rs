//! The contexts of the command line: servers with names, in a file of the user.
//!
//! The file is the one that `GRISTMILL_CONTEXTS` names, otherwise `gristmill/config.toml` in
//! `$XDG_CONFIG_HOME` or `~/.config`. It never has a token, only the place of one: a file or a
//! variable. (`GRISTMILL_CONFIG` is the file of a server's settings.)

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use gristmill_core::Name;
use tempfile::NamedTempFile;
use toml::{Table, Value};

use crate::folders;

/// The variable that names the file.
const VARIABLE: &str = "GRISTMILL_CONTEXTS";

/// The keys of a context. All but the last one are text.
const KEYS: [&str; 6] = ["admin_url", "url", "token_file", "token_env", "ca_file", CONFIRM];
const CONFIRM: &str = "confirm";

/// All contexts.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Contexts {
    /// The one that commands use if they are given no other.
    pub(crate) current: Option<Name>,
    pub(crate) all: BTreeMap<Name, KnownServer>,
}

/// One server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct KnownServer {
    /// The admin plane.
    pub(crate) admin_url: String,
    /// The data plane.
    pub(crate) url: Option<String>,
    /// The place of the admin token.
    pub(crate) token: Option<TokenPlace>,
    /// The certificates of the authorities that are trusted for it.
    pub(crate) ca_file: Option<PathBuf>,
    /// Whether commands ask before they change it.
    pub(crate) confirm: bool,
}

/// Where a context's token is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum TokenPlace {
    File(PathBuf),
    Variable(String),
}

impl TokenPlace {
    /// The token. No error shows it.
    pub(crate) fn read(&self) -> Result<String> {
        match self {
            Self::File(path) => {
                let text = fs::read_to_string(path).with_context(|| path.display().to_string())?;
                Ok(text.trim_end_matches(['\n', '\r']).to_owned())
            }
            Self::Variable(name) => match std::env::var(name) {
                Ok(token) if !token.is_empty() => Ok(token),
                _ => bail!("the variable {name} is not set"),
            },
        }
    }
}

impl Contexts {
    /// Those of the user's file; none if there is no file.
    ///
    /// # Errors
    /// The file cannot be read. All that is wrong with it is named.
    pub(crate) fn read() -> Result<Self> {
        let Some(path) = path() else { return Ok(Self::default()) };
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Self::default()),
            Err(error) => return Err(error).with_context(|| path.display().to_string()),
        };
        Self::of_text(&text).with_context(|| path.display().to_string())
    }

    /// The context of this name.
    pub(crate) fn get(&self, name: &Name) -> Result<&KnownServer> {
        self.all.get(name).with_context(|| {
            let names: Vec<_> = self.all.keys().map(Name::as_str).collect();
            match names.is_empty() {
                true => format!("no context \"{name}\": `gristmill context add` makes one"),
                false => format!("no context \"{name}\": known are {}", names.join(", ")),
            }
        })
    }

    fn of_text(text: &str) -> Result<Self> {
        let table: Table = text.parse()?;
        let mut faults = Vec::new();
        let contexts = Self::of_table(&table, &mut faults);
        match faults.is_empty() {
            true => Ok(contexts),
            false => bail!(faults.join("; ")),
        }
    }

    fn of_table(table: &Table, faults: &mut Vec<String>) -> Self {
        let mut contexts = Self::default();
        for (key, value) in table {
            match (key.as_str(), value) {
                ("current", Value::String(name)) => match name.parse() {
                    Ok(name) => contexts.current = Some(name),
                    Err(error) => faults.push(format!("current: {error}")),
                },
                ("contexts", Value::Table(all)) => {
                    for (name, value) in all {
                        match name.parse() {
                            Ok(parsed) => {
                                let context = KnownServer::of(name, value, faults);
                                contexts.all.extend(context.map(|context| (parsed, context)));
                            }
                            Err(error) => faults.push(format!("contexts: {error}")),
                        }
                    }
                }
                ("current", _) => faults.push("current must be text".into()),
                ("contexts", _) => faults.push("contexts must be a table".into()),
                _ => faults.push(format!("unknown key {key:?}; known are current, contexts")),
            }
        }
        contexts
    }

    /// Write the file, which only the user may read. It is replaced whole or not at all.
    pub(crate) fn write(&self) -> Result<PathBuf> {
        let path = path().with_context(|| {
            format!("no file for contexts: neither {VARIABLE} nor XDG_CONFIG_HOME nor HOME is set")
        })?;
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        let folder = folder.unwrap_or(Path::new("."));
        let keep = || -> std::io::Result<()> {
            fs::create_dir_all(folder)?;
            // Only the owner may read it.
            let mut file = NamedTempFile::new_in(folder)?;
            file.write_all(self.to_table().to_string().as_bytes())?;
            file.as_file().sync_all()?;
            file.persist(&path)?;
            File::open(folder)?.sync_all()
        };
        keep().with_context(|| format!("cannot write {}", path.display()))?;
        Ok(path)
    }

    fn to_table(&self) -> Table {
        let mut table = Table::new();
        if let Some(current) = &self.current {
            table.insert("current".into(), current.as_str().into());
        }
        let all = self.all.iter().map(|(name, context)| (name.to_string(), context.to_table()));
        let all: Table = all.map(|(name, context)| (name, Value::Table(context))).collect();
        table.insert("contexts".into(), Value::Table(all));
        table
    }
}

impl KnownServer {
    /// The context of a table.
    fn of(name: &str, value: &Value, faults: &mut Vec<String>) -> Option<Self> {
        let Some(table) = value.as_table() else {
            faults.push(format!("contexts.{name} must be a table"));
            return None;
        };
        for (key, value) in table {
            if !KEYS.contains(&key.as_str()) {
                let keys = KEYS.join(", ");
                faults.push(format!("contexts.{name}: unknown key {key:?}; known are {keys}"));
            } else if key == CONFIRM && !value.is_bool() {
                faults.push(format!("contexts.{name}.{key} must be true or false"));
            } else if key != CONFIRM && !value.is_str() {
                faults.push(format!("contexts.{name}.{key} must be text"));
            }
        }
        let text = |key: &str| table.get(key).and_then(Value::as_str).map(str::to_owned);
        let token = match (text("token_file"), text("token_env")) {
            (Some(_), Some(_)) => {
                faults.push(format!("contexts.{name} has both token_file and token_env"));
                None
            }
            (Some(file), None) => Some(TokenPlace::File(file.into())),
            (None, variable) => variable.map(TokenPlace::Variable),
        };
        let admin_url = text("admin_url");
        if !table.contains_key("admin_url") {
            faults.push(format!("contexts.{name}.admin_url is missing"));
        }
        let ca_file = text("ca_file").map(PathBuf::from);
        let confirm = table.get(CONFIRM).and_then(Value::as_bool).unwrap_or_default();
        Some(Self { admin_url: admin_url?, url: text("url"), token, ca_file, confirm })
    }

    fn to_table(&self) -> Table {
        let Self { admin_url, url, token, ca_file, confirm } = self;
        let mut table = Table::new();
        let mut add = |key: &str, value: &str| table.insert(key.to_owned(), value.into());
        add("admin_url", admin_url);
        url.iter().for_each(|url| drop(add("url", url)));
        match token {
            Some(TokenPlace::File(path)) => drop(add("token_file", &path.to_string_lossy())),
            Some(TokenPlace::Variable(name)) => drop(add("token_env", name)),
            None => {}
        }
        ca_file.iter().for_each(|path| drop(add("ca_file", &path.to_string_lossy())));
        if *confirm {
            table.insert(CONFIRM.into(), true.into());
        }
        table
    }
}

/// The user's file.
fn path() -> Option<PathBuf> {
    let of_user =
        || Some(folders::of_user("XDG_CONFIG_HOME", ".config")?.join("gristmill/config.toml"));
    folders::variable(VARIABLE).map(PathBuf::from).or_else(of_user)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_can_be_read() {
        let context = |url: Option<&str>, token| KnownServer {
            admin_url: "http://10.0.0.5:8081".into(),
            url: url.map(str::to_owned),
            ca_file: url.map(PathBuf::from),
            confirm: url.is_some(),
            token,
        };
        let name = |name: &str| name.parse::<Name>().unwrap();
        let all = [
            (name("a"), context(None, None)),
            (name("b.c"), context(Some("x:1"), Some(TokenPlace::Variable("T".into())))),
            (name("d"), context(None, Some(TokenPlace::File("/a b".into())))),
        ];
        let contexts = Contexts { current: Some(name("b.c")), all: all.into() };
        assert_eq!(Contexts::of_text(&contexts.to_table().to_string()).unwrap(), contexts);
        assert_eq!(Contexts::of_text("").unwrap(), Contexts::default());
        let error = contexts.get(&name("e")).unwrap_err().to_string();
        assert_eq!(error, "no context \"e\": known are a, b.c, d");
    }

    #[test]
    fn all_faults_are_named_at_once_and_no_token() {
        let text = "currant = 'a'\ncurrent = 1\n[contexts.a]\ntoken = 'secret'\nurl = 2\nconfirm = 'yes'\n\
                    [contexts.B]\n[contexts.c]\nadmin_url = 'x'\ntoken_file = 'a'\ntoken_env = 'b'";
        let error = Contexts::of_text(text).unwrap_err().to_string();
        for named in [
            "unknown key \"currant\"",
            "current must be text",
            "contexts.a: unknown key \"token\"; known are admin_url, url, token_file, token_env, ca_file, confirm",
            "contexts.a.url must be text",
            "contexts.a.confirm must be true or false",
            "contexts.a.admin_url is missing",
            "contexts: \"B\" is not a valid name",
            "contexts.c has both token_file and token_env",
        ] {
            assert!(error.contains(named), "{named} is missing from {error}");
        }
        assert!(!error.contains("secret"), "{error}");
    }
}

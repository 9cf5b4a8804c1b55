//! `gristmill put`: change some keys of a tenant's or a pipeline's document, or put an API key. All
//! else stays as it is.

use anyhow::{Context, Result, bail, ensure};
use clap::{Arg, ArgAction, ArgMatches, Command};
use gristmill_core::Name;
use serde_json::{Map, Value, json};

use crate::admin::{self, Admin};
use crate::differences;
use crate::output::{self, Output};
use crate::release_flags;

/// Maximum times that a document is read anew because another release was made meanwhile.
const ROUNDS_MAX: usize = 5;

pub(crate) fn command() -> Command {
    Command::new("put")
        .about("Make a tenant or a pipeline, change some of its keys, or put an API key")
        .after_help(
            "Examples:\n  \
             gristmill put tenant acme open=true\n  \
             gristmill put tenant acme models+=digits weight=3       grant a model, and weigh\n  \
             gristmill put pipeline main --tenant acme pre=reader model=digits post=reader\n  \
             gristmill put pipeline main --tenant acme limits.cpu_ms=2000\n  \
             gristmill put key web --tenant acme --key-env ACME_WEB_KEY\n\n\
             KEY=VALUE sets a key, and KEY= takes it away. KEY+=VALUE adds to a list, and \
             KEY-=VALUE takes from it. A dot leads into an object. VALUE is JSON, or else text. \
             Keys that are not named stay: `gristmill get tenants acme` shows all. It is one \
             release.",
        )
        .arg(
            Arg::new("kind")
                .value_name("KIND")
                .required(true)
                .value_parser(["tenant", "pipeline", "key"])
                .help("What to put"),
        )
        .arg(Arg::new("name").value_name("NAME").required(true).help("Its name"))
        .arg(
            Arg::new("change")
                .value_name("KEY=VALUE")
                .action(ArgAction::Append)
                .help("A change of its document"),
        )
        .arg(
            Arg::new("tenant")
                .long("tenant")
                .value_name("NAME")
                .help("The pipeline's or the key's tenant"),
        )
        .arg(
            Arg::new("key-env")
                .long("key-env")
                .value_name("VARIABLE")
                .help("The variable with the API key"),
        )
        .arg(
            Arg::new("message")
                .long("message")
                .value_name("TEXT")
                .help("Why; the new release keeps it"),
        )
        .args([release_flags::skip_samples(), release_flags::wait_all()])
        .args(admin::arguments())
        .arg(output::argument())
}

pub(crate) fn run(matches: &ArgMatches) -> Result<()> {
    let put = Put::of(matches)?;
    let admin = Admin::to_change(matches)?;
    let path = format!("releases?{}dry_run=false", release_flags::query(matches));
    for _ in 0..ROUNDS_MAX {
        let release = admin.release()?;
        let change = put.change(&admin)?;
        let mut document = json!({ "changes": [change], "expected_release": release });
        if let Some(message) = matches.get_one::<String>("message") {
            document["message"] = message.as_str().into();
        }
        let made = admin.post_unless_overtaken(&path, &document);
        let made = made.with_context(|| format!("cannot put {} {}", put.kind, put.name))?;
        let Some(made) = made else { continue };
        match Output::of(matches) {
            Output::Json => println!("{made}"),
            Output::Text => {
                let differences = made["differences"].as_array().map_or(&[][..], Vec::as_slice);
                print!("{}", differences::text(differences));
                println!("release {} serves", made["release"]);
            }
        }
        return Ok(());
    }
    bail!("other releases are made all the time: nothing was changed; try again later")
}

/// What is put.
struct Put {
    kind: String,
    name: Name,
    tenant: Option<Name>,
    changes: Vec<Change>,
    /// The API key.
    secret: Option<String>,
}

impl Put {
    fn of(matches: &ArgMatches) -> Result<Self> {
        let argument = |name: &str| matches.get_one::<String>(name);
        let kind = argument("kind").context("KIND is missing")?.clone();
        let name = admin::name("NAME", argument("name").context("NAME is missing")?)?;
        let tenant =
            argument("tenant").map(|tenant| admin::name("--tenant", tenant)).transpose()?;
        let texts = matches.get_many::<String>("change").into_iter().flatten();
        let changes = texts.map(|text| Change::of(text)).collect::<Result<Vec<_>>>()?;
        let variable = argument("key-env");
        match kind.as_str() {
            "tenant" => ensure!(tenant.is_none(), "--tenant is given, but a tenant has none"),
            _ => ensure!(tenant.is_some(), "--tenant is missing: a {kind} belongs to a tenant"),
        }
        let secret = match (kind.as_str(), variable) {
            ("key", Some(variable)) => {
                ensure!(changes.is_empty(), "a key has no document: give --key-env alone");
                let secret = std::env::var(variable).ok().filter(|secret| !secret.is_empty());
                Some(secret.with_context(|| format!("--key-env: {variable} is not set"))?)
            }
            ("key", None) => bail!("--key-env is missing: it names the variable with the key"),
            (_, Some(_)) => bail!("--key-env is for keys only"),
            (_, None) => {
                ensure!(!changes.is_empty(), "KEY=VALUE is missing: nothing would change");
                None
            }
        };
        Ok(Self { kind, name, tenant, changes, secret })
    }

    /// The change of the release, with the document as it is now and the keys that change.
    fn change(&self, admin: &Admin) -> Result<Value> {
        let Self { kind, name, tenant, changes, secret } = self;
        let mut put = json!({ "kind": format!("put_{kind}"), kind.as_str(): name });
        let path = match tenant {
            Some(tenant) => {
                put["tenant"] = tenant.as_str().into();
                format!("tenants/{tenant}/pipelines/{name}")
            }
            None => format!("tenants/{name}"),
        };
        put["document"] = match secret {
            Some(secret) => json!({ "key": secret }),
            None => {
                let mut document = admin.find(&path)?.unwrap_or_else(|| json!({}));
                changes.iter().try_for_each(|change| change.make(&mut document))?;
                document
            }
        };
        Ok(put)
    }
}

/// A change of a document.
#[derive(Debug, PartialEq)]
struct Change {
    /// The keys that lead to the value.
    keys: Vec<String>,
    what: Edit,
}

#[derive(Debug, PartialEq)]
enum Edit {
    Set(Value),
    Remove,
    Add(Value),
    TakeOut(Value),
}

impl Change {
    fn of(text: &str) -> Result<Self> {
        let (key, value) = text
            .split_once('=')
            .with_context(|| format!("{text:?} is not KEY=VALUE, KEY+=VALUE or KEY-=VALUE"))?;
        let json = || match serde_json::from_str(value) {
            Ok(json) => json,
            Err(_) => Value::from(value),
        };
        let (key, what) = if let Some(key) = key.strip_suffix('+') {
            (key, Edit::Add(json()))
        } else if let Some(key) = key.strip_suffix('-') {
            (key, Edit::TakeOut(json()))
        } else if value.is_empty() {
            (key, Edit::Remove)
        } else {
            (key, Edit::Set(json()))
        };
        let keys: Vec<_> = key.split('.').map(str::to_owned).collect();
        ensure!(keys.iter().all(|key| !key.is_empty()), "{text:?} has an empty key");
        Ok(Self { keys, what })
    }

    fn make(&self, document: &mut Value) -> Result<()> {
        let (last, above) = self.keys.split_last().context("a change without a key")?;
        let mut at = document;
        for key in above {
            at = object(at, key)?.entry(key.as_str()).or_insert_with(|| json!({}));
        }
        let keys = object(at, last)?;
        match &self.what {
            Edit::Set(value) => drop(keys.insert(last.clone(), value.clone())),
            Edit::Remove => drop(keys.remove(last)),
            Edit::Add(value) => {
                let items = list(keys.entry(last.as_str()).or_insert_with(|| json!([])), last)?;
                if !items.contains(value) {
                    items.push(value.clone());
                }
            }
            Edit::TakeOut(value) => {
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
            Change::of(change)?.make(&mut document)?;
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

//! `gristmill token create`, `list`, `show`, `rotate` and `delete`: the admin tokens of a server
//! that runs.

use std::time::SystemTime;

use anyhow::{Context, Result, bail};
use clap::{ArgAction, ArgMatches, Command};
use gristmill_core::Name;
use serde_json::{Value, json};

use crate::admin::{self, Admin};
use crate::args::{self, option};
use crate::names;
use crate::output::{self, Column, Output, Table};

const COLUMNS: [Column; 5] = [
    ("NAME", "name"),
    ("ROLE", "role"),
    ("TENANTS", "tenants"),
    ("EXPIRES", "expires"),
    ("STATE", "state"),
];

/// The subcommands of `gristmill token` that call a server.
pub fn commands() -> [Command; 5] {
    let create = Command::new("create")
        .about("Make a token with a name, and print its secret once")
        .after_help(
            "Examples:\n  \
             gristmill token create acme-ci --role deploy --tenant acme --expires 90d\n  \
             gristmill token create dashboard --role read\n  \
             gristmill token create alice --role admin --expires 2027-01-01T00:00:00Z\n\n\
             Roles:\n  \
             read    sees everything but the tokens, and changes nothing\n  \
             deploy  sees its tenants, and changes their plugins, pipelines and API keys\n  \
             admin   does everything, as the token that the server was started with\n\n\
             The server keeps a hash of the secret. If the secret is lost, `gristmill token rotate` \
             makes another one.",
        )
        .args([
            names::argument("The token's name"),
            option("role", "ROLE")
                .required(true)
                .value_parser(["read", "deploy", "admin"])
                .help("What its holder may do"),
            option("tenant", "NAME")
                .action(ArgAction::Append)
                .help("A tenant of a token with the role deploy; can be given several times"),
            option("expires", "WHEN").help(
                "When it ends: a time from now such as 90d or 12h, or a time in UTC such as \
                 2027-01-01T00:00:00Z; never if it is not given",
            ),
        ]);
    let list = Command::new("list")
        .about("List the tokens of a server, without their secrets")
        .after_help("The token that the server was started with is not in the list.");
    let show = Command::new("show")
        .about("Show what the token that you use is for, and when it ends")
        .after_help("It works with every valid token: it shows the one that the command uses.");
    let rotate = Command::new("rotate")
        .about("Give a token another secret and print it once; the old one becomes invalid")
        .arg(names::argument("The token's name"));
    let delete = Command::new("delete")
        .about("Delete a token: it is invalid at once")
        .arg(names::argument("The token's name"));
    let [create, rotate, delete] =
        [create, rotate, delete].map(|command| command.args(admin::changing()));
    let [list, show] = [list, show].map(|command| command.args(admin::asking()));
    [create, list, show, rotate, delete]
}

/// Run the one of [`commands`] that `matches`, of `gristmill token`, name.
///
/// # Errors
/// The server refuses or cannot be reached, or it is none of them.
pub fn run(matches: &ArgMatches) -> Result<()> {
    match matches.subcommand() {
        Some(("create", matches)) => create(matches),
        Some(("list", matches)) => list(matches),
        Some(("show", matches)) => show(matches),
        Some(("rotate", matches)) => rotate(matches),
        Some(("delete", matches)) => delete(matches),
        _ => bail!("no such command; see gristmill token --help"),
    }
}

fn create(matches: &ArgMatches) -> Result<()> {
    let name = names::given(matches)?;
    let mut document = json!({ "role": args::required(matches, "role")? });
    if let Some(tenants) = matches.get_many::<String>("tenant") {
        let tenants = tenants.map(|tenant| admin::name("--tenant", tenant));
        document["tenants"] = json!(tenants.collect::<Result<Vec<_>>>()?);
    }
    if let Some(when) = matches.get_one::<String>("expires") {
        document["expires"] = end(when, SystemTime::now())?.into();
    }
    let made = Admin::to_change(matches)?.put_new(&format!("tokens/{name}"), &document);
    show_secret(&name, &made.with_context(|| format!("cannot make token {name}"))?, matches)
}

fn rotate(matches: &ArgMatches) -> Result<()> {
    let name = names::given(matches)?;
    let rotated = Admin::to_change(matches)?.post(&format!("tokens/{name}/rotate"), &json!({}));
    let rotated = rotated.with_context(|| format!("cannot rotate token {name}"))?;
    show_secret(&name, &rotated, matches)
}

fn delete(matches: &ArgMatches) -> Result<()> {
    let name = names::given(matches)?;
    let deleted = Admin::to_change(matches)?.delete(&format!("tokens/{name}"));
    let deleted = deleted.with_context(|| format!("cannot delete token {name}"))?;
    let release = &deleted["release"];
    let text = || format!("deleted token {name} in release {release}\n");
    Output::of(matches).print(&deleted, text);
    Ok(())
}

fn list(matches: &ArgMatches) -> Result<()> {
    let items = Admin::of(matches)?.items("tokens").context("cannot list the tokens")?;
    Table { columns: &COLUMNS, none: "there are no tokens" }.print(
        &items,
        Output::of(matches),
        row,
    );
    Ok(())
}

fn show(matches: &ArgMatches) -> Result<()> {
    let token = Admin::of(matches)?.get("self").context("cannot show the token")?;
    output::print_document(&token, Output::of(matches));
    Ok(())
}

/// The end of a token, as the server takes it.
fn end(when: &str, now: SystemTime) -> Result<String> {
    if humantime::parse_rfc3339(when).is_ok() {
        return Ok(when.to_owned());
    }
    let end = humantime::parse_duration(when).ok().and_then(|time| now.checked_add(time));
    match end {
        Some(end) => Ok(humantime::format_rfc3339_seconds(end).to_string()),
        None => bail!(
            "--expires is {when:?}: must be a time from now such as 90d or 12h, or a time in UTC \
             such as 2027-01-01T00:00:00Z"
        ),
    }
}

/// Print the secret, which the server does not show again.
fn show_secret(name: &Name, answer: &Value, matches: &ArgMatches) -> Result<()> {
    let secret = answer["secret"].as_str().context("the server answered without a secret")?;
    let document = json!({ "name": name, "secret": secret, "release": answer["release"] });
    let text = || format!("token {name} {} (shown only this once)\n", output::escaped(secret));
    Output::of(matches).print(document, text);
    Ok(())
}

/// A token with its tenants in one cell.
fn row(token: &Value) -> Value {
    let mut row = token.clone();
    let tenants = token["tenants"].as_array().map_or(&[][..], Vec::as_slice);
    let tenants: Vec<_> = tenants.iter().filter_map(Value::as_str).collect();
    row["tenants"] = tenants.join(", ").into();
    row["state"] = if token["expired"] == true { "expired" } else { "valid" }.into();
    row
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, UNIX_EPOCH};

    use super::*;

    #[test]
    fn an_end_is_a_time_or_a_time_from_now() {
        let now = UNIX_EPOCH + Duration::from_secs(1_000_000_000);
        assert_eq!(end("2027-01-01T00:00:00Z", now).unwrap(), "2027-01-01T00:00:00Z");
        assert_eq!(end("1d", now).unwrap(), "2001-09-10T01:46:40Z");
        for wrong in ["soon", "", "90", "-1d"] {
            let error = end(wrong, now).unwrap_err().to_string();
            assert!(error.starts_with(&format!("--expires is {wrong:?}: must be")), "{error}");
        }
    }

    #[test]
    fn a_token_is_one_line() {
        let tokens = [
            json!({ "name": "ci", "role": "deploy", "tenants": ["acme", "other"], "version": 3,
                "expires": "2027-01-01T00:00:00Z", "expired": false }),
            json!({ "name": "old", "role": "read", "version": 1, "expired": true,
                "expires": "2020-01-01T00:00:00Z" }),
            json!({ "name": "ops", "role": "admin", "version": 2, "expired": false }),
        ];
        let rows: Vec<_> = tokens.iter().map(row).collect();
        let expected = "\
NAME  ROLE    TENANTS      EXPIRES               STATE
ci    deploy  acme, other  2027-01-01T00:00:00Z  valid
old   read                 2020-01-01T00:00:00Z  expired
ops   admin                                      valid
";
        assert_eq!(output::table(&COLUMNS, &rows), expected);
    }
}

//! `gristmill rollback`: back to the state after an earlier release, as a new release.

use std::io::{IsTerminal, Write, stderr, stdin};

use anyhow::{Context, Result, bail};
use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use serde_json::{Value, json};

use crate::plugin::admin::{self, Admin};
use crate::plugin::output::{self, Output};

/// The most bytes of a value in a line.
const VALUE_BYTES_MAX: usize = 200;

pub(crate) fn command() -> Command {
    let flag = |name: &'static str| Arg::new(name).long(name);
    Command::new("rollback")
        .about("Bring back the state after an earlier release, as a new release")
        .after_help(
            "Examples:\n  \
             gristmill rollback --to 12 --dry-run\n  \
             gristmill rollback --to 12 --tenant acme --message \"the new plugin is wrong\"\n  \
             gristmill rollback --to 12 --model digits --yes\n\n\
             What would change is shown, and asked about. Without a terminal, give --yes. API keys \
             stay as they are: a key that was deleted or replaced does not come back. Give the \
             token in GRISTMILL_ADMIN_TOKEN rather than with --token.",
        )
        .arg(
            flag("to")
                .value_name("RELEASE")
                .required(true)
                .value_parser(value_parser!(u64).range(1..))
                .help("The release; `gristmill releases` lists them"),
        )
        .arg(
            flag("tenant")
                .value_name("NAME")
                .conflicts_with("model")
                .help("Bring back only this tenant with its plugins and pipelines"),
        )
        .arg(flag("model").value_name("NAME").help("Bring back only this model"))
        .arg(flag("message").value_name("TEXT").help("Why; the new release keeps it"))
        .arg(
            flag("force")
                .action(ArgAction::SetTrue)
                .help("Bring back models although they do not fit the pipelines that use them"),
        )
        .arg(
            flag("skip-samples")
                .action(ArgAction::SetTrue)
                .help("Go back although pipelines may not answer their samples as expected then"),
        )
        .arg(flag("dry-run").action(ArgAction::SetTrue).help("Only show what would change"))
        .arg(flag("yes").action(ArgAction::SetTrue).help("Do not ask"))
        .args(admin::arguments())
        .arg(output::argument())
}

pub(crate) fn run(matches: &ArgMatches) -> Result<()> {
    let admin = Admin::of(matches)?;
    let output = Output::of(matches);
    let to = matches.get_one::<u64>("to").context("--to is missing")?;
    let mut document = json!({ "to": to });
    for key in ["tenant", "model", "message"] {
        if let Some(text) = matches.get_one::<String>(key) {
            document[key] = text.as_str().into();
        }
    }
    let flags = [("force", "force=true&"), ("skip-samples", "skip_samples=true&")];
    let given = flags.into_iter().filter(|(flag, _)| matches.get_flag(flag));
    let query: String = given.map(|(_, parameter)| parameter).collect();
    let failed = || format!("cannot go back to release {to}");
    let planned = admin.post(&format!("rollback?{query}dry_run=true"), &document);
    let planned = planned.with_context(failed)?;
    let differences = planned["differences"].as_array().map_or(&[][..], Vec::as_slice);
    if matches.get_flag("dry-run") || differences.is_empty() {
        match output {
            Output::Json => println!("{planned}"),
            Output::Text => print!("{}", text(differences)),
        }
        return Ok(());
    }
    if !matches.get_flag("yes") {
        eprint!("{}", text(differences));
        if !ask(&format!("Go back to release {to}?"))? {
            bail!("nothing was changed");
        }
    }
    // Only what was shown is done.
    if let Some(release) = planned["release"].as_u64() {
        document["expected_release"] = release.saturating_sub(1).into();
    }
    let made = admin.post(&format!("rollback?{query}dry_run=false"), &document);
    let made = made.with_context(failed)?;
    match output {
        Output::Json => println!("{made}"),
        Output::Text => println!("release {} serves", made["release"]),
    }
    Ok(())
}

fn ask(question: &str) -> Result<bool> {
    if !stdin().is_terminal() {
        bail!("there is no terminal to ask at: give --yes to go on, or --dry-run to only look");
    }
    eprint!("{question} [y/N] ");
    stderr().flush()?;
    let mut answer = String::new();
    stdin().read_line(&mut answer)?;
    Ok(["y", "yes"].contains(&answer.trim().to_lowercase().as_str()))
}

/// A line for each thing that differs: `+` for a new one, `-` for one that goes, `~` for others,
/// each with the members that differ.
fn text(differences: &[Value]) -> String {
    if differences.is_empty() {
        return "nothing differs\n".into();
    }
    let lines = differences.iter().map(|difference| {
        let (before, after) = (&difference["before"], &difference["after"]);
        let kind = difference["kind"].as_str().unwrap_or_default().replace('_', " ");
        let own = ["key", "plugin", "pipeline"].map(|key| difference[key].as_str());
        let owner = difference["tenant"].as_str().or_else(|| difference["model"].as_str());
        let name = owner.into_iter().chain(own.into_iter().flatten()).collect::<Vec<_>>().join("/");
        let line = match (before.is_null(), after.is_null()) {
            (true, _) => format!("+ {kind} {name}"),
            (_, true) => format!("- {kind} {name}"),
            _ => format!("~ {kind} {name}: {}", members(before, after)),
        };
        format!("{}\n", output::escaped(&line))
    });
    lines.collect()
}

/// The members that differ, before and after.
fn members(before: &Value, after: &Value) -> String {
    let none = serde_json::Map::new();
    let [old, new] = [before, after].map(|document| document.as_object().unwrap_or(&none));
    let mut keys: Vec<_> = old.keys().chain(new.keys()).collect();
    keys.sort_unstable();
    keys.dedup();
    let differ = keys.into_iter().filter(|key| old.get(*key) != new.get(*key));
    let shown = |value: Option<&Value>| value.map_or("none".into(), |value| cut(value.to_string()));
    let text = |key: &String| format!("{key} {} -> {}", shown(old.get(key)), shown(new.get(key)));
    differ.map(text).collect::<Vec<_>>().join(", ")
}

/// A value that fits on a line. Samples, for example, may be long.
fn cut(mut text: String) -> String {
    if text.len() > VALUE_BYTES_MAX {
        text.truncate(text.floor_char_boundary(VALUE_BYTES_MAX));
        text.push_str("...");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_difference_is_a_line() {
        let model = |instances: u64| json!({ "instances": instances, "threads": 1 });
        let differences = [
            json!({ "kind": "plugin", "tenant": "acme", "plugin": "p", "after": { "version": 2 } }),
            json!({ "kind": "tenant", "tenant": "other", "before": { "open": true } }),
            json!({ "kind": "model_config", "model": "m", "before": model(1), "after": model(2) }),
        ];
        let expected = "+ plugin acme/p\n- tenant other\n~ model config m: instances 1 -> 2\n";
        assert_eq!(text(&differences), expected);
        assert_eq!(text(&[]), "nothing differs\n");
        let long = json!({ "settings": "x".repeat(1 << 20) });
        let long = json!({ "kind": "pipeline", "tenant": "t", "pipeline": "p", "before": {}, "after": long });
        assert!(text(&[long]).len() < 300);
    }
}

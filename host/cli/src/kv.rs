//! `gristmill kv`: the values that a tenant's plugins find in a store of a server.

mod rows;

use std::fs::File;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use clap::{Arg, ArgMatches, Command, value_parser};
use serde_json::{Value, json};

use self::rows::{Heading, Row, Rows, float_bytes};
use crate::admin::{self, Admin};
use crate::args::{group, option, required, switch, word};
use crate::ask::ask;
use crate::names;
use crate::output::{Output, escaped};
use crate::progress::Progress;

/// Maximum values and bytes of one call. The server takes a document of 1 MiB.
const BATCH_VALUES: usize = 1000;
const BATCH_BYTES: usize = 512 << 10;

/// The bytes of a value in a document besides its key and itself.
const BESIDE_BYTES: usize = 64;

/// The flags about the first line of a CSV file.
const HEADING: &str = "heading";
const NO_HEADING: &str = "no-heading";

pub(crate) fn command() -> Command {
    group("kv")
        .about("Read and set the values that a tenant's plugins find in a store")
        .after_help(
            "Examples:\n  \
             gristmill kv load features items.csv --tenant acme\n  \
             gristmill kv get features item:7 --tenant acme --floats\n  \
             gristmill kv set sessions greeting hello --tenant acme --ttl-ms 60000\n  \
             gristmill kv clear sessions --tenant acme\n\n\
             The server's configuration binds the store, to Redis or to a file. The token must have \
             the role admin.",
        )
        .subcommand(of_key(Command::new("get").about("Print the value of a key")).arg(
            switch("floats").help("Print the value as float32, with commas between"),
        ))
        .subcommand(
            of_key(Command::new("set").about("Set the value of a key"))
                .args([
                    word("value", "VALUE").allow_hyphen_values(true).help("The value, as text"),
                    switch("floats")
                        .help("VALUE is float32, with commas between, as `gather` reads them"),
                    ttl(),
                    admin::yes(),
                ]),
        )
        .subcommand(of_key(Command::new("delete").about("Forget a key")).arg(admin::yes()))
        .subcommand(
            of_store(Command::new("clear").about("Forget all values of a tenant"))
                .after_help(
                    "The values of a tenant stay when it is deleted, and a new tenant of the same \
                     name finds them. This command asks before it forgets them; without a terminal, \
                     give --yes. A store in Redis is cleared with redis-cli, and not at all where \
                     tenants share keys.",
                )
                .arg(admin::yes()),
        )
        .subcommand(
            of_store(Command::new("load").about("Set the values of a file"))
                .after_help(
                    "FILE.csv has a key and then float32 numbers in each line, and maybe a heading:\n  \
                     item,f1,f2\n  \
                     item:7,0.5,-1\n\
                     Cells may be in quotation marks: \"a, b\",0.5,-1. The first line is taken as a \
                     heading if it has no number after the key. A note says so; --heading and \
                     --no-heading decide it.\n\
                     FILE.ndjson has an object in each line. A list of numbers is float32:\n  \
                     {\"key\": \"item:7\", \"value\": [0.5, -1]}\n  \
                     {\"key\": \"greeting\", \"value\": \"hello\"}\n  \
                     {\"key\": \"raw\", \"base64\": \"AAEC\"}\n\n\
                     An error names the line. The lines before it may be set; load the file again \
                     when it is right.",
                )
                .args([
                    word("file", "FILE")
                        .value_parser(value_parser!(PathBuf))
                        .help("A file that ends with .csv or .ndjson"),
                    switch(HEADING).help("The first line of FILE.csv is a heading"),
                    switch(NO_HEADING)
                        .help("The first line of FILE.csv is a row")
                        .conflicts_with(HEADING),
                    ttl(),
                    admin::yes(),
                ]),
        )
}

pub(crate) fn run(matches: &ArgMatches) -> Result<()> {
    match matches.subcommand() {
        Some(("get", matches)) => get(matches),
        Some(("set", matches)) => set(matches),
        Some(("delete", matches)) => delete(matches),
        Some(("clear", matches)) => clear(matches),
        Some(("load", matches)) => load(matches),
        _ => bail!("no such command; see gristmill kv --help"),
    }
}

/// A command on a store.
fn of_store(command: Command) -> Command {
    command
        .args([
            word("store", "STORE").help("The store's name"),
            option("tenant", "TENANT")
                .required(true)
                .help("The tenant whose plugins find the values"),
        ])
        .args(admin::asking())
}

/// A command on a key.
fn of_key(command: Command) -> Command {
    of_store(command).arg(word("key", "KEY").help("The key"))
}

fn ttl() -> Arg {
    option("ttl-ms", "MS")
        .value_parser(value_parser!(u64).range(1..=i64::MAX as u64))
        .help("Forget it after so many milliseconds [default: never]")
}

/// The path of the store.
fn path(matches: &ArgMatches) -> Result<String> {
    let store = names::required(matches, "store", "STORE")?;
    Ok(format!("tenants/{}/stores/{store}", names::given_tenant(matches)?))
}

/// The path of the key.
fn key_path(matches: &ArgMatches) -> Result<String> {
    let key = required(matches, "key")?;
    // A space is `+` there, which stands for itself in a path.
    let key = form_urlencoded::byte_serialize(key.as_bytes()).collect::<String>();
    Ok(format!("{}/values/{}", path(matches)?, key.replace('+', "%20")))
}

fn get(matches: &ArgMatches) -> Result<()> {
    let stored = Admin::of(matches)?.get(&key_path(matches)?)?;
    let text = match (matches.get_flag("floats"), Output::of(matches)) {
        (false, Output::Json) => stored.to_string(),
        (false, Output::Text) => match stored["text"].as_str() {
            Some(text) => escaped(text),
            None => format!("base64: {}", stored["base64"].as_str().unwrap_or_default()),
        },
        (true, output) => {
            let numbers = floats_of(&stored)?;
            match output {
                Output::Json => Value::from(numbers).to_string(),
                Output::Text => numbers.iter().map(f32::to_string).collect::<Vec<_>>().join(","),
            }
        }
    };
    println!("{text}");
    Ok(())
}

/// The stored value, as float32.
fn floats_of(stored: &Value) -> Result<Vec<f32>> {
    let bytes = match (stored["text"].as_str(), stored["base64"].as_str()) {
        (Some(text), _) => text.as_bytes().to_vec(),
        (None, base64) => {
            let bytes = STANDARD.decode(base64.unwrap_or_default()).ok();
            bytes.context("the server has answered something that is not base64")?
        }
    };
    let (numbers, rest) = bytes.as_chunks::<4>();
    ensure!(rest.is_empty(), "the value has {} bytes: float32 have a multiple of 4", bytes.len());
    Ok(numbers.iter().map(|number| f32::from_le_bytes(*number)).collect())
}

fn set(matches: &ArgMatches) -> Result<()> {
    let value = required(matches, "value")?;
    let mut document = match matches.get_flag("floats") {
        true => json!({ "base64": STANDARD.encode(float_bytes(value.split(','))?) }),
        false => json!({ "text": value }),
    };
    if let Some(ttl_ms) = matches.get_one::<u64>("ttl-ms") {
        document["ttl_ms"] = (*ttl_ms).into();
    }
    let path = key_path(matches)?;
    let changed = Admin::to_change(matches)?.put(&path, document.to_string().into_bytes())?;
    say(matches, &changed, "set")
}

fn delete(matches: &ArgMatches) -> Result<()> {
    let path = key_path(matches)?;
    say(matches, &Admin::to_change(matches)?.delete(&path)?, "deleted")
}

/// Forget all values of a tenant, with one call after the other.
fn clear(matches: &ArgMatches) -> Result<()> {
    let path = path(matches)?;
    let admin = Admin::of(matches)?;
    admin.announce();
    if !matches.get_flag("yes") {
        let (store, tenant) = (required(matches, "store")?, required(matches, "tenant")?);
        ask(&format!("Forget all values of the tenant {tenant} in the store {store}?"))?;
    }
    let progress = Progress::wait("clearing");
    let mut changed = 0;
    loop {
        let step = admin.delete(&path)?;
        changed += step["changed"].as_u64().unwrap_or_default();
        if step["is_empty"] != false {
            break;
        }
    }
    drop(progress);
    say(matches, &json!({ "changed": changed }), &format!("{changed} values deleted"))
}

/// Print what was done.
fn say(matches: &ArgMatches, changed: &Value, done: &str) -> Result<()> {
    Output::of(matches).print(changed, || format!("{done}\n"));
    Ok(())
}

fn load(matches: &ArgMatches) -> Result<()> {
    let path = path(matches)?;
    let file = matches.get_one::<PathBuf>("file").context("FILE is missing")?;
    let admin = Admin::to_change(matches)?;
    let ttl_ms = matches.get_one::<u64>("ttl-ms").copied();
    let heading = match (matches.get_flag(HEADING), matches.get_flag(NO_HEADING)) {
        (true, _) => Heading::There,
        (_, true) => Heading::NotThere,
        _ => Heading::Unknown,
    };
    let changed = Loading { admin: &admin, path: &path, ttl_ms, heading }
        .load(file)
        .with_context(|| format!("cannot load {}", file.display()))?;
    say(matches, &json!({ "changed": changed }), &format!("{changed} values set"))
}

/// Sets the values of a file.
struct Loading<'a> {
    admin: &'a Admin,
    path: &'a str,
    ttl_ms: Option<u64>,
    heading: Heading,
}

impl Loading<'_> {
    /// Returns how many values were set.
    fn load(&self, path: &Path) -> Result<usize> {
        let file = File::open(path)?;
        let progress = Progress::bytes("loading", file.metadata()?.len());
        let mut rows = Rows::of(path, file, self.heading)?;
        let (mut batch, mut bytes, mut changed) = (Vec::new(), 0, 0);
        let mut read = 0;
        while let Some(row) = rows.next_row()? {
            let key_bytes = Value::from(row.key.as_str()).to_string().len();
            let row_bytes = key_bytes + row.value.len().div_ceil(3) * 4 + BESIDE_BYTES;
            if batch.len() == BATCH_VALUES || bytes + row_bytes > BATCH_BYTES {
                changed += self.send(&mut batch)?;
                bytes = 0;
                progress.set(read);
            }
            bytes += row_bytes;
            batch.push(row);
            read = rows.read_bytes();
        }
        changed += self.send(&mut batch)?;
        drop(progress);
        if let Some(note) = rows.note() {
            eprintln!("{note}");
        }
        Ok(changed)
    }

    /// Send the rows of a batch, and empty it.
    fn send(&self, batch: &mut Vec<Row>) -> Result<usize> {
        let (Some(first), Some(last)) = (batch.first(), batch.last()) else { return Ok(0) };
        let lines = format!("lines {} to {}", first.line, last.line);
        let value = |row: &Row| json!({ "key": row.key, "base64": STANDARD.encode(&row.value) });
        let mut document = json!({ "values": batch.iter().map(value).collect::<Vec<_>>() });
        if let Some(ttl_ms) = self.ttl_ms {
            document["ttl_ms"] = ttl_ms.into();
        }
        self.admin.post(self.path, &document).context(lines)?;
        let count = batch.len();
        batch.clear();
        Ok(count)
    }
}

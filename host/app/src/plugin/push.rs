//! `gristmill plugin push`: upload a component; it is live when the command returns.

use std::path::Path;

use anyhow::{Context, Result, bail};
use clap::{Arg, ArgMatches, Command};

use super::build::build;

pub(crate) fn command() -> Command {
    let text = |name: &'static str, help: &'static str| {
        Arg::new(name).long(name).value_name("NAME").help(help)
    };
    Command::new("push")
        .about("Upload a plugin; it is live in every pipeline that names it when this returns")
        .arg(
            Arg::new("plugin")
                .value_name("PLUGIN")
                .default_value(".")
                .help("A component's or core module's file, or a folder, which is built first"),
        )
        .arg(text("tenant", "The tenant it belongs to").required(true))
        .arg(text("name", "The plugin's name [default: the file's]"))
        .arg(
            Arg::new("admin")
                .long("admin")
                .value_name("URL")
                .env("GRISTMILL_ADMIN_URL")
                .default_value("http://127.0.0.1:8081")
                .help("The admin plane"),
        )
        .arg(
            Arg::new("token")
                .long("token")
                .value_name("TOKEN")
                .env("GRISTMILL_ADMIN_TOKEN")
                .hide_env_values(true)
                .required(true)
                .help("The admin token"),
        )
}

pub(crate) fn run(matches: &ArgMatches) -> Result<()> {
    let given = |name: &str| matches.get_one::<String>(name).map(String::as_str);
    let plugin = Path::new(given("plugin").unwrap_or("."));
    let file = if plugin.is_dir() { build(plugin, None)?.path } else { plugin.to_owned() };
    let name = given("name").map(str::to_owned).unwrap_or_else(|| name_of(&file));
    let tenant = given("tenant").context("--tenant is missing")?;
    let admin = given("admin").context("--admin is missing")?.trim_end_matches('/');
    let token = given("token").context("--token is missing")?;
    let url = format!("{admin}/admin/v1/tenants/{tenant}/plugins/{name}");
    let body = std::fs::read(&file).with_context(|| file.display().to_string())?;
    let agent: ureq::Agent =
        ureq::Agent::config_builder().http_status_as_error(false).build().into();
    let mut response = agent
        .put(&url)
        .header("authorization", format!("Bearer {token}"))
        .send(&body)
        .with_context(|| format!("PUT {url}"))?;
    let status = response.status();
    let text = response.body_mut().read_to_string()?;
    let answer: serde_json::Value = serde_json::from_str(&text).unwrap_or_default();
    if !status.is_success() {
        bail!("PUT {url}: {status}: {}", answer["detail"].as_str().unwrap_or(&text));
    }
    println!("{tenant}/{name} is live in release {}", answer["release"]);
    Ok(())
}

/// The plugin's name from its file's: `digits` from `digits.component.wasm`.
fn name_of(file: &Path) -> String {
    let name = file.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    name.split('.').next().unwrap_or_default().replace('_', "-")
}

//! `gristmill up`: `gristmill serve` for one person on this machine. It keeps the token for the
//! other commands, and makes the context with which they find the server.

use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::{Arg, ArgMatches, Command, value_parser};
use gristmill_cli::{LOCAL, LocalServer, Replaced};
use gristmill_client::Addresses;
use gristmill_log::LogFormat;

use crate::config::{self, Config};
use crate::serve::{self, Style};
use crate::token::{self, NewToken};

/// Nobody waits for this server to be taken out of a balancer.
const DEFAULTS: &[(&str, &str)] = &[("shutdown_delay_s", "0")];

pub(crate) fn command() -> Command {
    Command::new("up")
        .about("Serve on this machine, and tell the other commands where")
        .arg(
            Arg::new("folder")
                .value_name("FOLDER")
                .value_parser(value_parser!(PathBuf))
                .help("The folder of its data, which is made if it is missing [default: data_dir]"),
        )
        .args(config::args())
        .after_help(
            "Examples:\n  \
             gristmill up\n  \
             gristmill up ~/mill --listen 127.0.0.1:9000\n\n\
             It is `gristmill serve`, with all its settings. Besides, it keeps the root token that it \
             makes at its first start in the file admin-token of its data, which only you may read, \
             and makes the context `local`, which becomes the current one: so other commands need \
             no flag and no variable. Ctrl-C ends it.\n\n\
             It listens on loopback addresses only. If a port is taken, --listen, --grpc-listen or \
             --admin-listen gives another.",
        )
}

pub(crate) fn run(matches: &ArgMatches) -> Result<()> {
    let mut config = Config::resolve(matches, DEFAULTS)?;
    if let Some(folder) = matches.get_one::<PathBuf>("folder") {
        config.data.data_dir.clone_from(folder);
    }
    serve::serve(config, Style { token: NewToken::InFile, announce })
}

/// Say where the server is, keep its context, and say what to do next.
fn announce(config: &Config, addresses: &Addresses) -> Result<()> {
    serve::announce(config, addresses)?;
    let next = match keep_context(config, addresses) {
        Ok(next) => next,
        // The server serves all the same.
        Err(error) => {
            tracing::warn!(error = format!("{error:#}"), "the context {LOCAL} cannot be kept");
            return Ok(());
        }
    };
    if config.logging.log_format == LogFormat::Json {
        return Ok(());
    }
    let mut out = std::io::stdout().lock();
    out.write_all(next.as_bytes())?;
    out.flush()?;
    Ok(())
}

/// Make or renew the context. Returns the lines about it.
fn keep_context(config: &Config, addresses: &Addresses) -> Result<String> {
    let token_file = match config.access.admin_token {
        None => Some(absolute_token_file(&config.data.data_dir)?),
        Some(_) => None,
    };
    let Addresses { admin, data, .. } = addresses;
    let is_of_variable = token_file.is_none();
    let token_place = token_file
        .as_ref()
        .map_or_else(|| "GRISTMILL_ADMIN_TOKEN".to_owned(), |file| file.display().to_string());
    let server = LocalServer { admin_url: admin.clone(), url: data.clone(), token_file };
    let Replaced { current, server } = server.keep()?;
    let before = current.map(|name| format!(" (before: {name})")).unwrap_or_default();
    let other = server.map_or_else(String::new, |arguments| {
        format!(
            "\n{LOCAL} was a server of other data before. To call that one, too:\n  \
             gristmill context add NAME {arguments}\n"
        )
    });
    let variable = match is_of_variable {
        true => " with the token in GRISTMILL_ADMIN_TOKEN",
        false => "",
    };
    Ok(format!(
        "{other}\n{LOCAL} is the current context{before}: other commands call this server{variable}. Next, in \
         another terminal:\n  \
         gristmill tenant create demo --open\n  \
         gristmill model push MODEL.onnx --name digits\n  \
         gristmill plugin push FOLDER --tenant demo --pipeline main --model digits\n  \
         curl --data-binary @FOLDER/requests/sample.json {data}/v1/demo/infer/main\n\
         The console is at {admin}/ and asks for the token in {token_place}.\n\
         The API is described at {admin}/admin/v1/docs. Ctrl-C ends the server.\n"
    ))
}

fn absolute_token_file(data_dir: &Path) -> Result<PathBuf> {
    Ok(std::path::absolute(token::plain_file(data_dir))?)
}

//! `gristmill status`, and the scripts of `gristmill completions`.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::support::cli::Cli;
use crate::support::files;
use crate::support::server::Server;
use crate::support::words::assert_names;

#[test]
fn the_page_shows_what_serves() {
    let server = Server::start();
    let cli = Cli::of(&server);
    let address = server.admin.address().trim_start_matches("http://");
    let page = cli.ok(&["status"]);
    let first = format!("{address}: release 0, gristmill {}, ", env!("CARGO_PKG_VERSION"));
    assert!(page.starts_with(&first) && page.lines().count() == 3, "{page}");
    assert!(page.contains("up for ") && page.contains(" 0 requests under way"), "{page}");
    server.digits("acme");
    server.data.post("/v1/acme/infer", &files::digit(4)).ok();
    let page = cli.ok(&["status"]);
    let lines: Vec<Vec<_>> = page.lines().map(|line| line.split_whitespace().collect()).collect();
    assert!(page.contains(": release 4, "), "{page}");
    let model = lines.iter().find(|line| line.first() == Some(&"digits")).unwrap();
    assert_eq!((model[2], model[4], model[5], model[8]), ("0", "1", "1", "ready"));
    assert_eq!(model[9..], ["input", "FP32", "[-1,1,28,28]", "->", "output", "FP32", "[-1,10]"]);
    assert!(lines.contains(&vec!["acme", "plugin", "digits", "ready"]), "{page}");
    assert!(lines.contains(&vec!["acme", "pipeline", "digits", "ready,", "default"]), "{page}");
    assert_eq!(cli.json(&["status"])["release"], 4);
}

#[test]
fn a_watched_status_follows_the_server() {
    let server = Server::start();
    let cli = Cli::of(&server);
    let mut watch = cli.command(&["status", "--watch", "--output", "json"]);
    let mut watch = watch.stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(watch.stdout.take().unwrap()).lines();
    let mut release = || -> Value {
        let line = lines.next().unwrap().unwrap();
        serde_json::from_str::<Value>(&line).unwrap()["release"].take()
    };
    assert_eq!(release(), 0);
    server.open_tenant("acme");
    while release() != 1 {}
    watch.kill().unwrap();
    watch.wait().unwrap();
    let error =
        Cli::new().refused(&["status", "--watch", "--admin", "127.0.0.1:1", "--token", "x"]);
    assert_names(&error, &["cannot show the status: nothing listens at 127.0.0.1:1"]);
}

#[test]
fn completions_are_scripts_that_know_all_commands() {
    let cli = Cli::new();
    for shell in ["bash", "zsh", "fish", "powershell"] {
        let script = cli.ok(&["completions", shell]);
        for word in ["deploy", "context", "rollback", "--dry-run", "completions"] {
            let word = word.trim_start_matches('-');
            assert!(script.contains(word), "{shell}: {word}");
        }
        if shell == "bash" {
            let path = cli.write("gristmill.bash", &script);
            let mut bash = Command::new("bash");
            let checked = bash.arg("-n").arg(&path).output().unwrap();
            assert!(checked.status.success() && checked.stderr.is_empty(), "{checked:?}");
            // What a shell would ask it for.
            let ask = format!(
                "source {}; COMP_WORDS=(gristmill depl); COMP_CWORD=1; _gristmill gristmill depl \
                 gristmill; echo ${{COMPREPLY[@]}}",
                path.display()
            );
            let asked = Command::new("bash").arg("-c").arg(ask).output().unwrap();
            assert_eq!(String::from_utf8_lossy(&asked.stdout), "deploy\n", "{asked:?}");
        }
    }
    assert_eq!(cli.run(&["completions", "tcsh"]).code, Some(2));
}

//! The admin token of a first start, also of one that fails, and getting a new token.

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use crate::support::server::Server;
use crate::support::setup::Setup;

fn token_file(setup: &Setup) -> PathBuf {
    setup.data_dir().join("admin-token.sha256")
}

/// The status of the answer to a call with this token.
fn status(server: &Server, token: &str) -> u16 {
    server.admin.with_token(token).get("/admin/v1/status").status
}

/// Run `gristmill token reset`. Returns the new token and the text on standard error.
#[track_caller]
fn reset(setup: &Setup) -> (String, String) {
    let data_dir = setup.data_dir();
    let output = setup.run(&["token", "reset", "--data-dir", data_dir.to_str().unwrap()]);
    let text = |bytes| String::from_utf8(bytes).unwrap();
    let (stdout, stderr) = (text(output.stdout), text(output.stderr));
    assert!(output.status.success(), "{stderr}");
    let line = stdout.strip_prefix("admin token ").unwrap();
    (line.strip_suffix(" (shown only this once)\n").unwrap().to_owned(), stderr)
}

#[test]
fn the_first_start_makes_an_admin_token_and_shows_it_once() {
    let server = Setup::new().without_admin_token().start();
    let token = server.shown_token();
    assert!(token.starts_with("gma_") && token.len() > 60, "{token}");
    assert_eq!((status(&server, &token), status(&server, "gma_another-token")), (200, 403));
    let mode = fs::metadata(token_file(server.setup())).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    server.signal_terminate();
    let (rest, _, setup) = server.wait();
    assert_eq!(rest, "", "nothing more is said");

    let server = setup.start();
    assert!(!server.shows_token(), "{:?}", server.first_lines());
    assert_eq!((status(&server, &token), status(&server, "gma_another-token")), (200, 403));
    assert!(!server.log().contains(&token), "the token is in the log");
    assert_no_file_holds(&server.kill(), &token);
}

/// The server keeps only the digest of the token.
#[track_caller]
fn assert_no_file_holds(setup: &Setup, token: &str) {
    let files = fs::read_dir(setup.data_dir()).unwrap().map(|entry| entry.unwrap().path());
    let mut texts = 0;
    for file in files.filter(|path| path.is_file()) {
        assert!(!fs::read_to_string(&file).unwrap().contains(token), "{}", file.display());
        texts += 1;
    }
    assert!(texts > 0, "the digest is kept");
}

#[test]
fn a_first_start_that_fails_loses_no_token() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let setup = Setup::new().without_admin_token().flag("--listen", &address);
    assert!(setup.start_refused().contains("choose another address with --listen"));
    assert!(!token_file(&setup).exists());
    let server = setup.without_flags().start();
    assert_eq!(status(&server, &server.shown_token()), 200);
}

#[test]
fn a_token_file_that_says_nothing_names_the_cure() {
    let setup = Setup::new().without_admin_token();
    fs::create_dir_all(setup.data_dir()).unwrap();
    for (content, state) in [("", "is empty"), ("sha256:12", "is damaged")] {
        fs::write(token_file(&setup), content).unwrap();
        let error = setup.start_refused();
        assert!(error.contains(state), "{error}");
        let cure = format!("`gristmill token reset --data-dir {}`", setup.data_dir().display());
        assert!(error.contains(&cure), "{error}");
    }
    let (token, _) = reset(&setup);
    let server = setup.start();
    assert_eq!(status(&server, &token), 200);
}

#[test]
fn a_reset_voids_the_old_token_at_the_next_start() {
    let server = Setup::new().without_admin_token().start();
    let old = server.shown_token();
    let (new, text) = reset(server.setup());
    assert!(text.contains("it uses this token when it is started again"), "{text}");
    assert_eq!((status(&server, &old), status(&server, &new)), (200, 403));
    let setup = server.kill();
    let server = setup.start();
    assert!(!server.shows_token());
    assert_eq!((status(&server, &old), status(&server, &new)), (403, 200));
    let setup = server.kill();
    let (_, text) = reset(&setup);
    assert_eq!(text, "", "no server runs");
}

#[test]
fn what_a_killed_process_left_of_a_token_is_removed() {
    let setup = Setup::new().without_admin_token();
    fs::create_dir_all(setup.data_dir()).unwrap();
    let file = |name: &str| {
        let path = setup.data_dir().join(name);
        fs::write(&path, "sha256:0123").unwrap();
        path
    };
    let leftover = file("admin-token.sha256x1Y2z3");
    let others = [file("admin-token.sha256.bak"), file("admin-token.sha256-backup")];
    let server = setup.start();
    assert_eq!(status(&server, &server.shown_token()), 200);
    assert!(!leftover.exists() && token_file(server.setup()).exists());
    assert!(others.iter().all(|other| other.exists()));
}

#[test]
fn a_reset_of_nothing() {
    let setup = Setup::new();
    let output = setup.run(&["token", "reset", "--data-dir", "nowhere"]);
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(!output.status.success() && error.contains("no data directory nowhere"), "{error}");
    assert!(output.stdout.is_empty());
}

//! `gristmill tls self-signed`, and what is said about certificates that `openssl` makes.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use crate::support::cli::Cli;
use crate::support::server::Server;
use crate::support::setup::{ADMIN_TOKEN, Setup};
use crate::support::tls::Authority;
use crate::support::words::assert_names;

/// The arguments of a command that calls this server.
fn get_tenants<'a>(server: &'a Server, ca: &'a str) -> Vec<&'a str> {
    vec!["get", "tenants", "--admin", server.admin.address(), "--ca-file", ca]
}

#[test]
fn a_pair_is_made_that_server_and_client_take() {
    let cli = Cli::new().with("GRISTMILL_ADMIN_TOKEN", ADMIN_TOKEN);
    let make = ["tls", "self-signed", "--host", "gristmill.example", "--out", "pair"];
    let made = cli.ok(&make);
    let names = "gristmill.example, localhost, 127.0.0.1, ::1";
    assert_names(&made, &["pair/server.crt is for ", names, "pair/server.key is its key"]);
    assert_names(&made, &["--tls-key pair/server.key", "--ca-file pair/server.crt"]);
    let (certificate, key) =
        (cli.folder().join("pair/server.crt"), cli.folder().join("pair/server.key"));
    assert_eq!(fs::metadata(&key).unwrap().permissions().mode() & 0o777, 0o600);

    let setup = Setup::new().flag("--admin-tls-certificate", certificate.to_str().unwrap());
    let server = setup.flag("--admin-tls-key", key.to_str().unwrap()).start();
    cli.ok(&get_tenants(&server, "pair/server.crt"));
    assert!(!server.log().contains("may read or change the key"), "{}", server.log());
    let error = cli.refused(&make);
    assert_names(&error, &["pair/server.crt is there already: remove it", "--out"]);
    let made = cli.ok(&["tls", "self-signed", "--host", "*.mill.example", "--out", "many"]);
    assert_names(&made, &["is for *.mill.example, localhost", "https://localhost:8080/readyz"]);
    let error = cli.refused(&["tls", "self-signed", "--host", "https://a"]);
    assert_names(&error, &["--host is \"https://a\": must be a name or an address"]);
    assert_eq!(cli.run(&["tls", "self-signed", "--host", "a", "--days", "0"]).code, Some(2));
}

#[test]
fn a_certificate_without_names_names_the_option_of_openssl() {
    let authority = Authority::new();
    let files = authority.write_pair("own", &Authority::self_signed_pair(&[], 2100));
    let certificate = files.certificate.to_str().unwrap();
    let setup = Setup::new().flag("--admin-tls-certificate", certificate);
    let server = setup.flag("--admin-tls-key", files.key.to_str().unwrap()).start();
    let cli = Cli::new().with("GRISTMILL_ADMIN_TOKEN", ADMIN_TOKEN);
    let error = cli.refused(&get_tenants(&server, certificate));
    assert_names(&error, &["has no subjectAltName", "-addext subjectAltName=DNS:HOST"]);
    let ca = authority.ca();
    let error = cli.refused(&get_tenants(&server, ca.to_str().unwrap()));
    let option = "-addext basicConstraints=critical,CA:FALSE";
    assert_names(&error, &["for an authority itself", "--ca-file", option, "tls self-signed"]);
}

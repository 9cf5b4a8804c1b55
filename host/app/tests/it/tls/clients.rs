//! The command line over TLS, and client certificates on the admin plane.

use std::path::Path;
use std::process::Command;

use gristmill_client::OwnFiles;

use crate::support::eventually::eventually;
use crate::support::files;
use crate::support::server::Server;
use crate::support::setup::{ADMIN_TOKEN, Setup};
use crate::support::tls::Authority;
use crate::support::words::assert_names;

/// `gristmill get tenants` with these flags: whether it succeeds, and what it says.
fn get_tenants(server: &Server, flags: &[&str]) -> (bool, String) {
    gristmill(&[&["get", "tenants", "--admin", server.admin.address()], flags].concat())
}

fn gristmill(arguments: &[&str]) -> (bool, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_gristmill"));
    for variable in ["ADMIN_URL", "CA_FILE", "CLIENT_CERTIFICATE", "CLIENT_KEY"] {
        command.env_remove(format!("GRISTMILL_{variable}"));
    }
    // No authority of this machine signs a test's certificate.
    command.env("GRISTMILL_ADMIN_TOKEN", ADMIN_TOKEN).args(arguments);
    let output = command.output().unwrap();
    let printed = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8(printed).unwrap())
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

#[track_caller]
fn assert_refused((is_done, text): (bool, String), named: &[&str]) {
    assert!(!is_done, "{text}");
    assert_eq!(text.lines().count(), 1, "{text}");
    assert_names(&text, named);
}

#[test]
fn the_command_line_speaks_tls_to_a_server_that_it_trusts() {
    let authority = Authority::new();
    let server = Setup::new().with_tls(&authority).start();
    server.open_tenant("acme");
    let ca = authority.ca();
    let (is_done, output) = get_tenants(&server, &["--ca-file", text(&ca)]);
    assert!(is_done && output.contains("acme"), "{output}");
    let file = files::plugin_path("digits");
    let (is_done, output) = gristmill(&[
        "plugin",
        "push",
        text(&file),
        "--tenant",
        "acme",
        "--name",
        "digits",
        "--admin",
        server.admin.address(),
        "--ca-file",
        text(&ca),
    ]);
    assert!(is_done && output.contains("acme/digits is "), "{output}");
}

#[test]
fn each_way_in_which_tls_fails_is_told_with_a_remedy() {
    let (authority, stranger) = (Authority::new(), Authority::new());
    let server = Setup::new().with_tls(&authority).start();
    let (ca, strange) = (authority.ca(), stranger.ca());
    let address = server.admin.authority();
    let refused = get_tenants(&server, &["--ca-file", text(&strange)]);
    assert_refused(refused, &["no authority that is trusted signed", address, "--ca-file"]);
    let other_name = format!("https://127.0.0.2:{}", address.split_once(':').unwrap().1);
    // The server listens on one address only, so the name must be another one of it.
    let refused = gristmill(&["get", "tenants", "--admin", &other_name, "--ca-file", text(&ca)]);
    assert_refused(refused, &["127.0.0.2"]);
    let plain = format!("http://{address}");
    let refused = gristmill(&["get", "tenants", "--admin", &plain, "--ca-file", text(&ca)]);
    assert_refused(refused, &[address, "does it have TLS?", "https://"]);
    let refused = get_tenants(&server, &["--ca-file", "no/such/file"]);
    assert_refused(refused, &["no/such/file", "it cannot be read"]);
    let without = Server::start();
    let address = without.admin.authority();
    let https = format!("https://{address}");
    let refused = gristmill(&["get", "tenants", "--admin", &https, "--ca-file", text(&ca)]);
    assert_refused(refused, &[address, "does not speak TLS", "http://"]);
}

#[test]
fn a_server_is_trusted_by_its_own_certificate_that_signed_itself() {
    let authority = Authority::new();
    let start = |names: &[&str], last_year| {
        let pair = Authority::self_signed_pair(names, last_year);
        let files = authority.write_pair("own", &pair);
        let setup = Setup::new().flag("--admin-tls-certificate", text(&files.certificate));
        (setup.flag("--admin-tls-key", text(&files.key)).start(), files.certificate)
    };
    let (server, certificate) = start(&["localhost", "127.0.0.1"], 2100);
    let (is_done, output) = get_tenants(&server, &["--ca-file", text(&certificate)]);
    assert!(is_done, "{output}");
    // Among others, too, and without one of them it is a stranger's.
    let both = authority.write("both.pem", &{
        let [one, other] =
            [&authority.ca(), &certificate].map(|file| std::fs::read_to_string(file).unwrap());
        one + &other
    });
    assert!(get_tenants(&server, &["--ca-file", text(&both)]).0);
    let refused = get_tenants(&server, &["--ca-file", text(&authority.ca())]);
    assert_refused(refused, &["no authority that is trusted signed", "signed itself", "--ca-file"]);
    let (server, certificate) = start(&["gristmill.example"], 2100);
    let refused = get_tenants(&server, &["--ca-file", text(&certificate)]);
    assert_refused(refused, &["is for another name"]);
    let (server, certificate) = start(&["localhost", "127.0.0.1"], 2002);
    let refused = get_tenants(&server, &["--ca-file", text(&certificate)]);
    assert_refused(refused, &["has expired or is not valid yet"]);
}

#[test]
fn a_client_is_trusted_by_its_own_certificate_that_signed_itself() {
    let authority = Authority::new();
    let [operator, other] = ["own", "other"].map(|name| {
        authority.write_pair(name, &Authority::self_signed_pair(&["me.example"], 2100))
    });
    let setup = Setup::new().with_tls(&authority).with_own(&authority, &operator);
    let server = setup.flag("--admin-client-ca", text(&operator.certificate)).start();
    let ca = authority.ca();
    let get_as = |pair: &OwnFiles| {
        let files =
            ["--client-certificate", text(&pair.certificate), "--client-key", text(&pair.key)];
        get_tenants(&server, &[&["--ca-file", text(&ca)][..], &files].concat())
    };
    let (is_done, shown) = get_as(&operator);
    assert!(is_done, "{shown}");
    assert_refused(get_as(&other), &["does not accept the certificate"]);
}

#[test]
fn a_client_certificate_is_demanded_on_the_admin_plane_besides_the_token() {
    let (authority, stranger) = (Authority::new(), Authority::new());
    let operator = authority.write_pair("operator", &authority.pair());
    let setup = Setup::new().with_tls(&authority);
    let server =
        setup.flag("--admin-client-ca", text(&authority.ca())).with_own(&authority, &operator);
    let server = server.start();
    // The data plane demands none.
    assert_eq!(server.data.get("/livez").status, 200);
    assert_eq!(server.admin.get("/admin/v1/status").status, 200);
    assert_eq!(server.admin.without_token().get("/admin/v1/status").status, 401);
    let ca = authority.ca();
    let trusted = ["--ca-file", text(&ca)];
    let refused = get_tenants(&server, &trusted);
    assert_refused(refused, &["demands a client certificate", "--client-certificate"]);
    let with = |files: &OwnFiles| {
        let (certificate, key) = (text(&files.certificate).to_owned(), text(&files.key).to_owned());
        let flags = ["--client-certificate", &certificate, "--client-key", &key];
        get_tenants(&server, &[&trusted[..], &flags].concat())
    };
    let (is_done, shown) = with(&operator);
    assert!(is_done, "{shown}");
    for other in [
        stranger.write_pair("operator", &stranger.pair()),
        authority.write_pair("expired", &authority.expired_pair()),
    ] {
        assert_refused(with(&other), &["does not accept the certificate", "admin_client_ca"]);
    }
    let failed = server.status()["tls"]["admin"]["handshakes_failed"].as_u64().unwrap();
    assert_eq!(failed, 3);
}

#[test]
fn the_authorities_of_client_certificates_are_read_again_when_they_change() {
    let (authority, next) = (Authority::new(), Authority::new());
    let [operator, other] = [&authority, &next].map(|by| by.write_pair("operator", &by.pair()));
    let ca = |by: &Authority| std::fs::read_to_string(by.ca()).unwrap();
    let clients = authority.write("clients.pem", &ca(&authority));
    let setup = Setup::new().with_tls(&authority).flag("--admin-client-ca", text(&clients));
    let server = setup.with_own(&authority, &operator).start();
    let trusted = authority.ca();
    let is_accepted = |files: &OwnFiles| {
        let (certificate, key) = (text(&files.certificate), text(&files.key));
        let flags = ["--client-certificate", certificate, "--client-key", key];
        get_tenants(&server, &[&["--ca-file", text(&trusted)][..], &flags].concat()).0
    };
    assert_eq!((is_accepted(&operator), is_accepted(&other)), (true, false));
    authority.write("clients.pem", &ca(&next));
    eventually("the new authority is trusted", || is_accepted(&other));
    assert!(!is_accepted(&operator));
}

//! The files of TLS: faults at the start, and changes while a server runs.

use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use serde_json::json;

use crate::support::eventually::eventually;
use crate::support::load::under_load;
use crate::support::server::Server;
use crate::support::setup::Setup;
use crate::support::tls::{Authority, Pair};
use crate::support::words::assert_names;

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// The certificate that a new connection to the data plane gets.
fn served(authority: &Authority, server: &Server) -> Vec<u8> {
    let stream = authority.connect(server.data.authority(), &[]);
    stream.conn.peer_certificates().unwrap()[0].to_vec()
}

fn loaded(server: &Server) -> u64 {
    server.status()["tls"]["data"]["loaded"].as_u64().unwrap()
}

/// The fault of the data plane's files as they are now.
fn fault(server: &Server) -> serde_json::Value {
    server.status()["tls"]["data"]["fault"].clone()
}

#[test]
fn faults_at_the_start_name_the_setting_the_file_and_what_is_wrong() {
    let authority = Authority::new();
    let (pair, other) = (authority.pair(), authority.pair());
    let encrypted =
        "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n";
    let older = pair.key.replace("PRIVATE", "RSA PRIVATE").replacen(
        "-----\n",
        "-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,00112233445566778899AABBCCDDEEFF\n\n",
        1,
    );
    let of_no_kind = "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n".to_owned();
    let reversed = format!("{}{}", other.certificate, pair.certificate);
    let damaged = pair.certificate.replacen("MII", "!!!", 1);
    let no_certificate = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    let wrong = [
        (&pair.certificate, &other.key, "tls_key", "it is not the key of the certificate"),
        (&pair.key, &pair.key, "tls_certificate", "it has no certificate"),
        (&pair.certificate, &pair.certificate, "tls_key", "it has no private key"),
        (&pair.certificate, &encrypted.to_owned(), "tls_key", "openssl pkey -in"),
        (&pair.certificate, &older, "tls_key", "its key is encrypted"),
        (&pair.certificate, &of_no_kind, "tls_key", "openssl req -newkey rsa:2048"),
        (&reversed, &pair.key, "tls_certificate", "its certificate 2: the server's own"),
        (&damaged, &pair.key, "tls_certificate", "its PEM is damaged"),
        (&no_certificate.to_owned(), &pair.key, "tls_certificate", "cannot be used"),
        (&String::new(), &pair.key, "tls_certificate", "it has no certificate"),
    ];
    for (certificate, key, setting, why) in wrong {
        let (certificate, key) =
            (authority.write("a.crt", certificate), authority.write("a.key", key));
        let setup = Setup::new().flag("--tls-certificate", text(&certificate));
        let error = setup.flag("--tls-key", text(&key)).start_refused();
        let file = if setting == "tls_key" { &key } else { &certificate };
        assert_names(&error, &["the configuration is wrong", setting, text(file), why]);
    }
}

#[test]
fn all_faults_of_all_planes_are_named_at_once() {
    let authority = Authority::new();
    let missing = authority.path("missing");
    let empty = authority.write("empty", "");
    let setup = Setup::new()
        .flag("--tls-certificate", text(&missing))
        .flag("--tls-key", text(&empty))
        .flag("--admin-tls-certificate", text(&empty))
        .flag("--admin-tls-key", text(&missing))
        .flag("--admin-client-ca", text(&empty));
    let error = setup.start_refused();
    let named = [
        "tls_certificate is",
        "tls_key is",
        "admin_tls_certificate is",
        "admin_tls_key is",
        "admin_client_ca is",
        "it has no certificate",
        "it has no private key",
        "it cannot be read",
    ];
    assert_names(&error, &named);
    assert_eq!(error.lines().count(), 6, "{error}");
    // A fault of files that two planes share is told once.
    let setup = Setup::new().flag("--tls-certificate", text(&empty));
    let error = setup.flag("--tls-key", text(&missing)).start_refused();
    assert_eq!(error.lines().count(), 3, "{error}");
}

#[test]
fn an_expired_certificate_and_an_open_key_are_warnings() {
    let authority = Authority::new();
    let files = authority.write_pair("old", &authority.expired_pair());
    std::fs::set_permissions(&files.key, PermissionsExt::from_mode(0o644)).unwrap();
    let setup = Setup::new().flag("--tls-certificate", text(&files.certificate));
    let setup = setup.flag("--tls-key", text(&files.key));
    // The clients of this server are those of the admin plane, which has a valid certificate.
    let valid = authority.write_pair("valid", &authority.pair());
    let setup = setup.flag("--admin-tls-certificate", text(&valid.certificate));
    let setup = setup.flag("--admin-tls-key", text(&valid.key)).trusting(&authority);
    let server = setup.start();
    let log = server.log();
    assert_names(
        &log,
        &["the certificate has expired", "2002-01-01T00:00:00Z", text(&files.certificate)],
    );
    assert_names(&log, &["everyone on this machine may read or change the key", text(&files.key)]);
    assert!(!log.contains(text(&valid.key)), "{log}");
    assert_eq!(server.status()["tls"]["data"]["not_after"], "2002-01-01T00:00:00Z");
}

#[test]
fn a_changed_certificate_is_taken_over_without_a_failed_request() {
    let authority = Authority::new();
    let server = Setup::new().with_tls(&authority).start();
    server.digits("acme");
    let old = served(&authority, &server);
    // These connections stay open over the change.
    let mut open = authority.connect(server.data.authority(), &["http/1.1"]);
    under_load(
        4,
        |_| server.assert_reads("acme", 7),
        |answers| {
            authority.write_pair("server", &authority.pair());
            eventually("the new certificate serves", || served(&authority, &server) != old);
            assert_eq!(answers.iter().take(20).count(), 20);
        },
    );
    eventually("the status says so", || loaded(&server) == 2);
    assert_eq!(fault(&server), json!(null));
    server.log_with("the certificate was replaced");
    use std::io::{Read, Write};
    open.write_all(b"GET /livez HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    open.read_to_string(&mut answer).unwrap();
    assert!(answer.ends_with("live"), "{answer}");
}

#[test]
fn a_faulty_change_is_refused_and_told_and_the_earlier_certificate_stays() {
    let authority = Authority::new();
    let server = Setup::new().with_tls(&authority).start();
    let old = served(&authority, &server);
    let (one, other) = (authority.pair(), authority.pair());
    let mixed = Pair { certificate: one.certificate.clone(), key: other.key };
    authority.write_pair("server", &mixed);
    let line = "the changed files for TLS are refused: the earlier ones continue to serve";
    let log = server.log_with(line);
    assert_names(
        &log,
        &["it is not the key of the certificate", text(&authority.path("server.key"))],
    );
    // The other plane may look at its files a moment later.
    eventually("both planes say so", || server.log().matches(line).count() == 2);
    eventually("the status says so", || fault(&server).is_string());
    assert_names(fault(&server).as_str().unwrap(), &["it is not the key of the certificate"]);
    assert!(!fault(&server).as_str().unwrap().contains('/'), "{}", fault(&server));
    assert_eq!((served(&authority, &server), loaded(&server)), (old, 1));
    // The key that belongs to it comes later.
    authority.write("server.key", &one.key);
    eventually("it is taken over", || loaded(&server) == 2);
    assert_eq!(fault(&server), json!(null));
    assert_eq!(server.log().matches(line).count(), 2, "once for each plane");
}

#[test]
fn files_behind_a_symbolic_link_are_followed_when_it_is_changed() {
    let authority = Authority::new();
    // As a secret of Kubernetes is laid out: files are links into a folder that a link names.
    let put = |folder: &str, pair: &Pair| {
        std::fs::create_dir(authority.path(folder)).unwrap();
        std::fs::write(authority.path(folder).join("tls.crt"), &pair.certificate).unwrap();
        std::fs::write(authority.path(folder).join("tls.key"), &pair.key).unwrap();
        symlink(folder, authority.path("new")).unwrap();
        std::fs::rename(authority.path("new"), authority.path("..data")).unwrap();
    };
    put("one", &authority.pair());
    for file in ["tls.crt", "tls.key"] {
        symlink(Path::new("..data").join(file), authority.path(file)).unwrap();
    }
    let setup = Setup::new().flag("--tls-certificate", text(&authority.path("tls.crt")));
    let setup = setup.flag("--tls-key", text(&authority.path("tls.key"))).trusting(&authority);
    let server = setup.start();
    let old = served(&authority, &server);
    put("two", &authority.pair());
    eventually("the new certificate serves", || served(&authority, &server) != old);
    eventually("the status says so", || loaded(&server) == 2);
}

use gristmill_client::TlsFiles;

use super::Admin;

fn admin(url: &str) -> anyhow::Result<Admin> {
    Admin::new(url, "a-token-of-a-test", &TlsFiles::default())
}

fn refused(url: &str) -> String {
    admin(url).err().map(|error| error.to_string()).unwrap_or_default()
}

#[test]
fn a_scheme_is_taken_for_granted() {
    for (given, url) in [
        ("127.0.0.1:8081", "http://127.0.0.1:8081"),
        ("localhost:8081/", "http://localhost:8081"),
        ("http://[::1]:8081", "http://[::1]:8081"),
        ("http://gristmill.example/behind/a/proxy/", "http://gristmill.example/behind/a/proxy"),
    ] {
        assert_eq!(admin(given).unwrap().0.client().address().to_string(), url);
    }
}

#[test]
fn what_is_no_address_is_said_with_flag_and_value() {
    for given in ["", "8081", ":8081", "ftp://a", "http://", "two words", "http://a?b=c"] {
        let said = refused(given);
        assert!(said.starts_with(&format!("--admin is {given:?}: ")), "{given:?}: {said}");
        assert!(said.contains("such as http://127.0.0.1:8081"), "{said}");
    }
}

#[test]
fn a_file_of_tls_that_cannot_be_used_is_named() {
    let files = TlsFiles { ca: Some("no/such.pem".into()), own: None };
    let admin = |url| Admin::new(url, "a-token-of-a-test", &files);
    let said = format!("{:#}", admin("https://gristmill.example").err().unwrap());
    assert!(said.starts_with("no/such.pem: it cannot be read: "), "{said}");
    // Without TLS it is not needed.
    assert!(admin("http://gristmill.example").is_ok());
}

#[test]
fn a_token_that_no_header_carries_is_not_shown() {
    for token in ["", "the-secret\n", " the-secret", "the-secrét"] {
        let said =
            Admin::new("127.0.0.1:8081", token, &TlsFiles::default()).err().unwrap().to_string();
        assert!(said.starts_with("--token ") && !said.contains("the-"), "{said}");
    }
}

//! The admin API as the command line calls it: flags checked before anything is built or sent, and
//! failures said with what to do about them.

use std::io::ErrorKind;
use std::net::IpAddr;
use std::time::Duration;

use anyhow::{Result, anyhow, bail, ensure};
use gristmill_core::Name;
use serde_json::Value;
use ureq::http::Uri;

/// How long a connection may take to open; the answer itself may take as long as compiling does.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// The admin plane of one server.
pub(crate) struct Admin {
    url: String,
    address: String,
    is_local: bool,
    token: String,
}

impl Admin {
    /// From the values of `--admin`, with or without a scheme, and `--token`.
    pub(crate) fn new(admin: &str, token: &str) -> Result<Self> {
        let fault = |why: &str| {
            anyhow!(
                "--admin is {admin:?}: {why}; give the admin plane's host and port, such as \
                 http://127.0.0.1:8081"
            )
        };
        let url = match admin.trim() {
            given if given.contains("://") => given.to_owned(),
            given => format!("http://{given}"),
        };
        let uri: Uri = url.parse().map_err(|error| fault(&format!("{error}")))?;
        let (Some(scheme), Some(host)) = (uri.scheme_str(), uri.host()) else {
            return Err(fault("it names no host"));
        };
        if !["http", "https"].contains(&scheme) {
            return Err(fault(&format!("the scheme is {scheme:?}, not http or https")));
        }
        // A port alone would be taken for an address: 8081 is 0.0.31.145.
        if host.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(fault("it is a number alone"));
        }
        if uri.query().is_some() {
            return Err(fault("it has a query"));
        }
        ensure!(
            !token.is_empty()
                && token.trim() == token
                && token.bytes().all(|byte| (b' '..=b'~').contains(&byte)),
            "--token is empty or cannot be sent in a header: it must be ASCII, without line breaks \
             and without blanks at its ends"
        );
        let ip = host.trim_matches(['[', ']']).parse::<IpAddr>();
        let is_local = host == "localhost" || ip.is_ok_and(|ip| ip.is_loopback());
        let address = uri.authority().map(|authority| authority.to_string()).unwrap_or_default();
        let url = url.trim_end_matches('/').to_owned();
        Ok(Self { url, address, is_local, token: token.to_owned() })
    }

    /// `PUT` a file; returns the answer's document.
    pub(crate) fn put(&self, path: &str, body: &[u8]) -> Result<Value> {
        let url = format!("{}/admin/v1/{path}", self.url);
        let mut config = ureq::Agent::config_builder()
            .http_status_as_error(false)
            .timeout_connect(Some(CONNECT_TIMEOUT));
        if self.is_local {
            config = config.proxy(None);
        }
        let agent: ureq::Agent = config.build().into();
        let request =
            agent.put(&url).header("authorization", format!("Bearer {}", self.token)).send(body);
        let mut response = request.map_err(|error| self.explain(&error))?;
        let text = response.body_mut().read_to_string().map_err(|error| self.explain(&error))?;
        let answer: Value = serde_json::from_str(&text).unwrap_or_default();
        let status = response.status();
        if status.is_success() && answer.is_object() {
            return Ok(answer);
        }
        let Some(detail) = answer["detail"].as_str() else {
            bail!(
                "{status} from {}, and not in Gristmill's words: is the admin plane at this \
                 address? Its default is 127.0.0.1:8081",
                self.address
            );
        };
        // Only the data plane knows this path and not the other.
        let live = || agent.get(format!("{}/livez", self.url)).call();
        if status == 404 && live().is_ok_and(|live| live.status().is_success()) {
            bail!(
                "{status}: {detail}: is {} the data plane? The admin plane has an address of its \
                 own, by default 127.0.0.1:8081",
                self.address
            );
        }
        bail!("{status}: {detail}");
    }

    /// What a failure to reach the server means, and what to do about it.
    fn explain(&self, error: &ureq::Error) -> anyhow::Error {
        let address = &self.address;
        let elsewhere = "--admin or GRISTMILL_ADMIN_URL names another";
        match error {
            ureq::Error::Io(error) if error.kind() == ErrorKind::ConnectionRefused => anyhow!(
                "nothing listens at {address}: does `gristmill serve` run there? {elsewhere} \
                 address"
            ),
            ureq::Error::Timeout(_) => anyhow!(
                "{address} does not answer within {} s: is it the right address? {elsewhere}",
                CONNECT_TIMEOUT.as_secs()
            ),
            // Gristmill's gRPC plane closes a connection that does not begin with HTTP/2's preface.
            ureq::Error::Protocol(_) => self.speaks_otherwise(error),
            ureq::Error::Io(closed)
                if [
                    ErrorKind::ConnectionReset,
                    ErrorKind::BrokenPipe,
                    ErrorKind::UnexpectedEof,
                    ErrorKind::ConnectionAborted,
                ]
                .contains(&closed.kind()) =>
            {
                self.speaks_otherwise(error)
            }
            ureq::Error::Io(error) => {
                anyhow!("cannot reach {address}: {error}; {elsewhere} address")
            }
            other => anyhow!("{address}: {other}"),
        }
    }

    fn speaks_otherwise(&self, error: &ureq::Error) -> anyhow::Error {
        anyhow!(
            "{} does not answer in HTTP/1.1 ({error}): is it the port of gRPC? The admin plane has \
             one of its own, by default 8081",
            self.address
        )
    }
}

/// The value of a flag that is a name.
pub(crate) fn name(flag: &str, value: &str) -> Result<Name> {
    value.parse().map_err(|error| anyhow!("{flag}: {error}"))
}

#[cfg(test)]
mod tests {
    use super::Admin;

    fn admin(url: &str) -> anyhow::Result<Admin> {
        Admin::new(url, "a-token-of-a-test")
    }

    #[test]
    fn a_scheme_is_taken_for_granted() {
        for (given, url) in [
            ("127.0.0.1:8081", "http://127.0.0.1:8081"),
            ("localhost:8081/", "http://localhost:8081"),
            ("http://[::1]:8081", "http://[::1]:8081"),
            (
                "https://gristmill.example/behind/a/proxy/",
                "https://gristmill.example/behind/a/proxy",
            ),
        ] {
            assert_eq!(admin(given).unwrap().url, url);
        }
        assert!(admin("localhost").unwrap().is_local && admin("[::1]:1").unwrap().is_local);
        assert!(!admin("gristmill.example").unwrap().is_local);
    }

    #[test]
    fn what_is_no_address_is_said_with_flag_and_value() {
        for given in ["", "8081", ":8081", "ftp://a", "http://", "two words", "http://a?b=c"] {
            let said = admin(given).err().map(|error| error.to_string()).unwrap_or_default();
            assert!(said.starts_with(&format!("--admin is {given:?}: ")), "{given:?}: {said}");
            assert!(said.contains("such as http://127.0.0.1:8081"), "{said}");
        }
    }

    #[test]
    fn a_token_that_no_header_carries_is_not_shown() {
        for token in ["", "the-secret\n", " the-secret", "the-secrét"] {
            let said = Admin::new("127.0.0.1:8081", token).err().unwrap().to_string();
            assert!(said.starts_with("--token ") && !said.contains("the-"), "{said}");
        }
    }
}

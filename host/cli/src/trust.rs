//! The files of TLS that a command uses for an address with `https://`: whom it trusts, and who it
//! is.

use std::path::PathBuf;

use anyhow::Result;
use clap::{Arg, ArgMatches};
use gristmill_client::{Address, OwnFiles, Tls, TlsFiles};

use crate::args::option;

pub(crate) const CA_FILE: &str = "ca-file";
const CLIENT_CERTIFICATE: &str = "client-certificate";
const CLIENT_KEY: &str = "client-key";

pub(crate) fn arguments() -> [Arg; 3] {
    let file = |name, variable: &'static str| option(name, "FILE").env(variable);
    let ca = file(CA_FILE, "GRISTMILL_CA_FILE").help(
        "Certificates of the authorities that are trusted for https, in PEM [default: that of the \
         context, or those of the system]",
    );
    let certificate = file(CLIENT_CERTIFICATE, "GRISTMILL_CLIENT_CERTIFICATE")
        .requires(CLIENT_KEY)
        .help("Your certificate chain in PEM, for an admin plane that demands one");
    let key = file(CLIENT_KEY, "GRISTMILL_CLIENT_KEY")
        .requires(CLIENT_CERTIFICATE)
        .help("The key of --client-certificate, in PEM");
    [ca, certificate, key]
}

/// TLS as the flags say, with the authorities in the file `ca`.
pub(crate) fn tls(matches: &ArgMatches, ca: Option<PathBuf>) -> Result<Tls> {
    let path = |name: &str| matches.get_one::<String>(name).map(PathBuf::from);
    let identity = path(CLIENT_CERTIFICATE).zip(path(CLIENT_KEY));
    let identity = identity.map(|(certificate, key)| OwnFiles { certificate, key });
    Ok(Tls::open(&TlsFiles { ca, identity })?)
}

/// The same for an address. The files are read only if the address has TLS.
pub(crate) fn of(
    matches: &ArgMatches,
    address: &Address,
    ca: Option<PathBuf>,
) -> Result<Option<Tls>> {
    address.is_https().then(|| tls(matches, ca)).transpose()
}

#[cfg(test)]
mod tests {
    use clap::Command;

    use super::*;

    #[test]
    fn files_are_read_only_for_https() {
        let command = Command::new("c").no_binary_name(true).args(arguments());
        let matches = command.try_get_matches_from([""; 0]).unwrap();
        let ca = || Some("no/such.pem".into());
        let opened = |address: &str| of(&matches, &address.parse().unwrap(), ca());
        let error = format!("{:#}", opened("https://gristmill.example").err().unwrap());
        assert!(error.starts_with("no/such.pem: it cannot be read: "), "{error}");
        assert!(opened("http://gristmill.example").unwrap().is_none());
    }
}

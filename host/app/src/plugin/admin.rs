//! The calls of the admin API that the command line makes. Flags are checked before anything is
//! built or sent, and each error says what to do.

use std::io::{self, ErrorKind};
use std::path::PathBuf;

use anyhow::{Context, Result, anyhow, bail};
use clap::{Arg, ArgMatches};
use gristmill_client::http::StatusCode;
use gristmill_client::{
    Address, AdminClient, AdminError, Client, ClientError, OwnFiles, Tls, TlsFiles, TlsRefusal,
    block_on,
};
use gristmill_core::Name;
use serde_json::Value;

const CA_FILE: &str = "ca-file";
const CLIENT_CERTIFICATE: &str = "client-certificate";
const CLIENT_KEY: &str = "client-key";

/// The admin plane of one server.
pub(crate) struct Admin(AdminClient);

/// The flags for the address, the token, and the files of TLS.
pub(crate) fn arguments() -> [Arg; 5] {
    let admin = Arg::new("admin")
        .long("admin")
        .value_name("URL")
        .env("GRISTMILL_ADMIN_URL")
        .default_value("http://127.0.0.1:8081")
        .help("The admin plane: https:// or http://, which may be left out");
    let token = Arg::new("token")
        .long("token")
        .value_name("TOKEN")
        .env("GRISTMILL_ADMIN_TOKEN")
        .hide_env_values(true)
        .required(true)
        .help("The admin token");
    let file = |name: &'static str, variable: &'static str| {
        Arg::new(name).long(name).value_name("FILE").env(variable)
    };
    let ca = file(CA_FILE, "GRISTMILL_CA_FILE").help(
        "Certificates of the authorities that are trusted for https, in PEM; without it, those of \
         the system",
    );
    let certificate = file(CLIENT_CERTIFICATE, "GRISTMILL_CLIENT_CERTIFICATE")
        .requires(CLIENT_KEY)
        .help("Your certificate chain in PEM, for an admin plane that demands one");
    let key = file(CLIENT_KEY, "GRISTMILL_CLIENT_KEY")
        .requires(CLIENT_CERTIFICATE)
        .help("The key of --client-certificate, in PEM");
    [admin, token, ca, certificate, key]
}

impl Admin {
    /// From the flags of [`arguments`].
    pub(crate) fn of(matches: &ArgMatches) -> Result<Self> {
        let given = |name: &str| matches.get_one::<String>(name);
        let path = |name: &str| given(name).map(PathBuf::from);
        let admin = given("admin").context("--admin is missing")?;
        let token = given("token").context("--token is missing")?;
        let own = path(CLIENT_CERTIFICATE).zip(path(CLIENT_KEY));
        let own = own.map(|(certificate, key)| OwnFiles { certificate, key });
        Self::new(admin, token, &TlsFiles { ca: path(CA_FILE), own })
    }

    /// From the values of `--admin`, with or without a scheme, and `--token`. The files are read
    /// only for an address with TLS.
    fn new(admin: &str, token: &str, files: &TlsFiles) -> Result<Self> {
        let address: Address = admin.parse().map_err(|error| {
            anyhow!(
                "--admin is {admin:?}: {error}; give the admin plane's host and port, such as \
                 http://127.0.0.1:8081"
            )
        })?;
        let tls = match address.is_https() {
            true => Some(Tls::open(files)?),
            false => None,
        };
        let client = Client::new(address).with_token(token).map_err(|_| {
            anyhow!(
                "--token is empty or cannot be sent in a header: it must be ASCII, without line \
                 breaks and without blanks at its ends"
            )
        })?;
        let client = match tls {
            Some(tls) => client.with_tls(tls),
            None => client,
        };
        Ok(Self(AdminClient::new(client)))
    }

    /// `GET` a document.
    pub(crate) fn get(&self, path: &str) -> Result<Value> {
        self.answered(block_on(self.0.get(path)))
    }

    /// `PUT` a file. Returns the answer's document.
    pub(crate) fn put(&self, path: &str, body: Vec<u8>) -> Result<Value> {
        self.answered(block_on(self.0.put(path, body)))
    }

    /// `POST` a document. Returns the answer's document.
    pub(crate) fn post(&self, path: &str, document: &Value) -> Result<Value> {
        self.answered(block_on(self.0.post_json(path, document)))
    }

    /// The document, or an error that says what to do.
    fn answered(&self, answer: Result<Value, AdminError>) -> Result<Value> {
        let address = self.address();
        match answer {
            Ok(answer) => Ok(answer),
            Err(AdminError::NoAnswer(error)) => Err(self.explain(error)),
            Err(AdminError::Foreign { status, .. }) => bail!(
                "{status} from {address}, which is not an answer of Gristmill: is the admin plane \
                 at this address? Its default is 127.0.0.1:8081"
            ),
            Err(AdminError::Refused { status, detail, .. })
                if status == StatusCode::NOT_FOUND && self.is_data_plane() =>
            {
                bail!(
                    "{status}: {detail}: is {address} the data plane? The admin plane has another \
                     address, by default 127.0.0.1:8081"
                )
            }
            Err(AdminError::Refused { status, detail, .. }) => bail!("{status}: {detail}"),
        }
    }

    fn address(&self) -> &str {
        self.0.client().address().authority()
    }

    /// Only the data plane knows this path.
    fn is_data_plane(&self) -> bool {
        let live = block_on(self.0.client().get("/livez"));
        live.is_ok_and(|live| live.status.is_success())
    }

    /// The error for a server that was not reached, with a remedy.
    fn explain(&self, error: ClientError) -> anyhow::Error {
        let address = self.address();
        let elsewhere = "--admin or GRISTMILL_ADMIN_URL names another";
        if let Some(refusal) = error.tls_refusal() {
            return explain_refusal(address, refusal);
        }
        match error {
            ClientError::Connect { source, .. }
                if source.kind() == ErrorKind::ConnectionRefused =>
            {
                anyhow!(
                    "nothing listens at {address}: does `gristmill serve` run there? {elsewhere} \
                     address"
                )
            }
            ClientError::Connect { source, .. } => {
                anyhow!("cannot reach {address}: {source}; {elsewhere} address")
            }
            ClientError::ConnectTimeout { after, .. } => anyhow!(
                "{address} does not answer within {} s: is it the right address? {elsewhere}",
                after.as_secs()
            ),
            // Gristmill's gRPC plane closes a connection that does not begin with HTTP/2's preface.
            ClientError::Exchange { source, .. } => match of_connection(&source) {
                Some(broken) if !is_closed(broken) => {
                    anyhow!("cannot reach {address}: {broken}; {elsewhere} address")
                }
                _ if self.0.client().address().is_https() => anyhow!(
                    "{address} does not answer in HTTP/1.1 ({source}): is it the port of gRPC? \
                     The admin plane has another port, by default 8081"
                ),
                _ => anyhow!(
                    "{address} does not answer in HTTP/1.1 ({source}): is it the port of gRPC? \
                     The admin plane has another port, by default 8081. Or does it have TLS? Then \
                     give --admin https://{address}"
                ),
            },
            ClientError::Tls { source, .. } => {
                anyhow!("no session of TLS with {address}: {source}; {elsewhere} address")
            }
            other => anyhow::Error::new(other).context(address.to_owned()),
        }
    }
}

/// Why a server and the command line do not agree on TLS, with a remedy.
fn explain_refusal(address: &str, refusal: TlsRefusal) -> anyhow::Error {
    match refusal {
        TlsRefusal::UnknownAuthority => anyhow!(
            "no authority that is trusted signed the certificate of {address}: name the authority's \
             certificate with --ca-file or GRISTMILL_CA_FILE"
        ),
        TlsRefusal::OtherName => anyhow!(
            "the certificate of {address} is for another name: give the server's own name with \
             --admin or GRISTMILL_ADMIN_URL"
        ),
        TlsRefusal::Expired => anyhow!(
            "the certificate of {address} has expired or is not valid yet, by the clock of this \
             machine: the server needs another certificate"
        ),
        TlsRefusal::NoTls => anyhow!(
            "{address} does not speak TLS: if it is the admin plane, give --admin http://{address}"
        ),
        TlsRefusal::CertificateNeeded => anyhow!(
            "{address} demands a client certificate: give yours with --client-certificate and \
             --client-key"
        ),
        TlsRefusal::CertificateRefused => anyhow!(
            "{address} does not accept the certificate of --client-certificate: an authority of the \
             server's admin_client_ca must have signed it, and it must be valid now"
        ),
    }
}

/// The system's error, if the connection itself failed.
fn of_connection<'a>(error: &'a (dyn std::error::Error + 'static)) -> Option<&'a io::Error> {
    let mut cause = Some(error);
    while let Some(error) = cause {
        if let Some(found) = error.downcast_ref() {
            return Some(found);
        }
        cause = error.source();
    }
    None
}

/// Whether the other side closed the connection.
fn is_closed(error: &io::Error) -> bool {
    let closed = [
        ErrorKind::ConnectionReset,
        ErrorKind::BrokenPipe,
        ErrorKind::UnexpectedEof,
        ErrorKind::ConnectionAborted,
    ];
    closed.contains(&error.kind())
}

/// The value of a flag that is a name.
pub(crate) fn name(flag: &str, value: &str) -> Result<Name> {
    value.parse().map_err(|error| anyhow!("{flag}: {error}"))
}

#[cfg(test)]
mod tests;

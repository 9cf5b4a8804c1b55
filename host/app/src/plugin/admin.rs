//! The calls of the admin API that the command line makes. Flags are checked before anything is
//! built or sent, and each error says what to do.

use std::io::{self, ErrorKind};

use anyhow::{Context, Result, anyhow, bail};
use clap::{Arg, ArgMatches};
use gristmill_client::http::StatusCode;
use gristmill_client::{Address, AdminClient, AdminError, Client, ClientError, block_on};
use gristmill_core::Name;
use serde_json::Value;

/// The admin plane of one server.
pub(crate) struct Admin(AdminClient);

/// The flags `--admin` and `--token`.
pub(crate) fn arguments() -> [Arg; 2] {
    let admin = Arg::new("admin")
        .long("admin")
        .value_name("URL")
        .env("GRISTMILL_ADMIN_URL")
        .default_value("http://127.0.0.1:8081")
        .help("The admin plane; http:// may be left out, https is not supported");
    let token = Arg::new("token")
        .long("token")
        .value_name("TOKEN")
        .env("GRISTMILL_ADMIN_TOKEN")
        .hide_env_values(true)
        .required(true)
        .help("The admin token: any one whose role allows the call");
    [admin, token]
}

impl Admin {
    /// From the flags of [`arguments`].
    pub(crate) fn of(matches: &ArgMatches) -> Result<Self> {
        let given = |name: &str| matches.get_one::<String>(name);
        let admin = given("admin").context("--admin is missing")?;
        Self::new(admin, given("token").context("--token is missing")?)
    }

    /// From the values of `--admin`, with or without a scheme, and `--token`.
    fn new(admin: &str, token: &str) -> Result<Self> {
        let address: Address = admin.parse().map_err(|error| {
            anyhow!(
                "--admin is {admin:?}: {error}; give the admin plane's host and port, such as \
                 http://127.0.0.1:8081"
            )
        })?;
        let client = Client::new(address).with_token(token).map_err(|_| {
            anyhow!(
                "--token is empty or cannot be sent in a header: it must be ASCII, without line \
                 breaks and without blanks at its ends"
            )
        })?;
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

    /// `PUT` the document of something that must not exist yet. Returns the answer's document.
    pub(crate) fn put_new(&self, path: &str, document: &Value) -> Result<Value> {
        self.answered(block_on(self.0.put_new(path, document)))
    }

    /// `DELETE` something. Returns the answer's document.
    pub(crate) fn delete(&self, path: &str) -> Result<Value> {
        self.answered(block_on(self.0.delete(path)))
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
                _ => anyhow!(
                    "{address} does not answer in HTTP/1.1 ({source}): is it the port of gRPC? \
                     The admin plane has another port, by default 8081"
                ),
            },
            other => anyhow::Error::new(other).context(address.to_owned()),
        }
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

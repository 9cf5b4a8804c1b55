//! The calls of the admin API that the command line makes. Flags are checked before anything is
//! built or sent, and each error says what to do: `connection` has those about connections.

mod connection;

use std::io::{ErrorKind, Read, Seek};
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use bytes::Bytes;
use clap::parser::ValueSource;
use clap::{Arg, ArgMatches};
use gristmill_client::http::StatusCode;
use gristmill_client::{
    AdminClient, AdminError, Answer, Blob, Client, ClientError, Tls, UploadError, block_on,
};
use gristmill_core::{Digest, Name};
use gristmill_state::PluginSignature;
use serde_json::Value;

use self::connection::{explain_refusal, is_closed, of_connection};
use crate::access::{self, Access, Choice};
use crate::args::switch;
use crate::ask::ask;
use crate::contexts::Contexts;
use crate::output::{self, escaped};
use crate::{release_flags, trust};

/// The items of one page of a list.
const PAGE: usize = 1000;

/// The admin plane of one server.
pub(crate) struct Admin {
    client: AdminClient,
    /// Where the address is from.
    source: String,
    /// The context that says that commands ask before they change this server.
    confirm: Option<Name>,
}

/// The time for an answer that only says how a server does.
const LOOK_TIME: Duration = Duration::from_secs(5);

/// The flag of commands that ask.
const YES: &str = "yes";

/// The flags that say which server is meant, the token, and the files of TLS.
pub(crate) fn arguments() -> impl Iterator<Item = Arg> {
    access::arguments().into_iter().chain(trust::arguments())
}

/// The same for a command that changes the server.
pub(crate) fn change_arguments() -> impl Iterator<Item = Arg> {
    arguments().chain([yes()])
}

/// The flags of [`arguments`], and `--output`.
pub(crate) fn asking() -> impl Iterator<Item = Arg> {
    arguments().chain([output::argument()])
}

/// The flags of [`change_arguments`], and `--output`.
pub(crate) fn changing() -> impl Iterator<Item = Arg> {
    change_arguments().chain([output::argument()])
}

/// `--yes`.
pub(crate) fn yes() -> Arg {
    switch(YES).help("Do not ask")
}

/// Refuse flags of [`arguments`] on the command line of a command that asks no server now. Those
/// that variables set say only what others are to ask.
///
/// # Errors
/// One is there. `without` says what would ask a server.
pub(crate) fn refuse_flags(matches: &ArgMatches, without: &str) -> Result<()> {
    let is_given =
        |flag: &Arg| matches.value_source(flag.get_id().as_str()) == Some(ValueSource::CommandLine);
    match arguments().find(is_given).and_then(|flag| flag.get_long().map(str::to_owned)) {
        Some(flag) => bail!("--{flag} says how to reach a server, and {without}"),
        None => Ok(()),
    }
}

/// TLS as the flags of [`arguments`] say, for a server of any plane.
pub(crate) fn tls(matches: &ArgMatches) -> Result<Tls> {
    trust::tls(matches, matches.get_one::<String>(trust::CA_FILE).map(Into::into))
}

impl Admin {
    /// From the flags of [`arguments`], or from what stands in for them.
    pub(crate) fn of(matches: &ArgMatches) -> Result<Self> {
        let mut access = Choice::of(matches).resolve(Contexts::read)?;
        let tls = trust::of(matches, &access.address, access.ca_file.take())?;
        Self::new(access, tls)
    }

    /// The same for a command that changes the server: it says which one, and asks if the server's
    /// context says so.
    pub(crate) fn to_change(matches: &ArgMatches) -> Result<Self> {
        let admin = Self::of(matches)?;
        admin.announce();
        let is_answered = matches!(matches.try_get_one(YES), Ok(Some(true)));
        if let Some(context) = admin.confirm.as_ref().filter(|_| !is_answered) {
            let asked = ask(&format!("Change {context} ({})?", admin.client.client().address()));
            asked.with_context(|| format!("context {context} was added with --confirm"))?;
        }
        Ok(admin)
    }

    /// The server at `address` that this program has started.
    pub(crate) fn of_own_server(address: &str, token: String) -> Result<Self> {
        let server = "the server that this command started";
        let address = address.parse()?;
        let (source, token_source) = (server.to_owned(), format!("the token of {server}"));
        let (ca_file, confirm) = (None, None);
        Self::new(Access { address, source, token, token_source, ca_file, confirm }, None)
    }

    /// Say which server will be changed.
    pub(crate) fn announce(&self) {
        eprintln!("server: {} ({})", self.client.client().address(), self.source);
    }

    fn new(access: Access, tls: Option<Tls>) -> Result<Self> {
        let Access { address, source, token, token_source, confirm, .. } = access;
        let client = Client::new(address).with_token(&token).map_err(|_| {
            anyhow!(
                "{token_source} is empty or cannot be sent in a header: it must be ASCII, without line \
                 breaks and without blanks at its ends"
            )
        })?;
        let client = match tls {
            Some(tls) => client.with_tls(tls),
            None => client,
        };
        Ok(Self { client: AdminClient::new(client), source, confirm })
    }

    /// `GET` a document.
    pub(crate) fn get(&self, path: &str) -> Result<Value> {
        self.answered(block_on(self.client.get(path)))
    }

    /// The answer to `GET`, of any status, with its headers.
    pub(crate) fn look(&self, path: &str) -> Result<Answer> {
        let client = self.client.client().clone().with_answer_timeout(LOOK_TIME);
        let answer = block_on(client.get(&format!("/admin/v1/{path}")));
        answer.map_err(|error| self.explain(error))
    }

    /// `GET` a file of this media type.
    pub(crate) fn file(&self, path: &str, media_type: &str) -> Result<Bytes> {
        let file = block_on(self.client.get_file(path, media_type));
        file.map_err(|error| self.failed(error))
    }

    /// `GET` a document; none if the thing is not there.
    pub(crate) fn find(&self, path: &str) -> Result<Option<Value>> {
        self.unless(StatusCode::NOT_FOUND, block_on(self.client.get(path)))
    }

    /// All metrics, in Prometheus' text format.
    pub(crate) fn metrics(&self) -> Result<String> {
        let answer = block_on(self.client.client().get("/metrics"));
        let answer = answer.map_err(|error| self.explain(error))?;
        let answer = answer.ok().with_context(|| format!("cannot read {}/metrics", self.address()));
        Ok(String::from_utf8_lossy(&answer?.body).into_owned())
    }

    /// All items of a list, page by page.
    pub(crate) fn items(&self, list: &str) -> Result<Vec<Value>> {
        let mut items = Vec::new();
        let mut query = format!("?limit={PAGE}");
        loop {
            let mut page = self.get(&format!("{list}{query}"))?;
            if let Value::Array(new) = page["items"].take() {
                items.extend(new);
            }
            let Some(next) = page["next"].as_str() else { return Ok(items) };
            let next = name("the name of the next page", next)?;
            query = format!("?limit={PAGE}&after={next}");
        }
    }

    /// The number of the release that serves. The list of releases may show only those of the
    /// token's tenants.
    pub(crate) fn release(&self) -> Result<u64> {
        let release = self.get("status")?["release"].as_u64();
        release.with_context(|| format!("{} does not say which release serves", self.address()))
    }

    /// `PUT` a file. Returns the answer's document.
    pub(crate) fn put(&self, path: &str, body: Vec<u8>) -> Result<Value> {
        self.answered(block_on(self.client.put(path, body)))
    }

    /// `PUT` a plugin's file, maybe with its signature. Returns the answer's document.
    pub(crate) fn put_plugin(
        &self,
        path: &str,
        file: Bytes,
        signature: Option<&PluginSignature>,
    ) -> Result<Value> {
        let document = signature.map(|signature| serde_json::to_value(signature.document()));
        self.answered(match document.transpose()? {
            Some(document) => block_on(self.client.put_signed(path, file, &document)),
            None => block_on(self.client.put(path, file)),
        })
    }

    /// `PUT` the document of something that must not exist yet. Returns the answer's document.
    pub(crate) fn put_new(&self, path: &str, document: &Value) -> Result<Value> {
        self.answered(block_on(self.client.put_new(path, document)))
    }

    /// `DELETE` something. Returns the answer's document.
    pub(crate) fn delete(&self, path: &str) -> Result<Value> {
        self.answered(block_on(self.client.delete(path)))
    }

    /// `POST` a document. Returns the answer's document.
    pub(crate) fn post(&self, path: &str, document: &Value) -> Result<Value> {
        self.answered(block_on(self.client.post_json(path, document)))
    }

    /// `POST` a document; none if there is no such thing.
    pub(crate) fn post_if_there(&self, path: &str, document: &Value) -> Result<Option<Value>> {
        self.unless(StatusCode::NOT_FOUND, block_on(self.client.post_json(path, document)))
    }

    /// `POST` a document with `expected_release`; none if another release serves by now.
    pub(crate) fn post_unless_overtaken(
        &self,
        path: &str,
        document: &Value,
    ) -> Result<Option<Value>> {
        let answer = block_on(self.client.post_json(path, document));
        self.unless(StatusCode::PRECONDITION_FAILED, answer)
    }

    /// Upload the file of this digest and length, unless the server has it. `progress` is told the
    /// bytes that have arrived. Returns whether anything was sent.
    pub(crate) fn upload(
        &self,
        file: &mut (impl Read + Seek),
        (digest, bytes): (Digest, u64),
        progress: impl FnMut(u64),
    ) -> Result<bool> {
        let digest = digest.to_string();
        let blob = Blob { digest: &digest, bytes };
        match block_on(self.client.upload(file, blob, progress)) {
            Ok(is_sent) => Ok(is_sent),
            Err(UploadError::Admin(error)) => Err(self.failed(error)),
            Err(error) => Err(error.into()),
        }
    }

    /// The document; none if the answer has this status.
    fn unless(&self, none: StatusCode, answer: Result<Value, AdminError>) -> Result<Option<Value>> {
        match answer {
            Err(AdminError::Refused { status, .. }) if status == none => Ok(None),
            answer => self.answered(answer).map(Some),
        }
    }

    /// The document, or an error that says what to do. Replicas that a change has waited for in
    /// vain are a warning: the release is made.
    fn answered(&self, answer: Result<Value, AdminError>) -> Result<Value> {
        let document = answer.map_err(|error| self.failed(error))?;
        if let Some(warning) = behind(&document) {
            eprintln!("warning: {}", escaped(&warning));
        }
        Ok(document)
    }

    /// The error that says what to do.
    fn failed(&self, error: AdminError) -> anyhow::Error {
        let address = self.address();
        match error {
            AdminError::NoAnswer(error) => self.explain(error),
            AdminError::Foreign { status, .. } => anyhow!(
                "{status} from {address}, which is not an answer of Gristmill: is the admin plane \
                 at this address? Its default is 127.0.0.1:8081"
            ),
            AdminError::Refused { status, detail, .. }
                if status == StatusCode::NOT_FOUND && self.is_data_plane() =>
            {
                anyhow!(
                    "{status}: {detail}: is {address} the data plane? The admin plane has another \
                     address, by default 127.0.0.1:8081"
                )
            }
            AdminError::Refused { status, detail, .. } => {
                anyhow!("{status}: {}", release_flags::in_flags(&detail))
            }
        }
    }

    /// Host and port.
    pub(crate) fn address(&self) -> &str {
        self.client.client().address().authority()
    }

    /// Only the data plane knows this path.
    fn is_data_plane(&self) -> bool {
        let live = block_on(self.client.client().get("/livez"));
        live.is_ok_and(|live| live.status.is_success())
    }

    /// The error for a server that was not reached, with a remedy.
    fn explain(&self, error: ClientError) -> anyhow::Error {
        let address = self.address();
        let elsewhere = format!(
            "the address is that of {}; --admin, GRISTMILL_ADMIN_URL or --context names another",
            self.source
        );
        if let Some(refusal) = error.tls_refusal() {
            return explain_refusal(address, refusal);
        }
        match error {
            ClientError::Connect { source, .. }
                if source.kind() == ErrorKind::ConnectionRefused =>
            {
                anyhow!(
                    "nothing listens at {address}: does `gristmill serve` run there? {elsewhere}"
                )
            }
            ClientError::Connect { source, .. } => {
                anyhow!("cannot reach {address}: {source}; {elsewhere}")
            }
            ClientError::ConnectTimeout { after, .. } => anyhow!(
                "{address} does not answer within {} s: is it the right address? {elsewhere}",
                after.as_secs()
            ),
            // Gristmill's gRPC plane closes a connection that does not begin with HTTP/2's preface.
            ClientError::Exchange { source, .. } => match of_connection(&source) {
                Some(broken) if !is_closed(broken) => {
                    anyhow!("cannot reach {address}: {broken}; {elsewhere}")
                }
                _ if self.client.client().address().is_https() => anyhow!(
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
                anyhow!("no session of TLS with {address}: {source}; {elsewhere}")
            }
            other => anyhow::Error::new(other).context(address.to_owned()),
        }
    }
}

/// The line about replicas that do not serve the new release. None if all serve it.
fn behind(answer: &Value) -> Option<String> {
    let replicas = &answer["replicas"];
    if let Some(why) = replicas["unknown"].as_str() {
        return Some(format!("it is not known which replicas serve the release: {why}"));
    }
    let behind = replicas["behind"].as_array().filter(|behind| !behind.is_empty())?;
    let text = |replica: &Value| {
        let name = replica["name"].as_str().unwrap_or_default();
        format!("{name} (release {})", replica["release"])
    };
    let names: Vec<_> = behind.iter().map(text).collect();
    Some(format!("these replicas do not serve the release yet: {}", names.join(", ")))
}

/// The value of a flag that is a model's name.
pub(crate) fn model_name(flag: &str, value: &str) -> Result<Name> {
    Name::of_model(value).map_err(|error| anyhow!("{flag}: {error}"))
}

/// The value of a flag that is a name.
pub(crate) fn name(flag: &str, value: &str) -> Result<Name> {
    value.parse().map_err(|error| anyhow!("{flag}: {error}"))
}

#[cfg(test)]
mod tests;

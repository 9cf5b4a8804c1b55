//! Calls of a registry, as the distribution specification of OCI has them.
//!
//! A registry is not trusted: what it sends is read up to a bound and counts only if it has the
//! digest that was asked for.
//!
//! Invariants:
//! - credentials go to the registry, and to the service of tokens that it names, over TLS. A
//!   registry on this machine, or one with `--plain-http`, is asked without TLS; the service of
//!   tokens of the former is on this machine, too, and the latter has none;
//! - a redirect to another place carries no credentials, and does not lead from TLS to plain text.
//!   What is there names no service of tokens.

use std::net::IpAddr;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail, ensure};
use bytes::Bytes;
use gristmill_client::http::header::{AUTHORIZATION, HeaderName, HeaderValue, LOCATION};
use gristmill_client::http::{Method, Request, StatusCode, Uri};
use gristmill_client::{Address, Answer, Client, ClientError, TlsRefusal};
use serde_json::Value;

use super::access::RegistryAccess;
use super::credentials::Credentials;
use super::reference::Reference;
use crate::output::escaped;

/// Maximum bytes of an answer that says what happened, or has a token.
const ANSWER_BYTES_MAX: usize = 64 << 10;

/// Maximum redirects of a call.
const REDIRECTS_MAX: usize = 5;

/// The longest time for an answer, a layer of many bytes included.
const TIMEOUT: Duration = Duration::from_secs(600);

/// The name of docker's own registry, and its host.
const DOCKER_HUB: (&str, &str) = ("docker.io", "registry-1.docker.io");

/// One repository of a registry.
pub(super) struct Registry {
    /// `https://host:port`
    base: String,
    is_loopback: bool,
    repository: String,
    credentials: Option<Credentials>,
    authorization: Option<HeaderValue>,
    /// Whether the authorization is the token that was given, and there is no other.
    has_token: bool,
}

/// A call.
pub(super) struct Call<'a> {
    pub(super) method: Method,
    /// A path below the repository, or the URL that an answer had.
    pub(super) to: Endpoint<'a>,
    pub(super) headers: &'a [(HeaderName, &'a str)],
    pub(super) body: Bytes,
    /// Maximum bytes of the answer.
    pub(super) limit: usize,
}

pub(super) enum Endpoint<'a> {
    Below(&'a str),
    Url(&'a str),
}

impl<'a> Call<'a> {
    pub(super) fn get(below: &'a str, headers: &'a [(HeaderName, &'a str)], limit: usize) -> Self {
        let (method, to) = (Method::GET, Endpoint::Below(below));
        Self { method, to, headers, body: Bytes::new(), limit }
    }

    pub(super) fn send(
        method: Method,
        to: Endpoint<'a>,
        headers: &'a [(HeaderName, &'a str)],
        body: Bytes,
    ) -> Self {
        Self { method, to, headers, body, limit: ANSWER_BYTES_MAX }
    }
}

impl Registry {
    /// The repository of a reference.
    ///
    /// # Errors
    /// The credentials cannot be read.
    pub(super) fn of(reference: &Reference, access: &RegistryAccess) -> Result<Self> {
        let Reference { registry, repository, .. } = reference;
        let host = if registry == DOCKER_HUB.0 { DOCKER_HUB.1 } else { registry };
        let is_loopback = is_loopback(host);
        let scheme = if is_loopback || access.is_plain { "http" } else { "https" };
        let is_open = access.is_plain && !is_loopback;
        let token = access.token(registry)?.map(|token| header(&format!("Bearer {token}")));
        ensure!(
            token.is_none() || !is_open,
            "--plain-http sends no token, because anybody on the way could read it: leave out one of \
             --plain-http and --registry-token (GRISTMILL_REGISTRY_TOKEN)"
        );
        let credentials = match token {
            None if !is_open => Credentials::of(registry)?,
            _ => None,
        };
        Ok(Self {
            base: format!("{scheme}://{host}"),
            is_loopback,
            repository: repository.clone(),
            credentials,
            has_token: token.is_some(),
            authorization: token.transpose().context("--registry-token")?,
        })
    }

    /// The answer to a call, of any status but a redirect.
    pub(super) async fn call(&mut self, call: Call<'_>) -> Result<Answer> {
        let (answer, is_own) = self.follow(&call).await?;
        // Another place would name a service that gets the registry's credentials.
        if answer.status != StatusCode::UNAUTHORIZED || !is_own || self.has_token {
            return Ok(answer);
        }
        match self.authorize(&answer).await? {
            true => Ok(self.follow(&call).await?.0),
            false => Ok(answer),
        }
    }

    /// Send a call, and follow redirects of one that only reads. Returns the answer, and whether it
    /// is the registry's own.
    async fn follow(&self, call: &Call<'_>) -> Result<(Answer, bool)> {
        let mut url = match call.to {
            Endpoint::Below(path) => format!("{}/v2/{}/{path}", self.base, self.repository),
            Endpoint::Url(url) => self.resolved(&self.base, url)?,
        };
        for _ in 0..=REDIRECTS_MAX {
            let answer = self.send(&url, call).await?;
            if !answer.status.is_redirection() || call.method != Method::GET {
                return Ok((answer, base_of(&url)? == self.base));
            }
            let location = answer.header(LOCATION.as_str());
            ensure!(!location.is_empty(), "{} redirects to nowhere", self.base);
            url = self.resolved(&url, location)?;
        }
        bail!("{} redirects more than {REDIRECTS_MAX} times", self.base)
    }

    /// The URL `to`, which an answer of `from` names.
    fn resolved(&self, from: &str, to: &str) -> Result<String> {
        let url = match to.starts_with('/') && !to.starts_with("//") {
            true => format!("{}{to}", base_of(from)?),
            false => to.to_owned(),
        };
        let is_safe = url.starts_with("https://") || self.base.starts_with("http://");
        ensure!(is_safe, "{} leads to {:?}, which has no TLS", self.base, url);
        Ok(url)
    }

    async fn send(&self, url: &str, call: &Call<'_>) -> Result<Answer> {
        let base = base_of(url)?;
        let uri: Uri = url.parse().with_context(|| format!("{url:?} is not a URL"))?;
        let path = uri.path_and_query().map_or("/", |path| path.as_str());
        let mut request = Request::builder().method(call.method.clone()).uri(path);
        for (name, value) in call.headers {
            request = request.header(name, *value);
        }
        if let Some(authorization) = self.authorization.as_ref().filter(|_| base == self.base) {
            request = request.header(AUTHORIZATION, authorization);
        }
        exchange(&base, request.body(call.body.clone())?, call.limit).await
    }

    /// Do what the answer demands of a caller. Returns false if there is nothing to try.
    async fn authorize(&mut self, answer: &Answer) -> Result<bool> {
        let challenge = answer.header("www-authenticate");
        let (scheme, parameters) = challenge.split_once(' ').unwrap_or((challenge, ""));
        if scheme.eq_ignore_ascii_case("basic") {
            let basic = self.credentials.as_ref().map(|credentials| header(&credentials.basic()));
            self.authorization = basic.transpose()?;
            return Ok(self.authorization.is_some());
        }
        if !scheme.eq_ignore_ascii_case("bearer") {
            return Ok(false);
        }
        let token = self.token(parameters).await?;
        self.authorization = Some(header(&format!("Bearer {token}"))?);
        Ok(true)
    }

    /// Get a token from the service that the registry names.
    async fn token(&self, parameters: &str) -> Result<String> {
        let named = |name: &str| parameter(parameters, name);
        let realm = named("realm").context("the registry names no service of tokens")?;
        let base = base_of(&realm)?;
        let uri: Uri = realm.parse().with_context(|| format!("{realm:?} is not a URL"))?;
        let host = uri.host().unwrap_or_default();
        let is_safe = base.starts_with("https://") || (self.is_loopback && is_loopback(host));
        ensure!(
            is_safe,
            "{} sends callers to {realm:?} for a token, which has no TLS: it gets no credentials",
            self.base
        );
        let mut query = form_urlencoded::Serializer::new(String::new());
        for name in ["service", "scope"] {
            if let Some(value) = named(name) {
                query.append_pair(name, &value);
            }
        }
        let mark = if uri.query().is_some() { '&' } else { '?' };
        let path = uri.path_and_query().map_or("/", |path| path.as_str());
        let mut request = Request::get(format!("{path}{mark}{}", query.finish()));
        if let Some(credentials) = &self.credentials {
            request = request.header(AUTHORIZATION, header(&credentials.basic())?);
        }
        let answer = exchange(&base, request.body(Bytes::new())?, ANSWER_BYTES_MAX).await?;
        if !answer.status.is_success() {
            bail!(
                "{base}, which gives tokens for {}, answers {}: log in with `docker login`, or give \
                 --registry-token",
                self.base,
                answer.status
            );
        }
        let document: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
        let token = document["token"].as_str().or(document["access_token"].as_str());
        token.map(str::to_owned).with_context(|| format!("{base} answers without a token"))
    }

    /// The answer, if it is a success.
    pub(super) fn succeeded(&self, answer: Answer, what: &str) -> Result<Answer> {
        match answer.status {
            status if status.is_success() => Ok(answer),
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => bail!(
                "{} does not allow this caller {what}: log in with `docker login`, or give \
                 --registry-token",
                self.base
            ),
            StatusCode::NOT_FOUND => bail!("{} does not have {what}", self.base),
            status => {
                let beginning = escaped(&answer.beginning());
                bail!("{} answers {status} for {what}: {beginning}", self.base)
            }
        }
    }
}

/// Send one request.
async fn exchange(base: &str, request: Request<Bytes>, limit: usize) -> Result<Answer> {
    let address: Address = base.parse().with_context(|| format!("{base:?} is not an address"))?;
    let client = Client::new(address).with_answer_timeout(TIMEOUT).with_answer_limit(limit);
    client.send(request).await.map_err(|error| match error {
        ClientError::AnswerTooLong { limit, .. } => {
            anyhow!("{base} sends more than the {limit} bytes that it may")
        }
        error if error.tls_refusal() == Some(TlsRefusal::UnknownAuthority) => anyhow!(
            "cannot ask {base}: no authority that this system trusts signed its certificate: name \
             the authority's certificate in the variable SSL_CERT_FILE"
        ),
        error => anyhow::Error::new(error).context(format!("cannot ask {base}")),
    })
}

/// Scheme, host and port of a URL.
fn base_of(url: &str) -> Result<String> {
    let uri: Uri = url.parse().with_context(|| format!("{url:?} is not a URL"))?;
    match (uri.scheme_str(), uri.authority()) {
        (Some(scheme @ ("http" | "https")), Some(authority)) => {
            Ok(format!("{scheme}://{authority}"))
        }
        _ => bail!("{url:?} is not a URL of http or https"),
    }
}

fn is_loopback(host: &str) -> bool {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    };
    let address = name.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
    name == "localhost" || address.is_ok_and(|address| address.is_loopback())
}

fn header(value: &str) -> Result<HeaderValue> {
    let mut header = HeaderValue::from_str(value)
        .map_err(|_| anyhow!("a token or password cannot be sent in a header"))?;
    header.set_sensitive(true);
    Ok(header)
}

/// A parameter of a challenge: `realm="https://...",service="..."`.
fn parameter(parameters: &str, name: &str) -> Option<String> {
    let mut rest = parameters;
    while let Some((key, after)) = rest.split_once('=') {
        let key = key.trim_start_matches([',', ' ']).trim_end();
        let (value, next) = match after.strip_prefix('"') {
            Some(quoted) => quoted.split_once('"')?,
            None => after.split_once(',').unwrap_or((after, "")),
        };
        if key.eq_ignore_ascii_case(name) {
            return Some(value.trim().to_owned());
        }
        rest = next;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_of_a_challenge_may_have_commas() {
        let text =
            r#"realm="https://a.example/token",service=a.example, scope="repository:a:pull,push""#;
        let named = |name| parameter(text, name);
        assert_eq!(named("realm").as_deref(), Some("https://a.example/token"));
        assert_eq!(named("SERVICE").as_deref(), Some("a.example"));
        assert_eq!(named("scope").as_deref(), Some("repository:a:pull,push"));
        assert_eq!(named("error"), None);
        assert_eq!(parameter("realm=\"cut", "realm"), None);
    }

    #[test]
    fn this_machine_is_known_by_its_names() {
        for host in ["localhost", "localhost:5000", "127.0.0.1:5000", "127.9.9.9", "[::1]:5000"] {
            assert!(is_loopback(host), "{host}");
        }
        for host in ["localhost.example:5000", "10.0.0.1", "registry.example", "127.0.0.1.example"]
        {
            assert!(!is_loopback(host), "{host}");
        }
    }
}

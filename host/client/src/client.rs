//! Requests to one plane.

use std::time::Duration;

use bytes::Bytes;
use http::header::AUTHORIZATION;
use http::{HeaderValue, Request, Uri};
use tokio::time::timeout;

use crate::address::Address;
use crate::answer::Answer;
use crate::connection::Connection;
use crate::error::ClientError;
use crate::tls::{Tls, TlsFiles};

/// A client of one plane. Each request has a connection of its own.
#[derive(Clone, Debug)]
pub struct Client {
    address: Address,
    /// None for an address without TLS, and for one with the settings of the system.
    tls: Option<Tls>,
    authorization: Option<HeaderValue>,
    answer_timeout: Option<Duration>,
    answer_bytes_max: Option<usize>,
}

/// The token cannot be sent in a header. The message does not contain it.
#[derive(Debug, thiserror::Error)]
#[error(
    "the token is empty or cannot be sent in a header: it must be ASCII, without line breaks and \
     without blanks at its ends"
)]
pub struct TokenError;

impl Client {
    /// A client that sends no token and has no timeout. If the address is `https`, it trusts the
    /// system's authorities.
    pub fn new(address: Address) -> Self {
        let (tls, authorization) = (None, None);
        Self { address, tls, authorization, answer_timeout: None, answer_bytes_max: None }
    }

    /// The same client with these settings of TLS, which are used if the address is `https`.
    pub fn with_tls(self, tls: Tls) -> Self {
        Self { tls: Some(tls), ..self }
    }

    /// The same client with this bearer token in each request.
    ///
    /// # Errors
    /// [`TokenError`] if the token is empty, is not ASCII, or has line breaks or blanks at its
    /// ends.
    pub fn with_token(self, token: &str) -> Result<Self, TokenError> {
        let is_plain = !token.is_empty()
            && token.trim() == token
            && token.bytes().all(|byte| (b' '..=b'~').contains(&byte));
        let header = HeaderValue::from_str(&format!("Bearer {token}"));
        let mut header = header.ok().filter(|_| is_plain).ok_or(TokenError)?;
        header.set_sensitive(true);
        Ok(Self { authorization: Some(header), ..self })
    }

    /// The same client without a token.
    pub fn without_token(self) -> Self {
        Self { authorization: None, ..self }
    }

    /// The same client with a timeout: a request fails if its whole answer takes longer than
    /// `time`.
    pub fn with_answer_timeout(self, time: Duration) -> Self {
        Self { answer_timeout: Some(time), ..self }
    }

    /// The same client with a bound on answers: a request fails if the body of its answer is
    /// longer.
    pub fn with_answer_limit(self, bytes: usize) -> Self {
        Self { answer_bytes_max: Some(bytes), ..self }
    }

    /// The plane's address.
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// Sends a request and returns the answer, of any status. The request's URI is a path, with or
    /// without a query.
    ///
    /// # Errors
    /// [`ClientError`] if no whole answer comes.
    pub async fn send(&self, mut request: Request<Bytes>) -> Result<Answer, ClientError> {
        if !self.address.prefix().is_empty() {
            let uri: Result<Uri, _> = format!("{}{}", self.address.prefix(), request.uri()).parse();
            *request.uri_mut() = uri.map_err(http::Error::from)?;
        }
        if let Some(authorization) = &self.authorization {
            request.headers_mut().insert(AUTHORIZATION, authorization.clone());
        }
        let exchange = async {
            let mut connection = self.connect().await?;
            if let Some(bytes) = self.answer_bytes_max {
                connection.bound_answers(bytes);
            }
            connection.send(request).await
        };
        let Some(after) = self.answer_timeout else { return exchange.await };
        timeout(after, exchange).await.unwrap_or_else(|_| {
            Err(ClientError::AnswerTimeout { address: self.address.authority().to_owned(), after })
        })
    }

    async fn connect(&self) -> Result<Connection, ClientError> {
        let target = self.address.target();
        if !self.address.is_https() {
            return Connection::open(target).await;
        }
        let tls = match &self.tls {
            Some(tls) => tls.clone(),
            None => Tls::open(&TlsFiles::default())?,
        };
        Connection::open_tls(target, self.address.host(), &tls).await
    }

    /// Sends `GET` for a path.
    ///
    /// # Errors
    /// As [`Self::send`].
    pub async fn get(&self, path: &str) -> Result<Answer, ClientError> {
        self.send(Request::get(path).body(Bytes::new())?).await
    }
}

#[cfg(test)]
mod tests {
    use super::Client;

    #[test]
    fn a_token_that_no_header_carries_is_not_shown() {
        let client = Client::new("127.0.0.1:8081".parse().unwrap());
        for token in ["", "the-secret\n", " the-secret", "the-secrét"] {
            let refused = client.clone().with_token(token).unwrap_err();
            assert!(!refused.to_string().contains("the-"), "{refused}");
        }
        let shown = format!("{:?}", client.with_token("the-secret").unwrap());
        assert!(!shown.contains("the-secret"), "{shown}");
    }
}

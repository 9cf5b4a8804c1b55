//! The settings of sessions: the certificate, the key, the authorities of clients, and the
//! protocols that may be spoken over TLS.

use std::sync::Arc;
use std::time::SystemTime;

use rustls::server::NoServerSessionStorage;
use rustls::{Error, ServerConfig};

use super::files::{Loaded, TlsError, TlsFault, TlsFile, TlsFiles};
use crate::listener::Protocol;

/// HTTP/2 and HTTP/1.1, as they are negotiated.
pub(super) const HTTP2: &[u8] = b"h2";
const HTTP1: &[u8] = b"http/1.1";

/// The settings of sessions, made of one set of files. No client can resume a session of an earlier
/// set, because each set has its own memory of sessions.
pub(super) struct Sessions {
    http1: Arc<ServerConfig>,
    http2: Arc<ServerConfig>,
    /// When the certificate ends.
    not_after: Option<SystemTime>,
    /// Whether people other than the key's owner and group may read or change it.
    pub(super) key_is_open: bool,
}

impl Sessions {
    /// Read the files, and make the settings of them.
    pub(super) fn read(files: &TlsFiles) -> Result<Self, Vec<TlsFault>> {
        let loaded = files.load()?;
        let config = |protocols: &[&[u8]]| {
            config(&loaded, protocols).map_err(|error| {
                vec![files.fault(TlsFile::Certificate, TlsError::BadCertificate(error))]
            })
        };
        Ok(Self {
            http1: config(&[HTTP2, HTTP1])?,
            http2: config(&[HTTP2])?,
            not_after: loaded.not_after,
            key_is_open: loaded.key_is_open,
        })
    }

    /// When the certificate ends, as RFC 3339 has it.
    pub(super) fn ends(&self) -> Option<String> {
        self.not_after.map(|ends| humantime::format_rfc3339_seconds(ends).to_string())
    }

    /// Whether the certificate has expired.
    pub(super) fn have_ended(&self) -> bool {
        self.not_after.is_some_and(|ends| ends < SystemTime::now())
    }

    /// The settings for a listener of this protocol. Where HTTP/1.1 is spoken without TLS, clients
    /// may choose HTTP/2 with TLS.
    pub(super) fn of(&self, protocol: Protocol) -> &Arc<ServerConfig> {
        match protocol {
            Protocol::Http1 => &self.http1,
            Protocol::Http2 => &self.http2,
        }
    }
}

fn config(loaded: &Loaded, protocols: &[&[u8]]) -> Result<Arc<ServerConfig>, Error> {
    let builder = ServerConfig::builder_with_provider(loaded.provider.clone());
    let builder = builder.with_safe_default_protocol_versions()?;
    let builder = match &loaded.client_verifier {
        Some(verifier) => builder.with_client_cert_verifier(verifier.clone()),
        None => builder.with_no_client_auth(),
    };
    let mut config = builder.with_single_cert(loaded.chain.clone(), loaded.key.clone_key())?;
    if loaded.client_verifier.is_some() {
        // A session that is resumed is not asked for its certificate, which may have ended.
        config.session_storage = Arc::new(NoServerSessionStorage {});
        config.send_tls13_tickets = 0;
    }
    config.alpn_protocols = protocols.iter().map(|protocol| protocol.to_vec()).collect();
    Ok(Arc::new(config))
}

//! TLS to a server: which certificates the client trusts, and its own one.

mod files;
mod trusted;

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use rustls::crypto::ring;
use rustls::pki_types::ServerName;
use rustls::{AlertDescription, CertificateError, ClientConfig, Error};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

pub use self::files::TlsError;
use self::files::{certificates, private_key};
use self::trusted::TrustedServers;

/// The files for TLS, all in PEM.
#[derive(Clone, Debug, Default)]
pub struct TlsFiles {
    /// The authorities that are trusted in place of the system's.
    pub ca: Option<PathBuf>,
    /// The client's own certificate chain and its key, for a server that demands them.
    pub identity: Option<OwnFiles>,
}

/// A client's own certificate chain, and the key of its first certificate.
#[derive(Clone, Debug)]
pub struct OwnFiles {
    /// The certificate chain.
    pub certificate: PathBuf,
    /// The key.
    pub key: PathBuf,
}

/// The settings of TLS to one server or several.
#[derive(Clone, Debug)]
pub struct Tls(Arc<ClientConfig>);

/// Why a server and this client do not agree on a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TlsRefusal {
    /// No trusted authority signed the server's certificate.
    UnknownAuthority,
    /// The server's certificate is none for servers: it is for an authority, as `openssl req -x509`
    /// makes it, and not trusted itself; or it has an old form, as `openssl x509 -req` makes it.
    NotOfServer,
    /// The server's certificate has no subjectAltName.
    NoName,
    /// The server's certificate is for another name or address.
    OtherName,
    /// The server's certificate is not valid now.
    Expired,
    /// The server does not speak TLS.
    NoTls,
    /// The server demands a client certificate.
    CertificateNeeded,
    /// The server does not accept the client's certificate.
    CertificateRefused,
}

impl Tls {
    /// The settings that these files give.
    ///
    /// # Errors
    /// [`TlsError`], which names the file.
    pub fn open(files: &TlsFiles) -> Result<Self, TlsError> {
        let provider = Arc::new(ring::default_provider());
        let trusted = TrustedServers::open(files.ca.as_deref(), provider.clone())?;
        let builder = ClientConfig::builder_with_provider(provider);
        let builder = builder.with_safe_default_protocol_versions().map_err(TlsError::Library)?;
        let builder = builder.dangerous().with_custom_certificate_verifier(Arc::new(trusted));
        let mut config = match &files.identity {
            None => builder.with_no_client_auth(),
            Some(OwnFiles { certificate, key }) => {
                let (chain, key) = (certificates(certificate)?, private_key(key)?);
                let unusable = |source| TlsError::Unusable { path: certificate.clone(), source };
                builder.with_client_auth_cert(chain, key).map_err(unusable)?
            }
        };
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Self(Arc::new(config)))
    }

    /// The same settings for HTTP/2.
    pub fn for_http2(&self) -> Self {
        let mut config = ClientConfig::clone(&self.0);
        config.alpn_protocols = vec![b"h2".to_vec()];
        Self(Arc::new(config))
    }

    /// Make a session with the server `host`.
    ///
    /// # Errors
    /// The server does not speak TLS, or has no certificate that these settings trust.
    pub async fn connect(&self, host: &str, stream: TcpStream) -> io::Result<TlsStream<TcpStream>> {
        // An IPv6 address stands in brackets in a URL.
        let name = host.trim_start_matches('[').trim_end_matches(']').to_owned();
        let name = ServerName::try_from(name)
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
        TlsConnector::from(self.0.clone()).connect(name, stream).await
    }
}

impl TlsRefusal {
    /// The refusal that caused an error, if one did.
    pub(crate) fn of(error: &(dyn std::error::Error + 'static)) -> Option<Self> {
        let mut cause = Some(error);
        while let Some(error) = cause {
            // An `io::Error` shows the source of what it holds, not what it holds.
            let held = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
            let held = held.and_then(|held| held.downcast_ref::<Error>());
            if let Some(error) = held.or_else(|| error.downcast_ref::<Error>()) {
                return Self::of_library(error);
            }
            cause = error.source();
        }
        None
    }

    fn of_library(error: &Error) -> Option<Self> {
        Some(match error {
            Error::InvalidCertificate(
                CertificateError::UnknownIssuer | CertificateError::BadSignature,
            ) => Self::UnknownAuthority,
            Error::InvalidCertificate(CertificateError::Other(_)) => Self::NotOfServer,
            Error::InvalidCertificate(CertificateError::NotValidForNameContext {
                presented,
                ..
            }) if presented.is_empty() => Self::NoName,
            Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            ) => Self::OtherName,
            Error::InvalidCertificate(
                CertificateError::Expired
                | CertificateError::ExpiredContext { .. }
                | CertificateError::NotValidYet
                | CertificateError::NotValidYetContext { .. },
            ) => Self::Expired,
            Error::InvalidMessage(_) => Self::NoTls,
            Error::AlertReceived(AlertDescription::CertificateRequired) => Self::CertificateNeeded,
            Error::AlertReceived(
                AlertDescription::BadCertificate
                | AlertDescription::UnsupportedCertificate
                | AlertDescription::CertificateRevoked
                | AlertDescription::CertificateExpired
                | AlertDescription::CertificateUnknown
                | AlertDescription::UnknownCA
                | AlertDescription::DecryptError
                | AlertDescription::AccessDenied,
            ) => Self::CertificateRefused,
            _ => return None,
        })
    }
}

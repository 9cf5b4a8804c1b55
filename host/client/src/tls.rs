//! TLS to a server: which certificates the client trusts, and its own one.

mod trusted;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::client::VerifierBuilderError;
use rustls::crypto::ring;
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{AlertDescription, CertificateError, ClientConfig, Error};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use self::trusted::TrustedServers;

/// The files for TLS, all in PEM.
#[derive(Clone, Debug, Default)]
pub struct TlsFiles {
    /// The authorities that are trusted in place of the system's.
    pub ca: Option<PathBuf>,
    /// The client's own certificate chain and its key, for a server that demands them.
    pub own: Option<OwnFiles>,
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

/// Why the files for TLS cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file cannot be read.
    #[error("{path}: it cannot be read", path = path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// A file has no PEM, damaged PEM, or nothing of the kind that is needed.
    #[error("{path}: it has no {wanted} in PEM", path = path.display())]
    Pem {
        /// The file.
        path: PathBuf,
        /// The kind of content that is needed.
        wanted: &'static str,
        /// What the library said.
        #[source]
        source: pem::Error,
    },
    /// The system has no certificates of authorities.
    #[error("this system has no certificates of authorities, so no server can be checked")]
    NoAuthorities,
    /// The certificates or the key cannot be used.
    #[error("{path}: it cannot be used", path = path.display())]
    Unusable {
        /// The file.
        path: PathBuf,
        /// What the library said.
        #[source]
        source: Error,
    },
    /// The library cannot be set up.
    #[error("TLS cannot be set up")]
    Library(#[source] Error),
    /// The authorities cannot be used.
    #[error("the authorities cannot be used")]
    Authorities(#[source] VerifierBuilderError),
}

/// Why a server and this client do not agree on a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TlsRefusal {
    /// No trusted authority signed the server's certificate.
    UnknownAuthority,
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
        let mut config = match &files.own {
            None => builder.with_no_client_auth(),
            Some(OwnFiles { certificate, key }) => {
                let (chain, own) = (certificates(certificate)?, private_key(key)?);
                let unusable = |source| TlsError::Unusable { path: certificate.clone(), source };
                builder.with_client_auth_cert(chain, own).map_err(unusable)?
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
            if let Some(found) = held.or_else(|| error.downcast_ref::<Error>()) {
                return Self::of_library(found);
            }
            cause = error.source();
        }
        None
    }

    fn of_library(error: &Error) -> Option<Self> {
        Some(match error {
            // Also of an authority that signed itself and is not among those that are trusted.
            Error::InvalidCertificate(
                CertificateError::UnknownIssuer
                | CertificateError::BadSignature
                | CertificateError::Other(_),
            ) => Self::UnknownAuthority,
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

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let text = read(path)?;
    let found = CertificateDer::pem_slice_iter(&text).collect::<Result<Vec<_>, _>>();
    match found {
        Ok(found) if !found.is_empty() => Ok(found),
        other => {
            let source = other.err().unwrap_or(pem::Error::NoItemsFound);
            Err(TlsError::Pem { path: path.to_owned(), wanted: "certificate", source })
        }
    }
}

fn private_key(path: &Path) -> Result<PrivateKeyDer<'static>, TlsError> {
    PrivateKeyDer::from_pem_slice(&read(path)?).map_err(|source| TlsError::Pem {
        path: path.to_owned(),
        wanted: "private key without a passphrase",
        source,
    })
}

fn read(path: &Path) -> Result<Vec<u8>, TlsError> {
    fs::read(path).map_err(|source| TlsError::Unreadable { path: path.to_owned(), source })
}

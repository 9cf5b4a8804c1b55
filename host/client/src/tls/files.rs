//! Reads certificates and keys in PEM, and says which file is at fault.

use std::path::{Path, PathBuf};
use std::{fs, io};

use rustls::Error;
use rustls::client::VerifierBuilderError;
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

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

pub(super) fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let text = read(path)?;
    let certificates = CertificateDer::pem_slice_iter(&text).collect::<Result<Vec<_>, _>>();
    match certificates {
        Ok(certificates) if !certificates.is_empty() => Ok(certificates),
        other => {
            let source = other.err().unwrap_or(pem::Error::NoItemsFound);
            Err(TlsError::Pem { path: path.to_owned(), wanted: "certificate", source })
        }
    }
}

pub(super) fn private_key(path: &Path) -> Result<PrivateKeyDer<'static>, TlsError> {
    PrivateKeyDer::from_pem_slice(&read(path)?).map_err(|source| TlsError::Pem {
        path: path.to_owned(),
        wanted: "private key without a passphrase",
        source,
    })
}

fn read(path: &Path) -> Result<Vec<u8>, TlsError> {
    fs::read(path).map_err(|source| TlsError::Unreadable { path: path.to_owned(), source })
}

//! TLS with other systems, by the authorities that the operating system trusts.

use std::sync::Arc;

use rustls::crypto::ring;
use rustls::{ClientConfig, RootCertStore};
use tokio_rustls::TlsConnector;

/// TLS cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoTls {
    /// The library refuses its settings.
    Refused,
    /// The system trusts no authority.
    NoAuthorities,
}

/// TLS with servers whose certificates the system's authorities have signed.
///
/// # Errors
/// [`NoTls`]
pub(crate) fn trusting_the_system() -> Result<TlsConnector, NoTls> {
    let mut authorities = RootCertStore::empty();
    let found = rustls_native_certs::load_native_certs();
    // A system may have some that cannot be read.
    for error in &found.errors {
        tracing::warn!(%error, "certificates of the system's authorities cannot be read");
    }
    authorities.add_parsable_certificates(found.certs);
    if authorities.is_empty() {
        return Err(NoTls::NoAuthorities);
    }
    let provider = Arc::new(ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|_| NoTls::Refused)?
        .with_root_certificates(authorities)
        .with_no_client_auth();
    Ok(TlsConnector::from(Arc::new(config)))
}

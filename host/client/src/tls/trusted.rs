//! The servers that are trusted: by the authorities that sign their certificates, or by the
//! certificates themselves.
//!
//! `openssl req -x509` makes a certificate that is an authority, and people give it to a server as
//! it is. RFC 5280 has no servers that are authorities, but whoever names a server's own
//! certificate trusts this server. Its name and its time are checked all the same.

use std::path::Path;
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{WebPkiServerVerifier, verify_server_name};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};

use super::files::{TlsError, certificates};

/// The servers that are trusted.
#[derive(Debug)]
pub(super) struct TrustedServers {
    authorities: Arc<WebPkiServerVerifier>,
    /// The certificates that were named, not those of the system.
    named: Vec<CertificateDer<'static>>,
}

impl TrustedServers {
    /// Those of the certificates in `file`, or else of the system.
    pub(super) fn open(
        file: Option<&Path>,
        provider: Arc<CryptoProvider>,
    ) -> Result<Self, TlsError> {
        let mut authorities = RootCertStore::empty();
        let named = match file {
            Some(path) => {
                let named = certificates(path)?;
                for certificate in &named {
                    let unusable = |source| TlsError::Unusable { path: path.to_owned(), source };
                    authorities.add(certificate.clone()).map_err(unusable)?;
                }
                named
            }
            // A system may have some that cannot be read.
            None => {
                let certificates = rustls_native_certs::load_native_certs().certs;
                authorities.add_parsable_certificates(certificates);
                Vec::new()
            }
        };
        if authorities.is_empty() {
            return Err(TlsError::NoAuthorities);
        }
        let verifier = WebPkiServerVerifier::builder_with_provider(authorities.into(), provider);
        let authorities = verifier.build().map_err(TlsError::Authorities)?;
        Ok(Self { authorities, named })
    }
}

impl ServerCertVerifier for TrustedServers {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        others: &[CertificateDer<'_>],
        server: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        match self.authorities.verify_server_cert(certificate, others, server, ocsp, now) {
            // The time was checked before: that it is an authority is what is left.
            Err(Error::InvalidCertificate(CertificateError::Other(_)))
                if self.named.iter().any(|named| named == certificate) =>
            {
                verify_server_name(&ParsedCertificate::try_from(certificate)?, server)?;
                Ok(ServerCertVerified::assertion())
            }
            verified => verified,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.authorities.verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.authorities.verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.authorities.supported_verify_schemes()
    }
}

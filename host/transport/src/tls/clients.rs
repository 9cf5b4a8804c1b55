//! The clients that are trusted: by the authorities that sign their certificates, or by the
//! certificates themselves. `openssl req -x509` makes a certificate that is an authority, which no
//! client may have, but whoever names a client's own certificate trusts this client.

use std::sync::Arc;

use rustls::client::danger::HandshakeSignatureValid;
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{CertificateError, DigitallySignedStruct, DistinguishedName, Error, SignatureScheme};

/// The clients that are trusted.
#[derive(Debug)]
pub(super) struct TrustedClients {
    pub(super) authorities: Arc<dyn ClientCertVerifier>,
    /// The certificates that were named.
    pub(super) named: Vec<CertificateDer<'static>>,
}

impl ClientCertVerifier for TrustedClients {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        self.authorities.root_hint_subjects()
    }

    fn verify_client_cert(
        &self,
        certificate: &CertificateDer<'_>,
        others: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        match self.authorities.verify_client_cert(certificate, others, now) {
            // The time was checked before: that it is an authority is what is left.
            Err(Error::InvalidCertificate(CertificateError::Other(_)))
                if self.named.iter().any(|named| named == certificate) =>
            {
                Ok(ClientCertVerified::assertion())
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

//! Reads certificates and keys, and names what is wrong with them.

use std::fmt;
use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use rustls::client::verify_server_cert_signed_by_trust_anchor;
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, UnixTime};
use rustls::server::danger::ClientCertVerifier;
use rustls::server::{ParsedCertificate, VerifierBuilderError, WebPkiClientVerifier};
use rustls::sign::CertifiedKey;
use rustls::{CertificateError, Error, InconsistentKeys, RootCertStore};

use super::clients::TrustedClients;

/// Maximum bytes of a file. A bundle of all public authorities has a quarter of it.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// The permissions of people other than a key's owner and group.
const OF_OTHERS: u32 = 0o007;

/// The files of a listener's TLS, all in PEM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFiles {
    /// The certificate chain, the listener's own certificate first.
    pub certificate: PathBuf,
    /// The key of that certificate.
    pub key: PathBuf,
    /// The authorities that sign clients' certificates. With them, every client needs one.
    pub client_ca: Option<PathBuf>,
}

/// One of the [files](TlsFiles).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TlsFile {
    /// [`TlsFiles::certificate`].
    Certificate,
    /// [`TlsFiles::key`].
    Key,
    /// [`TlsFiles::client_ca`].
    ClientCa,
}

impl fmt::Display for TlsFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Certificate => "the certificate's file",
            Self::Key => "the key's file",
            Self::ClientCa => "the file of clients' authorities",
        })
    }
}

/// A fault of one of the files.
#[derive(Debug)]
pub struct TlsFault {
    /// The file.
    pub file: TlsFile,
    /// Its path.
    pub path: PathBuf,
    /// Its fault.
    pub error: TlsError,
}

/// What is wrong with a file. The text does not name the file.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// The system refuses to read it.
    #[error("it cannot be read: {0}")]
    Unreadable(#[source] io::Error),
    /// It is longer than any such file.
    #[error("it has more than {FILE_BYTES_MAX} bytes")]
    TooLong,
    /// A block of PEM is damaged.
    #[error("its PEM is damaged: {0}")]
    Pem(#[source] pem::Error),
    /// It has no block with a certificate.
    #[error("it has no certificate: a file with -----BEGIN CERTIFICATE----- is needed")]
    NoCertificate,
    /// It has no block with a key.
    #[error("it has no private key: a file with -----BEGIN PRIVATE KEY----- is needed")]
    NoKey,
    /// Its key needs a passphrase.
    #[error(
        "its key is encrypted: a key without a passphrase is needed, as `openssl pkey -in KEY -out \
         PLAIN` writes it, or `openssl req` with -nodes"
    )]
    EncryptedKey,
    /// A certificate is not one.
    #[error("its certificate cannot be used: {0}")]
    BadCertificate(#[source] Error),
    /// Its certificates are not those of authorities.
    #[error("its certificates cannot be used to check others: {0}")]
    BadAuthorities(#[source] VerifierBuilderError),
    /// The key is of a kind that is not supported.
    #[error(
        "its key cannot be used: it must be RSA of 2048 to 4096 bits, ECDSA on P-256 or P-384, or \
         Ed25519, as `openssl req -newkey rsa:2048` makes it: {0}"
    )]
    BadKey(#[source] Error),
    /// Certificate and key do not belong together.
    #[error("it is not the key of the certificate")]
    OtherKey,
    /// The certificates stand in another order.
    #[error(
        "the key is that of its certificate {0}: the server's own certificate must be the first, \
         and that of the authority that signed it the next"
    )]
    LaterCertificate(usize),
}

/// What the files had.
pub(super) struct Loaded {
    pub(super) provider: Arc<CryptoProvider>,
    pub(super) chain: Vec<CertificateDer<'static>>,
    pub(super) key: PrivateKeyDer<'static>,
    /// Checks the certificates of clients, if they need one.
    pub(super) client_verifier: Option<Arc<dyn ClientCertVerifier>>,
    /// When the listener's own certificate ends.
    pub(super) not_after: Option<SystemTime>,
    /// Whether people other than the key's owner and group may read or change it.
    pub(super) key_is_open: bool,
}

/// By what a file is known to be the same as before: place, time and length. None if there is no
/// file. A symbolic link is followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stamp {
    device: u64,
    inode: u64,
    modified: (i64, i64),
    len: u64,
}

/// The files as they were at one time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Seen([Option<Stamp>; 3]);

impl TlsFiles {
    /// The path of one of the files.
    pub fn path(&self, file: TlsFile) -> &Path {
        match file {
            TlsFile::Certificate => &self.certificate,
            TlsFile::Key => &self.key,
            TlsFile::ClientCa => self.client_ca.as_deref().unwrap_or(Path::new("")),
        }
    }

    pub(super) fn seen(&self) -> Seen {
        let stamp = |path: &PathBuf| std::fs::metadata(path).ok().map(|file| Stamp::of(&file));
        Seen([stamp(&self.certificate), stamp(&self.key), self.client_ca.as_ref().and_then(stamp)])
    }

    /// Read all files, and check that the key is the certificate's.
    pub(super) fn load(&self) -> Result<Loaded, Vec<TlsFault>> {
        let provider = Arc::new(ring::default_provider());
        let mut faults = Vec::new();
        let chain = noted(self.certificates(TlsFile::Certificate), &mut faults);
        let key = noted(self.key(), &mut faults);
        let client_verifier = match self.client_ca {
            Some(_) => noted(self.client_verifier(&provider), &mut faults).map(Some),
            None => Some(None),
        };
        let (Some(chain), Some((key, key_is_open)), Some(client_verifier)) =
            (chain, key, client_verifier)
        else {
            return Err(faults);
        };
        if let Err(fault) = self.check_pair(&provider, &chain, &key) {
            return Err(vec![fault]);
        }
        let not_after = chain.first().and_then(|certificate| not_after(certificate, &provider));
        Ok(Loaded { provider, chain, key, client_verifier, not_after, key_is_open })
    }

    pub(super) fn fault(&self, file: TlsFile, error: TlsError) -> TlsFault {
        TlsFault { file, path: self.path(file).to_owned(), error }
    }

    /// The certificates of a file, one or more.
    fn certificates(&self, file: TlsFile) -> Result<Vec<CertificateDer<'static>>, TlsFault> {
        let read = || {
            let (text, _) = read(self.path(file))?;
            let certificates = CertificateDer::pem_slice_iter(&text).collect::<Result<Vec<_>, _>>();
            match certificates.map_err(TlsError::Pem)? {
                certificates if certificates.is_empty() => Err(TlsError::NoCertificate),
                certificates => Ok(certificates),
            }
        };
        read().map_err(|error| self.fault(file, error))
    }

    /// The key, and whether others may read it.
    fn key(&self) -> Result<(PrivateKeyDer<'static>, bool), TlsFault> {
        let read = || {
            let (text, metadata) = read(&self.key)?;
            // An older form of encrypted keys begins as other keys do, and has lines that are no
            // base64.
            let key = PrivateKeyDer::from_pem_slice(&text).map_err(|error| match error {
                _ if is_encrypted(&text) => TlsError::EncryptedKey,
                pem::Error::NoItemsFound => TlsError::NoKey,
                error => TlsError::Pem(error),
            })?;
            Ok((key, metadata.mode() & OF_OTHERS != 0))
        };
        read().map_err(|error| self.fault(TlsFile::Key, error))
    }

    fn client_verifier(
        &self,
        provider: &Arc<CryptoProvider>,
    ) -> Result<Arc<dyn ClientCertVerifier>, TlsFault> {
        let fault = |error| self.fault(TlsFile::ClientCa, error);
        let mut authorities = RootCertStore::empty();
        let named = self.certificates(TlsFile::ClientCa)?;
        for certificate in &named {
            let added = authorities.add(certificate.clone());
            added.map_err(|error| fault(TlsError::BadCertificate(error)))?;
        }
        let provider = provider.clone();
        let authorities = WebPkiClientVerifier::builder_with_provider(authorities.into(), provider)
            .build()
            .map_err(|error| fault(TlsError::BadAuthorities(error)))?;
        Ok(Arc::new(TrustedClients { authorities, named }))
    }

    fn check_pair(
        &self,
        provider: &CryptoProvider,
        chain: &[CertificateDer<'static>],
        key: &PrivateKeyDer<'static>,
    ) -> Result<(), TlsFault> {
        let signing = provider.key_provider.load_private_key(key.clone_key());
        let signing = signing.map_err(|error| self.fault(TlsFile::Key, TlsError::BadKey(error)))?;
        let checked =
            |at: usize| CertifiedKey::new(chain[at..].to_vec(), signing.clone()).keys_match();
        let (file, error) = match checked(0) {
            Ok(()) | Err(Error::InconsistentKeys(InconsistentKeys::Unknown)) => return Ok(()),
            Err(Error::InconsistentKeys(_)) => {
                match (1..chain.len()).find(|at| checked(*at).is_ok()) {
                    Some(at) => (TlsFile::Certificate, TlsError::LaterCertificate(at + 1)),
                    None => (TlsFile::Key, TlsError::OtherKey),
                }
            }
            Err(error) => (TlsFile::Certificate, TlsError::BadCertificate(error)),
        };
        Err(self.fault(file, error))
    }
}

impl Stamp {
    fn of(file: &Metadata) -> Self {
        Self {
            device: file.dev(),
            inode: file.ino(),
            modified: (file.mtime(), file.mtime_nsec()),
            len: file.len(),
        }
    }
}

/// The value, or none with its fault among `faults`.
fn noted<T>(read: Result<T, TlsFault>, faults: &mut Vec<TlsFault>) -> Option<T> {
    read.map_err(|fault| faults.push(fault)).ok()
}

/// A file's content and metadata, of one and the same file.
fn read(path: &Path) -> Result<(Vec<u8>, Metadata), TlsError> {
    let read = || {
        // A pipe would be waited for.
        if !std::fs::metadata(path)?.is_file() {
            return Err(io::Error::other("it is not a regular file"));
        }
        let file = File::open(path)?;
        let metadata = file.metadata()?;
        let mut content = Vec::new();
        file.take(FILE_BYTES_MAX + 1).read_to_end(&mut content)?;
        Ok((content, metadata))
    };
    match read().map_err(TlsError::Unreadable)? {
        (content, _) if content.len() as u64 > FILE_BYTES_MAX => Err(TlsError::TooLong),
        read => Ok(read),
    }
}

fn is_encrypted(text: &[u8]) -> bool {
    String::from_utf8_lossy(text).contains("ENCRYPTED")
}

/// When a certificate ends: a time after every end is reported together with the end.
fn not_after(certificate: &CertificateDer<'_>, provider: &CryptoProvider) -> Option<SystemTime> {
    let parsed = ParsedCertificate::try_from(certificate).ok()?;
    let late = UnixTime::since_unix_epoch(Duration::from_secs(u64::MAX));
    let algorithms = provider.signature_verification_algorithms.all;
    let checked = verify_server_cert_signed_by_trust_anchor(
        &parsed,
        &RootCertStore::empty(),
        &[],
        late,
        algorithms,
    );
    match checked {
        Err(Error::InvalidCertificate(CertificateError::ExpiredContext { not_after, .. })) => {
            SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(not_after.as_secs()))
        }
        _ => None,
    }
}

//! Certificates for tests, and a connection of TLS without an HTTP client.

use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use gristmill_client::{OwnFiles, Tls, TlsFiles};
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, ServerConfig, StreamOwned};
use tempfile::TempDir;

/// Longer than the server takes to answer or to close.
const PATIENCE: Duration = Duration::from_secs(60);

/// An authority and the folder of its files, for servers and clients.
pub(crate) struct Authority {
    folder: TempDir,
    issuer: Issuer<'static, KeyPair>,
    pem: String,
}

/// A certificate with its key, in PEM.
pub(crate) struct Pair {
    pub(crate) certificate: String,
    pub(crate) key: String,
}

/// A connection over TLS.
pub(crate) type TlsStream = StreamOwned<ClientConnection, TcpStream>;

impl Authority {
    pub(crate) fn new() -> Self {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, "the authority of a test");
        let pem = params.self_signed(&key).unwrap().pem();
        let authority =
            Self { folder: tempfile::tempdir().unwrap(), issuer: Issuer::new(params, key), pem };
        authority.write("ca.pem", &authority.pem);
        authority
    }

    /// A new certificate for a server on this machine, or for a client.
    pub(crate) fn pair(&self) -> Pair {
        self.signed(CertificateParams::new(names()).unwrap())
    }

    /// What a server on this machine needs for TLS, with a new certificate.
    pub(crate) fn server_config(&self) -> Arc<ServerConfig> {
        let Pair { certificate, key } = self.pair();
        let certificate = CertificateDer::from_pem_slice(certificate.as_bytes()).unwrap();
        let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certificate], key)
            .unwrap();
        Arc::new(config)
    }

    /// A certificate that signed itself and is an authority, as `openssl req -x509` makes it.
    pub(crate) fn self_signed_pair(names: &[&str], last_year: i32) -> Pair {
        let names: Vec<_> = names.iter().map(|name| (*name).to_owned()).collect();
        let mut params = CertificateParams::new(names).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, "a server of a test");
        params.not_after = rcgen::date_time_ymd(last_year, 1, 1);
        let key = KeyPair::generate().unwrap();
        let certificate = params.self_signed(&key).unwrap().pem();
        Pair { certificate, key: key.serialize_pem() }
    }

    /// A certificate that expired years ago.
    pub(crate) fn expired_pair(&self) -> Pair {
        let mut params = CertificateParams::new(names()).unwrap();
        params.not_before = rcgen::date_time_ymd(2001, 1, 1);
        params.not_after = rcgen::date_time_ymd(2002, 1, 1);
        self.signed(params)
    }

    fn signed(&self, params: CertificateParams) -> Pair {
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap().pem();
        Pair { certificate, key: key.serialize_pem() }
    }

    /// The authority's own certificate.
    pub(crate) fn ca(&self) -> PathBuf {
        self.path("ca.pem")
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Write a file. It takes the place of an earlier one at once.
    pub(crate) fn write(&self, name: &str, content: &str) -> PathBuf {
        let (new, path) = (self.path(&format!("{name}.new")), self.path(name));
        std::fs::write(&new, content).unwrap();
        std::fs::rename(&new, &path).unwrap();
        path
    }

    /// Write a pair as `NAME.crt` and `NAME.key`.
    pub(crate) fn write_pair(&self, name: &str, pair: &Pair) -> OwnFiles {
        let key = self.write(&format!("{name}.key"), &pair.key);
        only_for_its_owner(&key);
        OwnFiles { certificate: self.write(&format!("{name}.crt"), &pair.certificate), key }
    }

    /// The settings of a client that trusts this authority only, with a certificate or without.
    pub(crate) fn client(&self, identity: Option<OwnFiles>) -> Tls {
        Tls::open(&TlsFiles { ca: Some(self.ca()), identity }).unwrap()
    }

    /// A connection to a plane, on which these protocols are offered.
    pub(crate) fn connect(&self, authority: &str, protocols: &[&str]) -> TlsStream {
        let socket = TcpStream::connect(authority).unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        self.over(socket, protocols)
    }

    /// The same over a connection that is open.
    pub(crate) fn over(&self, socket: TcpStream, protocols: &[&str]) -> TlsStream {
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(self.pem.as_bytes()).unwrap()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider);
        let config = config.with_safe_default_protocol_versions().unwrap();
        let mut config = config.with_root_certificates(roots).with_no_client_auth();
        config.alpn_protocols = protocols.iter().map(|name| name.as_bytes().to_vec()).collect();
        let name = ServerName::try_from("localhost").unwrap();
        let session = ClientConnection::new(Arc::new(config), name).unwrap();
        let mut stream = StreamOwned::new(session, socket);
        while stream.conn.is_handshaking() {
            stream.conn.complete_io(&mut stream.sock).unwrap();
        }
        stream
    }
}

fn names() -> Vec<String> {
    vec!["localhost".into(), "127.0.0.1".into()]
}

/// As the key of a server should be.
pub(crate) fn only_for_its_owner(key: &Path) {
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(key, PermissionsExt::from_mode(0o600)).unwrap();
}

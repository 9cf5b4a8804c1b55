use std::io::Write;
use std::net::Ipv4Addr;
use std::path::Path;
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::Duration;

use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use super::*;
use crate::listener::{ListenerConfig, Protocol};

/// A pair in two files of `folder`, and the certificate.
fn pair(folder: &Path) -> (TlsFiles, CertificateDer<'static>) {
    let pair = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let [certificate, key] = ["server.crt", "server.key"].map(|name| folder.join(name));
    std::fs::write(&certificate, pair.cert.pem()).unwrap();
    std::fs::write(&key, pair.signing_key.serialize_pem()).unwrap();
    (TlsFiles { certificate, key, client_ca: None }, pair.cert.der().clone())
}

/// A client that sends its greeting at once, and makes a session if the server does.
fn prompt_client(port: u16, trusted: CertificateDer<'static>) -> JoinHandle<bool> {
    let mut roots = RootCertStore::empty();
    roots.add(trusted).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider);
    let config = config.with_safe_default_protocol_versions().unwrap();
    let config = config.with_root_certificates(roots).with_no_client_auth();
    let name = ServerName::try_from("localhost").unwrap();
    let session = ClientConnection::new(Arc::new(config), name).unwrap();
    std::thread::spawn(move || {
        let socket = std::net::TcpStream::connect((Ipv4Addr::LOCALHOST, port)).unwrap();
        StreamOwned::new(session, socket).write_all(b"x").is_ok()
    })
}

#[tokio::test(start_paused = true)]
async fn a_prompt_client_is_not_given_up_because_the_threads_are_late() {
    let folder = tempfile::tempdir().unwrap();
    let (files, certificate) = pair(folder.path());
    let tls = Tls::open("data", files).unwrap();
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let client = prompt_client(listener.local_addr().unwrap().port(), certificate);
    let (socket, address) = listener.accept().await.unwrap();
    // Not `readable`: where that is told too early, the paused time passes while nothing is there.
    assert_eq!(socket.peek(&mut [0]).await.unwrap(), 1);
    // All threads for handshakes have other work until long after the time for a handshake.
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let releases: Vec<_> = (0..cores)
        .map(|_| {
            let (release, released) = mpsc::channel::<()>();
            tls.0.threads.spawn(async move { released.recv() });
            release
        })
        .collect();
    let config = ListenerConfig::default();
    let newcomer = Newcomer {
        socket,
        client: address.ip(),
        protocol: Protocol::Http1,
        stopping: CancellationToken::new(),
    };
    let late = config.header_read_timeout * 3;
    let (secured, ()) = tokio::join!(tls.handshake(newcomer, &config), async {
        tokio::time::sleep(late).await;
        drop(releases);
    });
    assert!(late > Duration::ZERO && secured.is_some(), "{:?}", tls.report());
    assert!(client.join().unwrap());
}

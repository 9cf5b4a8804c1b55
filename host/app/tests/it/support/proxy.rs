//! A proxy in front of a server, which sees what clients send, and may cut a connection in the
//! middle of it.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// A proxy that counts what clients send.
pub(crate) struct Proxy {
    /// Host and port.
    pub(crate) address: String,
    state: Arc<ProxyState>,
}

/// What is decided about a piece, which ends at this number of bytes of all clients: whether it is
/// passed on. Otherwise its connection is cut.
type Passes = dyn Fn(&[u8], usize) -> bool + Send + Sync;

struct ProxyState {
    server: String,
    sent: AtomicUsize,
    passes: Box<Passes>,
}

impl Proxy {
    /// In front of `server`, a URL.
    pub(crate) fn start(
        server: &str,
        passes: impl Fn(&[u8], usize) -> bool + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let server = server.trim_start_matches("http://").to_owned();
        let state = ProxyState { server, sent: AtomicUsize::new(0), passes: Box::new(passes) };
        let state = Arc::new(state);
        let proxy_state = state.clone();
        // It ends with the process of the tests.
        thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let state = proxy_state.clone();
                thread::spawn(move || state.pass(client));
            }
        });
        Self { address, state }
    }

    /// The bytes that clients have sent.
    pub(crate) fn sent(&self) -> usize {
        self.state.sent.load(Ordering::Relaxed)
    }
}

impl ProxyState {
    fn pass(&self, mut client: TcpStream) {
        let Ok(mut server) = TcpStream::connect(&self.server) else { return };
        let (mut back, mut answer) = (client.try_clone().unwrap(), server.try_clone().unwrap());
        let answering = thread::spawn(move || {
            let _ = std::io::copy(&mut answer, &mut back);
            let _ = back.shutdown(Shutdown::Both);
        });
        let mut piece = vec![0; 64 << 10];
        while let Ok(read) = client.read(&mut piece) {
            let sent = self.sent.fetch_add(read, Ordering::Relaxed) + read;
            let piece = &piece[..read];
            if read == 0 || !(self.passes)(piece, sent) || server.write_all(piece).is_err() {
                break;
            }
        }
        let _ = server.shutdown(Shutdown::Both);
        let _ = client.shutdown(Shutdown::Both);
        let _ = answering.join();
    }
}

//! Services over HTTP/1.1 that plugins ask, each on a port of its own. They end with the process of
//! the tests.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, Mutex};
use std::thread;

use rustls::{ServerConnection, StreamOwned};

use super::tls::Authority;

/// A connection of a client.
trait Connection: Read + Write {}

impl<T: Read + Write> Connection for T {}

/// What a service writes after the head of a request. Without bytes it never answers.
pub(crate) type RawAnswer = Vec<u8>;

/// A service.
pub(crate) struct Service {
    scheme: &'static str,
    address: SocketAddr,
    seen: Arc<Mutex<Seen>>,
}

/// What a service has seen.
#[derive(Default)]
struct Seen {
    connections: usize,
    /// The heads of all requests.
    heads: Vec<String>,
}

impl Service {
    /// A service that answers each request, whose head it sees, with these bytes.
    pub(crate) fn answering(answer: impl Fn(&str) -> RawAnswer + Send + Sync + 'static) -> Self {
        Self::start("http", answer, |stream| Box::new(stream))
    }

    /// The same over TLS, with a certificate of this authority.
    pub(crate) fn over_tls(
        authority: &Authority,
        answer: impl Fn(&str) -> RawAnswer + Send + Sync + 'static,
    ) -> Self {
        let config = authority.server_config();
        Self::start("https", answer, move |stream| {
            let session = ServerConnection::new(config.clone()).unwrap();
            Box::new(StreamOwned::new(session, stream))
        })
    }

    /// A service that writes the head of an answer, and these bytes again and again.
    pub(crate) fn endless(head: &'static str, bytes: &'static [u8]) -> Self {
        Self::answering(move |_| {
            let mut answer = head.as_bytes().to_vec();
            answer.extend(bytes.iter().cycle().take(32 << 20));
            answer
        })
    }

    fn start(
        scheme: &'static str,
        answer: impl Fn(&str) -> RawAnswer + Send + Sync + 'static,
        open: impl Fn(std::net::TcpStream) -> Box<dyn Connection> + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let seen = Arc::<Mutex<Seen>>::default();
        let (noted, serve) = (seen.clone(), Arc::new((answer, open)));
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                noted.lock().unwrap().connections += 1;
                let (noted, serve) = (noted.clone(), serve.clone());
                thread::spawn(move || {
                    let (answer, open) = &*serve;
                    let mut connection = BufReader::new(open(stream));
                    while let Some(head) = read_request(&mut connection) {
                        noted.lock().unwrap().heads.push(head.clone());
                        // A client may leave before it has read all.
                        if connection.get_mut().write_all(&answer(&head)).is_err() {
                            return;
                        }
                    }
                });
            }
        });
        Self { scheme, address, seen }
    }

    /// A URL of it.
    pub(crate) fn url(&self, path: &str) -> String {
        format!("{}://{}{path}", self.scheme, self.address)
    }

    /// Its port.
    pub(crate) fn port(&self) -> u16 {
        self.address.port()
    }

    /// Its host and its port.
    pub(crate) fn authority(&self) -> String {
        self.address.to_string()
    }

    /// The connections that were made to it.
    pub(crate) fn connections(&self) -> usize {
        self.seen.lock().unwrap().connections
    }

    /// The heads of the requests that it got.
    pub(crate) fn heads(&self) -> Vec<String> {
        self.seen.lock().unwrap().heads.clone()
    }
}

/// An answer with this status, these lines of headers and this body.
pub(crate) fn whole(status: &str, headers: &str, body: &str) -> RawAnswer {
    let length = body.len();
    format!("HTTP/1.1 {status}\r\n{headers}content-length: {length}\r\n\r\n{body}").into_bytes()
}

/// Read a request and forget its body. Returns its head, in lower case.
fn read_request(connection: &mut impl BufRead) -> Option<String> {
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if connection.read_line(&mut head).ok()? == 0 {
            return None;
        }
    }
    let head = head.to_ascii_lowercase();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
    let length = length.map_or(0, |length| length.parse().unwrap());
    std::io::copy(&mut connection.take(length), &mut std::io::sink()).ok()?;
    Some(head)
}

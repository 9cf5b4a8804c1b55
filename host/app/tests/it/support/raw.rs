//! A connection for raw bytes, for requests that no HTTP client would send.

use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpStream};
use std::time::Duration;

use gristmill_client::http::{HeaderMap, HeaderName, HeaderValue};
use tokio::net::TcpSocket;

use crate::support::client::{Answer, Client};

/// Longer than the server takes to answer or to close.
const PATIENCE: Duration = Duration::from_secs(60);

/// A `POST` up to its body, with these headers.
pub(crate) fn post(path: &str, headers: &[&str]) -> String {
    let headers: String = headers.iter().map(|header| format!("{header}\r\n")).collect();
    format!("POST {path} HTTP/1.1\r\nhost: a\r\n{headers}\r\n")
}

pub(crate) struct Raw(TcpStream);

impl Raw {
    /// A connection to the client's plane.
    pub(crate) fn open(client: &Client) -> Self {
        Self::try_open(client).unwrap()
    }

    /// A connection, where the plane still accepts any.
    pub(crate) fn try_open(client: &Client) -> std::io::Result<Self> {
        let address = client.address().strip_prefix("http://").unwrap();
        let stream = TcpStream::connect(address)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        Ok(Self(stream))
    }

    /// A connection from another address of this machine.
    pub(crate) fn open_from(source: Ipv4Addr, client: &Client) -> Self {
        Self::open_as(client, |socket| socket.bind((source, 0).into()).unwrap())
    }

    /// A connection on which the kernel takes next to nothing that is not read, however large its
    /// buffers may otherwise grow.
    pub(crate) fn open_narrow(client: &Client) -> Self {
        const RECEIVE_BYTES: u32 = 16 << 10;
        Self::open_as(client, |socket| socket.set_recv_buffer_size(RECEIVE_BYTES).unwrap())
    }

    fn open_as(client: &Client, set_up: impl FnOnce(&TcpSocket)) -> Self {
        let address: SocketAddr =
            client.address().strip_prefix("http://").unwrap().parse().unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let connecting = async {
            let socket = TcpSocket::new_v4().unwrap();
            set_up(&socket);
            socket.connect(address).await.unwrap().into_std().unwrap()
        };
        let stream = runtime.block_on(connecting);
        stream.set_nonblocking(false).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        Self(stream)
    }

    /// Open a connection and write `text` to it.
    pub(crate) fn sent(client: &Client, text: &str) -> Self {
        let mut raw = Self::open(client);
        raw.send(text.as_bytes());
        raw
    }

    pub(crate) fn send(&mut self, bytes: &[u8]) {
        self.0.write_all(bytes).unwrap();
    }

    /// Write what the server may refuse to take.
    pub(crate) fn try_send(&mut self, bytes: &[u8]) {
        let _ = self.0.write_all(bytes);
    }

    /// Send no more.
    pub(crate) fn end_sending(&mut self) {
        self.0.shutdown(Shutdown::Write).unwrap();
    }

    /// All that comes until what has come ends with `end`.
    pub(crate) fn read_until(&mut self, end: &str) -> String {
        let mut read = Vec::new();
        while !read.ends_with(end.as_bytes()) {
            let mut byte = [0];
            self.0.read_exact(&mut byte).unwrap();
            read.extend(byte);
        }
        String::from_utf8(read).unwrap()
    }

    /// All that comes until the server closes the connection, which may be by a reset where it did
    /// not read all that was sent.
    pub(crate) fn read_to_end(&mut self) -> String {
        let mut read = Vec::new();
        match self.0.read_to_end(&mut read) {
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::ConnectionReset => {}
            Err(error) => panic!("the connection stays open: {error}; read so far: {read:?}"),
        }
        String::from_utf8(read).unwrap()
    }

    /// The one answer of a connection that the server closes after it.
    pub(crate) fn answer(&mut self) -> Answer {
        let text = self.read_to_end();
        let (head, body) =
            text.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no answer: {text:?}"));
        let mut lines = head.lines();
        let status = lines.next().unwrap().split(' ').nth(1).unwrap().parse().unwrap();
        let headers = lines.map(|line| {
            let (name, value) = line.split_once(": ").unwrap();
            (name.parse::<HeaderName>().unwrap(), HeaderValue::from_str(value).unwrap())
        });
        Answer { status, headers: headers.collect::<HeaderMap>(), body: body.into() }
    }
}

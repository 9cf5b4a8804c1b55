//! A connection for raw bytes, for requests that no HTTP client would send.

use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpStream};
use std::time::Duration;

use gristmill_client::http::{HeaderMap, HeaderName, HeaderValue};
use tokio::net::TcpSocket;

use crate::support::client::{Client, TestAnswer};
use crate::support::setup::ADMIN_TOKEN;

/// Longer than the server takes to answer or to close.
const PATIENCE: Duration = Duration::from_secs(60);

/// The head of a `POST` with these headers.
pub(crate) fn post(path: &str, headers: &[&str]) -> String {
    let headers: String = headers.iter().map(|header| format!("{header}\r\n")).collect();
    format!("POST {path} HTTP/1.1\r\nhost: a\r\n{headers}\r\n")
}

/// The head of an upload of `len` bytes to this path of the admin API, on a connection that stays
/// open.
pub(crate) fn upload(path: &str, len: usize) -> String {
    upload_with(path, len, "")
}

/// The head of an upload of `len` bytes, after whose answer the server closes the connection.
pub(crate) fn last_upload(path: &str, len: usize) -> String {
    upload_with(path, len, "connection: close\r\n")
}

fn upload_with(path: &str, len: usize, header: &str) -> String {
    format!(
        "PUT /admin/v1/{path} HTTP/1.1\r\nhost: a\r\n{header}\
         authorization: Bearer {ADMIN_TOKEN}\r\ncontent-length: {len}\r\n\r\n"
    )
}

pub(crate) struct Raw(TcpStream);

impl Raw {
    /// A connection to the client's plane.
    pub(crate) fn open(client: &Client) -> Self {
        Self::try_open(client).unwrap()
    }

    /// A connection to the client's plane, or the error if the plane accepts none.
    pub(crate) fn try_open(client: &Client) -> std::io::Result<Self> {
        let stream = TcpStream::connect(client.authority())?;
        stream.set_read_timeout(Some(PATIENCE))?;
        Ok(Self(stream))
    }

    /// A connection from another address of this machine.
    pub(crate) fn open_from(source: Ipv4Addr, client: &Client) -> Self {
        Self::open_as(client, |socket| socket.bind((source, 0).into()).unwrap())
    }

    /// A connection with a small receive buffer: the kernel accepts little that is not read.
    pub(crate) fn open_narrow(client: &Client) -> Self {
        const RECEIVE_BYTES: u32 = 16 << 10;
        Self::open_as(client, |socket| socket.set_recv_buffer_size(RECEIVE_BYTES).unwrap())
    }

    fn open_as(client: &Client, set_up: impl FnOnce(&TcpSocket)) -> Self {
        let address: SocketAddr = client.authority().parse().unwrap();
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

    /// Write bytes that the server may refuse.
    pub(crate) fn try_send(&mut self, bytes: &[u8]) {
        let _ = self.0.write_all(bytes);
    }

    /// Close the sending side of the connection.
    pub(crate) fn end_sending(&mut self) {
        self.0.shutdown(Shutdown::Write).unwrap();
    }

    /// Read until the text read so far ends with `end`. Returns it.
    pub(crate) fn read_until(&mut self, end: &str) -> String {
        let mut read = Vec::new();
        while !read.ends_with(end.as_bytes()) {
            let mut byte = [0];
            self.0.read_exact(&mut byte).unwrap();
            read.extend(byte);
        }
        String::from_utf8(read).unwrap()
    }

    /// Read until the server closes the connection, as text.
    pub(crate) fn read_to_end(&mut self) -> String {
        String::from_utf8(self.read_bytes_to_end()).unwrap()
    }

    /// Read until the server closes the connection. If the server did not read all bytes that were
    /// sent, it may close the connection by a reset.
    pub(crate) fn read_bytes_to_end(&mut self) -> Vec<u8> {
        let mut read = Vec::new();
        match self.0.read_to_end(&mut read) {
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::ConnectionReset => {}
            Err(error) => panic!("the connection stays open: {error}; read so far: {read:?}"),
        }
        read
    }

    /// The connection alone.
    pub(crate) fn into_inner(self) -> TcpStream {
        self.0
    }

    /// Read the answer, after which the server must close the connection.
    pub(crate) fn answer(&mut self) -> TestAnswer {
        let text = self.read_to_end();
        let (head, body) =
            text.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no answer: {text:?}"));
        let mut lines = head.lines();
        let status = lines.next().unwrap().split(' ').nth(1).unwrap().parse().unwrap();
        let headers = lines.map(|line| {
            let (name, value) = line.split_once(": ").unwrap();
            (name.parse::<HeaderName>().unwrap(), HeaderValue::from_str(value).unwrap())
        });
        TestAnswer { status, headers: headers.collect::<HeaderMap>(), body: body.into() }
    }
}

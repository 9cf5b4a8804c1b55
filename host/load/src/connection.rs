//! One connection: it sends one request at a time and reads its answer.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use crate::decode::{Decoder, HEAD_BYTES_MAX};
use crate::score::{Ended, Status};
use crate::target::Target;

/// The time for opening a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// A connection, which is opened when it is needed.
pub(crate) struct Connection {
    stream: Option<TcpStream>,
    /// Where it leads.
    address: Option<SocketAddr>,
    /// Bytes of an answer that could not be read without more.
    left: Vec<u8>,
    under_way: Option<UnderWay>,
}

/// A request whose answer has not come.
struct UnderWay {
    target: usize,
    /// When it should have been sent.
    intended: Instant,
    /// Bytes of it that were sent.
    sent: usize,
    decoder: Decoder,
    /// Whether the connection had an answer before: then the server may have closed it meanwhile.
    is_reused: bool,
}

impl Connection {
    pub(crate) fn new() -> Self {
        Self { stream: None, address: None, left: Vec::new(), under_way: None }
    }

    /// Open the connection to a target, if it does not lead there already. Returns the stream if
    /// it was opened; it must be watched.
    pub(crate) fn open(&mut self, target: &Target) -> io::Result<Option<&TcpStream>> {
        let address = target.address;
        if self.stream.is_some() && self.address == Some(address) {
            return Ok(None);
        }
        let stream = TcpStream::connect_timeout(&address, CONNECT_TIMEOUT)?;
        stream.set_nodelay(true)?;
        stream.set_nonblocking(true)?;
        (self.stream, self.address) = (Some(stream), Some(address));
        Ok(self.stream.as_ref())
    }

    pub(crate) fn is_free(&self) -> bool {
        self.under_way.is_none()
    }

    /// When its request should have been sent, if one is under way.
    pub(crate) fn intended(&self) -> Option<Instant> {
        self.under_way.as_ref().map(|own| own.intended)
    }

    /// Begin a request. Returns the stream if the connection was opened for it; it must be watched.
    pub(crate) fn begin(
        &mut self,
        targets: &[Target],
        target: usize,
        intended: Instant,
    ) -> io::Result<Option<&TcpStream>> {
        let is_reused = self.open(&targets[target])?.is_none();
        self.left.clear();
        let decoder = Decoder::new(targets[target].plain().1);
        self.under_way = Some(UnderWay { target, intended, sent: 0, decoder, is_reused });
        Ok(self.stream.as_ref().filter(|_| !is_reused))
    }

    /// Send what is possible now. The rest goes out when the socket takes more.
    pub(crate) fn send(&mut self, targets: &[Target]) -> io::Result<()> {
        match (&mut self.stream, &mut self.under_way) {
            (Some(stream), Some(own)) => own.send(stream, targets),
            _ => Ok(()),
        }
    }

    /// Send and read what is possible now. Returns how the request ended, if it has.
    pub(crate) fn drive(&mut self, targets: &[Target], buffer: &mut [u8]) -> Option<Ended> {
        let intended = self.intended()?;
        match self.advance(targets, buffer) {
            Ok(status) => Some(Ended { intended, status: Some(Status::Http(status?)) }),
            Err(_) => {
                self.close();
                Some(Ended { intended, status: None })
            }
        }
    }

    /// Whether the server has closed the connection before it took the request: then the request is
    /// begun again.
    pub(crate) fn was_closed_idle(&self, ended: &Ended) -> bool {
        ended.status.is_none()
            && self.under_way.as_ref().is_some_and(|own| own.is_reused && self.left.is_empty())
    }

    /// The request has ended and is counted.
    pub(crate) fn forget(&mut self) {
        self.under_way = None;
    }

    /// Give the request up, and close the connection.
    pub(crate) fn abandon(&mut self) {
        self.under_way = None;
        self.close();
    }

    fn close(&mut self) {
        self.stream = None;
    }

    fn advance(&mut self, targets: &[Target], buffer: &mut [u8]) -> io::Result<Option<u16>> {
        let Self { stream: Some(stream), under_way: Some(own), left, .. } = self else {
            return Ok(None);
        };
        own.send(stream, targets)?;
        loop {
            let read = match stream.read(buffer) {
                Ok(read) => read,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(None),
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            if read == 0 {
                let head = own.decoder.end().ok_or(ErrorKind::UnexpectedEof)?;
                self.under_way = None;
                self.close();
                return Ok(Some(head.status));
            }
            // Most answers come whole, and are not copied.
            let bytes = if left.is_empty() {
                &buffer[..read]
            } else {
                left.extend_from_slice(&buffer[..read]);
                &left[..]
            };
            let bad = |_| io::Error::from(ErrorKind::InvalidData);
            let decoded = own.decoder.read(bytes).map_err(bad)?;
            if let Some(head) = decoded.complete {
                // Bytes after the answer would be read as the answer to the next request.
                let is_whole = decoded.used == bytes.len();
                self.under_way = None;
                left.clear();
                if !(head.stays_open && is_whole) {
                    self.close();
                }
                return Ok(Some(head.status));
            }
            let rest = bytes[decoded.used..].to_vec();
            if rest.len() > HEAD_BYTES_MAX {
                return Err(ErrorKind::InvalidData.into());
            }
            *left = rest;
            if read < buffer.len() {
                // The socket is empty: what comes later is an event of its own.
                return Ok(None);
            }
        }
    }
}

impl UnderWay {
    fn send(&mut self, stream: &mut TcpStream, targets: &[Target]) -> io::Result<()> {
        let (request, _) = targets[self.target].plain();
        while self.sent < request.len() {
            match stream.write(&request[self.sent..]) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(sent) => self.sent += sent,
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

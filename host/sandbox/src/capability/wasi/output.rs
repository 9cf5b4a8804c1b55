//! Standard output and standard error, of which each line becomes a line of the log.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use async_trait::async_trait;
use bytes::Bytes;
use parking_lot::Mutex;
use tokio::io::AsyncWrite;
use wasmtime_wasi::cli::{IsTerminal, StdoutStream};
use wasmtime_wasi::p2::{OutputStream, Pollable, StreamError, StreamResult};

use crate::capability::log::{Level, Log};

/// The bytes that a plugin may write at a time, and the longest line: a longer one is cut in parts.
const LINE_BYTES_MAX: usize = 8 << 10;

/// A stream. Clones share the line that has begun, which is logged when the last of them is
/// dropped.
#[derive(Clone)]
pub(super) struct Output(Arc<Mutex<Line>>);

struct Line {
    level: Level,
    begun: Vec<u8>,
    log: Arc<Mutex<Log>>,
}

impl Output {
    pub(super) fn new(level: Level, log: Arc<Mutex<Log>>) -> Self {
        Self(Arc::new(Mutex::new(Line { level, begun: Vec::new(), log })))
    }

    /// End the line that has begun.
    pub(super) fn end_line(&self) {
        self.0.lock().end();
    }
}

impl Line {
    fn write(&mut self, mut bytes: &[u8]) {
        // The rest would be dropped line by line.
        if !self.log.lock().takes(self.level) {
            self.begun.clear();
            return;
        }
        while let Some(end) = bytes.iter().position(|byte| *byte == b'\n') {
            self.append(&bytes[..end]);
            self.end();
            bytes = &bytes[end + 1..];
        }
        self.append(bytes);
    }

    fn append(&mut self, bytes: &[u8]) {
        for part in bytes.chunks(LINE_BYTES_MAX) {
            if self.begun.len() + part.len() > LINE_BYTES_MAX {
                self.end();
            }
            self.begun.extend(part);
        }
    }

    /// Log the line. An empty one is left out.
    fn end(&mut self) {
        if !self.begun.is_empty() {
            self.log.lock().line(self.level, &String::from_utf8_lossy(&self.begun));
            self.begun.clear();
        }
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        self.end();
    }
}

impl IsTerminal for Output {
    fn is_terminal(&self) -> bool {
        false
    }
}

impl StdoutStream for Output {
    fn p2_stream(&self) -> Box<dyn OutputStream> {
        Box::new(self.clone())
    }

    fn async_stream(&self) -> Box<dyn AsyncWrite + Send + Sync> {
        Box::new(self.clone())
    }
}

#[async_trait]
impl Pollable for Output {
    async fn ready(&mut self) {}
}

impl OutputStream for Output {
    fn write(&mut self, bytes: Bytes) -> StreamResult<()> {
        if bytes.len() > LINE_BYTES_MAX {
            return Err(StreamError::trap("wrote more bytes than check-write allowed"));
        }
        self.0.lock().write(&bytes);
        Ok(())
    }

    fn flush(&mut self) -> StreamResult<()> {
        Ok(())
    }

    fn check_write(&mut self) -> StreamResult<usize> {
        Ok(LINE_BYTES_MAX)
    }
}

/// For WASI 0.3, which is not offered.
impl AsyncWrite for Output {
    fn poll_write(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<std::io::Result<usize>> {
        self.0.lock().write(bytes);
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

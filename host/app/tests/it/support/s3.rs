//! An S3 server (moto's), and a proxy in front of it that makes its calls fail.
//!
//! The proxy gives each connection one call. A call can be refused, be done but answered with an
//! error, get no answer, or get one that is cut off.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use tempfile::TempDir;

use super::client::{Client, TestAnswer};
use super::setup::Setup;
use super::tls::Authority;

/// The credentials of the servers. They must not appear anywhere.
pub(crate) const SECRET: &str = "the-secret-access-key";

/// An S3 server with one bucket, killed when dropped.
pub(crate) struct S3 {
    process: Child,
    /// Host and port.
    address: String,
    /// Who signed its certificate, if it has one.
    authority: Option<PathBuf>,
    directory: TempDir,
}

impl S3 {
    pub(crate) fn start() -> Self {
        Self::start_with(None)
    }

    /// One that answers over TLS. Its certificate is written as `s3.crt` and `s3.key`.
    pub(crate) fn start_with_tls(authority: &Authority) -> Self {
        Self::start_with(Some(authority))
    }

    fn start_with(authority: Option<&Authority>) -> Self {
        let python = std::env::var_os("GRISTMILL_TEST_S3").map(PathBuf::from);
        let python = python.expect("GRISTMILL_TEST_S3 is not set: run cargo xtask test");
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/s3/server.py");
        let mut command = Command::new(python);
        command.arg(script);
        if let Some(authority) = authority {
            let pair = authority.write_pair("s3", &authority.pair());
            command.args([pair.certificate, pair.key]);
        }
        let mut process = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut port = String::new();
        BufReader::new(process.stdout.as_mut().unwrap()).read_line(&mut port).unwrap();
        let address = format!("127.0.0.1:{}", port.trim());
        let directory = tempfile::tempdir().unwrap();
        let trusted = authority.map(Authority::ca);
        let s3 = Self { process, address, authority: trusted, directory };
        let mut client = Client::new(&s3.url(), None);
        if let Some(authority) = authority {
            client = client.with_tls(authority.client(None));
        }
        let made = client.send("PUT", "/mill", &[], None);
        assert_eq!(made.status, 200, "{made:?}");
        fs::write(s3.hash_key(), "0123456789abcdef".repeat(4)).unwrap();
        s3
    }

    fn url(&self) -> String {
        let scheme = if self.authority.is_some() { "https" } else { "http" };
        format!("{scheme}://{}", self.address)
    }

    /// The file with the secret that all servers of the store have.
    pub(crate) fn hash_key(&self) -> PathBuf {
        self.directory.path().join("hash-key")
    }

    /// A server of the store, which reaches it at its own address.
    pub(crate) fn setup(&self) -> Setup {
        let setup = self.setup_without_authority();
        match &self.authority {
            Some(trusted) => setup.variable("SSL_CERT_FILE", trusted.to_str().unwrap()),
            None => setup.variable("AWS_ALLOW_HTTP", "true"),
        }
    }

    /// The same without a reason to trust its certificate.
    pub(crate) fn setup_without_authority(&self) -> Setup {
        self.setup_at(&self.url())
    }

    /// A server of the store, which reaches it through a proxy.
    pub(crate) fn setup_behind(&self, proxy: &FaultyProxy) -> Setup {
        let setup = self.setup_at(&format!("http://{}", proxy.address));
        setup.variable("AWS_ALLOW_HTTP", "true")
    }

    fn setup_at(&self, url: &str) -> Setup {
        Setup::new()
            .flag("--store", "s3://mill/grist")
            .flag("--hash-key-file", self.hash_key().to_str().unwrap())
            .variable("AWS_ENDPOINT", url)
            .variable("AWS_REGION", "us-east-1")
            .variable("AWS_ACCESS_KEY_ID", "the-access-key")
            .variable("AWS_SECRET_ACCESS_KEY", SECRET)
            .variable("AWS_TIMEOUT", "2 seconds")
    }

    /// A proxy in front of it, without faults.
    pub(crate) fn proxy(&self) -> FaultyProxy {
        FaultyProxy::start(self.address.clone())
    }

    /// Put an object, past all servers.
    pub(crate) fn put(&self, key: &str, content: &[u8]) {
        assert_eq!(self.call("PUT", key, Some(content)).status, 200);
    }

    /// The content of an object.
    pub(crate) fn get(&self, key: &str) -> Vec<u8> {
        let answer = self.call("GET", key, None);
        assert_eq!(answer.status, 200, "{key}");
        answer.body
    }

    /// A call with credentials, which the server does not check.
    fn call(&self, method: &str, key: &str, content: Option<&[u8]>) -> TestAnswer {
        let credential = "AWS4-HMAC-SHA256 Credential=a/20260101/us-east-1/s3/aws4_request, \
                          SignedHeaders=host, Signature=00";
        let headers = [("authorization", credential)];
        let client = Client::new(&self.url(), None);
        client.send(method, &format!("/mill/{key}"), &headers, content)
    }

    /// The names of all objects of the store that begin like this.
    pub(crate) fn objects(&self, prefix: &str) -> Vec<String> {
        let client = Client::new(&self.url(), None);
        let listed = client.get(&format!("/mill?list-type=2&prefix=grist/{prefix}")).text();
        let keys = listed.split("<Key>").skip(1);
        keys.map(|rest| rest.split("</Key>").next().unwrap().to_owned()).collect()
    }
}

impl Drop for S3 {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// A proxy in front of an S3 server.
pub(crate) struct FaultyProxy {
    /// Host and port.
    address: String,
    faults: Arc<Faults>,
}

#[derive(Default)]
struct Faults {
    /// Of a thousand calls.
    failing: AtomicU64,
    is_down: AtomicBool,
    /// Calls with this in their paths are refused.
    refusing: Mutex<Option<&'static str>>,
    refused: AtomicUsize,
    calls: AtomicUsize,
    /// Done when this many calls have come, while the last of them waits.
    at: Mutex<Option<Due>>,
}

/// The number of a call, and what is done when it comes.
type Due = (usize, Box<dyn FnOnce() + Send>);

/// What becomes of a call.
#[derive(Clone, Copy)]
enum Fate {
    Pass,
    Refused,
    AnswerLost,
    NoAnswer,
    CutOff,
}

impl FaultyProxy {
    fn start(server: String) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let faults = Arc::new(Faults::default());
        let shared_faults = faults.clone();
        // It ends with the process of the tests.
        thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let (faults, server) = (shared_faults.clone(), server.clone());
                thread::spawn(move || faults.pass(client, &server));
            }
        });
        Self { address, faults }
    }

    /// Make this many of a thousand calls fail.
    pub(crate) fn fail(&self, of_a_thousand: u64) {
        self.faults.failing.store(of_a_thousand, Ordering::Relaxed);
    }

    /// Whether all calls fail.
    pub(crate) fn set_down(&self, is_down: bool) {
        self.faults.is_down.store(is_down, Ordering::Relaxed);
    }

    /// Refuse the calls that have this in their paths from now on, or none.
    pub(crate) fn refuse(&self, path: Option<&'static str>) {
        *self.faults.refusing.lock().unwrap() = path;
    }

    /// The calls that were refused for their paths.
    pub(crate) fn refused(&self) -> usize {
        self.faults.refused.load(Ordering::Relaxed)
    }

    /// The calls that have come.
    pub(crate) fn calls(&self) -> usize {
        self.faults.calls.load(Ordering::Relaxed)
    }

    /// Do this when `calls` more calls have come, before the last of them reaches the server.
    pub(crate) fn after(&self, calls: usize, action: impl FnOnce() + Send + 'static) {
        *self.faults.at.lock().unwrap() = Some((self.calls() + calls, Box::new(action)));
    }
}

impl Faults {
    fn pass(&self, mut client: TcpStream, server: &str) {
        let Some(request) = read_request(&mut client) else { return };
        let call = self.calls.fetch_add(1, Ordering::Relaxed) + 1;
        let due = {
            let mut at = self.at.lock().unwrap();
            if at.as_ref().is_some_and(|(due, _)| call >= *due) { at.take() } else { None }
        };
        if let Some((_, action)) = due {
            action();
        }
        let fate = match self.refuses(&request) {
            true => Fate::Refused,
            false => self.fate(call as u64),
        };
        let error = b"HTTP/1.1 503 Slow Down\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
        let answer = match fate {
            Fate::Refused => error.to_vec(),
            Fate::NoAnswer => {
                // The client gives up.
                let _ = client.read(&mut [0]);
                return;
            }
            _ => {
                let Some(answer) = forwarded(&request, server) else { return };
                match fate {
                    Fate::AnswerLost => error.to_vec(),
                    Fate::CutOff => answer[..answer.len() / 2].to_vec(),
                    _ => answer,
                }
            }
        };
        let _ = client.write_all(&answer);
        let _ = client.shutdown(Shutdown::Both);
    }

    fn refuses(&self, request: &[u8]) -> bool {
        let line = request.split(|byte| *byte == b'\n').next().unwrap_or_default();
        let line = String::from_utf8_lossy(line);
        let refuses = self.refusing.lock().unwrap().is_some_and(|path| line.contains(path));
        self.refused.fetch_add(usize::from(refuses), Ordering::Relaxed);
        refuses
    }

    fn fate(&self, call: u64) -> Fate {
        if self.is_down.load(Ordering::Relaxed) {
            return Fate::Refused;
        }
        // Looks random, and is the same in each run for the same order of calls.
        let random = call.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(23) % 1000;
        if random >= self.failing.load(Ordering::Relaxed) {
            return Fate::Pass;
        }
        [Fate::Refused, Fate::AnswerLost, Fate::NoAnswer, Fate::CutOff][(random % 4) as usize]
    }
}

/// A whole request, which asks to close the connection after its answer.
fn read_request(client: &mut TcpStream) -> Option<Vec<u8>> {
    let (mut head, mut byte) = (Vec::new(), [0]);
    let mut reader = BufReader::new(client);
    while !head.ends_with(b"\r\n\r\n") {
        reader.read_exact(&mut byte).ok()?;
        head.push(byte[0]);
    }
    let text = String::from_utf8(head).ok()?;
    let length = text.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse().ok())?
    });
    let mut body = vec![0; length.unwrap_or(0)];
    reader.read_exact(&mut body).ok()?;
    let (first, rest) = text.split_once("\r\n")?;
    Some([format!("{first}\r\nconnection: close\r\n{rest}").as_bytes(), &body].concat())
}

fn forwarded(request: &[u8], server: &str) -> Option<Vec<u8>> {
    let mut server = TcpStream::connect(server).ok()?;
    server.write_all(request).ok()?;
    let mut answer = Vec::new();
    server.read_to_end(&mut answer).ok()?;
    Some(answer)
}

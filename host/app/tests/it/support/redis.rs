//! A Redis server, which a test can kill, start again and pause, and servers that only look like
//! one.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use rustls::{ServerConnection, StreamOwned};
use tempfile::TempDir;

use super::eventually::eventually_some;
use super::tls::Authority;

/// How many ports are tried for a server.
const PORTS_TRIED: usize = 10;

/// How long a server may take for one answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(20);

/// A Redis server without files, killed when dropped.
pub(crate) struct Redis {
    port: u16,
    options: Vec<String>,
    process: Option<Child>,
    directory: TempDir,
}

impl Redis {
    pub(crate) fn start() -> Self {
        Self::start_with(&[])
    }

    /// With these options besides. It answers when this returns.
    pub(crate) fn start_with(options: &[&str]) -> Self {
        let options = options.iter().map(|option| (*option).to_owned()).collect();
        let directory = tempfile::tempdir().unwrap();
        let mut redis = Self { port: 0, options, process: None, directory };
        for _ in 0..PORTS_TRIED {
            // The port is free again when the listener is dropped. Until Redis takes it, another
            // process can.
            redis.port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
            if redis.answers() {
                return redis;
            }
        }
        panic!("Redis ended on each of {PORTS_TRIED} ports");
    }

    /// Its address, as the configuration has it.
    pub(crate) fn url(&self) -> String {
        format!("redis://127.0.0.1:{}/0", self.port)
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// Kill it. What it had is lost.
    pub(crate) fn kill(&mut self) {
        if let Some(mut process) = self.process.take() {
            process.kill().unwrap();
            process.wait().unwrap();
        }
    }

    /// Start it at the same address, without any values.
    pub(crate) fn restart(&mut self) {
        self.kill();
        assert!(self.answers(), "Redis ended: another process may have taken port {}", self.port);
    }

    /// Start it, and wait until it answers. Returns false if it ends.
    fn answers(&mut self) -> bool {
        let program = std::env::var_os("GRISTMILL_TEST_REDIS").map(PathBuf::from);
        let program = program.expect("GRISTMILL_TEST_REDIS is not set: run cargo xtask test");
        let port = self.port;
        let process = Command::new(program)
            .args(["--bind", "127.0.0.1", "--port", &port.to_string(), "--save", ""])
            .arg("--dir")
            .arg(self.directory.path())
            .args(&self.options)
            .stdout(Stdio::null())
            .spawn();
        let process = self.process.insert(process.unwrap());
        let own_process = format!("process_id:{}\r", process.id());
        let is_there = eventually_some("Redis answers", || {
            // Another server at this port is not this one.
            let answer = ask(port, &[b"INFO", b"server"]).unwrap_or_default();
            let is_own = answer.contains(&own_process) || answer.starts_with("NOAUTH");
            match process.try_wait().unwrap() {
                Some(_) => Some(false),
                None => is_own.then_some(true),
            }
        });
        if !is_there {
            self.process = None;
        }
        is_there
    }

    /// Let it stand still. It accepts connections, and answers nothing.
    pub(crate) fn pause(&self) {
        self.signal("-STOP");
    }

    /// Let it go on.
    pub(crate) fn go_on(&self) {
        self.signal("-CONT");
    }

    fn signal(&self, signal: &str) {
        let pid = self.process.as_ref().unwrap().id().to_string();
        assert!(Command::new("kill").args([signal, &pid]).status().unwrap().success());
    }

    /// Its answer to a command, past all servers: the text after the type, or the value.
    #[track_caller]
    pub(crate) fn command(&self, parts: &[&[u8]]) -> String {
        ask(self.port, parts).unwrap()
    }
}

/// The answer of the server at this port to a command.
fn ask(port: u16, parts: &[&[u8]]) -> io::Result<String> {
    let stream = TcpStream::connect(("127.0.0.1", port))?;
    stream.set_read_timeout(Some(ANSWER_TIMEOUT))?;
    let mut message = format!("*{}\r\n", parts.len()).into_bytes();
    for part in parts {
        message.extend(format!("${}\r\n", part.len()).into_bytes());
        message.extend(*part);
        message.extend(b"\r\n");
    }
    (&stream).write_all(&message)?;
    let mut reader = BufReader::new(&stream);
    let mut line = String::new();
    reader.read_line(&mut line)?;
    let line = line.trim_end();
    match line.strip_prefix('$').map(|length| length.parse::<usize>()) {
        Some(Ok(length)) => {
            let mut value = vec![0; length];
            reader.read_exact(&mut value)?;
            Ok(String::from_utf8_lossy(&value).into_owned())
        }
        // A key that is not there has the length -1.
        Some(Err(_)) => Ok("none".to_owned()),
        None => Ok(line.get(1..).unwrap_or_default().to_owned()),
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        self.kill();
    }
}

/// A server that greets like Redis, and answers all commands that read with the same bytes. It ends
/// with the process of the tests.
pub(crate) struct FakeRedis {
    pub(crate) url: String,
    sent: Arc<AtomicUsize>,
}

impl FakeRedis {
    /// After no bytes it hangs up.
    pub(crate) fn that_answers(answer: &'static [u8]) -> Self {
        Self::serving("redis", move |client, sent| greet(client, answer, sent))
    }

    /// The same over TLS, with a certificate of this authority.
    pub(crate) fn over_tls(answer: &'static [u8], authority: &Authority) -> Self {
        let config = authority.server_config();
        Self::serving("rediss", move |client, sent| {
            let session = ServerConnection::new(config.clone()).unwrap();
            greet(StreamOwned::new(session, client), answer, sent);
        })
    }

    fn serving(
        scheme: &str,
        serve: impl Fn(TcpStream, &AtomicUsize) + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("{scheme}://{}/0", listener.local_addr().unwrap());
        let sent = Arc::new(AtomicUsize::new(0));
        let (counted, serve) = (sent.clone(), Arc::new(serve));
        thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let (counted, serve) = (counted.clone(), serve.clone());
                thread::spawn(move || serve(client, &counted));
            }
        });
        Self { url, sent }
    }

    /// How often it has answered.
    pub(crate) fn sent(&self) -> usize {
        self.sent.load(Ordering::SeqCst)
    }
}

fn greet(mut client: impl Read + Write, answer: &[u8], sent: &AtomicUsize) {
    let mut received = [0; 4096];
    while let Ok(length @ 1..) = client.read(&mut received) {
        let text = String::from_utf8_lossy(&received[..length]).into_owned();
        if text.contains("GETRANGE") {
            sent.fetch_add(1, Ordering::SeqCst);
            let _ = client.write_all(answer);
            if answer.is_empty() {
                return;
            }
        } else {
            let greetings = text.matches("SETINFO").count();
            let _ = client.write_all("+OK\r\n".repeat(greetings).as_bytes());
        }
    }
}

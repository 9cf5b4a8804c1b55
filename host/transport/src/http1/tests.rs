//! Connections over real sockets: requests with bodies of all sizes follow each other.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use gristmill_core::{BufferPool, ByteBudget, Deadline};
use http::header::CONNECTION;
use http::{HeaderValue, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::body::{self, POOLED_BYTES_MIN, ReadPlan};
use crate::{ListenerConfig, Listening, Protocol, Shutdown, serve};

const LARGE: usize = POOLED_BYTES_MIN;

/// The length of an answer that is larger than the sockets' buffers.
const BIG: usize = 20 << 20;

/// Where the JSON of a body would end and its tensors begin.
const TENSORS_AT: usize = 137;

/// A server that answers each request with the length and the sum of its body's bytes.
struct Server {
    address: std::net::SocketAddr,
    shutdown: Shutdown,
    serving: JoinHandle<bool>,
    /// One for each request, in order.
    seen: mpsc::UnboundedReceiver<Seen>,
    budget: Arc<ByteBudget>,
}

#[derive(Debug, PartialEq)]
enum Seen {
    /// Where its tensors were.
    Read(usize),
    Unreadable(String),
    Refused,
    /// Its client left before it was answered.
    Abandoned,
}

/// Tells the test, when it is dropped, that a request was abandoned.
struct Watch(Option<mpsc::UnboundedSender<Seen>>);

impl Drop for Watch {
    fn drop(&mut self) {
        if let Some(seen) = self.0.take() {
            let _ = seen.send(Seen::Abandoned);
        }
    }
}

impl Server {
    async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (send, seen) = mpsc::unbounded_channel();
        let (pool, budget) = (BufferPool::new(16 << 20), ByteBudget::new(64 << 20));
        let shutdown = Shutdown::new();
        let counted = budget.clone();
        let handler = move |request: Request<Incoming>, _| {
            answer(request, send.clone(), pool.clone(), counted.clone())
        };
        let config = ListenerConfig::default();
        let protocol = Protocol::Http1;
        let serving = serve(Listening {
            listener,
            protocol,
            tls: None,
            config,
            shutdown: shutdown.clone(),
            handler,
        });
        Self { address, shutdown, serving: tokio::spawn(serving), seen, budget }
    }

    async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.address).await.unwrap()
    }
}

async fn answer(
    request: Request<Incoming>,
    seen: mpsc::UnboundedSender<Seen>,
    pool: BufferPool,
    budget: Arc<ByteBudget>,
) -> Response<Full<Bytes>> {
    let text = |status, text: String| {
        let mut answer = Response::new(Full::from(text));
        *answer.status_mut() = status;
        answer
    };
    let (head, mut body) = request.into_parts();
    let bytes = match head.uri.path() {
        "/refuse" => {
            seen.send(Seen::Refused).unwrap();
            let mut answer = text(StatusCode::FORBIDDEN, "no".into());
            // As the planes do if they leave a body unread.
            answer.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
            return answer;
        }
        "/big" => return text(StatusCode::OK, "x".repeat(BIG)),
        "/frames" => body.collect().await.map(|body| body.to_bytes()).map_err(|e| format!("{e:?}")),
        _ => {
            let deadline = Deadline::at(Instant::now() + Duration::from_secs(60));
            let (bytes, aligned_at, budget) = (16 << 20, TENSORS_AT, Some(&budget));
            let plan = ReadPlan { bytes, deadline, budget, aligned_at, pool: &pool };
            body::read(&mut body, plan).await.map_err(|problem| problem.detail)
        }
    };
    let bytes = match bytes {
        Ok(bytes) => bytes,
        Err(error) => {
            seen.send(Seen::Unreadable(error.clone())).unwrap();
            return text(StatusCode::BAD_REQUEST, error);
        }
    };
    seen.send(Seen::Read(bytes.as_ptr() as usize + TENSORS_AT)).unwrap();
    if head.uri.path() == "/never" {
        let _watch = Watch(Some(seen));
        std::future::pending::<()>().await;
    }
    text(StatusCode::OK, summary(&bytes))
}

fn summary(bytes: &[u8]) -> String {
    let sum: u64 = bytes.iter().zip(1..).map(|(byte, at): (&u8, u64)| u64::from(*byte) * at).sum();
    format!("{} bytes, {sum}", bytes.len())
}

fn content(len: usize) -> Vec<u8> {
    (0..len).map(|at| (at * 31 % 251) as u8).collect()
}

fn post(path: &str, headers: &str, body: &[u8]) -> Vec<u8> {
    let len = body.len();
    let head = format!("POST {path} HTTP/1.1\r\nhost: a\r\ncontent-length: {len}\r\n{headers}\r\n");
    [head.as_bytes(), body].concat()
}

/// The next answer's status and body.
async fn next(stream: &mut (impl AsyncRead + Unpin)) -> (u16, String) {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.unwrap());
    }
    let head = String::from_utf8(head).unwrap();
    let len = head.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap();
    let mut body = vec![0; len.parse().unwrap()];
    stream.read_exact(&mut body).await.unwrap();
    (head.split(' ').nth(1).unwrap().parse().unwrap(), String::from_utf8(body).unwrap())
}

/// Whether the server closed the connection and said nothing more.
async fn is_closed(mut stream: TcpStream) -> bool {
    let mut rest = Vec::new();
    let _ = stream.read_to_end(&mut rest).await;
    rest.is_empty()
}

#[tokio::test]
async fn a_large_body_is_received_where_its_tensors_are_aligned_and_the_memory_is_used_again() {
    let mut server = Server::start().await;
    let mut client = server.connect().await;
    let mut places = Vec::new();
    for len in [LARGE, LARGE + 1, 100_000] {
        let body = content(len);
        client.write_all(&post("/", "", &body)).await.unwrap();
        assert_eq!(next(&mut client).await, (200, summary(&body)));
        let Some(Seen::Read(place)) = server.seen.recv().await else { panic!("not read") };
        assert_eq!(place % 64, 0);
        places.push(place);
    }
    // All three are of one size class of the pool.
    assert_eq!(places, [places[0]; 3]);
    assert_eq!(server.budget.held(), 0);
}

/// `body` as chunks of at most `len` bytes.
fn chunked(path: &str, body: &[u8], len: usize) -> Vec<u8> {
    let head = format!("POST {path} HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n");
    let mut request = head.into_bytes();
    for chunk in body.chunks(len) {
        request.extend_from_slice(format!("{:x}\r\n", chunk.len()).as_bytes());
        request.extend_from_slice(chunk);
        request.extend_from_slice(b"\r\n");
    }
    request.extend_from_slice(b"0\r\n\r\n");
    request
}

/// hyper reads more at a time as more comes, so that later bodies come in longer frames.
#[tokio::test]
async fn chunked_bodies_in_a_row_are_read_whole_and_within_the_limit() {
    let server = Server::start().await;
    let (mut reading, mut writing) = server.connect().await.into_split();
    let body = content(1_500_000);
    let requests =
        [post("/", "", &body), chunked("/", &body, 1 << 20), chunked("/", &body, 1 << 20)];
    let (requests, over) = (requests.concat(), chunked("/", &content(17 << 20), 1 << 20));
    let sending = tokio::spawn(async move {
        writing.write_all(&requests).await.unwrap();
        // The rest of a body that is over the limit may be refused.
        let _ = writing.write_all(&over).await;
        writing
    });
    for _ in 0..3 {
        assert_eq!(next(&mut reading).await, (200, summary(&body)));
    }
    let (status, text) = next(&mut reading).await;
    assert!(status == 400 && text.contains("over the limit of 16777216 bytes"), "{status}: {text}");
    drop(sending);
}

#[tokio::test]
async fn requests_in_a_row_are_answered_in_a_row_however_large() {
    let server = Server::start().await;
    let (mut reading, mut writing) = server.connect().await.into_split();
    let sizes =
        [0, 10, LARGE - 1, LARGE, 7, LARGE + 1, 300_000, 1_000_000, 0, 200_000, 9000, 64_000, 1];
    let path = |at: usize| if at.is_multiple_of(3) { "/frames" } else { "/" };
    // All at once first, then in pieces that end anywhere.
    let all: Vec<u8> =
        sizes.iter().enumerate().flat_map(|(at, len)| post(path(at), "", &content(*len))).collect();
    let sending = tokio::spawn(async move {
        writing.write_all(&all).await.unwrap();
        for piece in all.chunks(10_007) {
            writing.write_all(piece).await.unwrap();
            tokio::task::yield_now().await;
        }
        writing
    });
    for len in sizes.iter().chain(&sizes) {
        assert_eq!(next(&mut reading).await, (200, summary(&content(*len))));
    }
    sending.await.unwrap();
}

#[tokio::test]
async fn long_bodies_that_are_not_sent_delay_no_other_request() {
    let server = Server::start().await;
    let promise = b"POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 16000000\r\n\r\nnot all of it";
    let mut waiting = Vec::new();
    for _ in 0..20 {
        let mut client = server.connect().await;
        client.write_all(promise).await.unwrap();
        waiting.push(client);
    }
    while server.budget.held() < 20 * b"not all of it".len() {
        tokio::task::yield_now().await;
    }
    let mut client = server.connect().await;
    let body = content(1_000_000);
    for _ in 0..2 {
        client.write_all(&post("/", "", &body)).await.unwrap();
        assert_eq!(next(&mut client).await, (200, summary(&body)));
    }
}

#[tokio::test]
async fn the_rest_of_a_refused_body_is_not_read_as_a_request() {
    let mut server = Server::start().await;
    let mut client = server.connect().await;
    // More than the sockets' buffers hold, so the client is refused while it is still sending.
    let smuggled = post("/", "", b"smuggled").repeat(120_000);
    client.write_all(&post("/refuse", "", &smuggled)).await.unwrap();
    assert_eq!(next(&mut client).await, (403, "no".into()));
    assert!(is_closed(client).await);
    assert_eq!(server.seen.recv().await, Some(Seen::Refused));
    server.shutdown.begin();
    assert!(server.serving.await.unwrap());
    assert_eq!(server.seen.recv().await, None);
}

#[tokio::test]
async fn a_client_that_leaves_is_noticed_before_and_after_its_body_is_read() {
    let mut server = Server::start().await;
    let body = content(500_000);
    let request = post("/never", "", &body);
    let mut client = server.connect().await;
    client.write_all(&request[..200_000]).await.unwrap();
    drop(client);
    match server.seen.recv().await {
        Some(Seen::Unreadable(detail)) => {
            assert!(detail.contains("before message length"), "{detail}")
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(server.budget.held(), 0);
    let mut client = server.connect().await;
    client.write_all(&request).await.unwrap();
    assert!(matches!(server.seen.recv().await, Some(Seen::Read(_))));
    drop(client);
    assert_eq!(server.seen.recv().await, Some(Seen::Abandoned));
}

#[tokio::test]
async fn a_large_body_under_way_at_the_shutdown_is_read_and_answered() {
    let mut server = Server::start().await;
    let body = content(500_000);
    let request = post("/", "", &body);
    let (first, rest) = request.split_at(200_000);
    let mut client = server.connect().await;
    client.write_all(first).await.unwrap();
    while server.budget.held() == 0 {
        tokio::task::yield_now().await;
    }
    server.shutdown.begin();
    client.write_all(rest).await.unwrap();
    assert_eq!(next(&mut client).await, (200, summary(&body)));
    assert!(is_closed(client).await);
    assert!(matches!(server.seen.recv().await, Some(Seen::Read(_))));
    assert!(server.serving.await.unwrap());
}

#[tokio::test]
async fn hyper_handles_expectations_and_connection_options() {
    let server = Server::start().await;
    let body = content(200_000);
    let mut client = server.connect().await;
    let request = post("/", "expect: 100-continue\r\n", &body);
    let (head, rest) = request.split_at(request.len() - body.len());
    client.write_all(head).await.unwrap();
    let mut go_on = [0; b"HTTP/1.1 100 Continue\r\n\r\n".len()];
    client.read_exact(&mut go_on).await.unwrap();
    assert_eq!(&go_on, b"HTTP/1.1 100 Continue\r\n\r\n");
    client.write_all(rest).await.unwrap();
    assert_eq!(next(&mut client).await, (200, summary(&body)));
    let options = "connection: keep-alive\r\nconnection: close\r\n";
    client.write_all(&post("/", options, &body)).await.unwrap();
    assert_eq!(next(&mut client).await, (200, summary(&body)));
    assert!(is_closed(client).await);
}

#[tokio::test]
async fn an_answer_that_is_not_written_yet_is_written_before_the_next_body_is_read() {
    let server = Server::start().await;
    let (mut reading, mut writing) = server.connect().await.into_split();
    let body = content(500_000);
    // The first answer is made before all of its request's body has come; the rest is dropped.
    let first = post("/big", "", &content(12_000));
    let requests = [first, post("/", "", &body), post("/", "", b"small")].concat();
    let sending = tokio::spawn(async move {
        writing.write_all(&requests).await.unwrap();
        writing
    });
    assert_eq!(next(&mut reading).await, (200, "x".repeat(BIG)));
    assert_eq!(next(&mut reading).await, (200, summary(&body)));
    assert_eq!(next(&mut reading).await, (200, summary(b"small")));
    sending.await.unwrap();
}

#[tokio::test]
async fn a_client_that_ends_its_body_early_and_listens_is_told() {
    let server = Server::start().await;
    for path in ["/", "/frames", "/refuse"] {
        let mut client = server.connect().await;
        let request = post(path, "", &content(500_000));
        client.write_all(&request[..100_000]).await.unwrap();
        client.shutdown().await.unwrap();
        let (status, text) = next(&mut client).await;
        match path {
            "/refuse" => assert_eq!(status, 403),
            // hyper's own error, which names its cause only in its source.
            "/frames" => assert!(status == 400 && text.contains("IncompleteBody"), "{text}"),
            _ => assert!(status == 400 && text.contains("before message length"), "{text}"),
        }
        assert!(is_closed(client).await);
    }
}

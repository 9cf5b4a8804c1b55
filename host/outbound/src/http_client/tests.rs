//! From a tenant's grant to the connection: which address is asked, whatever the owner of a name
//! answers, and who waits for whom.

use std::collections::HashMap;
use std::future::{pending, poll_fn};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc as blocking;

use gristmill_core::{ByteBudget, Destination, Scheme};
use gristmill_sandbox::{OUTGOING_AT_ONCE, TenantOutgoing, Timeouts};
use http::StatusCode;
use http_body_util::{Empty, Full};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, mpsc};
use tokio::task::yield_now;

use super::*;

/// An address that the grants below name, and one that they do not name. Neither is public.
const GRANTED: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
const PRIVATE: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 0, 0, 2));

/// The answer of the owner of a name, who knows how often it was looked up before.
type Owner = dyn Fn(&str, usize) -> Vec<IpAddr> + Send + Sync;

/// Names whose owner is a test.
struct TestNames {
    owner: Box<Owner>,
    looked_up: Mutex<HashMap<String, usize>>,
}

impl TestNames {
    fn of(owner: impl Fn(&str, usize) -> Vec<IpAddr> + Send + Sync + 'static) -> Arc<Self> {
        Arc::new(Self { owner: Box::new(owner), looked_up: Mutex::default() })
    }

    /// How often a name was looked up.
    fn looked_up(&self, host: &str) -> usize {
        self.looked_up.lock().get(host).copied().unwrap_or(0)
    }
}

impl Names for TestNames {
    fn look_up(&self, host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
        let before = {
            let mut all = self.looked_up.lock();
            let count = all.entry(host.to_owned()).or_default();
            *count += 1;
            *count - 1
        };
        let addresses = (self.owner)(host, before);
        Ok(addresses.into_iter().map(|address| SocketAddr::new(address, port)).collect())
    }
}

/// A service on one port of both addresses.
struct Service {
    port: u16,
    /// The connections that were made to each of them.
    granted: Arc<AtomicUsize>,
    private: Arc<AtomicUsize>,
    /// The first lines of requests, as they come.
    lines: mpsc::UnboundedReceiver<String>,
}

impl Service {
    /// A service that answers a request, whose first line it sees. Without an answer it keeps the
    /// connection open.
    async fn answering(answer: fn(&str) -> Option<String>) -> Self {
        let (granted, private) = listeners().await;
        let port = granted.local_addr().unwrap().port();
        let (sender, lines) = mpsc::unbounded_channel();
        let counts = [granted, private].map(|listener| {
            let (count, sender) = (Arc::<AtomicUsize>::default(), sender.clone());
            drop(tokio::spawn(accept(listener, count.clone(), answer, sender)));
            count
        });
        let [granted, private] = counts;
        Self { port, granted, private, lines }
    }

    /// The connections to the granted address, and to the other one.
    fn connections(&self) -> (usize, usize) {
        (self.granted.load(Ordering::Relaxed), self.private.load(Ordering::Relaxed))
    }
}

/// Two listeners on one port.
async fn listeners() -> (TcpListener, TcpListener) {
    loop {
        let granted = TcpListener::bind((GRANTED, 0)).await.unwrap();
        let port = granted.local_addr().unwrap().port();
        // Another program may have the port of the other address.
        if let Ok(private) = TcpListener::bind((PRIVATE, port)).await {
            return (granted, private);
        }
    }
}

async fn accept(
    listener: TcpListener,
    connections: Arc<AtomicUsize>,
    answer: fn(&str) -> Option<String>,
    lines: mpsc::UnboundedSender<String>,
) {
    while let Ok((stream, _)) = listener.accept().await {
        connections.fetch_add(1, Ordering::Relaxed);
        drop(tokio::spawn(serve(stream, answer, lines.clone())));
    }
}

async fn serve(
    stream: TcpStream,
    answer: fn(&str) -> Option<String>,
    lines: mpsc::UnboundedSender<String>,
) {
    let mut stream = BufReader::new(stream);
    loop {
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            if !matches!(stream.read_line(&mut head).await, Ok(1..)) {
                return;
            }
        }
        let line = head.lines().next().unwrap_or_default();
        // The test may have ended.
        let _ = lines.send(line.to_owned());
        let Some(answer) = answer(line) else { return pending().await };
        if stream.write_all(answer.as_bytes()).await.is_err() || answer.contains("close") {
            return;
        }
    }
}

/// A tenant that is granted these hosts at a port, with the address that is not private.
fn tenant(name: &str, client: &Arc<HttpClient>, port: u16, hosts: &[&str]) -> Arc<TenantOutgoing> {
    let granted = hosts.iter().map(|host| Destination {
        scheme: Scheme::Http,
        host: host.parse().unwrap(),
        port,
        addresses: vec![GRANTED.to_string().parse().unwrap()],
    });
    let permits = Arc::new(Semaphore::new(OUTGOING_AT_ONCE));
    let (granted, cpu) = (granted.collect(), Arc::default());
    let name = name.parse().unwrap();
    Arc::new(TenantOutgoing::new(name, client.clone(), granted, permits, cpu))
}

/// Ask for a path. The whole answer is read.
async fn ask(
    tenant: &Arc<TenantOutgoing>,
    (host, port): (&str, u16),
    path: &str,
) -> Result<StatusCode, OutgoingFault> {
    let deadline = Instant::now() + Duration::from_secs(60);
    let held = ByteBudget::new(usize::MAX).hold(0);
    let sending = tenant.sending((Scheme::Http, host, port), deadline, held).unwrap();
    let body = Empty::new().map_err(|error| match error {}).boxed_unsync();
    let request = Request::builder().uri(format!("http://{host}:{port}{path}"));
    let request = request.header("host", host).body(body).unwrap();
    let response = sending.send(request, Timeouts::default()).await?;
    let status = response.status();
    response.into_body().collect().await?;
    Ok(status)
}

/// The address of this machine, which is not granted, was refused.
fn is_prohibited(outcome: &Result<StatusCode, OutgoingFault>) -> bool {
    matches!(outcome, Err(OutgoingFault::Prohibited(kind)) if kind.contains("loopback"))
}

fn kept_open(_: &str) -> Option<String> {
    Some("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi".to_owned())
}

fn closed(_: &str) -> Option<String> {
    Some("HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 2\r\n\r\nhi".to_owned())
}

/// The first look-up gives an address that may be asked, each further one another.
fn rebinding(_: &str, before: usize) -> Vec<IpAddr> {
    vec![if before == 0 { GRANTED } else { PRIVATE }]
}

#[tokio::test]
async fn a_name_that_leads_elsewhere_at_the_next_connection_is_not_followed() {
    let service = Service::answering(closed).await;
    let names = TestNames::of(rebinding);
    let client = Arc::new(HttpClient::knowing(names.clone()).unwrap());
    let acme = tenant("acme", &client, service.port, &["a.test"]);
    assert_eq!(ask(&acme, ("a.test", service.port), "/").await, Ok(StatusCode::OK));
    for asked in 2..4 {
        let refused = ask(&acme, ("a.test", service.port), "/").await;
        assert!(is_prohibited(&refused), "{refused:?}");
        assert_eq!(names.looked_up("a.test"), asked);
    }
    assert_eq!(service.connections(), (1, 0));
}

#[tokio::test]
async fn a_connection_that_waits_leads_to_the_address_that_was_checked() {
    let service = Service::answering(kept_open).await;
    let names = TestNames::of(rebinding);
    let client = Arc::new(HttpClient::knowing(names.clone()).unwrap());
    let acme = tenant("acme", &client, service.port, &["a.test"]);
    for _ in 0..3 {
        assert_eq!(ask(&acme, ("a.test", service.port), "/").await, Ok(StatusCode::OK));
    }
    assert_eq!((names.looked_up("a.test"), service.connections()), (1, (1, 0)));
    // Another tenant makes a connection of its own, to what the name has now.
    let globex = tenant("globex", &client, service.port, &["a.test"]);
    let refused = ask(&globex, ("a.test", service.port), "/").await;
    assert!(is_prohibited(&refused), "{refused:?}");
    assert_eq!((names.looked_up("a.test"), service.connections()), (2, (1, 0)));
}

#[tokio::test]
async fn of_several_addresses_only_those_that_are_allowed_are_asked() {
    let service = Service::answering(closed).await;
    let names = TestNames::of(|_, _| vec![PRIVATE, GRANTED, PRIVATE]);
    let client = Arc::new(HttpClient::knowing(names.clone()).unwrap());
    let acme = tenant("acme", &client, service.port, &["a.test"]);
    for asked in 1..3 {
        assert_eq!(ask(&acme, ("a.test", service.port), "/").await, Ok(StatusCode::OK));
        assert_eq!(names.looked_up("a.test"), asked);
    }
    assert_eq!(service.connections(), (2, 0));
}

#[tokio::test]
async fn a_redirect_is_followed_by_nobody_and_checked_if_the_plugin_asks() {
    let redirect = |line: &str| match line.contains("/elsewhere") {
        true => kept_open(line),
        false => Some(
            "HTTP/1.1 302 Found\r\nlocation: http://b.test/elsewhere\r\ncontent-length: 0\r\n\r\n"
                .to_owned(),
        ),
    };
    let service = Service::answering(redirect).await;
    let names = TestNames::of(|host, _| vec![if host == "a.test" { GRANTED } else { PRIVATE }]);
    let client = Arc::new(HttpClient::knowing(names.clone()).unwrap());
    let acme = tenant("acme", &client, service.port, &["a.test", "b.test"]);
    assert_eq!(ask(&acme, ("a.test", service.port), "/").await, Ok(StatusCode::FOUND));
    assert_eq!((names.looked_up("a.test"), names.looked_up("b.test")), (1, 0));
    let refused = ask(&acme, ("b.test", service.port), "/elsewhere").await;
    assert!(is_prohibited(&refused), "{refused:?}");
    assert_eq!(service.connections(), (1, 0));
}

#[tokio::test]
async fn a_tenant_whose_service_hangs_delays_no_other() {
    let mut service = Service::answering(|line| match line.contains("/hang") {
        true => None,
        false => kept_open(line),
    })
    .await;
    let client = Arc::new(HttpClient::knowing(TestNames::of(|_, _| vec![GRANTED])).unwrap());
    let port = service.port;
    let [acme, globex] = ["acme", "globex"].map(|name| tenant(name, &client, port, &["a.test"]));
    // As many as a tenant may have under way, and some that wait for these.
    let hanging: Vec<_> = (0..OUTGOING_AT_ONCE + 4)
        .map(|_| {
            let acme = acme.clone();
            tokio::spawn(async move { ask(&acme, ("a.test", port), "/hang").await })
        })
        .collect();
    for _ in 0..OUTGOING_AT_ONCE {
        assert_eq!(service.lines.recv().await.as_deref(), Some("GET /hang HTTP/1.1"));
    }
    // The same service, with the same name.
    for _ in 0..3 {
        assert_eq!(ask(&globex, ("a.test", port), "/").await, Ok(StatusCode::OK));
        assert_eq!(service.lines.recv().await.as_deref(), Some("GET / HTTP/1.1"));
    }
    assert!(hanging.iter().all(|call| !call.is_finished()));
    // One place was taken by each of the tenant's own calls: the others have sent nothing.
    assert_eq!(service.connections(), (OUTGOING_AT_ONCE + 1, 0));
    hanging.iter().for_each(JoinHandle::abort);
    // Their places are free again.
    assert_eq!(ask(&acme, ("a.test", port), "/").await, Ok(StatusCode::OK));
}

#[tokio::test]
async fn names_that_nobody_answers_delay_no_other_tenant() {
    let service = Service::answering(kept_open).await;
    let (gate, closed) = blocking::channel::<()>();
    let closed = Mutex::new(closed);
    let names = TestNames::of(move |host, _| {
        if host == "slow.test" {
            // Until the test opens the gate, by dropping it.
            let _ = closed.lock().recv();
        }
        vec![GRANTED]
    });
    let client = Arc::new(HttpClient::knowing(names.clone()).unwrap());
    let port = service.port;
    let [acme, globex] =
        ["acme", "globex"].map(|name| tenant(name, &client, port, &["slow.test", "a.test"]));
    let waiting: Vec<_> = (0..8)
        .map(|_| {
            let acme = acme.clone();
            tokio::spawn(async move { ask(&acme, ("slow.test", port), "/").await })
        })
        .collect();
    while names.looked_up("slow.test") < 4 {
        yield_now().await;
    }
    assert_eq!(ask(&globex, ("a.test", port), "/").await, Ok(StatusCode::OK));
    // Each takes a thread, so the tenant has so many at a time.
    assert_eq!(names.looked_up("slow.test"), 4);
    // Look-ups that nobody waits for any more go on, and keep their places until they end.
    waiting.iter().for_each(JoinHandle::abort);
    drop(gate);
    assert_eq!(ask(&acme, ("slow.test", port), "/").await, Ok(StatusCode::OK));
}

#[tokio::test]
async fn a_large_part_of_a_body_is_sent_in_small_ones() {
    let large = Bytes::from(vec![7; 100_000]);
    let body = Full::new(large.clone());
    let mut body =
        request_body::RequestBody::new(body.map_err(|error| match error {}).boxed_unsync());
    let mut sent = Vec::new();
    while !body.is_end_stream() {
        let left = (large.len() - sent.len()) as u64;
        assert_eq!(body.size_hint().exact(), Some(left));
        let frame = poll_fn(|task| Pin::new(&mut body).poll_frame(task)).await;
        let part = frame.unwrap().unwrap().into_data().unwrap();
        assert!(part.len() <= 16 << 10);
        sent.extend(part);
    }
    assert_eq!(sent, large);
}

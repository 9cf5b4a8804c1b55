use futures_util::future::ready;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::*;

/// Greets a client as Redis does, gives one answer to each of its messages, and hangs up.
async fn serve(mut client: TcpStream, answers: &[&[u8]]) {
    let mut received = [0; 4096];
    for answer in [&b"+OK\r\n+OK\r\n"[..]].iter().chain(answers) {
        let Ok(1..) = client.read(&mut received).await else { return };
        client.write_all(answer).await.unwrap();
    }
}

/// The link to a server that gives these answers on each connection.
async fn link_to(answers: &'static [&'static [u8]]) -> Link {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("redis://{}/0", listener.local_addr().unwrap());
    drop(tokio::spawn(async move {
        while let Ok((client, _)) = listener.accept().await {
            serve(client, answers).await;
        }
    }));
    link(&url)
}

fn link(url: &str) -> Link {
    let endpoint = Endpoint::new(&url.parse().unwrap(), None).unwrap();
    Link::new(Arc::new(endpoint), Some("acme".parse().unwrap()))
}

async fn ask(link: &Link, only_read: bool) -> Result<i64, LinkError> {
    let mut pipeline = redis::pipe();
    pipeline.cmd("STRLEN").arg("k");
    let timeout = Duration::from_secs(60);
    let until = Until { at: Instant::now() + timeout, timeout, is_whole: true };
    let number = |answer: Vec<Value>| crate::answers::number(&answer);
    let commands = Commands { pipeline, only_read, call: None };
    link.ask(&Arc::new(commands), until, number).await
}

#[tokio::test]
async fn after_the_server_has_hung_up_a_change_goes_over_a_new_connection() {
    let link = link_to(&[b":7\r\n"]).await;
    for _ in 0..3 {
        let connection = link.connection();
        assert_eq!(ask(&link, false).await.unwrap(), 7);
        while !connection.flow.is_closed() {
            yield_now().await;
        }
    }
}

#[tokio::test]
async fn a_read_is_sent_again_if_the_connection_was_closed() {
    // It hangs up instead of answering for the second time.
    let link = link_to(&[b":7\r\n", b""]).await;
    assert_eq!(ask(&link, true).await.unwrap(), 7);
    assert_eq!(ask(&link, true).await.unwrap(), 7);
    let broken = ask(&link, false).await;
    assert!(matches!(broken, Err(LinkError::Broken(_))), "{broken:?}");
    assert_eq!(ask(&link, false).await.unwrap(), 7);
}

#[tokio::test]
async fn a_connection_is_not_used_after_garbage() {
    let link = link_to(&[b"+what\r\n", b":7\r\n"]).await;
    let first = link.connection();
    let garbage = ask(&link, true).await;
    assert!(matches!(garbage, Err(LinkError::Garbage)), "{garbage:?}");
    assert!(first.is_poisoned());
    let second = link.connection();
    assert!(!Arc::ptr_eq(&first, &second) && !second.is_poisoned());
}

#[tokio::test]
async fn a_refusal_is_an_answer() {
    let link = link_to(&[b"-OOM no memory\r\n", b":7\r\n"]).await;
    let refused = ask(&link, false).await;
    let Err(LinkError::Refused(refusal)) = &refused else { panic!("{refused:?}") };
    assert_eq!(refusal.to_string(), "OOM no memory");
    assert_eq!(ask(&link, false).await.unwrap(), 7);
}

#[test]
fn a_silent_connection_is_dropped_whatever_the_deadlines_are() {
    let link = link("redis://127.0.0.1:1");
    let failed = ready(Err(RedisError::from((ErrorKind::Io, "not made")))).boxed().shared();
    let connection = Arc::new(Connection::new(failed, Arc::default()));
    link.current.lock().connection = Some(connection.clone());
    let now = Instant::now();
    let timeout = Duration::from_millis(50);
    let until = Until { at: now, timeout, is_whole: false };
    let is_kept = || link.current.lock().connection.is_some();
    link.note(&connection, Some(&LinkError::TooLate), until);
    connection.asked(now);
    link.note(&connection, Some(&LinkError::TooLate), until);
    assert!(is_kept());
    connection.answered();
    let Some(earlier) = now.checked_sub(SILENCE_MIN) else { return };
    connection.asked(earlier);
    assert!(connection.silent(now) >= SILENCE_MIN);
    let patient = Until { timeout: Duration::from_secs(60), ..until };
    link.note(&connection, Some(&LinkError::TooLate), patient);
    assert!(is_kept());
    link.note(&connection, Some(&LinkError::TooLate), until);
    assert!(!is_kept());
}

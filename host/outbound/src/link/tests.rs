use std::pin::pin;

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
async fn link_to(answers: &'static [&'static [u8]]) -> Arc<Link> {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("redis://{}/0", listener.local_addr().unwrap());
    drop(tokio::spawn(async move {
        while let Ok((client, _)) = listener.accept().await {
            serve(client, answers).await;
        }
    }));
    link(&url)
}

fn link(url: &str) -> Arc<Link> {
    let endpoint = Endpoint::new(&url.parse().unwrap(), None).unwrap();
    Arc::new(Link::new(Arc::new(endpoint), Some("acme".parse().unwrap())))
}

async fn ask(link: &Arc<Link>, only_read: bool) -> Result<i64, LinkError> {
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

#[tokio::test]
async fn a_silent_connection_lets_go_of_its_commands_without_a_further_call() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let link = link(&format!("redis://{}/0", listener.local_addr().unwrap()));
    drop(tokio::spawn(async move {
        let (mut client, _) = listener.accept().await.unwrap();
        let mut received = [0; 4096];
        assert!(client.read(&mut received).await.unwrap() > 0);
        client.write_all(b"+OK\r\n+OK\r\n").await.unwrap();
        while let Ok(1..) = client.read(&mut received).await {}
    }));
    let connection = link.connection();
    assert!(connection.connecting.clone().await.is_ok());
    // No machine is too slow for times that do not pass.
    time::pause();
    let mut pipeline = redis::pipe();
    pipeline.cmd("STRLEN").arg("k");
    let commands = Arc::new(Commands { pipeline, only_read: true, call: None });
    let timeout = Duration::from_secs(60);
    let until = Until { at: Instant::now() + timeout / 2, timeout, is_whole: false };
    let late = link.ask(&commands, until, |answer| crate::answers::number(&answer)).await;
    assert!(matches!(late, Err(LinkError::TooLate)), "{late:?}");
    assert!(connection.is_usable() && Arc::strong_count(&commands) > 1);
    let mut is_ended = connection.is_ended.subscribe();
    time::timeout(timeout, is_ended.wait_for(|is_ended| *is_ended)).await.unwrap().unwrap();
    assert!(link.current.lock().connection.is_none());
    while Arc::strong_count(&commands) > 1 {
        yield_now().await;
    }
    // What was to be written is gone with it.
    assert_eq!(Arc::strong_count(&connection), 1);
}

/// How long a connection may be silent after these commands, which are sent now.
async fn silence_of(until: Until) -> Duration {
    let failed = ready(Err(RedisError::from((ErrorKind::Io, "not made")))).boxed().shared();
    Connection::new(failed, Arc::default()).silence(until).await
}

#[tokio::test(start_paused = true)]
async fn a_connection_may_be_silent_for_a_second_or_the_time_that_its_calls_have() {
    const SECOND: Duration = Duration::from_secs(1);
    let at = time::Instant::now().into_std();
    let until = Until { at, timeout: SECOND / 20, is_whole: false };
    assert_eq!(silence_of(until).await, SILENCE_MIN);
    assert_eq!(silence_of(Until { timeout: 30 * SECOND, ..until }).await, 30 * SECOND);
    // As the operator's calls, which have longer than the timeout.
    let at = time::Instant::now().into_std() + 60 * SECOND;
    assert_eq!(silence_of(Until { at, ..until }).await, 60 * SECOND);
}

#[tokio::test(start_paused = true)]
async fn a_connection_with_answers_to_other_calls_is_not_silent() {
    let failed = ready(Err(RedisError::from((ErrorKind::Io, "not made")))).boxed().shared();
    let connection = Connection::new(failed, Arc::default());
    let (at, timeout) = (time::Instant::now().into_std(), Duration::from_millis(50));
    let mut silence = pin!(connection.silence(Until { at, timeout, is_whole: true }));
    for _ in 0..5 {
        timeout_at(time::Instant::now() + SILENCE_MIN * 9 / 10, &mut silence).await.unwrap_err();
        connection.answered();
    }
    assert_eq!(silence.await, SILENCE_MIN);
}

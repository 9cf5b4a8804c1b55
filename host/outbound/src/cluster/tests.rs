use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::*;
use crate::answers::is_value;

/// Greets as Redis does, says that it has all slots, and answers each other message with `answer`.
async fn serve(mut client: TcpStream, port: u16, answer: &str, asked: &AtomicUsize) {
    let mut received = [0; 4096];
    while let Ok(length @ 1..) = client.read(&mut received).await {
        let text = String::from_utf8_lossy(&received[..length]).into_owned();
        let answer = if text.contains("SETINFO") {
            "+OK\r\n".repeat(text.matches("SETINFO").count())
        } else if text.contains("SLOTS") {
            format!("*1\r\n*3\r\n:0\r\n:16383\r\n*2\r\n$0\r\n\r\n:{port}\r\n")
        } else {
            asked.fetch_add(1, Ordering::SeqCst);
            answer.replace("PORT", &port.to_string())
        };
        client.write_all(answer.as_bytes()).await.unwrap();
    }
}

/// What a cluster of one server gives that answers like this, and how often it was asked.
async fn answer_of(answer: &'static str) -> (Result<Vec<Value>, LinkError>, usize) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let asked = Arc::new(AtomicUsize::new(0));
    let counted = asked.clone();
    drop(tokio::spawn(async move {
        while let Ok((client, _)) = listener.accept().await {
            let counted = counted.clone();
            drop(tokio::spawn(async move { serve(client, port, answer, &counted).await }));
        }
    }));
    let url = format!("redis://127.0.0.1:{port}").parse().unwrap();
    let cluster = Arc::new(Cluster::new(&[url], None).unwrap());
    let mut command = redis::cmd("GETRANGE");
    command.arg("a").arg(0).arg(8);
    let steps = vec![Step { slot: slot_of(b"a"), commands: vec![command] }];
    let name = |text: &str| text.parse().unwrap();
    let timeout = Duration::from_secs(60);
    let at = Instant::now() + timeout;
    let call = Arc::new(StoreCall::of_operator(name("acme"), name("features"), at));
    let terms = Terms { only_read: true, are_right: is_value, call };
    let until = Until { at, timeout, is_whole: true };
    let answer = cluster.ask(steps, &terms, until).await;
    (answer, asked.load(Ordering::SeqCst))
}

#[tokio::test]
async fn redirects_end() {
    let (answer, asked) = answer_of("$1\r\nx\r\n").await;
    assert_eq!((answer.unwrap(), asked), (vec![Value::BulkString(b"x".to_vec())], 1));
    let (answer, asked) = answer_of("-MOVED 15495 :PORT\r\n").await;
    assert!(matches!(answer, Err(LinkError::NoServer)), "{answer:?}");
    assert_eq!(asked, ROUNDS_MAX);
    // It is not where it says.
    let (answer, _) = answer_of("-MOVED 15495 ?:PORT\r\n").await;
    assert!(matches!(answer, Err(LinkError::Refused(_))), "{answer:?}");
}

#[tokio::test]
async fn an_answer_that_cannot_be_is_noted_where_it_came() {
    // The link must know, so that it does not use the connection again.
    for wrong in [":7\r\n", "+OK\r\n", "*0\r\n"] {
        let (answer, asked) = answer_of(wrong).await;
        assert!(matches!(answer, Err(LinkError::Garbage)), "{answer:?}");
        assert_eq!(asked, 1);
    }
}

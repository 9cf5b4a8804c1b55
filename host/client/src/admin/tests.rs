use std::io::{Read, Write};
use std::net::TcpListener;
use std::thread;

use serde_json::json;

use super::{AdminClient, AdminError};
use crate::client::Client;
use crate::runtime::block_on;

/// The result of a call. The server answers it with this status line and body.
fn call(status: &str, body: &str) -> Result<serde_json::Value, AdminError> {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let length = body.len();
    let answer = format!("HTTP/1.1 {status}\r\ncontent-length: {length}\r\n\r\n{body}");
    let server = thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut request = Vec::new();
        while !request.ends_with(b"\r\n\r\n{}") {
            let mut byte = [0];
            stream.read_exact(&mut byte).unwrap();
            request.extend(byte);
        }
        stream.write_all(answer.as_bytes()).unwrap();
        String::from_utf8(request).unwrap()
    });
    let client = Client::new(address.parse().unwrap()).with_token("a-token").unwrap();
    let answered = block_on(AdminClient::new(client).put_json("models/m", &json!({})));
    let request = server.join().unwrap();
    assert!(request.starts_with("PUT /admin/v1/models/m HTTP/1.1\r\n"), "{request}");
    assert!(request.contains("authorization: Bearer a-token\r\n"), "{request}");
    assert!(request.contains(&format!("host: {address}\r\n")), "{request}");
    answered
}

#[test]
fn answers_are_distinguished() {
    assert_eq!(call("200 OK", r#"{"release":3}"#).unwrap()["release"], 3);
    let refused = call("409 Conflict", r#"{"code":"conflict","detail":"it is in use"}"#);
    assert_eq!(refused.unwrap_err().to_string(), "409 Conflict: it is in use");
    for (status, body) in [("200 OK", "html"), ("404 Not Found", "{}")] {
        let foreign = call(status, body).unwrap_err();
        assert!(matches!(foreign, AdminError::Foreign { .. }), "{foreign}");
    }
}

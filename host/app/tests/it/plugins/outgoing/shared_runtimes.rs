//! Requests of plugins in Python and JavaScript, whose shared runtimes have the contract's `http`.

use std::net::TcpListener;

use serde_json::{Value, json};

use super::{PIPELINE, grant, hello, of, pipeline};
use crate::plugins::{javascript, sources};
use crate::support::server::Server;
use crate::support::service::{Service, whole};
use crate::support::setup::Setup;

const PYTHON: &str = "\
from gristmill_plugin import Handler, Response, export, http
@export
class Services(Handler):
    def handle(self, context, request):
        asked = request.json()
        try:
            answers = [
                http.request(
                    asked.get('method', 'GET'),
                    asked['url'],
                    headers=asked.get('headers', {}),
                    data=asked.get('body'),
                    timeout=asked.get('seconds'),
                )
                for _ in range(asked.get('times', 1))
            ]
        except http.HttpError as error:
            return Response.json({'error': type(error).__name__, 'text': error.text})
        answer = answers[-1]
        told = {'status': answer.status_code, 'headers': dict(answer.headers)}
        size = len(answer.body)
        return Response.json({**told, 'bytes': size, 'text': answer.text if size < 100 else ''})
";

const JAVASCRIPT: &str = "\
const { fetch, FetchError, PluginResponse } = require('gristmill-plugin');
module.exports = {
  async handle(context, request) {
    const { url, seconds, times = 1, ...options } = request.json();
    if (seconds !== undefined) options.timeoutMs = 1000 * seconds;
    try {
      let answer;
      for (let i = 0; i < times; i++) answer = await fetch(url, options);
      const { status, headers, body: { size } } = answer;
      const text = size < 100 ? await answer.text() : '';
      return PluginResponse.json({ status, headers: Object.fromEntries(headers), bytes: size, text });
    } catch (error) {
      if (!(error instanceof FetchError)) throw error;
      return PluginResponse.json({ error: error.kind, text: error.message });
    }
  },
};
";

/// What the host holds for a call.
const HELD_BYTES: usize = 40 << 20;

/// The body of a long answer.
const LONG_BYTES: usize = 12 << 20;

/// A language, and what it calls the errors of the contract.
struct Language {
    archive: fn() -> Vec<u8>,
    not_granted: &'static str,
    invalid_argument: &'static str,
    prohibited_address: &'static str,
    connection: &'static str,
    timed_out: &'static str,
    too_large: &'static str,
}

const OF_PYTHON: Language = Language {
    archive: || sources::archive(&[("app.py", PYTHON)]),
    not_granted: "NotGranted",
    invalid_argument: "InvalidArgument",
    prohibited_address: "ProhibitedAddress",
    connection: "ConnectionFailed",
    timed_out: "TimedOut",
    too_large: "TooLarge",
};

const OF_JAVASCRIPT: Language = Language {
    archive: || javascript::archive(JAVASCRIPT),
    not_granted: "not-granted",
    invalid_argument: "invalid-argument",
    prohibited_address: "prohibited-address",
    connection: "connection",
    timed_out: "timed-out",
    too_large: "too-large",
};

fn serving(language: &Language) -> Server {
    let setup = Setup::new().with_runtimes();
    let server = setup.flag("--plugin-held-bytes", &HELD_BYTES.to_string()).start();
    server.open_tenant("acme");
    server.model("digits");
    server.put("tenants/acme/plugins/services", &(language.archive)());
    server.pipeline("acme", "services", &pipeline());
    server
}

#[track_caller]
fn asked(server: &Server, deed: &Value) -> Value {
    server.data.post("/v1/acme/infer/services", deed.to_string().as_bytes()).ok()
}

/// The request fails with this error, whose text has these parts.
#[track_caller]
fn fails(server: &Server, deed: &Value, error: &str, texts: &[&str]) {
    let answer = asked(server, deed);
    assert_eq!(answer["error"], error, "{answer}");
    for text in texts {
        assert!(answer["text"].as_str().unwrap().contains(text), "{text:?}: {answer}");
    }
}

#[test]
fn python_asks_services() {
    asks_services(&OF_PYTHON);
}

#[test]
fn javascript_asks_services() {
    asks_services(&OF_JAVASCRIPT);
}

fn asks_services(language: &Language) {
    let (service, other) = (hello(), hello());
    let silent = Service::answering(|_| Vec::new());
    let large =
        Service::answering(|_| b"HTTP/1.1 200 OK\r\ncontent-length: 20000000\r\n\r\n".to_vec());
    let cut = Service::answering(|_| b"HTTP/1.1 200 OK\r\n\r\n\0".to_vec());
    let garbage = Service::answering(|_| b"SSH-2.0-OpenSSH_9.9\r\n\r\n".to_vec());
    let long = Service::answering(|_| whole("200 OK", "", &"x".repeat(LONG_BYTES)));
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let server = serving(language);
    let of_closed = json!({ "scheme": "http", "host": "127.0.0.1", "port": closed,
        "addresses": ["127.0.0.1"] });
    let of_other = json!({ "scheme": "http", "host": "localhost", "port": other.port() });
    let services = [&service, &silent, &large, &cut, &garbage, &long].map(of);
    let all = services.into_iter().chain([of_closed, of_other]);
    grant(&server, all.collect());

    let get = json!({ "url": service.url("/a?b=1"), "headers": { "X-Own": "7" } });
    for _ in 0..2 {
        let answer = asked(&server, &get);
        assert_eq!(answer["status"], 200, "{answer}");
        assert_eq!((&answer["bytes"], &answer["text"]), (&json!(5), &json!("hello")));
        assert_eq!(answer["headers"], json!({ "x-of": "service", "content-length": "5" }));
    }
    assert_eq!(service.connections(), 1);
    let post = json!({ "url": service.url("/"), "method": "POST", "body": "x".repeat(100_000) });
    let answer = asked(&server, &post);
    assert_eq!((&answer["status"], &answer["text"]), (&json!(201), &json!("made")));
    let [first, _, last] = &service.heads()[..] else { panic!("{:?}", service.heads()) };
    assert!(first.starts_with("get /a?b=1 http/1.1\r\n"), "{first}");
    let host = format!("host: {}\r\n", service.authority());
    assert!(first.contains(&host) && first.contains("x-own: 7\r\n"), "{first}");
    assert!(last.contains("content-length: 100000\r\n"), "{last}");
    let answer = asked(&server, &json!({ "url": long.url("/") }));
    assert_eq!(answer["bytes"], LONG_BYTES, "{answer}");

    let to = |url: String| json!({ "url": url });
    let port = other.port();
    let wanted =
        format!(r#"{{"scheme": "http", "host": "127.0.0.1", "port": {port}}} under "http""#);
    fails(&server, &to(other.url("/")), language.not_granted, &["nothing grants it", &wanted]);
    let by_name = to(format!("http://localhost:{port}/"));
    fails(&server, &by_name, language.prohibited_address, &["(loopback)", "10.0.0.0/8"]);
    let of_closed = to(format!("http://127.0.0.1:{closed}/"));
    fails(&server, &of_closed, language.connection, &["refuses"]);
    fails(&server, &to(garbage.url("/")), language.connection, &["not HTTP/1.1"]);
    fails(&server, &to(large.url("/")), language.too_large, &["over the limit of 16777216"]);
    for service in [&silent, &cut] {
        let soon = json!({ "url": service.url("/"), "seconds": 0.2 });
        fails(&server, &soon, language.timed_out, &["no answer in time"]);
    }
    let own_host = json!({ "url": service.url("/"), "headers": { "Host": "evil.test" } });
    fails(&server, &own_host, language.invalid_argument, &["\"Host\"", "sets itself"]);
    // A sample is a trial, which may only read.
    let mut sampled = pipeline();
    let body = json!({ "url": service.url("/"), "method": "POST" }).to_string();
    let expect = json!({ "at": { "/error": language.not_granted } });
    sampled["samples"] = json!([{ "name": "asks", "request": { "body": body }, "expect": expect }]);
    server.put_json(PIPELINE, &sampled);
    assert_eq!((service.heads().len(), other.connections()), (3, 0));

    let often = json!({ "url": service.url("/"), "times": 65 });
    fails(&server, &often, language.too_large, &["at most 64 requests"]);

    // Answers count as memory that the host holds for the call.
    let deed = json!({ "url": long.url("/"), "times": 4 }).to_string();
    let ended = server.data.post("/v1/acme/infer/services", deed.as_bytes());
    ended.refused(500, "plugin_out_of_memory", &[]);
    assert_eq!(asked(&server, &get)["text"], "hello");
}

//! Requests of plugins to other services: what is granted, what is not, and services that
//! misbehave.

mod shared_runtimes;

use std::sync::{Mutex, mpsc};
use std::thread;

use serde_json::{Value, json};

use crate::support::admin_api::{make, path, read};
use crate::support::client::TestAnswer;
use crate::support::eventually::eventually;
use crate::support::server::Server;
use crate::support::service::{Service, whole};
use crate::support::setup::Setup;
use crate::support::tls::Authority;

const PIPELINE: &str = "tenants/acme/pipelines/services";

/// The tenant `acme` has the handler `hostile-services`, and is granted these services.
fn serving(setup: Setup, granted: Value) -> Server {
    let server = setup.start();
    server.open_tenant("acme");
    server.model("digits");
    server.plugin("acme", "services", "hostile-services");
    server.pipeline("acme", "services", &pipeline());
    grant(&server, granted);
    server
}

/// Its requests have so much time that only other limits end one.
fn pipeline() -> Value {
    let limits = json!({ "timeout_ms": 60_000, "cpu_ms": 30_000 });
    json!({ "handler": "services", "models": { "digits": "digits" }, "limits": limits })
}

fn grant(server: &Server, granted: Value) {
    server.put_json("tenants/acme", &json!({ "open": true, "http": granted }));
}

/// The grant of a service on this machine, by its address.
fn of(service: &Service) -> Value {
    let addresses = ["127.0.0.0/8"];
    json!({ "scheme": "http", "host": "127.0.0.1", "port": service.port(), "addresses": addresses })
}

fn sent(server: &Server, deed: &Value) -> TestAnswer {
    server.data.post("/v1/acme/infer/services", deed.to_string().as_bytes())
}

/// What came back of each request.
#[track_caller]
fn outcomes(server: &Server, deed: &Value) -> Vec<Value> {
    sent(server, deed).ok().as_array().unwrap().clone()
}

/// What came back of the one request.
#[track_caller]
fn outcome(server: &Server, deed: &Value) -> Value {
    outcomes(server, deed).remove(0)
}

/// The texts that are kept of the plugin.
fn lines(server: &Server) -> String {
    read(server, "tenants/acme/plugins/services/logs")["lines"].to_string()
}

fn hello() -> Service {
    Service::answering(|head| match head.contains("post ") {
        true => whole("201 Created", "", "made"),
        false => whole("200 OK", "x-of: service\r\nconnection: keep-alive\r\n", "hello"),
    })
}

#[test]
fn granted_services_are_asked_over_one_connection() {
    let service = hello();
    let server = serving(Setup::new(), json!([of(&service)]));
    let deed = json!({ "url": service.url("/a?b=1"), "headers": [["X-Own", "7"]], "times": 3 });
    let answer = sent(&server, &deed);
    let timing = answer.header("server-timing").to_owned();
    assert!(timing.contains("handle;dur=") && timing.contains(", lookup;dur="), "{timing}");
    for outcome in answer.ok().as_array().unwrap() {
        let [status, headers, bytes, text] = &outcome["status"].as_array().unwrap()[..] else {
            panic!("{outcome}")
        };
        assert_eq!((status, bytes, text), (&json!(200), &json!(5), &json!("hello")));
        let headers = headers.to_string();
        assert!(headers.contains(r#"["x-of","service"]"#), "{headers}");
        assert!(!headers.contains("connection"), "{headers}");
    }
    assert_eq!(service.connections(), 1);
    for head in service.heads() {
        assert!(head.starts_with("get /a?b=1 http/1.1\r\n"), "{head}");
        let host = format!("host: {}\r\n", service.authority());
        assert!(head.contains(&host) && head.contains("x-own: 7\r\n"), "{head}");
    }
    let post = json!({ "url": service.url("/"), "method": "POST", "body_bytes": 100_000 });
    assert_eq!(outcome(&server, &post)["status"][3], "made");
    assert!(service.heads()[3].contains("content-length: 100000\r\n"));
    for header in ["host", "connection", "transfer-encoding"] {
        let forbidden = json!({ "url": service.url("/"), "headers": [[header, "x"]] });
        let refused = outcome(&server, &forbidden);
        let text = "a header is one that the host sets itself";
        assert_eq!(refused["invalid-argument"], text);
    }
    assert_eq!(service.heads().len(), 4);
}

#[test]
fn what_is_not_granted_is_not_sent_and_the_log_says_what_would_grant_it() {
    let (service, other) = (hello(), hello());
    let server = serving(Setup::new(), Value::Null);
    let ask = |url: &str| outcome(&server, &json!({ "url": url }));
    let denied = ask(&service.url("/"));
    assert!(denied["not-granted"].as_str().is_some_and(|text| text.contains("log")), "{denied}");
    let (port, url) = (service.port(), service.url(""));
    let line = format!("the request to {url} failed: nothing grants it");
    let grants = format!(
        r#"{{\"scheme\": \"http\", \"host\": \"127.0.0.1\", \"port\": {port}}} under \"http\""#
    );
    let kept = lines(&server);
    assert!(kept.contains(&line) && kept.contains(&grants), "{kept}");

    // An address that is not public needs a range; a name that leads there is no way around it.
    let on = |host: &str| json!({ "scheme": "http", "host": host, "port": port });
    grant(&server, json!([on("127.0.0.1"), on("localhost"), on("*.localhost")]));
    for host in ["127.0.0.1", "localhost", "LocalHost"] {
        let prohibited = ask(&format!("http://{host}:{port}/"));
        assert!(prohibited["not-granted"].is_string(), "{host}: {prohibited}");
    }
    let kept = lines(&server);
    assert!(kept.contains("(loopback)") && kept.contains("10.0.0.0/8"), "{kept}");

    // Other spellings, ports, schemes and names are not what is granted.
    grant(&server, json!([of(&service)]));
    assert_eq!(ask(&service.url("/"))["status"][0], 200);
    for url in [
        other.url("/"),
        format!("http://localhost:{port}/"),
        format!("http://2130706433:{port}/"),
        format!("http://[::ffff:127.0.0.1]:{port}/"),
        format!("https://127.0.0.1:{port}/"),
        "http://127.0.0.1/".to_owned(),
    ] {
        let denied = ask(&url);
        assert!(denied["not-granted"].is_string(), "{url}: {denied}");
    }
    for authority in [format!("127.0.0.1:{port}@evil.test"), format!("u@127.0.0.1:{port}")] {
        let refused = ask(&format!("http://{authority}/"));
        assert!(refused["invalid-argument"].is_string(), "{authority}: {refused}");
    }
    assert_eq!((service.heads().len(), other.connections()), (1, 0));

    // A grant that is taken back counts for connections that wait, too.
    grant(&server, json!([on("127.0.0.1")]));
    assert!(ask(&service.url("/"))["not-granted"].is_string());
    assert_eq!(service.heads().len(), 1);
}

#[test]
fn a_redirect_is_an_answer() {
    let other = hello();
    let location = format!("location: {}\r\n", other.url("/"));
    let service = Service::answering(move |_| whole("302 Found", &location, ""));
    let server = serving(Setup::new(), json!([of(&service)]));
    let redirected = outcome(&server, &json!({ "url": service.url("/") }));
    assert_eq!(redirected["status"][0], 302);
    assert_eq!(redirected["status"][1][0], json!(["location", other.url("/")]));
    let followed = outcome(&server, &json!({ "url": other.url("/") }));
    assert!(followed["not-granted"].is_string(), "{followed}");
    assert_eq!(other.connections(), 0);
}

#[test]
fn answers_have_bounds() {
    let chunked = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";
    let part = format!("fa0\r\n{}\r\n", "x".repeat(4000)).leak().as_bytes();
    let declared = b"HTTP/1.1 200 OK\r\ncontent-length: 20000000\r\n\r\n";
    let services = [
        (Service::answering(move |_| declared.to_vec()), "HttpResponseBodySize"),
        (Service::endless(chunked, part), "HttpResponseBodySize"),
        (Service::endless("HTTP/1.1 200 OK\r\n", b"x: y\r\n"), "HttpResponseHeaderSectionSize"),
        (Service::endless("HTTP/1.1 200 OK\r\nx: ", b"x"), "HttpResponseHeaderSectionSize"),
        (Service::answering(|_| b"SSH-2.0-OpenSSH_9.9\r\n\r\n".to_vec()), "HttpProtocolError"),
    ];
    let fine = hello();
    let granted = services.iter().map(|(service, _)| of(service)).chain([of(&fine)]).collect();
    // The plugin holds the whole answer until it is too large.
    let setup = Setup::new().flag("--plugin-memory-bytes", "134217728");
    let server = serving(setup, granted);
    for (service, code) in &services {
        let refused = outcome(&server, &json!({ "url": service.url("/") }));
        let text = refused["unavailable"].as_str().unwrap_or_else(|| panic!("{refused}"));
        assert!(text.contains(code), "{code}: {refused}");
        assert_eq!(outcome(&server, &json!({ "url": fine.url("/") }))["status"][3], "hello");
    }
}

#[test]
fn a_call_sends_so_many_requests() {
    let service = hello();
    let server = serving(Setup::new(), json!([of(&service)]));
    let all = outcomes(&server, &json!({ "url": service.url("/"), "times": 66 }));
    let (sent, refused) = all.split_at(64);
    assert!(sent.iter().all(|outcome| outcome["status"][0] == 200), "{sent:?}");
    for outcome in refused {
        let text = outcome["unavailable"].as_str().unwrap();
        assert!(text.contains("ConnectionLimitReached"), "{outcome}");
    }
    assert!(lines(&server).contains("a call sends at most 64 requests"));
    let large = json!({ "url": service.url("/"), "method": "POST", "body_bytes": 17 << 20 });
    let refused = outcome(&server, &large);
    let text = refused["unavailable"].as_str().unwrap();
    assert!(text.contains("HttpRequestBodySize"), "{refused}");
}

#[test]
fn a_service_that_does_not_answer_holds_up_nobody_else() {
    let silent = Service::answering(|_| Vec::new());
    let half = Service::answering(|_| b"HTTP/1.1 200 OK\r\nx-slow: ".to_vec());
    let server = serving(Setup::new(), json!([of(&silent), of(&half)]));
    server.digits_for("acme");
    server.digits("globex");
    let mut short = pipeline();
    short["limits"] = json!({ "timeout_ms": 3000 });
    server.put_json(PIPELINE, &short);
    thread::scope(|scope| {
        let waiting: Vec<_> = [&silent, &half, &silent, &half]
            .into_iter()
            .map(|service| {
                let (server, deed) = (&server, json!({ "url": service.url("/") }));
                scope.spawn(move || sent(server, &deed))
            })
            .collect();
        eventually("all requests were sent", || {
            silent.heads().len() + half.heads().len() == waiting.len()
        });
        server.assert_reads_digits("acme");
        server.assert_reads_digits("globex");
        for waiting in waiting {
            // The host gives up at the deadline: the plugin may still say so, or be too late.
            let answer = waiting.join().unwrap().text();
            let is_told = |word: &str| answer.contains(word);
            assert!(is_told("deadline_exceeded") || is_told("HttpResponseTimeout"), "{answer}");
        }
    });
    let patient = json!({ "url": half.url("/"), "timeout_ms": 300 });
    let refused = outcome(&server, &patient);
    let text = refused["unavailable"].as_str().unwrap();
    assert!(text.contains("HttpResponseTimeout"), "{refused}");
}

#[test]
fn calls_that_wait_for_a_service_hold_up_no_other_tenant() {
    // Requests to `/hang` are answered when the sender is gone.
    let (gate, closed) = mpsc::channel::<()>();
    let closed = Mutex::new(closed);
    let service = Service::answering(move |head| {
        if head.contains("get /hang ") {
            let _ = closed.lock().unwrap().recv();
        }
        whole("200 OK", "", "hello")
    });
    let server = serving(Setup::new(), json!([of(&service)]));
    server.open_tenant("globex");
    server.plugin("globex", "services", "hostile-services");
    server.pipeline("globex", "services", &pipeline());
    server.put_json("tenants/globex", &json!({ "open": true, "http": [of(&service)] }));
    let deed = json!({ "url": service.url("/") }).to_string();
    thread::scope(|scope| {
        let hanging: Vec<_> = (0..4)
            .map(|_| {
                let (server, deed) = (&server, json!({ "url": service.url("/hang") }));
                scope.spawn(move || outcome(server, &deed))
            })
            .collect();
        eventually("all of them wait", || service.heads().len() == hanging.len());
        for _ in 0..3 {
            let answer = server.data.post("/v1/globex/infer/services", deed.as_bytes()).ok();
            assert_eq!(answer[0]["status"][3], "hello");
        }
        assert!(hanging.iter().all(|call| !call.is_finished()));
        drop(gate);
        for call in hanging {
            assert_eq!(call.join().unwrap()["status"][3], "hello");
        }
    });
}

#[test]
fn a_service_over_tls_needs_an_authority_that_the_system_trusts() {
    let (authority, others) = (Authority::new(), Authority::new());
    let service = Service::over_tls(&authority, |_| whole("200 OK", "", "hello"));
    let mut granted = of(&service);
    granted["scheme"] = json!("https");
    for (trusted, expected) in [(&authority, "hello"), (&others, "TlsCertificateError")] {
        let setup = Setup::new().variable("SSL_CERT_FILE", trusted.ca().to_str().unwrap());
        let server = serving(setup, json!([granted]));
        let answer = outcome(&server, &json!({ "url": service.url("/") })).to_string();
        assert!(answer.contains(expected), "{answer}");
    }
}

#[test]
fn trials_send_only_what_changes_nothing() {
    let service = hello();
    let server = serving(Setup::new(), json!([of(&service)]));
    // What a sample gets is told, because none expects it.
    let sample = |method: &str| {
        let body = json!({ "url": service.url("/"), "method": method }).to_string();
        let mut pipeline = pipeline();
        let (request, expect) = (json!({ "body": body }), json!({ "text": "nothing" }));
        pipeline["samples"] = json!([{ "name": "asks", "request": request, "expect": expect }]);
        server.admin.put_json(&path(PIPELINE), &pipeline)
    };
    sample("POST").refused(422, "sample_failed", &[]);
    assert!(service.heads().is_empty());
    sample("GET").refused(422, "sample_failed", &[]);
    assert!(!service.heads().is_empty());
}

#[test]
fn only_operators_grant_services() {
    let server = serving(Setup::new(), Value::Null);
    let deploy = make(&server, "ci", &json!({ "role": "deploy", "tenants": ["acme"] }));
    let anything = json!([{ "scheme": "http", "host": "metadata.internal" }]);
    let wider = json!({ "open": true, "http": anything });
    let refused = server.admin.with_token(&deploy).put_json(&path("tenants/acme"), &wider);
    refused.refused(403, "forbidden", &[]);
    let put = |http: Value| {
        server.admin.put_json(&path("tenants/acme"), &json!({ "open": true, "http": http }))
    };
    let wrong = json!([
        { "scheme": "https", "host": "a.*.example", "addresses": ["0.0.0.0/0"] },
        { "scheme": "gopher", "host": "a.example" },
    ]);
    let named = ["http[0].host", "http[0].addresses[0]", "http[1].scheme"];
    put(wrong).refused(422, "unprocessable", &named);
    let granted = json!([{ "scheme": "https", "host": "*.example.com" }]);
    assert_eq!(put(granted).status, 200);
    let kept = json!([{ "scheme": "https", "host": "*.example.com", "port": 443 }]);
    assert_eq!(read(&server, "tenants/acme")["http"], kept);
}

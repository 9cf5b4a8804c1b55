//! Calls from web pages of other origins: preflights, what a page may read, and where a form leads.

use serde_json::{Value, json};

use crate::support::client::{Client, TestAnswer};
use crate::support::planes::Planes;
use crate::support::server::Server;

const KEY: &str = "the-key-of-acme-1";
const PAGE: &str = "https://app.example.com";
const OTHER: &str = "https://other.example.com";

/// The tenant `acme` with [`KEY`], whose document has this `cors`.
#[track_caller]
fn put(planes: &Planes, cors: &Value) {
    planes.put_json("tenants/acme", &json!({ "api_keys": [KEY], "cors": cors }));
}

/// Planes with the tenant `acme`, which pages of [`PAGE`] may call.
fn with_page() -> Planes {
    let planes = Planes::open();
    let origins = ["http://localhost:3000", PAGE];
    put(&planes, &json!({ "origins": origins, "headers": ["X-Session"], "max_age_s": 60 }));
    planes
}

/// A preflight of a page of this origin.
fn preflight(data: &Client, origin: &str, path: &str) -> TestAnswer {
    let headers = [
        ("origin", origin),
        ("access-control-request-method", "POST"),
        ("access-control-request-headers", "authorization,content-type"),
    ];
    data.send("OPTIONS", path, &headers, None)
}

/// A request of a page of this origin.
fn from_page(data: &Client, origin: &str, method: &str, path: &str) -> TestAnswer {
    let body = (method == "POST").then_some(&b"{}"[..]);
    data.send(method, path, &[("origin", origin)], body)
}

/// The headers that a browser obeys.
fn obeyed(answer: &TestAnswer) -> Vec<(&str, &str)> {
    let headers =
        answer.headers.iter().map(|(name, value)| (name.as_str(), value.to_str().unwrap()));
    let mut obeyed: Vec<_> =
        headers.filter(|(name, _)| name.starts_with("access-control-")).collect();
    obeyed.sort_unstable();
    obeyed
}

/// What an answer to a page of this origin has, which may read it.
fn readable_by(origin: &str) -> Vec<(&str, &str)> {
    vec![("access-control-allow-origin", origin), ("access-control-expose-headers", "*")]
}

#[test]
fn a_preflight_needs_no_key() {
    let planes = with_page();
    let headers = "authorization, content-encoding, content-type, gristmill-receipt, \
                   inference-header-content-length, traceparent, tracestate, x-request-id, x-session";
    for (path, methods) in [
        ("/v1/acme/infer", "POST, OPTIONS"),
        ("/v1/acme/infer/digits", "POST, OPTIONS"),
        ("/v1/acme", "GET, HEAD, OPTIONS"),
        ("/v1/acme/v2/models/m/infer", "POST, OPTIONS"),
    ] {
        for origin in [PAGE, "http://localhost:3000"] {
            let answer = preflight(&planes.data, origin, path);
            assert_eq!((answer.status, answer.body.len()), (204, 0), "{path}");
            let expected = [
                ("access-control-allow-headers", headers),
                ("access-control-allow-methods", methods),
                ("access-control-allow-origin", origin),
                ("access-control-max-age", "60"),
            ];
            assert_eq!(obeyed(&answer), expected, "{path}");
            assert_eq!((answer.header("allow"), answer.header("vary")), (methods, "origin"));
        }
    }
    put(&planes, &json!({ "origins": [PAGE] }));
    let answer = preflight(&planes.data, PAGE, "/v1/acme/infer");
    assert_eq!(answer.header("access-control-max-age"), "600");
    assert!(!answer.header("access-control-allow-headers").contains("x-session"));
}

#[test]
fn pages_of_other_origins_are_told_nothing() {
    let planes = with_page();
    for origin in [
        OTHER,
        "http://app.example.com",
        "https://app.example.com:8443",
        "https://app.example.com.evil.example",
        "https://APP.example.com",
        "null",
        "",
    ] {
        let answer = preflight(&planes.data, origin, "/v1/acme/infer");
        assert_eq!((answer.status, obeyed(&answer)), (204, vec![]), "{origin}");
        let data = planes.data.with_token(KEY);
        let answer = from_page(&data, origin, "GET", "/v1/acme");
        assert_eq!((answer.status, obeyed(&answer)), (200, vec![]), "{origin}");
    }
    // No other part of the API is open to the page.
    for path in ["/v2", "/v2/models", "/livez", "/v1/other/infer", "/v1/acme/nothing"] {
        assert!(obeyed(&preflight(&planes.data, PAGE, path)).is_empty(), "{path}");
        assert!(obeyed(&from_page(&planes.data, PAGE, "GET", path)).is_empty(), "{path}");
    }
}

#[test]
fn a_page_can_read_answers_and_errors() {
    let planes = with_page();
    let data = planes.data.with_token(KEY);
    for method in ["GET", "HEAD"] {
        let answer = from_page(&data, PAGE, method, "/v1/acme");
        assert_eq!((answer.status, obeyed(&answer)), (200, readable_by(PAGE)), "{method}");
        assert_eq!(answer.header("vary"), "origin");
    }
    let wrong = planes.data.with_token("not-the-key-of-acme");
    for (data, method, path, status, code) in [
        (&planes.data, "POST", "/v1/acme/infer", 401, "unauthenticated"),
        (&wrong, "POST", "/v1/acme/infer", 401, "unauthenticated"),
        (&data, "POST", "/v1/acme/infer/none", 404, "pipeline_not_found"),
        (&data, "PUT", "/v1/acme", 405, "method_not_allowed"),
    ] {
        let answer = from_page(data, PAGE, method, path);
        answer.refused(status, code, &[]);
        assert_eq!(obeyed(&answer), readable_by(PAGE), "{path}");
    }
    let answer = from_page(&data, PAGE, "GET", "/v1/acme/v2/models/none");
    answer.refused_by_protocol(404, &[]);
    assert_eq!(obeyed(&answer), readable_by(PAGE));

    let (quota, cors) = (json!({ "requests_per_s": 1 }), json!({ "origins": [PAGE] }));
    planes.put_json("tenants/acme", &json!({ "open": true, "quota": quota, "cors": cors }));
    let mut answers = (0..100).map(|_| from_page(&planes.data, PAGE, "GET", "/v1/acme"));
    let refused = answers.find(|answer| answer.status == 429).unwrap();
    assert_eq!(obeyed(&refused), readable_by(PAGE));
    assert!(!refused.header("ratelimit").is_empty() && !refused.header("retry-after").is_empty());
}

#[test]
fn all_pages_may_be_allowed() {
    let planes = Planes::open();
    put(&planes, &json!({ "origins": ["*"] }));
    for origin in [PAGE, OTHER, "null"] {
        let answer = preflight(&planes.data, origin, "/v1/acme/infer");
        assert_eq!(answer.header("access-control-allow-origin"), "*");
        let answer = from_page(&planes.data.with_token(KEY), origin, "GET", "/v1/acme");
        assert_eq!(obeyed(&answer), readable_by("*"));
    }
}

#[test]
fn the_servers_origins_are_for_tenants_that_say_nothing_and_for_paths_without_a_tenant() {
    let planes = Planes::open_to_pages(&[PAGE]);
    planes.keyed_tenant("acme", KEY);
    let tenantless = ["/livez", "/v2", "/v2/health/live", "/v2/models/m/infer", "/nothing"];
    for path in ["/v1/acme/infer", "/v1/nobody/infer"].into_iter().chain(tenantless) {
        let answer = from_page(&planes.data, PAGE, "GET", path);
        assert_eq!(obeyed(&answer), readable_by(PAGE), "{path}");
        assert!(obeyed(&from_page(&planes.data, OTHER, "GET", path)).is_empty(), "{path}");
    }
    let answer = preflight(&planes.data, PAGE, "/v1/acme/infer");
    assert_eq!(answer.header("access-control-max-age"), "600");
    // A tenant's own list stands alone.
    for origins in [&[OTHER][..], &[]] {
        put(&planes, &json!({ "origins": origins }));
        assert!(obeyed(&preflight(&planes.data, PAGE, "/v1/acme/infer")).is_empty());
        let answer = preflight(&planes.data, OTHER, "/v1/acme/infer");
        assert_eq!(obeyed(&answer).is_empty(), origins.is_empty());
        for path in tenantless {
            let answer = from_page(&planes.data, PAGE, "GET", path);
            assert_eq!(obeyed(&answer), readable_by(PAGE), "{path}");
        }
    }
}

#[test]
fn a_tenant_without_cors_is_as_one_that_does_not_exist() {
    for origins in [&[PAGE][..], &["*"], &[]] {
        let planes = Planes::open_to_pages(origins);
        planes.keyed_tenant("acme", KEY);
        for origin in [PAGE, OTHER, "null"] {
            let of = |tenant: &str, path: &str, headers: &[(&str, &str)], method: &str| {
                let path = format!("/v1/{tenant}{path}");
                let always = [("x-request-id", "1"), ("origin", origin)];
                let headers = [&always[..], headers].concat();
                let answer = planes.data.send(method, &path, &headers, None);
                let mut headers = answer.headers.clone();
                headers.remove("date");
                (answer.status, headers, answer.text().replace("acne", "acme"))
            };
            let asks: &[_] = &[("access-control-request-method", "POST")];
            let plain: &[_] = &[];
            for (path, headers, method) in [
                ("/infer", asks, "OPTIONS"),
                ("/v2/models/m/infer", asks, "OPTIONS"),
                ("", asks, "OPTIONS"),
                ("/infer", plain, "OPTIONS"),
                ("/infer", plain, "POST"),
                ("", plain, "GET"),
                ("/v2/models", plain, "GET"),
            ] {
                // The names are as long as each other.
                let exists = of("acme", path, headers, method);
                assert_eq!(exists, of("acne", path, headers, method), "{method} {path} {origin}");
            }
        }
    }
}

#[test]
fn clients_that_are_no_pages_see_only_that_answers_vary() {
    let planes = Planes::open_to_pages(&["*"]);
    put(&planes, &json!({ "origins": [PAGE] }));
    for path in ["/livez", "/v1/acme", "/v2", "/nothing"] {
        for method in ["GET", "OPTIONS"] {
            let answer = planes.data.send(method, path, &[], None);
            assert_eq!((obeyed(&answer), answer.header("vary")), (vec![], "origin"), "{path}");
        }
    }
}

#[test]
fn the_admin_plane_is_open_to_no_page() {
    let planes = Planes::open_to_pages(&["*"]);
    for path in ["/admin/v1/status", "/admin/v1/tenants/acme", "/admin/v1/openapi.json"] {
        assert!(obeyed(&preflight(&planes.admin, PAGE, path)).is_empty(), "{path}");
        assert!(obeyed(&from_page(&planes.admin, PAGE, "GET", path)).is_empty(), "{path}");
    }
}

#[test]
fn a_tenants_pages_are_read_back_and_can_be_taken_away() {
    let planes = with_page();
    let cors = || planes.admin.get("/admin/v1/tenants/acme").ok()["cors"].clone();
    let origins = ["http://localhost:3000", PAGE];
    assert_eq!(cors(), json!({ "origins": origins, "headers": ["x-session"], "max_age_s": 60 }));
    planes.keyed_tenant("acme", KEY);
    assert_eq!(cors(), Value::Null);
    assert!(obeyed(&preflight(&planes.data, PAGE, "/v1/acme/infer")).is_empty());
}

#[test]
fn a_form_leads_to_a_page_that_the_tenant_allows() {
    let server = Server::start();
    server.hostile("acme");
    let post = |deed: &str| {
        let form = [("content-type", "application/x-www-form-urlencoded"), ("origin", PAGE)];
        let path = format!("/v1/acme/infer/patient?do={deed}");
        server.data.send("POST", &path, &form, Some(b"size=5"))
    };
    let elsewhere = "post: plugin's answer cannot be used: location \"https://app.example.com@evil";
    post("see-page").refused(500, "plugin_invalid_output", &["in the tenant's redirects"]);
    server.put_json("tenants/acme", &json!({ "open": true, "redirects": [PAGE] }));
    let answer = post("see-page");
    assert_eq!(answer.status, 303, "{}", answer.text());
    assert_eq!(answer.header("location"), "https://app.example.com/thanks?label=7");
    post("see-elsewhere").refused(500, "plugin_invalid_output", &[elsewhere]);
    let document = server.admin.get("/admin/v1/tenants/acme").ok();
    assert_eq!(document["redirects"], json!([PAGE]));
}

//! The page on which anyone tries the pipelines of an open tenant: where it is, and that for all
//! other tenants its path is as unknown as any other.

use serde_json::json;

use crate::support::planes::Planes;

const PATH: &str = "/v1/acme/try";

/// Maximum bytes of the page.
const PAGE_BYTES_MAX: usize = 16 << 10;

/// Planes with the tenant `acme`, which has the page.
fn with_page() -> Planes {
    let planes = Planes::open();
    planes.put_json("tenants/acme", &json!({ "open": true, "try_page": true }));
    planes
}

#[test]
fn it_runs_and_loads_nothing_but_itself() {
    let planes = with_page();
    let answer = planes.data.get(PATH);
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert_eq!(answer.header("content-type"), "text/html; charset=utf-8");
    assert_eq!(answer.header("x-content-type-options"), "nosniff");
    assert_eq!(answer.header("referrer-policy"), "no-referrer");
    assert_eq!(answer.header("cross-origin-opener-policy"), "same-origin");
    assert_eq!(answer.header("cache-control"), "no-cache");
    let policy = answer.header("content-security-policy");
    for part in [
        "default-src 'none'; script-src 'sha256-",
        "; style-src 'sha256-",
        "; connect-src 'self'; img-src blob: data:; base-uri 'none'; form-action 'none'; \
         frame-ancestors 'none'",
    ] {
        assert!(policy.contains(part), "{policy}");
    }
    assert!(!policy.contains("unsafe") && !policy.contains('*'), "{policy}");
    let page = answer.text();
    assert!(page.len() <= PAGE_BYTES_MAX, "{} bytes", page.len());
    for without in [" style=", " onload=", " src=", "http:", "https:"] {
        assert!(!page.contains(without), "{without}");
    }
    let head = planes.data.send("HEAD", PATH, &[], None);
    assert_eq!((head.status, head.body.len()), (200, 0));
    assert_eq!(head.header("content-security-policy"), policy);
    let options = planes.data.send("OPTIONS", PATH, &[], None);
    assert_eq!((options.status, options.header("allow")), (204, "GET, HEAD, OPTIONS"));
    planes.data.post(PATH, b"").refused(405, "method_not_allowed", &["GET is"]);
    assert_eq!(planes.admin.get("/admin/v1/tenants/acme").ok()["try_page"], json!(true));
}

#[test]
fn without_it_the_path_is_unknown() {
    let planes = with_page();
    planes.put_json("tenants/plain", &json!({ "open": true }));
    planes.keyed_tenant("keyed", "the-key-of-keyed-1");
    planes.put_json("tenants/ended", &json!({ "open": true, "try_page": true }));
    assert_eq!(planes.data.get("/v1/ended/try").status, 200);
    planes.put_json("tenants/ended", &json!({ "open": true, "try_page": false }));
    let keyed = planes.data.with_token("the-key-of-keyed-1");
    for tenant in ["plain", "keyed", "ended", "none"] {
        for method in ["GET", "HEAD", "POST", "PUT", "OPTIONS"] {
            for data in [&planes.data, &keyed] {
                let of = |last: &str| {
                    let id = [("x-request-id", "the-same")];
                    let body = ["POST", "PUT"].contains(&method).then_some(&b"{}"[..]);
                    let answer = data.send(method, &format!("/v1/{tenant}/{last}"), &id, body);
                    assert_eq!(answer.status, 404, "{method} {tenant}: {}", answer.text());
                    let mut headers = answer.headers.clone();
                    headers.remove("date");
                    (headers, answer.text())
                };
                let (headers, text) = of("try");
                assert_eq!((headers, text.replace("try", "dry")), of("dry"), "{method} {tenant}");
            }
        }
    }
    for path in ["/v1/acme/try/", "/v1/acme/try/try.js", "/v1//try", "/try"] {
        planes.data.get(path).refused(404, "not_found", &["nothing is served at"]);
    }
}

#[test]
fn only_an_open_tenant_can_have_it_and_each_look_is_a_request_of_the_tenant() {
    let planes = Planes::open();
    let keyed = json!({ "api_keys": ["the-key-of-acme-1"], "try_page": true });
    let refused = planes.admin.put_json("/admin/v1/tenants/acme", &keyed);
    refused.refused(422, "unprocessable", &["try_page is true: only an open tenant"]);
    let quota = json!({ "requests_per_s": 1 });
    planes.put_json("tenants/acme", &json!({ "open": true, "try_page": true, "quota": quota }));
    let mut answers = (0..100).map(|_| planes.data.get(PATH));
    let refused = answers.find(|answer| answer.status == 429).unwrap();
    assert!(!refused.header("retry-after").is_empty());
}

//! Callers, paths and methods that the data plane refuses before it looks for a pipeline, on planes
//! in memory.

use crate::support::planes::Planes;

const ACME_KEY: &str = "the-key-of-acme-1";

/// Two tenants that need a key.
fn keyed() -> Planes {
    let planes = Planes::open();
    planes.keyed_tenant("acme", ACME_KEY);
    planes.keyed_tenant("other", "the-key-of-other-1");
    planes
}

#[test]
fn an_unknown_tenant_is_one_without_its_key() {
    let planes = keyed();
    for key in [None, Some("not-the-key-of-acme"), Some("the-key-of-other-1")] {
        let data = key.map_or(planes.data.clone(), |key| planes.data.with_token(key));
        for (path, body) in [("", None), ("/infer", Some(&b"x"[..])), ("/v2/models", None)] {
            let of = |tenant: &str| {
                let method = if body.is_some() { "POST" } else { "GET" };
                let id = [("x-request-id", "1")];
                let answer = data.send(method, &format!("/v1/{tenant}{path}"), &id, body);
                assert_eq!(answer.status, 401, "{tenant}{path}: {}", answer.text());
                let mut headers = answer.headers.clone();
                headers.remove("date");
                (headers, answer.text())
            };
            let (headers, text) = of("acme");
            // The names are as long as each other.
            assert_eq!((headers, text.replace("acme", "acne")), of("acne"), "{key:?} {path}");
        }
    }
}

#[test]
fn an_unknown_path() {
    let planes = keyed();
    for path in ["/", "/v1", "/v3", "/v1/acme/infer/digits/more", "/admin/v1/status", "/livez/x"] {
        let named = format!("nothing is served at {path:?}");
        planes.data.get(path).refused(404, "not_found", &[&named]);
    }
}

#[test]
fn no_key() {
    let planes = keyed();
    let answer = planes.data.post("/v1/acme/infer/digits", b"a picture");
    answer.refused(401, "unauthenticated", &["an API key of tenant \"acme\" is needed"]);
    assert_eq!(answer.header("www-authenticate"), "Bearer");

    let basic = [("authorization", "Basic dXNlcjpwYXNz")];
    let answer = planes.data.send("POST", "/v1/acme/infer", &basic, Some(b""));
    answer.refused(401, "unauthenticated", &["an API key of tenant \"acme\" is needed"]);
}

#[test]
fn a_wrong_key() {
    let planes = keyed();
    let answer = planes.data.with_token("not-the-key-of-acme").post("/v1/acme/infer", b"");
    answer.refused(401, "unauthenticated", &["an API key of tenant \"acme\" is needed"]);
    assert!(!answer.text().contains("not-the-key-of-acme"), "{}", answer.text());
}

#[test]
fn another_tenants_key() {
    let planes = keyed();
    for (tenant, key) in [("acme", "the-key-of-other-1"), ("other", ACME_KEY)] {
        let answer = planes.data.with_token(key).get(&format!("/v1/{tenant}"));
        let named = format!("an API key of tenant {tenant:?} is needed");
        answer.refused(401, "unauthenticated", &[&named]);
    }
}

#[test]
fn a_wrong_method() {
    let planes = keyed();
    let data = planes.data.with_token(ACME_KEY);
    let answer = data.get("/v1/acme/infer/digits");
    answer.refused(405, "method_not_allowed", &["GET is not allowed here, POST is"]);
    assert_eq!(answer.header("allow"), "POST, OPTIONS");
    let answer = data.put("/v1/acme", b"");
    answer.refused(405, "method_not_allowed", &["PUT is not allowed here, GET is"]);
    assert_eq!(answer.header("allow"), "GET, HEAD, OPTIONS");
}

use super::*;

fn response(headers: &[(&str, &str)]) -> PluginResponse {
    let headers = headers.iter().map(|(name, value)| (name.to_string(), value.to_string()));
    let content_type = "text/plain".to_owned();
    PluginResponse { status: 200, content_type, headers: headers.collect(), body: b"x".into() }
}

fn refusal(response: PluginResponse) -> String {
    let outcome =
        answer_from_plugin(response, 1 << 20, &ByteBudget::new(1 << 20), &Origins::default());
    let problem = outcome.map(drop).unwrap_err();
    assert_eq!(problem.code, ErrorCode::PluginInvalidOutput);
    problem.detail
}

#[test]
fn headers_that_proxies_and_browsers_act_upon_do_not_pass() {
    let headers = [
        ("Cache-Control", "no-store"),
        ("ETag", "\"1\""),
        ("x-plugin-model", "a"),
        ("X-Plugin-Model", "b"),
        ("x-accel-redirect", "/etc/passwd"),
        ("X-Sendfile", "/etc/passwd"),
        ("x-accel-buffering", "no"),
        ("x-frame-options", "DENY"),
        ("x-request-id", "1"),
        ("x-plugin", "1"),
        ("set-cookie", "a=b"),
        ("location", "/"),
        ("access-control-allow-origin", "*"),
        ("Access-Control-Allow-Credentials", "true"),
        ("vary", "*"),
        ("content-length", "7"),
        ("transfer-encoding", "chunked"),
        ("connection", "close"),
        ("link", "</x>; rel=preload"),
        // Headers that do not pass are not checked.
        ("no header", "a\r\nb"),
    ];
    let Ok(answer) = answer_from_plugin(
        response(&headers),
        1 << 20,
        &ByteBudget::new(1 << 20),
        &Origins::default(),
    ) else {
        panic!("refused");
    };
    let passed: Vec<_> =
        answer.headers().iter().map(|(name, value)| (name.as_str(), value)).collect();
    let mut names: Vec<_> = passed.iter().map(|(name, _)| *name).collect();
    names.sort_unstable();
    assert_eq!(
        names,
        [
            "cache-control",
            "content-type",
            "etag",
            "x-content-type-options",
            "x-plugin-model",
            "x-plugin-model"
        ]
    );
}

#[test]
fn a_page_of_a_plugin_has_an_origin_of_its_own() {
    for (content_type, is_page) in [
        ("text/html", true),
        ("TEXT/HTML; charset=utf-8", true),
        ("application/xhtml+xml", true),
        ("image/svg+xml", true),
        ("text/xsl", true),
        ("multipart/form-data; boundary=a", true),
        ("text/plain; a=b, text/html", true),
        ("application/json", false),
        ("text/plain", false),
        ("image/png", false),
        ("application/pdf", false),
        ("unknown/unknown", false),
    ] {
        let policy = ("content-security-policy", "sandbox allow-same-origin");
        let page = PluginResponse { content_type: content_type.into(), ..response(&[policy]) };
        let answer =
            answer_from_plugin(page, 1 << 20, &ByteBudget::new(1 << 20), &Origins::default());
        let answer = answer.unwrap_or_else(|_| panic!("{content_type}"));
        assert_eq!(answer.headers()["x-content-type-options"], "nosniff", "{content_type}");
        let policies = answer.headers().get_all("content-security-policy");
        let policies: Vec<_> = policies.iter().map(|policy| policy.to_str().unwrap()).collect();
        assert_eq!(policies.len(), usize::from(is_page), "{content_type}: {policies:?}");
        for policy in policies {
            assert!(policy.starts_with("sandbox ") && !policy.contains("same-origin"), "{policy}");
        }
    }
}

#[test]
fn an_error_names_the_exceeded_bound() {
    let long = "v".repeat(9000);
    let many: Vec<_> = (0..65).map(|index| (format!("x-plugin-{index}"), String::new())).collect();
    let named = |headers| PluginResponse { headers, ..response(&[]) };
    let typed = |text: &str| PluginResponse { content_type: text.into(), ..response(&[]) };
    let cases = [
        (named(many), "65 headers are over the limit of 64"),
        (response(&[("x-a", &long)]), "header \"x-a\" of 9003 bytes is over the limit of 8192"),
        (
            response(&[("x-a", &long[..8000]), ("x-b", &long[..8000]), ("x-c", &long[..8000])]),
            "headers of 24009 bytes in all are over the limit of 16384",
        ),
        (response(&[("x-plugin-a", "b\r\nx-c: d")]), "header \"x-plugin-a\""),
        (response(&[("x-plugin-a b", "c")]), "header \"x-plugin-a b\""),
        (typed(&format!("text/{long}")), "content type of 9005 bytes is over the limit of 256"),
        (typed("text"), "content type \"text\" is not a media type"),
        (typed(""), "content type \"\" is not a media type"),
        (typed("text/plain\r\nx: y"), "is not a media type"),
        (typed("Multipart/X-Mixed-Replace; boundary=a"), "multipart/x-mixed-replace is not passed"),
        (typed("text/plain; a=b, multipart/mixed"), "multipart/mixed is not passed on"),
    ];
    for (response, named) in cases {
        let detail = refusal(response);
        assert!(detail.contains(named), "{named:?} is missing from: {detail}");
    }
}

#[test]
fn all_of_a_response_is_bounded_and_held() {
    let value = "v".repeat(8000);
    let large = || response(&[("x-plugin-a", &value)]);
    let budget = ByteBudget::new(1 << 20);
    let Err(problem) = answer_from_plugin(large(), 8000, &budget, &Origins::default()).map(drop)
    else {
        panic!("taken")
    };
    assert!(problem.detail.contains("8021 bytes, headers included"), "{}", problem.detail);
    for body in [Vec::new(), b"x".to_vec()] {
        let bytes = 8020 + body.len();
        let answer = answer_from_plugin(
            PluginResponse { body, ..large() },
            1 << 20,
            &budget,
            &Origins::default(),
        );
        assert_eq!(budget.held(), bytes);
        drop(answer);
        assert_eq!(budget.held(), 0);
    }
}

#[test]
fn an_answer_without_body_needs_no_type() {
    let none = PluginResponse { content_type: String::new(), body: Vec::new(), ..response(&[]) };
    let Ok(answer) = answer_from_plugin(none, 0, &ByteBudget::new(0), &Origins::default()) else {
        panic!("refused")
    };
    assert!(!answer.headers().contains_key(CONTENT_TYPE));
}

#[test]
fn a_redirect_leads_to_pages_that_the_tenant_allows() {
    let redirects = Origins::of(vec!["https://app.example.com".into()]).unwrap();
    let answer = |status, location: &str| {
        let response = PluginResponse { status, ..response(&[("Location", location)]) };
        answer_from_plugin(response, 1 << 20, &ByteBudget::new(1 << 20), &redirects)
    };
    let page = "https://app.example.com/thanks?label=7";
    let Ok(allowed) = answer(303, page) else { panic!("refused") };
    assert_eq!(allowed.status(), StatusCode::SEE_OTHER);
    assert_eq!(allowed.headers()[LOCATION], page);
    for status in [200, 201, 301, 302, 307, 308] {
        let Ok(dropped) = answer(status, page) else { panic!("refused") };
        assert!(!dropped.headers().contains_key(LOCATION), "{status}");
    }
    for location in ["https://app.example.com@evil.example/", "/thanks", "", "https://a\r\nb: c"] {
        let Err(problem) = answer(303, location).map(drop) else { panic!("{location:?} passes") };
        let named = format!("post: plugin's answer cannot be used: location {location:?}");
        assert!(problem.detail.starts_with(&named), "{}", problem.detail);
        assert_eq!(problem.code, ErrorCode::PluginInvalidOutput);
    }
}

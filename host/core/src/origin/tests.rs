use super::*;

fn of(texts: &[&str]) -> Result<Origins, Vec<OriginFault>> {
    Origins::of(texts.iter().map(|text| (*text).to_owned()).collect())
}

#[test]
fn a_page_is_allowed_by_its_whole_origin() {
    let texts = [
        "https://app.example.com",
        "http://localhost:3000",
        "http://[::1]:8000",
        "https://xn--bcher-kva.example",
        "capacitor://localhost",
        "http://10.0.0.7",
        "http://[::ffff:a00:7]",
        "https://app.example.com.",
    ];
    let origins = of(&texts).unwrap();
    assert!(!origins.is_any() && texts.iter().all(|text| origins.has(text)));
    for other in [
        "http://app.example.com",
        "https://app.example.com:8443",
        "https://app.example.com.evil.example",
        "https://evil.app.example.com",
        "http://localhost",
        "null",
        "*",
        "",
    ] {
        assert!(!origins.has(other), "{other}");
    }
    let any = of(&["*"]).unwrap();
    assert!(any.is_any() && any.has("https://a.example") && any.has("null"));
    let none = of(&[]).unwrap();
    assert!(!none.is_any() && !none.has("") && none == Origins::default());
}

#[test]
fn an_origin_in_another_spelling_is_named_with_the_right_one() {
    let right = "https://app.example.com";
    for text in [
        "https://App.Example.com",
        "HTTPS://app.example.com",
        "https://app.example.com/",
        "https://app.example.com:443",
        "https://app.example.com/page?a=b#c",
        " https://app.example.com",
    ] {
        let error = InvalidOrigin::Spelling { text: text.into(), right: right.into() };
        assert_eq!(of(&[right, text]), Err(vec![OriginFault { index: Some(1), error }]));
    }
    for (text, right) in [
        ("http://a:080", "http://a"),
        ("http://a:0443", "http://a:443"),
        ("http://[0:0::1]", "http://[::1]"),
        ("http://[::ffff:10.0.0.7]", "http://[::ffff:a00:7]"),
        ("http://10.0.0.7.", "http://10.0.0.7"),
    ] {
        assert_eq!(as_sent(text).as_deref(), Some(right), "{text}");
    }
}

#[test]
fn a_text_that_is_no_origin_is_refused() {
    let long = format!("https://{}.example", "a".repeat(300));
    for text in [
        "",
        "app.example.com",
        "https://",
        "https:app.example.com",
        "file:///page.html",
        "https://*.example.com",
        "https://user@app.example.com",
        "https://app.example.com:",
        "https://app.example.com:65536",
        "https://app.example.com:+80",
        "https://app..example.com",
        "https://app.example.com..",
        "https://.",
        "http://10.7",
        "http://10.0.0.256",
        "http://010.0.0.7",
        "http://10.0.0.0x7",
        "https://bücher.example",
        "https://a b",
        "https://[::1",
        "https://[::1]a",
        "https://a\\b",
        "://a",
        "1a://a",
        "https://a,https://b",
        &long,
    ] {
        let faults = of(&[text]).unwrap_err();
        assert!(matches!(faults[0].error, InvalidOrigin::NotOne(_)), "{text}: {faults:?}");
    }
}

#[test]
fn a_list_is_bounded_and_all_its_faults_are_named() {
    let errors = |texts: &[&str]| -> Vec<_> {
        of(texts).unwrap_err().into_iter().map(|fault| (fault.index, fault.error)).collect()
    };
    let expected = [(Some(0), InvalidOrigin::NotAlone), (Some(2), InvalidOrigin::Null)];
    assert_eq!(errors(&["*", "https://a.example", "null"]), expected);
    let many = vec!["https://a.example"; 65];
    let expected = [(None, InvalidOrigin::TooMany { count: 65, max: 64 })];
    assert_eq!(errors(&many), expected);
    assert!(of(&many[..64]).is_ok());
}

#[test]
fn a_url_belongs_to_its_whole_origin() {
    let origins = of(&["https://app.example.com", "http://localhost:3000"]).unwrap();
    for url in [
        "https://app.example.com",
        "https://app.example.com/",
        "https://app.example.com/thanks?label=7#top",
        "https://app.example.com?a=https://other.example",
        "http://localhost:3000/..//other.example",
    ] {
        assert!(origins.has_url(url), "{url}");
    }
    for url in [
        "",
        "/thanks",
        "//app.example.com/",
        "https:app.example.com",
        "https:///app.example.com",
        "http://app.example.com/",
        "https://app.example.com.evil.example/",
        "https://app.example.com@evil.example/",
        "https://app.example.com:443@evil.example/",
        "https://app.example.com\\@evil.example/",
        "https://evil.example/https://app.example.com",
        "https://app.example.com:8443/",
        "https://app.exam\tple.com/",
        " https://app.example.com/",
        "https://app.example.com/a b",
        "https://app.example.com/\u{e4}",
        "javascript:alert(1)//https://app.example.com",
    ] {
        assert!(!origins.has_url(url), "{url}");
    }
    assert!(Origins::any().has_url("https://a.example/") && !Origins::any().has_url("/a"));
    assert!(!Origins::default().has_url("https://a.example/"));
}

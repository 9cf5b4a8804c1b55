use super::*;

fn at(document: &str, pointer: &str) -> Result<Option<String>, String> {
    let found = find(document.as_bytes(), &Pointer::parse(pointer)?)?;
    Ok(found.map(|found| found.get().to_owned()))
}

/// The document and the pointers of RFC 6901, section 5.
#[test]
fn the_examples_of_the_rfc_are_found() {
    let document = r#"{"foo":["bar","baz"],"":0,"a/b":1,"c%d":2,"e^f":3,"g|h":4,"i\\j":5,
        "k\"l":6," ":7,"m~n":8}"#;
    for (pointer, value) in [
        ("/foo", r#"["bar","baz"]"#),
        ("/foo/0", r#""bar""#),
        ("/", "0"),
        ("/a~1b", "1"),
        ("/c%d", "2"),
        ("/e^f", "3"),
        ("/g|h", "4"),
        ("/i\\j", "5"),
        ("/k\"l", "6"),
        ("/ ", "7"),
        ("/m~0n", "8"),
    ] {
        assert_eq!(at(document, pointer).unwrap().as_deref(), Some(value), "{pointer}");
    }
    assert_eq!(at(document, "").unwrap().as_deref(), Some(document));
}

#[test]
fn where_nothing_is_nothing_is_found() {
    for pointer in ["/b", "/a/2", "/a/-", "/a/00", "/a/x", "/a/0/x", "/n/0", "/t/0", "/o/0"] {
        let document = r#"{"a":[1,-2.5],"n":null,"t":"text","o":true}"#;
        assert_eq!(at(document, pointer).unwrap(), None, "{pointer}");
    }
}

#[test]
fn the_last_of_equal_names_counts() {
    assert_eq!(at(r#"{"a":{"b":1},"a":{"b":2}}"#, "/a/b").unwrap().as_deref(), Some("2"));
    assert_eq!(at(r#"{"a":{"b":1},"a":7}"#, "/a/b").unwrap(), None);
}

#[test]
fn a_document_is_read_to_its_end() {
    for broken in ["", "[1", r#"{"a":1"#, r#"{"a":1}x"#, r#"{"a":1,}"#, "nul", "[NaN]"] {
        assert!(at(broken, "/a").is_err(), "{broken}");
    }
    let deep = "[".repeat(100_000) + &"]".repeat(100_000);
    assert_eq!(at(&format!(r#"{{"b":{deep},"a":1}}"#), "/a").unwrap().as_deref(), Some("1"));
}

#[test]
fn a_document_that_is_not_json_is_told_what_to_do() {
    let error = at("{\"a\":\n[1.5, -Infinity]}", "/b").unwrap_err();
    let expected = "-Infinity at line 2 column 8 is not JSON: send null, or a text, in its place";
    assert_eq!(error, expected);
    let error = at("\u{feff}{}", "").unwrap_err();
    assert_eq!(error, "it begins with a byte order mark: send UTF-8 without one");
    let error = find(b"\xff\xfe{\0", &Pointer::parse("").unwrap()).unwrap_err();
    assert_eq!(error, "it is UTF-16: send UTF-8");
    // A text that is cut short.
    assert!(at("[\"NaN", "").unwrap_err().starts_with("EOF"));
}

#[test]
fn a_pointer_that_is_none_is_refused() {
    let error = at("{}", "instances").unwrap_err();
    let text = r#"the JSON Pointer "instances" does not begin with /, as /instances"#;
    assert_eq!(error, text);
    assert!(at("{}", &"/a".repeat(101)).is_err());
    assert!(at("{}", &"/a".repeat(100)).is_ok());
}

#[test]
fn several_pointers_are_followed_at_once() {
    let document = r#"{"a":{"b":[1,[2,3]],"c":"x"},"d":7,"a\u0062":8,"b":{"a":9}}"#;
    let texts = [
        "/d",
        "/a/b/1/0",
        "/a",
        "/a/b/1",
        "/a/b/1/0",
        "/a/b/0",
        "",
        "/ab",
        "/b/a",
        "/a/x",
        "/d/0",
        "no pointer",
    ];
    let values = Pointers::of(&texts).values(document.as_bytes()).unwrap();
    let values: Vec<_> = values.iter().map(|value| value.map(RawValue::get)).collect();
    let expected = texts.map(|text| at(document, text).unwrap_or_default());
    let expected: Vec<_> = expected.iter().map(Option::as_deref).collect();
    assert_eq!(values, expected);
    assert_eq!(
        values[..4],
        [Some("7"), Some("2"), Some(r#"{"b":[1,[2,3]],"c":"x"}"#), Some("[2,3]")]
    );
    assert_eq!(values[6..], [Some(document), Some("8"), Some("9"), None, None, None]);
    // The last of equal names counts for all of them.
    let twice = Pointers::of(&["/a/b", "/a/c"]);
    let values = twice.values(br#"{"a":{"b":1,"c":1},"a":{"c":2}}"#).unwrap();
    assert_eq!(
        values.iter().map(|value| value.map(RawValue::get)).collect::<Vec<_>>(),
        [None, Some("2")]
    );
    assert!(twice.values(b"{").is_err() && Pointers::of(&[]).values(b"[1,]").is_err());
}

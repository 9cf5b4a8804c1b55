use std::fmt::Write;

use super::*;

/// The fields as lines: the name, the line, and the value, with those inside of it indented.
fn lines(text: &str) -> String {
    fn write(message: &Message, indent: usize, to: &mut String) {
        for Field { name, line, value } in &message.fields {
            writeln!(to, "{:indent$}{name}@{line} {value}", "").unwrap();
            if let FieldValue::Message(inner) = value {
                write(inner, indent + 1, to);
            }
        }
    }
    let mut written = String::new();
    write(&parse(text.as_bytes()).unwrap(), 0, &mut written);
    written
}

fn refused(text: impl AsRef<[u8]>) -> String {
    parse(text.as_ref()).unwrap_err().to_string()
}

#[test]
fn fields_have_names_values_and_lines() {
    let text = r#"# A comment with "signs" { [
name: "m" max_batch_size: 8, backend: 'on\'nx' ; # another
input [
  { name: "x" data_type: TYPE_FP32 dims: [ -1, 3 ] },
  { name: "y", dims: 2; dims: 0x10 }
]
dynamic_batching: < preserve_ordering: true >
parameters { key: "a" value: { string_value: "one " 'two '
  "three" } }
instance_group []
[some.extension] { x: 1 }
"#;
    let expected = "\
name@2 \"m\"
max_batch_size@2 8
backend@2 \"on'nx\"
input@4 a message
 name@4 \"x\"
 data_type@4 TYPE_FP32
 dims@4 -1
 dims@4 3
input@5 a message
 name@5 \"y\"
 dims@5 2
 dims@5 16
dynamic_batching@7 a message
 preserve_ordering@7 true
parameters@8 a message
 key@8 \"a\"
 value@8 a message
  string_value@8 \"one two three\"
[some.extension]@11 a message
 x@11 1
";
    assert_eq!(lines(text), expected);
    assert_eq!(lines("\u{feff}a: 1"), "a@1 1\n");
    assert_eq!(lines(" \r\n\t# only blanks"), "");
}

#[test]
fn scalars_have_all_forms() {
    for (text, shown) in [
        ("0", "0"),
        ("- 7", "-7"),
        ("017", "15"),
        ("0XfF", "255"),
        ("18446744073709551615", "18446744073709551615"),
        ("1.5", "1.5"),
        (".5f", "0.5"),
        ("1e3", "1000"),
        ("-2.5E-1", "-0.25"),
        ("-inf", "-inf"),
        ("inf", "inf"),
        ("KIND_GPU", "KIND_GPU"),
        (r#""\x41\102\u00e9\U0001F600\n""#, r#""ABé😀\n""#),
        (r#""\?\\\"""#, r#""?\\\"""#),
        (r#""\303\251""#, r#""é""#),
    ] {
        assert_eq!(lines(&format!("x: {text}")), format!("x@1 {shown}\n"), "{text}");
    }
}

#[test]
fn what_is_not_in_the_format_is_named_with_its_line() {
    for (text, expected) in [
        ("\nx", "line 2: x has no value"),
        ("x 5", "line 1: x has no value"),
        ("x:\n", "line 2: the file ends where a value must stand"),
        ("x: }", "line 1: '}' stands where a value must stand"),
        ("}", "line 1: '}' stands where the name of a field must stand"),
        ("x {\n y: 1\n", "line 1: the message that begins here has no '}' at its end"),
        ("x < y: 1 }", "line 1: '}' stands where the name of a field must stand"),
        ("x: [1,\n 2", "line 1: the list that begins here has no \"]\" at its end"),
        ("x: [1 2]", "line 1: '2' stands where \",\" or \"]\" must stand"),
        ("x: [[1]]", "line 1: a list stands in a list"),
        ("\nx: \"abc", "line 2: the text has no \" at its end"),
        ("x: 'a\nb'", "line 1: the text has no ' at its end"),
        ("x: \"a\\", "line 1: the text ends after a"),
        (r#"x: "\777""#, "line 1: \"\\\" before '7' does not name a byte"),
        (r#"x: "\q""#, "line 1: \"\\\" before 'q' does not name a byte"),
        (r#"x: "\ud800""#, "line 1: a \"\\u\" does not name a character"),
        (r#"x: "\u12""#, "line 1: a \"\\u\" does not name a character"),
        (r#"x: "\xff""#, "line 1: the text is not UTF-8"),
        ("x: 08", "line 1: 08 is not a number"),
        (
            "x: 18446744073709551616",
            "line 1: 18446744073709551616 is not a number, or it is larger",
        ),
        ("x: 1.2.3", "line 1: 1.2.3 is not a number"),
        ("x: -y", "line 1: a number must follow"),
        ("é: 1", "line 1: 'é' stands where the name of a field must stand"),
        ("[x", "line 1: the name after \"[\" has no \"]\""),
    ] {
        let error = refused(text);
        assert!(error.starts_with(expected), "{text:?}: {error}");
    }
}

#[test]
fn hostile_files_are_refused_in_time() {
    let many = 1 << 20;
    assert_eq!(refused("x{".repeat(many / 2)), "line 1: more than 64 levels of messages");
    assert_eq!(refused("x:[{".repeat(many / 4)), "line 1: more than 64 levels of messages");
    assert!(refused("[".repeat(many)).contains("has no \"]\" at its end"));
    assert!(refused(format!("x:{}", "[".repeat(many))).contains("a list stands in a list"));
    assert!(refused(format!("x:\"{}", "a".repeat(many))).contains("has no \" at its end"));
    assert!(refused("9".repeat(many)).contains("the name of a field"));
    let long = refused(format!("x:{}", "9".repeat(many)));
    assert!(long.contains("is not a number") && long.len() < 200, "{long}");
    let long = refused("x".repeat(many));
    assert!(long.contains("has no value") && long.len() < 200, "{long}");
    refused([0xff, 0xfe, 0, b'x']);
    refused(b"x: \"\xff\xfe\"");
    // One long name for many values.
    let list = format!("{}: [{}]", "x".repeat(many / 2), "1,".repeat(many / 4));
    assert_eq!(parse(list.as_bytes()).unwrap().fields.len(), many / 4);
    let deep = format!("{}{}", "x{".repeat(64), "}".repeat(64));
    assert_eq!(lines(&deep).lines().count(), 64);
}

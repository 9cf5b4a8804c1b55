use gristmill_core::Texts;

use super::*;
use crate::capability::json::rows;

fn may_go_on() -> Result<(), CpuExhausted> {
    Ok(())
}

fn raw(json: &str) -> &RawValue {
    serde_json::from_str(json).unwrap()
}

/// The elements as texts, with their shape, or the fault.
fn read(json: &str, keys: &[&str], dtype: Dtype) -> Result<(Vec<usize>, Vec<String>), String> {
    let (limit, place) = (1 << 20, &Place::of("/x"));
    let capacity = bytes_max(raw(json), dtype, limit);
    let target = ElementsTarget { dtype, limit, capacity, place, may_go_on: &may_go_on };
    let keys: Vec<String> = keys.iter().map(|key| (*key).to_owned()).collect();
    let read = match &keys[..] {
        [] => target.values(raw(json)),
        keys => rows::read(&target, raw(json), keys),
    };
    let Elements { shape, bytes } = read.map_err(|fault| match fault {
        Fault::Value(why) => why,
        Fault::Exhausted(_) => "exhausted".into(),
    })?;
    assert!(bytes.len() <= capacity, "{json} as {dtype}");
    macro_rules! texts {
        ($type:ty, $size:literal) => {
            bytes
                .as_chunks::<$size>()
                .0
                .iter()
                .map(|bytes| <$type>::from_le_bytes(*bytes).to_string())
                .collect()
        };
    }
    let elements = match dtype {
        Dtype::Bool | Dtype::Uint8 => texts!(u8, 1),
        Dtype::Int8 => texts!(i8, 1),
        Dtype::Uint16 => texts!(u16, 2),
        Dtype::Int16 => texts!(i16, 2),
        Dtype::Uint32 => texts!(u32, 4),
        Dtype::Int32 => texts!(i32, 4),
        Dtype::Uint64 => texts!(u64, 8),
        Dtype::Int64 => texts!(i64, 8),
        Dtype::Float16 => texts!(f16, 2),
        Dtype::Bfloat16 => texts!(bf16, 2),
        Dtype::Float32 => texts!(f32, 4),
        Dtype::Float64 => texts!(f64, 8),
        Dtype::String => Texts::of(&bytes)
            .map(|text| String::from_utf8(text.unwrap().to_vec()).unwrap())
            .collect(),
    };
    Ok((shape.to_vec(), elements))
}

#[test]
fn lists_are_dimensions() {
    for (json, shape, elements) in [
        ("[[1,2.5,-3e2],[4,5,6]]", &[2, 3][..], &["1", "2.5", "-300", "4", "5", "6"][..]),
        ("7", &[], &["7"]),
        ("[7]", &[1], &["7"]),
        ("[]", &[0], &[]),
        ("[[],[]]", &[2, 0], &[]),
        (" [ [ [ 1 ] , [ 2 ] ] ] ", &[1, 2, 1], &["1", "2"]),
        ("[0.1,16777217,1e-50]", &[3], &["0.1", "16777216", "0"]),
    ] {
        let (found, values) = read(json, &[], Dtype::Float32).unwrap();
        assert_eq!(found, shape, "{json}");
        assert_eq!(values, elements, "{json}");
    }
}

#[test]
fn every_dtype_has_its_values() {
    for (json, dtype, elements) in [
        ("[true,false]", Dtype::Bool, &["1", "0"][..]),
        ("[0,255]", Dtype::Uint8, &["0", "255"]),
        ("[-128,127]", Dtype::Int8, &["-128", "127"]),
        ("[65535]", Dtype::Uint16, &["65535"]),
        ("[-32768]", Dtype::Int16, &["-32768"]),
        ("[4294967295]", Dtype::Uint32, &["4294967295"]),
        ("[-2147483648]", Dtype::Int32, &["-2147483648"]),
        ("[18446744073709551615]", Dtype::Uint64, &["18446744073709551615"]),
        ("[-9223372036854775808]", Dtype::Int64, &["-9223372036854775808"]),
        ("[0.1,65504]", Dtype::Float16, &["0.099975586", "65504"]),
        ("[0.1,3]", Dtype::Bfloat16, &["0.100097656", "3"]),
        ("[0.1,18446744073709551616]", Dtype::Float64, &["0.1", "18446744073709552000"]),
        // serde_json reads another last digit.
        ("[31.245270191439438]", Dtype::Float64, &["31.245270191439438"]),
        ("[-0,-0.0]", Dtype::Float32, &["-0", "-0"]),
        ("[-0]", Dtype::Uint8, &["0"]),
        (r#"["a","","\u00e4\n\"","b,c"]"#, Dtype::String, &["a", "", "\u{e4}\n\"", "b,c"]),
    ] {
        assert_eq!(read(json, &[], dtype).unwrap().1, elements, "{json}");
    }
}

#[test]
fn objects_are_rows() {
    for (json, keys, shape, elements) in [
        (r#"[{"b":2,"a":1},{"a":3,"b":4}]"#, &["a", "b"][..], &[2, 2], &["1", "2", "3", "4"][..]),
        (r#"[{"x":[1,2],"id":"p","y":3}]"#, &["y", "x"], &[1, 3], &["3", "1", "2"]),
        (r#"[{"a":1,"a":2}]"#, &["a"], &[1, 1], &["2"]),
        (r#"[{"\u0061":1}]"#, &["a"], &[1, 1], &["1"]),
        ("[]", &["a", "b"], &[0, 2], &[]),
        (r#"[{"x":[]},{"x":[]}]"#, &["x"], &[2, 0], &[]),
    ] {
        let (found, values) = read(json, keys, Dtype::Float32).unwrap();
        assert_eq!(found, shape, "{json}");
        assert_eq!(values, elements, "{json}");
    }
    let (_, ids) = read(r#"[{"id":"p"},{"id":"q"}]"#, &["id"], Dtype::String).unwrap();
    assert_eq!(ids, ["p", "q"]);
}

#[test]
fn a_fault_says_where_it_is_and_what_is_there() {
    let deep = "[".repeat(40) + "1" + &"]".repeat(40);
    let long = format!("[1{}]", "0".repeat(100));
    let cut = format!("/x/0 is out of INT64's range: 1{}..", "0".repeat(59));
    for (json, dtype, fault) in [
        (r#"[[1,2],[3,"4"]]"#, Dtype::Float32, "/x/1/1 is a text, not a number"),
        ("[[1,2],[3]]", Dtype::Float32, "/x/1 has 1 values, not 2 as the lists before it"),
        ("[[1,2],3]", Dtype::Float32, "/x/1 is a number, not a list as the values before it"),
        ("[[],3]", Dtype::Float32, "/x/1 is a number, not a list as the values before it"),
        ("[1,[2]]", Dtype::Float32, "/x/1 is a list, not a number"),
        ("[1,null]", Dtype::Float32, "/x/1 is null, not a number"),
        (r#"{"a":1}"#, Dtype::Float32, "/x is an object, not a number"),
        ("[true]", Dtype::Int8, "/x/0 is a boolean, not a number"),
        ("[1]", Dtype::Bool, "/x/0 is a number, not true or false"),
        ("[1]", Dtype::String, "/x/0 is a number, not a text"),
        ("[256]", Dtype::Uint8, "/x/0 is out of UINT8's range: 256"),
        ("[-1]", Dtype::Uint64, "/x/0 is out of UINT64's range: -1"),
        ("[1.5]", Dtype::Int32, "/x/0 is 1.5, not an integer"),
        ("[1e39]", Dtype::Float32, "/x/0 is out of FP32's range: 1e39"),
        ("[70000]", Dtype::Float16, "/x/0 is out of FP16's range: 70000"),
        ("[1e999]", Dtype::Float64, "/x/0 is out of FP64's range: 1e999"),
        ("[1.0]", Dtype::Int64, "/x/0 is 1.0, not an integer"),
        (
            "[18446744073709551616]",
            Dtype::Uint64,
            "/x/0 is out of UINT64's range: 18446744073709551616",
        ),
        (r#"["\ud800"]"#, Dtype::String, "/x/0: unexpected end of hex escape at line 1 column 8"),
        (&long, Dtype::Int64, &cut),
        (&deep, Dtype::Float32, ""),
    ] {
        let found = read(json, &[], dtype).unwrap_err();
        match fault {
            "" => assert!(found.ends_with("is over 32 lists deep"), "{found}"),
            fault => assert_eq!(found, fault, "{json}"),
        }
    }
    for (json, fault) in [
        (r#"[{"a":1},{"b":2}]"#, "/x/1/a is missing"),
        (r#"[{"a":1},{"a":[2,3]}]"#, "/x/1/a has 2 values, not 1 as in the objects before it"),
        (r#"[{"a":[1,"2"]}]"#, "/x/0/a/1 is a text, not a number"),
        (r#"[{"a":[[1]]}]"#, "/x/0/a is a list of lists, not of values"),
        (r#"[{"a":1},[1]]"#, "/x/1 is a list, not an object"),
        (r#"{"a":1}"#, "/x is an object, not a list"),
        ("null", "/x is null, not a list"),
        (r#"[{"\ud800":1}]"#, "/x/0: unexpected end of hex escape at line 1 column 9"),
    ] {
        assert_eq!(read(json, &["a"], Dtype::Float32).unwrap_err(), fault, "{json}");
    }
}

#[test]
fn reading_ends_when_it_may_not_go_on() {
    let stop = || Err(CpuExhausted);
    let place = Place::of("");
    let (dtype, limit) = (Dtype::Float32, 1 << 20);
    let target = ElementsTarget { dtype, limit, capacity: limit, place: &place, may_go_on: &stop };
    let numbers = format!("[{}0]", "0,".repeat(5000));
    assert!(matches!(target.values(raw(&numbers)), Err(Fault::Exhausted(_))));
    let names = format!("[{{{}\"a\":0}}]", "\"b\":0,".repeat(5000));
    let found = rows::read(&target, raw(&names), &["a".into()]);
    assert!(matches!(found, Err(Fault::Exhausted(_))));
}

#[test]
fn reading_ends_at_the_limit() {
    let place = Place::of("");
    let of = |json, dtype| {
        let (limit, capacity) = (10, bytes_max(raw(json), dtype, 10));
        ElementsTarget { dtype, limit, capacity, place: &place, may_go_on: &may_go_on }
    };
    for (json, dtype) in [("[1,2,3]", Dtype::Float32), (r#"["ab","cdef"]"#, Dtype::String)] {
        let Err(Fault::Value(why)) = of(json, dtype).values(raw(json)) else {
            panic!("{json} is read")
        };
        assert_eq!(why, "the values are over the limit of 10 bytes for one tensor");
    }
    // What is not read takes no room.
    let notes = format!(r#"[{{"a":1,"note":"{}"}}]"#, ",".repeat(1000));
    let read = rows::read(&of(&notes, Dtype::Float64), raw(&notes), &["a".into()]).unwrap();
    assert!(read.bytes.capacity() <= 10 + 8);
}

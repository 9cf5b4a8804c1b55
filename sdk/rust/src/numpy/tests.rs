use super::*;

/// The program that reading `array` sends.
fn program(array: &Array<'_>) -> String {
    let Err(Failure::Internal(text)) = array.view::<f32>() else { panic!("it was computed") };
    let (before, program) = text.split_once("the program is ").unwrap();
    assert!(before.contains("gristmill plugin test"), "{text}");
    program.strip_suffix(')').unwrap().to_owned()
}

fn given() -> Array<'static> {
    Array::from_slice(&[2, 3], &[1_f32, 2.0, 3.0, 4.0, 5.0, 6.0]).unwrap()
}

#[test]
fn a_formula_is_one_program() {
    let rows = given();
    let scaled = (&rows - rows.mean(0)) / 2.0;
    assert_eq!(
        program(&scaled),
        "[[\"number\",[],[2.0]],[\"mean\",[0],[0,false]],[\"subtract\",[0,2],[]],\
         [\"divide\",[3,1],[]]]"
    );
}

#[test]
fn parameters_are_written_as_the_host_reads_them() {
    let one = given();
    let of = |array: &Array<'_>| {
        let text = program(array);
        text[1..text.len() - 1].to_owned()
    };
    for (array, wanted) in [
        (one.sum(()), "[\"sum\",[0],[null,false]]"),
        (one.max(kept([0, 1])), "[\"max\",[0],[[0,1],true]]"),
        (one.std(1, 1.0), "[\"std\",[0],[1,false,1.0]]"),
        (one.reshape([3, -1]), "[\"reshape\",[0],[[3,-1]]]"),
        (one.transpose(), "[\"permute_dims\",[0],[null]]"),
        (one.astype(Dtype::Int64), "[\"astype\",[0],[\"int64\"]]"),
        (one.nms(&one, 0.5, None, Some(7)), "[\"nms\",[0,0],[0.5,null,7]]"),
        (Array::full([2], f64::NAN, Dtype::Float32), "[\"full\",[],[\"nan\",[2],\"float32\"]]"),
        (Array::from(-f32::INFINITY), "[\"number\",[],[\"-inf\"]]"),
        (Array::from(u64::MAX), "[\"number\",[],[18446744073709551615]]"),
        (
            one.index([part(1..), part(..), part(-1), part(..=-1), Part::NewAxis, part(&one)]),
            "[\"index\",[0,0],[[[1,null,null],[null,null,null],-1,[null,null,null],null,\"array\"]]]",
        ),
    ] {
        assert_eq!(of(&array), wanted);
    }
}

#[test]
fn long_chains_do_not_overflow() {
    let mut sum = given();
    for _ in 0..100_000 {
        sum = sum + 1;
    }
    assert!(sum.shape().is_err());
}

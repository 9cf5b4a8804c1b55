//! Operations stop when they are told to, take no memory that was refused, and give a step back
//! that is too large for its thread.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::cell::Cell;

use gristmill_arrays::{Kind, Program, Room, Run, Stop};
use gristmill_core::{BufferPool, Dtype, Shape, Tensor};

struct Bounds {
    pool: BufferPool,
    /// How often an operation may go on.
    turns: Cell<usize>,
    bytes_left: usize,
    inline_max: usize,
    reserved: usize,
}

impl Bounds {
    fn new() -> Self {
        Self {
            pool: BufferPool::new(0),
            turns: Cell::new(usize::MAX),
            bytes_left: 1 << 30,
            inline_max: usize::MAX,
            reserved: 0,
        }
    }
}

impl Room for Bounds {
    fn pool(&self) -> &BufferPool {
        &self.pool
    }

    fn reserve(&mut self, bytes: usize) -> Result<(), Stop> {
        self.touch(bytes)?;
        self.bytes_left = self.bytes_left.checked_sub(bytes).ok_or(Stop::Host)?;
        self.reserved += bytes;
        Ok(())
    }

    fn touch(&mut self, bytes: usize) -> Result<(), Stop> {
        if bytes > self.inline_max { Err(Stop::Elsewhere) } else { Ok(()) }
    }

    fn go_on(&self) -> Result<(), Stop> {
        let left = self.turns.get().checked_sub(1).ok_or(Stop::Host)?;
        self.turns.set(left);
        Ok(())
    }
}

/// Run one step on arrays of this shape, with the numbers from 0 on as its elements.
fn run(step: &str, dtype: Dtype, shapes: &[&[usize]], bounds: &mut Bounds) -> Result<Tensor, Stop> {
    let arrays = shapes.iter().map(|shape| {
        let count = shape.iter().product::<usize>();
        let bytes: Vec<u8> = match dtype {
            Dtype::Float32 => (0..count).flat_map(|at| (at as f32).to_le_bytes()).collect(),
            _ => (0..count).flat_map(|at| ((at % 7) as i64).to_le_bytes()).collect(),
        };
        Tensor::new(dtype, Shape::from_slice(shape), bounds.pool.copy_from(&bytes)).unwrap()
    });
    let arrays: Vec<_> = arrays.collect();
    let last = arrays.len() as u32;
    let program = Program::parse(&format!("[{step}]"), arrays.len(), &[last]).unwrap();
    let mut run = Run::new(&program, arrays);
    run.step(bounds)?;
    run.result(last, bounds)
}

/// Steps on one array or two of 200,000 elements.
const LONG: &[(&str, &[&[usize]])] = &[
    (r#"["add", [0, 1], []]"#, &[&[200_000], &[200_000]]),
    (r#"["add", [0, 1], []]"#, &[&[200_000, 1], &[1]]),
    (r#"["exp", [0], []]"#, &[&[200_000]]),
    (r#"["where", [0, 0, 1], []]"#, &[&[200_000], &[200_000]]),
    (r#"["sum", [0], [null]]"#, &[&[200_000]]),
    (r#"["sum", [0], [0]]"#, &[&[100_000, 2]]),
    (r#"["argmax", [0], [1]]"#, &[&[100_000, 2]]),
    (r#"["std", [0], [0]]"#, &[&[200_000]]),
    (r#"["softmax", [0], [0]]"#, &[&[200_000]]),
    (r#"["cumulative_sum", [0], [0]]"#, &[&[200_000]]),
    (r#"["sort", [0], [0]]"#, &[&[200_000]]),
    (r#"["argsort", [0], [0]]"#, &[&[200_000]]),
    (r#"["argtopk", [0], [0, 5]]"#, &[&[200_000]]),
    (r#"["unique_values", [0], []]"#, &[&[200_000]]),
    (r#"["nonzero", [0], []]"#, &[&[200_000]]),
    (r#"["searchsorted", [0, 1], []]"#, &[&[10], &[200_000]]),
    (r#"["permute_dims", [0], [null]]"#, &[&[400, 500]]),
    (r#"["concat", [0, 1], [1]]"#, &[&[2_000, 100], &[2_000, 1]]),
    (r#"["repeat", [0], [100, 0]]"#, &[&[2_000]]),
    (r#"["broadcast_to", [0], [[100, 2000]]]"#, &[&[2_000]]),
    (r#"["index", [0], [[[null, null, -1]]]]"#, &[&[200_000]]),
    (r#"["take_along_axis", [0, 1], [0]]"#, &[&[10], &[200_000]]),
    (r#"["full", [], [1, [200000], "float32"]]"#, &[]),
    (r#"["arange", [], [0, 200000, 1, null]]"#, &[]),
    (r#"["eye", [], [2000, 200, 0, "int8"]]"#, &[]),
    (r#"["matmul", [0, 1], []]"#, &[&[300, 300], &[300, 300]]),
    (r#"["nms", [0, 1], [0.5]]"#, &[&[20_000, 4], &[20_000]]),
];

#[test]
fn long_operations_end_when_they_may_not_go_on() {
    for (step, shapes) in LONG {
        // Indices have to be integers within the axis.
        let is_index = step.contains("take_along_axis") || step.contains("unique");
        let dtype = if is_index { Dtype::Int64 } else { Dtype::Float32 };
        let mut bounds = Bounds::new();
        assert!(run(step, dtype, shapes, &mut bounds).is_ok(), "{step}");
        bounds.turns.set(0);
        let stopped = run(step, dtype, shapes, &mut bounds);
        assert!(matches!(stopped, Err(Stop::Host)), "{step}: {stopped:?}");
    }
}

#[test]
fn no_memory_is_taken_that_was_refused_and_large_steps_are_given_back() {
    for (step, shapes) in LONG {
        let dtype = if step.contains("take_along_axis") { Dtype::Int64 } else { Dtype::Float32 };
        let mut bounds = Bounds { bytes_left: 0, ..Bounds::new() };
        let refused = run(step, dtype, shapes, &mut bounds);
        assert!(matches!(refused, Err(Stop::Host)), "{step}: {refused:?}");
        let mut bounds = Bounds { inline_max: 1_000, ..Bounds::new() };
        let elsewhere = run(step, dtype, shapes, &mut bounds);
        assert!(matches!(elsewhere, Err(Stop::Elsewhere)), "{step}: {elsewhere:?}");
    }
}

#[test]
fn what_does_not_fit_is_a_fault_and_no_panic() {
    let ops = [
        "number",
        "literal",
        "full",
        "arange",
        "linspace",
        "eye",
        "one_hot",
        "astype",
        "where",
        "cumulative_sum",
        "softmax",
        "normalize",
        "sort",
        "argsort",
        "argtopk",
        "unique_values",
        "unique_counts",
        "nonzero",
        "searchsorted",
        "searchsorted_right",
        "take_along_axis",
        "flip",
        "index",
        "take",
        "reshape",
        "permute_dims",
        "broadcast_to",
        "concat",
        "stack",
        "repeat",
        "matmul",
        "nms",
        "add",
        "subtract",
        "divide",
        "floor_divide",
        "remainder",
        "power",
        "less",
        "logical_and",
        "bitwise_and",
        "left_shift",
        "negative",
        "floor",
        "isnan",
        "invert",
        "exp",
        "sum",
        "argmax",
        "any",
        "std",
        "unknown",
    ];
    let params = [
        "[]",
        "[null]",
        "[0]",
        "[-1]",
        "[9]",
        "[-9]",
        "[true]",
        r#"["nan"]"#,
        r#"["float32"]"#,
        "[[]]",
        "[[0]]",
        "[[-1]]",
        "[[9]]",
        "[[0, 0]]",
        "[[1, 0]]",
        "[[4611686018427387904, 4]]",
        "[9223372036854775807]",
        "[-9223372036854775808, 1]",
        "[1e300, 1e300, 1e-300]",
        "[0, 9223372036854775807, 1]",
        "[0, [3], \"int8\"]",
        "[0, 3, \"float16\"]",
        r#"["int8", [2], [1, 300]]"#,
        r#"[["..."]]"#,
        r#"[["...", "..."]]"#,
        r#"[["array"]]"#,
        r#"[["array", "array"]]"#,
        "[[[null, null, 0]]]",
        "[[null, null, null, null]]",
        "[[[9223372036854775807, -9223372036854775808, -9223372036854775808]]]",
        "[[[1, null, 9223372036854775807]]]",
        "[0, -1]",
        "[0, 1, 2, 3, 4]",
        "[[[[]]]]",
    ];
    let shapes: [&[&[usize]]; 8] = [
        &[],
        &[&[]],
        &[&[0]],
        &[&[3]],
        &[&[2, 3], &[3]],
        &[&[0, 3], &[3, 0]],
        &[&[2, 0, 3], &[2], &[1]],
        &[&[1, 1, 1, 1, 1, 1, 1, 2], &[2], &[2, 1]],
    ];
    let mut made = 0;
    for dtype in [Dtype::Float32, Dtype::Int64] {
        for op in ops {
            for params in params {
                for shapes in shapes {
                    let operands: Vec<_> = (0..shapes.len()).collect();
                    let step = format!(r#"["{op}", {operands:?}, {params}]"#);
                    let mut bounds = Bounds { bytes_left: 1 << 20, ..Bounds::new() };
                    match run(&step, dtype, shapes, &mut bounds) {
                        Ok(_) => made += 1,
                        Err(Stop::Fault(_, why)) => assert!(!why.is_empty(), "{step}"),
                        Err(Stop::Host) => assert!(bounds.reserved <= 1 << 20),
                        Err(Stop::Elsewhere) => panic!("{step}"),
                    }
                }
            }
        }
    }
    assert!(made > 2_000, "{made}");
}

/// Run a program without arrays.
fn run_all(steps: &[String], bounds: &mut Bounds) -> Result<(), Stop> {
    let program = Program::parse(&format!("[{}]", steps.join(",")), 0, &[]).unwrap();
    let mut run = Run::new(&program, Vec::new());
    while run.next_step().is_some() {
        run.step(bounds)?;
    }
    Ok(())
}

#[test]
fn shapes_whose_sizes_overflow_are_faults() {
    let one = |step: &str| vec![step.to_owned()];
    let full = |shape: &str| format!(r#"["full", [], [0, {shape}, "uint8"]]"#);
    let far = |at: usize| {
        let shape: Vec<_> = (0..4).map(|axis| if axis == at { 65_536 } else { 1 }).collect();
        full(&format!("{shape:?}"))
    };
    let parts = [r#""array""#; 4].join(",");
    let mut crossed = vec![full("[1, 1, 1, 1]"), far(0), far(1), far(2), far(3)];
    crossed.push(format!(r#"["index", [0, 1, 2, 3, 4], [[{parts}]]]"#));
    let many_ones = format!(r#"["reshape", [0], [[{}1]]]"#, "1,".repeat(100_000));
    let many_axes = format!(r#"["index", [0], [[{}null]]]"#, "null,".repeat(100_000));
    let nine = "[1,1,1,1,1,1,1,1,1]";
    for steps in [
        crossed,
        one(r#"["full", [], [0, [0, 1152921504606846976], "float64"]]"#),
        one(&full("[4294967295, 4294967295, 0]")),
        vec![full("[1]"), many_ones],
        vec![full("[1]"), many_axes],
        vec![full("[1]"), format!(r#"["reshape", [0], [{nine}]]"#)],
        vec![full("[1, 1, 1, 1]"), r#"["index", [0], [[null, null, null, null, null]]]"#.into()],
        vec![full("[1]"), r#"["repeat", [0], [9223372036854775807, 0]]"#.into()],
        one(r#"["eye", [], [4294967296, 4294967296]]"#),
        one(r#"["arange", [], [-9223372036854775808, 9223372036854775807, 1]]"#),
    ] {
        let last = steps.last().unwrap();
        let shown = &last[..last.len().min(100)];
        let ran = run_all(&steps, &mut Bounds::new());
        assert!(matches!(ran, Err(Stop::Fault(..) | Stop::Host)), "{shown}: {ran:?}");
    }
}

#[test]
fn a_program_is_read_in_a_bounded_multiple_of_its_text() {
    for text in [
        r#"[["add", [0, 0], [{"": 0}]]]"#.to_owned(),
        format!(r#"[["add", [0, 0], [{}0{}]]]"#, "[".repeat(4), "]".repeat(4)),
        format!(r#"[["concat", {:?}, [0]]]"#, vec![0; 2_000]),
        format!(r#"[["{}", [0], []]]"#, "x".repeat(100)),
        " ".repeat(2 << 20),
    ] {
        assert!(Program::parse(&text, 1, &[0]).is_err(), "{}", &text[..40]);
    }
}

#[test]
fn a_program_reads_only_what_was_made() {
    for (text, why) in [
        ("[", "EOF"),
        (r#"[["add", [0, 1], []]]"#, "step 0, add, reads array 1 before it is made"),
        (r#"[["add", [-1], []]]"#, "invalid value"),
        ("{}", "invalid type"),
    ] {
        let fault = Program::parse(text, 1, &[0]).unwrap_err();
        assert!(fault.contains(why), "{text}: {fault}");
    }
    assert!(Program::parse("[]", 1, &[1]).unwrap_err().contains("no array 1"));
    let many = format!("[{}]", vec![r#"["exp", [0], []]"#; 5_000].join(","));
    assert!(Program::parse(&many, 1, &[0]).unwrap_err().contains("limit of 4096"));
    let mut bounds = Bounds::new();
    let text = r#"["astype", [0], ["string"]]"#;
    let cast = run(text, Dtype::Float32, &[&[2]], &mut bounds);
    assert!(matches!(cast, Err(Stop::Fault(Kind::Type, _))), "{cast:?}");
}

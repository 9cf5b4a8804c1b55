//! Constants and sizes that are believed to be what a runtime does not compute. Each of these
//! graphs reduces over an axis that would be believed to be 1, and is 0.

use super::{proven, refused};

/// Rows of `x` that are reduced over the axis that `axis` computes as `a`.
fn reduced(x: &str, axis: &str) -> String {
    format!(
        "in x {x}; zero i {{0}}; one i {{1}}; two i {{2}}; {axis}
         m = ReduceMax(x, a); y = Sub(x, m); out y"
    )
}

fn not_believed(axis: &str) {
    refused(&reduced("[N,4]", axis), "");
}

#[test]
fn an_axis_that_is_computed_exactly_is_believed() {
    proven(&reduced("[N,4]", "a = Sub(two, one)"));
    proven(&reduced("[N,4]", "s = Shape(x); f = Cast(s) to=1; g = Gather(s, one); a = Div(g, g)"));
    proven(&reduced("[N,L,4]", "s = Shape(x) start=1 end=2; a = Div(s, s)"));
}

#[test]
fn narrow_types_wrap_around_and_round() {
    not_believed("k i {65536}; n = Cast(k) to=6; s = Mul(n, n); t = Cast(s) to=7; a = Min(t, one)");
    not_believed("k i {4294967296}; n = Cast(k) to=6; t = Cast(n) to=7; a = Min(t, one)");
    not_believed(
        "k i {16777217}; l i {16777216}; f = Cast(k) to=1; g = Cast(l) to=1; d = Sub(f, g)
         a = Cast(d) to=7",
    );
    // A product of rows, or of unknown dimensions, may be larger than the type.
    not_believed(
        "s = Shape(x) end=1; k i {65537}; n = Cast(s) to=6; l = Cast(k) to=6; p = Mul(n, l)
         q = Div(p, n); r = Div(q, l); a = Cast(r) to=7",
    );
    not_believed("f f []; h = Cast(f) to=7; a = Add(h, one)");
}

#[test]
fn a_step_to_the_front_is_not_believed() {
    not_believed(
        "l i {0,7}; b i {-5}; e i {-9}; n i {-1}; s = Slice(l, b, e, zero, n)
         c = Concat(s, one) axis=0; a = Gather(c, zero)",
    );
    not_believed(
        "l i {0,7}; e i {9223372036854775807}; n i {-1}; s = Slice(l, one, e, zero, n)
         c = Concat(s, one) axis=0; a = Gather(c, zero)",
    );
}

#[test]
fn axes_that_are_empty_mean_all_or_none() {
    let five = "l i {2,3}; p = ReduceProd(l) noop_with_empty_axes=1; g = Gather(p, zero)
                k i {5}; a = Sub(g, k)";
    refused(&reduced("[N,4,4]", five), "");
    not_believed(
        "w f [1,2]; e i {}; q = Squeeze(w, e); s = Shape(q); g = Gather(s, zero); a = Sub(two, g)",
    );
    not_believed("k i 7; n = NonZero(k); s = Shape(n); g = Gather(s, zero); a = Sub(one, g)");
}

#[test]
fn an_empty_dimension_is_not_believed() {
    not_believed(
        "w f [5,1]; n = Shape(x) end=1; z = Mul(n, zero); c = Concat(z, one) axis=0
         r = Reshape(w, c); s = Shape(r); g = Gather(s, zero); k i {5}; h = Div(g, k)
         a = Sub(one, h)",
    );
    // What is left of a dimension may be nothing.
    not_believed(
        "w f [9,1]; t = NonZero(w); s = Shape(t); r = Reshape(t, s); q = Shape(r)
         g = Gather(q, one); h = Gather(s, one); a = Div(g, h)",
    );
    refused("in x [N,4]; s i {0,0}; y = Reshape(x, s) allowzero=1; out y", "a size of its shape");
}

#[test]
fn windows_with_gaps_have_no_known_size() {
    let pool = "w f [1,1,8]; q = MaxPool(w) kernel_shape=[3] dilations=[2] auto_pad=\"SAME_UPPER\"
                s = Shape(q) start=2 end=3; k i {7}; a = Sub(s, k)";
    not_believed(pool);
}

#[test]
fn an_attribute_of_another_version_is_not_believed() {
    refused("in x [N,4]; c i {0}; y = ReduceMax(x, c) axes=[1]; out y", "of an older version");
    refused("opset 17; in x [N,4]; c i {0}; y = ReduceMax(x, c); out y", "of a newer version");
    refused("in x [N,1]; c i {0}; y = Squeeze(x, c) axes=[1]; out y", "of an older version");
    refused(
        "in x [N,4]; b i {0}; e i {2}; y = Slice(x, b, e) starts=[0] ends=[9]; out y",
        "of an older version",
    );
    refused("in x [N,4]; y, z = Split(x) axis=1 split=[2,2]; out y; out z", "of an older version");
    refused(
        "in x [N,4]; p i {0,1,0,1}; y = Pad(x, p) pads=[0,0,0,0]; out y",
        "of an older version",
    );
    refused(
        "opset 17; in x [N,4]; y = ReduceMax(x) noop_with_empty_axes=1; out y",
        "of a newer version",
    );
}

#[test]
fn nothing_is_interpolated_between_rows() {
    let resize = |input: &str, scales: &str, rest: &str| {
        format!("in x {input}; s i {scales}; y = Resize(x, , s) {rest}; out y")
    };
    let linear = "mode=\"linear\"";
    proven(&resize("[N,3,8,8]", "{1,1,2,2}", linear));
    proven(&resize("[N,8]", "{1,2}", "mode=\"nearest\""));
    refused(&resize("[N,8]", "{1,2}", linear), "it interpolates between the rows");
    refused(&resize("[N,3,8]", "{1,1,2}", linear), "it interpolates between the rows");
    refused(
        "in x [N,8]; u i {0,1}; t = Unsqueeze(x, u); s i {1,1,1,2}; r = Resize(t, , s) mode=\"cubic\"
         y = Squeeze(r, u); out y",
        "it interpolates between the rows",
    );
}

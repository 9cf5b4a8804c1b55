//! Graphs that move the rows, and compute shapes.

use super::{proven, refused};

#[test]
fn rows_are_joined_with_other_dimensions_and_parted_again() {
    proven("in x [N,4,3]; s i {-1,3}; t i {-1,4,3}; y = Reshape(x, s); z = Reshape(y, t); out z");
    proven("in x [N,T,6]; s i {0,0,2,3}; y = Reshape(x, s); z = Flatten(y); out z");
    // The attention of PyTorch: time first, then rows and heads in one dimension, and then time
    // and rows in one.
    proven(
        "in x [N,T,8]; first = Transpose(x) perm=[1,0,2]; sizes = Shape(first)
         zero i {0}; one i {1}; two i {2}; four i {4}; eight i {8}
         t = Gather(sizes, zero); n = Gather(sizes, one); heads = Mul(n, four)
         s1 = Concat(t, heads, two) axis=0; a = Reshape(first, s1); b = Transpose(a) perm=[1,0,2]
         c = Softmax(b); d = Transpose(c) perm=[1,0,2]
         all = Mul(t, n); s2 = Concat(all, eight) axis=0; e = Reshape(d, s2)
         w f [8,8]; f = Gemm(e, w); s3 = Concat(t, n, eight) axis=0; g = Reshape(f, s3)
         y = Transpose(g) perm=[1,0,2]; out y",
    );
    // A length that an exporter wrote as a number.
    proven(
        "in x [N,T,6]; a = Transpose(x) perm=[1,0,2]; s i {7,0,2,3}; b = Reshape(a, s)
            c = Transpose(b) perm=[1,0,2,3]; y = Relu(c); out y",
    );
    let mixes = "it mixes the rows with other dimensions";
    refused("in x [N,4,3]; s i {4,-1,3}; y = Reshape(x, s); z = Softmax(y); out z", mixes);
    refused(
        "in x [N,T,6]; a = Transpose(x) perm=[1,0,2]; s i {7,-1,6}; b = Reshape(a, s); out b",
        "cut into pieces",
    );
    refused("in x [N,T]; s i {-1,5}; y = Reshape(x, s); out y", "cut into pieces");
    refused("in x [N,3]; s i {3,-1}; y = Reshape(x, s); out y", mixes);
    refused("in x [N,3]; y = Flatten(x) axis=0; out y", "its rows are not in its first dimension");
    refused(
        "in x [N,3]; s i {1,-1}; y = Reshape(x, s); w = Transpose(y); z = MatMul(y, w); out z",
        "it sums over the rows",
    );
    refused("in x [N,1]; y = Squeeze(x); out y", "1 in some batches");
    refused("in x [N,1]; a i {0}; y = Squeeze(x, a); out y", "removes the dimension of the rows");
    proven("in x [N,1]; a i {1}; y = Squeeze(x, a); z = Unsqueeze(y, a); out z");
}

#[test]
fn what_is_repeated_for_each_row_is_the_same_for_all() {
    proven(
        "in x [N,4,3]; c f [1,1,3]; sizes = Shape(x); zero i {0}; n = Gather(sizes, zero)
         more i {-1,-1}; wanted = Concat(n, more) axis=0; minus i {-1}; is = Equal(wanted, minus)
         shape = Shape(wanted); ones = ConstantOfShape(shape)
         one i {1}; one2 i {1,1}; t = Concat(n, one2) axis=0; e = Expand(c, t)
         y = Concat(e, x) axis=1; out y",
    );
    proven(
        "in x [N,T,3]; sizes = Shape(x); zero i {0}; n = Gather(sizes, zero); h i {1,5}
         one i {1}; five i {5}; s = Concat(one, n, five) axis=0; state = ConstantOfShape(s)
         w f [1,20,3]; r f [1,20,5]; a = Transpose(x) perm=[1,0,2]
         all, last, cell = LSTM(a, w, r, , , state, state) hidden_size=5
         y = Squeeze(last, zero); out y",
    );
    refused("in x [N,3]; c f [4,3]; y = Concat(x, c) axis=0; out y", "joins the rows with others");
    refused("in x [N,3]; c f [4,3]; y = Concat(x, c) axis=1; out y", "different rows");
    refused("in x [N,3]; s i {5,3}; y = Expand(x, s); out y", "the rows meet a dimension");
    refused("in x [N,3]; r i {2,1}; y = Tile(x, r); out y", "makes several rows");
    proven("in x [N,3]; r i {1,2}; y = Tile(x, r); out y");
}

#[test]
fn no_row_is_taken_by_its_place() {
    let place = "some of the rows by their place";
    proven("in x [N,5]; c f [100,8]; y = Gather(c, x); out y");
    proven("in x [N,5]; i i {0,2}; y = Gather(x, i) axis=1; out y");
    proven("in x [N,5]; i i 0; y = Gather(x, i) axis=1; out y");
    proven("in x [N,5]; in i [N,2]; y = GatherElements(x, i) axis=1; out y");
    refused("in x [N,5]; i i {0,0}; y = Gather(x, i); out y", place);
    refused("in x [N,5]; in i [N,5]; y = GatherElements(x, i); out y", place);
    refused("in x [N,5]; in i [N]; y = Gather(x, i); out y", place);
    refused("in x [N,5]; i f [3,5]; y = GatherElements(x, i) axis=1; out y", "by the place");
    proven("in x [N,5]; s i {0}; e i {-1}; a i {1}; y = Slice(x, s, e, a); out y");
    proven("in x [N,5]; s i {0}; e i {9223372036854775807}; a i {0}; y = Slice(x, s, e, a); out y");
    refused("in x [N,5]; s i {1}; e i {9223372036854775807}; y = Slice(x, s, e); out y", place);
    refused(
        "in x [N,5]; s i {-1}; e i {-9223372036854775807}; a i {0}; m i {-1}
         y = Slice(x, s, e, a, m); out y",
        place,
    );
    refused("in x [N,5]; a, b = Split(x); out a", "it parts the rows");
    proven("in x [N,6]; a, b = Split(x) axis=1; out a; out b");
    proven("in x [N,5]; p i {0,1,0,1}; y = Pad(x, p); out y");
    refused("in x [N,5]; p i {1,0,0,0}; y = Pad(x, p); out y", "it pads the rows");
    proven("in x [N,3,H,W]; s i {1,1,2,2}; y = Resize(x, , s); out y");
    refused("in x [N,3,H,W]; s i {2,1,2,2}; y = Resize(x, , s); out y", "it resizes the rows");
}

#[test]
fn the_number_of_rows_is_no_data() {
    let count = "sizes = Shape(x); zero i 0; n = Gather(sizes, zero)";
    let number = "it computes with the number of rows";
    refused(&format!("in x [N,3]; {count}; y = Div(x, n); out y"), number);
    refused(
        &format!(
            "in x [N,3]; {count}; one i 1; r = Range(zero, n, one); a i {{1}}
                  p = Unsqueeze(r, a); y = Add(x, p); out y"
        ),
        number,
    );
    refused(
        &format!(
            "in x [N,3]; {count}; one i 1; r = Range(zero, n, one); c f [9,3]
                  y = Gather(c, r); out y"
        ),
        number,
    );
    refused(
        &format!(
            "in x [N,9]; {count}; a i {{1}}; s i {{0}}; e = Unsqueeze(n, s)
                  y = Slice(x, s, e, a); out y"
        ),
        "depends on the number of rows",
    );
}

#[test]
fn time_first_is_not_batch_first() {
    let weights = "w f [1,20,3]; r f [1,20,5]";
    refused(
        &format!("in x [T,B,3]; {weights}; y, h = LSTM(x, w, r) hidden_size=5; out y"),
        "node `y` (LSTM): the rows are its time",
    );
    proven(&format!("in x [N,T,3]; {weights}; y, h = LSTM(x, w, r) layout=1; out y; out h"));
    refused(
        &format!(
            "in x [N,T,3]; {weights}; c f [1,7,5]; a = Transpose(x) perm=[1,0,2]
                  y, h = LSTM(a, w, r, , , c); z = Transpose(y) perm=[2,0,1,3]; out z"
        ),
        "first states are not those of the rows",
    );
}

/// As exporters write `x[arange(n), i]`.
#[test]
fn numbers_of_rows_lead_to_the_rows_themselves() {
    let rows =
        "sizes = Shape(x); zero i 0; one i 1; n = Gather(sizes, zero); t = Gather(sizes, one)
                r = Range(zero, n, one); best = ArgMax(x) axis=1 keepdims=0; last i {1}";
    // In a flat list of all rows: the number of the row times its length, and a place in it.
    let flat = format!("in x [N,T]; {rows}; flat = Flatten(x) axis=2; start = Mul(r, t)");
    proven(&format!("{flat}; i = Add(start, best); y = Gather(flat, i); out y"));
    proven(&format!(
        "{flat}; rt = Range(zero, t, one); s = Unsqueeze(start, last)
                     i = Add(s, rt); y = Gather(flat, i); out y"
    ));
    proven(
        "in x [N,3]; sizes = Shape(x); zero i 0; one i 1; n = Gather(sizes, zero); c i {0,2}
            r = Range(zero, n, one); three i {3}; s = Mul(r, three); a i {1}; b = Unsqueeze(s, a)
            flat = Flatten(x) axis=2; i = Add(b, c); y = Gather(flat, i); out y",
    );
    let place = "it takes some of the rows by their place";
    let wrong = "it computes with the number of rows";
    refused(
        &format!("{flat}; two i 2; s = Mul(r, two); i = Add(s, best); y = Gather(flat, i); out y"),
        place,
    );
    refused(&format!("{flat}; i = Add(start, start); y = Gather(flat, i); out y"), place);
    refused(&format!("{flat}; i = Add(start, one); y = Gather(flat, i); out y"), place);
    refused(&format!("{flat}; i = Add(r, best); y = Gather(flat, i); out y"), place);
    refused(&format!("{flat}; i = Add(start, best); y = Cast(i) to=1; out y"), "number of rows");
    refused(&format!("{flat}; i = Add(start, best); out i"), "depends on the place of a row");
    refused(&format!("{flat}; i = Add(start, best); m = Max(i, i); s = Shape(m); out m"), wrong);
    // In tuples of indices.
    let tuples = format!("in x [N,T]; {rows}; a = Unsqueeze(r, last); b = Unsqueeze(best, last)");
    proven(&format!("{tuples}; i = Concat(a, b) axis=-1; y = GatherND(x, i); out y"));
    refused(&format!("{tuples}; i = Concat(b, a) axis=-1; y = GatherND(x, i); out y"), wrong);
    refused(
        &format!("{tuples}; i = Concat(a, b) axis=-1; c f [9,9]; y = GatherND(c, i); out y"),
        wrong,
    );
    proven(&format!(
        "opset 17; {tuples}; i = Concat(a, b) axis=-1; m = ReduceMax(x) axes=[1] keepdims=0
                     y = ScatterND(x, i, m); out y"
    ));
    refused(
        &format!("{tuples}; i = Concat(a, b) axis=-1; m f [5]; y = ScatterND(x, i, m); out y"),
        "by the place",
    );
}

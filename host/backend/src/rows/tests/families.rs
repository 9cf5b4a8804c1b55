//! Operators of particular fields.

use super::{proven, refused};

#[test]
fn scales_of_quantized_numbers_are_constants() {
    let one = "s f []; z f []";
    proven(&format!(
        "in x [N,3,4]; {one}; q = QuantizeLinear(x, s, z)
                     y = DequantizeLinear(q, s, z); out y"
    ));
    proven("in x [N,3,4]; s f [3]; y = QuantizeLinear(x, s) axis=1; out y");
    refused("in x [N,3,4]; s f [3]; y = QuantizeLinear(x, s) axis=0; out y", "differ by row");
    proven(&format!("in x [N,3]; w f [3,4]; {one}; y = MatMulInteger(x, w, z, z); out y"));
    refused("in x [N,3]; w f [3,4]; z f [5]; y = MatMulInteger(x, w, z); out y", "one number");
    proven(&format!(
        "in x [N,3,8]; w f [4,3,3]; b f [4]; {one}
                     y = QLinearConv(x, s, z, w, b, b, s, z); out y"
    ));
    proven(&format!(
        "in x [N,3]; w f [3,4]; b f [4]; {one}
                     y = QLinearMatMul(x, s, z, w, b, b, s, z); out y"
    ));
    let why = "quantize the model statically";
    refused("in x [N,3]; w f [3,4]; y = com.microsoft.DynamicQuantizeMatMul(x, w, w); out y", why);
    // A scale that is computed from the rows is one of the whole batch.
    refused(
        "in x [N,3]; s = ReduceMax(x); y = QuantizeLinear(x, s); out y",
        "reduces over the rows",
    );
}

#[test]
fn places_that_rows_name_are_places_in_these_rows() {
    proven("in x [N,5]; in i [N,2,1]; y = GatherND(x, i) batch_dims=1; out y");
    refused("in x [N,5]; in i [N,2]; y = GatherND(x, i); out y", "by the place of the rows");
    proven("in i [N,2]; c f [9,9,3]; y = GatherND(c, i); out y");
    proven("in x [N,5]; in i [N,2]; in u [N,2]; y = ScatterElements(x, i, u) axis=1; out y");
    refused(
        "in x [N,5]; in i [N,2]; in u [N,2]; y = ScatterElements(x, i, u); out y",
        "by the place",
    );
    refused("in x [N,5]; in i [N,2]; in u [N]; y = ScatterND(x, i, u); out y", "by the place");
    proven("in i [N]; d i 9; v f [2]; y = OneHot(i, d, v); out y");
    proven("in x [N,T,3]; in l [N]; y = ReverseSequence(x, l) batch_axis=0 time_axis=1; out y");
    refused(
        "in x [T,B,3]; in l [T]; y = ReverseSequence(x, l) batch_axis=1 time_axis=0; out y",
        "batch",
    );
    refused("in x [N,3]; y = NonZero(x); out y", "the number of its results depends on values");
    refused("in x [N,3]; y, a, b, c = Unique(x); out y", "depends on values");
    refused("in x [N,3]; in c [N]; y = Compress(x, c) axis=0; out y", "depends on values");
    refused("in x [N,3,9,9]; in r [N,4]; in b [N]; y = RoiAlign(x, r, b); out y", "by their place");
}

#[test]
fn attention_is_over_the_sequence_of_each_row() {
    proven(
        "opset 23; in q [N,T,8]; in m [N,1,T,T]; y = Attention(q, q, q, m) q_num_heads=2 kv_num_heads=2; out y",
    );
    proven("opset 23; in q [N,4,T,8]; m f [1,1,5,5]; y = Attention(q, q, q, m); out y");
    refused(
        "opset 23; in q [N,4,T,8]; m f [7,1,5,5]; y = Attention(q, q, q, m); out y",
        "its mask",
    );
    refused(
        "opset 23; in q [N,4,T,8]; k f [7,4,5,8]; y = Attention(q, k, k); out y",
        "not its batch",
    );
    refused("in q [T,B,8]; t = Transpose(q) perm=[1,0,2]; y = com.microsoft.MultiHeadAttention(t, t, t) num_heads=2
             z = Transpose(y) perm=[1,0,2]; out z", "not its batch");
    proven(
        "in q [N,T,8]; in m [N,T]; y = com.microsoft.MultiHeadAttention(q, q, q, , m) num_heads=2; out y",
    );
    proven(
        "in q [N,T,8]; w f [8,24]; b f [24]; y = com.microsoft.Attention(q, w, b) num_heads=2; out y",
    );
    proven(
        "opset 23; in x [N,2,T,8]; in p [N,T]; c f [99,4]; y = RotaryEmbedding(x, c, c, p); out y",
    );
    refused(
        "opset 23; in x [N,2,T,8]; c f [7,5,4]; y = RotaryEmbedding(x, c, c); out y",
        "not its batch",
    );
    // Over the rows themselves.
    refused(
        "in x [N,8]; w f [8,8]; q = MatMul(x, w); k = Transpose(q); s = MatMul(q, k)
             p = Softmax(s); y = MatMul(p, x); out y",
        "the rows meet other rows",
    );
}

#[test]
fn a_sample_is_a_row_of_a_matrix() {
    proven(
        "opset 17; in x [N,4]; classes i {5,6,7}; all i {-1}
         s = ai.onnx.ml.Scaler(x); f = ai.onnx.ml.Normalizer(s) norm=\"L2\"
         l, p = ai.onnx.ml.TreeEnsembleClassifier(f) classlabels_int64s=[5,6,7]
         one i {1,-1,3}; a = Reshape(p, one); axis i {0}; both = Concat(a, a) axis=0
         m = ReduceMean(both) axes=[0] keepdims=0; best = ArgMax(m) axis=1
         e = ai.onnx.ml.ArrayFeatureExtractor(classes, best); y = Reshape(e, all); out y; out m",
    );
    proven(
        "in a [N,1]; in b [N,2]; x = ai.onnx.ml.FeatureVectorizer(a, b)
            y = ai.onnx.ml.LinearRegressor(x); out y",
    );
    proven("in a [N,1]; l = ai.onnx.ml.LabelEncoder(a) keys_int64s=[1]; out l");
    refused("in x [N]; y = ai.onnx.ml.Normalizer(x); out y", "not a matrix with a sample");
    refused(
        "in x [N,4]; l, p = ai.onnx.ml.LinearClassifier(x); y = ai.onnx.ml.ZipMap(p); out y",
        "zipmap=False",
    );
    refused("in x [N]; y = StringNormalizer(x); out y", "depends on values");
    proven("in x [N,4]; y = TfIdfVectorizer(x); out y");
}

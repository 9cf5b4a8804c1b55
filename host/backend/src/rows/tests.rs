//! What is proven and what is refused, on graphs written as text.

mod beliefs;
mod branches;
mod builder;
mod families;
mod hostile;
mod shapes;

use tract_onnx::pb::ModelProto;

use super::obstacle::Obstacle;
use builder::verdict;

fn analyse(model: &ModelProto) -> Result<(), Obstacle> {
    super::analyse(model).map(drop)
}

fn proven(text: &str) {
    assert_eq!(verdict(text), Ok(()), "{text}");
}

fn refused(text: &str, why: &str) {
    let error = verdict(text).expect_err(text).to_string();
    assert!(error.contains(why), "{error}\n{text}");
}

#[test]
fn the_models_of_this_repository_are_proven() {
    for name in ["ranker", "digits"] {
        let onnx = std::fs::read(crate::tests::models().join(format!("{name}/{name}.onnx")));
        let model = prost::Message::decode(&onnx.unwrap()[..]).unwrap();
        assert_eq!(analyse(&model), Ok(()), "{name}");
    }
}

#[test]
fn an_obstacle_names_the_first_node_and_the_output() {
    let text = "in boxes [N,8,4]; in scores [N,1,8]
        selected = NonMaxSuppression(boxes, scores); more = Add(selected, selected); out more";
    let error = verdict(text).unwrap_err();
    assert_eq!(
        error.to_string(),
        "output `more`: node `selected` (NonMaxSuppression): the number of its results depends on \
         values"
    );
}

#[test]
fn all_inputs_and_outputs_must_have_the_rows_first() {
    proven("in x [N,3]; in y [N,3]; z = Add(x, y); out z");
    proven("in x [?,3]; y = Relu(x); out y");
    refused("in x [4,3]; y = Relu(x); out y", "input `x` has a fixed first dimension");
    refused("in x []; y = Relu(x); out y", "input `x` has no rows");
    // A request whose inputs have different numbers of rows is not one that can share a batch.
    proven("in x [N,3]; in y [M,3]; z = Add(x, y); out z");
    refused("in x [N,3]; in y [N,N]; z = Relu(x); out z", "in several dimensions of its inputs");
    refused("in x [N,3]; y = Transpose(x); out y", "output `y`: its rows are not in its first");
    refused("in x [N,3]; c f [1,3]; y = Relu(c); out y", "output `y`: it does not depend on");
    refused("in x [N,3]; y = Shape(x); out y", "output `y`: it depends on the number of rows");
    refused(
        "in x [N,4,3]; s i {-1,3}; y = Reshape(x, s); out y",
        "output `y`: a row of the inputs makes several rows",
    );
    // A default is the same for all.
    proven("in x [N,3]; in w [3,3]; w f [3,3]; y = MatMul(x, w); out y");
}

#[test]
fn unknown_operators_attributes_and_versions_are_refused() {
    refused("in x [N,3]; y = Frobnicate(x); out y", "the operator is not known");
    refused("in x [N,3]; y = other.Relu(x); out y", "the version of the operator is not known");
    refused("in x [N,3]; y = Relu(x) axis=0; out y", "its attribute `axis` is not known");
    refused("in x [N,3]; y = Softmax(x) axis=[1]; out y", "its attribute `axis` is not clear");
    refused("opset 6; in x [N,3]; c f [3]; r = RandomNormalLike(c); y = Add(x, r); out y", "");
    refused("opset 99; in x [N,3]; y = Relu(x); out y", "operators of opset 99 are not known");
    refused("in x [N,3]; y = Relu(z); out y", "nothing computes `z`");
    refused("in x [N,3]; x = Relu(x); out x", "two tensors have the name `x`");
}

#[test]
fn work_on_each_element_keeps_the_rows() {
    proven("in x [N,3]; c f [3]; y = Mul(x, c); z = Where(y, x, c); out z");
    proven("in x [N,1]; in y [N,5]; z = Sub(x, y); out z");
    proven("in x [N,3]; c f [1,3]; y = PRelu(x, c); z = Clip(y); out z");
    refused("in x [N,3]; c f [7,3]; y = Add(x, c); out y", "the rows meet a dimension of another");
    refused("in x [N,N2]; y = Transpose(x); z = Add(x, y); out z", "the rows meet");
    refused("in x [N,1]; y = Transpose(x); z = Sub(x, y); out z", "the rows meet");
    proven("t i {0}; in x [N,3]; y, m = Dropout(x, , t); out y; out m");
    refused("t i {1}; in x [N,3]; y, m = Dropout(x, , t); out y", "it trains");
}

#[test]
fn products_sum_over_other_dimensions() {
    proven("in x [N,3]; w f [3,4]; b f [4]; y = Gemm(x, w, b); out y");
    proven("in x [N,3]; w f [4,3]; b f [4]; y = Gemm(x, w, b) transB=1; out y");
    proven("in x [N,2,5]; in y [N,5,2]; z = MatMul(x, y); out z");
    proven("in x [N,2,5]; in y [N,5]; z = Einsum(x, y) equation=\"bij,bj->bi\"; out z");
    refused("in x [N,3]; y = Transpose(x); z = MatMul(x, y); out z", "the rows meet other rows");
    refused("in x [N,3]; y = Transpose(x); z = MatMul(y, x); out z", "it sums over the rows");
    refused("in x [N,3]; w f [3,4]; y = Gemm(x, w) transA=1; out y", "the rows");
    refused("in x [N,3]; y = Einsum(x, x) equation=\"bi,ci->bc\"; out y", "the rows meet");
    refused("in x [N,3]; y = Einsum(x) equation=\"bi->i\"; out y", "it sums over the rows");
}

#[test]
fn convolutions_and_pools_take_the_rows_as_their_batch() {
    proven(
        "in x [N,3,8,8]; w f [4,3,3,3]; b f [4]; g f [4]
         y = Conv(x, w, b) pads=[1,1,1,1]; z = BatchNormalization(y, g, b, b, g)
         p = MaxPool(z) kernel_shape=[2,2] strides=[2,2]; q = GlobalAveragePool(p)
         r = Flatten(q); out r",
    );
    proven("in x [N,3,H,W]; w f [3,4,2,2]; y = ConvTranspose(x, w) strides=[2,2]; out y");
    refused(
        "in x [N,3,8,8]; w f [4,3,3,3]; t = Transpose(x) perm=[1,0,2,3]; y = Conv(t, w)
         z = Transpose(y) perm=[1,0,2,3]; out z",
        "node `y` (Conv): the rows are in another dimension",
    );
    refused("in x [N,3,8,8]; y, i = MaxPool(x) kernel_shape=[2,2]; out i", "from the first row");
    refused(
        "in x [N,4]; b f [4]; y = BatchNormalization(x, b, b, b, b) training_mode=1; out y",
        "it trains",
    );
}

#[test]
fn nothing_is_normalised_or_reduced_over_the_rows() {
    proven("in x [N,5]; g f [5]; y = LayerNormalization(x, g); z = Softmax(y); out z");
    proven(
        "opset 17; in x [N,5,T]; y = ReduceMean(x) axes=[2]; z = ReduceMax(y) axes=[1] keepdims=0; out z",
    );
    proven("in x [N,5]; k i {2}; v, i = TopK(x, k); out v; out i");
    proven("in x [N,5]; a i {1}; y = CumSum(x, a); z = ArgMax(y) axis=1; out z");
    refused("in x [N,5]; y = Softmax(x) axis=0; out y", "it normalises over the rows");
    refused("opset 11; in x [N,5]; y = Softmax(x) axis=0; out y", "it normalises over the rows");
    proven("opset 11; in x [N,5]; y = Softmax(x); out y");
    refused("in x [N,5]; y = LayerNormalization(x, x) axis=0; out y", "it normalises over");
    refused("in x [N,3,4,4]; y = MeanVarianceNormalization(x); out y", "it normalises over");
    refused(
        "opset 17; in x [N,5]; m = ReduceMean(x) axes=[0]; y = Sub(x, m); out y",
        "it reduces over",
    );
    refused("in x [N,5]; m = ReduceMax(x); y = Div(x, m); out y", "it reduces over the rows");
    refused("in x [N,5]; a i {0}; y = CumSum(x, a); out y", "it sums up the rows");
    refused("in x [N,5]; k i {2}; v, i = TopK(x, k) axis=0; out v", "it sorts the rows");
    refused("in x [N,5]; y = LpNormalization(x) axis=0; out y", "it normalises over the rows");
    refused("in x [N,5]; q, s, z = DynamicQuantizeLinear(x); out q", "statically");
}

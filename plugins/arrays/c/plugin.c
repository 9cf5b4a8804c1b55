// Answers what each expression of a table gives, as the Python expression that means the same, and
// its dtype, shape and elements, or that it failed. Tests compare it with NumPy.
//
// It is for the model `digits`, which gets a blank picture.
#include <gristmill_arrays.h>
#include <math.h>
#include <string.h>

enum { SIDE = 28 };

static gm_status put_elements(gm_json_writer *json, gm_tensor *tensor) {
    gm_view view;
    GM_TRY(gm_tensor_view(tensor, gm_tensor_dtype(tensor), &view));
    gm_json_begin_array(json);
    gm_json_put_string(json, gm_dtype_name(view.dtype));
    gm_json_begin_array(json);
    for (size_t at = 0; at < view.shape.rank; at++) gm_json_put_integer(json, view.shape.dims[at]);
    gm_json_end_array(json);
    gm_json_begin_array(json);
    for (size_t at = 0; at < view.count; at++) {
        switch (view.dtype) {
        case GM_BOOL: gm_json_put_bool(json, view.u8[at]); break;
        case GM_INT64: gm_json_put_integer(json, view.i64[at]); break;
        case GM_FLOAT32: gm_json_put_double(json, view.f32[at]); break;
        case GM_FLOAT64: gm_json_put_double(json, view.f64[at]); break;
        default: return gm_internal("%s is not in the table", gm_dtype_name(view.dtype));
        }
    }
    gm_json_end_array(json);
    gm_json_end_array(json);
    return GM_OK;
}

static gm_status put(gm_json_writer *json, gm_program *np, const char *expression, gm_array array) {
    gm_json_begin_array(json);
    gm_json_put_string(json, expression);
    gm_tensor *tensor;
    if (gm_np_run(np, array, &tensor) == GM_OK) {
        GM_TRY(put_elements(json, tensor));
        gm_tensor_drop(tensor);
    } else {
        gm_json_put_string(json, "ValueError");
        gm_log(GM_INFO, "%s: %s", expression, gm_failure_text());
    }
    gm_json_end_array(json);
    return GM_OK;
}

#define ROW(expression, array) GM_TRY(put(json, np, expression, array))
#define NUMBER(value) gm_np_number(np, value)
#define INTEGER(value) gm_np_integer(np, value)

// Its arrays are those that `sdk/python/tests/array_table.py` has.
static gm_status put_table(gm_json_writer *json, gm_program *np) {
    static const float m_[] = {1.5f, -2, 0.25f, 4, -0.5f, 3};
    static const double n_[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
    static const int64_t i_[] = {2, 0, 1};
    static const uint8_t mask_[] = {1, 0, 1, 0, 1, 0};
    static const float boxes_[] = {0, 0, 10, 10, 1, 1, 11, 11, 20, 20, 30, 30};
    gm_tensor *tensor;
    GM_TRY(gm_tensor_create(GM_FLOAT32, GM_SHAPE(2, 3), m_, sizeof m_, &tensor));
    gm_array m = gm_np_tensor(np, tensor);
    gm_array n = gm_np_array(np, GM_FLOAT64, GM_SHAPE(2, 3, 2), n_, sizeof n_);
    gm_array i = gm_np_array(np, GM_INT64, GM_SHAPE(3), i_, sizeof i_);
    gm_array mask = gm_np_array(np, GM_BOOL, GM_SHAPE(2, 3), mask_, sizeof mask_);
    gm_array none = gm_np_zeros(np, GM_SHAPE(0, 3), GM_FLOAT32);
    gm_array boxes = gm_np_array(np, GM_FLOAT32, GM_SHAPE(3, 4), boxes_, sizeof boxes_);
    gm_array positive = gm_np_greater(np, m, INTEGER(0));
    gm_array turned = gm_np_permute_dims(np, m, GM_ALL_AXES);
    gm_array both[] = {m, m};

    ROW("m + 1", gm_np_add(np, m, INTEGER(1)));
    ROW("2.5 - m", gm_np_subtract(np, NUMBER(2.5), m));
    ROW("i * 2.0", gm_np_multiply(np, i, NUMBER(2)));
    ROW("i / 2", gm_np_divide(np, i, INTEGER(2)));
    ROW("m // 2", gm_np_floor_divide(np, m, INTEGER(2)));
    ROW("m % 2", gm_np_remainder(np, m, INTEGER(2)));
    ROW("i ** 3", gm_np_power(np, i, INTEGER(3)));
    ROW("np.maximum(m, -np.inf)", gm_np_maximum(np, m, NUMBER(-INFINITY)));
    ROW("~mask", gm_np_invert(np, mask));
    ROW("(i & 1) ^ (i << 2)", gm_np_bitwise_xor(np, gm_np_bitwise_and(np, i, INTEGER(1)),
                                                gm_np_left_shift(np, i, INTEGER(2))));
    ROW("np.exp(m)", gm_np_exp(np, m));
    ROW("np.log1p(i)", gm_np_log1p(np, i));
    ROW("1 / (1 + np.exp(-m))", gm_np_sigmoid(np, m));
    ROW("np.round(n / 7, 2)", gm_np_round(np, gm_np_divide(np, n, INTEGER(7)), 2));
    ROW("np.clip(m, -1, 2)", gm_np_clip(np, m, INTEGER(-1), INTEGER(2)));
    ROW("np.where(m > 0, m, 0)", gm_np_where(np, positive, m, INTEGER(0)));
    ROW("m.astype(np.int64)", gm_np_astype(np, m, GM_INT64));
    ROW("m.sum()", gm_np_sum(np, m, GM_ALL_AXES));
    ROW("n.sum(axis=(0, 2))", gm_np_sum(np, n, GM_AXES(0, 2)));
    ROW("n.mean(axis=1, keepdims=True)", gm_np_mean(np, n, gm_keepdims(gm_axis(1))));
    ROW("m.argmax(axis=-1)", gm_np_argmax(np, m, gm_axis(-1)));
    ROW("n.var(axis=2, ddof=1)", gm_np_var(np, n, gm_axis(2), 1));
    ROW("mask.any(axis=0)", gm_np_any(np, mask, gm_axis(0)));
    ROW("np.count_nonzero(mask, axis=1)", gm_np_count_nonzero(np, mask, gm_axis(1)));
    ROW("np.linalg.norm(m, axis=1)", gm_np_norm(np, m, gm_axis(1)));
    ROW("none.sum(axis=0)", gm_np_sum(np, none, gm_axis(0)));
    ROW("none.max(axis=0)", gm_np_max(np, none, gm_axis(0)));
    ROW("np.cumsum(n, axis=1)", gm_np_cumsum(np, n, 1));
    ROW("np.cumprod(m)", gm_np_cumprod(np, m, GM_NONE));
    ROW("np.exp(m) / np.exp(m).sum(axis=1, keepdims=True)", gm_np_softmax(np, m, 1));
    ROW("np.sort(m, axis=None)", gm_np_sort(np, m, GM_NONE, false));
    ROW("np.argsort(m, axis=1)", gm_np_argsort(np, m, 1, false));
    gm_array places, top = gm_np_top_k(np, m, 2, -1, &places);
    ROW("np.sort(m, axis=1)[:, ::-1][:, :2]", top);
    ROW("np.argsort(-m, axis=1)[:, :2]", places);
    ROW("np.unique(mask, return_counts=True)[1]", gm_np_unique_counts(np, mask));
    ROW("np.argwhere(m > 0)", gm_np_argwhere(np, positive));
    ROW("m[-1]", gm_np_index(np, m, gm_at(-1)));
    ROW("m[:, 1:]", gm_np_index(np, m, GM_WHOLE, gm_slice(1, GM_NONE)));
    ROW("m[:, None, ::-1]", gm_np_index(np, m, GM_WHOLE, GM_NEW_AXIS,
                                        gm_slice_by(GM_NONE, GM_NONE, -1)));
    ROW("m[mask]", gm_np_index(np, m, gm_by(mask)));
    ROW("m[1, i]", gm_np_index(np, m, gm_at(1), gm_by(i)));
    ROW("m[9]", gm_np_index(np, m, gm_at(9)));
    ROW("np.take(m, i, axis=1)", gm_np_take(np, m, i, 1));
    ROW("m.T", turned);
    ROW("m.reshape(3, -1)", gm_np_reshape(np, m, GM_SHAPE(3, GM_ANY)));
    ROW("np.expand_dims(m, -1)", gm_np_expand_dims(np, m, -1));
    ROW("np.broadcast_to(i, (2, 3))", gm_np_broadcast_to(np, i, GM_SHAPE(2, 3)));
    ROW("np.concatenate([m, m], axis=1)", gm_np_concat(np, both, 2, 1));
    ROW("np.stack([m, m], axis=-1)", gm_np_stack(np, both, 2, -1));
    ROW("np.repeat(m, 2)", gm_np_repeat(np, m, 2, GM_NONE));
    ROW("np.flip(m, 1)", gm_np_flip(np, m, gm_axis(1)));
    ROW("m @ m.T", gm_np_matmul(np, m, turned));
    ROW("m @ m", gm_np_matmul(np, m, m));
    ROW("np.outer(i, i)", gm_np_outer(np, i, i));
    ROW("np.eye(4, dtype=np.float32)[i]", gm_np_one_hot(np, i, 4, GM_FLOAT32));
    ROW("i[[0, 2]]",
        gm_np_nms(np, boxes, gm_np_index(np, boxes, GM_WHOLE, gm_at(3)), 0.5, -INFINITY, 2));
    ROW("np.full(2, 0.5)", gm_np_full(np, GM_SHAPE(2), 0.5, GM_FLOAT64));
    ROW("np.arange(2, 11, 3)", gm_np_arange(np, 2, 11, 3, GM_INT64));
    ROW("np.linspace(-1, 1, 5)", gm_np_linspace(np, -1, 1, 5, true, GM_FLOAT64));
    // The last one: a wrong step stays in its program.
    ROW("m[None, 5]", gm_np_exp(np, GM_NO_ARRAY));
    return GM_OK;
}

gm_status gm_preprocess(const gm_context *context, const gm_request *request,
                        gm_prepared *prepared) {
    gm_json_writer json = GM_JSON_WRITER;
    gm_json_begin_array(&json);
    GM_TRY(put_table(&json, gm_np_begin()));
    gm_json_end_array(&json);
    gm_prepared_state_json(prepared, &json);
    static const float blank[SIDE * SIDE];
    gm_tensor *input;
    GM_TRY(gm_tensor_create(GM_FLOAT32, GM_SHAPE(1, 1, SIDE, SIDE), blank, sizeof blank, &input));
    return gm_prepared_input(prepared, "input", input);
}

gm_status gm_postprocess(const gm_context *context, const gm_outputs *outputs, gm_bytes state,
                         gm_response *response) {
    gm_response_body(response, "application/json", state.data, state.size);
    return GM_OK;
}

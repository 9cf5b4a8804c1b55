// `{"items":[{"id":..,"features":[32 numbers]}..]}` in, the items ordered by score out, the best
// first. The model takes a tensor [items, 32]; the state has the ids.
#include <gristmill_plugin.h>

enum { FEATURES = 32 };

gm_status gm_preprocess(const gm_context *context, const gm_request *request,
                        gm_prepared *prepared) {
    (void)context;
    const gm_json *body, *items;
    GM_TRY(gm_request_json(request, &body));
    GM_TRY(gm_json_member(body, "items", GM_JSON_ARRAY, &items));
    size_t count = gm_json_size(items), index = 0;
    if (count == 0) return gm_invalid_input("items is empty: at least one is needed");

    float *features = gm_alloc(count * FEATURES * sizeof *features);
    gm_json_writer ids = GM_JSON_WRITER;
    gm_json_begin_array(&ids);
    GM_JSON_EACH (item, items) {
        const gm_json *row, *id;
        GM_TRY(gm_json_member(item, "id", GM_JSON_STRING, &id));
        GM_TRY(gm_json_member(item, "features", GM_JSON_ARRAY, &row));
        if (gm_json_size(row) != FEATURES) {
            return gm_invalid_input("items[%zu].features has %zu numbers, not %d", index,
                                    gm_json_size(row), FEATURES);
        }
        GM_TRY(gm_json_floats(row, features + index * FEATURES, FEATURES));
        gm_json_put(&ids, id);
        index++;
    }
    gm_json_end_array(&ids);

    gm_tensor *input;
    GM_TRY(gm_tensor_create(GM_FLOAT32, GM_SHAPE((uint32_t)count, FEATURES), features,
                            count * FEATURES * sizeof *features, &input));
    gm_prepared_state_json(prepared, &ids);
    return gm_prepared_input(prepared, "input", input);
}

typedef struct {
    const gm_json *id;
    float score;
    uint32_t position;
} scored;

// Higher scores first, NaN before all; equal scores in the request's order.
static int compare(const void *left, const void *right) {
    const scored *a = left, *b = right;
    bool a_is_nan = a->score != a->score, b_is_nan = b->score != b->score;
    if (a_is_nan != b_is_nan) return a_is_nan ? -1 : 1;
    if (a->score > b->score) return -1;
    if (a->score < b->score) return 1;
    return a->position < b->position ? -1 : 1;
}

gm_status gm_postprocess(const gm_context *context, const gm_outputs *outputs, gm_bytes state,
                         gm_response *response) {
    (void)context;
    const gm_json *ids;
    if (gm_json_read(state.data, state.size, &ids) != GM_OK) {
        return gm_internal("the state of preprocess: %s", gm_failure_text());
    }
    uint32_t count = (uint32_t)gm_json_size(ids), position = 0;
    gm_view scores;
    GM_TRY(gm_outputs_view(outputs, "output", GM_FLOAT32, GM_SHAPE(count, 1), &scores));
    scored *items = gm_alloc(count * sizeof *items);
    GM_JSON_EACH (id, ids) {
        items[position] = (scored){id, scores.f32[position], position};
        position++;
    }
    qsort(items, count, sizeof *items, compare);

    gm_json_writer answer = GM_JSON_WRITER;
    gm_json_begin_object(&answer);
    gm_json_key(&answer, "items");
    gm_json_begin_array(&answer);
    for (uint32_t place = 0; place < count; place++) {
        gm_json_begin_object(&answer);
        gm_json_key(&answer, "id");
        gm_json_put(&answer, items[place].id);
        gm_json_key(&answer, "score");
        gm_json_put_float(&answer, items[place].score);
        gm_json_end_object(&answer);
    }
    gm_json_end_array(&answer);
    gm_json_end_object(&answer);
    gm_response_json(response, &answer);
    return GM_OK;
}

// {{name}}: rows of numbers as JSON in, the model's first output as JSON out.
//
// The request is {"rows": [[1.5, 2], [3, 4]]}. The model's input is named "input".
#include <gristmill_plugin.h>

gm_status gm_preprocess(const gm_context *context, const gm_request *request,
                        gm_prepared *prepared) {
    (void)context;
    const gm_json *body, *rows;
    GM_TRY(gm_request_json(request, &body));
    GM_TRY(gm_json_member(body, "rows", GM_JSON_ARRAY, &rows));
    size_t count = gm_json_size(rows), width = gm_json_size(gm_json_first(rows)), row = 0;
    if (count == 0 || width == 0)
        return gm_invalid_input("rows is empty: send at least one number");

    float *values = gm_alloc(count * width * sizeof *values);
    GM_JSON_EACH (numbers, rows) {
        GM_TRY(gm_json_floats(numbers, values + row++ * width, width));
    }
    GM_LOG(GM_DEBUG, "read the request", {"rows", gm_format("%zu", count)});

    gm_tensor *input;
    GM_TRY(gm_tensor_create(GM_FLOAT32, GM_SHAPE((uint32_t)count, (uint32_t)width), values,
                            count * width * sizeof *values, &input));
    return gm_prepared_input(prepared, "input", input);
}

gm_status gm_postprocess(const gm_context *context, const gm_outputs *outputs, gm_bytes state,
                         gm_response *response) {
    (void)context, (void)state;
    gm_view output;
    if (gm_outputs_count(outputs) == 0) return gm_internal("the model has no outputs");
    GM_TRY(gm_tensor_view(gm_outputs_at(outputs, 0), GM_FLOAT32, &output));

    gm_json_writer answer = GM_JSON_WRITER;
    gm_json_begin_object(&answer);
    gm_json_key(&answer, gm_outputs_name(outputs, 0));
    gm_json_begin_array(&answer);
    for (size_t at = 0; at < output.count; at++) gm_json_put_float(&answer, output.f32[at]);
    gm_json_end_array(&answer);
    gm_json_end_object(&answer);
    gm_response_json(response, &answer);
    return GM_OK;
}

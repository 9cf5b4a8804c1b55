// {{name}}: rows of numbers in, the model's output for each row out.
//
// The request is [[1.5, 2], [3, 4]]. The model's input is named "input", its output "output".
#include <gristmill_plugin.h>

gm_status gm_preprocess(const gm_context *context, const gm_request *request,
                        gm_prepared *prepared) {
    (void)context;
    gm_tensor *rows;
    GM_TRY(gm_request_json_tensor(request, "", GM_FLOAT32, &rows));
    gm_shape shape = gm_tensor_shape(rows);
    if (shape.rank != 2)
        return gm_invalid_input("the body is not a list of rows: [[1, 2], [3, 4]]");
    GM_LOG(GM_DEBUG, "read the request", {"rows", gm_format("%u", (unsigned)shape.dims[0])});
    return gm_prepared_input(prepared, "input", rows);
}

gm_status gm_postprocess(const gm_context *context, const gm_outputs *outputs, gm_bytes state,
                         gm_response *response) {
    (void)context, (void)state;
    gm_tensor *output;
    GM_TRY(gm_outputs_get(outputs, "output", &output));

    gm_json_writer answer = GM_JSON_WRITER;
    gm_json_begin_object(&answer);
    gm_json_key(&answer, "outputs");
    GM_TRY(gm_json_put_tensor(&answer, output));
    gm_json_end_object(&answer);
    gm_response_json(response, &answer);
    return GM_OK;
}

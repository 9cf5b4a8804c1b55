// A picture, a tensor and a blob that gm_preprocess keeps for gm_postprocess.
#include <stdio.h>
#include <string.h>

#include "gristmill_host.h"

static gm_status keep_too_long(void) {
    char name[1026];
    memset(name, 'n', sizeof name - 1);
    name[sizeof name - 1] = 0;
    return gm_keep_blob(name, gm_blob_from_bytes("", 0));
}

gm_status gm_preprocess(const gm_context *context, const gm_request *request,
                        gm_prepared *prepared) {
    if (gm_request_query_value(request, "long")) return keep_too_long();
    const float values[] = {1.5f, 2.5f};
    gm_pixels *photo;
    gm_tensor *row, *again, *input;
    GM_TRY(gm_pixels_from_bytes(2, 1, GM_GRAY, "\x07\x08", 2, &photo));
    GM_TRY(gm_tensor_create(GM_FLOAT32, GM_SHAPE(2), values, sizeof values, &row));
    GM_TRY(gm_tensor_create(GM_FLOAT32, GM_SHAPE(1), values, sizeof *values, &again));
    GM_TRY(gm_tensor_create(GM_FLOAT32, GM_SHAPE(1, 2), values, sizeof values, &input));
    GM_TRY(gm_keep_pixels("photo", photo));
    GM_TRY(gm_keep_tensor("row", again));
    GM_TRY(gm_keep_tensor("row", row)); // in place of the other one
    GM_TRY(gm_keep_blob("body", gm_request_body(request)));
    (void)context;
    return gm_prepared_input(prepared, "input", input);
}

gm_status gm_postprocess(const gm_context *context, const gm_outputs *outputs, gm_bytes state,
                         gm_response *response) {
    (void)context, (void)outputs, (void)state;
    gm_pixels *photo;
    gm_tensor *row;
    const gm_blob *body;
    GM_TRY(gm_kept_pixels("photo", &photo));
    GM_TRY(gm_kept_tensor("row", &row));
    GM_TRY(gm_kept_blob("body", &body));
    gm_view view;
    GM_TRY(gm_tensor_view(row, GM_FLOAT32, &view));
    gm_bytes pixels = gm_pixels_data(photo);
    gm_response_text(response, "%u %u %.1f %zu %s", pixels.data[0], pixels.data[1], view.f32[1],
                     view.count, (const char *)gm_blob_bytes(body).data);
    // The call holds it, also if it is something else.
    assert(gm_keep_pixels("photo", photo) == GM_OK);
    assert(gm_kept_tensor("photo", &row) == GM_INTERNAL);
    assert(strcmp(gm_failure_text(), "\"photo\" is a picture, not a tensor") == 0);
    return GM_OK;
}

int main(void) {
    gm_host_request request = {.body = GM_HOST_TEXT("abc")};
    const float score = 1;
    const gm_bytes data = {(const uint8_t *)&score, sizeof score};
    const gm_host_tensor output = {"output", GM_FLOAT32, GM_SHAPE(1, 1), data};
    gm_host_prepared prepared = gm_host_preprocess(&request);
    assert(prepared.status == GM_OK && prepared.inputs_count == 1 && gm_host_handles() == 0);
    gm_host_response response = gm_host_postprocess(&request, &output, 1, prepared.state);
    assert(response.status == GM_OK);
    assert(strcmp((const char *)response.body.data, "7 8 2.5 2 abc") == 0);
    assert(gm_host_handles() == 0);
    // Each is taken once.
    response = gm_host_postprocess(&request, &output, 1, prepared.state);
    assert(response.status == GM_INTERNAL);
    assert(strcmp(response.failure, "nothing is kept as \"photo\", or it was taken before") == 0);
    request.query = (gm_fields){(const gm_field[]){{"long", "1"}}, 1};
    prepared = gm_host_preprocess(&request);
    assert(prepared.status == GM_INTERNAL && strstr(prepared.failure, "the limit is 1024"));
    assert(gm_host_handles() == 0);
    gm_host_reset();
    puts("keep_test: passed");
}

// Tests of {{name}}. They run natively, on the SDK's reference host: no server is needed.
#include <gristmill_host.h>
#include <stdio.h>
#include <string.h>

static gm_host_prepared sent(const char *body) {
    gm_host_request request = {.body = GM_HOST_TEXT(body), .content_type = "application/json"};
    return gm_host_preprocess(&request);
}

static void rows_become_a_tensor(void) {
    gm_host_prepared prepared = sent("{\"rows\": [[1.5, 2], [3, 4]]}");
    assert(prepared.status == GM_OK && prepared.inputs_count == 1);
    gm_host_tensor input = prepared.inputs[0];
    assert(strcmp(input.name, "input") == 0);
    assert(input.shape.rank == 2 && input.shape.dims[0] == 2 && input.shape.dims[1] == 2);
    assert(((const float *)input.data.data)[0] == 1.5f);
}

static void a_request_without_rows_is_refused(void) {
    gm_host_prepared prepared = sent("{\"rows\": []}");
    assert(prepared.status == GM_INVALID_INPUT);
    assert(strcmp(prepared.failure, "rows is empty: send at least one number") == 0);
}

static void the_output_becomes_json(void) {
    const float scores[] = {0.25f, 1};
    gm_host_tensor output = {"output", GM_FLOAT32, GM_SHAPE(2, 1), GM_HOST_ARRAY(scores)};
    gm_host_response response = gm_host_postprocess(NULL, &output, 1, GM_HOST_TEXT(""));
    assert(response.status == GM_OK);
    assert(strcmp((const char *)response.body.data, "{\"output\":[0.25,1.0]}") == 0);
}

int main(void) {
    rows_become_a_tensor();
    a_request_without_rows_is_refused();
    the_output_becomes_json();
    gm_host_reset();
    puts("{{name}}: passed");
}

// Tests of {{name}}. They run natively, on the SDK's reference host: no server is needed.
#include <gristmill_host.h>
#include <stdio.h>
#include <string.h>

static gm_host_prepared sent(gm_bytes body) {
    gm_host_request request = {.body = body, .content_type = "application/json"};
    return gm_host_preprocess(&request);
}

static void rows_become_the_models_input(void) {
    gm_host_prepared prepared = sent(gm_host_file("requests/rows.json"));
    assert(prepared.status == GM_OK && prepared.inputs_count == 1);
    gm_host_tensor input = prepared.inputs[0];
    assert(strcmp(input.name, "input") == 0);
    assert(input.shape.rank == 2 && input.shape.dims[0] == 2 && input.shape.dims[1] == 4);
    assert(((const float *)input.data.data)[4] == 5);
}

static void any_other_body_is_refused(void) {
    const char *bodies[] = {"", "{}", "[]", "[[1], [2, 3]]", "[[\"x\"]]"};
    for (size_t at = 0; at < sizeof bodies / sizeof *bodies; at++)
        assert(sent(GM_HOST_TEXT(bodies[at])).status == GM_INVALID_INPUT);
}

static void outputs_become_lists(void) {
    const float scores[] = {0.5f, 0.25f};
    gm_host_tensor output = {"output", GM_FLOAT32, GM_SHAPE(2, 1), GM_HOST_ARRAY(scores)};
    gm_host_response response = gm_host_postprocess(NULL, &output, 1, GM_HOST_TEXT(""));
    assert(response.status == GM_OK);
    assert(strcmp((const char *)response.body.data, "{\"outputs\":[[0.5],[0.25]]}") == 0);
}

int main(void) {
    rows_become_the_models_input();
    any_other_body_is_refused();
    outputs_become_lists();
    gm_host_reset();
    puts("{{name}}: passed");
}

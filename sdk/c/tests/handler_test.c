// A handler: what its runs of models get and give, and how it fails.
#include <stdio.h>
#include <string.h>

#include "gristmill_host.h"

// Runs `sum` with the rows of the body, then `double` twice with what it gave, side by side.
gm_status gm_handle(const gm_context *context, const gm_request *request, gm_response *response) {
    (void)context;
    gm_tensor *rows, *sum;
    GM_TRY(gm_request_json_tensor(request, "", GM_FLOAT32, &rows));
    const gm_outputs *summed;
    GM_TRY(GM_INFER("sum", &summed, {"rows", rows}, {"same", rows}));
    GM_TRY(gm_outputs_get(summed, "sum", &sum));
    gm_model_input input = {"x", sum};
    const gm_run runs[] = {{"double", &input, 1}, {"absent", &input, 1}, {"double", &input, 1}};
    const gm_outcomes *outcomes = gm_infer_all(runs, 3);
    gm_json_writer answer = GM_JSON_WRITER;
    gm_json_begin_array(&answer);
    for (size_t index = 0; index < 3; index += 2) {
        const gm_outputs *doubled;
        gm_tensor *twice;
        GM_TRY(gm_outcomes_get(outcomes, index, &doubled));
        GM_TRY(gm_outputs_get(doubled, "y", &twice));
        GM_TRY(gm_json_put_tensor(&answer, twice));
    }
    gm_json_end_array(&answer);
    const gm_outputs *none;
    assert(gm_outcomes_get(outcomes, 1, &none) == GM_MODEL_NOT_GRANTED);
    assert(strstr(gm_failure_text(), "no model \"absent\""));
    assert(gm_outcomes_get(outcomes, 3, &none) == GM_INTERNAL);
    gm_response_json(response, &answer);
    gm_response_header(response, "x-plugin-runs", "4");
    return GM_OK;
}

static gm_host_ran sum(const gm_host_tensor *inputs, size_t count) {
    static float total;
    static const uint32_t dims[] = {1};
    static const gm_host_tensor output = {
        "sum", GM_FLOAT32, {dims, 1}, {(const uint8_t *)&total, sizeof total}};
    assert(count == 2 && strcmp(inputs[1].name, "same") == 0 && inputs[0].dtype == GM_FLOAT32);
    assert(inputs[0].shape.rank == 2 && inputs[0].shape.dims[1] == 2);
    const float *values = (const float *)inputs[0].data.data;
    total = 0;
    for (size_t at = 0; at < gm_shape_elements(inputs[0].shape); at++) total += values[at];
    return (gm_host_ran){.outputs = &output, .outputs_count = 1};
}

static gm_host_ran doubled(const gm_host_tensor *inputs, size_t count) {
    static float twice;
    static const uint32_t dims[] = {1};
    static const gm_host_tensor output = {
        "y", GM_FLOAT32, {dims, 1}, {(const uint8_t *)&twice, sizeof twice}};
    assert(count == 1 && strcmp(inputs[0].name, "x") == 0);
    twice = 2 * *(const float *)inputs[0].data.data;
    return (gm_host_ran){.outputs = &output, .outputs_count = 1};
}

static gm_host_ran busy(const gm_host_tensor *inputs, size_t count) {
    (void)inputs, (void)count;
    return (gm_host_ran){.status = GM_MODEL_OVERLOADED, .failure = "too busy"};
}

static gm_host_response sent(const char *body) {
    gm_host_request request = {.body = GM_HOST_TEXT(body), .content_type = "application/json"};
    gm_host_response response = gm_host_handle(&request);
    assert(gm_host_handles() == 0);
    return response;
}

static void runs_give_their_outputs(void) {
    gm_host_add_model("sum", sum);
    gm_host_add_model("double", doubled);
    gm_host_response response = sent("[[1, 2], [3, 4.5]]");
    assert(response.status == GM_OK && response.http_status == 200);
    assert(strcmp((const char *)response.body.data, "[[21.0],[21.0]]") == 0);
    assert(response.headers.count == 1);
    assert(strcmp(response.headers.items[0].name, "x-plugin-runs") == 0);
}

static void failures_say_whose_they_are(void) {
    gm_host_response response = sent("[[1, 2]");
    assert(response.status == GM_INVALID_INPUT && *response.failure);
    gm_host_add_model("sum", busy);
    response = sent("[[1, 2]]");
    assert(response.status == GM_MODEL_OVERLOADED && strcmp(response.failure, "too busy") == 0);
    gm_host_reset();
    response = sent("[[1, 2]]");
    assert(response.status == GM_MODEL_NOT_GRANTED);
    assert(strstr(response.failure, "no model \"sum\" (gm_host_add_model)"));
}

int main(void) {
    runs_give_their_outputs();
    failures_say_whose_they_are();
    gm_host_reset();
    puts("handler: passed");
}

// A call: what a plugin reads, what it returns, what it logs, and that nothing stays behind.
#include <stdio.h>
#include <string.h>

#include "gristmill_host.h"

// A plugin that does what the request's header `x-do` says.
gm_status gm_preprocess(const gm_context *context, const gm_request *request,
                        gm_prepared *prepared) {
    const char *task = gm_request_header(request, "x-do");
    if (!task) task = "";
    if (strcmp(task, "415") == 0) return gm_unsupported_media_type("no %s here", "text");
    if (strcmp(task, "422") == 0) return gm_unprocessable("too %s", "large");
    if (strcmp(task, "silent") == 0) return GM_INTERNAL;
    gm_tensor *tensor;
    GM_TRY(gm_tensor_create(GM_INT64, GM_SHAPE(1, 1), &(int64_t){42}, 8, &tensor));
    GM_TRY(gm_prepared_input(prepared, "input", tensor));
    if (strcmp(task, "twice") == 0) return gm_prepared_input(prepared, "again", tensor);
    GM_LOG(GM_INFO, "made", {"rows", "1"}, {"model", gm_context_model(context)});
    gm_log(GM_WARN, "%d parts", (int)gm_request_parts(request).count);
    const gm_json *settings;
    GM_TRY(gm_context_settings_json(context, &settings));
    gm_json_writer state = GM_JSON_WRITER;
    gm_json_begin_array(&state);
    gm_json_put_string(&state, gm_request_content_type(request));
    gm_json_put_string(&state, gm_request_query_value(request, "k"));
    gm_json_put_double(&state, gm_json_number(gm_json_get(settings, "threshold"), 0.5));
    gm_json_put_integer(&state, (int64_t)gm_blob_size(gm_request_file(request)));
    gm_json_put_bool(&state, gm_request_query_value(request, "none") != NULL);
    gm_json_end_array(&state);
    gm_prepared_state_json(prepared, &state);
    return GM_OK;
}

gm_status gm_postprocess(const gm_context *context, const gm_outputs *outputs, gm_bytes state,
                         gm_response *response) {
    gm_view scores;
    GM_TRY(gm_outputs_view(outputs, "scores", GM_FLOAT32, GM_SHAPE(GM_ANY, 2), &scores));
    gm_response_status(response, 201);
    gm_response_header(response, "x-plugin-tenant", gm_context_tenant(context));
    gm_response_text(response, "%.*s of %s: %zu", (int)state.size, (const char *)state.data,
                     gm_outputs_name(outputs, 0), scores.count);
    return GM_OK;
}

static gm_host_prepared call(const char *task, const gm_host_request *request) {
    gm_host_request with_task = *request;
    gm_field header = {"x-do", task};
    with_task.headers = (gm_fields){&header, 1};
    gm_host_prepared prepared = gm_host_preprocess(&with_task);
    assert(gm_host_handles() == 0);
    return prepared;
}

static void a_request_is_read(void) {
    gm_field query[] = {{"a", "1"}, {"k", "v"}, {"k", "w"}};
    gm_host_request request = {.content_type = "text/csv",
                               .query = {query, 3},
                               .body = GM_HOST_TEXT("body"),
                               .settings = "{\"threshold\": 0.25}",
                               .model = "cnn"};
    gm_host_prepared prepared = call("", &request);
    assert(prepared.status == GM_OK && prepared.inputs_count == 1);
    assert(prepared.inputs[0].dtype == GM_INT64 && prepared.inputs[0].data.data[0] == 42);
    assert(strcmp((const char *)prepared.state.data, "[\"text/csv\",\"v\",0.25,4,false]") == 0);
    assert(gm_host_lines_count() == 2);
    gm_host_line line = gm_host_line_at(0);
    assert(line.level == GM_INFO && strcmp(line.message, "made") == 0 && line.fields.count == 2);
    assert(strcmp(line.fields.items[1].value, "cnn") == 0);
    assert(strcmp(gm_host_line_at(1).message, "0 parts") == 0);
}

static void the_first_part_is_the_file(void) {
    gm_host_part parts[] = {{.name = "photo", .filename = "a.png", .body = GM_HOST_TEXT("123")},
                            {.body = GM_HOST_TEXT("12345")}};
    gm_field query = {"k", "v"};
    gm_host_request request = {.content_type = "multipart/form-data",
                               .query = {&query, 1},
                               .parts = parts,
                               .parts_count = 2};
    gm_host_prepared prepared = call("", &request);
    assert(strstr((const char *)prepared.state.data, ",3,false]"));
}

static void failures_keep_their_status_and_text(void) {
    gm_host_request request = {.settings = "{"};
    assert(call("415", &request).status == GM_UNSUPPORTED_MEDIA_TYPE);
    gm_host_prepared failed = call("422", &request);
    assert(failed.status == GM_UNPROCESSABLE && strcmp(failed.failure, "too large") == 0);
    failed = call("silent", &request);
    assert(failed.status == GM_INTERNAL && strcmp(failed.failure, "") == 0);
    failed = call("twice", &request);
    assert(failed.status == GM_INTERNAL && strstr(failed.failure, "input \"again\""));
    failed = call("", &request);
    assert(failed.status == GM_INTERNAL && strstr(failed.failure, "the pipeline's settings: "));
}

static void outputs_are_checked(void) {
    float values[] = {1, 2, 3, 4};
    gm_host_tensor output = {"scores", GM_FLOAT32, GM_SHAPE(2, 2), GM_HOST_ARRAY(values)};
    gm_host_response response = gm_host_postprocess(NULL, &output, 1, GM_HOST_TEXT("state"));
    assert(response.status == GM_OK && response.http_status == 201);
    assert(strcmp((const char *)response.body.data, "state of scores: 4") == 0);
    assert(strcmp(response.headers.items[0].value, "tenant") == 0);
    output.shape = GM_SHAPE(4, 1);
    response = gm_host_postprocess(NULL, &output, 1, GM_HOST_TEXT(""));
    assert(strcmp(response.failure, "output \"scores\" has shape [4, 1], wanted [any, 2]") == 0);
    output.dtype = GM_INT32;
    response = gm_host_postprocess(NULL, &output, 1, GM_HOST_TEXT(""));
    assert(strcmp(response.failure, "output \"scores\": tensor is int32, wanted float32") == 0);
    output.name = "boxes";
    response = gm_host_postprocess(NULL, &output, 1, GM_HOST_TEXT(""));
    assert(strcmp(response.failure, "the model has no output \"scores\", it has [\"boxes\"]") == 0);
    assert(gm_host_handles() == 0);
}

static void large_and_grown_memory_is_kept_until_the_end(void) {
    char *small = gm_alloc(3);
    memcpy(small, "ab", 3);
    memset(gm_alloc(1 << 20), 1, 1 << 20);
    gm_json_writer writer = GM_JSON_WRITER;
    gm_json_begin_array(&writer);
    for (int at = 0; at < 100000; at++) gm_json_put_integer(&writer, at);
    gm_json_end_array(&writer);
    const gm_json *value;
    assert(gm_json_read(writer.data, writer.size, &value) == GM_OK &&
           gm_json_size(value) == 100000);
    assert(strcmp(small, "ab") == 0 && ((uintptr_t)small & 15) == 0);
}

int main(void) {
    a_request_is_read();
    the_first_part_is_the_file();
    failures_keep_their_status_and_text();
    outputs_are_checked();
    large_and_grown_memory_is_kept_until_the_end();
    gm_host_reset();
    puts("call_test: passed");
}

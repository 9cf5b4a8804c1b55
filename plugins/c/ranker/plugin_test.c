// The ranker plugin on the reference host.
#include <gristmill_host.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static gm_host_prepared sent(const char *body) {
    gm_host_request request = {.body = GM_HOST_TEXT(body), .content_type = "application/json"};
    return gm_host_preprocess(&request);
}

// {"items":[{"id":"..","features":[..]}..]} whose feature `f` of item `i` is i + f / 64.
static const char *items_of(size_t count) {
    gm_json_writer body = GM_JSON_WRITER;
    gm_json_begin_object(&body);
    gm_json_key(&body, "items");
    gm_json_begin_array(&body);
    for (size_t item = 0; item < count; item++) {
        gm_json_begin_object(&body);
        gm_json_key(&body, "id");
        gm_json_put_string(&body, gm_format("item \"%zu\"", item));
        gm_json_key(&body, "features");
        gm_json_begin_array(&body);
        for (int feature = 0; feature < 32; feature++) {
            gm_json_put_double(&body, (double)item + feature / 64.0);
        }
        gm_json_end_array(&body);
        gm_json_end_object(&body);
    }
    gm_json_end_array(&body);
    gm_json_end_object(&body);
    // The call releases this memory: keep a copy.
    char *text = malloc(body.size + 1);
    memcpy(text, body.data, body.size);
    text[body.size] = 0;
    return text;
}

static void items_become_a_tensor_and_a_state(void) {
    const char *body = items_of(3);
    gm_host_prepared prepared = sent(body);
    free((char *)body);
    assert(prepared.status == GM_OK && prepared.inputs_count == 1);
    gm_host_tensor input = prepared.inputs[0];
    assert(input.shape.rank == 2 && input.shape.dims[0] == 3 && input.shape.dims[1] == 32);
    assert(((const float *)input.data.data)[2 * 32 + 5] == 2 + 5 / 64.0f);
    const char *state = "[\"item \\\"0\\\"\",\"item \\\"1\\\"\",\"item \\\"2\\\"\"]";
    assert(strcmp((const char *)prepared.state.data, state) == 0);
}

static void faults_are_the_clients(void) {
    static const char *const cases[][2] = {
        {"{\"items\":[]}", "items is empty: at least one is needed"},
        {"{\"items\":[{\"id\":\"a\",\"features\":[1,2]}]}",
         "items[0].features has 2 numbers, not 32"},
        {"{\"items\":1}", "invalid JSON: `items` is a number, wanted an array, at byte 9"},
        {"{\"items\":[{\"features\":[]}]}",
         "invalid JSON: missing field `id` in the object at byte 10"},
        {"", "invalid JSON: EOF while parsing a value at line 1 column 0"},
        {"[", "invalid JSON: EOF while parsing a list at line 1 column 1"},
    };
    for (size_t at = 0; at < sizeof cases / sizeof *cases; at++) {
        gm_host_prepared prepared = sent(cases[at][0]);
        assert(prepared.status == GM_INVALID_INPUT);
        assert(strcmp(prepared.failure, cases[at][1]) == 0);
    }
}

static void scores_order_the_items(void) {
    const float scores[] = {0.5f, 1e-7f, 2, 0.5f};
    gm_host_tensor output = {"output", GM_FLOAT32, GM_SHAPE(4, 1), GM_HOST_ARRAY(scores)};
    gm_host_response response =
        gm_host_postprocess(NULL, &output, 1, GM_HOST_TEXT("[\"a\",\"b\",\"c\",\"d\"]"));
    assert(response.status == GM_OK);
    const char *expected = "{\"items\":[{\"id\":\"c\",\"score\":2.0},{\"id\":\"a\",\"score\":0.5},"
                           "{\"id\":\"d\",\"score\":0.5},{\"id\":\"b\",\"score\":1e-7}]}";
    assert(strcmp((const char *)response.body.data, expected) == 0);
}

static void a_state_of_another_length_is_refused(void) {
    const float scores[] = {1, 2};
    gm_host_tensor output = {"output", GM_FLOAT32, GM_SHAPE(2, 1), GM_HOST_ARRAY(scores)};
    gm_host_response response = gm_host_postprocess(NULL, &output, 1, GM_HOST_TEXT("[\"a\"]"));
    assert(response.status == GM_INTERNAL);
    assert(strcmp(response.failure, "output \"output\" has shape [2, 1], wanted [1, 1]") == 0);
    response = gm_host_postprocess(NULL, &output, 1, GM_HOST_TEXT("x"));
    assert(strstr(response.failure, "the state of preprocess: invalid JSON"));
}

int main(void) {
    items_become_a_tensor_and_a_state();
    faults_are_the_clients();
    scores_order_the_items();
    a_state_of_another_length_is_refused();
    assert(gm_host_handles() == 0);
    gm_host_reset();
    puts("ranker: passed");
}

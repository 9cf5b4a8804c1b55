// JSON that the host reads and writes: values at a pointer become tensors and blobs, and back.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gristmill_host.h"

// A plugin that reads what the query says: a pointer `p`, a dtype `d` and keys `k`.
gm_status gm_preprocess(const gm_context *context, const gm_request *request,
                        gm_prepared *prepared) {
    (void)context;
    const char *pointer = gm_request_query_value(request, "p"), *keys[4];
    size_t keys_count = 0;
    gm_fields query = gm_request_query(request);
    for (size_t at = 0; at < query.count; at++) {
        if (strcmp(query.items[at].name, "k") == 0) keys[keys_count++] = query.items[at].value;
    }
    const char *dtype = gm_request_query_value(request, "d");
    if (strcmp(dtype, "part") == 0) {
        const gm_part *part;
        GM_TRY(gm_request_part(request, pointer, &part));
        gm_bytes bytes = gm_blob_bytes(part->body);
        gm_prepared_state(prepared, bytes.data, bytes.size);
        return GM_OK;
    }
    if (strcmp(dtype, "blob") == 0) {
        const gm_blob *blob;
        GM_TRY(gm_request_json_blob(request, pointer, &blob));
        gm_bytes bytes = gm_blob_bytes(blob);
        gm_prepared_state(prepared, bytes.data, bytes.size);
        return GM_OK;
    }
    if (strcmp(dtype, "value") == 0) {
        const gm_json *value;
        GM_TRY(gm_request_json_at(request, pointer, &value));
        double number = gm_json_number(value, -1);
        gm_prepared_state(prepared, &number, sizeof number);
        return GM_OK;
    }
    gm_tensor *tensor;
    if (keys_count) {
        GM_TRY(gm_request_json_rows(request, pointer, keys, keys_count, atoi(dtype), &tensor));
    } else {
        GM_TRY(gm_request_json_tensor(request, pointer, atoi(dtype), &tensor));
    }
    return gm_prepared_input(prepared, "input", tensor);
}

// Answers with all that the host writes.
gm_status gm_postprocess(const gm_context *context, const gm_outputs *outputs, gm_bytes state,
                         gm_response *response) {
    (void)context;
    gm_json_writer answer = GM_JSON_WRITER;
    gm_json_begin_object(&answer);
    for (size_t at = 0; at < gm_outputs_count(outputs); at++) {
        gm_json_key(&answer, gm_outputs_name(outputs, at));
        GM_TRY(gm_json_put_tensor(&answer, gm_outputs_at(outputs, at)));
    }
    gm_json_key(&answer, "state");
    GM_TRY(gm_json_put_blob(&answer, gm_blob_from_bytes(state.data, state.size)));
    gm_json_end_object(&answer);
    gm_response_json(response, &answer);
    return GM_OK;
}

static gm_host_prepared read(const char *body, const char *pointer, const char *dtype,
                             const char *key, const char *other) {
    gm_field query[] = {{"p", pointer}, {"d", dtype}, {"k", key}, {"k", other}};
    size_t count = 2 + (key != NULL) + (other != NULL);
    gm_host_request request = {.body = GM_HOST_TEXT(body), .query = {query, count}};
    gm_host_prepared prepared = gm_host_preprocess(&request);
    assert(gm_host_handles() == 0);
    return prepared;
}

static const char *dtype_of(gm_dtype dtype) {
    static char text[8];
    snprintf(text, sizeof text, "%d", (int)dtype);
    return text;
}

static bool is(gm_host_prepared prepared, size_t rank, const uint32_t *dims, size_t size,
               const void *data) {
    if (prepared.status != GM_OK || prepared.inputs_count != 1) return false;
    gm_host_tensor input = prepared.inputs[0];
    if (input.shape.rank != rank || input.data.size != size) return false;
    for (size_t axis = 0; axis < rank; axis++) {
        if (input.shape.dims[axis] != dims[axis]) return false;
    }
    return size == 0 || memcmp(input.data.data, data, size) == 0;
}

static void lists_are_dimensions_and_objects_are_rows(void) {
    float matrix[] = {1, 2.5, -300, 4, 5, 6};
    assert(is(read("{\"x\":[[1,2.5,-3e2],[4,5,6]]}", "/x", dtype_of(GM_FLOAT32), NULL, NULL), 2,
              (uint32_t[]){2, 3}, sizeof matrix, matrix));
    assert(is(read("7", "", dtype_of(GM_UINT8), NULL, NULL), 0, NULL, 1, "\7"));
    assert(is(read("[[],[]]", "", dtype_of(GM_INT8), NULL, NULL), 2, (uint32_t[]){2, 0}, 0, ""));
    assert(is(read("[true,false]", "", dtype_of(GM_BOOL), NULL, NULL), 1, (uint32_t[]){2}, 2, "\1"));
    const char *items = "[{\"id\":\"p\",\"b\":[2,3],\"a/~\":1},{\"a/~\":4,\"b\":[5,6],\"id\":\"q\"}]";
    float rows[] = {1, 2, 3, 4, 5, 6};
    assert(is(read(items, "", dtype_of(GM_FLOAT32), "a/~", "b"), 2, (uint32_t[]){2, 3}, sizeof rows,
              rows));
    assert(is(read(items, "", dtype_of(GM_STRING), "id", NULL), 2, (uint32_t[]){2, 1}, 10,
              "\1\0\0\0p\1\0\0\0q"));
    int64_t large[] = {INT64_MIN, INT64_MAX};
    assert(is(read("{\"a/b\":[-9223372036854775808,9223372036854775807]}", "/a~1b",
                   dtype_of(GM_INT64), NULL, NULL),
              1, (uint32_t[]){2}, sizeof large, large));
}

static void a_fault_says_where_it_is_and_what_is_there(void) {
    const struct {
        const char *body, *pointer;
        gm_dtype dtype;
        const char *key, *fault;
    } faults[] = {
        {"[[1,2],[3,\"4\"]]", "", GM_FLOAT32, NULL, "/1/1 is a text, not a number"},
        {"[[1,2],[3]]", "", GM_FLOAT32, NULL, "/1 has 1 values, not 2 as the lists before it"},
        {"[[1],3]", "", GM_FLOAT32, NULL, "/1 is a number, not a list as the values before it"},
        {"[1,[2]]", "", GM_FLOAT32, NULL, "/1 is a list, not a number"},
        {"[1,null]", "", GM_FLOAT32, NULL, "/1 is null, not a number"},
        {"[1]", "", GM_BOOL, NULL, "/0 is a number, not true or false"},
        {"[256]", "", GM_UINT8, NULL, "/0 is out of UINT8's range"},
        {"[1.5]", "", GM_INT32, NULL, "/0 is 1.5, not an integer"},
        {"[1e39]", "", GM_FLOAT32, NULL, "/0 is out of FP32's range"},
        {"[{\"a\":1},{}]", "", GM_FLOAT32, "a", "/1/a is missing"},
        {"[{\"a\":1},{\"a\":[1,2]}]", "", GM_FLOAT32, "a",
         "/1/a has 2 values, not 1 as in the objects before it"},
        {"{}", "", GM_FLOAT32, "a", "the body is an object, not a list"},
        {"{}", "/none", GM_FLOAT32, NULL, "/none is missing"},
        {"", "/none", GM_FLOAT32, NULL, "the body is empty"},
    };
    for (size_t at = 0; at < sizeof faults / sizeof *faults; at++) {
        gm_host_prepared prepared = read(faults[at].body, faults[at].pointer,
                                         dtype_of(faults[at].dtype), faults[at].key, NULL);
        assert(prepared.status == GM_INVALID_INPUT);
        assert(strncmp(prepared.failure, "invalid JSON: ", 14) == 0);
        assert(strcmp(prepared.failure + 14, faults[at].fault) == 0);
    }
    assert(read("[", "", dtype_of(GM_INT8), NULL, NULL).status == GM_INVALID_INPUT);
    gm_host_prepared prepared = read("[]", "x", dtype_of(GM_INT8), NULL, NULL);
    assert(prepared.status == GM_INTERNAL);
    assert(strstr(prepared.failure, "the JSON Pointer \"x\" does not begin with /"));
    prepared = read("[]", "", dtype_of(GM_INT8), "a", "a");
    assert(prepared.status == GM_INTERNAL && strstr(prepared.failure, "\"a\" is given twice"));
}

static void values_and_bytes_are_read_at_a_pointer(void) {
    const char *body = "{\"image\":\"data:;base64,TWFu\",\"n\":[0.5]}";
    gm_host_prepared prepared = read(body, "/image", "blob", NULL, NULL);
    assert(prepared.state.size == 3 && memcmp(prepared.state.data, "Man", 3) == 0);
    prepared = read(body, "/n", "blob", NULL, NULL);
    assert(strcmp(prepared.failure, "invalid JSON: /n is a list, not a text in base64") == 0);
    double number;
    memcpy(&number, read(body, "/n/0", "value", NULL, NULL).state.data, sizeof number);
    assert(number == 0.5);
    memcpy(&number, read(body, "/n/1", "value", NULL, NULL).state.data, sizeof number);
    assert(number == -1);
}

static void a_part_of_a_form_is_found_by_its_name(void) {
    gm_host_part part = {.name = "photo", .body = GM_HOST_TEXT("data")};
    gm_field query[] = {{"p", "photo"}, {"d", "part"}};
    gm_host_request request = {.query = {query, 2}, .parts = &part, .parts_count = 1};
    assert(memcmp(gm_host_preprocess(&request).state.data, "data", 4) == 0);
    query[0].value = "image";
    const char *failure = gm_host_preprocess(&request).failure;
    assert(strcmp(failure, "the form has no part 'image': its first one is 'photo'") == 0);
}

static void tensors_and_blobs_stand_in_an_answer(void) {
    float scores[] = {0.1f, -2, 1e-7f, 3e38f};
    uint64_t ids[] = {UINT64_MAX};
    gm_host_tensor outputs[] = {
        {"scores", GM_FLOAT32, GM_SHAPE(2, 2), GM_HOST_ARRAY(scores)},
        {"ids", GM_UINT64, GM_SHAPE(1), GM_HOST_ARRAY(ids)},
    };
    gm_host_request request = {0};
    gm_host_response response = gm_host_postprocess(&request, outputs, 2, GM_HOST_TEXT("Man!"));
    assert(response.status == GM_OK);
    assert(strcmp((const char *)response.body.data,
                  "{\"scores\":[[0.1,-2.0],[1e-7,3e+38]],\"ids\":[18446744073709551615],"
                  "\"state\":\"TWFuIQ==\"}") == 0);
    scores[1] = __builtin_nanf("");
    response = gm_host_postprocess(&request, outputs, 1, GM_HOST_TEXT(""));
    assert(response.status == GM_INTERNAL);
    assert(strstr(response.failure, "the tensor of shape [2, 2] has NaN at [0, 1]"));
}

int main(void) {
    lists_are_dimensions_and_objects_are_rows();
    a_fault_says_where_it_is_and_what_is_there();
    values_and_bytes_are_read_at_a_pointer();
    a_part_of_a_form_is_found_by_its_name();
    tensors_and_blobs_stand_in_an_answer();
    gm_host_reset();
    puts("request_json_test: passed");
}

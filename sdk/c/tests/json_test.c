// JSON: values, texts of errors, and writing what was read.
#include <stdio.h>
#include <string.h>

#include "gristmill_host.h"

static const gm_json *read_text(const char *text) {
    const gm_json *value;
    gm_status status = gm_json_read(text, strlen(text), &value);
    if (status != GM_OK) fprintf(stderr, "%s: %s\n", text, gm_failure_text());
    assert(status == GM_OK);
    return value;
}

static void values_are_found(void) {
    const gm_json *value = read_text(" {\"a\": [1, 2.5, {\"b\": null}], "
                                     "\"c\\u00e4\\ud83d\\ude00\\n\": true, \"d\": \"x\\\"y\"}\n");
    assert(gm_json_size(value) == 3);
    const gm_json *array = gm_json_get(value, "a");
    assert(gm_json_type_of(array) == GM_JSON_ARRAY && gm_json_size(array) == 3);
    const gm_json *first = gm_json_first(array);
    assert(gm_json_integer(first, 0) == 1);
    assert(gm_json_number(gm_json_next(array, first), 0) == 2.5);
    assert(gm_json_bool(gm_json_get(value, "c\u00e4\U0001F600\n"), false));
    assert(strcmp(gm_json_string(gm_json_get(value, "d"), ""), "x\"y") == 0);
    assert(gm_json_get(value, "e") == NULL && gm_json_number(NULL, 7) == 7);
    size_t members = 0;
    GM_JSON_EACH (member, value) {
        members++;
        assert(gm_json_get(value, gm_json_name(value, member)) == member);
    }
    assert(members == 3);
    GM_JSON_EACH (none, read_text("[]")) assert(none == NULL);
}

static void what_was_read_is_written_again(void) {
    static const char text[] = "{\"a\":[1,-2.5,1e+300,18446744073709551615,-9223372036854775808],"
                               "\"\\u0001\\\"\":\"\\t\xc3\xa4\","
                               "\"b\":{},\"c\":[],\"d\":null,\"e\":[true,false]}";
    gm_json_writer writer = GM_JSON_WRITER;
    gm_json_put(&writer, read_text(text));
    assert(writer.size == strlen(text) && memcmp(writer.data, text, writer.size) == 0);
}

static void errors_name_line_and_column(void) {
    static const char *const cases[][2] = {
        {"", "EOF while parsing a value at line 1 column 0"},
        {"[1,\n x]", "expected value at line 2 column 2"},
        {"[1 2]", "expected `,` or `]` at line 1 column 4"},
        {"{\"a\" 1}", "expected `:` at line 1 column 6"},
        {"{a:1}", "key must be a string at line 1 column 2"},
        {"{\"a\":1,}", "trailing comma at line 1 column 8"},
        {"[1] x", "trailing characters at line 1 column 5"},
        {"tru", "EOF while parsing a value at line 1 column 3"},
        {"\"a", "EOF while parsing a string at line 1 column 2"},
        {"\"\\x\"", "invalid escape at line 1 column 3"},
        {"\"\xff\"", "invalid unicode code point at line 1 column 2"},
        {"01", "invalid number at line 1 column 2"},
        {"1e999", "number out of range at line 1 column 5"},
    };
    for (size_t at = 0; at < sizeof cases / sizeof *cases; at++) {
        const gm_json *value;
        assert(gm_json_read(cases[at][0], strlen(cases[at][0]), &value) == GM_INVALID_INPUT);
        const char *expected = gm_format("invalid JSON: %s", cases[at][1]);
        if (strcmp(gm_failure_text(), expected)) fprintf(stderr, "%s\n", gm_failure_text());
        assert(strcmp(gm_failure_text(), expected) == 0);
    }
}

static void depth_is_limited(void) {
    char text[300];
    memset(text, '[', sizeof text);
    const gm_json *value;
    assert(gm_json_read(text, sizeof text, &value) == GM_INVALID_INPUT);
    assert(strstr(gm_failure_text(), "recursion limit exceeded"));
}

static void members_of_the_wrong_type_are_named(void) {
    const gm_json *value = read_text("{\"a\": \"x\", \"b\": [1, true]}"), *found;
    const char *text;
    float numbers[2];
    assert(gm_json_member_string(value, "a", &text) == GM_OK && strcmp(text, "x") == 0);
    assert(gm_json_member(value, "a", GM_JSON_NUMBER, &found) == GM_INVALID_INPUT);
    assert(strstr(gm_failure_text(), "`a` is a string, wanted a number"));
    assert(gm_json_member(value, "z", GM_JSON_NUMBER, &found) == GM_INVALID_INPUT);
    assert(strstr(gm_failure_text(), "missing field `z`"));
    assert(gm_json_floats(gm_json_get(value, "b"), numbers, 2) == GM_INVALID_INPUT);
    assert(strstr(gm_failure_text(), "a boolean at byte 20, wanted a number"));
    assert(gm_json_floats(gm_json_get(value, "b"), numbers, 3) == GM_INVALID_INPUT);
}

// Random bytes and damaged documents: an error or a value, never a fault of memory.
static void any_bytes_are_read(void) {
    static const char good[] = "{\"a\":[1,-2.5e3,{\"b\":null}],\"c\\u00e4\":true,\"d\":\"x\\\"y\"}";
    uint32_t state = 1;
    for (int round = 0; round < 50000; round++) {
        char text[sizeof good];
        memcpy(text, good, sizeof good);
        for (int change = 0; change < 2; change++) {
            state = state * 1664525 + 1013904223;
            text[(state >> 8) % (sizeof good - 1)] = "{}[],:\"\\u0e-. \n\xff"[(state >> 24) % 17];
        }
        size_t size = (state >> 4) % sizeof good;
        char *copy = malloc(size ? size : 1);
        memcpy(copy, text, size);
        const gm_json *value;
        if (gm_json_read(copy, size, &value) == GM_OK) {
            gm_json_writer writer = GM_JSON_WRITER;
            gm_json_put(&writer, value);
        }
        free(copy);
        gm_host_reset();
    }
}

int main(void) {
    values_are_found();
    what_was_read_is_written_again();
    errors_name_line_and_column();
    depth_is_limited();
    members_of_the_wrong_type_are_named();
    any_bytes_are_read();
    gm_host_reset();
    puts("json_test: passed");
}

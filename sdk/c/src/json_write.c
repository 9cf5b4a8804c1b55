// Writing JSON into memory of the call.
#include <math.h>
#include <string.h>

#include "handle.h"
#include "json.h"
#include "memory.h"
#include "numbers.h"

// Room for `size` more bytes.
static char *reserve(gm_json_writer *writer, size_t size) {
    if (size > writer->capacity - writer->size) {
        size_t capacity = writer->capacity ? writer->capacity * 2 : 256;
        while (size > capacity - writer->size) capacity *= 2;
        writer->data = gm_resize(writer->data, writer->capacity, capacity);
        writer->capacity = capacity;
    }
    return writer->data + writer->size;
}

static char *begin_value(gm_json_writer *writer, size_t size) {
    char *at = reserve(writer, size + 1);
    if (writer->needs_comma) {
        *at++ = ',';
        writer->size++;
    }
    writer->needs_comma = true;
    return at;
}

void gm_json_put_raw_bytes(gm_json_writer *writer, const void *json, size_t size) {
    memcpy(begin_value(writer, size), json, size);
    writer->size += size;
}

void gm_json_put_raw(gm_json_writer *writer, const char *json) {
    gm_json_put_raw_bytes(writer, json, strlen(json));
}

// The host writes a piece as a value.
static gm_status put_piece(gm_json_writer *writer, gristmill_plugin_json_piece_t piece) {
    gristmill_plugin_json_list_piece_t pieces = {&piece, 1};
    imports_list_u8_t json;
    imports_string_t why;
    if (!gristmill_plugin_json_write(&pieces, &json, &why)) {
        return gm_internal("the answer as JSON: %s", gm_text_of(why));
    }
    gm_json_put_raw_bytes(writer, json.ptr, json.len);
    return GM_OK;
}

gm_status gm_json_put_tensor(gm_json_writer *writer, const gm_tensor *tensor) {
    gristmill_plugin_json_piece_t piece = {.tag = GRISTMILL_PLUGIN_JSON_PIECE_TENSOR};
    piece.val.tensor.__handle = gm_number_of(&tensor->handle);
    return put_piece(writer, piece);
}

gm_status gm_json_put_blob(gm_json_writer *writer, const gm_blob *blob) {
    gristmill_plugin_json_piece_t piece = {.tag = GRISTMILL_PLUGIN_JSON_PIECE_BASE64};
    piece.val.base64.__handle = gm_number_of(&blob->handle);
    return put_piece(writer, piece);
}

static void open(gm_json_writer *writer, char bracket) {
    *begin_value(writer, 1) = bracket;
    writer->size++;
    writer->needs_comma = false;
}

static void close(gm_json_writer *writer, char bracket) {
    *reserve(writer, 1) = bracket;
    writer->size++;
    writer->needs_comma = true;
}

void gm_json_begin_object(gm_json_writer *writer) {
    open(writer, '{');
}

void gm_json_end_object(gm_json_writer *writer) {
    close(writer, '}');
}

void gm_json_begin_array(gm_json_writer *writer) {
    open(writer, '[');
}

void gm_json_end_array(gm_json_writer *writer) {
    close(writer, ']');
}

void gm_json_key(gm_json_writer *writer, const char *name) {
    gm_json_put_string(writer, name);
    close(writer, ':');
    writer->needs_comma = false;
}

void gm_json_put_null(gm_json_writer *writer) {
    gm_json_put_raw(writer, "null");
}

void gm_json_put_bool(gm_json_writer *writer, bool value) {
    gm_json_put_raw(writer, value ? "true" : "false");
}

void gm_json_put_integer(gm_json_writer *writer, int64_t value) {
    writer->size += gm_write_integer(begin_value(writer, GM_NUMBER_TEXT_MAX), value);
}

void gm_json_put_float(gm_json_writer *writer, float value) {
    if (!isfinite(value)) return gm_json_put_null(writer);
    writer->size += gm_write_float(begin_value(writer, GM_NUMBER_TEXT_MAX), value);
}

void gm_json_put_double(gm_json_writer *writer, double value) {
    if (!isfinite(value)) return gm_json_put_null(writer);
    writer->size += gm_write_double(begin_value(writer, GM_NUMBER_TEXT_MAX), value);
}

void gm_json_put_string(gm_json_writer *writer, const char *text) {
    gm_json_put_text(writer, text, strlen(text));
}

void gm_json_put_text(gm_json_writer *writer, const char *text, size_t size) {
    static const char hex[] = "0123456789abcdef";
    static const char from[] = "\b\f\n\r\t\"\\", to[] = "bfnrt\"\\";
    char *start = begin_value(writer, 6 * size + 2), *at = start;
    *at++ = '"';
    for (size_t index = 0; index < size; index++) {
        unsigned char character = (unsigned char)text[index];
        if (character >= 0x20 && character != '"' && character != '\\') {
            *at++ = (char)character;
            continue;
        }
        *at++ = '\\';
        const char *found = character ? strchr(from, character) : NULL;
        if (found) {
            *at++ = to[found - from];
            continue;
        }
        memcpy(at, "u00", 3);
        at[3] = hex[character >> 4];
        at[4] = hex[character & 15];
        at += 5;
    }
    *at++ = '"';
    writer->size += (size_t)(at - start);
}

static void put_number(gm_json_writer *writer, const gm_json *value) {
    if (value->number == GM_NUMBER_INTEGER) return gm_json_put_integer(writer, value->integer);
    if (value->number == GM_NUMBER_REAL) return gm_json_put_double(writer, value->real);
    writer->size += gm_write_unsigned(begin_value(writer, GM_NUMBER_TEXT_MAX), value->positive);
}

void gm_json_put(gm_json_writer *writer, const gm_json *value) {
    switch (value->type) {
    case GM_JSON_NULL:
        return gm_json_put_null(writer);
    case GM_JSON_BOOL:
        return gm_json_put_bool(writer, value->truth);
    case GM_JSON_NUMBER:
        return put_number(writer, value);
    case GM_JSON_STRING:
        return gm_json_put_text(writer, value->text, value->size);
    case GM_JSON_ARRAY:
        gm_json_begin_array(writer);
        GM_JSON_EACH (element, value) gm_json_put(writer, element);
        return gm_json_end_array(writer);
    default:
        gm_json_begin_object(writer);
        GM_JSON_EACH (member, value) {
            gm_json_put_text(writer, member[-1].text, member[-1].size);
            close(writer, ':');
            writer->needs_comma = false;
            gm_json_put(writer, member);
        }
        return gm_json_end_object(writer);
    }
}

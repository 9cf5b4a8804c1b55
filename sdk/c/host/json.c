// JSON of the reference host: values of a request at a JSON Pointer, and pieces of an answer.
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "../src/json.h"
#include "../src/numbers.h"
#include "elements.h"
#include "host.h"

#define DIMENSIONS_MAX 32

typedef gristmill_plugin_types_json_error_t error;
typedef gristmill_plugin_types_borrow_request_t request;

// The elements of a tensor that is being read.
typedef struct {
    gm_dtype dtype;
    uint8_t *data;
    size_t size;
    size_t capacity;
    size_t count;
    size_t rank;
    size_t lengths[DIMENSIONS_MAX]; // SIZE_MAX while the first list of a depth is being read
    size_t begin;                   // the elements before the value under way
    const char *fault;
} reading;

static bool refuse(error *error, const char *why) {
    error->tag = GRISTMILL_PLUGIN_TYPES_JSON_ERROR_INVALID_JSON;
    error->val.invalid_json = host_give_text(host_format("invalid JSON: %s", why));
    return false;
}

static bool misused(error *error, const char *why) {
    error->tag = GRISTMILL_PLUGIN_TYPES_JSON_ERROR_INVALID_ARGUMENT;
    error->val.invalid_argument = host_give_text(why);
    return false;
}

static const char *kind(const gm_json *value) {
    static const char *const kinds[] = {"null", "a boolean", "a number", "a text", "a list",
                                        "an object"};
    return kinds[gm_json_type_of(value)];
}

static const char *place(const char *at) {
    return *at ? at : "the body";
}

// The next name of a pointer, without its escapes; moves on behind it.
static const char *next_name(const char **pointer) {
    const char *from = *pointer + 1;
    char *name = host_alloc(strlen(from) + 1), *to = name;
    for (; *from && *from != '/'; from++) {
        bool is_escaped = *from == '~' && (from[1] == '0' || from[1] == '1');
        *to++ = is_escaped ? "~/"[from[1] - '0'] : *from;
        from += is_escaped;
    }
    *to = 0;
    *pointer = from;
    return name;
}

static const gm_json *element_of(const gm_json *array, const char *name) {
    if (strspn(name, "0123456789") != strlen(name) || !*name || (*name == '0' && name[1])) return NULL;
    size_t index = strtoul(name, NULL, 10);
    GM_JSON_EACH(child, array) {
        if (index-- == 0) return child;
    }
    return NULL;
}

// The value at the pointer; NULL if there is none.
static bool find(request self, imports_string_t *text, const gm_json **out, error *err) {
    const char *pointer = host_copy(text->ptr, text->len);
    if (*pointer && *pointer != '/') {
        return misused(err, host_format("the JSON Pointer \"%s\" does not begin with /, as /instances",
                                        pointer));
    }
    gm_bytes body = host_get(self.__handle, HOST_REQUEST)->request->body;
    if (body.size == 0) return refuse(err, "the body is empty");
    if (gm_json_read(body.data, body.size, out) != GM_OK) {
        const char *why = gm_failure_text(), *prefix = "invalid JSON: ";
        bool has_prefix = strncmp(why, prefix, strlen(prefix)) == 0;
        return refuse(err, has_prefix ? why + strlen(prefix) : why);
    }
    while (*pointer && *out) {
        const char *name = next_name(&pointer);
        gm_json_type type = gm_json_type_of(*out);
        *out = type == GM_JSON_OBJECT  ? gm_json_get(*out, name)
               : type == GM_JSON_ARRAY ? element_of(*out, name)
                                       : NULL;
    }
    return true;
}

static bool find_required(request self, imports_string_t *text, const gm_json **out,
                          const char **at, error *err) {
    *at = host_copy(text->ptr, text->len);
    if (!find(self, text, out, err)) return false;
    return *out ? true : refuse(err, host_format("%s is missing", place(*at)));
}

static bool fail(reading *reading, const char *fault) {
    reading->fault = fault;
    return false;
}

static const char *wanted(gm_dtype dtype) {
    return dtype == GM_BOOL ? "true or false" : dtype == GM_STRING ? "a text" : "a number";
}

static bool is_float(gm_dtype dtype) {
    return dtype == GM_FLOAT16 || dtype == GM_BFLOAT16 || dtype == GM_FLOAT32 || dtype == GM_FLOAT64;
}

static void append(reading *reading, const void *data, size_t size) {
    if (size > reading->capacity - reading->size) {
        size_t capacity = 2 * reading->capacity + size;
        uint8_t *grown = host_alloc(capacity);
        if (reading->size) memcpy(grown, reading->data, reading->size);
        reading->data = grown;
        reading->capacity = capacity;
    }
    memcpy(reading->data + reading->size, data, size);
    reading->size += size;
}

static bool read_number(reading *reading, const gm_json *value, const char *at) {
    static const char *const names[] = {
        [GM_UINT8] = "UINT8",   [GM_INT8] = "INT8",     [GM_UINT16] = "UINT16",
        [GM_INT16] = "INT16",   [GM_UINT32] = "UINT32", [GM_INT32] = "INT32",
        [GM_UINT64] = "UINT64", [GM_INT64] = "INT64",   [GM_FLOAT16] = "FP16",
        [GM_BFLOAT16] = "BF16", [GM_FLOAT32] = "FP32",  [GM_FLOAT64] = "FP64",
    };
    gm_dtype dtype = reading->dtype;
    host_element element = {.is_real = value->number == GM_NUMBER_REAL};
    if (element.is_real) {
        element.real = value->real;
    } else {
        element.integer = value->number == GM_NUMBER_INTEGER ? value->integer : (__int128)value->positive;
    }
    if (element.is_real && !is_float(dtype)) {
        return fail(reading, host_format("%s is %.17g, not an integer", place(at), element.real));
    }
    uint8_t bytes[8];
    host_write_element(dtype, bytes, element);
    host_element back = host_read_element(dtype, bytes);
    bool is_out = is_float(dtype) ? !isfinite(back.real) : back.integer != element.integer;
    if (is_out) return fail(reading, host_format("%s is out of %s's range", place(at), names[dtype]));
    append(reading, bytes, gm_dtype_size(dtype));
    return true;
}

static bool read_values(reading *reading, const gm_json *value, const char *at, size_t depth) {
    gm_json_type type = gm_json_type_of(value);
    if (type == GM_JSON_ARRAY) {
        if (depth == reading->rank) {
            if (reading->count > reading->begin) {
                return fail(reading, host_format("%s is a list, not %s", place(at),
                                                 wanted(reading->dtype)));
            }
            if (depth == DIMENSIONS_MAX) {
                return fail(reading, host_format("%s is over 32 lists deep", place(at)));
            }
            reading->lengths[reading->rank++] = SIZE_MAX;
        }
        size_t found = 0;
        GM_JSON_EACH(child, value) {
            const char *inner = host_format("%s/%zu", at, found++);
            if (!read_values(reading, child, inner, depth + 1)) return false;
        }
        if (reading->lengths[depth] == SIZE_MAX) reading->lengths[depth] = found;
        if (reading->lengths[depth] == found) return true;
        return fail(reading, host_format("%s has %zu values, not %zu as the lists before it",
                                         place(at), found, reading->lengths[depth]));
    }
    gm_json_type fits = reading->dtype == GM_BOOL     ? GM_JSON_BOOL
                        : reading->dtype == GM_STRING ? GM_JSON_STRING
                                                      : GM_JSON_NUMBER;
    bool is_element = type != GM_JSON_NULL && type != GM_JSON_OBJECT;
    if (is_element && depth != reading->rank) {
        return fail(reading, host_format("%s is %s, not a list as the values before it", place(at),
                                         kind(value)));
    }
    if (type != fits) {
        return fail(reading, host_format("%s is %s, not %s", place(at), kind(value),
                                         wanted(reading->dtype)));
    }
    reading->count++;
    if (type == GM_JSON_NUMBER) return read_number(reading, value, at);
    if (type == GM_JSON_BOOL) {
        uint8_t truth = value->truth;
        append(reading, &truth, 1);
        return true;
    }
    uint32_t length = (uint32_t)gm_json_size(value);
    append(reading, &length, sizeof length);
    append(reading, gm_json_string(value, ""), length);
    return true;
}

// Begins another value, with a shape of its own.
static bool read_value(reading *reading, const gm_json *value, const char *at) {
    reading->rank = 0;
    reading->begin = reading->count;
    return read_values(reading, value, at, 0);
}

static const char *escaped(imports_string_t key) {
    char *text = host_alloc(2 * key.len + 1), *to = text;
    for (size_t at = 0; at < key.len; at++) {
        bool is_escaped = key.ptr[at] == '~' || key.ptr[at] == '/';
        if (is_escaped) *to++ = '~';
        *to++ = is_escaped ? (key.ptr[at] == '/' ? '1' : '0') : (char)key.ptr[at];
    }
    *to = 0;
    return text;
}

static bool read_rows(reading *reading, const gm_json *value, const char *at,
                      imports_list_string_t *keys) {
    if (gm_json_type_of(value) != GM_JSON_ARRAY) {
        return fail(reading, host_format("%s is %s, not a list", place(at), kind(value)));
    }
    size_t *widths = host_alloc(keys->len * sizeof *widths), row = 0, width = 0;
    GM_JSON_EACH(item, value) {
        if (gm_json_type_of(item) != GM_JSON_OBJECT) {
            return fail(reading, host_format("%s/%zu is %s, not an object", at, row, kind(item)));
        }
        for (size_t key = 0; key < keys->len; key++) {
            const char *inner = host_format("%s/%zu/%s", at, row, escaped(keys->ptr[key]));
            const gm_json *member =
                gm_json_get(item, host_copy(keys->ptr[key].ptr, keys->ptr[key].len));
            if (!member) return fail(reading, host_format("%s is missing", inner));
            if (!read_value(reading, member, inner)) return false;
            if (reading->rank > 1) {
                return fail(reading, host_format("%s is a list of lists, not of values", inner));
            }
            size_t found = reading->count - reading->begin;
            if (row == 0) widths[key] = found;
            if (widths[key] != found) {
                return fail(reading,
                            host_format("%s has %zu values, not %zu as in the objects before it",
                                        inner, found, widths[key]));
            }
        }
        row++;
    }
    for (size_t key = 0; key < keys->len; key++) width += row ? widths[key] : 1;
    reading->rank = 2;
    reading->lengths[0] = row;
    reading->lengths[1] = width;
    return true;
}

bool gristmill_plugin_types_method_request_json_tensor(
    request self, imports_string_t *pointer, imports_list_string_t *keys,
    gristmill_plugin_types_dtype_t dtype, gristmill_plugin_types_own_tensor_t *ret, error *err) {
    for (size_t key = 0; key < keys->len; key++) {
        for (size_t other = 0; other < key; other++) {
            imports_string_t one = keys->ptr[other], two = keys->ptr[key];
            if (one.len != two.len || memcmp(one.ptr, two.ptr, one.len)) continue;
            const char *name = host_copy(two.ptr, two.len);
            return misused(err, host_format("the key \"%s\" is given twice", name));
        }
    }
    const gm_json *value;
    const char *at;
    if (!find_required(self, pointer, &value, &at, err)) return false;
    reading reading = {.dtype = (gm_dtype)dtype};
    bool is_read = keys->len ? read_rows(&reading, value, at, keys) : read_value(&reading, value, at);
    if (!is_read) return refuse(err, reading.fault);
    uint32_t *dims = host_alloc(reading.rank * sizeof *dims);
    for (size_t axis = 0; axis < reading.rank; axis++) dims[axis] = (uint32_t)reading.lengths[axis];
    host_resource tensor = {
        .kind = HOST_TENSOR,
        .tensor = {reading.dtype, {dims, reading.rank}, {reading.data, reading.size}}};
    ret->__handle = host_hold(tensor);
    return true;
}

bool gristmill_plugin_types_method_request_json_blob(request self, imports_string_t *pointer,
                                                     gristmill_plugin_types_own_blob_t *ret,
                                                     error *err) {
    const gm_json *value;
    const char *at;
    if (!find_required(self, pointer, &value, &at, err)) return false;
    if (gm_json_type_of(value) != GM_JSON_STRING) {
        return refuse(err, host_format("%s is %s, not a text in base64", place(at), kind(value)));
    }
    gm_bytes bytes;
    const char *why = host_base64(host_copy(gm_json_string(value, ""), gm_json_size(value)), &bytes);
    if (why) return refuse(err, host_format("%s: %s", place(at), why));
    ret->__handle = host_hold((host_resource){.kind = HOST_BLOB, .blob = bytes});
    return true;
}

bool gristmill_plugin_types_method_request_json_value(request self, imports_string_t *pointer,
                                                      imports_option_list_u8_t *ret, error *err) {
    const gm_json *value;
    if (!find(self, pointer, &value, err)) return false;
    ret->is_some = value != NULL;
    if (!value) return true;
    gm_json_writer document = GM_JSON_WRITER;
    gm_json_put(&document, value);
    ret->val = host_give_bytes((gm_bytes){(uint8_t *)document.data, document.size}, 0, SIZE_MAX);
    return true;
}

// ---- Writing ----

// Where the element stands, as [0, 1].
static const char *index_of(gm_shape shape, size_t element) {
    const char *text = "";
    for (size_t axis = shape.rank; axis-- > 0;) {
        text = host_format("%zu%s%s", element % shape.dims[axis], *text ? ", " : "", text);
        element /= shape.dims[axis];
    }
    return host_format("[%s]", text);
}

static const char *text_of(gm_shape shape) {
    const char *text = "";
    for (size_t axis = shape.rank; axis-- > 0;) {
        text = host_format("%u%s%s", shape.dims[axis], *text ? ", " : "", text);
    }
    return host_format("[%s]", text);
}

// Writes the element at `at` of the tensor, the one of this number. Returns the bytes it takes.
static size_t put_element(gm_json_writer *out, const host_tensor *tensor, const uint8_t *at,
                          size_t number, const char **fault) {
    if (tensor->dtype == GM_STRING) {
        uint32_t length;
        memcpy(&length, at, sizeof length);
        gm_json_put_text(out, (const char *)at + sizeof length, length);
        return sizeof length + length;
    }
    host_element element = host_read_element(tensor->dtype, at);
    if (tensor->dtype == GM_BOOL) {
        gm_json_put_bool(out, *at);
    } else if (!is_float(tensor->dtype)) {
        uint64_t positive = (uint64_t)element.integer;
        bool is_large = element.integer > INT64_MAX;
        if (is_large) {
            gm_json_put_raw(out, host_format("%" PRIu64, positive));
        } else {
            gm_json_put_integer(out, (int64_t)element.integer);
        }
    } else if (!isfinite(element.real)) {
        const char *name = isnan(element.real) ? "NaN" : element.real > 0 ? "inf" : "-inf";
        *fault = host_format("the tensor of shape %s has %s at %s: JSON has no such number",
                             text_of(tensor->shape), name, index_of(tensor->shape, number));
    } else if (tensor->dtype == GM_FLOAT64) {
        gm_json_put_double(out, element.real);
    } else {
        gm_json_put_float(out, (float)element.real);
    }
    return gm_dtype_size(tensor->dtype);
}

static void put_lists(gm_json_writer *out, const host_tensor *tensor, size_t axis,
                      const uint8_t **at, size_t *number, const char **fault) {
    if (axis == tensor->shape.rank) {
        *at += put_element(out, tensor, *at, (*number)++, fault);
        return;
    }
    gm_json_begin_array(out);
    for (uint32_t index = 0; index < tensor->shape.dims[axis] && !*fault; index++) {
        put_lists(out, tensor, axis + 1, at, number, fault);
    }
    gm_json_end_array(out);
}

static const char *base64_of(gm_bytes bytes) {
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    char *text = host_alloc((bytes.size + 2) / 3 * 4 + 1), *to = text;
    for (size_t at = 0; at < bytes.size; at += 3) {
        uint32_t bits = 0;
        for (size_t byte = 0; byte < 3; byte++) {
            bits = bits << 8 | (at + byte < bytes.size ? bytes.data[at + byte] : 0);
        }
        for (size_t digit = 0; digit < 4; digit++) {
            *to++ = at + digit > bytes.size ? '=' : digits[bits >> (18 - 6 * digit) & 63];
        }
    }
    *to = 0;
    return text;
}

bool gristmill_plugin_json_write(gristmill_plugin_json_list_piece_t *pieces, imports_list_u8_t *ret,
                                 imports_string_t *err) {
    gm_json_writer out = GM_JSON_WRITER;
    const char *fault = NULL;
    for (size_t index = 0; index < pieces->len && !fault; index++) {
        const gristmill_plugin_json_piece_t *piece = &pieces->ptr[index];
        out.needs_comma = false;
        if (piece->tag == GRISTMILL_PLUGIN_JSON_PIECE_TEXT) {
            gm_json_put_raw(&out, host_copy(piece->val.text.ptr, piece->val.text.len));
        } else if (piece->tag == GRISTMILL_PLUGIN_JSON_PIECE_TENSOR) {
            host_tensor tensor = host_get(piece->val.tensor.__handle, HOST_TENSOR)->tensor;
            const uint8_t *at = tensor.data.data;
            size_t number = 0;
            put_lists(&out, &tensor, 0, &at, &number, &fault);
        } else {
            gm_bytes blob = host_get(piece->val.base64.__handle, HOST_BLOB)->blob;
            gm_json_put_string(&out, base64_of(blob));
        }
    }
    if (fault) {
        *err = host_give_text(fault);
        return false;
    }
    *ret = host_give_bytes((gm_bytes){(uint8_t *)out.data, out.size}, 0, SIZE_MAX);
    return true;
}

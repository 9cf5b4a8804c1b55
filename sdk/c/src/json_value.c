// Looking at a JSON document that was read.
#include <string.h>

#include "json.h"
#include "numbers.h"

static const char *const type_names[] = {"null",     "a boolean", "a number",
                                         "a string", "an array",  "an object"};

static bool is(const gm_json *value, gm_json_type type) {
    return value && value->type == type;
}

gm_json_type gm_json_type_of(const gm_json *value) {
    return (gm_json_type)value->type;
}

size_t gm_json_size(const gm_json *value) {
    return value && value->type >= GM_JSON_STRING ? value->size : 0;
}

const gm_json *gm_json_first(const gm_json *parent) {
    if (!parent || parent->type < GM_JSON_ARRAY || parent->size == 0) return NULL;
    return parent + (parent->type == GM_JSON_OBJECT ? 2 : 1);
}

const gm_json *gm_json_next(const gm_json *parent, const gm_json *child) {
    const gm_json *next = child + child->nodes;
    if (next >= parent + parent->nodes) return NULL;
    return next + (parent->type == GM_JSON_OBJECT);
}

const char *gm_json_name(const gm_json *object, const gm_json *value) {
    return is(object, GM_JSON_OBJECT) ? value[-1].text : NULL;
}

const gm_json *gm_json_get(const gm_json *object, const char *name) {
    if (!is(object, GM_JSON_OBJECT)) return NULL;
    size_t size = strlen(name);
    GM_JSON_EACH (value, object) {
        const gm_json *key = value - 1;
        if (key->size == size && memcmp(key->text, name, size) == 0) return value;
    }
    return NULL;
}

bool gm_json_bool(const gm_json *value, bool fallback) {
    return is(value, GM_JSON_BOOL) ? value->truth : fallback;
}

static double to_double(const gm_json *value) {
    switch (value->number) {
    case GM_NUMBER_INTEGER:
        return (double)value->integer;
    case GM_NUMBER_UNSIGNED:
        return (double)value->positive;
    default:
        return value->real;
    }
}

double gm_json_number(const gm_json *value, double fallback) {
    return is(value, GM_JSON_NUMBER) ? to_double(value) : fallback;
}

int64_t gm_json_integer(const gm_json *value, int64_t fallback) {
    bool fits = is(value, GM_JSON_NUMBER) && value->number == GM_NUMBER_INTEGER;
    return fits ? value->integer : fallback;
}

const char *gm_json_string(const gm_json *value, const char *fallback) {
    return is(value, GM_JSON_STRING) ? value->text : fallback;
}

gm_status gm_json_member(const gm_json *object, const char *name, gm_json_type type,
                         const gm_json **out) {
    if (!is(object, GM_JSON_OBJECT)) {
        return gm_invalid_input("invalid JSON: %s at byte %u, wanted an object with `%s`",
                                type_names[object->type], (unsigned)object->offset, name);
    }
    *out = gm_json_get(object, name);
    if (!*out) {
        return gm_invalid_input("invalid JSON: missing field `%s` in the object at byte %u", name,
                                (unsigned)object->offset);
    }
    if ((*out)->type == type) return GM_OK;
    return gm_invalid_input("invalid JSON: `%s` is %s, wanted %s, at byte %u", name,
                            type_names[(*out)->type], type_names[type], (unsigned)(*out)->offset);
}

gm_status gm_json_member_string(const gm_json *object, const char *name, const char **out) {
    const gm_json *value;
    GM_TRY(gm_json_member(object, name, GM_JSON_STRING, &value));
    *out = value->text;
    return GM_OK;
}

gm_status gm_json_floats(const gm_json *array, float *out, size_t count) {
    if (!is(array, GM_JSON_ARRAY)) {
        return gm_invalid_input("invalid JSON: %s at byte %u, wanted an array",
                                type_names[array->type], (unsigned)array->offset);
    }
    if (array->size != count) {
        return gm_invalid_input("invalid JSON: the array at byte %u has %u elements, wanted %zu",
                                (unsigned)array->offset, (unsigned)array->size, count);
    }
    GM_JSON_EACH (element, array) {
        if (element->type != GM_JSON_NUMBER) {
            return gm_invalid_input("invalid JSON: %s at byte %u, wanted a number",
                                    type_names[element->type], (unsigned)element->offset);
        }
        *out++ = (float)to_double(element);
    }
    return GM_OK;
}

// A JSON value as the reader leaves it: nodes one after another, parents before their children.
#ifndef GM_JSON_H
#define GM_JSON_H

#include "gristmill_plugin.h"

struct gm_json {
    uint8_t type;
    uint8_t number;  // a kind of gm_number
    uint32_t size;   // elements, members (each has two nodes) or bytes
    uint32_t nodes;  // of the value, with this one
    uint32_t offset; // in the text, in bytes
    union {
        bool truth;
        double real;
        int64_t integer;
        uint64_t positive;
        const char *text;
    };
};

// As gm_json_read, but the document's strings stay in `text`, which is changed and ends with NUL.
gm_status gm_json_read_in_place(char *text, size_t size, const gm_json **out);

// A value that is JSON already.
void gm_json_put_raw(gm_json_writer *writer, const char *json);
void gm_json_put_raw_bytes(gm_json_writer *writer, const void *json, size_t size);

#endif

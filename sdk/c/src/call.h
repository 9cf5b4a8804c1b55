// What the plugin's functions get and fill: the SDK's own view of a call.
#ifndef GM_CALL_H
#define GM_CALL_H

#include "handle.h"

struct gm_context {
    gristmill_plugin_types_borrow_context_t handle;
};

// Parts that were read from the host are kept until the call returns.
typedef struct {
    gm_fields headers;
    gm_fields query;
    gm_parts parts;
    const gm_blob *body;
    bool has_headers;
    bool has_query;
    bool has_parts;
} gm_request_parts_read;

struct gm_request {
    gristmill_plugin_types_borrow_request_t handle;
    gm_request_parts_read *read;
};

// The fields of the host, and the value of the first one of this name; NULL if there is none.
gm_fields gm_fields_of(const gristmill_plugin_types_field_t *list, size_t count);
const char *gm_find_field(gm_fields fields, const char *name);

struct gm_prepared {
    gristmill_plugin_prepare_prepared_t wire;
    size_t capacity; // of wire.inputs
};

typedef struct {
    const char *name;
    gm_tensor *tensor;
} gm_output;

struct gm_outputs {
    const gm_output *items;
    size_t count;
};

// Takes over the outputs of a model from the host.
gm_outputs gm_hold_outputs(const gristmill_plugin_tensors_named_tensor_t *named, size_t count);

struct gm_response {
    gristmill_plugin_types_response_t wire;
    size_t capacity; // of wire.headers
};

// The failure of a call as the host gets it.
gristmill_plugin_types_failure_t gm_failure_on_wire(gm_status status);

// Begins a call in an instance that may have had one before.
void gm_begin_call(void);

// Ends it before its answer is read: drops handles and writes what printf kept.
void gm_end_call(void);

// Writes what printf kept, also a line without an end.
void gm_flush_output(void);

#endif

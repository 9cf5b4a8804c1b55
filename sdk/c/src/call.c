// The beginning and the end of a call.
#include "call.h"

#include "failure.h"
#include "memory.h"

void gm_begin_call(void) {
    gm_clear_failure();
}

void gm_end_call(void) {
    gm_drop_all();
    gm_flush_output();
}

gristmill_plugin_types_failure_t gm_failure_on_wire(gm_status status) {
    gristmill_plugin_types_failure_t failure = {0};
    failure.tag = status >= GM_INVALID_INPUT && status <= GM_INTERNAL
                      ? (uint8_t)(status - GM_INVALID_INPUT)
                      : GRISTMILL_PLUGIN_TYPES_FAILURE_INTERNAL;
    failure.val.internal = gm_text(gm_failure_text());
    return failure;
}

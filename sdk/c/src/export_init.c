// The export `init` of plugins that are built with an initializer.
#include "call.h"
#include "exports.h"
#include "memory.h"

GM_EXPORT("init")
gm_init_result *gm_export_init(void) {
    static gm_init_result result;
    gm_begin_call();
    result.is_err = gm_init() != GM_OK;
    result.err = gm_text(gm_failure_text());
    gm_end_call();
    return &result;
}

GM_EXPORT("cabi_post_init")
void gm_export_init_done(gm_init_result *result) {
    (void)result;
    gm_release_memory();
}

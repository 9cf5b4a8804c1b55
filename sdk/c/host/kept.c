// What gm_preprocess keeps, in the reference host: until it is taken, or gm_host_reset.
#include <string.h>

#include "host.h"

typedef struct thing {
    struct thing *older;
    const char *name; // NULL if it was taken
    uint8_t tag;
    host_resource resource;
} thing;

static thing *newest;

static const host_kind kinds[] = {
    [GRISTMILL_PLUGIN_KEEP_KEPT_PIXELS] = HOST_PIXELS,
    [GRISTMILL_PLUGIN_KEEP_KEPT_TENSOR] = HOST_TENSOR,
    [GRISTMILL_PLUGIN_KEEP_KEPT_BLOB] = HOST_BLOB,
};

static thing *find(const imports_string_t *name) {
    for (thing *at = newest; at; at = at->older) {
        if (at->name && strlen(at->name) == name->len && !memcmp(at->name, name->ptr, name->len)) {
            return at;
        }
    }
    return NULL;
}

bool gristmill_plugin_keep_put(imports_string_t *name, gristmill_plugin_keep_kept_t *value,
                               imports_string_t *err) {
    host_kind kind = kinds[value->tag];
    int32_t handle = value->val.pixels.__handle; // the others have one, too
    host_resource resource = *host_get(handle, kind);
    host_drop(handle, kind);
    if (name->len > 1024) {
        *err = host_give_text(host_format("the name has %zu bytes; the limit is 1024", name->len));
        return false;
    }
    thing *kept = find(name);
    if (!kept) {
        kept = host_alloc(sizeof *kept);
        *kept = (thing){.older = newest, .name = host_copy(name->ptr, name->len)};
        newest = kept;
    }
    kept->tag = value->tag;
    kept->resource = resource;
    return true;
}

bool gristmill_plugin_keep_take(imports_string_t *name, gristmill_plugin_keep_kept_t *ret) {
    thing *kept = find(name);
    if (!kept) return false;
    kept->name = NULL;
    ret->tag = kept->tag;
    ret->val.pixels.__handle = host_hold(kept->resource);
    return true;
}

void host_forget_kept(void) {
    newest = NULL;
}

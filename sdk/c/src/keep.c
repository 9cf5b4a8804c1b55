// What gm_preprocess keeps for gm_postprocess, over the generated bindings.
#include "handle.h"

typedef gristmill_plugin_keep_kept_t kept;

static const char *const kinds[] = {
    [GRISTMILL_PLUGIN_KEEP_KEPT_PIXELS] = "a picture",
    [GRISTMILL_PLUGIN_KEEP_KEPT_TENSOR] = "a tensor",
    [GRISTMILL_PLUGIN_KEEP_KEPT_BLOB] = "a blob",
};

static gm_status put(const char *name, kept value) {
    imports_string_t text = gm_text(name), why;
    if (gristmill_plugin_keep_put(&text, &value, &why)) return GM_OK;
    return gm_internal("keeping \"%s\": %s", name, gm_text_of(why));
}

gm_status gm_keep_pixels(const char *name, gm_pixels *pixels) {
    kept value = {.tag = GRISTMILL_PLUGIN_KEEP_KEPT_PIXELS};
    value.val.pixels.__handle = gm_give(&pixels->handle);
    return put(name, value);
}

gm_status gm_keep_tensor(const char *name, gm_tensor *tensor) {
    kept value = {.tag = GRISTMILL_PLUGIN_KEEP_KEPT_TENSOR};
    value.val.tensor.__handle = gm_give(&tensor->handle);
    return put(name, value);
}

gm_status gm_keep_blob(const char *name, const gm_blob *blob) {
    kept value = {.tag = GRISTMILL_PLUGIN_KEEP_KEPT_BLOB};
    value.val.blob.__handle = gm_give((gm_held *)&blob->handle);
    return put(name, value);
}

// The call holds what it takes, also if it is of another kind.
static gm_status take(const char *name, uint8_t tag, void **out) {
    imports_string_t text = gm_text(name);
    kept found;
    if (!gristmill_plugin_keep_take(&text, &found))
        return gm_internal("nothing is kept as \"%s\", or it was taken before", name);
    switch (found.tag) {
    case GRISTMILL_PLUGIN_KEEP_KEPT_PIXELS:
        *out = gm_hold(GM_HANDLE_PIXELS, found.val.pixels.__handle);
        break;
    case GRISTMILL_PLUGIN_KEEP_KEPT_TENSOR:
        *out = gm_hold(GM_HANDLE_TENSOR, found.val.tensor.__handle);
        break;
    default:
        *out = gm_hold(GM_HANDLE_BLOB, found.val.blob.__handle);
        break;
    }
    if (found.tag == tag) return GM_OK;
    return gm_internal("\"%s\" is %s, not %s", name, kinds[found.tag], kinds[tag]);
}

gm_status gm_kept_pixels(const char *name, gm_pixels **out) {
    void *found;
    GM_TRY(take(name, GRISTMILL_PLUGIN_KEEP_KEPT_PIXELS, &found));
    *out = found;
    return GM_OK;
}

gm_status gm_kept_tensor(const char *name, gm_tensor **out) {
    void *found;
    GM_TRY(take(name, GRISTMILL_PLUGIN_KEEP_KEPT_TENSOR, &found));
    *out = found;
    return GM_OK;
}

gm_status gm_kept_blob(const char *name, const gm_blob **out) {
    void *found;
    GM_TRY(take(name, GRISTMILL_PLUGIN_KEEP_KEPT_BLOB, &found));
    *out = found;
    return GM_OK;
}

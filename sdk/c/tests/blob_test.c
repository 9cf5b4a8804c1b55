// Bytes on the host: parts of them, bytes of the plugin, and base64.
#include <stdio.h>
#include <string.h>

#include "gristmill_host.h"

static bool has(const gm_blob *blob, const char *text) {
    gm_bytes bytes = gm_blob_bytes(blob);
    return bytes.size == strlen(text) && memcmp(bytes.data, text, bytes.size) == 0;
}

static void blobs_are_made_and_cut(void) {
    const gm_blob *blob = gm_blob_from_bytes("0123456789", 10);
    gm_tensor *tensor;
    uint32_t dims[] = {2, 5};
    assert(gm_blob_tensor(blob, GM_UINT8, (gm_shape){dims, 2}, &tensor) == GM_OK);
    gm_view view;
    assert(gm_tensor_view(tensor, GM_UINT8, &view) == GM_OK && view.shape.dims[1] == 5);
    assert(gm_blob_tensor(blob, GM_FLOAT32, (gm_shape){dims, 2}, &tensor) == GM_INTERNAL);
    assert(gm_blob_size(blob) == 10 && has(gm_blob_slice(blob, 2, 3), "234"));
    assert(has(gm_blob_slice(blob, 8, UINT64_MAX), "89") && has(gm_blob_slice(blob, 99, 1), ""));
}

static void base64_is_decoded(void) {
    const char *texts[] = {"TWFu", " TW\r\nFu", "data:image/png;base64,TWFu", "DATA:;BASE64,TWFu"};
    const gm_blob *blob, *other;
    for (size_t at = 0; at < 4; at++) {
        assert(gm_blob_from_base64(texts[at], &blob) == GM_OK && has(blob, "Man"));
    }
    assert(gm_blob_from_base64("TWE=", &blob) == GM_OK && has(blob, "Ma"));
    assert(gm_blob_from_base64("TQ = =", &blob) == GM_OK && has(blob, "M"));
    assert(gm_blob_from_base64("TQ", &blob) == GM_OK && has(blob, "M"));
    assert(gm_blob_from_base64("", &blob) == GM_OK && has(blob, ""));
    assert(gm_blob_from_base64("_-__", &blob) == GM_OK);
    assert(gm_blob_from_base64("/+//", &other) == GM_OK);
    assert(memcmp(gm_blob_bytes(blob).data, gm_blob_bytes(other).data, 3) == 0);
}

static void other_texts_are_the_clients_fault(void) {
    const struct {
        const char *text, *why;
    } faults[] = {
        {"TWF%", "base64 has '%' at position 3"},
        {"TQ==T", "base64 has 'T' at position 4 after its end"},
        {"T===", "base64 has '=' at position 1"},
        {"TWFuT", "base64 ends within a group of four characters"},
        {"data:image/png,abc", "a data URL whose data are not in base64: it has no \";base64\""},
        {"data:image/png;base64", "a data URL without a comma"},
        {NULL, "base64 is a text, and there is none"},
    };
    const gm_blob *blob;
    for (size_t at = 0; at < sizeof faults / sizeof *faults; at++) {
        assert(gm_blob_from_base64(faults[at].text, &blob) == GM_INVALID_INPUT);
        assert(strcmp(gm_failure_text(), faults[at].why) == 0);
    }
}

int main(void) {
    blobs_are_made_and_cut();
    base64_is_decoded();
    other_texts_are_the_clients_fault();
    gm_host_reset();
    assert(gm_host_handles() == 0);
    puts("blob_test: passed");
}

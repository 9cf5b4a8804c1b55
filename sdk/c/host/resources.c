// Memory, handles and texts of the reference host.
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "../src/memory.h"
#include "host.h"

typedef struct allocation {
    struct allocation *older;
    _Alignas(16) unsigned char data[];
} allocation;

static allocation *allocations;
static host_resource *resources;
static size_t resources_count;

void *host_alloc(size_t size) {
    allocation *added = malloc(sizeof *added + size + 1);
    if (!added) gm_panic("out of memory");
    added->older = allocations;
    added->data[size] = 0;
    allocations = added;
    return added->data;
}

void *host_copy(const void *data, size_t size) {
    void *copy = host_alloc(size);
    if (size) memcpy(copy, data, size);
    return copy;
}

char *host_format(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    char text[1024];
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    return host_copy(text, strlen(text));
}

void host_free_all(void) {
    while (allocations) {
        allocation *older = allocations->older;
        free(allocations);
        allocations = older;
    }
    free(resources);
    resources = NULL;
    resources_count = 0;
}

int32_t host_hold(host_resource resource) {
    resources = realloc(resources, (resources_count + 1) * sizeof *resources);
    if (!resources) gm_panic("out of memory");
    resources[resources_count++] = resource;
    return (int32_t)resources_count; // 0 is no handle
}

host_resource *host_get(int32_t handle, host_kind kind) {
    bool exists = handle > 0 && (size_t)handle <= resources_count;
    if (!exists || resources[handle - 1].kind != kind) {
        gm_panic("handle %d is not held, or is of another kind", (int)handle);
    }
    return &resources[handle - 1];
}

void host_drop(int32_t handle, host_kind kind) {
    host_get(handle, kind)->kind = HOST_FREE;
}

size_t gm_host_handles(void) {
    size_t held = 0;
    for (size_t index = 0; index < resources_count; index++) {
        held += resources[index].kind != HOST_FREE;
    }
    return held;
}

imports_string_t host_give_text(const char *text) {
    size_t size = strlen(text);
    return (imports_string_t){(uint8_t *)gm_copy(text, size), size};
}

imports_list_u8_t host_give_bytes(gm_bytes bytes, uint64_t offset, uint64_t length) {
    if (offset > bytes.size) offset = bytes.size;
    if (length > bytes.size - offset) length = bytes.size - offset;
    return (imports_list_u8_t){(uint8_t *)gm_copy(bytes.data + offset, length), length};
}

gm_bytes gm_host_file(const char *path) {
    FILE *file = fopen(path, "rb");
    if (!file) return (gm_bytes){NULL, 0};
    fseek(file, 0, SEEK_END);
    long size = ftell(file);
    rewind(file);
    uint8_t *data = host_alloc(size > 0 ? (size_t)size : 0);
    size_t read = size > 0 ? fread(data, 1, (size_t)size, file) : 0;
    fclose(file);
    return (gm_bytes){data, read};
}

#define DROPS(interface, name, kind)                               \
    void gristmill_plugin_##interface##_##name##_drop_own(         \
        gristmill_plugin_##interface##_own_##name##_t handle) {    \
        host_drop(handle.__handle, kind);                          \
    }                                                              \
    void gristmill_plugin_##interface##_##name##_drop_borrow(      \
        gristmill_plugin_##interface##_borrow_##name##_t handle) { \
        host_drop(handle.__handle, kind);                          \
    }

DROPS(tensors, tensor, HOST_TENSOR)
DROPS(image, pixels, HOST_PIXELS)
DROPS(types, blob, HOST_BLOB)
DROPS(types, context, HOST_CONTEXT)
DROPS(types, request, HOST_REQUEST)

// Memory that lives until the call returns: a static arena first, blocks of malloc when it is full.
//
// Each growth of the linear memory costs the host a system call, and a fresh instance pays for each
// page that it touches. So the arena is filled from its beginning, and nothing but the texts of log
// lines is freed before the call returns. The host's texts and lists get here by cabi_realloc; a NUL
// follows each of them.
#include "memory.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "gristmill_plugin.h"

#ifndef GM_ARENA_BYTES
#define GM_ARENA_BYTES (128 << 10)
#endif

#define ALIGNMENT 16
#define BLOCK_BYTES ((size_t)256 << 10)

// A block of malloc, in a list of those to free. Its memory follows it.
typedef struct block {
    struct block *previous;
    size_t size;
} block;

static _Alignas(ALIGNMENT) unsigned char arena[GM_ARENA_BYTES];
static unsigned char *next = arena;
static unsigned char *end = arena + sizeof arena;
static block *blocks;

// Bytes of an allocation: with a NUL, and up to the next one's alignment.
static size_t footprint(size_t size) {
    return (size + ALIGNMENT) & ~(size_t)(ALIGNMENT - 1);
}

static void add_block(size_t needed) {
    size_t header = footprint(sizeof(block));
    size_t size = needed < BLOCK_BYTES ? BLOCK_BYTES : needed;
    block *added = size > SIZE_MAX - header ? NULL : malloc(header + size);
    if (!added) gm_panic_at(NULL, 0, "out of memory: no %zu bytes", needed);
    added->previous = blocks;
    added->size = size;
    blocks = added;
    next = (unsigned char *)added + header;
    end = next + size;
}

void *gm_alloc(size_t size) {
    if (size > PTRDIFF_MAX - ALIGNMENT) gm_panic_at(NULL, 0, "out of memory: no %zu bytes", size);
    size_t needed = footprint(size);
    if (needed > (size_t)(end - next)) add_block(needed);
    unsigned char *found = next;
    next += needed;
    found[size] = 0;
    return found;
}

void *gm_resize(void *old, size_t old_size, size_t size) {
    unsigned char *bytes = old;
    if (bytes && bytes + footprint(old_size) == next && size < PTRDIFF_MAX - ALIGNMENT &&
        footprint(size) <= (size_t)(end - bytes)) {
        next = bytes + footprint(size);
        bytes[size] = 0;
        return old;
    }
    void *moved = gm_alloc(size);
    if (old) memcpy(moved, old, old_size < size ? old_size : size);
    return moved;
}

gm_mark gm_mark_memory(void) {
    return (gm_mark){blocks, next, end};
}

void gm_release_since(gm_mark mark) {
    while (blocks != mark.blocks) {
        block *previous = blocks->previous;
        free(blocks);
        blocks = previous;
    }
    next = mark.next;
    end = mark.end;
}

void gm_release_memory(void) {
    gm_release_since((gm_mark){NULL, arena, arena + sizeof arena});
}

char *gm_copy(const void *data, size_t size) {
    char *copy = gm_alloc(size);
    if (size) memcpy(copy, data, size);
    return copy;
}

#ifdef __wasm__
// The host calls this for each text and list that it gives to the plugin.
__attribute__((export_name("cabi_realloc"))) void *cabi_realloc(void *old, size_t old_size,
                                                                size_t alignment, size_t size) {
    (void)alignment; // at most 8
    return gm_resize(old, old_size, size);
}
#endif

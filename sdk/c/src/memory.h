// Memory that lives until the call returns.
#ifndef GM_MEMORY_H
#define GM_MEMORY_H

#include <stddef.h>

// Changes the size of a block of gm_alloc; `old` may be NULL. The block stays where it is if it is
// the latest one and its arena has room.
void *gm_resize(void *old, size_t old_size, size_t size);

// A point in the order of allocations.
typedef struct {
    struct block *blocks;
    unsigned char *next, *end;
} gm_mark;

gm_mark gm_mark_memory(void);

// Frees what gm_alloc gave since the mark.
void gm_release_since(gm_mark mark);

// Frees everything that gm_alloc gave.
void gm_release_memory(void);

// A copy with a NUL behind it.
char *gm_copy(const void *data, size_t size);

#endif

// Memory that lives until the call returns.
#ifndef GM_MEMORY_H
#define GM_MEMORY_H

#include <stddef.h>

// Changes the size of a block of gm_alloc; `old` may be NULL. The block stays where it is if it is
// the latest one and its arena has room.
void *gm_resize(void *old, size_t old_size, size_t size);

// Frees everything that gm_alloc gave.
void gm_release_memory(void);

// A copy with a NUL behind it.
char *gm_copy(const void *data, size_t size);

#endif

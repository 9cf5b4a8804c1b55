// Single elements of tensors, for casts.
#ifndef GM_HOST_ELEMENTS_H
#define GM_HOST_ELEMENTS_H

#include "gristmill_plugin.h"

// A number of any dtype.
typedef struct {
    bool is_real;
    double real;
    __int128 integer;
} host_element;

host_element host_read_element(gm_dtype dtype, const void *from);
void host_write_element(gm_dtype dtype, void *to, host_element element);

#endif

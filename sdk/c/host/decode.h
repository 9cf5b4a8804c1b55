// Decoding pictures, if there is a library for it.
#ifndef GM_HOST_DECODE_H
#define GM_HOST_DECODE_H

#include "host.h"

typedef enum { HOST_DECODED, HOST_UNKNOWN_FORMAT, HOST_MALFORMED, HOST_NO_DECODER } host_decoding;

// Decodes to GM_RGB or GM_GRAY. `text` says why a picture is malformed, or that no decoder is
// there.
host_decoding host_decode(gm_bytes file, gm_color color, host_pixels *out, const char **text);

#endif

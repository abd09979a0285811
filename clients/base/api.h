// Between the libraries of sinew.h and sinew_client.h: errors, and structures of a caller whose header may be older or
// newer.
#ifndef SINEW_CLIENTS_BASE_API_H_
#define SINEW_CLIENTS_BASE_API_H_

#include <stddef.h>

#include "clients/include/sinew.h"

// Sets err (which may be NULL) and returns `status`. Text is formatted like printf.
__attribute__((format(printf, 3, 4))) SinewStatus api_fail(SinewError *err, SinewStatus status, const char *format,
                                                           ...);
// Clears err (which may be NULL) by two writes and returns SINEW_OK.
SinewStatus api_ok(SinewError *err);

// Describes a structure that begins with `size_t size` and grows at its end. A new member never takes the place of
// padding at the end, for the size has to tell whether a caller has it.
typedef struct ApiStruct {
  const char *name;   // "SinewSessionDef"
  const char *maker;  // "sinew_default_session"
  size_t known;       // bytes of this version
  size_t first;       // bytes of the first version, up to its last member: API_END
} ApiStruct;

// Gives the number of bytes of a structure up to the end of a member.
#define API_END(type, member) (offsetof(type, member) + sizeof(((type *)0)->member))

// Copies a structure of the caller over `out`, which has `known` bytes and holds the defaults. Members that the caller
// does not have keep them; out's size becomes `known`. Returns SINEW_ERR_ARGUMENT, with
// `out` as it was, for a NULL pointer or a size below the first version's or above 4096. A member that is unknown here
// and not zero is refused likewise.
SinewStatus api_take(const ApiStruct *type, const void *in, void *out, SinewError *err);

// Copies a structure of this version (`known` bytes) to one of the caller, as much as the caller has. The caller's size
// stays. Fails as api_take.
SinewStatus api_give(const ApiStruct *type, const void *from, void *out, SinewError *err);

#endif

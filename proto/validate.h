// The gate for requests: every field of every one of them has a row in a table of bounds. protobuf-c accepts NaN, bad
// UTF-8 and any length. Behind this gate nobody has to ask again whether a number is finite or a name a name.
//
// Bounds that depend on a model (the length of qpos) are checked by the session that knows the model.
#ifndef SINEW_PROTO_VALIDATE_H_
#define SINEW_PROTO_VALIDATE_H_

#include <stdint.h>

#include "proto/wire_arena.h"
#include "proto/sinew.pb-c.h"

#define SN_WIRE_WAIT 3600.0  // [s], the most of deadlines, periods and leases of streams
#define SN_WIRE_LEASE 0.05   // [s], the least lease of a stream

enum {
  SN_PROTOCOL = 1,             // version of the protocol
  SN_WIRE_NAME = 200,          // bytes of a name of a model, task, client or choice
  SN_WIRE_NUMBERS = 1 << 21,   // numbers in an array
  SN_WIRE_MESSAGE = 16 << 20,  // bytes of a message, whatever the daemon is told
};

// Says why a message was refused.
typedef struct SnWireError {
  Sinew__V1__Error__Code code;
  char text[512];
} SnWireError;

// Checks all fields of a message against the table, sub-messages included. Returns 0, or -1 with the error set, which
// names the first bad field, its value and what is allowed.
int sn_validate(const ProtobufCMessage *message, SnWireError *err);

// Reads a request from one frame of a client. Checks the size, unpacks within the arena's budget, validates, and sees
// to it that the body is known. Returns NULL and err when it is none; the id is then in *id if it could be read, else
// 0. The request lives in the arena, until its next reset.
const Sinew__V1__Request *sn_request_read(SnWireArena *arena, const void *bytes, size_t size, uint64_t *id,
                                          SnWireError *err);

// Reads a message of another kind, as a file holds it, with the same checks. Returns NULL and err when it is none, or
// (LIMIT) there is no memory; the caller frees it by protobuf_c_message_free_unpacked.
ProtobufCMessage *sn_message_read(const ProtobufCMessageDescriptor *kind, const void *bytes, size_t size,
                                  SnWireError *err);

// Returns the id of a message that is not unpacked: field 1 is usually the first on the wire. 0 where it is not.
uint64_t sn_request_id(const void *bytes, size_t size);

// Returns the bytes of an arena that holds every valid message of at most `message_bytes`.
size_t sn_wire_arena_budget(size_t message_bytes);

// Says what the table knows of a field.
typedef struct SnFieldBounds {
  double min, max;  // bounds of a number, or of the bytes of a text
  size_t count;     // most entries of an array
  bool required;    // a sub-message without which its message means nothing
} SnFieldBounds;

// Reads what the table knows of a field of a message, by their names in the schema. Returns false where it has no row
// and is not required. It is for tests, which make requests that pass.
bool sn_validate_bounds(const char *message, const char *field, SnFieldBounds *bounds);

// Checks that every field that a request or a file can carry has a row in the table. Returns 0, or -1 and err, which
// names one that has none. It is for the tests: a field added to the schema without bounds must not pass.
int sn_validate_table(SnWireError *err);

#endif

// Protobuf messages as JSON and as "name=value" text, through the descriptors that protoc-c generates: no
// message needs code of its own here.
#ifndef SINEW_CLIENTS_LIBSINEW_CLIENT_REFLECT_H_
#define SINEW_CLIENTS_LIBSINEW_CLIENT_REFLECT_H_

#include <cjson/cJSON.h>
#include <protobuf-c/protobuf-c.h>
#include <stdbool.h>
#include <stdio.h>

// Returns a message as a JSON object, which the caller deletes, or NULL when out of memory. Absent oneofs and
// sub-messages are left out. Infinities and NaN, which JSON does not have, are printed as null, as by every program
// here.
cJSON *sn_message_to_json(const ProtobufCMessage *message);

// Fills a message, initialised by its __init, from a JSON object; null leaves a field out, "inf", "-inf" and "nan" are
// the numbers. Memory of strings, arrays and sub-messages comes from malloc and belongs to the message: free it with
// sn_message_clear. Returns false, and a text in error (which names the field), when a field is unknown or of the wrong
// type.
bool sn_message_from_json(ProtobufCMessage *message, const cJSON *json, char *error, size_t error_size);

// Bounds the text of an error that lists all names, too.
enum { SN_MESSAGE_ERROR = 3000 };

// Sets the field of "name=value" in a message: a text as it stands, anything else as in JSON, e.g. target=[0.1,2].
// Returns false, and a text in error, when there is no such field or the value does not fit. The text lists the names
// that exist, and says which may be meant.
bool sn_message_set(ProtobufCMessage *message, const char *assignment, char *error, size_t error_size);

// Tells which of n types has the field that an assignment "name=value" names: the first one. Returns -1 where none has.
// The text in error then says that there is no such `kind`. It lists the names of all types, then `more`, and says
// which may be meant.
int sn_message_owner(const ProtobufCMessageDescriptor *const *types, int n, const char *assignment, const char *kind,
                     const char *more, char *error, size_t error_size);

// Frees what from_json and set allocated inside the message and empties it; the message itself is the caller's.
void sn_message_clear(ProtobufCMessage *message);

// Prints a message for people: one line a field, indented, long number arrays shortened, texts fit for a terminal.
void sn_message_print(FILE *out, const ProtobufCMessage *message, int indent);

#endif

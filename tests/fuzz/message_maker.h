// Bytes to messages: every input is a message that the schema allows, most fields with values that make sense. An
// engine that changes a byte changes one value, and not the framing around it.
#ifndef SINEW_TESTS_FUZZ_MESSAGE_MAKER_H_
#define SINEW_TESTS_FUZZ_MESSAGE_MAKER_H_

#include <protobuf-c/protobuf-c.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/validate.h"

// Holds what is left of an input.
typedef struct FuzzBytes {
  const uint8_t *at, *end;
} FuzzBytes;

// Returns the next byte, 0 when there is none left.
unsigned fuzz_byte(FuzzBytes *bytes);

// Says what values are likely. Numbers keep to their bounds more often than not.
typedef struct FuzzHints {
  // Returns a text for a field, chosen by a byte below 224.
  const char *(*text)(const ProtobufCMessageDescriptor *message, const char *field, unsigned byte);
  // Returns the entries of an array of numbers, chosen by a byte below 192.
  unsigned (*length)(const char *field, unsigned byte);
  const uint64_t *session;  // (nsession) likely values of fields of this name
  size_t nsession;
  bool sparse;  // fields that may be left out mostly are
  // Narrows the bounds that proto/validate.c has for a field; NULL: they stay.
  void (*narrow)(const ProtobufCMessageDescriptor *message, const char *field, SnFieldBounds *bounds);
} FuzzHints;

// Makes a message of a kind and writes its packed bytes into out[capacity]; returns how many these are. With a `field`
// the message is its field 1, `id`, and this member of its oneof. A message that is too long ends where the memory
// does, and is none then.
size_t fuzz_message(FuzzBytes *bytes, const FuzzHints *hints, const ProtobufCMessageDescriptor *kind, unsigned field,
                    uint64_t id, uint8_t *out, size_t capacity);

#endif

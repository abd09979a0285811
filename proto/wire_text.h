// Texts in packed messages. Clients in most languages refuse a whole message for one text that is no UTF-8. Such texts
// are names of a model that has another encoding, and errors that were cut within a character.
#ifndef SINEW_PROTO_WIRE_TEXT_H_
#define SINEW_PROTO_WIRE_TEXT_H_

#include <stddef.h>
#include <stdint.h>
#include <protobuf-c/protobuf-c.h>

// Returns the length of the character of UTF-8 at s, of which there are `size` bytes, or 0: overlong forms and
// surrogates are none.
size_t sn_utf8_length(const unsigned char *s, size_t size);

// Reads a number of variable length at *p, before `end`, and moves *p behind it.
uint64_t sn_wire_varint(const unsigned char **p, const unsigned char *end);

// Puts a question mark in the place of each byte that is no part of a character, in all texts of a packed message. The
// message is of that kind, and whole, as protobuf_c_message_pack makes it; its size stays.
void sn_wire_mend_texts(const ProtobufCMessageDescriptor *kind, unsigned char *bytes, size_t size);

#endif

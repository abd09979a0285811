#include "proto/wire_text.h"

#include <string.h>

size_t sn_utf8_length(const unsigned char *s, size_t size) {
  if (size == 0) return 0;
  if (s[0] < 0x80) return 1;
  const size_t n = s[0] >= 0xf0 ? 4 : s[0] >= 0xe0 ? 3 : 2;
  if (s[0] < 0xc2 || s[0] > 0xf4 || n > size) return 0;
  for (size_t i = 1; i < n; i++)
    if ((s[i] & 0xc0) != 0x80) return 0;
  if ((s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] > 0x9f)) return 0;
  if ((s[0] == 0xf0 && s[1] < 0x90) || (s[0] == 0xf4 && s[1] > 0x8f)) return 0;
  return n;
}

uint64_t sn_wire_varint(const unsigned char **p, const unsigned char *end) {
  uint64_t x = 0;
  for (unsigned shift = 0; *p < end; shift += 7) {
    const unsigned char byte = *(*p)++;
    if (shift < 64) x |= (uint64_t)(byte & 0x7f) << shift;
    if (!(byte & 0x80)) break;
  }
  return x;
}

// Returns where the characters of one byte end that begin at i, or up to seven of them before: a page of metrics is a
// megabyte of them.
static size_t skip(const unsigned char *text, size_t i, size_t size) {
  for (uint64_t word; i + sizeof word <= size; i += sizeof word) {
    memcpy(&word, text + i, sizeof word);
    if (word & 0x8080808080808080u) break;
  }
  return i;
}

static void mend(unsigned char *text, size_t size) {
  for (size_t i = skip(text, 0, size), n; i<size; i = n> 1 ? i + n : skip(text, i + 1, size)) {
    n = sn_utf8_length(text + i, size - i);
    if (n == 0) text[i] = '?';
  }
}

void sn_wire_mend_texts(const ProtobufCMessageDescriptor *kind, unsigned char *bytes, size_t size) {
  enum { VARINT = 0, LONG = 1, BYTES = 2, SHORT = 5 };
  const unsigned char *p = bytes;
  for (const unsigned char *end = bytes + size; p < end;) {
    const uint64_t tag = sn_wire_varint(&p, end);
    const int type = tag & 7;
    if (type == VARINT) sn_wire_varint(&p, end);
    size_t n = type == LONG ? 8 : type == SHORT ? 4 : type == BYTES ? (size_t)sn_wire_varint(&p, end) : 0;
    if (n > (size_t)(end - p)) n = (size_t)(end - p);
    const ProtobufCFieldDescriptor *f =
        type == BYTES ? protobuf_c_message_descriptor_get_field(kind, (unsigned)(tag >> 3)) : NULL;
    if (f && f->type == PROTOBUF_C_TYPE_STRING) mend(bytes + (p - bytes), n);
    if (f && f->type == PROTOBUF_C_TYPE_MESSAGE) sn_wire_mend_texts(f->descriptor, bytes + (p - bytes), n);
    p += n;
  }
}

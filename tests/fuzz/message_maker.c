#include "tests/fuzz/message_maker.h"

#include <math.h>
#include <string.h>

// Fields of a message that may come several times, and of one with many fields those that are there, at most.
enum { REPEATS = 4, FEW = 16, CHOSEN = 6 };

unsigned fuzz_byte(FuzzBytes *b) { return b->at < b->end ? *b->at++ : 0; }

typedef struct Out {
  uint8_t *bytes;
  size_t n, capacity;
} Out;

static void put(Out *o, const void *bytes, size_t n) {
  if (n > o->capacity - o->n) n = o->capacity - o->n;
  memcpy(o->bytes + o->n, bytes, n);
  o->n += n;
}

static void put_varint(Out *o, uint64_t x) {
  uint8_t bytes[10];
  size_t n = 0;
  do bytes[n++] = (uint8_t)(x & 0x7f) | (x > 0x7f ? 0x80 : 0);
  while (x >>= 7);
  put(o, bytes, n);
}

static void put_key(Out *o, unsigned id, unsigned wire) { put_varint(o, (uint64_t)id << 3 | wire); }

// Leaves room for a length of what follows; end_length() fills it in.
static size_t begin_length(Out *o) {
  put(o, "\0\0\0\0", 4);
  return o->n;
}

static void end_length(Out *o, size_t begin) {
  if (o->n == o->capacity) return;
  const size_t n = o->n - begin;
  for (int i = 0; i < 4; ++i) o->bytes[begin - 4 + (size_t)i] = (uint8_t)(n >> 7 * i & 0x7f) | (i < 3 ? 0x80 : 0);
}

static uint64_t raw(FuzzBytes *b) {
  uint64_t x = 0;
  for (int i = 0; i < 8; ++i) x = x << 8 | fuzz_byte(b);
  return x;
}

// What a field may be, as the daemon checks it; anything, where it does not.
static SnFieldBounds bounds_of(const FuzzHints *h, const ProtobufCMessageDescriptor *d, const char *field) {
  SnFieldBounds bounds;
  if (!sn_validate_bounds(d->short_name, field, &bounds)) bounds = (SnFieldBounds){.min = -INFINITY, .max = INFINITY};
  if (h->narrow) h->narrow(d, field, &bounds);
  return bounds;
}

static double within(double x, const SnFieldBounds *bounds) { return fmin(fmax(x, bounds->min), bounds->max); }

static double real(FuzzBytes *b, const SnFieldBounds *bounds) {
  static const double special[] = {0,    NAN,  INFINITY, -INFINITY, 1e300, -1e300, 1e-300,
                                   -0.0, 1e10, -1e10,    1e9,       3600,  1e-9};
  const unsigned c = fuzz_byte(b);
  if (c < 96) return within(c ? c / 64.0 : 0.5, bounds);  // four halves are a quaternion
  if (c < 160) return within(-(double)(c - 96) / 16.0, bounds);
  if (c < 224) return within((c - 159) * 0.001, bounds);
  if (c - 224 < sizeof special / sizeof *special) return special[c - 224];
  if (c < 240) return c % 2 ? bounds->min : bounds->max;
  const uint64_t x = raw(b);
  double value;
  memcpy(&value, &x, sizeof value);
  return value;
}

static uint64_t whole(FuzzBytes *b, const SnFieldBounds *bounds) {
  static const uint64_t special[] = {0, 1u << 24, 100000, 1000000, INT32_MAX, UINT32_MAX, INT64_MAX, UINT64_MAX};
  const unsigned c = fuzz_byte(b);
  if (c < 192) return (uint64_t)within(c % 64, bounds);
  if (c < 224) return (uint64_t)1 << (c - 192);
  return c - 224 < sizeof special / sizeof *special ? special[c - 224] : raw(b);
}

static void put_text(Out *o, FuzzBytes *b, const FuzzHints *h, const ProtobufCMessageDescriptor *d, const char *field) {
  const unsigned c = fuzz_byte(b);
  if (c < 224) {
    const char *text = h->text(d, field, c);
    put_varint(o, strlen(text));
    put(o, text, strlen(text));
    return;
  }
  const size_t begin = begin_length(o);
  for (unsigned n = c % 32; n > 0; --n) {
    const uint8_t letter = (uint8_t)fuzz_byte(b);
    put(o, &letter, 1);
  }
  end_length(o, begin);
}

static bool is_long(const ProtobufCFieldDescriptor *f) { return f->type == PROTOBUF_C_TYPE_DOUBLE; }

static void put_number(Out *o, FuzzBytes *b, const FuzzHints *h, const ProtobufCFieldDescriptor *f,
                       const SnFieldBounds *bounds) {
  if (is_long(f)) {
    const double x = real(b, bounds);
    put(o, &x, sizeof x);
    return;
  }
  const bool session = !strcmp(f->name, "session") && h->nsession;
  const unsigned c = session ? fuzz_byte(b) : 0;
  put_varint(o, session && c < 224 ? h->session[c % h->nsession] : whole(b, bounds));
}

// Entries of an array: of each a value of its own, or one for all.
static void put_array(Out *o, FuzzBytes *b, const FuzzHints *h, const ProtobufCFieldDescriptor *f,
                      const SnFieldBounds *bounds) {
  const unsigned c = fuzz_byte(b);
  unsigned n = c < 192 ? h->length(f->name, c) : c % 16;
  put_key(o, f->id, 2);
  const size_t begin = begin_length(o);
  const FuzzBytes same = *b;
  for (const bool each = fuzz_byte(b) % 2; n > 0; --n) {
    if (!each) *b = (FuzzBytes){same.at < same.end ? same.at + 1 : same.at, same.end};
    put_number(o, b, h, f, bounds);
  }
  end_length(o, begin);
}

static void put_message(Out *o, FuzzBytes *b, const FuzzHints *h, const ProtobufCMessageDescriptor *d);

static void put_field(Out *o, FuzzBytes *b, const FuzzHints *h, const ProtobufCMessageDescriptor *d,
                      const ProtobufCFieldDescriptor *f) {
  const SnFieldBounds bounds = bounds_of(h, d, f->name);
  if (f->type == PROTOBUF_C_TYPE_MESSAGE) {
    put_key(o, f->id, 2);
    const size_t begin = begin_length(o);
    put_message(o, b, h, f->descriptor);
    end_length(o, begin);
  } else if (f->type == PROTOBUF_C_TYPE_STRING || f->type == PROTOBUF_C_TYPE_BYTES) {
    put_key(o, f->id, 2);
    put_text(o, b, h, d, f->name);
  } else if (f->label == PROTOBUF_C_LABEL_REPEATED) {
    put_array(o, b, h, f, &bounds);
  } else {
    put_key(o, f->id, is_long(f) ? 1 : 0);
    put_number(o, b, h, f, &bounds);
  }
}

static void put_fields(Out *o, FuzzBytes *b, const FuzzHints *h, const ProtobufCMessageDescriptor *d, unsigned i) {
  const ProtobufCFieldDescriptor *f = &d->fields[i];
  const bool many = f->label == PROTOBUF_C_LABEL_REPEATED &&
                    (f->type == PROTOBUF_C_TYPE_MESSAGE || f->type == PROTOBUF_C_TYPE_STRING);
  for (unsigned n = many ? fuzz_byte(b) % REPEATS : 1; n > 0; --n) put_field(o, b, h, d, f);
}

// Whether a field is there when its bit is 0.
static bool is_usual(const FuzzHints *h, const ProtobufCMessageDescriptor *d, const ProtobufCFieldDescriptor *f) {
  const bool optional = f->type == PROTOBUF_C_TYPE_MESSAGE || f->flags & PROTOBUF_C_FIELD_FLAG_ONEOF;
  return !h->sparse || !optional || f->label == PROTOBUF_C_LABEL_REPEATED || bounds_of(h, d, f->name).required;
}

// Of few fields the usual ones are there, but for those with a bit set; of many some.
static void put_message(Out *o, FuzzBytes *b, const FuzzHints *h, const ProtobufCMessageDescriptor *d) {
  if (d->n_fields == 0) return;
  if (d->n_fields <= FEW) {
    const unsigned low = fuzz_byte(b), other = low | (d->n_fields > 8 ? fuzz_byte(b) << 8 : 0);
    for (unsigned i = 0; i < d->n_fields; ++i)
      if (is_usual(h, d, &d->fields[i]) == !(other >> i & 1)) put_fields(o, b, h, d, i);
    return;
  }
  const unsigned c = fuzz_byte(b);
  if (c < 224) {
    for (unsigned n = c % CHOSEN; n > 0; --n) put_fields(o, b, h, d, fuzz_byte(b) % d->n_fields);
  } else {
    for (unsigned i = 0; i < d->n_fields; ++i) put_fields(o, b, h, d, i);
  }
}

size_t fuzz_message(FuzzBytes *b, const FuzzHints *h, const ProtobufCMessageDescriptor *d, unsigned field, uint64_t id,
                    uint8_t *out, size_t capacity) {
  Out o = {out, 0, capacity};
  if (!field) {
    put_message(&o, b, h, d);
    return o.n;
  }
  put_key(&o, 1, 0);
  put_varint(&o, id);
  put_field(&o, b, h, d, protobuf_c_message_descriptor_get_field(d, field));
  return o.n;
}

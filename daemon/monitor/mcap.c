#include <stdlib.h>
#include <string.h>

#include "daemon/monitor/flight_private.h"

// Kinds of records.
enum { HEADER = 1, FOOTER = 2, SCHEMA = 3, CHANNEL = 4, MESSAGE = 5, DATA_END = 15 };

static const char magic[] = "\x89MCAP0\r\n";

static void add(SnMcapPart *p, const void *bytes, size_t size) {
  if (!p->bytes) return;
  if (p->size + size > p->capacity) {
    const size_t capacity = 2 * (p->size + size);
    unsigned char *grown = realloc(p->bytes, capacity);
    if (!grown) {
      free(p->bytes);
      p->bytes = NULL;
      return;
    }
    p->bytes = grown;
    p->capacity = capacity;
  }
  memcpy(p->bytes + p->size, bytes, size);
  p->size += size;
}

// Numbers are little-endian.
static void put(unsigned char *to, uint64_t x, int bytes) {
  for (int i = 0; i < bytes; i++) to[i] = (unsigned char)(x >> (8 * i));
}

static void add_number(SnMcapPart *p, uint64_t x, int bytes) {
  unsigned char little[8];
  put(little, x, bytes);
  add(p, little, (size_t)bytes);
}

static void add_bytes(SnMcapPart *p, const void *bytes, size_t size) {
  add_number(p, size, 4);
  add(p, bytes, size);
}

static void add_text(SnMcapPart *p, const char *text) { add_bytes(p, text, strlen(text)); }

// Begins a record, whose length is written when it ends. Returns where it began.
static size_t begin_record(SnMcapPart *p, int kind) {
  add_number(p, (uint64_t)kind, 1);
  add_number(p, 0, 8);
  return p->size;
}

static void end_record(SnMcapPart *p, size_t began) {
  if (p->bytes) put(p->bytes + began - 8, p->size - began, 8);
}

static void add_channel(SnMcapPart *p, int id, const char *topic, const char *message, const void *schema,
                        size_t size) {
  size_t began = begin_record(p, SCHEMA);
  add_number(p, (uint64_t)id, 2);
  add_text(p, message);
  add_text(p, "protobuf");
  add_bytes(p, schema, size);
  end_record(p, began);
  began = begin_record(p, CHANNEL);
  add_number(p, (uint64_t)id, 2);
  add_number(p, (uint64_t)id, 2);
  add_text(p, topic);
  add_text(p, "protobuf");
  add_number(p, 0, 4);  // no metadata
  end_record(p, began);
}

SnMcapPart sn_mcap_begin(const void *schema, size_t size) {
  SnMcapPart p = {.bytes = malloc(64), .capacity = 64};
  add(&p, magic, sizeof magic - 1);
  const size_t began = begin_record(&p, HEADER);
  add_text(&p, "");
  add_text(&p, "sinewd " SN_VERSION);
  end_record(&p, began);
  add_channel(&p, SN_MCAP_REQUESTS, "requests", "sinew.v1.Request", schema, size);
  add_channel(&p, SN_MCAP_PLANS, "plans", "sinew.v1.PlanTrace", schema, size);
  return p;
}

SnMcapPart sn_mcap_end(void) {
  SnMcapPart p = {.bytes = malloc(64), .capacity = 64};
  size_t began = begin_record(&p, DATA_END);
  add_number(&p, 0, 4);  // no checksum
  end_record(&p, began);
  began = begin_record(&p, FOOTER);
  add_number(&p, 0, 8);  // no summary
  add_number(&p, 0, 8);
  add_number(&p, 0, 4);
  end_record(&p, began);
  add(&p, magic, sizeof magic - 1);
  return p;
}

void sn_mcap_message(unsigned char head[SN_MCAP_MESSAGE_HEAD], int channel, uint32_t number, uint64_t nanoseconds,
                     size_t size) {
  head[0] = MESSAGE;
  put(head + 1, SN_MCAP_MESSAGE_HEAD - 9 + size, 8);
  put(head + 9, (uint64_t)channel, 2);
  put(head + 11, number, 4);
  put(head + 15, nanoseconds, 8);  // logged
  put(head + 23, nanoseconds, 8);  // published
}

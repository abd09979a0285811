// Fuzz target: what `sinewctl flight` reads, files of the flight recorder. Bit 0 of the first byte: as JSON; bit 1: the
// rest is a file as it is. Else sinewd's own functions make one, of messages that the rest makes.
#include <cjson/cJSON.h>
#include <stdlib.h>
#include <string.h>

#include "clients/sinewctl/flight_private.h"
#include "daemon/monitor/flight_private.h"
#include "proto/sinew.pb-c.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/message_maker.h"

enum { MESSAGES = 16, MESSAGE_BYTES = 1 << 16, KINDS = 32 };

#define REQUEST (&sinew__v1__request__descriptor)

static const char schema[] = "descriptors";
static SnMcapPart begin, end;
static uint8_t *file;
static size_t file_size;

// What was shown: requests of each kind and plans, as text and as JSON; what was refused, by its reason.
static bool shown[2][KINDS], plan_shown[2], no_file, cut_off, bad_message;

static const char *text_of(const ProtobufCMessageDescriptor *message, const char *field, unsigned byte) {
  static const char *const text[] = {"arm_reach", "\"\\\n", "\x1b[2J", "\xc3\xa9", "\xff", ""};
  (void)message;
  (void)field;
  return text[byte % (sizeof text / sizeof *text)];
}

static unsigned length_of(const char *field, unsigned byte) {
  (void)field;
  return byte % 24;
}

static const FuzzHints hints = {text_of, length_of, NULL, 0, false, NULL};

static void prepare(void) {
  begin = sn_mcap_begin(schema, sizeof schema);
  end = sn_mcap_end();
  file = malloc(begin.size + MESSAGES * (size_t)(SN_MCAP_MESSAGE_HEAD + MESSAGE_BYTES) + end.size);
  if (!begin.bytes || !end.bytes || !file) fuzz_fail("out of memory");
}

static void put(const void *bytes, size_t size) {
  memcpy(file + file_size, bytes, size);
  file_size += size;
}

// A message and the kind it is of: one byte says which, one when it was logged.
static void put_message(FuzzBytes *input, uint32_t number) {
  static uint8_t bytes[MESSAGE_BYTES];
  uint8_t head[SN_MCAP_MESSAGE_HEAD];
  const unsigned c = fuzz_byte(input), when = fuzz_byte(input);
  const bool plan = c % (REQUEST->n_fields) == 0;
  const size_t size =
      plan ? fuzz_message(input, &hints, &sinew__v1__plan_trace__descriptor, 0, 0, bytes, sizeof bytes)
           : fuzz_message(input, &hints, REQUEST, REQUEST->fields[c % REQUEST->n_fields].id, c, bytes, sizeof bytes);
  sn_mcap_message(head, plan ? SN_MCAP_PLANS : SN_MCAP_REQUESTS, number, (uint64_t)when << 56 | number, size);
  put(head, sizeof head);
  put(bytes, size);
}

// Makes a file as sinewd does; returns how many messages it has.
static long make_file(FuzzBytes input) {
  long n = 0;
  file_size = 0;
  put(begin.bytes, begin.size);
  while (n < MESSAGES && input.at < input.end) put_message(&input, (uint32_t)++n);
  put(end.bytes, end.size);
  return n;
}

static void note_request(const char *name, size_t length, bool json) {
  for (unsigned i = 1; i < REQUEST->n_fields && i < KINDS; ++i)
    if (strlen(REQUEST->fields[i].name) == length && !memcmp(REQUEST->fields[i].name, name, length)) {
      shown[json][i] = true;
      return;
    }
  fuzz_fail("a request of kind '%.*s'", (int)length, name);
}

// A line of JSON has a time, a topic and a message; that of a request one body.
static void check_object(const char *line) {
  cJSON *object = cJSON_Parse(line);
  const cJSON *message = cJSON_GetObjectItemCaseSensitive(object, "message");
  const char *topic = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(object, "topic"));
  if (!topic || !cJSON_IsObject(message) || !cJSON_IsNumber(cJSON_GetObjectItemCaseSensitive(object, "time")))
    fuzz_fail("a line that is no message: %s", line);
  if (!strcmp(topic, "plans")) {
    plan_shown[true] = true;
  } else {
    const cJSON *body = message->child ? message->child->next : NULL;
    if (!body || body->next || strcmp(topic, "requests")) fuzz_fail("a line that is no request: %s", line);
    note_request(body->string, strlen(body->string), true);
  }
  cJSON_Delete(object);
}

// A line for people begins with a time of 17 characters, and nothing in it moves a terminal's cursor.
static void check_text(const char *line) {
  for (const char *at = line; *at; ++at)
    if (*at < ' ' || *at > '~') fuzz_fail("a line with the byte %d: %s", *at, line);
  if (strlen(line) < 20 || line[2] != ':' || line[8] != '.') fuzz_fail("a line without a time: %s", line);
  const char *name = line + 17;
  if (!strncmp(name, "  plan sent", 11))
    plan_shown[false] = true;
  else
    note_request(name, strcspn(name, " "), false);
}

// Checks what was printed; returns how many messages these are. Text ends with their number, where a file does.
static long check_lines(char *text, bool json, bool whole) {
  long n = 0, told = -1;
  for (char *line = text, *next; *line; line = next) {
    next = line + strcspn(line, "\n");
    if (!*next) fuzz_fail("a line without an end");
    *next++ = '\0';
    if (!*next && whole && !json) {
      told = strtol(line, NULL, 10);
      break;
    }
    if (json)
      check_object(line);
    else
      check_text(line);
    ++n;
  }
  if (whole && !json && told != n) fuzz_fail("%ld messages are said to be %ld", n, told);
  return n;
}

static void note_reason(const char *why) {
  no_file |= strstr(why, "no file of the kind") != NULL;
  cut_off |= strstr(why, "ends too early") != NULL;
  bad_message |= strstr(why, "cannot be read") != NULL;
}

// Reads a file, and returns how many messages it shows; -1: not to its end.
static long read_file(const void *bytes, size_t size, bool json) {
  char *text = NULL;
  size_t length = 0;
  FILE *out = open_memstream(&text, &length);
  if (!out) fuzz_fail("out of memory");
  const char *why = flight_print(out, bytes, size, json);
  fclose(out);
  if (strlen(text) != length) fuzz_fail("a zero byte is printed");
  const long n = check_lines(text, json, !why);
  free(text);
  if (why) note_reason(why);
  return why ? -1 : n;
}

void fuzz_one(const uint8_t *data, size_t size) {
  if (!file) prepare();
  if (size == 0) return;
  const bool json = data[0] & 1;
  if (data[0] & 2) {
    read_file(data + 1, size - 1, json);
    return;
  }
  const long put = make_file((FuzzBytes){data + 1, data + size}), got = read_file(file, file_size, json);
  if (got != put) fuzz_fail("of %ld messages %ld are read", put, got);
}

const char *fuzz_missing(void) {
  static char name[100];
  for (int json = 0; json < 2; ++json) {
    for (unsigned i = 1; i < REQUEST->n_fields; ++i) {
      snprintf(name, sizeof name, "a request %s%s", REQUEST->fields[i].name, json ? " as JSON" : "");
      if (!shown[json][i]) return name;
    }
    if (!plan_shown[json]) return json ? "a plan as JSON" : "a plan";
  }
  return !no_file       ? "no file of this kind"
         : !cut_off     ? "a file that is cut off"
         : !bad_message ? "a bad message"
                        : NULL;
}

// Each kind of request and a plan, with several choices of what is in it, as text and as JSON; then files as they are,
// one of them cut off, one with a message that is none.
size_t fuzz_seed(int i, uint8_t *bytes) {
  enum { LENGTH = 60, FILES = 8 };
  const int kinds = (int)REQUEST->n_fields, made = 4 * kinds;
  size_t n = 0;
  if (!file) prepare();
  if (i >= made + FILES) return 0;
  bytes[n++] = (uint8_t)(i % 2 + (i < made ? 0 : 2));
  if (i < made) {
    bytes[n++] = (uint8_t)(i / 2 % kinds);
    for (size_t k = 0; k < LENGTH; ++k) bytes[n++] = (uint8_t)(i / 2 < kinds ? 0 : (k * k * 5 + k * (size_t)i) >> 1);
    return n;
  }
  static const uint8_t few[] = {9, 0, 1, 2, 3, 24, 0, 7, 23, 0, 1, 18, 24, 7};
  make_file((FuzzBytes){few, few + sizeof few});
  const int kind = (i - made) / 2;
  if (kind == 1) file_size -= end.size + 1;
  if (kind == 2) file[begin.size + SN_MCAP_MESSAGE_HEAD] = 0xff;
  memcpy(bytes + n, file, kind == 3 ? 7 : file_size);
  return n + (kind == 3 ? 7 : file_size);
}

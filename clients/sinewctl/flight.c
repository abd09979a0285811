#include "clients/sinewctl/flight_private.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "clients/base/text.h"
#include "clients/libsinew_client/reflect.h"
#include "proto/sinew.pb-c.h"

// Kinds of records of MCAP, the channels of the recorder, and the longest file that is read.
enum { SCHEMA = 3, CHANNEL = 4, MESSAGE = 5, DATA_END = 15, MESSAGE_HEAD = 22, LONGEST = 1 << 30 };

static const char magic[] = "\x89MCAP0\r\n";

// What is left of the file, and what its channels are called.
typedef struct Reader {
  const unsigned char *at;
  size_t left;
  bool requests[16], plans[16];  // by the number of a channel
  bool json;
  FILE *out;
  unsigned long long messages;
} Reader;

static uint64_t little(const unsigned char *from, int bytes) {
  uint64_t x = 0;
  for (int i = 0; i < bytes; i++) x |= (uint64_t)from[i] << (8 * i);
  return x;
}

// The next record of the file. False at its end, or where it is cut off.
static bool next_record(Reader *r, int *kind, const unsigned char **content, size_t *size) {
  if (r->left < 9) return false;
  const uint64_t n = little(r->at + 1, 8);
  if (n > r->left - 9) return false;
  *kind = r->at[0];
  *content = r->at + 9;
  *size = (size_t)n;
  r->at += 9 + n;
  r->left -= 9 + (size_t)n;
  return true;
}

// A channel: its number, that of its schema, its topic.
static void read_channel(Reader *r, const unsigned char *content, size_t size) {
  if (size < 8) return;
  const uint64_t id = little(content, 2), n = little(content + 4, 4);
  if (id >= sizeof r->requests || n > size - 8) return;
  r->requests[id] = n == 8 && !memcmp(content + 8, "requests", 8);
  r->plans[id] = n == 5 && !memcmp(content + 8, "plans", 5);
}

static void print_json(const Reader *r, uint64_t nanoseconds, const char *topic, const ProtobufCMessage *message) {
  cJSON *object = cJSON_CreateObject();
  cJSON_AddNumberToObject(object, "time", 1e-9 * (double)nanoseconds);
  cJSON_AddStringToObject(object, "topic", topic);
  cJSON_AddItemToObject(object, "message", sn_message_to_json(message));
  char *text = cJSON_PrintUnformatted(object);
  sn_print_json(r->out, text);
  cJSON_free(text);
  cJSON_Delete(object);
}

static void print_time(const Reader *r, uint64_t nanoseconds) {
  const time_t seconds = (time_t)(nanoseconds / 1000000000u);
  struct tm utc;
  char text[32];
  gmtime_r(&seconds, &utc);
  strftime(text, sizeof text, "%H:%M:%S", &utc);
  fprintf(r->out, "%s.%06" PRIu64 "  ", text, nanoseconds / 1000 % 1000000);
}

// The session of a request, where it has one: a field of its body.
static uint64_t session_of(const Sinew__V1__Request *request, const ProtobufCFieldDescriptor *body) {
  const ProtobufCMessage *message = *(ProtobufCMessage *const *)(const void *)((const char *)request + body->offset);
  const ProtobufCFieldDescriptor *field =
      protobuf_c_message_descriptor_get_field_by_name(message->descriptor, "session");
  if (!field || field->type != PROTOBUF_C_TYPE_UINT64) return 0;
  return *(const uint64_t *)(const void *)((const char *)message + field->offset);
}

static bool print_request(const Reader *r, uint64_t time, const unsigned char *bytes, size_t size) {
  Sinew__V1__Request *request = sinew__v1__request__unpack(NULL, size, bytes);
  const ProtobufCFieldDescriptor *body =
      request ? protobuf_c_message_descriptor_get_field(request->base.descriptor, (unsigned)request->body_case) : NULL;
  if (body && r->json) print_json(r, time, "requests", &request->base);
  if (body && !r->json) {
    print_time(r, time);
    fprintf(r->out, "%-14s request %" PRIu64, body->name, request->id);
    const uint64_t session = session_of(request, body);
    if (session) fprintf(r->out, ", session %" PRIu64, session);
    if (request->body_case == SINEW__V1__REQUEST__BODY_PLAN && request->plan->state)
      fprintf(r->out, ", state at %g s, within %g s", request->plan->state->time, request->plan->deadline);
    if (request->body_case == SINEW__V1__REQUEST__BODY_STREAM_STATE && request->stream_state->state)
      fprintf(r->out, ", state at %g s", request->stream_state->state->time);
    fputc('\n', r->out);
  }
  if (request) sinew__v1__request__free_unpacked(request, NULL);
  return body != NULL;
}

static bool print_plan(const Reader *r, uint64_t time, const unsigned char *bytes, size_t size) {
  Sinew__V1__PlanTrace *t = sinew__v1__plan_trace__unpack(NULL, size, bytes);
  if (!t) return false;
  if (r->json) {
    print_json(r, time, "plans", &t->base);
  } else {
    print_time(r, time);
    fprintf(r->out,
            "%-14s request %" PRIu64 ", session %" PRIu64 ", plan %" PRIu64 ", state at %g s, sent after %.3f ms%s\n",
            "  plan sent", t->request, t->session, t->sequence, t->state_time, 1e3 * t->sent,
            t->first && isfinite(t->due) && !t->deadline_met ? ", late" : "");
  }
  sinew__v1__plan_trace__free_unpacked(t, NULL);
  return true;
}

// A message: its channel, its number, when it was logged and published, what it says.
static bool read_message(Reader *r, const unsigned char *content, size_t size) {
  if (size < MESSAGE_HEAD) return false;
  const uint64_t channel = little(content, 2), time = little(content + 6, 8);
  if (channel >= sizeof r->requests) return true;
  r->messages += r->requests[channel] || r->plans[channel];
  if (r->requests[channel]) return print_request(r, time, content + MESSAGE_HEAD, size - MESSAGE_HEAD);
  if (r->plans[channel]) return print_plan(r, time, content + MESSAGE_HEAD, size - MESSAGE_HEAD);
  return true;
}

static const char *read_records(Reader *r) {
  const unsigned char *content;
  int kind;
  size_t size;
  if (r->left < sizeof magic - 1 || memcmp(r->at, magic, sizeof magic - 1)) return "it is no file of the kind MCAP";
  r->at += sizeof magic - 1;
  r->left -= sizeof magic - 1;
  while (next_record(r, &kind, &content, &size)) {
    if (kind == CHANNEL) read_channel(r, content, size);
    if (kind == MESSAGE && !read_message(r, content, size)) return "a message cannot be read";
    if (kind == DATA_END) return NULL;
  }
  return "it ends too early: what comes above is all that it has";
}

const char *flight_print(FILE *out, const void *bytes, size_t size, bool json) {
  Reader r = {.at = bytes, .left = size, .json = json, .out = out};
  const char *why = read_records(&r);
  if (!why && !json) fprintf(out, "%llu messages\n", r.messages);
  return why;
}

bool flight_read(const char *path, bool json, char *error, size_t error_size) {
  FILE *in = fopen(path, "rb");
  unsigned char *bytes = NULL;
  size_t n = 0;
  const char *why = NULL;
  struct stat st;
  if (in && fstat(fileno(in), &st) == 0 && S_ISDIR(st.st_mode)) {
    why = "it is a folder; a file is expected, as the flight recorder writes it";
  } else if (in && fseek(in, 0, SEEK_END) == 0) {
    const long size = ftell(in);
    rewind(in);
    if (size > LONGEST) why = "it is longer than 1 GB";
    bytes = size >= 0 && !why ? malloc((size_t)size + 1) : NULL;
    n = bytes ? fread(bytes, 1, (size_t)size, in) : 0;
  }
  if (!bytes && !why) why = strerror(errno);
  if (in) fclose(in);
  if (bytes) why = flight_print(stdout, bytes, n, json);
  if (why) snprintf(error, error_size, "%s: %s", path, why);
  free(bytes);
  return !why;
}

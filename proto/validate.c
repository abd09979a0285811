#include "proto/validate.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "physics/base/control_character.h"
#include "physics/base/number_text.h"
#include "proto/wire_text.h"

// A row: bounds of one field. For numbers min and max; for strings the bytes; for arrays min and max of each entry and
// the most entries. Single sub-messages need no row. The rows of a message stand together.
typedef struct Rule {
  const char *message;  // name in the schema, without the package
  const char *field;
  double min, max;
  size_t count;
} Rule;

#define REAL 1e10  // the engine's own bound on states (SN_MAXVAL)
#define TIME 1e9   // [s], thirty years
#define STEPS (1 << 24)
#define FINITE DBL_MAX
// Of settings and weights the wire wants numbers, and texts of some length: what they may be is said where they are
// read: by planner/task/settings.inc, sn_cost_check_weight, sn_read_session_settings, sn_serve_stream.
#define CHECKED -FINITE, FINITE, 0
#define CHECKED_TEXT 0, 63, 0
#define ID 18446744073709551615.0
#define NUMBERS SN_WIRE_NUMBERS
#define COUNT 1e15  // of restarts, resets, changes: far from where 64 bits end

static const Rule rules[] = {
    {"Request", "id", 0, ID, 0},
    {"HelloRequest", "protocol", SN_PROTOCOL, SN_PROTOCOL, 0},
    {"HelloRequest", "client", 0, SN_WIRE_NAME, 0},
    {"DescribeModelRequest", "model", 1, SN_WIRE_NAME, 0},
    {"LoadModelRequest", "model", 1, SN_WIRE_NAME, 0},
    {"UnloadModelRequest", "model", 1, SN_WIRE_NAME, 0},
    {"DescribeTaskRequest", "task", 1, SN_WIRE_NAME, 0},
    {"OpenRequest", "task", 1, SN_WIRE_NAME, 0},
    {"OpenRequest", "seed", 0, ID, 0},
    {"OpenRequest", "name", 0, SN_WIRE_NAME, 0},
    {"PlannerSettings", "planner", CHECKED_TEXT},
    {"PlannerSettings", "horizon", CHECKED},
    {"PlannerSettings", "candidates", CHECKED},
    {"PlannerSettings", "iterations", CHECKED},
    {"PlannerSettings", "knots", CHECKED},
    {"PlannerSettings", "interpolation", CHECKED_TEXT},
    {"PlannerSettings", "noise", CHECKED_TEXT},
    {"PlannerSettings", "noise_scale", CHECKED},
    {"PlannerSettings", "tail", CHECKED_TEXT},
    {"PlannerSettings", "shift", CHECKED},
    {"PlannerSettings", "warm_start", CHECKED_TEXT},
    {"PlannerSettings", "patience", CHECKED},
    {"PlannerSettings", "max_velocity", CHECKED},
    {"PlannerSettings", "grid", CHECKED_TEXT},
    {"PlannerSettings", "adam_iterations", CHECKED},
    {"PlannerSettings", "adam_rate", CHECKED},
    {"PlannerSettings", "adam_beta1", CHECKED},
    {"PlannerSettings", "adam_beta2", CHECKED},
    {"PlannerSettings", "adam_epsilon", CHECKED},
    {"PlannerSettings", "adam_clip", CHECKED_TEXT},
    {"PlannerSettings", "adam_clip_norm", CHECKED},
    {"PlannerSettings", "adam_moments", CHECKED_TEXT},
    {"PlannerSettings", "adam_warm_start", CHECKED_TEXT},
    {"PlannerSettings", "adam_knots", CHECKED},
    {"PlannerSettings", "adam_interpolation", CHECKED_TEXT},
    {"PlannerSettings", "adam_starts", CHECKED},
    {"PlannerSettings", "ilqg_iterations", CHECKED},
    {"PlannerSettings", "ilqg_regularization", CHECKED},
    {"PlannerSettings", "ilqg_alphas", CHECKED},
    {"PlannerSettings", "lbfgs_iterations", CHECKED},
    {"PlannerSettings", "lbfgs_memory", CHECKED},
    {"PlannerSettings", "lbfgs_trials", CHECKED},
    {"PlannerSettings", "lbfgs_first", CHECKED},
    {"PlannerSettings", "lbfgs_longest", CHECKED},
    {"PlannerSettings", "mppi_temperature", CHECKED},
    {"PlannerSettings", "mppi_relative", CHECKED_TEXT},
    {"PlannerSettings", "cem_elites", CHECKED},
    {"PlannerSettings", "cem_keep", CHECKED},
    {"PlannerSettings", "cem_least", CHECKED},
    {"PlannerSettings", "hybrid_refined", CHECKED},
    {"PlannerSettings", "hybrid_gradients", CHECKED},
    {"PlannerSettings", "gradient", CHECKED_TEXT},
    {"PlannerSettings", "contact_gradient", CHECKED_TEXT},
    {"PlannerSettings", "integrator", CHECKED_TEXT},
    {"PlannerSettings", "rtol", CHECKED},
    {"PlannerSettings", "atol", CHECKED},
    {"PlannerSettings", "max_steps", CHECKED},
    {"PlannerSettings", "cfd", CHECKED_TEXT},
    {"PlannerSettings", "cfd_far", CHECKED},
    {"PlannerSettings", "cfd_touch", CHECKED},
    {"PlannerSettings", "cfd_reach", CHECKED},
    {"PlannerSettings", "cfd_midpoint", CHECKED},
    {"PlannerSettings", "cfd_power", CHECKED},
    {"PlannerSettings", "cfd_softplus", CHECKED},
    {"PlannerSettings", "cfd_friction", CHECKED_TEXT},
    {"PlannerSettings", "cfd_smooth", CHECKED},
    {"SessionSettings", "latency", CHECKED},
    {"SessionSettings", "lease", CHECKED},
    {"SessionSettings", "time_to_live", CHECKED},
    {"State", "time", -TIME, TIME, 0},
    {"State", "qpos", -REAL, REAL, NUMBERS},
    {"State", "qvel", -REAL, REAL, NUMBERS},
    {"State", "act", -REAL, REAL, NUMBERS},
    {"State", "mocap", -REAL, REAL, NUMBERS},
    {"State", "history", -REAL, REAL, NUMBERS},
    {"PlanRequest", "session", 1, ID, 0},
    {"PlanRequest", "deadline", 0, SN_WIRE_WAIT, 0},
    {"PlanRequest", "want_states", 0, 1, 0},
    {"PlanRequest", "iterations", 1, 1000000, 0},
    {"PlanRequest", "candidates", 1, 1000000, 0},
    {"PlanRequest", "gain_rows", 1, 100000, 0},
    {"Controls", "time", -TIME, TIME, NUMBERS},
    {"Controls", "ctrl", -REAL, REAL, NUMBERS},
    {"EvaluateRequest", "session", 1, ID, 0},
    {"EvaluateRequest", "ctrl", -REAL, REAL, NUMBERS},
    {"EvaluateRequest", "want_states", 0, 1, 0},
    {"EvaluateRequest", "want_gradient", 0, 1, 0},
    {"GetConfigRequest", "session", 1, ID, 0},
    {"GetConfigRequest", "version", 0, ID, 0},
    {"RevertRequest", "session", 1, ID, 0},
    {"RevertRequest", "version", 1, ID, 0},
    {"StreamRequest", "session", 1, ID, 0},
    {"StreamRequest", "stop", 0, 1, 0},
    {"StreamRequest", "lease", CHECKED},
    {"StreamRequest", "deadline", 0, SN_WIRE_WAIT, 0},
    {"StreamRequest", "period", 0, SN_WIRE_WAIT, 0},
    {"StreamRequest", "iterations", 0, 1000000, 0},
    {"StreamRequest", "want_states", 0, 1, 0},
    {"StreamRequest", "gain_rows", 0, 100000, 0},
    {"StreamState", "session", 1, ID, 0},
    {"StreamState", "seen", 0, ID, 0},
    {"SetConfigRequest", "session", 1, ID, 0},
    {"SetConfigRequest", "terms", 0, 0, 512},
    {"TermSettings", "name", 1, SN_WIRE_NAME, 0},
    {"TermSettings", "weight", CHECKED},
    {"TermSettings", "terminal_weight", CHECKED},
    {"TermSettings", "target", -REAL, REAL, 4096},
    {"TermSettings", "own_target", 0, 1, 0},
    {"ResetRequest", "session", 1, ID, 0},
    {"ResetRequest", "seed", 0, ID, 0},
    {"CloseRequest", "session", 1, ID, 0},
    {"StatisticsRequest", "session", 0, ID, 0},
    {"TraceRequest", "session", 0, ID, 0},
    {"TraceRequest", "after", 0, ID, 0},
    {"SnapshotRequest", "session", 1, ID, 0},
    {"Snapshot", "version", 0, 1000000, 0},
    {"Snapshot", "task", 1, SN_WIRE_NAME, 0},
    {"Snapshot", "checksum", 1, 32, 0},
    {"Snapshot", "number", 1, 32, 0},
    {"Snapshot", "seed", 0, ID, 0},
    {"Snapshot", "plan", 0, ID, 0},
    {"Snapshot", "terms", 0, 0, 512},
    {"Snapshot", "act_known", 0, 1, 0},
    {"WarmStart", "time", -2 * TIME, 2 * TIME, 0},
    {"WarmStart", "ctrl", -REAL, REAL, NUMBERS},
    {"WarmStart", "exists", 0, 1, 0},
    {"WarmStart", "phase", 0, STEPS, 0},
    {"ActivePlan", "time", -2 * TIME, 2 * TIME, 0},
    {"ActivePlan", "ctrl", -REAL, REAL, NUMBERS},
    {"AdamMemory", "moved", 0, STEPS, 0},
    {"AdamMemory", "phase", 0, STEPS, 0},
    {"AdamMemory", "knots", 0, 100000, 0},
    {"AdamMemory", "interpolation", 0, 100, 0},
    {"AdamMemory", "starts", 0, 1000000, 0},
    {"AdamMemory", "capacity", 0, 1000000, 0},
    {"AdamMemory", "known", 0, 1, 0},
    {"AdamMemory", "first", -FINITE, FINITE, NUMBERS},
    {"AdamMemory", "second", 0, FINITE, NUMBERS},
    {"AdamMemory", "power1", 0, 1, 0},
    {"AdamMemory", "power2", 0, 1, 0},
    {"AdamMemory", "grid", 0, 63, 0},
    {"KeptSession", "version", 0, 1000000, 0},
    {"KeptSession", "session", 1, ID, 0},
    {"KeptSession", "name", 1, SN_WIRE_NAME, 0},
    {"KeptSession", "owner", 1, 64, 0},
    {"KeptSession", "restarts", 0, COUNT, 0},
    {"KeptSession", "epoch", 0, COUNT, 0},
    {"KeptSession", "task", 1, SN_WIRE_NAME, 0},
    {"KeptSession", "seed", 0, ID, 0},
    {"KeptSession", "config_version", 1, COUNT, 0},
    {"KeptSession", "terms", 0, 0, 512},
    {"KeptWarmStart", "session", 1, ID, 0},
    {"KeptWarmStart", "epoch", 0, COUNT, 0},
};

// Sub-messages without which their message means nothing.
static const struct {
  const char *message, *field;
} required[] = {{"PlanRequest", "state"}, {"EvaluateRequest", "state"}, {"StreamState", "state"},
                {"Snapshot", "state"},    {"Snapshot", "warm_start"},   {"Snapshot", "active_plan"}};

static int refuse(SnWireError *err, const char *format, ...) __attribute__((format(printf, 2, 3)));
static int refuse(SnWireError *err, const char *format, ...) {
  va_list args;
  va_start(args, format);
  err->code = SINEW__V1__ERROR__CODE__INVALID;
  vsnprintf(err->text, sizeof err->text, format, args);
  va_end(args);
  return -1;
}

_Static_assert(sizeof(void *) == 8, "entries of arrays of pointers are 8 bytes");

enum { RULES = sizeof rules / sizeof *rules };

// The first row of a message; where it has none the end of the table. Rows of one message share its text, which saves
// most comparisons where the compiler keeps equal texts once.
static const Rule *find_rows(const char *message) {
  const Rule *r = rules;
  for (; r < rules + RULES; r++)
    if ((r == rules || r->message != r[-1].message) && !strcmp(r->message, message)) break;
  return r;
}

// The row of a field, from the first one of its message on.
static const Rule *find_field(const Rule *rows, const char *field) {
  for (const Rule *r = rows; r < rules + RULES && (r->message == rows->message || !strcmp(r->message, rows->message));
       r++)
    if (!strcmp(r->field, field)) return r;
  return NULL;
}

static const Rule *find_rule(const char *message, const char *field) { return find_field(find_rows(message), field); }

static bool is_required(const char *message, const char *field) {
  for (size_t i = 0; i < sizeof required / sizeof *required; i++)
    if (!strcmp(required[i].message, message) && !strcmp(required[i].field, field)) return true;
  return false;
}

bool sn_validate_bounds(const char *message, const char *field, SnFieldBounds *bounds) {
  const Rule *r = find_rule(message, field);
  *bounds = (SnFieldBounds){.required = is_required(message, field)};
  if (r) *bounds = (SnFieldBounds){r->min, r->max, r->count, bounds->required};
  return r || bounds->required;
}

// Length of the character at s, or 0: control characters are refused, too.
static size_t printable_length(const unsigned char *s, size_t size) {
  return sn_control_length(s) ? 0 : sn_utf8_length(s, size);
}

static int check_string(const Rule *r, const char *s, SnWireError *err) {
  size_t n = s ? strlen(s) : 0;
  if (n < (size_t)r->min || n > (size_t)r->max)
    return refuse(err, "%s.%s has %zu bytes, allowed are %g to %g", r->message, r->field, n, r->min, r->max);
  for (size_t i = 0; i < n;) {
    const size_t len = printable_length((const unsigned char *)s + i, n - i);
    if (len == 0) return refuse(err, "%s.%s: byte %zu is no printable UTF-8 text", r->message, r->field, i);
    i += len;
  }
  return 0;
}

// index < 0: not an entry of an array.
static int check_number(const Rule *r, double x, long index, SnWireError *err) {
  if (x >= r->min && x <= r->max) return 0;
  char at[32] = "";
  if (index >= 0) snprintf(at, sizeof at, "[%ld]", index);
  if (r->max == FINITE && !isfinite(x))
    return refuse(err, "%s.%s%s: %g is no finite number", r->message, r->field, at, x);
  return refuse(err, "%s.%s%s: %s is out of bounds, allowed is %s to %s", r->message, r->field, at,
                sn_number_text(x).text, sn_number_text(r->min).text, sn_number_text(r->max).text);
}

static int check_value(const Rule *r, const ProtobufCFieldDescriptor *f, const void *p, long index, SnWireError *err) {
  switch (f->type) {
    case PROTOBUF_C_TYPE_DOUBLE:
      return check_number(r, *(const double *)p, index, err);
    case PROTOBUF_C_TYPE_UINT32:
      return check_number(r, *(const uint32_t *)p, index, err);
    case PROTOBUF_C_TYPE_UINT64:
      return check_number(r, (double)*(const uint64_t *)p, index, err);
    case PROTOBUF_C_TYPE_BOOL:
      return check_number(r, *(const protobuf_c_boolean *)p != 0, index, err);
    case PROTOBUF_C_TYPE_STRING:
      return check_string(r, *(char *const *)p, err);
    case PROTOBUF_C_TYPE_MESSAGE:
      return sn_validate(*(const ProtobufCMessage *const *)p, err);
    default:
      return refuse(err, "%s.%s is of a type that no request may have", r->message, r->field);
  }
}

static int check_array(const Rule *r, const ProtobufCFieldDescriptor *f, const void *message, SnWireError *err) {
  size_t n = *(const size_t *)((const char *)message + f->quantifier_offset);
  const char *entries = *(char *const *)((const char *)message + f->offset);
  size_t width = f->type == PROTOBUF_C_TYPE_UINT32 ? 4
                 : f->type == PROTOBUF_C_TYPE_BOOL ? sizeof(protobuf_c_boolean)
                                                   : 8;
  if (n > r->count)
    return refuse(err, "%s.%s has %zu entries, at most %zu are allowed", r->message, r->field, n, r->count);
  for (size_t i = 0; i < n; i++)
    if (check_value(r, f, entries + i * width, (long)i, err)) return -1;
  return 0;
}

// A member of a oneof that is not the one set shares its bytes with that one: it must not be read.
static bool is_absent(const ProtobufCFieldDescriptor *f, const void *message) {
  if (!(f->flags & PROTOBUF_C_FIELD_FLAG_ONEOF)) return false;
  return *(const uint32_t *)((const char *)message + f->quantifier_offset) != f->id;
}

int sn_validate(const ProtobufCMessage *message, SnWireError *err) {
  const ProtobufCMessageDescriptor *d = message->descriptor;
  const Rule *rows = find_rows(d->short_name);
  for (unsigned i = 0; i < d->n_fields; i++) {
    const ProtobufCFieldDescriptor *f = &d->fields[i];
    if (is_absent(f, message)) continue;
    const void *p = (const char *)message + f->offset;
    if (f->type == PROTOBUF_C_TYPE_MESSAGE && f->label != PROTOBUF_C_LABEL_REPEATED) {
      const ProtobufCMessage *sub = *(ProtobufCMessage *const *)p;
      if (!sub && is_required(d->short_name, f->name)) return refuse(err, "%s.%s is missing", d->short_name, f->name);
      if (sub && sn_validate(sub, err)) return -1;
      continue;
    }
    const Rule *r = find_field(rows, f->name);
    if (!r) return refuse(err, "%s.%s has no bounds", d->short_name, f->name);
    if (f->label == PROTOBUF_C_LABEL_REPEATED ? check_array(r, f, message, err) : check_value(r, f, p, -1, err))
      return -1;
  }
  return 0;
}

static int check_table(const ProtobufCMessageDescriptor *d, SnWireError *err) {
  for (unsigned i = 0; i < d->n_fields; i++) {
    const ProtobufCFieldDescriptor *f = &d->fields[i];
    if (f->type == PROTOBUF_C_TYPE_MESSAGE) {
      if (check_table(f->descriptor, err)) return -1;
      if (f->label != PROTOBUF_C_LABEL_REPEATED) continue;
    }
    if (!find_rule(d->short_name, f->name)) return refuse(err, "%s.%s has no bounds", d->short_name, f->name);
  }
  return 0;
}

int sn_validate_table(SnWireError *err) {
  if (check_table(&sinew__v1__request__descriptor, err)) return -1;
  if (check_table(&sinew__v1__kept_session__descriptor, err)) return -1;
  return check_table(&sinew__v1__kept_warm_start__descriptor, err);
}

// Twice the wire, for strings and alignment, and a fixed part for the structs of the messages themselves. Messages of
// many tiny fields, which protobuf-c blows up to fifty times, do not fit: no valid request looks like that.
size_t sn_wire_arena_budget(size_t message_bytes) { return 2 * message_bytes + (256u << 10); }

uint64_t sn_request_id(const void *bytes, size_t n) {
  const unsigned char *p = bytes;
  uint64_t id = 0;
  if (n < 2 || p[0] != 0x08) return 0;
  for (size_t i = 1; i < n && i <= 10; i++) {
    id |= (uint64_t)(p[i] & 0x7f) << (7 * (i - 1));
    if (!(p[i] & 0x80)) return id;
  }
  return 0;
}

// Refuses texts that hold a zero byte: unpacked they seem to end there, and what follows would be passed over. The
// bytes are those of a message that was unpacked, so their depth is bounded.
static int check_texts(const ProtobufCMessageDescriptor *d, const unsigned char *p, size_t n, SnWireError *err) {
  enum { VARINT = 0, LONG = 1, BYTES = 2, SHORT = 5 };
  for (const unsigned char *end = p + n; p < end;) {
    const uint64_t tag = sn_wire_varint(&p, end);
    const ProtobufCFieldDescriptor *f = protobuf_c_message_descriptor_get_field(d, (unsigned)(tag >> 3));
    const int type = tag & 7;
    if (type == VARINT) sn_wire_varint(&p, end);
    size_t size = type == LONG ? 8 : type == SHORT ? 4 : type == BYTES ? sn_wire_varint(&p, end) : 0;
    if (size > (size_t)(end - p)) size = (size_t)(end - p);
    const unsigned char *zero = type == BYTES && f && f->type == PROTOBUF_C_TYPE_STRING ? memchr(p, 0, size) : NULL;
    if (zero)
      return refuse(err, "%s.%s: byte %zu of %zu is 0, which no text may have", d->short_name, f->name,
                    (size_t)(zero - p), size);
    if (type == BYTES && f && f->type == PROTOBUF_C_TYPE_MESSAGE && check_texts(f->descriptor, p, size, err)) return -1;
    p += size;
  }
  return 0;
}

const Sinew__V1__Request *sn_request_read(SnWireArena *arena, const void *bytes, size_t size, uint64_t *id,
                                          SnWireError *err) {
  *id = sn_request_id(bytes, size);
  sn_wire_arena_reset(arena);
  if (size == 0 || size > SN_WIRE_MESSAGE) {
    refuse(err, "a message of %zu bytes; allowed are 1 to %d", size, SN_WIRE_MESSAGE);
    err->code = SINEW__V1__ERROR__CODE__MALFORMED;
    return NULL;
  }
  Sinew__V1__Request *request = sinew__v1__request__unpack(&arena->allocator, size, bytes);
  if (!request) {
    refuse(err,
           arena->exhausted ? "the message of %zu bytes needs more memory than a valid one of its size"
                            : "the %zu bytes are no sinew.v1.Request",
           size);
    err->code = SINEW__V1__ERROR__CODE__MALFORMED;
    return NULL;
  }
  *id = request->id;
  if (request->body_case == SINEW__V1__REQUEST__BODY__NOT_SET) {
    refuse(err, "the request has no body that this version knows");
    err->code = SINEW__V1__ERROR__CODE__MALFORMED;
    return NULL;
  }
  if (check_texts(&sinew__v1__request__descriptor, bytes, size, err)) return NULL;
  return sn_validate(&request->base, err) ? NULL : request;
}

ProtobufCMessage *sn_message_read(const ProtobufCMessageDescriptor *kind, const void *bytes, size_t size,
                                  SnWireError *err) {
  SnWireArena arena;
  ProtobufCMessage *message = NULL;
  if (size == 0 || size > SN_WIRE_MESSAGE) {
    refuse(err, "%zu bytes; allowed are 1 to %d", size, SN_WIRE_MESSAGE);
    return NULL;
  }
  if (!sn_wire_arena_init(&arena, sn_wire_arena_budget(size))) {
    refuse(err, "out of memory");
    err->code = SINEW__V1__ERROR__CODE__LIMIT;
    return NULL;
  }
  const ProtobufCMessage *checked = protobuf_c_message_unpack(kind, &arena.allocator, size, bytes);
  if (!checked)
    refuse(err, "the %zu bytes are no %s", size, kind->name);
  else if (!check_texts(kind, bytes, size, err) && !sn_validate(checked, err) &&
           !(message = protobuf_c_message_unpack(kind, NULL, size, bytes))) {
    refuse(err, "out of memory");
    err->code = SINEW__V1__ERROR__CODE__LIMIT;
  }
  sn_wire_arena_free(&arena);
  return message;
}

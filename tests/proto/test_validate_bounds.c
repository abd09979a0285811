// The bounds of every field of every request, by value: what is just allowed passes, what is just beyond does not.
#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "proto/validate.h"

// Smallest and largest that is accepted: of numbers and of the entries of an array the value, of texts the bytes; and
// the most entries of an array. Written down again on purpose: proto/validate.c says what is checked, this table what
// was promised. A field that is new needs a row in both.
typedef struct Bounds {
  const char *message, *field;
  double least, most;
  size_t entries;
} Bounds;

#define ANY 18446744073709551615.0  // of 64 bits

static const Bounds bounds[] = {
    {"Request", "id", 0, ANY, 0},
    {"HelloRequest", "protocol", 1, 1, 0},
    {"HelloRequest", "client", 0, 200, 0},
    {"DescribeModelRequest", "model", 1, 200, 0},
    {"LoadModelRequest", "model", 1, 200, 0},
    {"UnloadModelRequest", "model", 1, 200, 0},
    {"DescribeTaskRequest", "task", 1, 200, 0},
    {"OpenRequest", "task", 1, 200, 0},
    {"OpenRequest", "seed", 0, ANY, 0},
    {"OpenRequest", "name", 0, 200, 0},
    {"PlannerSettings", "planner", 0, 63, 0},
    {"PlannerSettings", "horizon", 0, UINT32_MAX, 0},
    {"PlannerSettings", "candidates", 0, UINT32_MAX, 0},
    {"PlannerSettings", "iterations", 0, UINT32_MAX, 0},
    {"PlannerSettings", "knots", 0, UINT32_MAX, 0},
    {"PlannerSettings", "interpolation", 0, 63, 0},
    {"PlannerSettings", "noise", 0, 63, 0},
    {"PlannerSettings", "noise_scale", -DBL_MAX, DBL_MAX, 0},
    {"PlannerSettings", "tail", 0, 63, 0},
    {"PlannerSettings", "shift", 0, UINT32_MAX, 0},
    {"PlannerSettings", "warm_start", 0, 63, 0},
    {"PlannerSettings", "patience", 0, UINT32_MAX, 0},
    {"PlannerSettings", "max_velocity", -DBL_MAX, DBL_MAX, 0},
    {"PlannerSettings", "grid", 0, 63, 0},
    {"PlannerSettings", "adam_iterations", 0, UINT32_MAX, 0},
    {"PlannerSettings", "adam_rate", -DBL_MAX, DBL_MAX, 0},
    {"PlannerSettings", "adam_beta1", -DBL_MAX, DBL_MAX, 0},
    {"PlannerSettings", "adam_beta2", -DBL_MAX, DBL_MAX, 0},
    {"PlannerSettings", "adam_epsilon", -DBL_MAX, DBL_MAX, 0},
    {"PlannerSettings", "adam_clip", 0, 63, 0},
    {"PlannerSettings", "adam_clip_norm", -DBL_MAX, DBL_MAX, 0},
    {"PlannerSettings", "adam_moments", 0, 63, 0},
    {"PlannerSettings", "adam_warm_start", 0, 63, 0},
    {"PlannerSettings", "adam_knots", 0, UINT32_MAX, 0},
    {"PlannerSettings", "adam_interpolation", 0, 63, 0},
    {"PlannerSettings", "adam_starts", 0, UINT32_MAX, 0},
    {"PlannerSettings", "ilqg_iterations", 0, UINT32_MAX, 0},
    {"PlannerSettings", "ilqg_regularization", -DBL_MAX, DBL_MAX, 0},
    {"PlannerSettings", "ilqg_alphas", 0, UINT32_MAX, 0},
    {"PlannerSettings", "lbfgs_iterations", 0, UINT32_MAX, 0},
    {"PlannerSettings", "lbfgs_memory", 0, UINT32_MAX, 0},
    {"PlannerSettings", "lbfgs_trials", 0, UINT32_MAX, 0},
    {"PlannerSettings", "lbfgs_first", -DBL_MAX, DBL_MAX, 0},
    {"PlannerSettings", "lbfgs_longest", -DBL_MAX, DBL_MAX, 0},
    {"PlannerSettings", "mppi_temperature", -DBL_MAX, DBL_MAX, 0},
    {"PlannerSettings", "mppi_relative", 0, 63, 0},
    {"PlannerSettings", "cem_elites", 0, UINT32_MAX, 0},
    {"PlannerSettings", "cem_keep", -DBL_MAX, DBL_MAX, 0},
    {"PlannerSettings", "cem_least", -DBL_MAX, DBL_MAX, 0},
    {"PlannerSettings", "hybrid_refined", 0, UINT32_MAX, 0},
    {"PlannerSettings", "hybrid_gradients", 0, UINT32_MAX, 0},
    {"PlannerSettings", "gradient", 0, 63, 0},
    {"PlannerSettings", "contact_gradient", 0, 63, 0},
    {"PlannerSettings", "integrator", 0, 63, 0},
    {"PlannerSettings", "rtol", -DBL_MAX, DBL_MAX, 0},
    {"PlannerSettings", "atol", -DBL_MAX, DBL_MAX, 0},
    {"PlannerSettings", "max_steps", 0, UINT32_MAX, 0},
    {"PlannerSettings", "cfd", 0, 63, 0},
    {"PlannerSettings", "cfd_far", -DBL_MAX, DBL_MAX, 0},
    {"PlannerSettings", "cfd_touch", -DBL_MAX, DBL_MAX, 0},
    {"PlannerSettings", "cfd_reach", -DBL_MAX, DBL_MAX, 0},
    {"PlannerSettings", "cfd_midpoint", -DBL_MAX, DBL_MAX, 0},
    {"PlannerSettings", "cfd_power", -DBL_MAX, DBL_MAX, 0},
    {"PlannerSettings", "cfd_softplus", -DBL_MAX, DBL_MAX, 0},
    {"PlannerSettings", "cfd_friction", 0, 63, 0},
    {"PlannerSettings", "cfd_smooth", -DBL_MAX, DBL_MAX, 0},
    {"SessionSettings", "latency", -DBL_MAX, DBL_MAX, 0},
    {"SessionSettings", "lease", -DBL_MAX, DBL_MAX, 0},
    {"SessionSettings", "time_to_live", -DBL_MAX, DBL_MAX, 0},
    {"State", "time", -1e9, 1e9, 0},
    {"State", "qpos", -1e10, 1e10, 2097152},
    {"State", "qvel", -1e10, 1e10, 2097152},
    {"State", "act", -1e10, 1e10, 2097152},
    {"State", "mocap", -1e10, 1e10, 2097152},
    {"State", "history", -1e10, 1e10, 2097152},
    {"PlanRequest", "session", 1, ANY, 0},
    {"PlanRequest", "deadline", 0, 3600, 0},
    {"PlanRequest", "want_states", 0, 1, 0},
    {"PlanRequest", "iterations", 1, 1000000, 0},
    {"PlanRequest", "candidates", 1, 1000000, 0},
    {"PlanRequest", "gain_rows", 1, 100000, 0},
    {"Controls", "time", -1e9, 1e9, 2097152},
    {"Controls", "ctrl", -1e10, 1e10, 2097152},
    {"EvaluateRequest", "session", 1, ANY, 0},
    {"EvaluateRequest", "ctrl", -1e10, 1e10, 2097152},
    {"EvaluateRequest", "want_states", 0, 1, 0},
    {"EvaluateRequest", "want_gradient", 0, 1, 0},
    {"GetConfigRequest", "session", 1, ANY, 0},
    {"GetConfigRequest", "version", 0, ANY, 0},
    {"RevertRequest", "session", 1, ANY, 0},
    {"RevertRequest", "version", 1, ANY, 0},
    {"StreamRequest", "session", 1, ANY, 0},
    {"StreamRequest", "stop", 0, 1, 0},
    {"StreamRequest", "lease", -DBL_MAX, DBL_MAX, 0},
    {"StreamRequest", "deadline", 0, 3600, 0},
    {"StreamRequest", "period", 0, 3600, 0},
    {"StreamRequest", "want_states", 0, 1, 0},
    {"StreamRequest", "gain_rows", 0, 100000, 0},
    {"StreamRequest", "iterations", 0, 1000000, 0},
    {"StreamState", "session", 1, ANY, 0},
    {"StreamState", "seen", 0, ANY, 0},
    {"SetConfigRequest", "session", 1, ANY, 0},
    {"TermSettings", "name", 1, 200, 0},
    {"TermSettings", "weight", -DBL_MAX, DBL_MAX, 0},
    {"TermSettings", "terminal_weight", -DBL_MAX, DBL_MAX, 0},
    {"TermSettings", "target", -1e10, 1e10, 4096},
    {"TermSettings", "own_target", 0, 1, 0},
    {"ResetRequest", "session", 1, ANY, 0},
    {"ResetRequest", "seed", 0, ANY, 0},
    {"CloseRequest", "session", 1, ANY, 0},
    {"SetConfigRequest", "terms", 0, 0, 512},
    {"StatisticsRequest", "session", 0, ANY, 0},
    {"TraceRequest", "session", 0, ANY, 0},
    {"TraceRequest", "after", 0, ANY, 0},
    {"SnapshotRequest", "session", 1, ANY, 0},
    {"Snapshot", "version", 0, 1000000, 0},
    {"Snapshot", "task", 1, 200, 0},
    {"Snapshot", "checksum", 1, 32, 0},
    {"Snapshot", "number", 1, 32, 0},
    {"Snapshot", "seed", 0, ANY, 0},
    {"Snapshot", "plan", 0, ANY, 0},
    {"Snapshot", "terms", 0, 0, 512},
    {"Snapshot", "act_known", 0, 1, 0},
    {"WarmStart", "time", -2e9, 2e9, 0},
    {"WarmStart", "ctrl", -1e10, 1e10, 2097152},
    {"WarmStart", "exists", 0, 1, 0},
    {"WarmStart", "phase", 0, 16777216, 0},
    {"ActivePlan", "time", -2e9, 2e9, 0},
    {"ActivePlan", "ctrl", -1e10, 1e10, 2097152},
    {"AdamMemory", "moved", 0, 16777216, 0},
    {"AdamMemory", "phase", 0, 16777216, 0},
    {"AdamMemory", "knots", 0, 100000, 0},
    {"AdamMemory", "interpolation", 0, 100, 0},
    {"AdamMemory", "starts", 0, 1000000, 0},
    {"AdamMemory", "capacity", 0, 1000000, 0},
    {"AdamMemory", "known", 0, 1, 0},
    {"AdamMemory", "first", -DBL_MAX, DBL_MAX, 2097152},
    {"AdamMemory", "second", 0, DBL_MAX, 2097152},
    {"AdamMemory", "power1", 0, 1, 0},
    {"AdamMemory", "power2", 0, 1, 0},
    {"AdamMemory", "grid", 0, 63, 0},
    {"KeptSession", "version", 0, 1000000, 0},
    {"KeptSession", "session", 1, ANY, 0},
    {"KeptSession", "name", 1, 200, 0},
    {"KeptSession", "owner", 1, 64, 0},
    {"KeptSession", "restarts", 0, 1e15, 0},
    {"KeptSession", "epoch", 0, 1e15, 0},
    {"KeptSession", "task", 1, 200, 0},
    {"KeptSession", "seed", 0, ANY, 0},
    {"KeptSession", "config_version", 1, 1e15, 0},
    {"KeptSession", "terms", 0, 0, 512},
    {"KeptWarmStart", "session", 1, ANY, 0},
    {"KeptWarmStart", "epoch", 0, 1e15, 0},
};

enum { ROWS = (int)(sizeof bounds / sizeof *bounds) };

static int visits[ROWS];  // how often a request's field led to a row

static const Bounds *find(const char *message, const char *field) {
  for (int i = 0; i < ROWS; i++)
    if (!strcmp(bounds[i].message, message) && !strcmp(bounds[i].field, field)) return &bounds[i];
  return NULL;
}

typedef const ProtobufCFieldDescriptor Field;

static void *at(ProtobufCMessage *message, Field *f) { return (char *)message + f->offset; }

// A message whose fields all have their smallest value, those that are optional none; what it means nothing without is
// there.
static ProtobufCMessage *make(const ProtobufCMessageDescriptor *d) {
  static Sinew__V1__State state = SINEW__V1__STATE__INIT;
  static Sinew__V1__WarmStart warm_start = SINEW__V1__WARM_START__INIT;
  static Sinew__V1__ActivePlan active_plan = SINEW__V1__ACTIVE_PLAN__INIT;
  static char text[] = "x";
  ProtobufCMessage *message = calloc(1, d->sizeof_message);
  d->message_init(message);
  for (unsigned i = 0; i < d->n_fields; i++) {
    Field *f = &d->fields[i];
    const Bounds *b = find(d->short_name, f->name);
    if (f->flags & PROTOBUF_C_FIELD_FLAG_ONEOF || f->label == PROTOBUF_C_LABEL_REPEATED) continue;
    if (f->type == PROTOBUF_C_TYPE_MESSAGE && f->descriptor == &sinew__v1__state__descriptor)
      *(Sinew__V1__State **)at(message, f) = &state;
    if (f->type == PROTOBUF_C_TYPE_MESSAGE && f->descriptor == &sinew__v1__warm_start__descriptor)
      *(Sinew__V1__WarmStart **)at(message, f) = &warm_start;
    if (f->type == PROTOBUF_C_TYPE_MESSAGE && f->descriptor == &sinew__v1__active_plan__descriptor)
      *(Sinew__V1__ActivePlan **)at(message, f) = &active_plan;
    if (!b) continue;
    if (f->type == PROTOBUF_C_TYPE_STRING) *(char **)at(message, f) = text;
    if (f->type == PROTOBUF_C_TYPE_UINT32) *(uint32_t *)at(message, f) = (uint32_t)b->least;
    if (f->type == PROTOBUF_C_TYPE_UINT64) *(uint64_t *)at(message, f) = (uint64_t)b->least;
    if (f->type == PROTOBUF_C_TYPE_DOUBLE) *(double *)at(message, f) = b->least;
  }
  return message;
}

// Whether the message passes; an error must be about that field.
static bool passes(const ProtobufCMessage *message, Field *f) {
  char name[128];
  SnWireError err = {0};
  if (sn_validate(message, &err) == 0) return true;
  snprintf(name, sizeof name, "%s.%s", message->descriptor->short_name, f->name);
  if (strncmp(err.text, name, strlen(name)) || err.code != SINEW__V1__ERROR__CODE__INVALID)
    fail_msg("%s: the error is '%s'", name, err.text);
  return false;
}

static void expect(bool wanted, const ProtobufCMessage *message, Field *f, double value) {
  if (passes(message, f) == wanted) return;
  fail_msg("%s.%s: %.17g is %s", message->descriptor->short_name, f->name, value, wanted ? "refused" : "accepted");
}

static void mark_present(ProtobufCMessage *message, Field *f) {
  if (f->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) *(uint32_t *)(void *)((char *)message + f->quantifier_offset) = f->id;
}

// p: the number, alone or the only entry of an array.
static void check_double(ProtobufCMessage *message, Field *f, double *p, const Bounds *b) {
  const double good[] = {b->least, b->most, 0.5 * (b->least + b->most)};
  const double bad[] = {nextafter(b->least, -INFINITY), nextafter(b->most, INFINITY), -INFINITY, INFINITY, NAN};
  for (size_t i = 0; i < sizeof good / sizeof *good; i++) *p = good[i], expect(true, message, f, *p);
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) *p = bad[i], expect(false, message, f, *p);
  *p = b->least;
}

static void check_whole(ProtobufCMessage *message, Field *f, const Bounds *b) {
  const bool is_long = f->type == PROTOBUF_C_TYPE_UINT64;
  const uint64_t least = (uint64_t)b->least, most = b->most == ANY ? UINT64_MAX : (uint64_t)b->most;
  const struct {
    bool tried, wanted;
    uint64_t value;
  } tries[] = {{true, true, least},
               {true, true, most},
               {least > 0, false, least - 1},
               {most < (is_long ? UINT64_MAX : UINT32_MAX), false, most + 1},
               {most < (is_long ? UINT64_MAX : UINT32_MAX), false, is_long ? UINT64_MAX : UINT32_MAX}};
  for (size_t i = 0; i < sizeof tries / sizeof *tries; i++) {
    if (!tries[i].tried) continue;
    if (is_long)
      *(uint64_t *)at(message, f) = tries[i].value;
    else
      *(uint32_t *)at(message, f) = (uint32_t)tries[i].value;
    expect(tries[i].wanted, message, f, (double)tries[i].value);
  }
}

static void check_text(ProtobufCMessage *message, Field *f, const Bounds *b) {
  const size_t least = (size_t)b->least, most = (size_t)b->most;
  char *text = calloc(most + 2, 1);
  *(char **)at(message, f) = text;
  for (size_t n = 0; n <= most + 1; n++) {
    expect(n >= least && n <= most, message, f, (double)n);
    text[n < most + 1 ? n : most] = 'x';
  }
  free(text);
}

// Entries that are just allowed, and how many of them.
static void check_array(ProtobufCMessage *message, Field *f, const Bounds *b) {
  const size_t n = b->entries + 1;
  Sinew__V1__TermSettings term = SINEW__V1__TERM_SETTINGS__INIT;
  term.name = (char[]){"x"};
  union {
    double *number;
    void **item;
  } x = {.number = calloc(n, sizeof(double))};
  for (size_t i = 0; i < n; i++) {
    if (f->type == PROTOBUF_C_TYPE_MESSAGE)
      x.item[i] = &term;
    else
      x.number[i] = b->most;
  }
  *(void **)at(message, f) = x.item;
  size_t *count = (size_t *)(void *)((char *)message + f->quantifier_offset);
  for (*count = n - 2; *count <= n; ++*count) expect(*count <= b->entries, message, f, (double)*count);
  *count = 3;
  if (f->type != PROTOBUF_C_TYPE_MESSAGE)
    for (int i = 0; i < 3; i++) check_double(message, f, x.number + i, b);
  *count = 0;
  free(x.number);
}

static void check_field(const ProtobufCMessageDescriptor *d, Field *f) {
  const Bounds *b = find(d->short_name, f->name);
  if (!b) fail_msg("%s.%s has no row in this test", d->short_name, f->name);
  visits[b - bounds]++;
  ProtobufCMessage *message = make(d);
  mark_present(message, f);
  if (f->label == PROTOBUF_C_LABEL_REPEATED)
    check_array(message, f, b);
  else if (f->type == PROTOBUF_C_TYPE_DOUBLE)
    check_double(message, f, at(message, f), b);
  else if (f->type == PROTOBUF_C_TYPE_UINT32 || f->type == PROTOBUF_C_TYPE_UINT64)
    check_whole(message, f, b);
  else if (f->type == PROTOBUF_C_TYPE_STRING)
    check_text(message, f, b);
  else  // there are but two values, and both mean something
    assert_true(f->type == PROTOBUF_C_TYPE_BOOL && b->least == 0 && b->most == 1);
  free(message);
}

// A message, and those within it; some are within several.
static void check_message(const ProtobufCMessageDescriptor *d) {
  for (unsigned i = 0; i < d->n_fields; i++) {
    Field *f = &d->fields[i];
    if (f->type == PROTOBUF_C_TYPE_MESSAGE) check_message(f->descriptor);
    if (f->type != PROTOBUF_C_TYPE_MESSAGE || f->label == PROTOBUF_C_LABEL_REPEATED) check_field(d, f);
  }
}

static void test_bounds_by_value(void **state) {
  (void)state;
  check_message(&sinew__v1__request__descriptor);
  check_message(&sinew__v1__kept_session__descriptor);
  check_message(&sinew__v1__kept_warm_start__descriptor);
  for (int i = 0; i < ROWS; i++)
    if (visits[i] == 0) fail_msg("%s.%s is no field of a request", bounds[i].message, bounds[i].field);
}

// Messages within a message are looked at; those that it means nothing without must be there.
static void test_messages_within(void **state) {
  (void)state;
  static const ProtobufCMessageDescriptor *const needy[] = {
      &sinew__v1__plan_request__descriptor, &sinew__v1__evaluate_request__descriptor,
      &sinew__v1__stream_state__descriptor, &sinew__v1__snapshot__descriptor};
  for (size_t i = 0; i < sizeof needy / sizeof *needy; i++) {
    SnWireError err = {0};
    ProtobufCMessage *message = make(needy[i]);
    Field *f = protobuf_c_message_descriptor_get_field_by_name(needy[i], "state");
    assert_int_equal(sn_validate(message, &err), 0);
    Sinew__V1__State late = SINEW__V1__STATE__INIT;
    late.time = 1.1e9;
    *(Sinew__V1__State **)at(message, f) = &late;
    assert_int_equal(sn_validate(message, &err), -1);
    assert_string_equal(err.text, "State.time: 1.1e+09 is out of bounds, allowed is -1e+09 to 1e+09");
    *(Sinew__V1__State **)at(message, f) = NULL;
    assert_false(passes(message, f));
    free(message);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_bounds_by_value), cmocka_unit_test(test_messages_within)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}

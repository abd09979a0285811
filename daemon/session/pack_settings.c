// Settings between the wire and the planner. The fields of PlannerSettings are found by the names of the planner's
// table, so a new setting needs a row there and a field in the schema, and nothing here.
#include <stdio.h>
#include <string.h>

#include "daemon/session/pack.h"
#include "physics/base/number_text.h"
#include "proto/validate.h"

enum { REMARK = 512 };  // bytes of a warning

typedef const ProtobufCFieldDescriptor Field;

static Field *field_of(const SnSettingInfo *info) {
  return protobuf_c_message_descriptor_get_field_by_name(&sinew__v1__planner_settings__descriptor, info->name);
}

// A field is a oneof of one: its case says whether it is there.
static uint32_t *case_of(const void *message, Field *f) {
  return (uint32_t *)((char *)(uintptr_t)message + f->quantifier_offset);
}
static void *value_of(const void *message, Field *f) { return (char *)(uintptr_t)message + f->offset; }

Sinew__V1__PlannerSettings *sn_pack_settings(SnScratch *scratch, const SnSettings *settings) {
  Sinew__V1__PlannerSettings *message = sn_scratch_alloc(scratch, sizeof *message);
  if (!message) return NULL;
  sinew__v1__planner_settings__init(message);
  for (int i = 0; i < sn_settings_count(); i++) {
    const SnSettingInfo *info = sn_settings_info(i);
    Field *f = field_of(info);
    if (!f) continue;
    double value = sn_settings_get(settings, i);
    const bool named = info->type == SN_SETTING_TYPE_CHOICE || info->type == SN_SETTING_TYPE_TEXT;
    char *text = named ? sn_scratch_alloc(scratch, SN_SETTING_TEXT_SIZE) : NULL;
    if (named && !text) return NULL;
    *case_of(message, f) = f->id;
    if (text) *(char **)value_of(message, f) = (char *)sn_settings_text(settings, i, text, SN_SETTING_TEXT_SIZE);
    if (info->type == SN_SETTING_TYPE_INT) *(uint32_t *)value_of(message, f) = (uint32_t)value;
    if (info->type == SN_SETTING_TYPE_REAL) *(double *)value_of(message, f) = value;
  }
  return message;
}

static SnCode check_limits(const SnConfig *limits, const SnSettings *settings, SnError *err) {
  if (settings->horizon > limits->horizon)
    return sn_fail(err, SN_ERR_LIMIT, "horizon: %d is out of bounds, this daemon allows at most %d", settings->horizon,
                   limits->horizon);
  if (settings->candidates > limits->candidates)
    return sn_fail(err, SN_ERR_LIMIT, "candidates: %d is out of bounds, this daemon allows at most %d",
                   settings->candidates, limits->candidates);
  return SN_OK;
}

SnCode sn_read_settings(const Sinew__V1__PlannerSettings *message, const SnConfig *limits, SnSettings *settings,
                        SnError *err) {
  SnSettings next = *settings;
  for (int i = 0; message && i < sn_settings_count(); i++) {
    Field *f = field_of(sn_settings_info(i));
    if (!f || *case_of(message, f) != f->id) continue;
    const void *p = value_of(message, f);
    SnCode code = f->type == PROTOBUF_C_TYPE_STRING   ? sn_settings_set_name(&next, i, *(char *const *)p, err)
                  : f->type == PROTOBUF_C_TYPE_UINT32 ? sn_settings_set(&next, i, *(const uint32_t *)p, err)
                                                      : sn_settings_set(&next, i, *(const double *)p, err);
    if (code != SN_OK) return code;
  }
  SnCode code = sn_settings_validate(&next, err);
  if (code == SN_OK) code = check_limits(limits, &next, err);
  if (code == SN_OK) *settings = next;
  return code;
}

// Refuses what is not within both, in words of who bounds it.
static SnCode check_time(const char *name, double x, double least, double most, const char *whose, SnError *err) {
  if (x >= least && x <= most) return SN_OK;
  return sn_fail(err, SN_ERR_ARGUMENT, "%s: %s is out of bounds, allowed is %s to %s s%s", name, sn_number_text(x).text,
                 sn_number_text(least).text, sn_number_text(most).text, whose);
}

SnCode sn_read_session_settings(const Sinew__V1__SessionSettings *message, const SnPlanner *planner,
                                double longest_lease, SnSessionSettings *settings, SnError *err) {
  double longest = sn_planner_length(planner);
  if (!message) return SN_OK;
  SnCode code = SN_OK;
  if (message->has_latency_case)
    code = check_time("latency", message->latency, 0, longest, ", the length of a plan", err);
  if (code == SN_OK && message->has_lease_case)
    code = check_time("lease", message->lease, SN_LEASE_LEAST, longest_lease, ", lease_seconds of sinewd", err);
  if (code == SN_OK && message->has_time_to_live_case)
    code = check_time("time_to_live", message->time_to_live, SN_LIVE_LEAST, SN_LEASE_MOST, "", err);
  if (code != SN_OK) return code;
  if (message->has_latency_case) settings->latency = message->latency;
  if (message->has_lease_case) settings->lease = message->lease;
  if (message->has_time_to_live_case) settings->time_to_live = message->time_to_live;
  return SN_OK;
}

_Static_assert((int)SN_TASK_MAX_NAME <= (int)SN_WIRE_NAME, "a request can name each term");

// A term's weights after the change: absent ones stay.
static void wanted_weights(const SnCost *cost, int k, const Sinew__V1__TermSettings *t, double weights[2]) {
  weights[0] = t->has_weight_case ? t->weight : (double)cost->weight[k];
  weights[1] = t->has_terminal_weight_case ? t->terminal_weight : (double)cost->terminal[k];
}

static SnCode check_term(const SnCost *cost, const Sinew__V1__TermSettings *t, SnError *err) {
  double weights[2];
  int k = sn_cost_find(cost, t->name);
  if (k < 0 || k >= cost->nterm) return sn_cost_no_term(cost, t->name, err);
  if (t->n_target > 0 && t->has_own_target_case && t->own_target)
    return sn_fail(err, SN_ERR_ARGUMENT, "'%.80s': target and own_target exclude each other", t->name);
  wanted_weights(cost, k, t, weights);
  SnCode code = sn_cost_check_weight(cost, k, weights[0], weights[1], err);
  return code == SN_OK ? sn_cost_check_target(cost, k, t->target, (int)t->n_target, err) : code;
}

// Of a term that was checked.
static SnCode apply_term(SnPlanner *planner, const Sinew__V1__TermSettings *t, SnError *err) {
  const SnCost *cost = sn_planner_cost(planner);
  double weights[2];
  wanted_weights(cost, sn_cost_find(cost, t->name), t, weights);
  SnCode code = sn_planner_set_weight(planner, t->name, weights[0], weights[1], err);
  bool own = t->has_own_target_case && t->own_target;
  if (code == SN_OK && (own || t->n_target > 0))
    code = sn_planner_set_target(planner, t->name, t->target, own ? 0 : (int)t->n_target, err);
  return code;
}

SnCode sn_check_terms(const SnPlanner *planner, Sinew__V1__TermSettings *const *terms, size_t n, SnError *err) {
  SnCode code = SN_OK;
  for (size_t i = 0; code == SN_OK && i < n; i++) code = check_term(sn_planner_cost(planner), terms[i], err);
  return code;
}

SnCode sn_apply_terms(SnPlanner *planner, Sinew__V1__TermSettings *const *terms, size_t n, SnError *err) {
  SnCode code = SN_OK;
  for (size_t i = 0; code == SN_OK && i < n; i++) code = apply_term(planner, terms[i], err);
  return code;
}

Sinew__V1__SessionSettings *sn_pack_session_settings(SnScratch *scratch, const SnSessionSettings *settings) {
  Sinew__V1__SessionSettings *message = sn_scratch_alloc(scratch, sizeof *message);
  if (!message) return NULL;
  sinew__v1__session_settings__init(message);
  message->has_latency_case = SINEW__V1__SESSION_SETTINGS__HAS_LATENCY_LATENCY;
  message->latency = settings->latency;
  message->has_lease_case = SINEW__V1__SESSION_SETTINGS__HAS_LEASE_LEASE;
  message->lease = settings->lease;
  message->has_time_to_live_case = SINEW__V1__SESSION_SETTINGS__HAS_TIME_TO_LIVE_TIME_TO_LIVE;
  message->time_to_live = settings->time_to_live;
  return message;
}

// The target set live, or that there is none.
static void pack_target(SnScratch *scratch, const SnVersion *v, const SnVersionTerm *t, Sinew__V1__TermSettings *out) {
  const size_t n = t->target >= 0 ? (size_t)t->size : 0;
  out->has_own_target_case = SINEW__V1__TERM_SETTINGS__HAS_OWN_TARGET_OWN_TARGET;
  out->own_target = n == 0;
  if (n == 0 || !(out->target = sn_scratch_alloc(scratch, n * sizeof *out->target))) return;
  memcpy(out->target, v->target + t->target, n * sizeof *out->target);
  out->n_target = n;
}

Sinew__V1__TermSettings **sn_pack_term_settings(SnScratch *scratch, const SnCost *cost, const SnVersion *v,
                                                size_t *count) {
  size_t n = (size_t)v->nterm;
  *count = 0;
  Sinew__V1__TermSettings **list = sn_scratch_alloc(scratch, n * sizeof *list),
                          *items = sn_scratch_alloc(scratch, n * sizeof *items);
  if (!list || !items) return NULL;
  for (size_t i = 0; i < n; i++) {
    sinew__v1__term_settings__init(&items[i]);
    items[i].name = (char *)sn_cost_name(cost, (int)i);
    items[i].has_weight_case = SINEW__V1__TERM_SETTINGS__HAS_WEIGHT_WEIGHT;
    items[i].weight = v->term[i].weight;
    items[i].has_terminal_weight_case = SINEW__V1__TERM_SETTINGS__HAS_TERMINAL_WEIGHT_TERMINAL_WEIGHT;
    items[i].terminal_weight = v->term[i].terminal;
    pack_target(scratch, v, &v->term[i], &items[i]);
    list[i] = &items[i];
  }
  *count = n;
  return list;
}

char **sn_pack_choices(SnScratch *scratch, const char *choices, size_t *count) {
  char *text = sn_scratch_alloc(scratch, strlen(choices) + 1), *rest;
  char **list = sn_scratch_alloc(scratch, (strlen(choices) / 2 + 1) * sizeof *list);
  *count = 0;
  if (!text || !list) return NULL;
  strcpy(text, choices);
  for (char *name = strtok_r(text, "|", &rest); name; name = strtok_r(NULL, "|", &rest)) list[(*count)++] = name;
  return list;
}

static void pack_table(SnScratch *scratch, Sinew__V1__Config *config) {
  size_t n = (size_t)sn_settings_count();
  Sinew__V1__SettingInfo **list = sn_scratch_alloc(scratch, n * sizeof *list),
                         *items = sn_scratch_alloc(scratch, n * sizeof *items);
  if (!list || !items) return;
  for (size_t i = 0; i < n; i++) {
    const SnSettingInfo *row = sn_settings_info((int)i);
    sinew__v1__setting_info__init(&items[i]);
    items[i].name = (char *)row->name;
    items[i].text = (char *)row->doc;
    items[i].unit = (char *)row->unit;
    items[i].min = row->lo;
    items[i].max = row->hi;
    items[i].live = row->live;
    if (row->choices) items[i].choices = sn_pack_choices(scratch, row->choices, &items[i].n_choices);
    list[i] = &items[i];
  }
  config->table = list;
  config->n_table = n;
}

// What one should know of a configuration: of the planner's settings, and of continuous mode while that runs.
static char *pack_warning(SnScratch *scratch, const SnSession *session, const SnVersion *v) {
  char *text = sn_scratch_alloc(scratch, REMARK);
  if (!text) return NULL;
  sn_planner_remark(session->planner, &v->planner, text, REMARK);
  const char *more = atomic_load(&session->streaming) ? sn_stream_remark(&v->session) : "";
  const size_t n = strlen(text);
  if (*more) snprintf(text + n, REMARK - n, "%s%s", n ? "; " : "", more);
  return text;
}

Sinew__V1__Config *sn_pack_config(SnScratch *scratch, const SnSession *session, const SnVersion *v, bool with_table) {
  Sinew__V1__Config *config = sn_scratch_alloc(scratch, sizeof *config);
  if (!config) return NULL;
  sinew__v1__config__init(config);
  config->version = v->number;
  config->oldest = sn_history_oldest(&session->history);
  config->reverted_to = v->reverted_to;
  if (!(config->warning = pack_warning(scratch, session, v))) return NULL;
  config->planner = sn_pack_settings(scratch, &v->planner);
  config->session = sn_pack_session_settings(scratch, &v->session);
  config->terms = sn_pack_term_settings(scratch, sn_planner_cost(session->planner), v, &config->n_terms);
  if (with_table) pack_table(scratch, config);
  return config;
}

#include "clients/sinewctl/commands_private.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static bool complain(Call *call, const char *format, const char *what) {
  snprintf(call->error, sizeof call->error, format, what);
  return false;
}

// A new message of the request's body, set by the field's name in Request.
static void *body(Call *call, const char *field_name) {
  const ProtobufCFieldDescriptor *field =
      protobuf_c_message_descriptor_get_field_by_name(call->request.base.descriptor, field_name);
  const ProtobufCMessageDescriptor *type = field->descriptor;
  ProtobufCMessage *message = malloc(type->sizeof_message);
  if (!message) abort();
  type->message_init(message);
  *(ProtobufCMessage **)(void *)((char *)&call->request + field->offset) = message;
  call->request.body_case = (Sinew__V1__Request__BodyCase)field->id;
  return message;
}

static char *copy_text(const char *text) {
  char *copy = strdup(text);
  if (!copy) abort();
  return copy;
}

static bool session_id(Call *call, int i, uint64_t *id) {
  return options_whole_number(call->opt->word[i], id) ||
         complain(call, "'%s': expected the number of a session", call->opt->word[i]);
}

static bool do_hello(Call *call) {
  Sinew__V1__HelloRequest *r = body(call, "hello");
  r->protocol = 1;
  r->client = copy_text("sinewctl");
  return true;
}

static bool do_health(Call *call) { return body(call, "health") != NULL; }
static bool do_metrics(Call *call) { return body(call, "metrics") != NULL; }
static bool do_models(Call *call) { return body(call, "list_models") != NULL; }
static bool do_tasks(Call *call) { return body(call, "list_tasks") != NULL; }

static bool do_stats(Call *call) {
  Sinew__V1__StatisticsRequest *r = body(call, "statistics");
  return call->opt->nword < 2 || session_id(call, 1, &r->session);
}

static bool do_model(Call *call) {
  ((Sinew__V1__DescribeModelRequest *)body(call, "describe_model"))->model = copy_text(call->opt->word[1]);
  return true;
}

static bool do_load(Call *call) {
  ((Sinew__V1__LoadModelRequest *)body(call, "load_model"))->model = copy_text(call->opt->word[1]);
  return true;
}

static bool do_unload(Call *call) {
  ((Sinew__V1__UnloadModelRequest *)body(call, "unload_model"))->model = copy_text(call->opt->word[1]);
  return true;
}

static bool do_task(Call *call) {
  ((Sinew__V1__DescribeTaskRequest *)body(call, "describe_task"))->task = copy_text(call->opt->word[1]);
  return true;
}

// A word "TERM.name=value" for a term of the cost; a term named again is the same entry.
static bool assign_term(Call *call, const char *word, const char *dot, Sinew__V1__SetConfigRequest *r) {
  const size_t length = (size_t)(dot - word);
  size_t i = 0;
  while (i < r->n_terms && (strncmp(r->terms[i]->name, word, length) != 0 || r->terms[i]->name[length] != '\0')) ++i;
  if (i == r->n_terms) {
    r->terms = realloc(r->terms, (i + 1) * sizeof *r->terms);
    Sinew__V1__TermSettings *term = malloc(sizeof *term);
    if (!r->terms || !term) abort();
    sinew__v1__term_settings__init(term);
    if (!(term->name = strndup(word, length))) abort();
    r->terms[r->n_terms++] = term;
  }
  return sn_message_set(&r->terms[i]->base, dot + 1, call->error, sizeof call->error);
}

// name=value words go to the planner's settings or, if it has no such name, to the session's; those with a dot in the
// name to the terms of `tune`, which is NULL where terms cannot be changed.
static bool assign(Call *call, int first, Sinew__V1__PlannerSettings **planner, Sinew__V1__SessionSettings **session,
                   Sinew__V1__SetConfigRequest *tune) {
  static const ProtobufCMessageDescriptor *const settings[] = {&sinew__v1__planner_settings__descriptor,
                                                               &sinew__v1__session_settings__descriptor};
  static const char terms[] =
      ", and of a term of the cost TERM.weight, TERM.terminal_weight, TERM.target, TERM.own_target";
  for (int i = first; i < call->opt->nword; ++i) {
    const char *word = call->opt->word[i];
    const char *dot = memrchr(word, '.', strcspn(word, "="));
    if (dot) {
      if (!tune) return complain(call, "'%s': terms of the cost are changed by tune, once the session is open", word);
      if (!assign_term(call, word, dot, tune)) return false;
      continue;
    }
    const int owner =
        sn_message_owner(settings, 2, word, "setting", tune ? terms : "", call->error, sizeof call->error);
    if (owner < 0) return false;
    const bool is_session = owner == 1;
    if (is_session && !*session) {
      if (!(*session = malloc(sizeof **session))) abort();
      sinew__v1__session_settings__init(*session);
    } else if (!is_session && !*planner) {
      if (!(*planner = malloc(sizeof **planner))) abort();
      sinew__v1__planner_settings__init(*planner);
    }
    if (!sn_message_set(is_session ? &(*session)->base : &(*planner)->base, word, call->error, sizeof call->error))
      return false;
  }
  return true;
}

static bool do_open(Call *call) {
  Sinew__V1__OpenRequest *r = body(call, "open");
  r->task = copy_text(call->opt->word[1]);
  r->seed = call->opt->seed;
  if (call->opt->name) r->name = copy_text(call->opt->name);
  return assign(call, 2, &r->planner, &r->session, NULL);
}

static bool do_tune(Call *call) {
  Sinew__V1__SetConfigRequest *r = body(call, "set_config");
  return session_id(call, 1, &r->session) && assign(call, 2, &r->planner, &r->settings, r);
}

static bool do_config(Call *call) {
  Sinew__V1__GetConfigRequest *r = body(call, "get_config");
  r->version = call->opt->version;
  return session_id(call, 1, &r->session);
}

static bool do_revert(Call *call) {
  Sinew__V1__RevertRequest *r = body(call, "revert");
  return session_id(call, 1, &r->session) &&
         (options_whole_number(call->opt->word[2], &r->version) ||
          complain(call, "'%s': expected the number of a version", call->opt->word[2]));
}

// Only the number of the session is read here: watching is no request.
static bool do_watch(Call *call) { return session_id(call, 1, &call->session); }

// With a file it is read here, without a request.
static bool do_flight(Call *call) { return body(call, "flight") != NULL; }

static bool do_reset(Call *call) {
  Sinew__V1__ResetRequest *r = body(call, "reset");
  if (call->opt->has_seed) {
    r->has_seed_case = SINEW__V1__RESET_REQUEST__HAS_SEED_SEED;
    r->seed = call->opt->seed;
  }
  return session_id(call, 1, &r->session);
}

static bool do_close(Call *call) {
  Sinew__V1__CloseRequest *r = body(call, "close");
  return session_id(call, 1, &r->session);
}

// Reads a whole file to its end. NULL when that fails; the text is the caller's.
static char *read_all(FILE *in) {
  size_t size = 0, capacity = 1 << 16, got;
  char *text = malloc(capacity);
  while (text && (got = fread(text + size, 1, capacity - size - 1, in)) > 0) {
    size += got;
    if (capacity - size < 2) text = realloc(text, capacity *= 2);
  }
  if (!text) abort();
  text[size] = '\0';
  if (!ferror(in)) return text;
  free(text);
  return NULL;
}

// Says where a text ceases to be JSON, and what was expected instead.
static void complain_json(Call *call, const char *name, const char *text, const char *at, const char *expected) {
  int line = 1, column = 1;
  for (const char *c = text; c < at; ++c) {
    column = *c == '\n' ? 1 : column + 1;
    line += *c == '\n';
  }
  char found[24];
  snprintf(found, sizeof found, "'%.*s'", (int)fmin(20, (double)strcspn(at, "\r\n")), at);
  snprintf(call->error, sizeof call->error, "%s:%d:%d: %s is not JSON; expected %s", name, line, column,
           *at ? found : "the end", expected);
}

// Reads a file, or standard input for "-", as a JSON object; NULL and call->error on failure.
static cJSON *read_json(Call *call, const char *path, const char *expected) {
  const bool standard = strcmp(path, "-") == 0;
  const char *name = standard ? "standard input" : path;
  FILE *in = standard ? stdin : fopen(path, "r");
  char *text = in ? read_all(in) : NULL;
  if (!text) snprintf(call->error, sizeof call->error, "cannot read %s: %s", name, strerror(errno));
  if (in && in != stdin) fclose(in);
  if (!text) return NULL;
  const char *at = text;
  cJSON *json = cJSON_ParseWithOpts(text, &at, true);
  if (!json) {
    complain_json(call, name, text, at, expected);
  } else if (!cJSON_IsObject(json)) {
    snprintf(call->error, sizeof call->error, "%s: expected %s", name, expected);
    cJSON_Delete(json);
    json = NULL;
  }
  free(text);
  return json;
}

// Fills a plan or evaluate request from JSON: either its fields, or only those of its state.
static bool fill_from_json(Call *call, ProtobufCMessage *message) {
  char expected[200];
  snprintf(expected, sizeof expected, "an object, %s or its state: {\"time\": 0, \"qpos\": [...], \"qvel\": [...]}",
           message->descriptor->short_name);
  cJSON *json = read_json(call, call->opt->nword > 2 ? call->opt->word[2] : "-", expected);
  if (!json) return false;
  if (!cJSON_HasObjectItem(json, "state")) {
    cJSON *whole = cJSON_CreateObject();
    cJSON_AddItemToObject(whole, "state", json);
    json = whole;
  }
  const bool ok = sn_message_from_json(message, json, call->error, sizeof call->error);
  cJSON_Delete(json);
  return ok;
}

static bool do_plan(Call *call) {
  Sinew__V1__PlanRequest *r = body(call, "plan");
  r->deadline = call->opt->deadline;
  if (!fill_from_json(call, &r->base) || !session_id(call, 1, &r->session)) return false;
  r->want_states = r->want_states || call->opt->states;
  return true;
}

static bool do_evaluate(Call *call) {
  Sinew__V1__EvaluateRequest *r = body(call, "evaluate");
  if (!fill_from_json(call, &r->base) || !session_id(call, 1, &r->session)) return false;
  r->want_states = r->want_states || call->opt->states;
  r->want_gradient = r->want_gradient || call->opt->gradient;
  return true;
}

static const Command COMMANDS[] = {
    {"hello", "", "version, capabilities and limits of the daemon", 1, 1, do_hello, COMMAND_ASKS},
    {"health", "", "is it ready: status 0; 2: it serves, but its device is lost; else 1", 1, 1, do_health,
     COMMAND_ASKS},
    {"stats", "[SESSION]", "plans, latencies, misses", 1, 2, do_stats, COMMAND_ASKS},
    {"metrics", "", "all counters, in the text format of Prometheus", 1, 1, do_metrics, COMMAND_ASKS},
    {"models", "", "models of the repository", 1, 1, do_models, COMMAND_ASKS},
    {"model", "NAME", "names, order, units and ranges of a model's vectors", 2, 2, do_model, COMMAND_ASKS},
    {"load", "NAME", "load a model", 2, 2, do_load, COMMAND_ASKS},
    {"unload", "NAME", "forget a model that no session uses", 2, 2, do_unload, COMMAND_ASKS},
    {"tasks", "", "tasks of the repository", 1, 1, do_tasks, COMMAND_ASKS},
    {"task", "NAME", "model, initial state, cost terms and settings of a task", 2, 2, do_task, COMMAND_ASKS},
    {"open", "TASK [name=value...]", "open a session; see --seed, --name", 2, 64, do_open, COMMAND_ASKS},
    {"plan", "SESSION [FILE]",
     "plan from a state in JSON (a PlanRequest, or its state alone); - or none: standard input", 2, 3, do_plan,
     COMMAND_ASKS},
    {"evaluate", "SESSION [FILE]", "cost of given controls (an EvaluateRequest in JSON)", 2, 3, do_evaluate,
     COMMAND_ASKS},
    {"config", "SESSION", "settings in force and the table of settings; --version N: those of an earlier version", 2, 2,
     do_config, COMMAND_ASKS},
    {"tune", "SESSION name=value...",
     "change settings of a session; of a term of its cost: TERM.weight=2, TERM.target=[0.1,0.2]", 3, 64, do_tune,
     COMMAND_ASKS},
    {"revert", "SESSION VERSION", "put an earlier version of the configuration in force again", 3, 3, do_revert,
     COMMAND_ASKS},
    {"watch", "SESSION", "how it fares, live; see --seconds, --count, --interval", 2, 2, do_watch, COMMAND_WATCHES},
    {"trace", "SESSION", "the stages of its next plan, with times; see --seconds, --count", 2, 2, do_watch,
     COMMAND_TRACES},
    {"reset", "SESSION", "back to the initial state; see --seed", 2, 2, do_reset, COMMAND_ASKS},
    {"close", "SESSION", "close a session", 2, 2, do_close, COMMAND_ASKS},
    {"flight", "[FILE]", "let the daemon's flight recorder write a file into its folder, or show a file that lies here",
     1, 2, do_flight, COMMAND_FLIGHT},
    {"keygen", "FILE", "make a pair of keys: FILE (secret, mode 600), FILE.pub (public)", 2, 2, NULL, COMMAND_KEYGEN},
};
enum { NCOMMAND = sizeof COMMANDS / sizeof *COMMANDS };

const Command *commands_all(int *count) {
  *count = NCOMMAND;
  return COMMANDS;
}

const Command *commands_find(const char *name) {
  for (int i = 0; i < NCOMMAND; ++i)
    if (strcmp(COMMANDS[i].name, name) == 0) return COMMANDS + i;
  return NULL;
}

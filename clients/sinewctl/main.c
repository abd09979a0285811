// sinewctl: every request of the daemon from a shell.
#include <argp.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "clients/base/daemon_args.h"
#include "clients/base/text.h"
#include "clients/libsinew_client/reflect.h"
#include "clients/libsinew_client/wire.h"
#include "clients/sinewctl/flight_private.h"
#include "clients/sinewctl/keygen_private.h"
#include "clients/sinewctl/trace_private.h"
#include "clients/sinewctl/watch_private.h"
#include "physics/base/known_names.h"

enum { KEY_VERSION = 256, KEY_SECONDS, KEY_COUNT, KEY_INTERVAL };

enum { GREETING = 5 };  // [s] in which a daemon that runs says hello

typedef struct Options {
  SinewClientDef daemon;
  const char *name;
  double timeout, deadline;
  uint64_t seed;
  bool json, states, gradient, has_seed;
  uint64_t version;  // of config
  WatchOptions watch;
  const char *word[64];  // command and its arguments
  int nword;
} Options;

// The request that a command builds; its memory is freed with the message tree.
typedef struct Call {
  const Options *opt;
  Sinew__V1__Request request;
  char error[SN_MESSAGE_ERROR];
} Call;

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

// Digits alone: strtoull would take a sign, and blanks before it.
static bool whole_number(const char *text, uint64_t *value) {
  char *end;
  errno = 0;
  *value = strtoull(text, &end, 10);
  return text[0] >= '0' && text[0] <= '9' && *end == '\0' && errno == 0;
}

static bool session_id(Call *call, int i, uint64_t *id) {
  return whole_number(call->opt->word[i], id) ||
         complain(call, "'%s': expected the number of a session", call->opt->word[i]);
}

//------------------------------------------------------------------------------------ commands

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

// Says which settings there are, in place of one that does not exist.
static bool unknown_setting(Call *call, const char *name, bool terms) {
  static const ProtobufCMessageDescriptor *const types[] = {&sinew__v1__planner_settings__descriptor,
                                                            &sinew__v1__session_settings__descriptor};
  SnKnownNames known;
  sn_known_begin(&known, name, 0);
  for (size_t t = 0; t < sizeof types / sizeof *types; ++t)
    for (unsigned i = 0; i < types[t]->n_fields; ++i) sn_known_add(&known, types[t]->fields[i].name);
  snprintf(call->error, sizeof call->error, "unknown setting '%s'; there are %s%s%s", name, sn_known_list(&known),
           terms ? ", and of a term of the cost TERM.weight, TERM.terminal_weight, TERM.target, TERM.own_target" : "",
           sn_known_near(&known));
  return false;
}

static const ProtobufCFieldDescriptor *field_of(const ProtobufCMessageDescriptor *type, const char *name) {
  return protobuf_c_message_descriptor_get_field_by_name(type, name);
}

// name=value words go to the planner's settings or, if it has no such name, to the session's; those with a dot in the
// name to the terms of `tune`, which is NULL where terms cannot be changed.
static bool assign(Call *call, int first, Sinew__V1__PlannerSettings **planner, Sinew__V1__SessionSettings **session,
                   Sinew__V1__SetConfigRequest *tune) {
  for (int i = first; i < call->opt->nword; ++i) {
    const char *word = call->opt->word[i];
    char name[64];
    snprintf(name, sizeof name, "%.*s", (int)strcspn(word, "="), word);
    const char *dot = memrchr(word, '.', strcspn(word, "="));
    if (dot) {
      if (!tune) return complain(call, "'%s': terms of the cost are changed by tune, once the session is open", word);
      if (!assign_term(call, word, dot, tune)) return false;
      continue;
    }
    const bool is_session = field_of(&sinew__v1__session_settings__descriptor, name);
    if (!is_session && !field_of(&sinew__v1__planner_settings__descriptor, name))
      return unknown_setting(call, name, tune != NULL);
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
         (whole_number(call->opt->word[2], &r->version) ||
          complain(call, "'%s': expected the number of a version", call->opt->word[2]));
}

// Only the number of the session is read here: watching is no request.
static bool do_watch(Call *call) {
  uint64_t session;
  return session_id(call, 1, &session);
}

// With a file it is read here, without a request.
static bool do_flight(Call *call) { return body(call, "flight") != NULL; }

static bool do_trace(Call *call) { return do_watch(call); }

// No request either: main() makes the keys, and needs no daemon for it.
static bool do_keygen(Call *call) { return call != NULL; }

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

typedef struct Command {
  const char *name, *arguments, *text;
  int min_words, max_words;  // the command's name included
  bool (*run)(Call *call);
} Command;

static const Command COMMANDS[] = {
    {"hello", "", "version, capabilities and limits of the daemon", 1, 1, do_hello},
    {"health", "", "is it ready: status 0; 2: it serves, but its device is lost; else 1", 1, 1, do_health},
    {"stats", "[SESSION]", "plans, latencies, misses", 1, 2, do_stats},
    {"metrics", "", "all counters, in the text format of Prometheus", 1, 1, do_metrics},
    {"models", "", "models of the repository", 1, 1, do_models},
    {"model", "NAME", "names, order, units and ranges of a model's vectors", 2, 2, do_model},
    {"load", "NAME", "load a model", 2, 2, do_load},
    {"unload", "NAME", "forget a model that no session uses", 2, 2, do_unload},
    {"tasks", "", "tasks of the repository", 1, 1, do_tasks},
    {"task", "NAME", "model, initial state, cost terms and settings of a task", 2, 2, do_task},
    {"open", "TASK [name=value...]", "open a session; see --seed, --name", 2, 64, do_open},
    {"plan", "SESSION [FILE]",
     "plan from a state in JSON (a PlanRequest, or its state alone); - or none: standard input", 2, 3, do_plan},
    {"evaluate", "SESSION [FILE]", "cost of given controls (an EvaluateRequest in JSON)", 2, 3, do_evaluate},
    {"config", "SESSION", "settings in force and the table of settings; --version N: those of an earlier version", 2, 2,
     do_config},
    {"tune", "SESSION name=value...",
     "change settings of a session; of a term of its cost: TERM.weight=2, TERM.target=[0.1,0.2]", 3, 64, do_tune},
    {"revert", "SESSION VERSION", "put an earlier version of the configuration in force again", 3, 3, do_revert},
    {"watch", "SESSION", "how it fares, live; see --seconds, --count, --interval", 2, 2, do_watch},
    {"trace", "SESSION", "the stages of its next plan, with times; see --seconds, --count", 2, 2, do_trace},
    {"reset", "SESSION", "back to the initial state; see --seed", 2, 2, do_reset},
    {"close", "SESSION", "close a session", 2, 2, do_close},
    {"flight", "[FILE]", "let the daemon's flight recorder write a file into its folder, or show a file that lies here",
     1, 2, do_flight},
    {"keygen", "FILE", "make a pair of keys: FILE (secret, mode 600), FILE.pub (public)", 2, 2, do_keygen},
};
enum { NCOMMAND = sizeof COMMANDS / sizeof *COMMANDS };

//------------------------------------------------------------------------------------ main

static const struct argp_option OPTIONS[] = {
    {"json", 'j', NULL, 0, "print the reply as one line of JSON", 0},
    {"timeout", 't', "SECONDS", 0, "wait for a reply, above 0 (default 60)", 0},
    {"seed", 's', "N", 0, "seed of open and reset", 0},
    {"name", 'n', "NAME", 0, "of the session that is opened: it outlasts the daemon, and is found again by it", 0},
    {"deadline", 'd', "SECONDS", 0, "the daemon's time for a plan (default 0.1)", 0},
    {"version", KEY_VERSION, "N", 0, "version of the configuration (default: in force)", 0},
    {"seconds", KEY_SECONDS, "S", 0, "watch for so long (default: until the session ends); trace: wait so long", 0},
    {"count", KEY_COUNT, "N", 0, "watch: so many looks; trace: so many plans (default 1)", 0},
    {"interval", KEY_INTERVAL, "S", 0, "watch: ask every S seconds (default: wait for telemetry)", 0},
    {"gradient", 'g', NULL, 0, "evaluate: the derivative of the cost too", 0},
    {"states", 'x', NULL, 0, "ask for the predicted states too", 0},
    {0}};

enum { HELP_INDENT = 33, HELP_WIDTH = 78 };  // columns of the list of commands

// Writes words from the column on where the text of a command begins, and goes on there in further lines.
static void wrap_text(FILE *f, const char *text) {
  int column = HELP_INDENT;
  for (size_t n; *text; text += n + strspn(text + n, " ")) {
    n = strcspn(text, " ");
    if (column > HELP_INDENT && column + 1 + (int)n > HELP_WIDTH) {
      fprintf(f, "\n%*s", HELP_INDENT, "");
      column = HELP_INDENT;
    } else if (column > HELP_INDENT) {
      fputc(' ', f);
      column++;
    }
    column += fprintf(f, "%.*s", (int)n, text);
  }
  fputc('\n', f);
}

static char *help_text(int key, const char *text, void *input) {
  (void)input;
  if (key != ARGP_KEY_HELP_POST_DOC) return (char *)(uintptr_t)text;
  char *out = NULL;
  size_t size = 0;
  FILE *f = open_memstream(&out, &size);
  fputs("Commands:\n", f);
  for (int i = 0; i < NCOMMAND; ++i) {
    const int used = fprintf(f, "  %s %s", COMMANDS[i].name, COMMANDS[i].arguments);
    fprintf(f, "%*s", HELP_INDENT - used, "");
    wrap_text(f, COMMANDS[i].text);
  }
  fputs(
      "\nExample:\n  sinewctl tasks\n  sinewctl --seed 3 open arm_reach candidates=128\n  sinewctl --json stats\n"
      "\nExit status: 0; 1 where a request is refused or not answered, or a word of the\ncommand is wrong; 64 where an "
      "option is wrong. health: 0 ready, 2 serving\nwhile its device is lost, 1 otherwise.\n",
      f);
  fclose(f);
  return out;
}

// A number of an option, of at least 0, or above 0.
static double read_time(struct argp_state *state, const char *option, const char *text, bool above) {
  char *end;
  const double x = strtod(text, &end);
  if (end == text || *end || !isfinite(x) || x < 0 || (above && x == 0))
    argp_error(state, "%s '%s': expected a number of seconds, %s 0", option, text, above ? "above" : "at least");
  return x;
}

static uint64_t read_whole(struct argp_state *state, const char *option, const char *text, uint64_t least) {
  uint64_t x = 0;
  if (!whole_number(text, &x) || x < least)
    argp_error(state, "%s '%s': expected a whole number from %llu on", option, text, (unsigned long long)least);
  return x;
}

static error_t parse_option(int key, char *arg, struct argp_state *state) {
  Options *o = state->input;
  switch (key) {
    case ARGP_KEY_INIT:
      state->child_inputs[0] = &o->daemon;
      return 0;
    case 'j':
      o->json = true;
      return 0;
    case 'g':
      o->gradient = true;
      return 0;
    case 'x':
      o->states = true;
      return 0;
    case 't':
      o->timeout = read_time(state, "--timeout", arg, true);
      return 0;
    case 'd':
      o->deadline = read_time(state, "--deadline", arg, false);
      return 0;
    case KEY_SECONDS:
      o->watch.seconds = read_time(state, "--seconds", arg, true);
      return 0;
    case KEY_INTERVAL:
      o->watch.interval = read_time(state, "--interval", arg, true);
      return 0;
    case KEY_VERSION:
      o->version = read_whole(state, "--version", arg, 0);
      return 0;
    case KEY_COUNT:
      o->watch.count = read_whole(state, "--count", arg, 1);
      return 0;
    case 's':
      o->has_seed = true;
      o->seed = read_whole(state, "--seed", arg, 0);
      return 0;
    case 'n':
      if (!*arg) argp_error(state, "--name '': expected a name; leave it out for a session without one");
      o->name = arg;
      return 0;
    case ARGP_KEY_ARG:
      if (o->nword == (int)(sizeof o->word / sizeof *o->word)) argp_error(state, "too many words");
      o->word[o->nword++] = arg;
      return 0;
    case ARGP_KEY_END:
      if (o->nword == 0) argp_usage(state);
      return 0;
    default:
      return ARGP_ERR_UNKNOWN;
  }
}

static const Command *find_command(const char *name) {
  for (int i = 0; i < NCOMMAND; ++i)
    if (strcmp(COMMANDS[i].name, name) == 0) return COMMANDS + i;
  return NULL;
}

static int report_error(const Options *opt, const char *status, const char *text);

// Says which commands there are, in place of one that does not exist.
static int unknown_command(const Options *opt) {
  SnKnownNames known;
  char text[SN_MESSAGE_ERROR];
  sn_known_begin(&known, opt->word[0], 0);
  for (int i = 0; i < NCOMMAND; ++i) sn_known_add(&known, COMMANDS[i].name);
  snprintf(text, sizeof text, "there is no '%s'; there are %s%s", opt->word[0], sn_known_list(&known),
           sn_known_near(&known));
  return report_error(opt, "bad command", text);
}

// The message of the reply's body.
static const ProtobufCMessage *reply_body(const Sinew__V1__Reply *reply) {
  const ProtobufCFieldDescriptor *field =
      protobuf_c_message_descriptor_get_field(reply->base.descriptor, (unsigned)reply->body_case);
  return field ? *(ProtobufCMessage *const *)(const void *)((const char *)reply + field->offset) : NULL;
}

static void print_reply(const Sinew__V1__Reply *reply, bool json) {
  const ProtobufCMessage *message = reply_body(reply);
  if (!message) return;
  if (!json && reply->body_case == SINEW__V1__REPLY__BODY_METRICS) {
    sn_print_text(stdout, reply->metrics->text, true);
    return;
  }
  if (!json) {
    sn_message_print(stdout, message, 0);
    return;
  }
  cJSON *object = sn_message_to_json(message);
  char *text = cJSON_PrintUnformatted(object);
  sn_print_json(stdout, text);
  cJSON_free(text);
  cJSON_Delete(object);
}

// Exit status after a reply: what a supervisor's check reads.
static int reply_status(const Sinew__V1__Reply *reply) {
  if (reply->body_case != SINEW__V1__REPLY__BODY_HEALTH) return 0;
  if (reply->health->state == SINEW__V1__HEALTH__STATE__DEGRADED) return 2;
  return reply->health->state == SINEW__V1__HEALTH__STATE__READY ? 0 : 1;
}

// An error for people on stderr, or as JSON on stdout. Where the text begins with the status it is not said twice.
static int report_error(const Options *opt, const char *status, const char *text) {
  if (opt->json) {
    cJSON *object = cJSON_CreateObject();
    cJSON_AddStringToObject(object, "status", status);
    cJSON_AddStringToObject(object, "error", text);
    char *line = cJSON_PrintUnformatted(object);
    sn_print_json(stdout, line);
    cJSON_free(line);
    cJSON_Delete(object);
  } else if (strncmp(text, status, strlen(status)) == 0) {
    fprintf(stderr, "sinewctl: %s\n", text);
  } else {
    fprintf(stderr, "sinewctl: %s: %s\n", status, text);
  }
  return 1;
}

static SinewStatus watch(SinewClient *client, const Options *opt, SinewError *err) {
  WatchOptions watch = opt->watch;
  whole_number(opt->word[1], &watch.session);
  watch.json = opt->json;
  return watch_run(client, &watch, err);
}

static SinewStatus trace(SinewClient *client, const Options *opt, SinewError *err) {
  TraceOptions trace = {.seconds = opt->watch.seconds, .count = opt->watch.count, .json = opt->json};
  whole_number(opt->word[1], &trace.session);
  return trace_run(client, &trace, err);
}

static SinewClient *connect_to_daemon(const Options *opt, SinewError *err) {
  SinewClientDef def = opt->daemon;
  def.timeout = fmin(opt->timeout, GREETING);
  return sinew_client_connect_by(&def, err);
}

static int make_keys(const Options *opt) {
  char public[SN_KEY_TEXT], error[1024];
  if (!keygen_run(opt->word[1], public, error, sizeof error)) return report_error(opt, "no keys", error);
  if (opt->json)
    printf("{\"public\":\"%s\"}\n", public);  // Z85 has no character that JSON would want escaped
  else
    printf("public key: %s\n", public);
  return 0;
}

static int show_flight(const Options *opt) {
  char error[1024];
  return flight_read(opt->word[1], opt->json, error, sizeof error) ? 0 : report_error(opt, "cannot be read", error);
}

static int run(int argc, char **argv) {
  Options opt = {.daemon = sinew_default_client(), .timeout = 60, .deadline = 0.1};
  const struct argp argp = {OPTIONS,
                            parse_option,
                            "COMMAND [ARGUMENT...]",
                            "Sends one request to sinewd and prints the reply, or watches a session.\v",
                            sn_daemon_args,
                            help_text,
                            NULL};
  argp_parse(&argp, argc, argv, 0, NULL, &opt);
  const Command *command = find_command(opt.word[0]);
  if (!command) return unknown_command(&opt);
  if (opt.nword < command->min_words || opt.nword > command->max_words) {
    char text[200];
    snprintf(text, sizeof text, "%s %s", command->name, command->arguments);
    return report_error(&opt, "usage", text);
  }
  if (command->run == do_keygen) return make_keys(&opt);
  if (command->run == do_flight && opt.nword == 2) return show_flight(&opt);
  Call call = {.opt = &opt, .request = SINEW__V1__REQUEST__INIT};
  SinewError err;
  int result = 1;
  SinewClient *client = NULL;
  Sinew__V1__Reply *reply = NULL;
  if (!command->run(&call))
    report_error(&opt, "bad argument", call.error);
  else if (!(client = connect_to_daemon(&opt, &err)))
    report_error(&opt, "no connection", err.text);
  else {
    sn_wire_set_timeout(client, opt.timeout);
    const SinewStatus status = command->run == do_watch   ? watch(client, &opt, &err)
                               : command->run == do_trace ? trace(client, &opt, &err)
                                                          : sn_request(client, &call.request, &reply, &err);
    if (status == SINEW_OK && reply)
      print_reply(reply, opt.json);
    else if (status != SINEW_OK)
      report_error(&opt, sinew_status_name(status), err.text);
    result = status != SINEW_OK ? 1 : reply ? reply_status(reply) : 0;
  }
  sn_free_reply(reply);
  sinew_client_disconnect(client);
  sn_message_clear(&call.request.base);
  return result;
}

// What could not be written counts as not answered, help too, after which argp ends the program itself.
static void check_output(void) {
  if (fflush(stdout) == 0 && !ferror(stdout)) return;
  fprintf(stderr, "sinewctl: the output could not be written: %s\n", strerror(errno));
  _exit(1);
}

int main(int argc, char **argv) { return atexit(check_output) == 0 ? run(argc, argv) : 1; }

// sinew-load: what a sinewd stands.
#include <argp.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <zmq.h>

#include "clients/base/args.h"
#include "clients/base/daemon_args.h"
#include "clients/base/text.h"
#include "clients/libsinew_client/reflect.h"
#include "clients/load/load.h"
#include "physics/base/output.h"

// Times to wait [s]: for the first import of a large model at least, for any other answer where nobody asks for another
// time, for that to a goodbye.
enum { IMPORTING = 60, ANSWERING = 10, CLOSING = 2 };

enum { KEY_ITERATIONS = 256, KEY_WATCH, KEY_SEED, KEY_RATE, KEY_TIMEOUT };

static const struct argp_option OPTIONS[] = {
    {"task", 't', "NAME", 0, "task of all sessions (default arm_reach)", 0},
    {"clients", 'c', "N", 0, "connections in all (default 256): those without a session ask for the daemon's health",
     0},
    {"sessions", 'n', "N", 0, "sessions, each of a client of its own (default 64)", 0},
    {"load", 'l', "X,...", 0,
     "plans asked for, in plans that can be made: a stage for each number (default 0.1,1,2,10)", 0},
    {"rate", KEY_RATE, "N", 0, "plans a second that can be made (default: it is measured before the first stage)", 0},
    {"deadline", 'd', "S", 0, "time for a plan (default 0.05)", 0},
    {"iterations", KEY_ITERATIONS, "N", 0, "of a plan at most (default 0: until its deadline)", 0},
    {"watch", KEY_WATCH, "N", 0, "requests a second of each client without a session (default 1)", 0},
    {"seconds", 's', "S", 0, "that a stage lasts (default 10)", 0},
    {"timeout", KEY_TIMEOUT, "S", 0,
     "for the answer to what is asked before and after a stage (default 10; while it loads the model 60 at least)", 0},
    {"seed", KEY_SEED, "N", 0, "of the moments at which clients begin (default 1)", 0},
    {"set", 'p', "NAME=VALUE", 0, "setting of the planner; may be repeated", 0},
    {"json", 'j', NULL, 0, "print one line of JSON", 0},
    {0}};

static void read_loads(const struct argp_state *state, LoadOptions *o, char *text) {
  if (text[strspn(text, "0123456789.,eE+-")])
    argp_error(state, "--load '%s': expected numbers with commas between", text);
  for (o->nload = 0; text; o->nload++) {
    if (o->nload == LOAD_STAGES) argp_error(state, "--load: more than %d numbers", LOAD_STAGES);
    o->load[o->nload] = sn_arg_number(state, "load", strsep(&text, ","), 0.001, 1000);
  }
}

static error_t parse_option(int key, char *arg, struct argp_state *state) {
  LoadOptions *o = state->input;
  switch (key) {
    case 't':
      o->task = arg;
      return 0;
    case ARGP_KEY_INIT:
      state->child_inputs[0] = &o->daemon;
      return 0;
    case 'c':
      o->clients = sn_arg_count(state, "clients", arg, 4096);
      return 0;
    case 'n':
      o->sessions = sn_arg_count(state, "sessions", arg, 1024);
      return 0;
    case 'l':
      read_loads(state, o, arg);
      return 0;
    case 'd':
      o->deadline = sn_arg_seconds(state, "deadline", arg);
      return 0;
    case KEY_ITERATIONS:
      o->iterations = sn_arg_count(state, "iterations", arg, 1000000);
      return 0;
    case KEY_WATCH:
      o->watch = sn_arg_number(state, "watch", arg, 0.001, 1000);
      return 0;
    case 's':
      o->seconds = sn_arg_seconds(state, "seconds", arg);
      return 0;
    case KEY_TIMEOUT:
      o->timeout = sn_arg_number(state, "timeout", arg, 1e-3, 1e5);
      return 0;
    case KEY_RATE:
      o->rate = sn_arg_number(state, "rate", arg, 0.001, 1e6);
      return 0;
    case KEY_SEED:
      o->seed = sn_arg_seed(state, arg);
      return 0;
    case 'p':
      if (o->nsettings == LOAD_SETTINGS) argp_error(state, "too many --set");
      o->settings[o->nsettings++] = arg;
      return 0;
    case 'j':
      o->json = true;
      return 0;
    case ARGP_KEY_END:
      if (o->sessions > o->clients) argp_error(state, "%d sessions want as many clients", o->sessions);
      return 0;
    default:
      return ARGP_ERR_UNKNOWN;
  }
}

static int fail(const SinewError *err) {
  fprintf(stderr, "sinew-load: ");
  sn_print_text(stderr, err->text, true);
  fputc('\n', stderr);
  return 1;
}

static SinewStatus open_session(LoadClient *c, const LoadOptions *o, SinewError *err) {
  Sinew__V1__PlannerSettings settings = SINEW__V1__PLANNER_SETTINGS__INIT;
  char error[SN_MESSAGE_ERROR];
  SinewStatus status = SINEW_OK;
  for (int i = 0; i < o->nsettings && status == SINEW_OK; ++i)
    if (!sn_message_set(&settings.base, o->settings[i], error, sizeof error))
      status = sn_wire_fail(err, SINEW_ERR_ARGUMENT, "--set %s: %s", o->settings[i], error);
  Sinew__V1__OpenRequest open = SINEW__V1__OPEN_REQUEST__INIT;
  open.task = (char *)(uintptr_t)o->task;
  open.seed = (uint64_t)o->seed;
  open.planner = &settings;
  Sinew__V1__Request request = SINEW__V1__REQUEST__INIT;
  request.body_case = SINEW__V1__REQUEST__BODY_OPEN;
  request.open = &open;
  if (status == SINEW_OK) status = sn_request(c->client, &request, &c->opened, err);
  sn_message_clear(&settings.base);
  if (status == SINEW_OK && !c->opened->open->initial)
    status = sn_wire_fail(err, SINEW_ERR_PROTOCOL, "the session that was opened has no initial state");
  return status;
}

// Returns false when there is no answer.
static bool close_session(LoadClient *c) {
  Sinew__V1__CloseRequest close = SINEW__V1__CLOSE_REQUEST__INIT;
  close.session = c->opened->open->session;
  Sinew__V1__Request request = SINEW__V1__REQUEST__INIT;
  request.body_case = SINEW__V1__REQUEST__BODY_CLOSE;
  request.close = &close;
  Sinew__V1__Reply *reply;
  sn_wire_set_timeout(c->client, CLOSING);
  const SinewStatus status = sn_request(c->client, &request, &reply, NULL);
  if (status == SINEW_OK) sn_free_reply(reply);
  return status != SINEW_ERR_TIMEOUT;
}

// One context for all of them, else each had threads of its own; a client has three sockets, two of them to watch it.
static bool connect_clients(LoadClient *clients, const LoadOptions *o, void *context, SinewError *err) {
  SinewClientDef def = o->daemon;
  def.timeout = o->timeout;
  def.retries = 0;
  if (!context || zmq_ctx_set(context, ZMQ_MAX_SOCKETS, 3 * o->clients + 8) != 0)
    return sn_wire_fail(err, SINEW_ERR_MEMORY, "no sockets for %d clients", o->clients), false;
  for (int i = 0; i < o->clients; ++i) {
    clients[i].client = sn_wire_connect(&def, context, err);
    if (!clients[i].client) return false;
    if (i >= o->sessions) continue;
    if (i == 0) sn_wire_set_timeout(clients[i].client, fmax(IMPORTING, o->timeout));
    const SinewStatus status = open_session(&clients[i], o, err);
    sn_wire_set_timeout(clients[i].client, o->timeout);
    if (status != SINEW_OK) return false;
  }
  return true;
}

// Closes sessions and connections. A daemon that does not answer for one session is not asked for the others.
static void disconnect_clients(LoadClient *clients, int n) {
  bool answers = true;
  for (int i = 0; i < n; ++i) {
    if (clients[i].opened && answers) answers = close_session(&clients[i]);
    sn_free_reply(clients[i].opened);
    sinew_client_disconnect(clients[i].client);
  }
}

static bool run_stages(LoadClient *clients, const LoadOptions *o, LoadStage *stages, double *rate, SinewError *err) {
  if (!o->json) fprintf(stderr, "%d clients are connected, %d sessions open\n", o->clients, o->sessions);
  *rate = o->rate > 0 ? o->rate : load_measure_rate(clients, o, err);
  if (*rate == 0) sn_wire_fail(err, SINEW_ERR_TIMEOUT, "no plan was made in the time of the measurement");
  if (!(*rate > 0)) return false;
  for (int i = 0; i < o->nload; ++i) {
    stages[i].load = o->load[i];
    stages[i].rate = o->load[i] * *rate;
    if (!o->json) fprintf(stderr, "%g times %.0f plans a second for %g s\n", o->load[i], *rate, o->seconds);
    if (!load_run(clients, o, &stages[i], err)) return false;
  }
  return true;
}

int main(int argc, char **argv) {
  LoadOptions o = {.daemon = sinew_default_client(),
                   .task = "arm_reach",
                   .clients = 256,
                   .sessions = 64,
                   .deadline = 0.05,
                   .watch = 1,
                   .seconds = 10,
                   .timeout = ANSWERING,
                   .seed = 1,
                   .load = {0.1, 1, 2, 10},
                   .nload = 4};
  const struct argp argp = {OPTIONS,
                            parse_option,
                            NULL,
                            "Asks a sinewd for more and more plans, by the clock, and reports how it answers.\v"
                            "Example:\n  sinewd --sessions=64 --connections=256 &\n  sinew-load --task arm_reach "
                            "--deadline 0.02 --load 0.1,1,10\n",
                            sn_daemon_args,
                            NULL,
                            NULL};
  sn_output_guard("sinew-load", 1);
  argp_parse(&argp, argc, argv, 0, NULL, &o);
  SinewError err = {0};
  LoadClient *clients = calloc((size_t)o.clients, sizeof *clients);
  void *context = zmq_ctx_new();
  LoadStage stages[LOAD_STAGES] = {0};
  double rate = 0;
  int result = 0;
  if (!clients) {
    sn_wire_fail(&err, SINEW_ERR_MEMORY, "out of memory");
    result = fail(&err);
  } else if (!connect_clients(clients, &o, context, &err) || !run_stages(clients, &o, stages, &rate, &err)) {
    result = fail(&err);
  } else {
    (o.json ? load_print_json : load_print)(stages, o.nload, rate, &o, stdout);
  }
  for (int i = 0; i < o.nload; ++i) load_stage_free(&stages[i]);
  if (clients) disconnect_clients(clients, o.clients);
  free(clients);
  if (context) zmq_ctx_term(context);
  return result;
}

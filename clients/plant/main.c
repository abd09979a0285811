// sinew-plant: MuJoCo as the robot, sinewd as its planner.
#include <argp.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "clients/base/args.h"
#include "clients/base/daemon_args.h"
#include "clients/base/text.h"
#include "clients/libsinew_client/wire.h"
#include "clients/plant/plant.h"
#include "physics/base/output.h"

// Times to wait [s]: for the first import of a large model; for the word that a session is closed, which changes
// nothing, and the same of a daemon that is gone; for any other answer where the user does not say.
#define IMPORTING 60.0
#define CLOSING 1.0
#define CLOSING_GONE 0.01
#define ANSWERING 5.0

// Time for a plan [s]: as a rule, and where the body waits and the planner's iterations say when it is done.
#define DEADLINE 0.04
#define DEADLINE_BOUNDED 1.0

enum {
  KEY_MODE = 256,
  KEY_XML,
  KEY_DATA,
  KEY_EXECUTE,
  KEY_CONTROLLER,
  KEY_HIDE_ACT,
  KEY_CONTACTS,
  KEY_TIMESTEP,
  KEY_LATENCY,
  KEY_SPEED,
  KEY_TIMEOUT
};

static const struct argp_option OPTIONS[] = {
    {"task", 't', "NAME", 0, "task of the daemon (default arm_reach)", 0},
    {"mode", KEY_MODE, "MODE", 0,
     "lockstep: the body waits for each plan (default); realtime: it goes on; continuous: it also streams its states, "
     "and applies the newest of the plans that the daemon makes all the time",
     0},
    {"seconds", 's', "S", 0, "how long the body moves (default 5)", 0},
    {"deadline", 'd', "S", 0,
     "the daemon's time for a plan on the body's clock, in continuous mode for all plans of a state (default 0.04; in "
     "lockstep 1 where the planner's iterations bound its work)",
     0},
    {"timeout", KEY_TIMEOUT, "S", 0,
     "a daemon that says nothing for so long, and for a plan's time on top, is taken for gone (default 5; while it "
     "loads the model 60 at least)",
     0},
    {"latency", KEY_LATENCY, "S|met", 0,
     "the planner is told that this passes from a state to its plan in force, on the body's clock (default: in "
     "lockstep "
     "0, in realtime mode the deadline and 5 ms, in continuous mode the deadline and 10 ms); met: what the latest "
     "plans have "
     "met",
     0},
    {"execute", KEY_EXECUTE, "STEPS", 0,
     "time steps of a plan between two states sent (in lockstep 16; else 1: the newest is there when the "
     "planner turns to it)",
     0},
    {"contacts", KEY_CONTACTS, "task|model", 0,
     "of the body: the task's where it names some (default), or those of the model's file", 0},
    {"timestep", KEY_TIMESTEP, "S", 0, "of the body (default: that of the plans)", 0},
    {"speed", KEY_SPEED, "X", 0,
     "of the world in realtime and continuous mode: 0.5 is half as fast as the clock, and a plan has twice the time "
     "(default 1)",
     0},
    {"seed", 'k', "N", 0, "of initial pose, initial plan and planner (default 1)", 0},
    {"set", 'p', "NAME=VALUE", 0, "setting of the planner; may be repeated", 0},
    {"models", 'm', "[NAME=]FOLDER", 0,
     "where the model's MJCF is found by its name; may be repeated (default: where sinewd has it)", 0},
    {"xml", KEY_XML, "FILE", 0, "the model's MJCF itself", 0},
    {"controller", KEY_CONTROLLER, "KIND", 0, "sinew (default); zero; random:N, the best of N constant controls", 0},
    {"hide-act", KEY_HIDE_ACT, NULL, 0, "do not tell the daemon the activations, as on a real body", 0},
    {"data", KEY_DATA, "FILE", 0, "write time, cost, measures, controls and positions as columns", 0},
    {"json", 'j', NULL, 0, "print the report as one line of JSON", 0},
    {"quiet", 'q', NULL, 0, "no progress", 0},
    {0}};

static int whole(struct argp_state *state, const char *name, const char *text, int least, int most) {
  const double x = sn_arg_number(state, name, text, least, most);
  if (floor(x) != x) argp_error(state, "--%s '%s': expected a whole number from %d to %d", name, text, least, most);
  return (int)x;
}

static void parse_controller(struct argp_state *state, PlantOptions *o, const char *text) {
  if (strcmp(text, "sinew") == 0)
    o->controller = PLANT_SINEW;
  else if (strcmp(text, "zero") == 0)
    o->controller = PLANT_ZERO;
  else if (strncmp(text, "random:", 7) == 0) {
    o->controller = PLANT_RANDOM;
    o->random_controls = whole(state, "controller random:", text + 7, 1, 1000000);
  } else
    argp_error(state, "--controller '%s': expected sinew, zero or random:N", text);
}

static void parse_contacts(struct argp_state *state, PlantOptions *o, const char *text) {
  o->model_contacts = strcmp(text, "model") == 0;
  if (!o->model_contacts && strcmp(text, "task") != 0)
    argp_error(state, "--contacts '%s': expected task or model", text);
}

static void parse_mode(struct argp_state *state, PlantOptions *o, const char *text) {
  for (o->mode = PLANT_LOCKSTEP; o->mode <= PLANT_CONTINUOUS; ++o->mode)
    if (strcmp(text, plant_mode_name(o->mode)) == 0) return;
  argp_error(state, "--mode '%s': expected lockstep, realtime or continuous", text);
}

// Options that say what the body is.
static error_t parse_body_option(int key, char *arg, struct argp_state *state) {
  PlantOptions *o = state->input;
  switch (key) {
    case 'm':
      if (o->places.nmodels == PLANT_MODELS) argp_error(state, "too many --models");
      o->places.models[o->places.nmodels++] = arg;
      return 0;
    case KEY_XML:
      o->places.xml = arg;
      return 0;
    case KEY_CONTACTS:
      parse_contacts(state, o, arg);
      return 0;
    case KEY_TIMESTEP:
      o->step = sn_arg_number(state, "timestep", arg, 1e-6, 1);
      return 0;
    case KEY_SPEED:
      o->speed = sn_arg_number(state, "speed", arg, 0.01, 100);
      return 0;
    default:
      return ARGP_ERR_UNKNOWN;
  }
}

static error_t parse_option(int key, char *arg, struct argp_state *state) {
  PlantOptions *o = state->input;
  switch (key) {
    case ARGP_KEY_INIT:
      state->child_inputs[0] = &o->daemon;
      return 0;
    case 't':
      o->task = arg;
      return 0;
    case KEY_MODE:
      parse_mode(state, o, arg);
      return 0;
    case 's':
      o->seconds = sn_arg_number(state, "seconds", arg, 1e-6, 1e5);
      return 0;
    case 'd':
      o->deadline = sn_arg_number(state, "deadline", arg, 1e-6, 1e5);
      return 0;
    case KEY_TIMEOUT:
      o->answer = sn_arg_number(state, "timeout", arg, 1e-3, 1e5);
      return 0;
    case KEY_LATENCY:
      o->measure_latency = strcmp(arg, "met") == 0;
      o->latency = o->measure_latency ? -1 : sn_arg_number(state, "latency", arg, 0, 1e5);
      return 0;
    case KEY_EXECUTE:
      o->execute = whole(state, "execute", arg, 1, 1000000);
      return 0;
    case 'k':
      o->seed = (uint64_t)whole(state, "seed", arg, 0, INT_MAX);
      return 0;
    case 'p':
      if (o->nsettings == (int)(sizeof o->settings / sizeof *o->settings) - 1) argp_error(state, "too many --set");
      o->settings[o->nsettings++] = arg;
      return 0;
    case KEY_CONTROLLER:
      parse_controller(state, o, arg);
      return 0;
    case KEY_HIDE_ACT:
      o->hide_act = true;
      return 0;
    case KEY_DATA:
      o->data = arg;
      return 0;
    case 'j':
      o->json = true;
      return 0;
    case 'q':
      o->quiet = true;
      return 0;
    default:
      return parse_body_option(key, arg, state);
  }
}

// MuJoCo would write MUJOCO_LOG.TXT into the working folder, and end the process on an error.
static void on_warning(const char *text) { fprintf(stderr, "MuJoCo warns: %s\n", text); }
static void on_error(const char *text) {
  fprintf(stderr, "MuJoCo fails: %s\n", text);
  exit(1);
}

static int fail(const char *text) {
  fprintf(stderr, "sinew-plant: ");
  sn_print_text(stderr, text, true);
  fputc('\n', stderr);
  return 1;
}

// From the daemon's plan to the body that moves by it [s]; in continuous mode the last iteration may end after the time
// of its state, too.
#define WAY 0.005
#define WAY_CONTINUOUS 0.01

double plant_latency_of(const PlantOptions *opt) {
  if (opt->latency >= 0) return opt->latency;
  if (opt->mode == PLANT_LOCKSTEP) return 0;  // the body waits
  return opt->deadline + (opt->mode == PLANT_REALTIME ? WAY : WAY_CONTINUOUS);
}

static SinewSessionDef session_def(const PlantOptions *opt) {
  SinewSessionDef def = sinew_default_session();
  def.task = opt->task;
  def.seed = opt->seed;
  def.settings = opt->settings;
  def.latency = plant_latency_of(opt);
  def.fallback = sinew_session_fallback_hold;
  return def;
}

// Iterations of a plan: the planner's own setting NAME_iterations, or the one of planners by sampling.
static uint32_t plan_iterations(const Sinew__V1__PlannerSettings *s) {
  char name[64];
  snprintf(name, sizeof name, "%.40s_iterations", s->has_planner_case ? s->planner : "");
  const ProtobufCFieldDescriptor *own = protobuf_c_message_descriptor_get_field_by_name(s->base.descriptor, name);
  const char *at = (const char *)s;
  uint32_t which = 0, value = 0;
  if (!own) return s->has_iterations_case ? s->iterations : 0;
  memcpy(&which, at + own->quantifier_offset, sizeof which);
  if (which == own->id) memcpy(&value, at + own->offset, sizeof value);
  return value;
}

// Whether the session's planner ends a plan after some number of iterations, without a deadline.
static SinewStatus iterations_bound(SinewClient *client, uint64_t session, bool *bound, SinewError *err) {
  Sinew__V1__GetConfigRequest ask = SINEW__V1__GET_CONFIG_REQUEST__INIT;
  ask.session = session;
  Sinew__V1__Request request = SINEW__V1__REQUEST__INIT;
  request.body_case = SINEW__V1__REQUEST__BODY_GET_CONFIG;
  request.get_config = &ask;
  Sinew__V1__Reply *reply;
  const SinewStatus status = sn_request(client, &request, &reply, err);
  if (status != SINEW_OK) return status;
  const Sinew__V1__PlannerSettings *s = reply->get_config->planner;
  *bound = s && plan_iterations(s) > 0;
  sn_free_reply(reply);
  return SINEW_OK;
}

// The deadline in lockstep where none was asked for, and that of a first plan: iterations end it where they can.
static SinewStatus choose_deadline(SinewClient *client, const SinewSession *session, PlantOptions *opt,
                                   SinewError *err) {
  bool bound = false;
  const SinewStatus status = iterations_bound(client, sinew_session_info(session)->id, &bound, err);
  if (opt->deadline == 0) opt->deadline = bound ? DEADLINE_BOUNDED : DEADLINE;
  opt->first = fmax(opt->deadline / opt->speed, bound ? DEADLINE_BOUNDED : 0);
  return status;
}

// Says what went wrong with the daemon; one that does not answer any more may be gone.
static int fail_request(const SinewError *err) {
  char text[5000];
  snprintf(text, sizeof text, "%s%s", err->text,
           err->status == SINEW_ERR_TIMEOUT ? " (sinewd has stopped or hangs)" : "");
  return fail(text);
}

// Runs, judges and reports with an open session. *gone: the daemon does not answer any more.
static int run(SinewClient *client, SinewSession *session, PlantBody *body, PlantOptions *opt, bool *gone) {
  char error[4096];
  SinewError err;
  const SinewSessionInfo *info = sinew_session_info(session);
  PlantRecord record;
  if (!plant_body_load(body, &opt->places, info, error, sizeof error)) return fail(error);
  if (opt->step > 0)
    body->m->opt.timestep = opt->step;
  else
    opt->step = info->timestep;
  sn_wire_set_timeout(client, opt->answer);
  SinewStatus status = plant_judge_begin(&record, client, opt->task, &err);
  *gone = status == SINEW_ERR_TIMEOUT;
  if (status != SINEW_OK) return fail_request(&err);
  record.task_contacts = !opt->model_contacts && plant_body_take_contacts(body, info->plant);
  status = choose_deadline(client, session, opt, &err);
  sn_wire_set_timeout(client, plant_patience(opt));
  if (status == SINEW_OK) status = plant_run(client, session, body, opt, &record, &err);
  if (status == SINEW_OK) status = plant_judge_record(&record, client, body, info, &err);
  *gone = status == SINEW_ERR_TIMEOUT;
  int result = 0;
  if (status != SINEW_OK)
    result = fail_request(&err);
  else if (opt->json)
    plant_report_print_json(&record, opt, stdout);
  else
    plant_report_print(&record, opt, stdout);
  if (result == 0 && opt->data && !plant_record_write(&record, info->nq, info->nu, opt->data))
    result = fail("the data file cannot be written");
  plant_record_free(&record);
  return result;
}

int main(int argc, char **argv) {
  PlantOptions opt = {.daemon = sinew_default_client(),
                      .task = "arm_reach",
                      .mode = PLANT_LOCKSTEP,
                      .seconds = 5,
                      .answer = ANSWERING,
                      .speed = 1,
                      .latency = -1,
                      .seed = 1};
  const struct argp argp = {
      OPTIONS,
      parse_option,
      NULL,
      "Moves a body in MuJoCo under the plans of sinewd, closed loop, and reports how well it went.\v"
      "Example:\n  sinew-plant --task arm_reach --mode realtime --seconds 4\n",
      sn_daemon_args,
      NULL,
      NULL};
  sn_output_guard("sinew-plant", 1);
  argp_parse(&argp, argc, argv, 0, NULL, &opt);
  if (opt.deadline == 0 && opt.mode != PLANT_LOCKSTEP) opt.deadline = DEADLINE;
  if (opt.execute == 0) opt.execute = opt.mode == PLANT_LOCKSTEP ? 16 : 1;
  mju_user_warning = on_warning;
  mju_user_error = on_error;
  SinewError err;
  opt.daemon.timeout = opt.answer;
  SinewClient *client = sinew_client_connect_by(&opt.daemon, &err);
  if (!client) return fail(err.text);
  sn_wire_set_timeout(client, fmax(IMPORTING, opt.answer));
  const SinewSessionDef def = session_def(&opt);
  int result;
  SinewSession *session = sinew_session_open(client, &def, &err);
  if (!session) {
    result = fail_request(&err);
  } else {
    PlantBody body = {0};
    bool gone = false;
    result = run(client, session, &body, &opt, &gone);
    plant_body_free(&body);
    sn_wire_set_timeout(client, gone ? CLOSING_GONE : CLOSING);
    sinew_session_close(session, NULL);
  }
  sinew_client_disconnect(client);
  return result;
}

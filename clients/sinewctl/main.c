// sinewctl: every request of the daemon from a shell.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clients/base/text.h"
#include "clients/sinewctl/commands_private.h"
#include "clients/sinewctl/flight_private.h"
#include "clients/sinewctl/keygen_private.h"
#include "clients/sinewctl/trace_private.h"
#include "physics/base/known_names.h"
#include "physics/base/output.h"

enum { GREETING = 5 };  // [s] in which a daemon that runs says hello

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

// Says which commands there are, in place of one that does not exist.
static int unknown_command(const Options *opt) {
  SnKnownNames known;
  int count;
  char text[SN_MESSAGE_ERROR];
  sn_known_begin(&known, opt->word[0], 0);
  const Command *all = commands_all(&count);
  for (int i = 0; i < count; ++i) sn_known_add(&known, all[i].name);
  snprintf(text, sizeof text, "there is no '%s'; there are %s%s", opt->word[0], sn_known_list(&known),
           sn_known_near(&known));
  return report_error(opt, "bad command", text);
}

static SinewStatus watch(SinewClient *client, const Call *call, SinewError *err) {
  WatchOptions watch = call->opt->watch;
  watch.session = call->session;
  watch.json = call->opt->json;
  return watch_run(client, &watch, err);
}

static SinewStatus trace(SinewClient *client, const Call *call, SinewError *err) {
  const Options *opt = call->opt;
  const TraceOptions trace = {
      .session = call->session, .seconds = opt->watch.seconds, .count = opt->watch.count, .json = opt->json};
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
  options_read(argc, argv, &opt);
  const Command *command = commands_find(opt.word[0]);
  if (!command) return unknown_command(&opt);
  if (opt.nword < command->min_words || opt.nword > command->max_words) {
    char text[200];
    snprintf(text, sizeof text, "%s %s", command->name, command->arguments);
    return report_error(&opt, "usage", text);
  }
  if (command->way == COMMAND_KEYGEN) return make_keys(&opt);
  if (command->way == COMMAND_FLIGHT && opt.nword == 2) return show_flight(&opt);
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
    const SinewStatus status = command->way == COMMAND_WATCHES  ? watch(client, &call, &err)
                               : command->way == COMMAND_TRACES ? trace(client, &call, &err)
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

int main(int argc, char **argv) {
  sn_output_guard("sinewctl", 1);
  return run(argc, argv);
}

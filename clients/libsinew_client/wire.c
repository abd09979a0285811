#include "clients/libsinew_client/wire.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <zmq.h>

#include "clients/base/api.h"
#include "clients/base/text.h"
#include "clients/libsinew_client/handshake_private.h"
#include "physics/base/clock.h"
#include "proto/default_endpoint.h"

enum { PROTOCOL = 1 };
enum { EARLY = 64 };  // replies that are kept while another one is awaited

// Pauses before a request is sent again: whose session is on its way, and whose connection has ended [s].
#define COMING_TIME 0.005
#define LOST_TIME 0.01

// While the daemon is gone a connection is tried again so often [ms].
enum { RECONNECT_MS = 20 };

// A longer message ends the connection [bytes].
static const int64_t LONGEST = 64 << 20;

static const ApiStruct DEF = {"SinewClientDef", "sinew_default_client", sizeof(SinewClientDef),
                              API_END(SinewClientDef, key_file)};

struct SinewClient {
  void *context, *socket;
  bool shares;      // the context is another one's
  void *telemetry;  // or NULL
  char *endpoint;
  SnHandshake handshake;
  double timeout;
  int retries;
  uint64_t next_id, longest;  // the latest id that was given; the longest request that the daemon reads [bytes], 0: any
  bool stale;                 // the connection has ended since the greeting: it may be another daemon
  Sinew__V1__Reply *early[EARLY];  // came while another one was awaited, in their order
  int nearly;
};

SinewStatus sn_wire_fail(SinewError *err, SinewStatus status, const char *format, ...) {
  if (!err) return status;
  char text[sizeof err->text];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  sn_printable(err->text, sizeof err->text, text, true);
  err->status = status;
  return status;
}

const char *sn_wire_endpoint(const SinewClient *client) { return client->endpoint; }

void sn_wire_set_timeout(SinewClient *client, double timeout) { client->timeout = timeout; }

int sn_wire_descriptor(const SinewClient *client) {
  int fd = -1;
  size_t size = sizeof fd;
  return client->socket && zmq_getsockopt(client->socket, ZMQ_FD, &fd, &size) == 0 ? fd : -1;
}

// Notes, before a connection is given up, whether it has ended: what comes next may be another daemon.
static SinewStatus note_end(SinewClient *client, SinewError *err) {
  SnHandshake *h = &client->handshake;
  const SinewStatus status = h->refused ? SINEW_OK : sn_handshake_check(h, client->endpoint, err);
  client->stale = client->stale || h->lost || h->refused;
  return status;
}

static bool is_streamed(const Sinew__V1__Reply *reply) {
  return reply->body_case == SINEW__V1__REPLY__BODY_PLAN && reply->plan->stream_sequence > 0;
}

// Takes reply i of those that are kept out.
static Sinew__V1__Reply *take_early(SinewClient *client, int i) {
  Sinew__V1__Reply *reply = client->early[i];
  memmove(client->early + i, client->early + i + 1, sizeof *client->early * (size_t)(--client->nearly - i));
  return reply;
}

// Keeps a plan, or the end of continuous mode, for the next one to receive a reply; frees others, which answer requests
// that nobody waits for any more. Of a session's stream the newest plan counts, and it alone is kept.
static void keep_early(SinewClient *client, Sinew__V1__Reply *reply) {
  if (reply->body_case != SINEW__V1__REPLY__BODY_PLAN && reply->body_case != SINEW__V1__REPLY__BODY_STREAM) {
    sn_free_reply(reply);
    return;
  }
  int old = client->nearly == EARLY ? 0 : -1;
  for (int i = 0; is_streamed(reply) && i < client->nearly; ++i)
    if (is_streamed(client->early[i]) && client->early[i]->plan->session == reply->plan->session) old = i;
  if (old >= 0) sn_free_reply(take_early(client, old));
  client->early[client->nearly++] = reply;
}

static void forget_early(SinewClient *client) {
  while (client->nearly > 0) sn_free_reply(take_early(client, 0));
}

void sn_wire_forget_stream(SinewClient *client, uint64_t session) {
  for (int i = client->nearly - 1; i >= 0; --i)
    if (is_streamed(client->early[i]) && client->early[i]->plan->session == session)
      sn_free_reply(take_early(client, i));
}

// A fresh socket: replies to what the old one sent can no longer arrive.
static SinewStatus reconnect(SinewClient *client, SinewError *err) {
  SinewStatus status = note_end(client, err);
  forget_early(client);
  if (status != SINEW_OK) return status;
  sn_handshake_forget(&client->handshake, client->socket);
  if (client->socket) zmq_close(client->socket);
  client->socket = zmq_socket(client->context, ZMQ_DEALER);
  if (!client->socket) return sn_wire_fail(err, SINEW_ERR_MEMORY, "socket: %s", zmq_strerror(errno));
  const int linger = 0, again = RECONNECT_MS;
  zmq_setsockopt(client->socket, ZMQ_LINGER, &linger, sizeof linger);
  zmq_setsockopt(client->socket, ZMQ_RECONNECT_IVL, &again, sizeof again);
  zmq_setsockopt(client->socket, ZMQ_MAXMSGSIZE, &LONGEST, sizeof LONGEST);
  status = sn_handshake_prepare(&client->handshake, client->socket, err);
  if (status == SINEW_OK)
    status = sn_handshake_watch(&client->handshake, client->context, client->socket, client->endpoint, err);
  if (status != SINEW_OK) return status;
  if (zmq_connect(client->socket, client->endpoint) != 0)
    return sn_wire_fail(err, SINEW_ERR_ARGUMENT, "cannot connect to %s: %s", client->endpoint, zmq_strerror(errno));
  return SINEW_OK;
}

SinewStatus sn_wire_send(SinewClient *client, Sinew__V1__Request *request, uint64_t *id, SinewError *err) {
  request->id = ++client->next_id;
  if (id) *id = request->id;
  const size_t size = sinew__v1__request__get_packed_size(request);
  // The daemon would end the connection without an answer.
  if (client->longest > 0 && size > client->longest)
    return sn_wire_fail(err, SINEW_ERR_LIMIT, "the request has %zu bytes; the daemon takes at most %llu", size,
                        (unsigned long long)client->longest);
  uint8_t *bytes = malloc(size ? size : 1);
  if (!bytes) return sn_wire_fail(err, SINEW_ERR_MEMORY, "out of memory");
  sinew__v1__request__pack(request, bytes);
  const int sent = zmq_send(client->socket, bytes, size, ZMQ_DONTWAIT);
  free(bytes);
  // libzmq gives up on a connection whose keys were refused.
  const SinewStatus let_in = sn_handshake_check(&client->handshake, client->endpoint, err);
  if (let_in != SINEW_OK) return let_in;
  if (sent < 0)
    return sn_wire_fail(err, SINEW_ERR_TIMEOUT, "cannot send to %s: %s", client->endpoint, zmq_strerror(errno));
  return api_ok(err);
}

// Waits until there is a reply or something has happened to the connection.
static void wait_for_reply(SinewClient *client, double wait) {
  zmq_pollitem_t item[2] = {{.socket = client->socket, .events = ZMQ_POLLIN},
                            {.socket = client->handshake.monitor, .events = ZMQ_POLLIN}};
  zmq_poll(item, item[1].socket ? 2 : 1, (long)fmin(ceil(wait * 1e3), INT_MAX));
}

// Receives a reply, or returns SINEW_ERR_TIMEOUT as soon as something has happened to the connection. One that is there
// is taken before anything else is looked at.
static SinewStatus receive_once(SinewClient *client, double wait, Sinew__V1__Reply **reply, SinewError *err) {
  *reply = NULL;
  // Without a socket zmq_poll would look at file descriptor 0.
  if (!client->socket) return sn_wire_fail(err, SINEW_ERR_MEMORY, "not connected to %s", client->endpoint);
  zmq_msg_t message;
  zmq_msg_init(&message);
  bool came = zmq_msg_recv(&message, client->socket, ZMQ_DONTWAIT) >= 0;
  if (!came && wait > 0) {
    wait_for_reply(client, wait);
    came = zmq_msg_recv(&message, client->socket, ZMQ_DONTWAIT) >= 0;
  }
  SinewStatus status = came ? SINEW_OK : sn_handshake_check(&client->handshake, client->endpoint, err);
  if (!came && status == SINEW_OK) status = SINEW_ERR_TIMEOUT;
  if (came) *reply = sinew__v1__reply__unpack(NULL, zmq_msg_size(&message), zmq_msg_data(&message));
  zmq_msg_close(&message);
  if (came && !*reply)
    return sn_wire_fail(err, SINEW_ERR_PROTOCOL, "the answer of %s is not a Reply", client->endpoint);
  return status;
}

SinewStatus sn_wire_receive(SinewClient *client, double wait, Sinew__V1__Reply **reply, SinewError *err) {
  const double until = sn_clock_now() + wait;
  if (client->nearly > 0) {
    *reply = take_early(client, 0);
    return SINEW_OK;
  }
  for (;;) {
    const SinewStatus status = receive_once(client, until - sn_clock_now(), reply, err);
    if (status != SINEW_ERR_TIMEOUT || !(sn_clock_now() < until)) return status;
  }
}

void sn_free_reply(Sinew__V1__Reply *reply) {
  if (reply) sinew__v1__reply__free_unpacked(reply, NULL);
}

SinewStatus sn_wire_check(const Sinew__V1__Reply *reply, bool seeks_session, SinewError *err) {
  if (reply->body_case != SINEW__V1__REPLY__BODY_ERROR) return SINEW_OK;
  const Sinew__V1__Error *error = reply->error;
  const bool gone = error->no_session || (seeks_session && error->code == SINEW__V1__ERROR__CODE__NOT_FOUND);
  return sn_wire_fail(err, gone ? SINEW_ERR_NO_SESSION : SINEW_ERR_REFUSED, "%s", error->text);
}

// Whether a request looks for its session and for nothing else that may be missing.
static bool is_of_session(const Sinew__V1__Request *request) {
  switch (request->body_case) {
    case SINEW__V1__REQUEST__BODY_PLAN:
    case SINEW__V1__REQUEST__BODY_EVALUATE:
    case SINEW__V1__REQUEST__BODY_STREAM:
    case SINEW__V1__REQUEST__BODY_STREAM_STATE:
    case SINEW__V1__REQUEST__BODY_CLOSE:
    case SINEW__V1__REQUEST__BODY_STATISTICS:
    case SINEW__V1__REQUEST__BODY_SNAPSHOT:
    case SINEW__V1__REQUEST__BODY_TRACE:
      return true;
    case SINEW__V1__REQUEST__BODY_GET_CONFIG:
      return request->get_config->version == 0;
    default:
      return false;
  }
}

// Says where no daemon can be: an address of a socket that does not exist. Abstract ones (@) have no file.
static const char *absence(const char *endpoint) {
  if (strncmp(endpoint, "ipc://", 6) != 0 || endpoint[6] == '@' || access(endpoint + 6, F_OK) == 0) return "";
  return errno == EACCES ? ": its folder may not be looked into" : ": there is no such socket; does sinewd run?";
}

// Waits for the reply with this id, until then at most, and no longer than the connection lasts; plans that come
// meanwhile are kept.
static SinewStatus await_reply(SinewClient *client, uint64_t id, double until, Sinew__V1__Reply **reply,
                               SinewError *err) {
  // The end of the connection may have been read when the request was sent: nothing more would come.
  while (!client->handshake.lost) {
    const double left = until - sn_clock_now();
    if (left <= 0)
      return sn_wire_fail(err, SINEW_ERR_TIMEOUT, "no answer from %s within %g s%s", client->endpoint, client->timeout,
                          absence(client->endpoint));
    const SinewStatus status = receive_once(client, left, reply, err);
    if (status == SINEW_ERR_TIMEOUT) continue;
    if (status != SINEW_OK) return status;
    // Id 0 answers a request that the daemon could not read: ours, since we wait for nothing else.
    if ((*reply)->id == id || (*reply)->id == 0) return SINEW_OK;
    keep_early(client, *reply);
    *reply = NULL;
  }
  return SINEW_ERR_TIMEOUT;
}

// Is the reply an error, or of the request's kind? In the schema both have the same name.
static bool answers(const Sinew__V1__Request *request, const Sinew__V1__Reply *reply) {
  if (reply->body_case == SINEW__V1__REPLY__BODY_ERROR) return true;
  const ProtobufCFieldDescriptor *asked =
      protobuf_c_message_descriptor_get_field(request->base.descriptor, (unsigned)request->body_case);
  const ProtobufCFieldDescriptor *got =
      protobuf_c_message_descriptor_get_field(reply->base.descriptor, (unsigned)reply->body_case);
  return asked && got && strcmp(asked->name, got->name) == 0;
}

bool sn_wire_coming(const Sinew__V1__Reply *reply) {
  return reply->body_case == SINEW__V1__REPLY__BODY_ERROR && reply->error->code == SINEW__V1__ERROR__CODE__RESTORING;
}

bool sn_wire_stopping(const Sinew__V1__Reply *reply) {
  if (reply->body_case == SINEW__V1__REPLY__BODY_STREAM)
    return reply->stream->end == SINEW__V1__STREAM_REPLY__END__SHUTTING_DOWN;
  return reply->body_case == SINEW__V1__REPLY__BODY_ERROR &&
         reply->error->code == SINEW__V1__ERROR__CODE__SHUTTING_DOWN;
}

static void pause_for(double seconds) {
  const struct timespec time = {0, (long)(seconds * 1e9)};
  nanosleep(&time, NULL);
}

static SinewStatus greet_again(SinewClient *client, double until, SinewError *err);

// Sends a request and waits for its reply, until then at most; once more where the session is on its way, or where the
// connection ends meanwhile: a daemon that was started again does not know of the first one. `outlasts`: or where the
// daemon stops.
static SinewStatus exchange(SinewClient *client, Sinew__V1__Request *request, bool outlasts, double until,
                            Sinew__V1__Reply **reply, SinewError *err) {
  bool asked = false;  // whether the limit that the request exceeds is of the daemon that is there now
  for (;;) {
    uint64_t id = 0;
    // A connection that has ended meanwhile may swallow what is sent until libzmq has made the next one.
    SinewStatus status = sn_handshake_check(&client->handshake, client->endpoint, err);
    if (status == SINEW_OK && client->handshake.lost) status = reconnect(client, err);
    if (status == SINEW_OK && client->stale && request->body_case != SINEW__V1__REQUEST__BODY_HELLO)
      status = greet_again(client, until, err);
    if (status == SINEW_OK) status = sn_wire_send(client, request, &id, err);
    if (status == SINEW_ERR_LIMIT && !asked) {
      asked = client->stale = true;
      continue;
    }
    if (status == SINEW_OK) status = await_reply(client, id, until, reply, err);
    const bool coming = status == SINEW_OK && (sn_wire_coming(*reply) || (outlasts && sn_wire_stopping(*reply)));
    const bool lost = status == SINEW_ERR_TIMEOUT && client->handshake.lost;
    if (!coming && !lost) return status;
    if (sn_clock_now() + LOST_TIME > until)
      return coming ? status
                    : sn_wire_fail(err, SINEW_ERR_TIMEOUT, "no answer from %s within %g s; the connection has ended",
                                   client->endpoint, client->timeout);
    sn_free_reply(*reply);
    *reply = NULL;
    pause_for(coming ? COMING_TIME : LOST_TIME);
  }
}

SinewStatus sn_wire_ask(SinewClient *client, Sinew__V1__Request *request, bool outlasts, Sinew__V1__Reply **reply,
                        SinewError *err) {
  *reply = NULL;
  SinewStatus status = SINEW_ERR_TIMEOUT;
  for (int attempt = 0; attempt <= client->retries && status == SINEW_ERR_TIMEOUT; ++attempt) {
    if ((attempt > 0 || client->handshake.refused) && (status = reconnect(client, err)) != SINEW_OK) return status;
    status = exchange(client, request, outlasts, sn_clock_now() + client->timeout, reply, err);
  }
  if (status != SINEW_OK || answers(request, *reply)) return status;
  sn_free_reply(*reply);
  *reply = NULL;
  return sn_wire_fail(err, SINEW_ERR_PROTOCOL, "%s answers with another kind of message", client->endpoint);
}

SinewStatus sn_request_about(SinewClient *client, Sinew__V1__Request *request, bool outlasts, Sinew__V1__Reply **reply,
                             SinewError *err) {
  SinewStatus status = sn_wire_ask(client, request, outlasts, reply, err);
  if (status != SINEW_OK) return status;
  status = sn_wire_check(*reply, is_of_session(request), err);
  if (status == SINEW_OK) return api_ok(err);
  sn_free_reply(*reply);
  *reply = NULL;
  return status;
}

SinewStatus sn_request(SinewClient *client, Sinew__V1__Request *request, Sinew__V1__Reply **reply, SinewError *err) {
  return sn_request_about(client, request, false, reply, err);
}

SinewStatus sn_wire_subscribe(SinewClient *client, const char *endpoint, SinewError *err) {
  const int zero = 0, one = 1;
  client->telemetry = zmq_socket(client->context, ZMQ_SUB);
  if (!client->telemetry) return sn_wire_fail(err, SINEW_ERR_MEMORY, "socket: %s", zmq_strerror(errno));
  zmq_setsockopt(client->telemetry, ZMQ_LINGER, &zero, sizeof zero);
  zmq_setsockopt(client->telemetry, ZMQ_MAXMSGSIZE, &LONGEST, sizeof LONGEST);
  zmq_setsockopt(client->telemetry, ZMQ_CONFLATE, &one, sizeof one);
  zmq_setsockopt(client->telemetry, ZMQ_SUBSCRIBE, "", 0);
  if (strncmp(endpoint, "tcp://", 6) == 0) {
    const SinewStatus status = sn_handshake_prepare(&client->handshake, client->telemetry, err);
    if (status != SINEW_OK) return status;
  }
  if (zmq_connect(client->telemetry, endpoint) != 0)
    return sn_wire_fail(err, SINEW_ERR_ARGUMENT, "cannot connect to %s: %s", endpoint, zmq_strerror(errno));
  return SINEW_OK;
}

SinewStatus sn_wire_telemetry(SinewClient *client, double wait, Sinew__V1__Telemetry **telemetry, SinewError *err) {
  *telemetry = NULL;
  zmq_pollitem_t item = {.socket = client->telemetry, .events = ZMQ_POLLIN};
  if (zmq_poll(&item, 1, wait > 0 ? (long)fmin(ceil(wait * 1e3), INT_MAX) : 0) <= 0)
    return sn_wire_fail(err, SINEW_ERR_TIMEOUT, "no telemetry within %g s", wait);
  zmq_msg_t message;
  zmq_msg_init(&message);
  if (zmq_msg_recv(&message, client->telemetry, ZMQ_DONTWAIT) >= 0)
    *telemetry = sinew__v1__telemetry__unpack(NULL, zmq_msg_size(&message), zmq_msg_data(&message));
  zmq_msg_close(&message);
  return *telemetry ? SINEW_OK : sn_wire_fail(err, SINEW_ERR_PROTOCOL, "what came as telemetry is none");
}

static Sinew__V1__Request greeting(Sinew__V1__HelloRequest *hello) {
  *hello = (Sinew__V1__HelloRequest)SINEW__V1__HELLO_REQUEST__INIT;
  hello->protocol = PROTOCOL;
  hello->client = (char *)"libsinew_client";
  Sinew__V1__Request request = SINEW__V1__REQUEST__INIT;
  request.body_case = SINEW__V1__REQUEST__BODY_HELLO;
  request.hello = hello;
  return request;
}

// Takes the answer to a greeting over: makes sure that both speak the same protocol, and notes the daemon's limit.
static SinewStatus take_greeting(SinewClient *client, Sinew__V1__Reply *reply, SinewError *err) {
  SinewStatus status = SINEW_OK;
  if (reply->hello->protocol != PROTOCOL)
    status = sn_wire_fail(err, SINEW_ERR_PROTOCOL, "the daemon speaks protocol %u, this library %d",
                          reply->hello->protocol, PROTOCOL);
  client->longest = reply->hello->limits ? reply->hello->limits->message_bytes : 0;
  client->stale = status != SINEW_OK;
  sn_free_reply(reply);
  return status;
}

static SinewStatus greet(SinewClient *client, SinewError *err) {
  Sinew__V1__HelloRequest hello;
  Sinew__V1__Request request = greeting(&hello);
  Sinew__V1__Reply *reply;
  const SinewStatus status = sn_request(client, &request, &reply, err);
  return status == SINEW_OK ? take_greeting(client, reply, err) : status;
}

// Greets the daemon that has come in the place of the one before, whose limits may be others, until then at most.
static SinewStatus greet_again(SinewClient *client, double until, SinewError *err) {
  Sinew__V1__HelloRequest hello;
  Sinew__V1__Request request = greeting(&hello);
  Sinew__V1__Reply *reply = NULL;
  SinewStatus status = exchange(client, &request, false, until, &reply, err);
  if (status == SINEW_OK && reply->body_case == SINEW__V1__REPLY__BODY_HELLO) return take_greeting(client, reply, err);
  if (status == SINEW_OK) status = sn_wire_check(reply, false, err);
  sn_free_reply(reply);
  return status;
}

static SinewStatus start(SinewClient *client, const SinewClientDef *def, SinewError *err) {
  char text[256];
  const char *endpoint = def->endpoint;
  if (!endpoint && !sn_default_endpoint(text, sizeof text))
    return sn_wire_fail(err, SINEW_ERR_ARGUMENT, "XDG_RUNTIME_DIR is too long for the path of a socket");
  const char *fault = endpoint ? sn_endpoint_fault(endpoint) : NULL;
  if (fault) return sn_wire_fail(err, SINEW_ERR_ARGUMENT, "cannot connect to '%s': %s", endpoint, fault);
  client->endpoint = strdup(endpoint ? endpoint : text);
  if (!client->shares) client->context = zmq_ctx_new();
  if (!client->endpoint || !client->context) return sn_wire_fail(err, SINEW_ERR_MEMORY, "out of memory");
  SinewStatus status = sn_handshake_keys(&client->handshake, def->server_key, def->key_file, err);
  if (status == SINEW_OK && client->handshake.keyed && strncmp(client->endpoint, "tcp://", 6) != 0)
    status = sn_wire_fail(err, SINEW_ERR_ARGUMENT, "%s takes no keys; a daemon asks for them at tcp addresses alone",
                          client->endpoint);
  if (status == SINEW_OK) status = reconnect(client, err);
  return status == SINEW_OK ? greet(client, err) : status;
}

SinewClient *sinew_client_connect(const char *endpoint, double timeout, int retries, SinewError *err) {
  SinewClientDef def = sinew_default_client();
  def.endpoint = endpoint;
  def.timeout = timeout;
  def.retries = retries;
  return sinew_client_connect_by(&def, err);
}

SinewClient *sinew_client_connect_by(const SinewClientDef *given, SinewError *err) {
  return sn_wire_connect(given, NULL, err);
}

SinewClient *sn_wire_connect(const SinewClientDef *given, void *context, SinewError *err) {
  SinewClientDef def = sinew_default_client();
  if (api_take(&DEF, given, &def, err) != SINEW_OK) return NULL;
  if (!(def.timeout > 0) || def.retries < 0) {
    api_fail(err, SINEW_ERR_ARGUMENT, "timeout must be > 0 and retries >= 0, got %g and %d", def.timeout, def.retries);
    return NULL;
  }
  SinewClient *client = calloc(1, sizeof *client);
  if (!client) {
    api_fail(err, SINEW_ERR_MEMORY, "out of memory");
    return NULL;
  }
  client->timeout = def.timeout;
  client->retries = def.retries;
  client->context = context;
  client->shares = context != NULL;
  if (start(client, &def, err) == SINEW_OK) return client;
  sinew_client_disconnect(client);
  return NULL;
}

void sinew_client_disconnect(SinewClient *client) {
  if (!client) return;
  forget_early(client);
  sn_handshake_forget(&client->handshake, client->socket);
  if (client->socket) zmq_close(client->socket);
  if (client->telemetry) zmq_close(client->telemetry);
  if (client->context && !client->shares) zmq_ctx_term(client->context);
  free(client->endpoint);
  free(client);
}

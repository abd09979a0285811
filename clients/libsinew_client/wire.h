// The wire under the client library: requests and replies as protobuf messages. The library uses it, and tools that
// need every request (sinewctl, the plant). Not installed. The functions belong to the client's thread, like the
// library's.
#ifndef SINEW_CLIENTS_LIBSINEW_CLIENT_WIRE_H_
#define SINEW_CLIENTS_LIBSINEW_CLIENT_WIRE_H_

#include "clients/include/sinew_client.h"
#include "proto/sinew.pb-c.h"

// Connects a client as sinew_client_connect_by does, with sockets of a context of libzmq that its caller ends after all
// its clients; NULL: of its own. Each context has threads: a program with hundreds of clients wants one.
SinewClient *sn_wire_connect(const SinewClientDef *def, void *context, SinewError *err);

// Sends a request (its id is set here) and waits for the reply, retrying after a time-out with a fresh socket. Returns
// what sn_wire_check makes of an error reply, SINEW_ERR_PROTOCOL for one of another kind than the request. On SINEW_OK
// *reply is the caller's, freed with sn_free_reply; else it is NULL.
SinewStatus sn_request(SinewClient *client, Sinew__V1__Request *request, Sinew__V1__Reply **reply, SinewError *err);

// Sends a request about a session and waits as sn_request does. Asks again, too, where the session outlasts the daemon
// and that says that it stops: the next one knows the session.
SinewStatus sn_request_about(SinewClient *client, Sinew__V1__Request *request, bool outlasts, Sinew__V1__Reply **reply,
                             SinewError *err);

// Sends a request and waits as sn_request does; an error reply is the caller's like any other. `outlasts`: as
// sn_request_about has it.
SinewStatus sn_wire_ask(SinewClient *client, Sinew__V1__Request *request, bool outlasts, Sinew__V1__Reply **reply,
                        SinewError *err);

// Sends a request and goes on; *id, which may be NULL, gets the request's id.
SinewStatus sn_wire_send(SinewClient *client, Sinew__V1__Request *request, uint64_t *id, SinewError *err);
// Receives any reply, waiting at most `wait` seconds; first the plans that have come while another reply was awaited.
// It is the caller's as above. Returns SINEW_ERR_TIMEOUT, and leaves err as it is, when none came.
SinewStatus sn_wire_receive(SinewClient *client, double wait, Sinew__V1__Reply **reply, SinewError *err);

// Drops the plan of a session's stream that has come while another reply was awaited. Serves where the stream has ended
// or begins, since its plans are numbered anew then.
void sn_wire_forget_stream(SinewClient *client, uint64_t session);

// Frees a reply; accepts NULL.
void sn_free_reply(Sinew__V1__Reply *reply);

// Sets err (which may be NULL) by a text like printf's and returns status. Words of a daemon may be part of it: ends of
// lines stay, other control characters do not.
SinewStatus sn_wire_fail(SinewError *err, SinewStatus status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

// Turns an error reply into SINEW_ERR_NO_SESSION or SINEW_ERR_REFUSED with its text; SINEW_OK for any other reply.
// `seeks_session`: the request looks for its session and for nothing else that may be missing. Daemons of before
// Error.no_session say no more than that something is.
SinewStatus sn_wire_check(const Sinew__V1__Reply *reply, bool seeks_session, SinewError *err);

// Returns whether a reply says that the session is on its way, and to ask again.
bool sn_wire_coming(const Sinew__V1__Reply *reply);
// Returns whether a reply says that the daemon stops, be it to a request or of a stream.
bool sn_wire_stopping(const Sinew__V1__Reply *reply);

// Subscribes to telemetry at an endpoint (HelloReply.telemetry).
SinewStatus sn_wire_subscribe(SinewClient *client, const char *endpoint, SinewError *err);
// Waits at most `wait` seconds for the newest message (SINEW_ERR_TIMEOUT: none came), which the caller frees. A message
// that was not read is dropped when a newer one comes.
SinewStatus sn_wire_telemetry(SinewClient *client, double wait, Sinew__V1__Telemetry **telemetry, SinewError *err);

// Returns a file descriptor that becomes readable when there may be a reply, for poll(). It says so once: read all
// replies after each sn_wire_send or sn_request, and whenever it is readable. It changes when sn_request has timed out.
int sn_wire_descriptor(const SinewClient *client);

// Returns the address of the daemon, that of its default endpoint included. It is the client's.
const char *sn_wire_endpoint(const SinewClient *client);

// Changes the time [s] that sn_request waits.
void sn_wire_set_timeout(SinewClient *client, double timeout);

#endif

// The wire under the client library: requests and replies as protobuf messages. Used by the library, and by
// tools that need every request (sinewctl, the plant). Not installed.
#ifndef SINEW_CLIENTS_LIBSINEW_CLIENT_WIRE_H_
#define SINEW_CLIENTS_LIBSINEW_CLIENT_WIRE_H_

#include "clients/include/sinew_client.h"
#include "proto/sinew.pb-c.h"

// Sends a request (its id is set here) and waits for the reply, retrying after a time-out with a fresh socket.
// An error reply is SINEW_REFUSED, one of another kind than the request SINEW_PROTOCOL. On SINEW_OK *reply is the
// caller's, freed with sn_free_reply; else it is NULL.
SinewStatus sn_request(SinewClient *client, Sinew__V1__Request *request, Sinew__V1__Reply **reply);

// The same in halves: send gives the id; receive waits at most `wait` seconds for any reply (SINEW_TIMEOUT: none).
SinewStatus sn_wire_send(SinewClient *client, Sinew__V1__Request *request, uint64_t *id);
SinewStatus sn_wire_receive(SinewClient *client, double wait, Sinew__V1__Reply **reply);

void sn_free_reply(Sinew__V1__Reply *reply);

// Sets the client's error text like printf and returns status. What a daemon said may be part of it: of control
// characters only ends of lines stay.
SinewStatus sn_wire_fail(SinewClient *client, SinewStatus status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

// Turns an error reply into SINEW_REFUSED with its text; SINEW_OK for any other reply.
SinewStatus sn_wire_check(SinewClient *client, const Sinew__V1__Reply *reply);

// Subscribes to telemetry at an endpoint (HelloReply.telemetry); then the next message within `wait` seconds, freed by
// the caller (SINEW_TIMEOUT: none). The newest one counts: older ones that wait are dropped.
SinewStatus sn_wire_subscribe(SinewClient *client, const char *endpoint);
SinewStatus sn_wire_telemetry(SinewClient *client, double wait, Sinew__V1__Telemetry **telemetry);

// Changes the time [s] that sn_request waits.
void sn_wire_set_timeout(SinewClient *client, double timeout);

// Writes the daemon's default endpoint of this user into text.
void sn_default_endpoint(char *text, size_t size);

#endif

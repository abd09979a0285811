// A page over HTTP on the loopback, for Prometheus: GET /metrics and nothing else. libmicrohttpd speaks HTTP; all of it
// runs in the event loop, without threads of its own. The event loop's alone.
#ifndef SINEW_DAEMON_MONITOR_HTTP_H_
#define SINEW_DAEMON_MONITOR_HTTP_H_

#include "physics/base/status.h"

typedef struct SnHttp SnHttp;

// Returns the text of the page, which need not last longer than until the next call; NULL when there is none now.
typedef const char *SnHttpPage(void *context);

// Checks an address: http://127.x.x.x:PORT or http://[::1]:PORT. Whatever other machines could reach is refused.
SnCode sn_http_check(const char *address, SnError *err);

// Listens at an address. Returns NULL and err on failure; the caller closes the result.
SnHttp *sn_http_open(const char *address, SnHttpPage *page, void *context, SnError *err);
// Accepts NULL.
void sn_http_close(SnHttp *http);

// Returns a file that can be read when there is something to do; -1 for NULL.
int sn_http_file(const SnHttp *http);

// Does what there is to do, without waiting. Returns the milliseconds until it wants to be called again, at most
// `most`, whatever the file says. Accepts NULL.
int sn_http_run(SnHttp *http, int most);

#endif

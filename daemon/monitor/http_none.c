// In place of http.c where libmicrohttpd is not wanted (CMake's SINEW_HTTP=OFF): there is no endpoint.
#include <stddef.h>

#include "daemon/monitor/http.h"

SnCode sn_http_check(const char *address, SnError *err) {
  return sn_fail(err, SN_ERR_UNSUPPORTED, "metrics is '%s'; this sinewd was built without HTTP (SINEW_HTTP=OFF)",
                 address);
}

SnHttp *sn_http_open(const char *address, SnHttpPage *page, void *context, SnError *err) {
  (void)page, (void)context;
  sn_http_check(address, err);
  return NULL;
}

void sn_http_close(SnHttp *http) { (void)http; }
int sn_http_file(const SnHttp *http) { return (void)http, -1; }
int sn_http_run(SnHttp *http, int most) { return (void)http, most; }

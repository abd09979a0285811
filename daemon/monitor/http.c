#include "daemon/monitor/http.h"

#include <arpa/inet.h>
#include <errno.h>
#include <microhttpd.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Connections at a time; seconds that one may be silent; bytes of memory of one, which bound the headers of a request.
enum { CONNECTIONS = 16, SILENT = 1, CONNECTION_BYTES = 16384 };

struct SnHttp {
  struct MHD_Daemon *server;
  SnHttpPage *page;
  void *context;
};

typedef union Address {
  struct sockaddr any;
  struct sockaddr_in four;
  struct sockaddr_in6 six;
} Address;

// Reads "HOST:PORT", as a loopback address written in numbers; of a host alone, as clients name it, port 0.
static bool read_address(const char *text, bool with_port, Address *out) {
  char host[48];
  const char *colon = with_port ? strrchr(text, ':') : text + strlen(text);
  if (!colon || colon == text || (size_t)(colon - text) >= sizeof host) return false;
  const bool six = text[0] == '[';
  if (six && colon[-1] != ']') return false;
  snprintf(host, sizeof host, "%.*s", (int)(colon - text) - 2 * six, text + six);
  char *end = NULL;
  const long port = with_port && colon[1] >= '0' && colon[1] <= '9' ? strtol(colon + 1, &end, 10) : 0;
  if (with_port && (!end || *end || port < 1 || port > 65535)) return false;
  memset(out, 0, sizeof *out);
  if (six) {
    out->six.sin6_family = AF_INET6;
    out->six.sin6_port = htons((uint16_t)port);
    return inet_pton(AF_INET6, host, &out->six.sin6_addr) == 1 && IN6_IS_ADDR_LOOPBACK(&out->six.sin6_addr);
  }
  out->four.sin_family = AF_INET;
  out->four.sin_port = htons((uint16_t)port);
  return inet_pton(AF_INET, host, &out->four.sin_addr) == 1 && ntohl(out->four.sin_addr.s_addr) >> 24 == 127;
}

static SnCode read_setting(const char *address, Address *out, SnError *err) {
  if (!strncmp(address, "http://", 7) && read_address(address + 7, true, out)) return SN_OK;
  return sn_fail(
      err, SN_ERR_ARGUMENT,
      "metrics is '%s'; allowed are http://127.0.0.1:PORT and http://[::1]:PORT, the loopback in numbers and a "
      "port from 1 to 65535",
      address);
}

SnCode sn_http_check(const char *address, SnError *err) {
  Address unused;
  return read_setting(address, &unused, err);
}

// Whether a request names this machine. A page in a browser could otherwise let a name of its own point here, and read.
static bool names_this_machine(struct MHD_Connection *connection) {
  const char *host = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "Host");
  Address unused;
  if (!host) return true;
  return !strcmp(host, "localhost") || !strncmp(host, "localhost:", 10) || read_address(host, true, &unused) ||
         read_address(host, false, &unused);
}

static enum MHD_Result reply(struct MHD_Connection *connection, unsigned status, const char *type, const char *text) {
  struct MHD_Response *response =
      MHD_create_response_from_buffer(strlen(text), (void *)(uintptr_t)text, MHD_RESPMEM_MUST_COPY);
  if (!response) return MHD_NO;
  MHD_add_response_header(response, "Content-Type", type);
  MHD_add_response_header(response, "Connection", "close");
  if (status == MHD_HTTP_METHOD_NOT_ALLOWED) MHD_add_response_header(response, "Allow", "GET");
  const enum MHD_Result queued = MHD_queue_response(connection, status, response);
  MHD_destroy_response(response);
  return queued;
}

static enum MHD_Result answer(void *context, struct MHD_Connection *connection, const char *path, const char *method,
                              const char *version, const char *body, size_t *body_size, void **state) {
  static const char plain[] = "text/plain; charset=utf-8";
  const SnHttp *http = context;
  (void)version, (void)body, (void)body_size, (void)state;
  if (strcmp(method, "GET")) return reply(connection, MHD_HTTP_METHOD_NOT_ALLOWED, plain, "GET is allowed\n");
  if (!names_this_machine(connection))
    return reply(connection, MHD_HTTP_FORBIDDEN, plain, "Host must name the loopback\n");
  if (strcmp(path, "/metrics")) return reply(connection, MHD_HTTP_NOT_FOUND, plain, "there is /metrics\n");
  const char *page = http->page(http->context);
  if (!page) return reply(connection, MHD_HTTP_SERVICE_UNAVAILABLE, plain, "out of memory\n");
  return reply(connection, MHD_HTTP_OK, "text/plain; version=0.0.4; charset=utf-8", page);
}

SnHttp *sn_http_open(const char *address, SnHttpPage *page, void *context, SnError *err) {
  Address at;
  SnHttp *http = calloc(1, sizeof *http);
  if (!http) {
    sn_fail(err, SN_ERR_MEMORY, "out of memory");
    return NULL;
  }
  *http = (SnHttp){.page = page, .context = context};
  if (read_setting(address, &at, err) != SN_OK) {
    free(http);
    return NULL;
  }
  const unsigned flags = MHD_USE_EPOLL | (at.any.sa_family == AF_INET6 ? MHD_USE_IPv6 : 0);
  errno = 0;
  http->server =
      MHD_start_daemon(flags, 0, NULL, NULL, answer, http, MHD_OPTION_SOCK_ADDR, &at.any, MHD_OPTION_CONNECTION_LIMIT,
                       (unsigned)CONNECTIONS, MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)SILENT,
                       MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)CONNECTION_BYTES, MHD_OPTION_END);
  if (http->server) return http;
  sn_fail(err, SN_ERR_IO, "metrics: cannot listen at %s: %s", address, errno ? strerror(errno) : "no reason is known");
  free(http);
  return NULL;
}

void sn_http_close(SnHttp *http) {
  if (!http) return;
  MHD_stop_daemon(http->server);
  free(http);
}

int sn_http_file(const SnHttp *http) {
  if (!http) return -1;
  const union MHD_DaemonInfo *info = MHD_get_daemon_info(http->server, MHD_DAEMON_INFO_EPOLL_FD);
  return info ? info->epoll_fd : -1;
}

int sn_http_run(SnHttp *http, int most) {
  MHD_UNSIGNED_LONG_LONG wait;
  if (!http) return most;
  MHD_run(http->server);
  return MHD_get_timeout(http->server, &wait) == MHD_YES && wait < (MHD_UNSIGNED_LONG_LONG)most ? (int)wait : most;
}

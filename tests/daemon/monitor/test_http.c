// The page of metrics over HTTP: which addresses are allowed, who is answered, and that nobody takes all of it.
#include <arpa/inet.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "daemon/monitor/http.h"
#include "physics/base/clock.h"

static void test_addresses(void **state) {
  (void)state;
  static const char *const allowed[] = {"http://127.0.0.1:9464", "http://127.9.8.7:1", "http://[::1]:65535"};
  static const char *const refused[] = {
      "",
      "127.0.0.1:9464",
      "tcp://127.0.0.1:9464",
      "https://127.0.0.1:9464",
      "http://127.0.0.1",
      "http://127.0.0.1:",
      "http://127.0.0.1:0",
      "http://127.0.0.1:65536",
      "http://127.0.0.1:80x",
      "http://127.0.0.1:+80",
      "http://127.0.0.1:9464/metrics",
      "http://0.0.0.0:9464",
      "http://*:9464",
      "http://:9464",
      "http://localhost:9464",
      "http://192.168.1.10:9464",
      "http://128.0.0.1:9464",
      "http://127.1:9464",
      "http://2130706433:9464",
      "http://[::]:9464",
      "http://[::ffff:127.0.0.1]:9464",
      "http://[fe80::1]:9464",
      "http://[::1:9464",
      "http://::1:9464",
      "http://[]:9464",
      "http://lo:9464",
      "http://user@127.0.0.1:9464",
  };
  for (size_t i = 0; i < sizeof allowed / sizeof *allowed; i++) {
    SnError err = {0};
    if (sn_http_check(allowed[i], &err) != SN_OK) fail_msg("%s: %s", allowed[i], err.text);
  }
  for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
    SnError err = {0};
    if (sn_http_check(refused[i], &err) != SN_ERR_ARGUMENT) fail_msg("'%s' is allowed", refused[i]);
    assert_non_null(strstr(err.text, "allowed are http://127.0.0.1:PORT"));
  }
}

static const char *page_text;
static const char *page(void *context) {
  assert_ptr_equal(context, &page_text);
  return page_text;
}

typedef struct Fixture {
  SnHttp *http;
  int port;
} Fixture;

static int setup(void **state) {
  static Fixture f;
  char address[40];
  SnError err = {0};
  for (f.port = 20000 + (int)(getpid() % 20000); !f.http && f.port < 65000; f.port += !f.http) {
    snprintf(address, sizeof address, "http://127.0.0.1:%d", f.port);
    f.http = sn_http_open(address, page, &page_text, &err);
  }
  page_text = "a 1\n";
  *state = &f;
  return f.http ? 0 : -1;
}

static int teardown(void **state) {
  sn_http_close(((Fixture *)*state)->http);
  return 0;
}

static int connect_to(const Fixture *f) {
  struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)f->port)};
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof to), 0);
  return fd;
}

// Lets the endpoint work until the other side ends the connection; what it said.
static const char *read_all(const Fixture *f, int fd) {
  static char text[8192];
  size_t size = 0;
  for (const double until = sn_clock_now() + 20; sn_clock_now() < until;) {
    sn_http_run(f->http, 10);
    const ssize_t n = recv(fd, text + size, sizeof text - 1 - size, MSG_DONTWAIT);
    if (n > 0) size += (size_t)n;
    if (n == 0) break;
    usleep(1000);
  }
  close(fd);
  text[size] = '\0';
  return text;
}

static const char *ask(const Fixture *f, const char *request) {
  const int fd = connect_to(f);
  assert_int_equal(send(fd, request, strlen(request), MSG_NOSIGNAL), strlen(request));
  return read_all(f, fd);
}

static void expect(const Fixture *f, const char *request, const char *status, const char *word) {
  const char *got = ask(f, request);
  if (strncmp(got, status, strlen(status)) || !strstr(got, word))
    fail_msg("%s\nis answered\n%s\ninstead of %s ... %s", request, got, status, word);
}

static void test_answers(void **state) {
  const Fixture *f = *state;
  assert_true(sn_http_file(f->http) >= 0);
  expect(f, "GET /metrics HTTP/1.1\r\nHost: 127.0.0.1:9464\r\n\r\n", "HTTP/1.1 200 ", "\r\n\r\na 1\n");
  expect(f, "GET /metrics HTTP/1.1\r\nHost: 127.0.0.1:9464\r\n\r\n", "HTTP/1.1 200 ",
         "Content-Type: text/plain; version=0.0.4");
  expect(f, "GET /metrics HTTP/1.1\r\nHost: localhost:1\r\n\r\n", "HTTP/1.1 200 ", "a 1\n");
  expect(f, "GET /metrics HTTP/1.1\r\nHost: [::1]\r\n\r\n", "HTTP/1.1 200 ", "a 1\n");
  expect(f, "GET /metrics HTTP/1.0\r\n\r\n", "HTTP/1.", "a 1\n");
  page_text = NULL;
  expect(f, "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n", "HTTP/1.1 503 ", "out of memory");
  page_text = "a 1\n";
}

// Anything but GET /metrics under a name of this machine is refused, and what is no HTTP ends its connection.
static void test_refusals(void **state) {
  const Fixture *f = *state;
  expect(f, "POST /metrics HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n", "HTTP/1.1 405 ", "Allow: GET");
  expect(f, "PUT /metrics HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4\r\n\r\nabcd", "HTTP/1.1 405 ", "Allow");
  expect(f, "HEAD /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n", "HTTP/1.1 405 ", "Allow: GET");
  expect(f, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", "HTTP/1.1 404 ", "/metrics");
  expect(f, "GET /metrics/../etc/passwd HTTP/1.1\r\nHost: localhost\r\n\r\n", "HTTP/1.1 404 ", "/metrics");
  static const char *const hosts[] = {"example.org", "localhost.example.org", "127.0.0.1.example.org",
                                      "192.168.1.1:9464"};
  for (size_t i = 0; i < sizeof hosts / sizeof *hosts; i++) {
    char request[200];
    snprintf(request, sizeof request, "GET /metrics HTTP/1.1\r\nHost: %s\r\n\r\n", hosts[i]);
    expect(f, request, "HTTP/1.1 403 ", "loopback");
  }
  assert_null(strstr(ask(f, "\x16\x03\x01 no HTTP at all\r\n\r\n"), "a 1\n"));
}

// A request without end takes no memory without end, and who says nothing does not keep others out for good.
static void test_greedy(void **state) {
  enum { SILENT = 40 };
  const Fixture *f = *state;
  static char block[4096];
  int silent[SILENT];
  memset(block, 'a', sizeof block);
  int fd = connect_to(f);
  bool ended = false;
  for (int i = 0; i < 1000 && !ended; i++) {
    sn_http_run(f->http, 10);
    char said[4096];
    send(fd, block, sizeof block, MSG_NOSIGNAL | MSG_DONTWAIT);
    const ssize_t n = recv(fd, said, sizeof said, MSG_DONTWAIT);
    ended = n == 0 || (n < 0 && errno != EAGAIN);
    usleep(1000);
  }
  assert_true(ended);
  close(fd);
  for (int i = 0; i < SILENT; i++) silent[i] = connect_to(f);
  const double began = sn_clock_now();
  expect(f, "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n", "HTTP/1.1 200 ", "a 1\n");
  print_message("served after %.1f s beside %d silent connections\n", sn_clock_now() - began, SILENT);
  for (int i = 0; i < SILENT; i++) close(silent[i]);
}

static void test_taken(void **state) {
  const Fixture *f = *state;
  char address[40];
  SnError err = {0};
  snprintf(address, sizeof address, "http://127.0.0.1:%d", f->port);
  assert_null(sn_http_open(address, page, &page_text, &err));
  assert_int_equal(err.code, SN_ERR_IO);
  assert_non_null(strstr(err.text, address));
  assert_null(sn_http_open("http://0.0.0.0:1", page, &page_text, &err));
  sn_http_close(NULL);
  assert_int_equal(sn_http_file(NULL), -1);
  assert_int_equal(sn_http_run(NULL, 7), 7);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_addresses), cmocka_unit_test(test_answers), cmocka_unit_test(test_refusals),
      cmocka_unit_test(test_greedy),    cmocka_unit_test(test_taken),
  };
  return cmocka_run_group_tests(tests, setup, teardown);
}

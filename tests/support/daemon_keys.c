#include "tests/support/daemon_keys.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zmq.h>

#include <cmocka.h>

void sn_test_key(SnTestKey *key) { assert_int_equal(zmq_curve_keypair(key->public, key->secret), 0); }

void sn_test_write_mode(const char *path, const char *text, unsigned mode) {
  FILE *f = fopen(path, "w");
  assert_non_null(f);
  fputs(text, f);
  assert_int_equal(fclose(f), 0);
  assert_int_equal(chmod(path, mode), 0);
}

int sn_test_free_port(void) {
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t size = sizeof address;
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  assert_int_equal(bind(fd, (struct sockaddr *)&address, size), 0);
  assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &size), 0);
  close(fd);
  return ntohs(address.sin_port);
}

void sn_test_keyed_prepare(SnTestKeyed *k) {
  sn_test_daemon_prepare(&k->daemon);
  sn_test_key(&k->server);
  snprintf(k->key_file, sizeof k->key_file, "%s/server.key", k->daemon.folder);
  snprintf(k->allow, sizeof k->allow, "%s/allow", k->daemon.folder);
  sn_test_write_mode(k->key_file, k->server.secret, 0600);
  sn_test_write_mode(k->allow, "", 0600);
  char *const address[] = {k->tcp, k->telemetry, k->records};
  for (int i = 0; i < 3; i++) snprintf(address[i], sizeof k->tcp, "tcp://127.0.0.1:%d", sn_test_free_port());
}

void sn_test_keyed_start(SnTestKeyed *k) {
  char text[6][192];
  const char *const args[] = {text[0], text[1], text[2], text[3], text[4], k->keeps ? text[5] : NULL, NULL};
  snprintf(text[0], sizeof text[0], "--curve-key=%s", k->key_file);
  snprintf(text[1], sizeof text[1], "--allow=%s", k->allow);
  snprintf(text[2], sizeof text[2], "--tcp=%s", k->tcp);
  snprintf(text[3], sizeof text[3], "--telemetry=%s", k->telemetry);
  snprintf(text[4], sizeof text[4], "--records=%s", k->records);
  snprintf(text[5], sizeof text[5], "--state=%s/state", k->daemon.folder);
  sn_test_daemon_start(&k->daemon, args);
}

void sn_test_keyed_restart(SnTestKeyed *k, int signal) {
  assert_int_equal(sn_test_daemon_stop(&k->daemon, signal), signal == SIGKILL ? -1 : 0);
  sn_test_keyed_start(k);
}

void sn_test_keyed_stop(SnTestKeyed *k) {
  assert_int_equal(sn_test_daemon_stop(&k->daemon, SIGTERM), 0);
  sn_test_daemon_remove(&k->daemon);
}

void sn_test_keyed_reload(SnTestKeyed *k, const char *allow, const char *word) {
  const int before = sn_test_count_logged(&k->daemon, word);
  sn_test_write_mode(k->allow, allow, 0600);
  assert_int_equal(kill(k->daemon.pid, SIGHUP), 0);
  for (double until = sn_clock_now() + 60; sn_clock_now() < until; usleep(10000))
    if (sn_test_count_logged(&k->daemon, word) > before) return;
  fail_msg("the log has no new line with '%s'", word);
}

void sn_test_use_key(void *socket, const SnTestKey *key, const char *server) {
  assert_int_equal(zmq_setsockopt(socket, ZMQ_CURVE_SERVERKEY, server, SN_KEY_TEXT), 0);
  assert_int_equal(zmq_setsockopt(socket, ZMQ_CURVE_PUBLICKEY, key->public, SN_KEY_TEXT), 0);
  assert_int_equal(zmq_setsockopt(socket, ZMQ_CURVE_SECRETKEY, key->secret, SN_KEY_TEXT), 0);
}

void sn_test_connect_key(SnTestClient *c, const SnTestKeyed *k, const SnTestKey *key) {
  const int zero = 0, reconnect = 20;
  *c = (SnTestClient){.context = zmq_ctx_new()};
  c->socket = zmq_socket(c->context, ZMQ_DEALER);
  zmq_setsockopt(c->socket, ZMQ_LINGER, &zero, sizeof zero);
  zmq_setsockopt(c->socket, ZMQ_RECONNECT_IVL, &reconnect, sizeof reconnect);
  if (key) sn_test_use_key(c->socket, key, k->server.public);
  assert_int_equal(zmq_connect(c->socket, k->tcp), 0);
}

int sn_test_count_logged(const SnTestDaemon *d, const char *word) {
  char line[5000];
  int n = 0;
  FILE *f = fopen(d->log, "r");
  while (f && fgets(line, sizeof line, f)) n += strstr(line, word) != NULL;
  if (f) fclose(f);
  return n;
}

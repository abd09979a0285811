#include "tests/support/proxy.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#include "physics/base/clock.h"

enum { PAIRS = 64, PIECE = 4096, HELD = 1 << 20 };

// One way of a connection: bytes that were read and are not written yet, from `at` on.
typedef struct Way {
  int from, to;
  unsigned char *bytes;  // (HELD)
  size_t begin, end;
  double due;  // when the next of them may be written
} Way;

typedef struct Pair {
  Way way[2];
  long left;  // bytes until it is cut, < 0: it is not
} Pair;

SnProxyRules sn_proxy_pass(void) { return (SnProxyRules){.cut = -1, .seed = 1}; }

static double draw(unsigned *seed) { return (double)rand_r(seed) / RAND_MAX; }

static void close_pair(SnProxy *p, Pair *pair) {
  close(pair->way[0].from);
  close(pair->way[1].from);
  for (int i = 0; i < 2; i++) free(pair->way[i].bytes);
  *pair = (Pair){0};
  atomic_fetch_add(&p->ended, 1);
}

static int connect_to(const char *path) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof address) == 0) return fd;
  if (fd >= 0) close(fd);
  return -1;
}

// Where the daemon is not there the client's connection ends, as it would without us.
static void accept_pair(SnProxy *p, Pair *pairs) {
  const int near = accept4(p->listener, NULL, NULL, SOCK_CLOEXEC);
  if (near < 0) return;
  Pair *pair = NULL;
  for (int i = 0; i < PAIRS && !pair; i++)
    if (!pairs[i].way[0].bytes) pair = &pairs[i];
  const int far = pair ? connect_to(p->target) : -1;
  if (far < 0) {
    close(near);
    return;
  }
  fcntl(near, F_SETFL, O_NONBLOCK);
  fcntl(far, F_SETFL, O_NONBLOCK);
  *pair = (Pair){.way = {{near, far, malloc(HELD), 0, 0, 0}, {far, near, malloc(HELD), 0, 0, 0}}, .left = -1};
  pthread_mutex_lock(&p->mutex);
  if (p->rules.cut >= 0 && p->rules.cuts > 0) {
    p->rules.cuts--;
    pair->left = p->rules.cut;
  }
  pthread_mutex_unlock(&p->mutex);
  atomic_fetch_add(&p->connections, 1);
}

static void append(Way *w, const unsigned char *bytes, size_t n) {
  if (w->begin == w->end) w->begin = w->end = 0;
  if (w->end + n > HELD) return;
  memcpy(w->bytes + w->end, bytes, n);
  w->end += n;
}

// Reads a piece and does to it what the rules say. False: the connection has ended.
static bool read_piece(SnProxy *p, Way *w, SnProxyRules *rules) {
  unsigned char piece[PIECE];
  const ssize_t n = read(w->from, piece, sizeof piece);
  if (n <= 0) return n < 0 && (errno == EAGAIN || errno == EINTR);
  atomic_fetch_add(&p->bytes, n);
  if (draw(&rules->seed) < rules->drop) return true;
  if (draw(&rules->seed) < rules->spoil)
    piece[rand_r(&rules->seed) % n] ^= (unsigned char)(1 << (rand_r(&rules->seed) % 8));
  if (w->begin == w->end) w->due = sn_clock_now() + rules->delay;
  append(w, piece, (size_t)n);
  if (draw(&rules->seed) < rules->duplicate) append(w, piece, (size_t)n);
  return true;
}

// Writes what is due. False: the connection has ended, or is to be cut.
static bool write_piece(Pair *pair, Way *w, const SnProxyRules *rules) {
  size_t n = w->end - w->begin;
  if (n == 0 || sn_clock_now() < w->due) return true;
  if (rules->pace > 0) n = 1;
  if (pair->left >= 0 && n > (size_t)pair->left) n = (size_t)pair->left;
  if (n == 0) return false;
  const ssize_t sent = send(w->to, w->bytes + w->begin, n, MSG_NOSIGNAL);
  if (sent < 0) return errno == EAGAIN || errno == EINTR;
  w->begin += (size_t)sent;
  if (pair->left >= 0) pair->left -= sent;
  if (rules->pace > 0) w->due = sn_clock_now() + rules->pace;
  return pair->left != 0;
}

static void serve_pair(SnProxy *p, Pair *pair, SnProxyRules *rules) {
  for (int i = 0; i < 2; i++) {
    Way *w = &pair->way[i];
    // One that holds much is not read: whoever sends waits, as for a slow line.
    const bool reads = w->end - w->begin < HELD / 2 && w->end < HELD - 2 * PIECE;
    if ((reads && !read_piece(p, w, rules)) || !write_piece(pair, w, rules)) {
      close_pair(p, pair);
      return;
    }
  }
}

static void wait_a_little(SnProxy *p, const Pair *pairs) {
  struct pollfd fd[2 * PAIRS + 2] = {{p->listener, POLLIN, 0}, {p->wake[0], POLLIN, 0}};
  nfds_t n = 2;
  bool holds = false;
  for (int i = 0; i < PAIRS; i++) {
    if (!pairs[i].way[0].bytes) continue;
    for (int k = 0; k < 2; k++) {
      const Way *w = &pairs[i].way[k];
      holds = holds || w->begin != w->end;
      fd[n++] = (struct pollfd){w->from, POLLIN, 0};
    }
  }
  poll(fd, n, holds ? 1 : 50);
}

static void *proxy_main(void *argument) {
  SnProxy *p = argument;
  Pair *pairs = calloc(PAIRS, sizeof *pairs);
  while (!atomic_load(&p->stop)) {
    wait_a_little(p, pairs);
    accept_pair(p, pairs);
    pthread_mutex_lock(&p->mutex);
    SnProxyRules rules = p->rules;
    pthread_mutex_unlock(&p->mutex);
    for (int i = 0; i < PAIRS; i++)
      if (pairs[i].way[0].bytes) serve_pair(p, &pairs[i], &rules);
    pthread_mutex_lock(&p->mutex);
    p->rules.seed = rules.seed;
    pthread_mutex_unlock(&p->mutex);
  }
  for (int i = 0; i < PAIRS; i++)
    if (pairs[i].way[0].bytes) close_pair(p, &pairs[i]);
  free(pairs);
  return NULL;
}

void sn_proxy_start(SnProxy *p, const char *folder, const char *endpoint) {
  *p = (SnProxy){.rules = sn_proxy_pass()};
  assert_int_equal(strncmp(endpoint, "ipc://", 6), 0);
  snprintf(p->target, sizeof p->target, "%s", endpoint + 6);
  snprintf(p->path, sizeof p->path, "%s/proxy", folder);
  snprintf(p->endpoint, sizeof p->endpoint, "ipc://%s", p->path);
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  memcpy(address.sun_path, p->path, sizeof address.sun_path);
  p->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  assert_true(p->listener >= 0 && bind(p->listener, (struct sockaddr *)&address, sizeof address) == 0);
  assert_int_equal(listen(p->listener, PAIRS), 0);
  assert_int_equal(pipe(p->wake), 0);
  pthread_mutex_init(&p->mutex, NULL);
  assert_int_equal(pthread_create(&p->thread, NULL, proxy_main, p), 0);
}

void sn_proxy_rule(SnProxy *p, const SnProxyRules *rules) {
  pthread_mutex_lock(&p->mutex);
  p->rules = *rules;
  pthread_mutex_unlock(&p->mutex);
}

void sn_proxy_stop(SnProxy *p) {
  atomic_store(&p->stop, true);
  if (write(p->wake[1], "", 1) != 1) print_message("the proxy is not woken\n");
  pthread_join(p->thread, NULL);
  pthread_mutex_destroy(&p->mutex);
  close(p->listener);
  close(p->wake[0]);
  close(p->wake[1]);
  unlink(p->path);
}

#include "tests/support/raw_peer.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zmq.h>

bool sn_raw_bytes(int fd, const void *bytes, size_t size) {
  for (const char *p = bytes; size > 0;) {
    const ssize_t n = send(fd, p, size, MSG_NOSIGNAL);
    if (n <= 0) return false;
    p += n;
    size -= (size_t)n;
  }
  return true;
}

bool sn_raw_frame(int fd, int flags, const void *bytes, size_t size) {
  unsigned char head[9] = {(unsigned char)flags, (unsigned char)size};
  size_t n = 2;
  if (size > 255) {
    head[0] |= 2;  // a length of eight bytes
    for (int i = 0; i < 8; i++) head[1 + i] = (unsigned char)(size >> (56 - 8 * i));
    n = 9;
  }
  return sn_raw_bytes(fd, head, n) && sn_raw_bytes(fd, bytes, size);
}

int sn_raw_receive(int fd, double seconds, void *bytes, size_t size) {
  struct pollfd item = {fd, POLLIN, 0};
  if (poll(&item, 1, (int)(1000 * seconds)) <= 0) return -1;
  const ssize_t n = recv(fd, bytes, size, 0);
  return n > 0 ? (int)n : 0;
}

bool sn_raw_ended(int fd, double seconds) {
  char bytes[4096];
  const double until = sn_clock_now() + seconds;
  for (double left = seconds; left > 0; left = until - sn_clock_now())
    if (sn_raw_receive(fd, left, bytes, sizeof bytes) == 0) return true;
  return false;
}

// Appends a property: the length of its name, the name, the value's length in four bytes, the value.
static size_t add_property(unsigned char *p, const char *name, const void *value, size_t size) {
  const size_t n = strlen(name);
  p[0] = (unsigned char)n;
  memcpy(p + 1, name, n);
  for (int i = 0; i < 4; i++) p[1 + n + (size_t)i] = (unsigned char)(size >> (24 - 8 * i));
  if (size) memcpy(p + n + 5, value, size);
  return n + 5 + size;
}

static bool shake_hands(int fd, const char *type, const void *name, size_t size, const char *const *more) {
  static const char greeting[64] = {(char)0xff, 0, 0, 0, 0, 0, 0, 0, 0, 0x7f, 3, 0, 'N', 'U', 'L', 'L'};
  unsigned char ready[4096], answer[256];
  if (!sn_raw_bytes(fd, greeting, sizeof greeting)) return false;
  if (recv(fd, answer, sizeof greeting, MSG_WAITALL) != (ssize_t)sizeof greeting) return false;
  memcpy(ready, "\5READY", 6);
  size_t n = 6 + add_property(ready + 6, "Socket-Type", type, strlen(type));
  if (name) n += add_property(ready + n, "Identity", name, size);
  for (; more && *more; more += 2) n += add_property(ready + n, more[0], more[1], strlen(more[1]));
  return sn_raw_frame(fd, SN_RAW_COMMAND, ready, n) && recv(fd, answer, sizeof answer, 0) > 0;
}

int sn_raw_connect(const char *endpoint, const char *type, const void *name, size_t size) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  snprintf(address.sun_path, sizeof address.sun_path, "%s", endpoint + strlen("ipc://"));
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return -1;
  if (connect(fd, (const struct sockaddr *)&address, sizeof address) == 0 && shake_hands(fd, type, name, size, NULL))
    return fd;
  close(fd);
  return -1;
}

int sn_raw_connect_tcp(int port, const char *type, const char *const *properties) {
  struct sockaddr_in address = {
      .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK), .sin_port = htons((uint16_t)port)};
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return -1;
  if (connect(fd, (const struct sockaddr *)&address, sizeof address) == 0 && shake_hands(fd, type, NULL, 0, properties))
    return fd;
  close(fd);
  return -1;
}

static void health_request(Sinew__V1__Request *request, Sinew__V1__HealthRequest *health) {
  sinew__v1__request__init(request);
  sinew__v1__health_request__init(health);
  request->body_case = SINEW__V1__REQUEST__BODY_HEALTH;
  request->health = health;
}

size_t sn_raw_health(uint64_t id, unsigned char *bytes, size_t capacity) {
  Sinew__V1__Request request;
  Sinew__V1__HealthRequest health;
  health_request(&request, &health);
  request.id = id;
  const size_t size = sinew__v1__request__get_packed_size(&request);
  return size <= capacity ? sinew__v1__request__pack(&request, bytes) : 0;
}

bool sn_test_answers(SnTestClient *c, double seconds) {
  Sinew__V1__Request request;
  Sinew__V1__HealthRequest health;
  health_request(&request, &health);
  for (double until = sn_clock_now() + seconds; sn_clock_now() < until;) {
    sn_test_send(c, &request);
    Sinew__V1__Reply *reply;
    bool answered = false;
    while (!answered && (reply = sn_test_receive(c, 0.3))) {
      answered = reply->id == c->id;
      sn_test_done(reply);
    }
    if (answered) return true;
  }
  return false;
}

void sn_test_connect_as(SnTestClient *c, const char *endpoint, const char *name) {
  const int zero = 0, reconnect = 20;
  c->id = 0;
  c->context = zmq_ctx_new();
  c->socket = zmq_socket(c->context, ZMQ_DEALER);
  zmq_setsockopt(c->socket, ZMQ_LINGER, &zero, sizeof zero);
  zmq_setsockopt(c->socket, ZMQ_RECONNECT_IVL, &reconnect, sizeof reconnect);
  zmq_setsockopt(c->socket, ZMQ_ROUTING_ID, name, strlen(name));
  zmq_connect(c->socket, endpoint);
}

int sn_test_daemon_files(const SnTestDaemon *d) {
  char path[64];
  int n = 0;
  snprintf(path, sizeof path, "/proc/%d/fd", (int)d->pid);
  DIR *folder = opendir(path);
  if (!folder) return -1;
  for (const struct dirent *e = readdir(folder); e; e = readdir(folder)) n += e->d_name[0] != '.';
  closedir(folder);
  return n;
}

double sn_test_daemon_megabytes(const SnTestDaemon *d) {
  char path[64];
  long long total, resident = 0;
  snprintf(path, sizeof path, "/proc/%d/statm", (int)d->pid);
  FILE *f = fopen(path, "r");
  if (!f) return -1;
  if (fscanf(f, "%lld %lld", &total, &resident) != 2) resident = 0;
  fclose(f);
  return 1e-6 * (double)resident * (double)sysconf(_SC_PAGESIZE);
}

bool sn_test_daemon_runs(const SnTestDaemon *d) {
  siginfo_t info = {0};
  return waitid(P_PID, (id_t)d->pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == 0;
}

// Whether a thread sleeps, by the line that the system has of it: NUMBER (NAME) STATE ...
static bool sleeps(const char *folder, const char *thread) {
  char path[400], line[400];
  snprintf(path, sizeof path, "%s/%s/stat", folder, thread);
  FILE *f = fopen(path, "r");
  const char *name_ends = f && fgets(line, sizeof line, f) ? strrchr(line, ')') : NULL;
  if (f) fclose(f);
  return !name_ends || name_ends[2] == 'S';
}

static bool all_sleep(const SnTestDaemon *d) {
  char path[64];
  bool all = true;
  snprintf(path, sizeof path, "/proc/%d/task", (int)d->pid);
  DIR *folder = opendir(path);
  if (!folder) return true;
  for (const struct dirent *e = readdir(folder); e && all; e = readdir(folder))
    all = e->d_name[0] == '.' || sleeps(path, e->d_name);
  closedir(folder);
  return all;
}

// One thread may wake another one while they are looked at in turn: they are looked at some times.
void sn_test_daemon_rest(const SnTestDaemon *d) {
  const double until = sn_clock_now() + 10;
  for (int asleep = 0; asleep < 5 && sn_clock_now() < until;) {
    asleep = all_sleep(d) ? asleep + 1 : 0;
    usleep(1000);
  }
}

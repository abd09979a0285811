// Clients that do harm, within bounds. What they get is no matter, as long as others do not notice; where an answer is
// due it must come.
//
// Left out: what libzmq is known to keep for good, floods of telemetry and names that are taken (daemon/RUNNING.md).
// They are attacks of their own, and would hide what sinewd itself keeps.
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zmq.h>

#include "tests/daemon/soak/soak.h"
#include "tests/support/daemon_group.h"
#include "tests/support/raw_peer.h"

enum { FLOOD = 200, TOO_LONG = 200001, BYTES = 4096 };

static int connect_raw(Soak *s, const char *type) {
  if (soak_below(s, 2)) return sn_raw_connect(s->ipc, type, NULL, 0);
  return sn_raw_connect_tcp(atoi(strrchr(s->tcp, ':') + 1), type, NULL);
}

// ---- hostile ----

// One message that is no request, or a wrong one. It is refused in words.
static void expect_refusal(Soak *s, const void *bytes, size_t size) {
  SnTestClient c;
  soak_connect(s, &c, s->ipc);
  sn_test_send_bytes(&c, bytes, size);
  Sinew__V1__Reply *reply = sn_test_receive(&c, 60);
  if (!reply)
    soak_wrong(s, &s->counts->lost, "a wrong message", "no answer");
  else if (reply->body_case == SINEW__V1__REPLY__BODY_ERROR && *reply->error->text)
    atomic_fetch_add(&s->counts->repelled, 1);
  sn_test_done(reply);
  sn_test_disconnect(&c);
}

static void random_bytes(Soak *s) {
  unsigned char bytes[BYTES];
  const size_t n = 1 + soak_below(s, BYTES - 1);
  for (size_t i = 0; i < n; i++) bytes[i] = (unsigned char)soak_below(s, 256);
  expect_refusal(s, bytes, n);
}

// A request for a plan with numbers that are none, of no session, with bits turned over.
static void wrong_plan(Soak *s) {
  unsigned char bytes[BYTES];
  double qpos[2] = {soak_below(s, 2) ? NAN : 0, 1e300};
  Sinew__V1__State state = SINEW__V1__STATE__INIT;
  Sinew__V1__PlanRequest in = SINEW__V1__PLAN_REQUEST__INIT;
  state.qpos = state.qvel = qpos;
  state.n_qpos = state.n_qvel = 2;
  in.session = 1 + soak_below(s, 1000000000);
  in.state = &state;
  in.deadline = soak_below(s, 2) ? -1 : 0.01;
  const size_t n = sinew__v1__request__pack(SN_TEST_MESSAGE(plan, PLAN, &in), bytes);
  if (soak_below(s, 2)) bytes[soak_below(s, (unsigned)n)] ^= (unsigned char)(1 << soak_below(s, 8));
  expect_refusal(s, bytes, n);
}

// More than anybody needs at once, and each one answered.
static void flood(Soak *s) {
  SnTestClient c;
  Sinew__V1__HealthRequest in = SINEW__V1__HEALTH_REQUEST__INIT;
  int answers = 0;
  soak_connect(s, &c, s->tcp);
  for (int i = 0; i < FLOOD; i++) sn_test_send(&c, SN_TEST_MESSAGE(health, HEALTH, &in));
  while (answers < FLOOD) {
    Sinew__V1__Reply *reply = sn_test_receive(&c, 60);
    if (!reply) break;
    sn_test_done(reply);
    answers++;
  }
  if (answers < FLOOD) soak_wrong(s, &s->counts->lost, "a flood", "not each request was answered");
  sn_test_disconnect(&c);
}

static void several_frames(Soak *s) {
  SnTestClient c;
  soak_connect(s, &c, s->ipc);
  zmq_send(c.socket, "a", 1, ZMQ_SNDMORE);
  zmq_send(c.socket, "b", 1, 0);
  sn_test_done(sn_test_receive(&c, 60));
  sn_test_disconnect(&c);
}

// Bytes that no socket of libzmq would send: frames too long, without an end, of commands, cut off; a handshake that
// is none.
static void wrong_frames(Soak *s) {
  static unsigned char bytes[TOO_LONG];
  const unsigned way = soak_below(s, 6);
  const int fd = connect_raw(s, "DEALER");
  if (fd < 0) return;
  if (way == 0) sn_raw_frame(fd, 0, bytes, sizeof bytes);
  if (way == 1)
    for (int i = 0; i < 100 && sn_raw_frame(fd, SN_RAW_MORE, bytes, 1); i++) continue;
  if (way == 2) sn_raw_frame(fd, SN_RAW_COMMAND, "\4PING\0\0xx", 9);
  if (way == 3) sn_raw_bytes(fd, "\2\0\0\0\0\0\0\1\0half", 13);
  if (way == 4) {
    unsigned char noise[256];
    for (size_t i = 0; i < sizeof noise; i++) noise[i] = (unsigned char)soak_below(s, 256);
    sn_raw_bytes(fd, noise, sizeof noise);
  }
  if (way == 5) sn_raw_frame(fd, 0, bytes, 0);
  soak_sleep(0.05 * soak_part(s));
  close(fd);
}

void soak_hostile(Soak *s) {
  while (soak_goes_on(s, 0.7)) {
    static void (*const ways[])(Soak *) = {random_bytes, wrong_plan,   wrong_plan, several_frames,
                                           wrong_frames, wrong_frames, flood};
    ways[soak_below(s, 7)](s);
    atomic_fetch_add(&s->counts->attacks, 1);
  }
}

// ---- slow ----

// Sends requests and reads no answer.
static void read_nothing(Soak *s) {
  unsigned char bytes[64];
  const int fd = connect_raw(s, "DEALER");
  if (fd < 0) return;
  for (unsigned i = 0; i < 300; i++)
    if (!sn_raw_frame(fd, 0, bytes, sn_raw_health(i + 1, bytes, sizeof bytes))) break;
  soak_sleep(soak_part(s));
  close(fd);
}

// A request byte by byte, whose answer comes all the same.
static void byte_by_byte(Soak *s) {
  unsigned char bytes[64], answer[256];
  const int fd = connect_raw(s, "DEALER");
  if (fd < 0) return;
  const size_t n = sn_raw_health(7, bytes, sizeof bytes);
  // Who has said something is not ended.
  if (!sn_raw_frame(fd, 0, bytes, n) || sn_raw_receive(fd, 60, answer, sizeof answer) <= 0) {
    atomic_fetch_add(&s->counts->unheard, 1);
    close(fd);
    return;
  }
  const unsigned char head[2] = {0, (unsigned char)n};
  bool sent = sn_raw_bytes(fd, head, 1) && sn_raw_bytes(fd, head + 1, 1);
  for (size_t i = 0; i < n && sent; i++) {
    soak_sleep(0.05 * soak_part(s));
    sent = sn_raw_bytes(fd, bytes + i, 1);
  }
  if (!sent || sn_raw_receive(fd, 60, answer, sizeof answer) <= 0)
    soak_wrong(s, &s->counts->lost, "a request byte by byte", "no answer");
  close(fd);
}

// Subscribes to all records and reads none.
static void read_no_records(Soak *s) {
  const int fd = sn_raw_connect(s->records, "SUB", NULL, 0);
  if (fd < 0) return;
  sn_raw_frame(fd, 0, "\1", 1);
  soak_sleep(soak_part(s));
  close(fd);
}

static void say_nothing(Soak *s) {
  const int fd = connect_raw(s, "DEALER");
  soak_sleep(soak_part(s));
  if (fd >= 0) close(fd);
}

void soak_slow(Soak *s) {
  while (soak_goes_on(s, 1)) {
    static void (*const ways[])(Soak *) = {read_nothing, byte_by_byte, read_no_records, say_nothing};
    ways[soak_below(s, 4)](s);
    atomic_fetch_add(&s->counts->slow, 1);
  }
}

// ---- dying ----

// A client that is killed wherever it is; the role counts it, not what it did.
void soak_dying(Soak *s) {
  while (soak_goes_on(s, 2)) {
    SoakCounts own = {0};
    const pid_t child = fork();
    if (child == 0) {
      Soak other = *s;
      other.counts = &own;
      other.number = 9;
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      soak_visit(&other, true);
      _exit(0);
    }
    soak_sleep(0.02 + 0.6 * soak_part(s));
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    atomic_fetch_add(&s->counts->killed, 1);
  }
}

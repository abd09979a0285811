// Every call of the client library for memory and of libzmq fails, one at a time: the call that needed it says so, what
// was there stays usable, and the whole conversation succeeds afterwards. AddressSanitizer sees that nothing is leaked.
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
// cmocka needs what stands above.
#include <cmocka.h>

#include "tests/clients/libsinew_client/fake_daemon.h"

// Of the test's thread alone: the fake daemon has calls of its own.
static _Thread_local long left, calls;

static bool fails(int error) {
  calls++;
  if (left == 0 || --left > 0) return false;
  errno = error;
  return true;
}

#define WRAP(type, name, failure, error, parameters, arguments) \
  type __real_##name parameters;                                \
  type __wrap_##name parameters;                                \
  type __wrap_##name parameters { return fails(error) ? (failure) : __real_##name arguments; }
WRAP(void *, malloc, NULL, ENOMEM, (size_t size), (size))
WRAP(void *, calloc, NULL, ENOMEM, (size_t n, size_t size), (n, size))
WRAP(void *, realloc, NULL, ENOMEM, (void *p, size_t size), (p, size))
WRAP(char *, strdup, NULL, ENOMEM, (const char *text), (text))
WRAP(void *, zmq_ctx_new, NULL, EMFILE, (void), ())
WRAP(void *, zmq_socket, NULL, EMFILE, (void *context, int type), (context, type))
WRAP(int, zmq_connect, -1, EMFILE, (void *socket, const char *endpoint), (socket, endpoint))
WRAP(int, zmq_socket_monitor, -1, EMFILE, (void *socket, const char *endpoint, int events), (socket, endpoint, events))
WRAP(int, zmq_send, -1, EAGAIN, (void *socket, const void *bytes, size_t size, int flags), (socket, bytes, size, flags))
WRAP(Sinew__V1__Reply *, sinew__v1__reply__unpack, NULL, ENOMEM,
     (ProtobufCAllocator * allocator, size_t size, const uint8_t *bytes), (allocator, size, bytes))

// Notes the first status that is not SINEW_OK.
static void note(SinewStatus *first, SinewStatus status) {
  if (*first == SINEW_OK) *first = status;
}

// Every call of the library once. Goes on after an error wherever there is something to go on with.
static SinewStatus converse(void) {
  static const char *const settings[] = {"candidates=12", "planner=adam", NULL};
  SinewStatus first = SINEW_OK;
  SinewSessionDef def = sinew_default_session();
  def.task = "fake";
  def.settings = settings;
  SinewClient *client = sinew_client_connect(fake.endpoint, 2, 0, &err);
  if (!client) return err.status;
  SinewSession *session = sinew_session_open(client, &def, &err);
  if (!session) {
    first = err.status;
    sinew_client_disconnect(client);
    return first;
  }
  const SinewState now = state_at(1), later = state_at(2);
  double ctrl[2 * NU] = {0}, cost;
  note(&first, sinew_session_plan(session, &now, 0.1, &err));
  note(&first, sinew_session_send(session, &later, 0.1, &err));
  note(&first, sinew_session_receive(session, first == SINEW_OK ? 2 : 0.05, &err));
  note(&first, sinew_session_evaluate(session, &now, ctrl, 2, &cost, NULL, &err));
  note(&first, sinew_session_set(session, "planner=adam", &err));
  note(&first, sinew_session_set_target(session, "reach", ctrl, NU, &err));
  note(&first, sinew_session_stream_start(session, NULL, &err));
  note(&first, sinew_session_stream_send(session, &later, &err));
  note(&first, sinew_session_stream_receive(session, first == SINEW_OK ? 2 : 0.05, &err));
  note(&first, sinew_session_stream_stop(session, &err));
  // What was planned before is in force, whatever failed since.
  const SinewSessionPlan *plan = sinew_session_current_plan(session);
  if (plan) assert_int_equal(sinew_session_control(session, plan->state_time, ctrl, NULL), SINEW_OK);
  note(&first, sinew_session_close(session, &err));
  sinew_client_disconnect(client);
  return first;
}

static void test_each_call(void **state) {
  (void)state;
  left = calls = 0;
  fake.better = 1;
  assert_int_equal(converse(), SINEW_OK);
  const long n = calls;
  long refused = 0;
  assert_true(n > 20);
  for (long at = 1; at <= n; at++) {
    left = at;
    const SinewStatus status = converse();
    const bool tried = left == 0;
    left = 0;
    assert_true(tried);
    if (status != SINEW_OK && status != SINEW_ERR_MEMORY && status != SINEW_ERR_TIMEOUT &&
        status != SINEW_ERR_PROTOCOL && status != SINEW_ERR_ARGUMENT)
      fail_msg("call %ld of %ld fails, and the library says %d: %s", at, n, (int)status, err.text);
    refused += status != SINEW_OK;
  }
  print_message("%ld calls failed; the library said so of %ld, %ld it could do without\n", n, refused, n - refused);
  assert_int_equal(converse(), SINEW_OK);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test_setup_teardown(test_each_call, set_up, tear_down)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}

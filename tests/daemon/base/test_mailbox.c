// The mailbox and the queue between threads. ThreadSanitizer runs this too.
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "daemon/base/mailbox.h"
#include "daemon/base/queue.h"
#include "physics/base/clock.h"

enum { ITEMS = 20000, WRITERS = 3 };

static void test_newest_wins(void **state) {
  (void)state;
  SnMailbox box = {NULL};
  int a, b;
  assert_null(sn_mailbox_pop(&box));
  assert_null(sn_mailbox_push(&box, &a));
  assert_ptr_equal(sn_mailbox_push(&box, &b), &a);
  assert_ptr_equal(sn_mailbox_pop(&box), &b);
  assert_null(sn_mailbox_pop(&box));
}

typedef struct Race {
  SnMailbox box;
  int replaced, taken, last;
} Race;

// Numbered items; what the mailbox gives back was not taken by the reader, and the other way round.
static void *write_states(void *argument) {
  Race *race = argument;
  for (int i = 1; i <= ITEMS; i++) {
    int *item = malloc(sizeof *item);
    *item = i;
    int *old = sn_mailbox_push(&race->box, item);
    race->replaced += old != NULL;
    free(old);
  }
  return NULL;
}

static void test_each_state_is_taken_or_replaced(void **state) {
  (void)state;
  Race race = {.replaced = 0};
  pthread_t writer;
  pthread_create(&writer, NULL, write_states, &race);
  while (race.last < ITEMS) {
    int *item = sn_mailbox_pop(&race.box);
    if (!item) continue;
    assert_true(*item > race.last);
    race.last = *item;
    race.taken++;
    free(item);
  }
  pthread_join(writer, NULL);
  assert_int_equal(race.taken + race.replaced, ITEMS);
}

static void test_queue_is_bounded(void **state) {
  (void)state;
  SnQueue queue;
  int items[5];
  assert_true(sn_queue_init(&queue, 4));
  for (int round = 0; round < 3; round++) {
    for (int i = 0; i < 4; i++) assert_true(sn_queue_push(&queue, &items[i]));
    assert_false(sn_queue_push(&queue, &items[4]));
    assert_int_equal(sn_queue_count(&queue), 4);
    for (int i = 0; i < 4; i++) assert_ptr_equal(sn_queue_pop(&queue, 0), &items[i]);
    assert_null(sn_queue_pop(&queue, 0));
    assert_true(sn_queue_push(&queue, &items[0]));
    assert_ptr_equal(sn_queue_pop(&queue, 0), &items[0]);
  }
  sn_queue_close(&queue);
  assert_false(sn_queue_push(&queue, &items[0]));
  assert_null(sn_queue_pop(&queue, sn_clock_now() + 60));
  sn_queue_free(&queue);
}

static void test_queue_waits_until_woken_or_late(void **state) {
  (void)state;
  SnQueue queue;
  assert_true(sn_queue_init(&queue, 4));
  double began = sn_clock_now();
  assert_null(sn_queue_pop(&queue, began + 0.05));
  assert_true(sn_clock_now() - began >= 0.05);
  sn_queue_wake(&queue);
  assert_null(sn_queue_pop(&queue, began + 20));
  assert_true(sn_clock_now() - began < 10);
  sn_queue_free(&queue);
}

static void *wake_soon(void *argument) {
  SnQueue *queue = argument;
  const double until = sn_clock_now() + 20;
  for (bool waits = false; !waits && sn_clock_now() < until; usleep(1000)) {
    pthread_mutex_lock(&queue->mutex);
    waits = queue->waiting > 0;
    pthread_mutex_unlock(&queue->mutex);
  }
  usleep(50000);
  sn_queue_wake(queue);
  return NULL;
}

// How late a thread wakes up counts from when it was told, or from the time that it waited for.
static void test_how_late_a_thread_wakes_up(void **state) {
  (void)state;
  SnQueue queue;
  pthread_t waker;
  double late, began = sn_clock_now();
  assert_true(sn_queue_init(&queue, 4));
  assert_null(sn_queue_pop_late(&queue, 0, &late));
  assert_true(isnan(late));
  assert_null(sn_queue_pop_late(&queue, began + 0.05, &late));
  assert_true(late >= 0 && late <= sn_clock_now() - began - 0.05);
  pthread_create(&waker, NULL, wake_soon, &queue);
  began = sn_clock_now();
  assert_null(sn_queue_pop_late(&queue, began + 60, &late));
  assert_true(late >= 0 && late <= sn_clock_now() - began - 0.05);
  pthread_join(waker, NULL);
  sn_queue_wake(&queue);  // before anybody waits
  assert_null(sn_queue_pop_late(&queue, began + 60, &late));
  assert_true(isnan(late));
  assert_null(sn_queue_pop_late(&queue, sn_clock_now() + 0.01, &late));
  assert_true(late >= 0 && late < 10);
  sn_queue_free(&queue);
}

static void *put_items(void *argument) {
  static char item;
  SnQueue *queue = argument;
  for (int i = 0; i < ITEMS; i++)
    while (!sn_queue_push(queue, &item)) sched_yield();
  return NULL;
}

static void test_queue_loses_nothing(void **state) {
  (void)state;
  SnQueue queue;
  pthread_t writer[WRITERS];
  int n = 0;
  assert_true(sn_queue_init(&queue, 7));
  for (int i = 0; i < WRITERS; i++) pthread_create(&writer[i], NULL, put_items, &queue);
  while (n < WRITERS * ITEMS) n += sn_queue_pop(&queue, sn_clock_now() + 10) != NULL;
  for (int i = 0; i < WRITERS; i++) pthread_join(writer[i], NULL);
  assert_int_equal(sn_queue_count(&queue), 0);
  sn_queue_free(&queue);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_newest_wins),
      cmocka_unit_test(test_each_state_is_taken_or_replaced),
      cmocka_unit_test(test_queue_is_bounded),
      cmocka_unit_test(test_queue_waits_until_woken_or_late),
      cmocka_unit_test(test_how_late_a_thread_wakes_up),
      cmocka_unit_test(test_queue_loses_nothing),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

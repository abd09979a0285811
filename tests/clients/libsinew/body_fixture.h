// A small body and a task for tests of libsinew: two links, a ball joint, muscles, a mocap body, contacts.
#ifndef SINEW_TESTS_CLIENTS_LIBSINEW_BODY_FIXTURE_H_
#define SINEW_TESTS_CLIENTS_LIBSINEW_BODY_FIXTURE_H_

#include "clients/include/sinew.h"

// Describes two links, one on a ball joint, over a floor that the lower one reaches, a motor and two muscles.
extern const char *const body_xml;
// Describes a task for it, in YAML.
extern const char *const body_task;

// Compiles MJCF, from text or a file, with MuJoCo. Fails the test where it cannot.
SinewModel *test_model_of_text(const char *xml);
SinewModel *test_model_of_file(const char *path);
// Reads a task from text. Fails the test where it cannot.
SinewTask *test_task(const char *text);
// Opens the CPU on so many threads.
SinewBackend *test_cpu(int threads);

// Fails the test unless a call failed with that status and a text that has that word.
void test_refused(SinewStatus status, const SinewError *err, SinewStatus wanted, const char *word);
// Fails the test, with the text, unless a call ended well.
void test_accepted(SinewStatus status, const SinewError *err);

// Returns the next of a sequence of numbers in (-1, 1).
double test_random(uint64_t *state);

#endif

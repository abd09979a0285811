// A record of a run, made up, for tests of records and reports.
#ifndef SINEW_TESTS_CLIENTS_BODY_RECORD_FIXTURE_H_
#define SINEW_TESTS_CLIENTS_BODY_RECORD_FIXTURE_H_

#include "clients/body/body.h"
#include "tests/support/oracle.h"

enum { SAMPLES = 11 };  // every 0.1 s from 0 on

// Makes a run of one second with two controls. The measure "hand" must be at most 0.02 during the last `during`
// seconds. It is `early` up to 0.65 s and `late` afterwards.
PlantRecord record_of(double early, double late, double during);

#endif

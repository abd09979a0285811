// Tells what a check came to.
#ifndef SINEW_CLIENTS_CHECK_CHECK_PRINT_PRIVATE_H_
#define SINEW_CLIENTS_CHECK_CHECK_PRINT_PRIVATE_H_

#include <cjson/cJSON.h>

#include "clients/check/check_steps_private.h"

// Lists the verdicts, which are exit statuses too. Undecided: nothing differs, but too little could be compared.
typedef enum CheckVerdict { CHECK_AGREES, CHECK_DIFFERS, CHECK_UNSUPPORTED, CHECK_ERROR, CHECK_UNDECIDED } CheckVerdict;

// Holds what the check of a model came to.
typedef struct CheckReport {
  const char *model;
  CheckVerdict verdict;
  const char *solver;  // the one that the model asks MuJoCo for; NULL: not loaded
  char *unsupported;   // lines, all of them; NULL: none
  char sensors[300];   // names of sensors that are not computed
  SnError err;
  CheckStepsReport steps;
  bool with_gradient, with_integration;
  CheckGradientReport gradient;
  CheckIntegrationReport integration;
} CheckReport;

// Names a verdict.
const char *check_verdict_name(CheckVerdict verdict);
// Writes what a user may do next; returns false where that is nothing.
bool check_next_line(const CheckReport *r, char *text, size_t size);
// Returns the report as JSON, which the caller deletes.
cJSON *check_json(const CheckReport *r);
// Prints the report; a brief one of a model that agrees leaves out the table of fields.
void check_print(const CheckReport *r, bool brief);

#endif

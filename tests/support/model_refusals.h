// Expects that models are refused, by their text or by a number of their file.
#ifndef SINEW_TESTS_SUPPORT_MODEL_REFUSALS_H_
#define SINEW_TESTS_SUPPORT_MODEL_REFUSALS_H_

#include "physics/import/import_mjcf.h"
#include "tests/support/oracle.h"

// Fails unless the import of a model refuses it as not supported, in these words.
static inline void sn_expect_refused(const char *xml, const char *words) {
  SnError err = {0};
  mjModel *mj = sn_oracle_read_string(xml, &err);
  if (!mj) fail_msg("%s", err.text);
  assert_null(sn_import_mjmodel(mj, &err));
  assert_int_equal(err.code, SN_ERR_UNSUPPORTED);
  if (!strstr(err.text, words)) fail_msg("no \"%s\" in: %s", words, err.text);
  mj_deleteModel(mj);
}

// Gives a number of a model a value that the check must refuse, in these words.
typedef struct SnBadNumber {
  int *at, value;
  const char *words;
} SnBadNumber;

// Fails unless the check of a model refuses each of n cases alone. The model stays as it was.
static inline void sn_expect_bad_numbers(const SnModel *m, const SnBadNumber *cases, size_t n) {
  SnError err;
  for (size_t i = 0; i < n; ++i) {
    const int kept = *cases[i].at;
    *cases[i].at = cases[i].value;
    assert_int_equal(sn_model_check(m, &err), SN_ERR_FORMAT);
    if (!strstr(err.text, cases[i].words)) fail_msg("no \"%s\" in: %s", cases[i].words, err.text);
    *cases[i].at = kept;
  }
}

#endif

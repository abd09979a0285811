// How many files may be open, and how many of them are for connections.
#ifndef SINEW_DAEMON_WIRE_FILES_PRIVATE_H_
#define SINEW_DAEMON_WIRE_FILES_PRIVATE_H_

#include "daemon/config/config.h"
#include "daemon/base/log.h"

// Raises the limit of files as far as is useful, lowers config->connections to what fits, with a line of the log, and
// from then on refuses connections that would take the files that sinewd needs for itself. An error where not even a
// few connections fit.
SnCode sn_files_prepare(SnConfig *config, const SnLog *log, SnError *err);

#endif

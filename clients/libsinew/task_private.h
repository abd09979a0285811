// A task as libsinew holds it.
#ifndef SINEW_CLIENTS_LIBSINEW_TASK_PRIVATE_H_
#define SINEW_CLIENTS_LIBSINEW_TASK_PRIVATE_H_

#include "clients/libsinew/api_private.h"
#include "planner/task/task.h"

struct SinewTask {
  SnTask *task;
  SinewMeasure *measure;  // (task->nmeasure)
  SinewTaskPlant plant;
};

#endif

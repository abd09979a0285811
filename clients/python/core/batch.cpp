// Many rollouts at once, and the way back through them.
#include <utility>

#include "clients/python/core/core_private.h"

namespace sinew_python {

namespace {

struct Batch {
  Batch(const Model &model, const Backend &on, const Task *task, int most_rollouts, int most_steps, bool gradients,
        double max_velocity, const Cfd *cfd);
  Model given;                // stays alive
  Backend backend;            // stays alive
  std::optional<Task> task;   // stays alive
  std::vector<Model> models;  // of the latest rollouts, which stay alive
  std::shared_ptr<SinewBatch> handle;
  std::atomic_flag busy = ATOMIC_FLAG_INIT;
  int count = 0, steps = 0;  // of the latest rollouts
};

Batch::Batch(const Model &model, const Backend &on, const Task *of, int most_rollouts, int most_steps, bool gradients,
             double max_velocity, const Cfd *cfd)
    : given(model), backend(on) {
  if (of) task = *of;
  SinewBatchDef def = sinew_default_batch();
  def.model = given.handle.get();
  def.task = task ? task->handle.get() : nullptr;
  def.backend = backend.handle.get();
  def.capacity = most_rollouts;
  def.steps = most_steps;
  def.gradients = gradients;
  def.max_velocity = max_velocity;
  def.cfd = cfd ? &cfd->settings : nullptr;
  def.interrupt = interrupt;
  SinewError err;
  SinewBatch *made;
  Use use(*backend.busy, "backend");
  {
    nb::gil_scoped_release unlocked;
    made = sinew_batch_create(&def, &err);
  }
  if (!made) raise(err.status, err.text);
  handle = std::shared_ptr<SinewBatch>(made, sinew_batch_free);
}

using In = std::optional<ConstNumbers>;
using Out = std::optional<Numbers>;
using IntOut = std::optional<Integers>;

void rollout(Batch &batch, int count, int steps, bool one_state, bool one_ctrl, const In &time, const In &qpos,
             const In &qvel, const In &act, const In &mocap, const In &qacc_warmstart, const In &ctrl,
             const Out &out_time, const Out &out_qpos, const Out &out_qvel, const Out &out_act,
             const Out &out_sensordata, const Out &out_qacc_warmstart, const Out &cost, const Out &term,
             const IntOut &status, const IntOut &good_states, const IntOut &warnings, const In &history,
             const Out &out_history, const std::vector<Model> &models) {
  Use use(batch.busy, "batch");
  Use use_backend(*batch.backend.busy, "backend");
  const SinewSizes *s = sinew_model_sizes(sinew_batch_model(batch.handle.get()));
  const size_t n = count > 0 ? count : 0, t = steps > 0 ? steps : 0, states = one_state ? 1 : n, rows = n * (t + 1);
  const auto size = [](size_t k, int m) { return k * static_cast<size_t>(m); };
  SinewRollouts r = sinew_default_rollouts();
  r.count = count;
  r.steps = steps;
  r.one_state = one_state;
  r.one_ctrl = one_ctrl;
  r.time = data_of(time, "time", states);
  r.qpos = data_of(qpos, "qpos", size(states, s->nq));
  r.qvel = data_of(qvel, "qvel", size(states, s->nv));
  r.act = data_of(act, "act", size(states, s->na));
  r.mocap = data_of(mocap, "mocap", size(states, 7 * s->nmocap));
  r.qacc_warmstart = data_of(qacc_warmstart, "qacc_warmstart", size(states, s->nv));
  r.history = data_of(history, "history", size(states, s->nhistory));
  r.ctrl = data_of(ctrl, "ctrl", size((one_ctrl ? 1 : n) * t, s->nu));
  r.out_time = data_of(out_time, "out_time", rows);
  r.out_qpos = data_of(out_qpos, "out_qpos", size(rows, s->nq));
  r.out_qvel = data_of(out_qvel, "out_qvel", size(rows, s->nv));
  r.out_act = data_of(out_act, "out_act", size(rows, s->na));
  r.out_sensordata = data_of(out_sensordata, "out_sensordata", size(rows, s->nsensordata));
  r.out_history = data_of(out_history, "out_history", size(rows, s->nhistory));
  r.out_qacc_warmstart = data_of(out_qacc_warmstart, "out_qacc_warmstart", size(n, s->nv));
  r.cost = data_of(cost, "cost", n);
  r.term = data_of(term, "term", size(n, sinew_batch_terms(batch.handle.get())));
  r.status = data_of(status, "status", n);
  r.good_states = data_of(good_states, "good_states", n);
  r.warnings = reinterpret_cast<unsigned *>(data_of(warnings, "warnings", n));
  std::optional<std::vector<const SinewModel *>> handles;
  for (const Model &model : models) (handles ? *handles : handles.emplace()).push_back(model.handle.get());
  r.models = data_of(handles, "models", n);
  batch.count = batch.steps = 0;
  const std::vector<Model> before = std::exchange(batch.models, models);  // stay alive until the call is over
  SinewError err;
  nb::gil_scoped_release unlocked;
  check(sinew_batch_rollout(batch.handle.get(), &r, &err), err);
  batch.count = count;
  batch.steps = steps;
}

void vjp(Batch &batch, bool array_coordinates, const In &qpos, const In &qvel, const In &act, const In &sensordata,
         const In &ctrl, const In &cost, const Out &out_ctrl, const Out &out_qpos, const Out &out_qvel,
         const Out &out_act, const IntOut &status, const ModelTangents *parameters, const Out &parameter,
         const In &history, const Out &out_history) {
  Use use(batch.busy, "batch");
  Use use_backend(*batch.backend.busy, "backend");
  const SinewSizes *s = sinew_model_sizes(sinew_batch_model(batch.handle.get()));
  const size_t n = batch.count, t = batch.steps, rows = n * (t + 1);
  const int nq = array_coordinates ? s->nq : s->nv;
  const auto size = [](size_t k, int m) { return k * static_cast<size_t>(m); };
  SinewTrajectoryBars bars = sinew_default_bars();
  bars.coordinates = array_coordinates ? SINEW_ARRAY : SINEW_TANGENT;
  bars.qpos = data_of(qpos, "qpos", size(rows, nq));
  bars.qvel = data_of(qvel, "qvel", size(rows, s->nv));
  bars.act = data_of(act, "act", size(rows, s->na));
  bars.sensordata = data_of(sensordata, "sensordata", size(rows, s->nsensordata));
  bars.ctrl = data_of(ctrl, "ctrl", size(n * t, s->nu));
  bars.cost = data_of(cost, "cost", n);
  bars.history = data_of(history, "history", size(rows, s->nhistory));
  SinewGradients out = sinew_default_gradients();
  out.ctrl = data_of(out_ctrl, "ctrl", size(n * t, s->nu));
  out.qpos = data_of(out_qpos, "qpos", size(n, nq));
  out.qvel = data_of(out_qvel, "qvel", size(n, s->nv));
  out.act = data_of(out_act, "act", size(n, s->na));
  out.history = data_of(out_history, "history", size(n, s->nhistory));
  out.status = data_of(status, "status", n);
  out.parameters = parameters ? parameters->handle.get() : nullptr;
  out.parameter = data_of(parameter, "parameter", size(n, sinew_parameters_count(out.parameters)));
  SinewError err;
  nb::gil_scoped_release unlocked;
  check(sinew_batch_vjp(batch.handle.get(), &bars, &out, &err), err);
}

void linearize(Batch &batch, const Numbers &a, const Numbers &b, const Out &c, const Out &d, const Integers &status) {
  Use use(batch.busy, "batch");
  Use use_backend(*batch.backend.busy, "backend");
  const SinewSizes *s = sinew_model_sizes(sinew_batch_model(batch.handle.get()));
  const size_t n = batch.count, steps = n * batch.steps;
  const auto size = [=](int rows, int cols) { return steps * rows * cols; };
  SinewLinearization out = sinew_default_linearization();
  out.A = data_of(Out(a), "A", size(s->nstate, s->nstate));
  out.B = data_of(Out(b), "B", size(s->nstate, s->nu));
  out.C = data_of(c, "C", size(s->nsensordata, s->nstate));
  out.D = data_of(d, "D", size(s->nsensordata, s->nu));
  out.status = data_of(IntOut(status), "status", n);
  SinewError err;
  nb::gil_scoped_release unlocked;
  check(sinew_batch_linearize(batch.handle.get(), &out, &err), err);
}

void sensitivity(Batch &batch, const ModelTangents *parameters, int columns, const In &initial, const In &sensors,
                 const Out &state, const Out &sensordata, const Integers &status) {
  Use use(batch.busy, "batch");
  Use use_backend(*batch.backend.busy, "backend");
  const SinewSizes *s = sinew_model_sizes(sinew_batch_model(batch.handle.get()));
  const size_t n = batch.count, rows = n * (batch.steps + 1), cols = static_cast<size_t>(columns);
  SinewSensitivity out = sinew_default_sensitivity();
  out.parameters = parameters ? parameters->handle.get() : nullptr;
  out.columns = columns;
  out.initial = data_of(initial, "initial", n * s->nstate * cols);
  out.sensors = data_of(sensors, "sensors", s->nsensordata);
  out.state = data_of(state, "state", rows * s->nstate * cols);
  out.sensordata = data_of(sensordata, "sensordata", rows * s->nsensordata * cols);
  out.status = data_of(IntOut(status), "status", n);
  SinewError err;
  nb::gil_scoped_release unlocked;
  check(sinew_batch_sensitivity(batch.handle.get(), &out, &err), err);
}

}  // namespace

void bind_batch(nb::module_ &m) {
  nb::class_<Batch>(m, "Batch", "Many rollouts of a model.")
      .def(nb::init<const Model &, const Backend &, const Task *, int, int, bool, double, const Cfd *>(),
           nb::arg("model"), nb::arg("backend"), nb::arg("task").none(), nb::arg("capacity"), nb::arg("steps"),
           nb::arg("gradients"), nb::arg("max_velocity"), nb::arg("cfd").none())
      .def_prop_ro("memory", [](const Batch &x) { return sinew_batch_memory(x.handle.get()); })
      .def_prop_ro("terms", [](const Batch &x) { return sinew_batch_terms(x.handle.get()); })
      .def("rollout", &rollout, nb::arg("count"), nb::arg("steps"), nb::arg("one_state"), nb::arg("one_ctrl"),
           nb::arg("time").none(), nb::arg("qpos").none(), nb::arg("qvel").none(), nb::arg("act").none(),
           nb::arg("mocap").none(), nb::arg("qacc_warmstart").none(), nb::arg("ctrl").none(),
           nb::arg("out_time").none(), nb::arg("out_qpos").none(), nb::arg("out_qvel").none(),
           nb::arg("out_act").none(), nb::arg("out_sensordata").none(), nb::arg("out_qacc_warmstart").none(),
           nb::arg("cost").none(), nb::arg("term").none(), nb::arg("status").none(), nb::arg("good_states").none(),
           nb::arg("warnings").none(), nb::arg("history").none() = nb::none(),
           nb::arg("out_history").none() = nb::none(), nb::arg("models") = std::vector<Model>())
      .def("linearize", &linearize, nb::arg("A"), nb::arg("B"), nb::arg("C").none(), nb::arg("D").none(),
           nb::arg("status"))
      .def("sensitivity", &sensitivity, nb::arg("parameters").none(), nb::arg("columns"), nb::arg("initial").none(),
           nb::arg("sensors").none(), nb::arg("state").none(), nb::arg("sensordata").none(), nb::arg("status"))
      .def("vjp", &vjp, nb::arg("array_coordinates"), nb::arg("qpos").none(), nb::arg("qvel").none(),
           nb::arg("act").none(), nb::arg("sensordata").none(), nb::arg("ctrl").none(), nb::arg("cost").none(),
           nb::arg("out_ctrl").none(), nb::arg("out_qpos").none(), nb::arg("out_qvel").none(),
           nb::arg("out_act").none(), nb::arg("status").none(), nb::arg("parameters").none(),
           nb::arg("parameter").none(), nb::arg("history").none() = nb::none(),
           nb::arg("out_history").none() = nb::none());
}

}  // namespace sinew_python

// One body with chosen steps, and the way back.
#include "clients/python/core/core_private.h"

namespace sinew_python {

namespace {

using In = std::optional<ConstNumbers>;
using Out = std::optional<Numbers>;

struct Integrator {
  Integrator(const Model &model, const std::string &method, const std::vector<double> &tolerances,
             const std::vector<double> &steps, const std::vector<double> &control, int max_steps, bool linear,
             bool stop_at_outputs, bool gradients, size_t memory, const Cfd *cfd, bool events);
  // Makes one with these settings.
  std::shared_ptr<SinewIntegrator> make() const;
  Model given;  // stays alive
  std::string method;
  std::optional<Cfd> cfd;
  SinewIntegratorDef def = sinew_default_integrator();  // but for what is above
  std::shared_ptr<SinewIntegrator> handle;
  std::atomic_flag busy = ATOMIC_FLAG_INIT;
  size_t knots = 0, outputs = 0;  // of the latest run
};

// tolerances: rtol, atol; steps: fixed, first, smallest, largest; control: p, i, d, safety, shrink, grow.
Integrator::Integrator(const Model &model, const std::string &name, const std::vector<double> &tolerances,
                       const std::vector<double> &steps, const std::vector<double> &control, int max_steps, bool linear,
                       bool stop_at_outputs, bool gradients, size_t memory, const Cfd *distance, bool events)
    : given(model), method(name) {
  if (tolerances.size() != 2 || steps.size() != 4 || control.size() != 6)
    raise(SINEW_ERR_ARGUMENT, "2 tolerances, 4 steps and 6 numbers of the controller are expected");
  if (distance) cfd.emplace(*distance);
  def.rtol = tolerances[0];
  def.atol = tolerances[1];
  def.fixed_step = steps[0];
  def.first_step = steps[1];
  def.smallest_step = steps[2];
  def.largest_step = steps[3];
  def.p = control[0];
  def.i = control[1];
  def.d = control[2];
  def.safety = control[3];
  def.shrink = control[4];
  def.grow = control[5];
  def.max_steps = max_steps;
  def.linear = linear;
  def.stop_at_outputs = stop_at_outputs;
  def.gradients = gradients;
  def.memory = memory;
  def.events = events;
  def.interrupt = interrupt;
  handle = make();
}

std::shared_ptr<SinewIntegrator> Integrator::make() const {
  SinewIntegratorDef whole = def;
  whole.model = given.handle.get();
  whole.method = method.c_str();
  whole.cfd = cfd ? &cfd->settings : nullptr;
  SinewError err;
  SinewIntegrator *made = sinew_integrator_create(&whole, &err);
  if (!made) raise(err.status, err.text);
  return {made, sinew_integrator_free};
}

// Return what n bodies begin with, where their runs go, and bars of these: each array has n rows.
SinewState state_of(const Model &model, size_t n, double time, const In &qpos, const In &qvel, const In &act,
                    const In &mocap) {
  const SinewSizes *s = sinew_model_sizes(model.handle.get());
  const auto size = [n](int k) { return n * static_cast<size_t>(k); };
  SinewState from = {};
  from.time = time;
  from.qpos = data_of(qpos, "qpos", size(s->nq));
  from.qvel = data_of(qvel, "qvel", size(s->nv));
  from.act = data_of(act, "act", size(s->na));
  from.mocap = data_of(mocap, "mocap", size(7 * s->nmocap));
  return from;
}

SinewIntegration what_of(const Model &model, size_t n, double duration, const In &knot_time, const In &knot,
                         const ConstNumbers &out_time, const Numbers &out_qpos, const Numbers &out_qvel,
                         const Numbers &out_act) {
  const SinewSizes *s = sinew_model_sizes(model.handle.get());
  const size_t knots = knot_time ? knot_time->size() : 0, outputs = out_time.size();
  const auto size = [n](size_t k, int m) { return n * k * static_cast<size_t>(m); };
  SinewIntegration what = sinew_default_integration();
  what.duration = duration;
  what.nknot = static_cast<int>(knots);
  what.knot_time = data_of(knot_time, "knot_time", knots);
  what.knot = data_of(knot, "knot", size(knots, s->nu));
  what.nout = static_cast<int>(outputs);
  what.out_time = out_time.data();
  what.out_qpos = data_of(Out(out_qpos), "out_qpos", size(outputs, s->nq));
  what.out_qvel = data_of(Out(out_qvel), "out_qvel", size(outputs, s->nv));
  what.out_act = data_of(Out(out_act), "out_act", size(outputs, s->na));
  return what;
}

SinewIntegrationBars bars_of(const Model &model, size_t n, size_t knots, size_t outputs, bool array_coordinates,
                             const In &out_qpos, const In &out_qvel, const In &out_act, const Out &qpos,
                             const Out &qvel, const Out &act, const Out &knot, const Out &mocap,
                             const ModelTangents *parameters, const Out &parameter) {
  const SinewSizes *s = sinew_model_sizes(model.handle.get());
  const auto size = [n](size_t k, int m) { return n * k * static_cast<size_t>(m); };
  const int nq = array_coordinates ? s->nq : s->nv;
  SinewIntegrationBars bars = sinew_default_integration_bars();
  bars.coordinates = array_coordinates ? SINEW_ARRAY : SINEW_TANGENT;
  bars.out_qpos = data_of(out_qpos, "qpos", size(outputs, nq));
  bars.out_qvel = data_of(out_qvel, "qvel", size(outputs, s->nv));
  bars.out_act = data_of(out_act, "act", size(outputs, s->na));
  bars.qpos = data_of(qpos, "qpos", size(1, nq));
  bars.qvel = data_of(qvel, "qvel", size(1, s->nv));
  bars.act = data_of(act, "act", size(1, s->na));
  bars.knot = data_of(knot, "knot", size(knots, s->nu));
  bars.mocap = data_of(mocap, "mocap", size(6, s->nmocap));
  bars.parameters = parameters ? parameters->handle.get() : nullptr;
  bars.parameter = data_of(parameter, "parameter", size(1, sinew_parameters_count(bars.parameters)));
  return bars;
}

// Returns end, its words, the time reached, the numbers of accepted steps, rejected ones, evaluations, and warnings.
std::tuple<int, std::string, double, int, int, int, unsigned> run(Integrator &x, double duration, double time,
                                                                  const In &qpos, const In &qvel, const In &act,
                                                                  const In &mocap, const In &knot_time, const In &knot,
                                                                  const ConstNumbers &out_time, const Numbers &out_qpos,
                                                                  const Numbers &out_qvel, const Numbers &out_act) {
  Use use(x.busy, "integration");
  const SinewState from = state_of(x.given, 1, time, qpos, qvel, act, mocap);
  const SinewIntegration what = what_of(x.given, 1, duration, knot_time, knot, out_time, out_qpos, out_qvel, out_act);
  SinewIntegrationReport report = sinew_default_integration_report();
  SinewError err;
  SinewStatus status;
  x.knots = x.outputs = 0;
  {
    nb::gil_scoped_release unlocked;
    status = sinew_integrator_run(x.handle.get(), &from, &what, &report, &err);
  }
  check(status, err);
  x.knots = static_cast<size_t>(what.nknot);
  x.outputs = static_cast<size_t>(what.nout);
  return {static_cast<int>(report.end),
          sinew_integration_end_text(report.end),
          report.reached,
          report.accepted,
          report.rejected,
          report.evaluations,
          report.warnings};
}

// Writes the starts of the steps; returns how many there were.
int steps(Integrator &x, const Numbers &time) {
  Use use(x.busy, "integration");
  return sinew_integrator_steps(x.handle.get(), time.data(), static_cast<int>(time.size()));
}

void vjp(Integrator &x, bool array_coordinates, const In &out_qpos, const In &out_qvel, const In &out_act,
         const Out &qpos, const Out &qvel, const Out &act, const Out &knot, const Out &mocap,
         const ModelTangents *parameters, const Out &parameter, bool backsolve) {
  Use use(x.busy, "integration");
  SinewIntegrationBars bars = bars_of(x.given, 1, x.knots, x.outputs, array_coordinates, out_qpos, out_qvel, out_act,
                                      qpos, qvel, act, knot, mocap, parameters, parameter);
  bars.adjoint = backsolve ? SINEW_BACKSOLVE : SINEW_DISCRETE;
  SinewError err;
  nb::gil_scoped_release unlocked;
  check(sinew_integrator_vjp(x.handle.get(), &bars, &err), err);
}

// Many bodies with the settings of one integrator, on threads.
struct Integrators {
  Integrators(const Integrator &like, size_t count);
  Model given;
  std::vector<std::shared_ptr<SinewIntegrator>> handles;
  std::vector<SinewIntegrator *> list;
  std::atomic_flag busy = ATOMIC_FLAG_INIT;
  size_t knots = 0, outputs = 0;  // of the latest run
};

Integrators::Integrators(const Integrator &like, size_t count) : given(like.given) {
  for (size_t i = 0; i < count; ++i) {
    handles.push_back(i == 0 ? like.handle : like.make());
    list.push_back(handles.back().get());
  }
}

// Writes end, accepted and rejected steps, evaluations, warnings (5, count), and the times reached (count).
void run_many(Integrators &x, const Backend &on, double duration, double time, const In &qpos, const In &qvel,
              const In &act, const In &mocap, const In &knot_time, const In &knot, const ConstNumbers &out_time,
              const Numbers &out_qpos, const Numbers &out_qvel, const Numbers &out_act, const Integers &counts,
              const Numbers &reached) {
  Use use(x.busy, "integration"), threads(*on.busy, "backend");
  const size_t n = x.list.size();
  if (counts.size() != 5 * n) raise(SINEW_ERR_ARGUMENT, "counts: expected (5, count)");
  const SinewState from = state_of(x.given, n, time, qpos, qvel, act, mocap);
  const SinewIntegration what = what_of(x.given, n, duration, knot_time, knot, out_time, out_qpos, out_qvel, out_act);
  double *const ends = data_of(Out(reached), "reached", n);
  std::vector<SinewIntegrationReport> report(n, sinew_default_integration_report());
  SinewError err;
  SinewStatus status;
  x.knots = x.outputs = 0;
  {
    nb::gil_scoped_release unlocked;
    status =
        sinew_integrators_run(on.handle.get(), x.list.data(), static_cast<int>(n), &from, &what, report.data(), &err);
  }
  check(status, err);
  x.knots = static_cast<size_t>(what.nknot);
  x.outputs = static_cast<size_t>(what.nout);
  for (size_t i = 0; i < n; ++i) {
    const int all[5] = {static_cast<int>(report[i].end), report[i].accepted, report[i].rejected, report[i].evaluations,
                        static_cast<int>(report[i].warnings)};
    for (size_t k = 0; k < 5; ++k) counts.data()[k * n + i] = all[k];
    ends[i] = report[i].reached;
  }
}

void vjp_many(Integrators &x, const Backend &on, bool array_coordinates, const In &out_qpos, const In &out_qvel,
              const In &out_act, const Out &qpos, const Out &qvel, const Out &act, const Out &knot, const Out &mocap,
              const ModelTangents *parameters, const Out &parameter, const Integers &status) {
  Use use(x.busy, "integration"), threads(*on.busy, "backend");
  const size_t n = x.list.size();
  if (status.size() != n) raise(SINEW_ERR_ARGUMENT, "status: expected (count,)");
  const SinewIntegrationBars bars = bars_of(x.given, n, x.knots, x.outputs, array_coordinates, out_qpos, out_qvel,
                                            out_act, qpos, qvel, act, knot, mocap, parameters, parameter);
  SinewError err;
  nb::gil_scoped_release unlocked;
  check(sinew_integrators_vjp(on.handle.get(), x.list.data(), static_cast<int>(n), &bars, status.data(), &err), err);
}

}  // namespace

void bind_integrator(nb::module_ &m) {
  nb::class_<Integrator>(m, "Integrator", "One body with chosen steps.")
      .def(nb::init<const Model &, const std::string &, const std::vector<double> &, const std::vector<double> &,
                    const std::vector<double> &, int, bool, bool, bool, size_t, const Cfd *, bool>(),
           nb::arg("model"), nb::arg("method"), nb::arg("tolerances"), nb::arg("steps"), nb::arg("control"),
           nb::arg("max_steps"), nb::arg("linear"), nb::arg("stop_at_outputs"), nb::arg("gradients"), nb::arg("memory"),
           nb::arg("cfd").none(), nb::arg("events"))
      .def("run", &run, nb::arg("duration"), nb::arg("time"), nb::arg("qpos").none(), nb::arg("qvel").none(),
           nb::arg("act").none(), nb::arg("mocap").none(), nb::arg("knot_time").none(), nb::arg("knot").none(),
           nb::arg("out_time"), nb::arg("out_qpos"), nb::arg("out_qvel"), nb::arg("out_act"))
      .def("steps", &steps, nb::arg("time"))
      .def("vjp", &vjp, nb::arg("array_coordinates"), nb::arg("out_qpos").none(), nb::arg("out_qvel").none(),
           nb::arg("out_act").none(), nb::arg("qpos").none(), nb::arg("qvel").none(), nb::arg("act").none(),
           nb::arg("knot").none(), nb::arg("mocap").none(), nb::arg("parameters").none(), nb::arg("parameter").none(),
           nb::arg("backsolve"));
  nb::class_<Integrators>(m, "Integrators", "Many bodies with chosen steps, on threads.")
      .def(nb::init<const Integrator &, size_t>(), nb::arg("like"), nb::arg("count"))
      .def("run", &run_many, nb::arg("backend"), nb::arg("duration"), nb::arg("time"), nb::arg("qpos").none(),
           nb::arg("qvel").none(), nb::arg("act").none(), nb::arg("mocap").none(), nb::arg("knot_time").none(),
           nb::arg("knot").none(), nb::arg("out_time"), nb::arg("out_qpos"), nb::arg("out_qvel"), nb::arg("out_act"),
           nb::arg("counts"), nb::arg("reached"))
      .def("vjp", &vjp_many, nb::arg("backend"), nb::arg("array_coordinates"), nb::arg("out_qpos").none(),
           nb::arg("out_qvel").none(), nb::arg("out_act").none(), nb::arg("qpos").none(), nb::arg("qvel").none(),
           nb::arg("act").none(), nb::arg("knot").none(), nb::arg("mocap").none(), nb::arg("parameters").none(),
           nb::arg("parameter").none(), nb::arg("status"));
}

}  // namespace sinew_python

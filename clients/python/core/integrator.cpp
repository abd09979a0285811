// One body with chosen steps, and the way back.
#include "clients/python/core/core_private.h"

namespace sinew_python {

namespace {

using In = std::optional<ConstNumbers>;
using Out = std::optional<Numbers>;

struct Integrator {
  Integrator(const Model &model, const std::string &method, const std::vector<double> &tolerances,
             const std::vector<double> &steps, const std::vector<double> &control, int max_steps, bool linear,
             bool stop_at_outputs, bool gradients, size_t memory, const Cfd *cfd);
  Model given;  // stays alive
  std::shared_ptr<SinewIntegrator> handle;
  std::atomic_flag busy = ATOMIC_FLAG_INIT;
  size_t knots = 0, outputs = 0;  // of the latest run
};

// tolerances: rtol, atol; steps: fixed, first, smallest, largest; control: p, i, d, safety, shrink, grow.
Integrator::Integrator(const Model &model, const std::string &method, const std::vector<double> &tolerances,
                       const std::vector<double> &steps, const std::vector<double> &control, int max_steps, bool linear,
                       bool stop_at_outputs, bool gradients, size_t memory, const Cfd *cfd)
    : given(model) {
  if (tolerances.size() != 2 || steps.size() != 4 || control.size() != 6)
    raise(SINEW_ERR_ARGUMENT, "2 tolerances, 4 steps and 6 numbers of the controller are expected");
  SinewIntegratorDef def = sinew_default_integrator();
  def.model = given.handle.get();
  def.method = method.c_str();
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
  def.cfd = cfd ? &cfd->settings : nullptr;
  SinewError err;
  SinewIntegrator *made = sinew_integrator_create(&def, &err);
  if (!made) raise(err.status, err.text);
  handle = std::shared_ptr<SinewIntegrator>(made, sinew_integrator_free);
}

// Returns end, its words, the time reached, the numbers of accepted steps, rejected ones, evaluations, and warnings.
std::tuple<int, std::string, double, int, int, int, unsigned> run(Integrator &x, double duration, double time,
                                                                  const In &qpos, const In &qvel, const In &act,
                                                                  const In &mocap, const In &knot_time, const In &knot,
                                                                  const ConstNumbers &out_time, const Numbers &out_qpos,
                                                                  const Numbers &out_qvel, const Numbers &out_act) {
  Use use(x.busy, "integration");
  const SinewSizes *s = sinew_model_sizes(x.given.handle.get());
  const auto size = [](size_t k, int m) { return k * static_cast<size_t>(m); };
  const size_t knots = knot_time ? knot_time->size() : 0, outputs = out_time.size();
  SinewState from = {};
  from.time = time;
  from.qpos = data_of(qpos, "qpos", size(1, s->nq));
  from.qvel = data_of(qvel, "qvel", size(1, s->nv));
  from.act = data_of(act, "act", size(1, s->na));
  from.mocap = data_of(mocap, "mocap", size(7, s->nmocap));
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
  SinewIntegrationReport report = sinew_default_integration_report();
  SinewError err;
  SinewStatus status;
  x.knots = x.outputs = 0;
  {
    nb::gil_scoped_release unlocked;
    status = sinew_integrator_run(x.handle.get(), &from, &what, &report, &err);
  }
  check(status, err);
  x.knots = knots;
  x.outputs = outputs;
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
         const ModelTangents *parameters, const Out &parameter) {
  Use use(x.busy, "integration");
  const SinewSizes *s = sinew_model_sizes(x.given.handle.get());
  const auto size = [](size_t k, int m) { return k * static_cast<size_t>(m); };
  const int nq = array_coordinates ? s->nq : s->nv;
  SinewIntegrationBars bars = sinew_default_integration_bars();
  bars.coordinates = array_coordinates ? SINEW_ARRAY : SINEW_TANGENT;
  bars.out_qpos = data_of(out_qpos, "qpos", size(x.outputs, nq));
  bars.out_qvel = data_of(out_qvel, "qvel", size(x.outputs, s->nv));
  bars.out_act = data_of(out_act, "act", size(x.outputs, s->na));
  bars.qpos = data_of(qpos, "qpos", size(1, nq));
  bars.qvel = data_of(qvel, "qvel", size(1, s->nv));
  bars.act = data_of(act, "act", size(1, s->na));
  bars.knot = data_of(knot, "knot", size(x.knots, s->nu));
  bars.mocap = data_of(mocap, "mocap", size(6, s->nmocap));
  bars.parameters = parameters ? parameters->handle.get() : nullptr;
  bars.parameter = data_of(parameter, "parameter", size(1, sinew_parameters_count(bars.parameters)));
  SinewError err;
  nb::gil_scoped_release unlocked;
  check(sinew_integrator_vjp(x.handle.get(), &bars, &err), err);
}

}  // namespace

void bind_integrator(nb::module_ &m) {
  nb::class_<Integrator>(m, "Integrator", "One body with chosen steps.")
      .def(nb::init<const Model &, const std::string &, const std::vector<double> &, const std::vector<double> &,
                    const std::vector<double> &, int, bool, bool, bool, size_t, const Cfd *>(),
           nb::arg("model"), nb::arg("method"), nb::arg("tolerances"), nb::arg("steps"), nb::arg("control"),
           nb::arg("max_steps"), nb::arg("linear"), nb::arg("stop_at_outputs"), nb::arg("gradients"), nb::arg("memory"),
           nb::arg("cfd").none())
      .def("run", &run, nb::arg("duration"), nb::arg("time"), nb::arg("qpos").none(), nb::arg("qvel").none(),
           nb::arg("act").none(), nb::arg("mocap").none(), nb::arg("knot_time").none(), nb::arg("knot").none(),
           nb::arg("out_time"), nb::arg("out_qpos"), nb::arg("out_qvel"), nb::arg("out_act"))
      .def("steps", &steps, nb::arg("time"))
      .def("vjp", &vjp, nb::arg("array_coordinates"), nb::arg("out_qpos").none(), nb::arg("out_qvel").none(),
           nb::arg("out_act").none(), nb::arg("qpos").none(), nb::arg("qvel").none(), nb::arg("act").none(),
           nb::arg("knot").none(), nb::arg("mocap").none(), nb::arg("parameters").none(), nb::arg("parameter").none());
}

}  // namespace sinew_python

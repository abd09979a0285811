// Tasks, and planners in this process.
#include <climits>

#include "clients/python/core/core_private.h"

namespace sinew_python {

namespace {

// ---- tasks ----

Task own_task(SinewTask *task, const SinewError &err) {
  if (!task) raise(err.status, err.text);
  return Task{std::shared_ptr<SinewTask>(task, sinew_task_free)};
}

Task load_task(const std::string &path) {
  SinewError err;
  SinewTask *task;
  {
    nb::gil_scoped_release unlocked;
    task = sinew_task_load(path.c_str(), &err);
  }
  return own_task(task, err);
}

Task parse_task(const std::string &text, const std::string &name) {
  SinewError err;
  SinewTask *task;
  {
    nb::gil_scoped_release unlocked;
    task = sinew_task_parse(text.data(), text.size(), name.c_str(), &err);
  }
  return own_task(task, err);
}

// Returns name, bound and time of each measure.
std::vector<std::tuple<std::string, double, double>> measures(const Task &task) {
  std::vector<std::tuple<std::string, double, double>> all;
  for (int i = 0; const SinewMeasure *x = sinew_task_measure(task.handle.get(), i); ++i)
    all.emplace_back(x->name, x->below, x->during);
  return all;
}

std::pair<std::vector<double>, std::vector<double>> plant(const Task &task) {
  const SinewTaskPlant *x = sinew_task_plant(task.handle.get());
  return {std::vector<double>(std::begin(x->solref), std::end(x->solref)),
          std::vector<double>(std::begin(x->solimp), std::end(x->solimp))};
}

// ---- settings ----

using Dict = nb::typed<nb::dict, nb::str, nb::any>;

std::vector<Dict> settings() {
  std::vector<Dict> all;
  for (int i = 0; const SinewSetting *s = sinew_setting(i); ++i) {
    Dict d;
    d["name"] = s->name;
    d["unit"] = s->unit;
    d["doc"] = s->doc;
    d["choices"] = s->choices ? nb::cast(s->choices) : nb::none();
    d["integer"] = s->integer;
    d["live"] = s->live;
    d["value"] = s->value;
    d["lowest"] = s->lowest;
    d["highest"] = s->highest;
    d["text"] = s->text ? nb::cast(s->text) : nb::none();
    all.push_back(d);
  }
  return all;
}

// ---- planners ----

struct Planner {
  Planner(const Model &model, const Task &task, const Backend &backend, const std::optional<Backend> &fallback,
          const std::vector<std::string> &settings, uint64_t seed);
  std::shared_ptr<SinewPlanner> handle;  // keeps alive all that it was made of
  std::atomic_flag busy = ATOMIC_FLAG_INIT;
};

Planner::Planner(const Model &model, const Task &task, const Backend &backend, const std::optional<Backend> &fallback,
                 const std::vector<std::string> &settings, uint64_t seed) {
  std::vector<const char *> assignments;
  for (const std::string &x : settings) assignments.push_back(x.c_str());
  assignments.push_back(nullptr);
  SinewPlannerDef def = sinew_default_planner();
  def.model = model.handle.get();
  def.task = task.handle.get();
  def.backend = backend.handle.get();
  def.fallback = fallback ? fallback->handle.get() : nullptr;
  def.settings = assignments.data();
  def.seed = seed;
  def.interrupt = interrupt;
  SinewError err;
  SinewPlanner *made;
  {
    nb::gil_scoped_release unlocked;
    made = sinew_planner_create(&def, &err);
  }
  if (!made) raise(err.status, err.text);
  handle = std::shared_ptr<SinewPlanner>(
      made, [model, task, backend, fallback](SinewPlanner *planner) { sinew_planner_free(planner); });
}

const SinewSizes *sizes_of(const Planner &planner) {
  return sinew_model_sizes(sinew_planner_model(planner.handle.get()));
}

// Returns the planner's own model, which keeps the planner alive.
Model model_of(const Planner &planner) {
  return Model{std::shared_ptr<const SinewModel>(planner.handle, sinew_planner_model(planner.handle.get()))};
}

// Returns a copy of numbers of the library, rows by columns, None for NULL.
nb::object copy_of(const double *x, int rows, int cols) {
  if (!x) return nb::none();
  const size_t shape[2] = {static_cast<size_t>(rows), static_cast<size_t>(cols)};
  double *numbers = const_cast<double *>(x);  // which are read only: what is handed out is a copy
  return nb::cast(nb::ndarray<nb::numpy, double>(numbers, 2, shape, nb::handle()), nb::rv_policy::copy);
}

Dict dict_of(const SinewState &state, const SinewSizes *s) {
  Dict d;
  d["time"] = state.time;
  d["qpos"] = copy_of(state.qpos, 1, s->nq)[nb::int_(0)];
  d["qvel"] = copy_of(state.qvel, 1, s->nv)[nb::int_(0)];
  d["act"] = copy_of(state.act, 1, s->na)[nb::int_(0)];
  d["mocap"] = s->nmocap > 0 ? copy_of(state.mocap, s->nmocap, 7) : nb::none();
  return d;
}

Dict initial(Planner &planner) {
  Use use(planner.busy, "planner");
  return dict_of(sinew_planner_initial(planner.handle.get()), sizes_of(planner));
}

using In = std::optional<ConstNumbers>;

// A state as Python hands it in.
SinewState state_of(const Planner &planner, double time, const In &qpos, const In &qvel, const In &act,
                    const In &mocap) {
  const SinewSizes *s = sizes_of(planner);
  SinewState state = {};
  state.time = time;
  state.qpos = data_of(qpos, "qpos", s->nq);
  state.qvel = data_of(qvel, "qvel", s->nv);
  state.act = data_of(act, "act", s->na);
  state.mocap = data_of(mocap, "mocap", 7 * static_cast<size_t>(s->nmocap));
  return state;
}

Dict dict_of(const SinewPlan &plan, const SinewSizes *s) {
  Dict d;
  d["number"] = plan.number;
  d["start"] = plan.start;
  d["step"] = plan.step;
  d["lead"] = plan.lead;
  d["ctrl"] = copy_of(plan.ctrl, plan.steps, s->nu);
  d["qpos"] = copy_of(plan.qpos, plan.steps + 1, s->nq);
  d["qvel"] = copy_of(plan.qvel, plan.steps + 1, s->nv);
  d["act"] = copy_of(plan.act, plan.steps + 1, s->na);
  d["cost_before"] = plan.cost_before;
  d["cost_after"] = plan.cost_after;
  d["terms"] = copy_of(plan.term, 1, plan.terms)[nb::int_(0)];
  d["iterations"] = plan.iterations;
  d["candidates"] = plan.candidates;
  d["gradient_norm"] = plan.gradient_norm;
  d["refined"] = plan.refined;
  d["deadline_met"] = plan.deadline_met;
  d["act_estimated"] = plan.act_estimated;
  d["device_lost"] = plan.device_lost;
  d["warnings"] = plan.warnings;
  d["backend"] = plan.backend;
  d["remark"] = plan.remark;
  d["seconds"] = plan.seconds;
  d["gain"] = copy_of(plan.gain, plan.gain_rows * s->nu, 2 * s->nv + s->na);
  d["gain_rows"] = plan.gain_rows;
  d["stuck"] = plan.stuck;
  d["unimproved"] = plan.unimproved;
  d["from_policy"] = plan.from_policy;
  return d;
}

Dict plan(Planner &planner, double time, const In &qpos, const In &qvel, const In &act, const In &mocap, double latency,
          double budget, int iterations, bool want_states, int gain_rows, const In &history) {
  Use use(planner.busy, "planner");
  SinewPlanRequest request = sinew_default_plan_request();
  request.state = state_of(planner, time, qpos, qvel, act, mocap);
  request.latency = latency;
  request.budget = budget;
  request.max_iterations = iterations;
  request.want_states = want_states;
  request.gain_rows = gain_rows;
  request.history = data_of(history, "history", sizes_of(planner)->nhistory);
  const SinewPlan *made = nullptr;
  SinewError err;
  {
    nb::gil_scoped_release unlocked;
    check(sinew_planner_plan(planner.handle.get(), &request, &made, &err), err);
  }
  return dict_of(*made, sizes_of(planner));
}

void control(Planner &planner, double time, const Numbers &ctrl) {
  Use use(planner.busy, "planner");
  double *to = data_of(std::optional<Numbers>(ctrl), "ctrl", sizes_of(planner)->nu);
  SinewError err;
  check(sinew_planner_control(planner.handle.get(), time, to, &err), err);
}

void feedback(Planner &planner, double time, const In &qpos, const In &qvel, const In &act, const Numbers &ctrl) {
  Use use(planner.busy, "planner");
  const SinewState state = state_of(planner, time, qpos, qvel, act, std::nullopt);
  double *to = data_of(std::optional<Numbers>(ctrl), "ctrl", sizes_of(planner)->nu);
  SinewError err;
  check(sinew_planner_feedback(planner.handle.get(), &state, to, nullptr, &err), err);
}

double evaluate(Planner &planner, double time, const In &qpos, const In &qvel, const In &act, const In &mocap,
                const ConstNumbers &ctrl, const std::optional<Numbers> &gradient) {
  Use use(planner.busy, "planner");
  const SinewState state = state_of(planner, time, qpos, qvel, act, mocap);
  const size_t nu = sizes_of(planner)->nu;
  if (ctrl.ndim() != 2 || ctrl.shape(1) != nu || ctrl.shape(0) > INT_MAX)
    raise(SINEW_ERR_ARGUMENT, "ctrl: a matrix with a row for each step is expected");
  double *to = data_of(gradient, "gradient", ctrl.size());
  double cost = 0;
  SinewError err;
  nb::gil_scoped_release unlocked;
  check(sinew_planner_evaluate(planner.handle.get(), &state, ctrl.data(), static_cast<int>(ctrl.shape(0)), &cost, to,
                               &err),
        err);
  return cost;
}

void measure(Planner &planner, double time, const In &qpos, const In &qvel, const In &act, const In &mocap,
             const Numbers &value) {
  Use use(planner.busy, "planner");
  const SinewState state = state_of(planner, time, qpos, qvel, act, mocap);
  SinewError err;
  nb::gil_scoped_release unlocked;
  check(sinew_planner_measure(planner.handle.get(), &state, value.data(), static_cast<int>(value.size()), &err), err);
}

void reset(Planner &planner, uint64_t seed) {
  Use use(planner.busy, "planner");
  SinewError err;
  nb::gil_scoped_release unlocked;
  check(sinew_planner_reset(planner.handle.get(), seed, &err), err);
}

void set(Planner &planner, const char *assignment) {
  Use use(planner.busy, "planner");
  SinewError err;
  check(sinew_planner_set(planner.handle.get(), assignment, &err), err);
}

std::string get(Planner &planner, const char *name) {
  Use use(planner.busy, "planner");
  char text[64];
  SinewError err;
  check(sinew_planner_get(planner.handle.get(), name, text, sizeof text, &err), err);
  return text;
}

void set_weight(Planner &planner, const char *term, double weight, double terminal) {
  Use use(planner.busy, "planner");
  SinewError err;
  check(sinew_planner_set_weight(planner.handle.get(), term, weight, terminal, &err), err);
}

void set_target(Planner &planner, const char *term, const std::vector<double> &value) {
  Use use(planner.busy, "planner");
  SinewError err;
  check(sinew_planner_set_target(planner.handle.get(), term, value.data(), static_cast<int>(value.size()), &err), err);
}

// Targets at each time, row by row.
std::vector<double> targets(Planner &planner, const std::vector<double> &time) {
  Use use(planner.busy, "planner");
  SinewError err;
  const int rows = static_cast<int>(time.size());
  int count = 0;
  check(sinew_planner_targets(planner.handle.get(), time.data(), rows, nullptr, &count, &err), err);
  std::vector<double> x(static_cast<size_t>(rows) * static_cast<size_t>(count) + 1);
  check(sinew_planner_targets(planner.handle.get(), time.data(), rows, x.data(), &count, &err), err);
  x.pop_back();
  return x;
}

}  // namespace

void bind_planner(nb::module_ &m) {
  nb::class_<Task>(m, "Task", "Cost and start of a task.")
      .def_static("load", &load_task, nb::arg("path"))
      .def_static("parse", &parse_task, nb::arg("text"), nb::arg("name"))
      .def_prop_ro("name", [](const Task &x) { return sinew_task_name(x.handle.get()); })
      .def_prop_ro("model", [](const Task &x) { return sinew_task_model(x.handle.get()); })
      .def_prop_ro("text", [](const Task &x) { return sinew_task_text(x.handle.get()); })
      .def("measures", &measures)
      .def("plant", &plant);
  m.def("settings", &settings, "Return all settings of planners.");
  nb::class_<Planner>(m, "Planner", "A planner in this process.")
      .def(nb::init<const Model &, const Task &, const Backend &, const std::optional<Backend> &,
                    const std::vector<std::string> &, uint64_t>(),
           nb::arg("model"), nb::arg("task"), nb::arg("backend"), nb::arg("fallback").none(), nb::arg("settings"),
           nb::arg("seed"))
      .def("model", &model_of)
      .def("initial", &initial)
      .def("plan", &plan, nb::arg("time"), nb::arg("qpos").none(), nb::arg("qvel").none(), nb::arg("act").none(),
           nb::arg("mocap").none(), nb::arg("latency"), nb::arg("budget"), nb::arg("iterations"),
           nb::arg("want_states"), nb::arg("gain_rows"), nb::arg("history").none() = nb::none())
      .def("control", &control, nb::arg("time"), nb::arg("ctrl"))
      .def("feedback", &feedback, nb::arg("time"), nb::arg("qpos").none(), nb::arg("qvel").none(),
           nb::arg("act").none(), nb::arg("ctrl"))
      .def("evaluate", &evaluate, nb::arg("time"), nb::arg("qpos").none(), nb::arg("qvel").none(),
           nb::arg("act").none(), nb::arg("mocap").none(), nb::arg("ctrl"), nb::arg("gradient").none())
      .def("measure", &measure, nb::arg("time"), nb::arg("qpos").none(), nb::arg("qvel").none(), nb::arg("act").none(),
           nb::arg("mocap").none(), nb::arg("value"))
      .def("reset", &reset, nb::arg("seed"))
      .def("set", &set, nb::arg("assignment"))
      .def("get", &get, nb::arg("name"))
      .def("set_weight", &set_weight, nb::arg("term"), nb::arg("weight"), nb::arg("terminal"))
      .def("set_target", &set_target, nb::arg("term"), nb::arg("value"))
      .def("targets", &targets, nb::arg("time"));
}

}  // namespace sinew_python

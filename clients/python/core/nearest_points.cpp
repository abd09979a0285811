// Nearest points of pairs of geoms at many states, and the way back.
#include "clients/python/core/core_private.h"

namespace sinew_python {

namespace {

using In = std::optional<ConstNumbers>;
using Out = std::optional<Numbers>;

// Holds the states and pairs of calls; whoever makes it keeps the arrays alive during these.
SinewNearestPoints points_at(const Model &model, int count, const In &qpos, const In &mocap, const Integers &pairs,
                             double limit) {
  const SinewSizes *s = sinew_model_sizes(model.handle.get());
  SinewNearestPoints at = sinew_default_nearest_points();
  at.model = model.handle.get();
  at.count = count;
  at.npair = static_cast<int>(pairs.size() / 2);
  at.pair = pairs.data();
  at.qpos = data_of(qpos, "qpos", static_cast<size_t>(count) * s->nq);
  at.mocap = data_of(mocap, "mocap", static_cast<size_t>(count) * 7 * s->nmocap);
  at.limit = limit;
  at.interrupt = interrupt;
  return at;
}

// Fills dist (count, pairs) and points (3, count, pairs, 3): from, to, normal.
void find(const Backend &backend, const Model &model, int count, const In &qpos, const In &mocap, const Integers &pairs,
          double limit, const Numbers &dist, const Numbers &points) {
  Use use(*backend.busy, "backend");
  SinewNearestPoints at = points_at(model, count, qpos, mocap, pairs, limit);
  const size_t n = static_cast<size_t>(count) * at.npair;
  at.dist = data_of(Out(dist), "dist", n);
  at.from = data_of(Out(points), "points", 9 * n);
  at.to = at.from + 3 * n;
  at.normal = at.from + 6 * n;
  SinewError err;
  nb::gil_scoped_release unlocked;
  check(sinew_nearest_points(backend.handle.get(), &at, &err), err);
}

void vjp(const Backend &backend, const Model &model, int count, const In &qpos, const In &mocap, const Integers &pairs,
         double limit, bool array_coordinates, bool surrogate, const In &dist, const In &from, const In &to,
         const In &normal, const Numbers &qpos_bar, const Numbers &mocap_bar, const ModelTangents *parameters,
         const Out &parameter) {
  Use use(*backend.busy, "backend");
  const SinewSizes *s = sinew_model_sizes(model.handle.get());
  const SinewNearestPoints at = points_at(model, count, qpos, mocap, pairs, limit);
  const size_t states = static_cast<size_t>(count), n = states * at.npair;
  SinewNearestBars bars = sinew_default_nearest_bars();
  bars.coordinates = array_coordinates ? SINEW_ARRAY : SINEW_TANGENT;
  bars.surrogate = surrogate;
  bars.dist = data_of(dist, "dist", n);
  bars.from = data_of(from, "from", 3 * n);
  bars.to = data_of(to, "to", 3 * n);
  bars.normal = data_of(normal, "normal", 3 * n);
  bars.qpos = data_of(Out(qpos_bar), "qpos", states * (array_coordinates ? s->nq : s->nv));
  bars.mocap = data_of(Out(mocap_bar), "mocap", states * 6 * s->nmocap);
  bars.parameters = parameters ? parameters->handle.get() : nullptr;
  bars.parameter = data_of(parameter, "parameters", states * sinew_parameters_count(bars.parameters));
  SinewError err;
  nb::gil_scoped_release unlocked;
  check(sinew_nearest_points_vjp(backend.handle.get(), &at, &bars, &err), err);
}

}  // namespace

void bind_nearest_points(nb::module_ &m) {
  m.def("nearest_points", &find, nb::arg("backend"), nb::arg("model"), nb::arg("count"), nb::arg("qpos").none(),
        nb::arg("mocap").none(), nb::arg("pairs"), nb::arg("limit"), nb::arg("dist"), nb::arg("points"));
  m.def("nearest_points_vjp", &vjp, nb::arg("backend"), nb::arg("model"), nb::arg("count"), nb::arg("qpos").none(),
        nb::arg("mocap").none(), nb::arg("pairs"), nb::arg("limit"), nb::arg("array_coordinates"), nb::arg("surrogate"),
        nb::arg("dist").none(), nb::arg("from_").none(), nb::arg("to").none(), nb::arg("normal").none(),
        nb::arg("qpos_bar"), nb::arg("mocap_bar"), nb::arg("parameters").none(), nb::arg("parameter").none());
}

}  // namespace sinew_python

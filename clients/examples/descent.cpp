// Gradient descent on the controls of an arm, in C++: handles free themselves, errors are exceptions.
//
//   descent MODEL.xml
#include <sinew.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <stdexcept>
#include <vector>

// Frees a handle that goes out of scope.
template <auto function>
struct Free {
  template <class Handle>
  void operator()(Handle *handle) const {
    function(handle);
  }
};
using Model = std::unique_ptr<SinewModel, Free<sinew_model_free>>;
using Backend = std::unique_ptr<SinewBackend, Free<sinew_backend_close>>;
using Batch = std::unique_ptr<SinewBatch, Free<sinew_batch_free>>;

// Calls a function whose last argument is the error, and throws its text where it fails.
template <class Function, class... Arguments>
auto call(Function function, Arguments... arguments) {
  SinewError err{};
  auto result = function(arguments..., &err);
  if (err.status != SINEW_OK) throw std::runtime_error(err.text);
  return result;
}

int main(int argc, char **argv) try {
  if (argc != 2) throw std::runtime_error("usage: descent MODEL.xml");
  const Model model{call(sinew_model_load, argv[1])};
  const Backend backend{call(sinew_backend_open, "cpu", nullptr)};
  const SinewSizes &sizes = *sinew_model_sizes(model.get());
  const int steps = 100;

  SinewBatchDef def = sinew_default_batch();
  def.model = model.get();
  def.backend = backend.get();
  def.capacity = 1;
  def.steps = steps;
  def.gradients = true;
  const Batch batch{call(sinew_batch_create, &def)};

  // The cost: how far the joints are from an angle of 1 rad at the end, squared.
  std::vector<double> ctrl(steps * sizes.nu, 0.1), slope(ctrl.size());
  std::vector<double> qpos((steps + 1) * sizes.nq), bar((steps + 1) * sizes.nq);
  SinewRollouts rollouts = sinew_default_rollouts();
  rollouts.count = 1;
  rollouts.steps = steps;
  rollouts.ctrl = ctrl.data();
  rollouts.out_qpos = qpos.data();
  SinewTrajectoryBars bars = sinew_default_bars();
  bars.coordinates = SINEW_ARRAY;
  bars.qpos = bar.data();
  SinewGradients gradients = sinew_default_gradients();
  gradients.ctrl = slope.data();

  for (int iteration = 0; iteration <= 50; ++iteration) {
    call(sinew_batch_rollout, batch.get(), &rollouts);
    double cost = 0;
    for (int i = 0; i < sizes.nq; ++i) {
      const double away = qpos[steps * sizes.nq + i] - 1;
      cost += away * away;
      bar[steps * sizes.nq + i] = 2 * away;
    }
    if (iteration % 10 == 0) std::printf("iteration %2d  cost %.6f\n", iteration, cost);
    call(sinew_batch_vjp, batch.get(), &bars, &gradients);
    for (std::size_t i = 0; i < ctrl.size(); ++i) ctrl[i] = std::clamp(ctrl[i] - 0.5 * slope[i], 0.0, 1.0);
  }
} catch (const std::exception &error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}

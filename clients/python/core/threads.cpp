// Threads that do one piece of work together.
#include "clients/python/core/threads_private.h"

#include <sched.h>
#include <unistd.h>

#include <chrono>

namespace sinew_python {

namespace {

int usable_processors() {
  cpu_set_t set;
  const int n = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
  return n > 0 ? n : 1;
}

}  // namespace

Threads::Threads(int count) : count_(count > 0 ? count : usable_processors()), process_(getpid()), shared_(new Shared) {
  for (int i = 1; i < count_; ++i) shared_->threads.emplace_back(loop, shared_, i);
}

Threads::~Threads() {
  if (!here()) return;
  {
    const std::lock_guard<std::mutex> lock(shared_->mutex);
    shared_->ended = true;
  }
  shared_->begin.notify_all();
  for (std::thread &thread : shared_->threads) thread.join();
  delete shared_;
}

bool Threads::here() const { return process_ == getpid(); }

void Threads::loop(Shared *shared, int number) {
  unsigned seen = 0;
  std::unique_lock<std::mutex> lock(shared->mutex);
  for (;;) {
    shared->begin.wait(lock, [&] { return shared->ended || shared->turn != seen; });
    if (shared->ended) return;
    seen = shared->turn;
    const std::function<void(int)> &work = *shared->work;
    lock.unlock();
    work(number);
    lock.lock();
    if (--shared->busy == 0) shared->end.notify_one();
  }
}

void Threads::run(const std::function<void(int)> &work, const std::function<void()> &watch) {
  {
    const std::lock_guard<std::mutex> lock(shared_->mutex);
    shared_->work = &work;
    shared_->busy = count_ - 1;
    ++shared_->turn;
  }
  shared_->begin.notify_all();
  work(0);
  std::unique_lock<std::mutex> lock(shared_->mutex);
  while (!shared_->end.wait_for(lock, std::chrono::milliseconds(10), [&] { return shared_->busy == 0; })) {
    lock.unlock();
    watch();
    lock.lock();
  }
}

}  // namespace sinew_python

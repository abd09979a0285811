// Threads that do one piece of work together, each with its number; the caller is number 0.
#ifndef SINEW_PYTHON_THREADS_H_
#define SINEW_PYTHON_THREADS_H_

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace sinew_python {

class Threads {
 public:
  // Starts count - 1 threads; 0: as many as there are processors that this process may use.
  explicit Threads(int count);
  // Ends them. In a child of fork() they are not there: what belongs to them is left alone.
  ~Threads();
  Threads(const Threads &) = delete;
  Threads &operator=(const Threads &) = delete;

  // Returns how many there are, the caller's included.
  int count() const { return count_; }
  // Returns whether they are in this process.
  bool here() const;
  // Calls work(number) in each, and returns when all calls have returned. The caller, whose own has returned before,
  // calls watch() every 10 ms until then.
  void run(const std::function<void(int)> &work, const std::function<void()> &watch);

 private:
  struct Shared {
    std::mutex mutex;
    std::condition_variable begin, end;
    const std::function<void(int)> *work = nullptr;
    unsigned turn = 0;  // counts pieces of work
    int busy = 0;       // threads that work on the present one
    bool ended = false;
    std::vector<std::thread> threads;
  };
  static void loop(Shared *shared, int number);

  int count_;
  int process_;
  Shared *shared_;
};

}  // namespace sinew_python

#endif

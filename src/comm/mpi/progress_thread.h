#pragma once
#include <atomic>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

namespace jigsaw::inline comm {

/// Calls MPI at intervals while transfers are under way, so that they progress while the rank computes.
class ProgressThread {
 public:
  /// @param mpi      held by whoever calls MPI; while another does, this thread need not.
  /// @param rank     of this process in MPI_COMM_WORLD, whose errors return.
  /// @param seconds  between calls; 0: none.
  ProgressThread(std::mutex& mpi, int rank, double seconds);
  ~ProgressThread();
  ProgressThread(const ProgressThread&) = delete;
  ProgressThread& operator=(const ProgressThread&) = delete;

  void set_interval(double seconds);
  /// The thread calls this once before it calls MPI again.
  void prepare(std::function<void()> preparation);
  /// Whether transfers are under way.
  void set_busy(bool busy) { busy_ = busy; }

 private:
  void run();

  std::mutex& mpi_;
  int rank_;
  std::mutex mutex_;  // before mpi_
  std::condition_variable changed_;
  double seconds_;
  std::function<void()> preparation_;
  std::atomic<bool> busy_ = false;
  bool ends_ = false;
  std::thread thread_;
};

}  // namespace jigsaw::inline comm

#pragma once
#include <atomic>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

namespace jigsaw::inline comm {

/// Held by whoever calls MPI. One can see whether somebody waits for it.
class MpiMutex {
 public:
  void lock() {
    ++waiting_;
    mutex_.lock();
    --waiting_;
  }
  bool try_lock() { return mutex_.try_lock(); }
  void unlock() { mutex_.unlock(); }
  bool wanted() const { return waiting_ > 0; }

 private:
  std::mutex mutex_;
  std::atomic<int> waiting_ = 0;
};

/// Calls MPI at intervals while transfers are under way, so that they progress while the rank computes.
class ProgressThread {
 public:
  /// Calls each time, unless somebody else wants to call MPI: one moves as little as a part of a message
  /// (512 KiB over UCX).
  static constexpr int kProbes = 8;

  /// @param mpi      while another thread holds it, this one need not call MPI.
  /// @param rank     of this process in MPI_COMM_WORLD, whose errors return.
  /// @param seconds  between calls; 0: none.
  ProgressThread(MpiMutex& mpi, int rank, double seconds);
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

  MpiMutex& mpi_;
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

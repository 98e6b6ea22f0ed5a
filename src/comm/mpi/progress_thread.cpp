#include "comm/mpi/progress_thread.h"

#define OMPI_SKIP_MPICXX 1
#include <mpi.h>

#include <chrono>
#include <utility>

namespace jigsaw::inline comm {

ProgressThread::ProgressThread(MpiMutex& mpi, int rank, double seconds)
    : mpi_(mpi), rank_(rank), seconds_(seconds), thread_([this] { run(); }) {}

ProgressThread::~ProgressThread() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void ProgressThread::set_interval(double seconds) {
  {
    const std::lock_guard lock(mutex_);
    seconds_ = seconds;
  }
  changed_.notify_all();
}

void ProgressThread::prepare(std::function<void()> preparation) {
  const std::lock_guard lock(mutex_);
  preparation_ = std::move(preparation);
}

void ProgressThread::run() {
  // Being woken for each transfer would cost more than looking now and then whether there is one.
  constexpr double kIdle = 5;
  std::unique_lock lock(mutex_);
  while (!ends_) {
    if (seconds_ <= 0) {
      changed_.wait(lock);
      continue;
    }
    changed_.wait_for(lock, std::chrono::duration<double>(busy_ ? seconds_ : kIdle * seconds_));
    for (int probe = 0; probe < kProbes && !ends_ && !mpi_.wanted() && mpi_.try_lock(); ++probe) {
      const std::lock_guard held(mpi_, std::adopt_lock);
      if (!busy_) break;
      if (preparation_) std::exchange(preparation_, nullptr)();
      // Looks at what came in, as any call does, and finds nothing: the program sends over duplicates of this
      // communicator and parts of it. Of MPI_COMM_SELF MPICH would look at the rank's own messages alone.
      int found = 0;
      MPI_Iprobe(rank_, 0, MPI_COMM_WORLD, &found, MPI_STATUS_IGNORE);
    }
  }
}

}  // namespace jigsaw::inline comm

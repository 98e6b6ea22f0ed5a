#include "local_runs.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <exception>
#include <map>
#include <memory>
#include <set>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "base/stop_signal.h"
#include "base/text.h"
#include "comm/mpi/own_folder.h"

extern char** environ;

namespace jigsaw {
namespace {

/// What wakes this process: a child's end, or a signal that asks it to stop.
sigset_t awaited_signals() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGCHLD);
  for (const int number : kStopSignals) {
    struct sigaction action {};
    sigaction(number, nullptr, &action);
    // While it is blocked even what is ignored comes, such as SIGHUP under nohup.
    if (action.sa_handler != SIG_IGN) sigaddset(&set, number);
  }
  return set;
}

/// While it lives the awaited signals are not delivered but waited for.
class BlockedSignals {
 public:
  BlockedSignals() {
    const sigset_t set = awaited_signals();
    sigprocmask(SIG_BLOCK, &set, &before_);
  }
  ~BlockedSignals() { sigprocmask(SIG_SETMASK, &before_, nullptr); }
  BlockedSignals(const BlockedSignals&) = delete;
  BlockedSignals& operator=(const BlockedSignals&) = delete;
  const sigset_t& before() const { return before_; }

 private:
  sigset_t before_;
};

/// In a process group of its own: Ctrl-C on the terminal reaches this process alone, which passes on SIGUSR1.
/// @param variables  of its environment, "NAME=value", that are others than this process's.
pid_t start(const LocalRun& run, const sigset_t& mask, std::vector<std::string> variables) {
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, run.output_file.c_str(),
                                   O_WRONLY | O_CREAT | O_APPEND, 0666);
  posix_spawn_file_actions_adddup2(&files, STDOUT_FILENO, STDERR_FILENO);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP);
  posix_spawnattr_setsigmask(&attributes, &mask);
  std::vector<char*> arguments;
  std::vector<std::string> words = run.command;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  std::vector<char*> environment;
  for (char** each = environ; *each != nullptr; ++each) {
    const std::string_view name = std::string_view(*each).substr(0, std::string_view(*each).find('=') + 1);
    const auto is_other = [&](const std::string& variable) { return variable.starts_with(name); };
    if (std::none_of(variables.begin(), variables.end(), is_other)) environment.push_back(*each);
  }
  for (std::string& variable : variables) environment.push_back(variable.data());
  environment.push_back(nullptr);
  pid_t child = 0;
  const int failed =
      posix_spawnp(&child, arguments[0], &files, &attributes, arguments.data(), environment.data());
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&files);
  if (failed != 0)
    throw ConfigError(concat("cannot start ", run.command[0], " for run ", run.name, " with its output in ",
                             run.output_file, ": ", std::strerror(failed)));
  return child;
}

int exit_code_of(int status) {
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace

bool run_locally(const std::vector<LocalRun>& runs, int at_a_time, const std::vector<std::string>& gpus,
                 const std::function<void(std::size_t run, int exit_code)>& ended) {
  const BlockedSignals blocked;
  const sigset_t awaited = awaited_signals();
  struct Started {
    std::size_t run, slot;
    std::shared_ptr<OwnMpiFolder> folder;
  };
  std::map<pid_t, Started> running;
  std::set<std::size_t> free;
  for (int slot = 0; slot < at_a_time; ++slot) free.insert(static_cast<std::size_t>(slot));
  std::size_t next = 0;
  bool stopped = false;
  std::exception_ptr failure;  // of a start: thrown when those that run have ended
  while (true) {
    while (!stopped && !failure && next < runs.size() && !free.empty()) {
      const std::size_t slot = *free.begin();
      try {
        const auto folder = std::make_shared<OwnMpiFolder>();
        std::vector<std::string> variables = runs[next].variables;
        if (!gpus.empty()) variables.push_back("CUDA_VISIBLE_DEVICES=" + gpus[slot]);
        if (!folder->path().empty()) variables.push_back(concat(folder->variable(), "=", folder->path()));
        running[start(runs[next], blocked.before(), std::move(variables))] = {next, slot, folder};
      } catch (const ConfigError&) {
        failure = std::current_exception();
        break;
      }
      free.erase(slot);
      ++next;
    }
    if (running.empty() && failure) std::rethrow_exception(failure);
    if (running.empty()) return stopped;
    int number = 0;
    if (sigwait(&awaited, &number) != 0) continue;
    if (number != SIGCHLD) {
      stopped = true;
      for (const auto& [child, started] : running) ::kill(child, SIGUSR1);
    }
    int status = 0;
    for (pid_t child = 0; (child = ::waitpid(-1, &status, WNOHANG)) > 0;) {
      const auto found = running.find(child);
      if (found == running.end()) continue;
      ended(found->second.run, exit_code_of(status));
      free.insert(found->second.slot);
      running.erase(found);
    }
  }
}

}  // namespace jigsaw

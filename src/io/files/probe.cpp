#include "files/probe.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <iterator>
#include <utility>

#include "base/error.h"
#include "base/heartbeat.h"
#include "base/text.h"

// posix_spawn takes the environment as it is.
extern char** environ;  // NOLINT

namespace jigsaw::inline files {

namespace {

/// Of the process that reads headers: what no sensible file needs.
constexpr rlim_t kMostBytes = rlim_t{4} << 30, kMostSecondsPerFile = 20;
constexpr std::int64_t kLongestList = std::int64_t{1} << 20;

std::string& program_of_process() {
  static std::string program;
  return program;
}

/// A file in memory, closed with the value.
class MemoryFile {
 public:
  explicit MemoryFile(const char* name) : descriptor_(::memfd_create(name, MFD_CLOEXEC)) {
    if (descriptor_ < 0) fail(concat("cannot make a file in memory: ", std::strerror(errno)));
  }
  ~MemoryFile() { ::close(descriptor_); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  int descriptor() const { return descriptor_; }
  void put(const std::string& text) {
    for (std::size_t done = 0; done < text.size();) {
      const ssize_t count = ::write(descriptor_, text.data() + done, text.size() - done);
      if (count <= 0) fail(concat("cannot write to a file in memory: ", std::strerror(errno)));
      done += static_cast<std::size_t>(count);
    }
    ::lseek(descriptor_, 0, SEEK_SET);
  }
  std::int64_t size() const { return ::lseek(descriptor_, 0, SEEK_END); }

 private:
  int descriptor_;
};

/// Starts the program and waits for its end.
int run_program(const std::string& program, int input, int output) {
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, input, STDIN_FILENO);
  ::posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
  ::posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  std::string name = program, argument = Probe::kCommand;
  std::array<char*, 3> arguments = {name.data(), argument.data(), nullptr};
  pid_t child = -1;
  const int error = ::posix_spawn(&child, program.c_str(), &actions, nullptr, arguments.data(), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  if (error != 0) fail(concat("cannot start ", program, ": ", std::strerror(error)));
  int status = 0;
  while (::waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) fail(concat("cannot wait for ", program, ": ", std::strerror(errno)));
  }
  beat();
  return status;
}

/// "" for a process that ended as it should.
std::string describe_end(int status) {
  if (WIFSIGNALED(status))
    return concat("signal ", WTERMSIG(status), " (", ::strsignal(WTERMSIG(status)), ")");
  return WEXITSTATUS(status) == 0 ? "" : concat("exit code ", WEXITSTATUS(status));
}

void limit(int what, rlim_t most) {
  rlimit limits{};
  if (::getrlimit(static_cast<__rlimit_resource_t>(what), &limits) != 0) return;
  limits.rlim_cur = std::min(most, limits.rlim_max);
  ::setrlimit(static_cast<__rlimit_resource_t>(what), &limits);
}

/// The processor time that this process may still use begins anew.
void limit_seconds() {
  rusage used{};
  ::getrusage(RUSAGE_SELF, &used);
  limit(RLIMIT_CPU, static_cast<rlim_t>(used.ru_utime.tv_sec + used.ru_stime.tv_sec) + kMostSecondsPerFile);
}

void read_header(const std::string& path, Dimensions dimensions, External external) {
  const auto file = open_variables(path, dimensions, external);
  file->describe();
  for (const FileVariable& variable : file->variables()) {
    const bool coordinate = variable.numeric() && variable.shape.rank() == 1 && variable.fault.empty();
    if (!coordinate || variable.shape[0] > kLongestList) continue;
    try {
      file->read_all(variable);
    } catch (const Error&) {
      continue;  // so will whoever needs it find out
    }
  }
}

}  // namespace

std::vector<std::string> Probe::outcomes(const std::vector<std::string>& paths) const {
  std::vector<std::string> result(paths.size());
  for (std::size_t first = 0; first < paths.size();) {
    std::string input = concat(dimensions == Dimensions::kByName ? "name" : "number",
                               external == External::kFollowed ? "+" : "", std::string(1, '\0'));
    for (std::size_t i = first; i < paths.size(); ++i) input += paths[i] + '\0';
    MemoryFile names("names"), begun("begun");
    names.put(input);
    const std::string end = describe_end(run_program(program, names.descriptor(), begun.descriptor()));
    if (end.empty()) return result;
    const auto started = static_cast<std::size_t>(begun.size());
    if (started == 0) fail(concat(program, " ", kCommand, " ended by ", end, " before it read a file"));
    first += started;
    result[std::min(first, paths.size()) - 1] = end;
  }
  return result;
}

void Probe::check(const std::vector<std::string>& paths) const {
  const std::vector<std::string> ends = outcomes(paths);
  for (std::size_t i = 0; i < paths.size(); ++i) {
    if (ends[i].empty()) continue;
    throw DataError(concat("cannot read ", paths[i], ": reading its header ended a process by ", ends[i],
                           "; the file is damaged, perhaps on purpose"));
  }
}

int run_probe() {
  limit(RLIMIT_CORE, 0);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  limit(RLIMIT_AS, kMostBytes);
#endif
  const std::string input{std::istreambuf_iterator<char>(std::cin), {}};
  std::vector<std::string> paths;
  for (std::size_t begin = 0; begin < input.size();) {
    const std::size_t end = std::min(input.find('\0', begin), input.size());
    paths.push_back(input.substr(begin, end - begin));
    begin = end + 1;
  }
  if (paths.empty()) return 1;
  const Dimensions dimensions = paths[0].starts_with("name") ? Dimensions::kByName : Dimensions::kByNumber;
  const External external = paths[0].ends_with('+') ? External::kFollowed : External::kRefused;
  for (std::size_t i = 1; i < paths.size(); ++i) {
    if (::write(STDOUT_FILENO, ".", 1) != 1) return 1;
    limit_seconds();
    try {
      read_header(paths[i], dimensions, external);
    } catch (const std::bad_alloc&) {
      return 2;
    } catch (const std::exception&) {
      continue;  // the run finds the same
    }
  }
  // Nothing that libraries do at their end is of interest.
  std::_Exit(0);
}

void set_probe_program(std::string program) {
  program_of_process() = std::move(program);
}

const std::string& probe_program() {
  return program_of_process();
}

void probe_files(const std::vector<std::string>& paths, Dimensions dimensions, External external) {
  if (probe_program().empty() || paths.empty()) return;
  Probe{probe_program(), dimensions, external}.check(paths);
}

}  // namespace jigsaw::inline files

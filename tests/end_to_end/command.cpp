#include "end_to_end/command.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <regex>
#include <sstream>
#include <thread>

namespace jigsaw::e2e {

namespace fs = std::filesystem;

std::string read(const fs::path& path) {
  std::ifstream in(path);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

namespace {

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

/// For hangs only: nothing here is about speed.
constexpr int kSecondsUntilItHangs = 1200;

/// Has the shell write its process number to a file and become what follows.
std::string numbered(const std::string& file) {
  return "sh -c 'echo $$ > \"$0$OMPI_COMM_WORLD_RANK\"; exec \"$@\"' " + quoted(file) + ' ';
}

/// With `numbers` given, the launcher writes its process number to numbers/launcher, and each rank to
/// numbers/rankN (alone: rank).
std::string command_line(int ranks, const std::string& arguments, int threads, const fs::path& numbers = "",
                         const std::string& program = JIGSAW_TRAIN) {
  const auto number = [&](const char* name) {
    return numbers.empty() ? "" : numbered((numbers / name).string());
  };
  std::ostringstream line;
  // What runs keep for each other, tests keep among themselves.
  static const TemporaryFolder cache;
  line << "exec env OMP_NUM_THREADS=" << threads << " XDG_CACHE_HOME=" << quoted(cache.path().string())
       << " OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 timeout -k 5 " << kSecondsUntilItHangs
       << ' ';
  if (ranks > 1) {
    line << number("launcher") << JIGSAW_MPIEXEC << " --oversubscribe --bind-to none -n " << ranks << ' ';
  }
  line << number("rank") << quoted(program) << ' ' << arguments;
  return line.str();
}

/// The process number in a file that numbered() names, or -1 when it is not there yet.
pid_t number_in(const fs::path& file) {
  const std::string text = read(file);
  return text.ends_with('\n') ? std::stoi(text) : -1;
}

/// Starts a shell command in a session of its own and in this folder, where what it says comes to files.
pid_t start(const std::string& command, const fs::path& folder) {
  const pid_t child = fork();
  if (child != 0) return child;
  setsid();
  if (chdir(folder.c_str()) != 0) _exit(126);
  dup2(open("/dev/null", O_RDONLY), STDIN_FILENO);
  dup2(open("out", O_CREAT | O_WRONLY | O_APPEND, 0666), STDOUT_FILENO);
  dup2(open("err", O_CREAT | O_WRONLY | O_APPEND, 0666), STDERR_FILENO);
  execl("/bin/sh", "sh", "-c", command.c_str(), static_cast<char*>(nullptr));
  _exit(127);
}

Outcome outcome(int status, const fs::path& folder) {
  return {WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), read(folder / "out"),
          read(folder / "err")};
}

}  // namespace

std::vector<std::string> Outcome::said() const {
  static const std::string name = "jigsaw-train: ";
  std::vector<std::string> found;
  for (const std::string& line : lines_of(err)) {
    for (std::size_t at = line.find(name); at != std::string::npos;) {
      const std::size_t next = line.find(name, at + 1);
      found.push_back(line.substr(at, next - at));
      at = next;
    }
  }
  return found;
}

std::vector<std::string> Outcome::errors() const {
  std::vector<std::string> found;
  for (const std::string& sentence : said()) {
    if (sentence.starts_with("jigsaw-train: error: ")) found.push_back(sentence);
  }
  return found;
}

TemporaryFolder::TemporaryFolder() {
  std::string name = (fs::temp_directory_path() / "jigsaw_XXXXXX").string();
  path_ = mkdtemp(name.data());
}
TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}
void TemporaryFolder::write(const std::string& name, const std::string& text) const {
  std::ofstream(path_ / name) << text;
}

Outcome run(int ranks, const std::string& arguments, int threads) {
  const TemporaryFolder folder;
  const pid_t child = start(command_line(ranks, arguments, threads), folder.path());
  int status = 0;
  waitpid(child, &status, 0);
  return outcome(status, folder.path());
}

Running::Running(int ranks, const std::string& arguments, const std::string& program) : count_(ranks) {
  // Ranks whose launcher was killed become children of this process, which can then wait for their end.
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  child_ = start(command_line(ranks, arguments, 1, folder_.path(), program), folder_.path());
}

Running::~Running() {
  kill_all();
}

std::vector<pid_t> Running::ranks() const {
  std::vector<pid_t> found;
  for (int rank = 0; rank < count_; ++rank) {
    const pid_t pid = number_in(folder_ / (count_ > 1 ? "rank" + std::to_string(rank) : "rank"));
    if (pid > 0) found.push_back(pid);
  }
  return found;
}

std::string Running::said() const {
  return read(folder_ / "out");
}

void Running::signal(int number) const {
  for (const pid_t pid : ranks()) kill(pid, number);
}

void Running::signal_launcher(int number) const {
  const pid_t launcher = number_in(folder_ / "launcher");
  if (launcher > 0) kill(launcher, number);
}

void Running::kill_all() {
  if (child_ <= 0) return;
  for (pid_t gone = 0; gone >= 0 || errno != ECHILD;) {
    kill(-child_, SIGKILL);
    kill(child_, SIGKILL);  // it may not have made its session yet
    signal(SIGKILL);        // mpirun gives ranks process groups of their own
    int status = 0;
    gone = waitpid(-1, &status, WNOHANG);
    if (gone == child_) status_ = status;
    if (gone == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  child_ = -1;
}

Outcome Running::collect() {
  if (child_ > 0) waitpid(child_, &status_, 0);
  child_ = -1;
  return outcome(status_, folder_.path());
}

bool Running::until(const std::function<bool()>& condition) const {
  while (!condition()) {
    siginfo_t ended{};
    if (waitid(P_PID, static_cast<id_t>(child_), &ended, WEXITED | WNOHANG | WNOWAIT) != 0 ||
        ended.si_pid != 0) {
      return condition();
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return true;
}

namespace {

std::string real_file(const std::string& name) {
  const fs::path file = fs::path(testing::real_data_dir()) / name;
  return fs::exists(file) ? fs::weakly_canonical(file).string() : "";
}

}  // namespace

std::string real_era5() {
  return real_file("era5_t2m_uk_2019-03.nc");
}

std::string real_ct() {
  return real_file("ct_head.h5");
}

std::string timeless(const std::string& run_directory) {
  static const std::regex times(
      R"re(,"([a-z_]*_seconds|samples_per_second|peak_share|time)":("[^"]*"|[^,}]*))re");
  return std::regex_replace(read(run_directory + "/metrics.jsonl"), times, "");
}

std::vector<Json> metrics(const std::string& run_directory, const std::string& kind) {
  std::vector<Json> found;
  for (const std::string& line : lines_of(read(run_directory + "/metrics.jsonl"))) {
    Json json = Json::parse(line);
    if (json.at("kind") == kind) found.push_back(std::move(json));
  }
  return found;
}

std::vector<double> series(const std::vector<Json>& lines, const std::string& key) {
  std::vector<double> values;
  for (const Json& line : lines) values.push_back(line.at(key).get<double>());
  return values;
}

Json small_config(const TemporaryFolder& folder) {
  Json config = {{"data",
                  {{"variables", {"t2m"}},
                   {"forcings", {"latitude", "longitude", "time_of_day"}},
                   {"input_hours", {-6, 0}},
                   {"lead_hours", 6},
                   {"train", {"2019-03-02", "2019-03-12"}},
                   {"valid", {"2019-03-25", "2019-03-26"}}}},
                 {"model",
                  {{"type", "weathermixer"},
                   {"patch", {3, 7}},
                   {"embed_dim", 24},
                   {"depth", 2},
                   {"dropout", 0.1},
                   {"positions", true},
                   {"final_norm", true},
                   {"output_map", false}}},
                 {"optimizer", {{"learning_rate", 1e-3}, {"betas", {0.9, 0.95}}}},
                 {"schedule", {{"warmup_steps", 10}}},
                 {"train", {{"steps", 100}, {"batch_size", 4}}},
                 {"validation", {{"every", 0}}},
                 {"checkpoint", {{"every", 0}}}};
  if (real_era5().empty()) {
    const Outcome made = run(1, "sample-data --output " + (folder / "data"));
    if (made.exit_code != 0) throw std::runtime_error("sample-data failed: " + made.err);
    config["data"]["files"] = {folder / "data/*.nc"};
    config["data"]["train"] = {"2021-01-02", "2021-01-12"};
    config["data"]["valid"] = {"2021-02-01", "2021-02-02"};
    config["model"]["patch"] = {5, 7};
  } else {
    config["data"]["files"] = {real_era5()};
  }
  return config;
}

}  // namespace jigsaw::e2e

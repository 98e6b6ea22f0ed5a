#include "end_to_end/command.h"

#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <thread>
#include <utility>

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

std::string command_line(int ranks, const std::string& arguments, int threads, int seconds,
                         const std::string& program = JIGSAW_TRAIN) {
  std::ostringstream line;
  line << "exec env OMP_NUM_THREADS=" << threads
       << " OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 timeout -k 5 " << seconds << ' ';
  if (ranks > 1) line << JIGSAW_MPIEXEC << " --oversubscribe --bind-to none -n " << ranks << ' ';
  line << program << ' ' << arguments;
  return line.str();
}

/// The processes of a session: mpirun gives ranks process groups of their own, but no sessions.
std::vector<pid_t> processes_of(pid_t session) {
  std::vector<pid_t> found;
  for (const fs::directory_entry& entry : fs::directory_iterator("/proc")) {
    const pid_t pid = std::atoi(entry.path().filename().c_str());
    if (pid > 0 && getsid(pid) == session) found.push_back(pid);
  }
  return found;
}

/// Starts a shell command in a session of its own.
pid_t start(const std::string& command, const fs::path& out, const fs::path& err) {
  const pid_t child = fork();
  if (child != 0) return child;
  setsid();
  const std::string redirected = command + " >" + out.string() + " 2>" + err.string() + " </dev/null";
  execl("/bin/sh", "sh", "-c", redirected.c_str(), static_cast<char*>(nullptr));
  _exit(127);
}

Outcome collect(pid_t child, const fs::path& out, const fs::path& err) {
  int status = 0;
  waitpid(child, &status, 0);
  return {WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), read(out), read(err)};
}

}  // namespace

std::vector<std::string> Outcome::errors() const {
  std::vector<std::string> found;
  for (const std::string& line : lines_of(err)) {
    if (line.find("error:") != std::string::npos) found.push_back(line);
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

Outcome run(int ranks, const std::string& arguments, int threads, int seconds) {
  const TemporaryFolder folder;
  const fs::path out = folder.path() / "out", err = folder.path() / "err";
  return collect(start(command_line(ranks, arguments, threads, seconds), out, err), out, err);
}

Running::Running(int ranks, const std::string& arguments, const std::string& program)
    : child_(start(command_line(ranks, arguments, 1, 120, program), folder_.path() / "out",
                   folder_.path() / "err")) {}

Running::~Running() {
  if (child_ <= 0) return;
  kill_all();
  waitpid(child_, nullptr, 0);
}

std::vector<pid_t> Running::ranks() const {
  std::vector<pid_t> found;
  for (const pid_t pid : processes_of(child_)) {
    std::error_code gone;
    const fs::path program = fs::read_symlink("/proc/" + std::to_string(pid) + "/exe", gone);
    if (program.filename().string().starts_with("jigsaw-train")) found.push_back(pid);
  }
  return found;
}

void Running::signal(int number) const {
  for (const pid_t pid : ranks()) kill(pid, number);
}

void Running::signal_launcher(int number) const {
  for (const pid_t pid : processes_of(child_)) {
    if (read("/proc/" + std::to_string(pid) + "/cmdline").starts_with(JIGSAW_MPIEXEC)) kill(pid, number);
  }
}

void Running::kill_all() const {
  kill(child_, SIGKILL);  // it may not have made its session yet
  for (const pid_t pid : processes_of(child_)) kill(pid, SIGKILL);
}

Outcome Running::collect() {
  return e2e::collect(std::exchange(child_, -1), folder_.path() / "out", folder_.path() / "err");
}

bool wait_for(const std::function<bool()>& condition, double seconds) {
  for (int i = 0; i < static_cast<int>(seconds * 200); ++i) {
    if (condition()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return false;
}

Outcome run_and_kill(int ranks, const std::string& arguments, const std::string& file, int lines) {
  Running running(ranks, arguments);
  wait_for([&] { return static_cast<int>(lines_of(read(file)).size()) >= lines; });
  running.kill_all();
  return running.collect();
}

namespace {

std::string real_file(const std::string& name) {
  const char* folder = std::getenv("JIGSAW_REAL_DATA");
  const fs::path file = fs::path(folder != nullptr ? folder : source_dir() + "/../shared/data") / name;
  return fs::exists(file) ? fs::weakly_canonical(file).string() : "";
}

}  // namespace

std::string real_era5() {
  return real_file("era5_t2m_uk_2019-03.nc");
}

std::string real_ct() {
  return real_file("ct_head.h5");
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

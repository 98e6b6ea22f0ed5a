#include "stop_signals.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstring>
#include <filesystem>

#include "base/error.h"
#include "base/stop_files.h"
#include "base/stop_signal.h"
#include "commands.h"

namespace jigsaw {

namespace {

std::atomic<int> stop_asked = 0;
std::atomic<bool> keeps = false, speaks = false, stops = false;
static_assert(std::atomic<int>::is_always_lock_free && std::atomic<bool>::is_always_lock_free,
              "a signal handler may set them");

constexpr std::size_t kLongestPath = 4096;
std::array<char, kLongestPath> file_to_remove{}, folder_to_remove{};
std::atomic<bool> removes = false;

/// Calls what a handler may.
void remove_file() {
  remove_stop_files();
  if (!removes.load()) return;
  ::unlink(file_to_remove.data());
  ::rmdir(folder_to_remove.data());
}

/// Calls what a handler may.
void handle(int number) {
  stop_asked.store(number);
  if (keeps.load()) return;
  remove_file();
  if (speaks.load()) {
    const auto say = [](const char* text) { return ::write(STDERR_FILENO, text, std::strlen(text)) >= 0; };
    say("jigsaw-train: stopped early, before there was anything to save (") &&
        say(stop_signal_name(number)) && say("); start again\n");
  }
  ::_exit(static_cast<int>(ExitCode::kStopped));
}

/// Calls what a handler may. The signal comes again when this returns.
void remove_and_end(int number) {
  remove_file();
  std::signal(number, SIG_DFL);
  ::raise(number);
}

void set_handler(void (*handler)(int)) {
  struct sigaction action {};
  action.sa_handler = handler;
  for (const int number : kStopSignals) {
    struct sigaction before {};
    sigaction(number, nullptr, &before);
    if (number != SIGHUP || before.sa_handler != SIG_IGN) sigaction(number, &action, nullptr);
  }
}

}  // namespace

void install_stop_signals() {
  speaks = launched_rank() == 0;
  stops = true;
  set_handler(handle);
}

void remove_stop_signals() {
  stops = false;
  set_handler(remove_and_end);
}

const std::atomic<int>& keep_stop_signals() {
  keeps = true;
  return stop_asked;
}

void remove_on_stop(const std::string& file) {
  removes = false;
  const std::string folder = std::filesystem::path(file).parent_path().string();
  if (file.size() < kLongestPath) {
    *std::ranges::copy(file, file_to_remove.begin()).out = 0;
    *std::ranges::copy(folder, folder_to_remove.begin()).out = 0;
    removes = !file.empty();
  }
}

}  // namespace jigsaw

// What watching costs: of each call of a rank its entry in the ring buffer and the fingerprint, of each unit
// of work and each step what the watchdog sees of it, of each event of a trace where nobody asked for one and
// where somebody did. Prints a JSON line each, in nanoseconds.
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <functional>
#include <iostream>
#include <nlohmann/json.hpp>

#include "autograd/operation_span.h"
#include "base/heartbeat.h"
#include "base/text.h"
#include "base/trace.h"
#include "comm/call_log.h"
#include "comm/watchdog.h"

namespace {

using namespace jigsaw;

double nanoseconds_of(const std::function<void()>& work) {
  constexpr int kTimes = 200'000, kTries = 7;
  double fastest = 1e300;
  for (int i = 0; i < kTries; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    for (int j = 0; j < kTimes; ++j) work();
    const std::chrono::duration<double, std::nano> all = std::chrono::steady_clock::now() - begin;
    fastest = std::min(fastest, all.count() / kTimes);
  }
  return fastest;
}

void print(const char* what, double nanoseconds) {
  std::cout << nlohmann::ordered_json{{"benchmark", "call cost"},
                                      {"what", what},
                                      {"nanoseconds", nanoseconds}}
                   .dump()
            << std::endl;
}

}  // namespace

int main() {
  CallLog log;
  Call call{.kind = Collective::kControl};
  print("a call's entry and states in the ring buffer, and its part of the fingerprint", nanoseconds_of([&] {
          ++call.sequence;
          const std::int64_t number = log.begin("domain0×tensor", false, call);
          log.set_state(number, CallLog::State::kWaiting);
          log.set_state(number, CallLog::State::kDone);
        }));
  print("the fingerprint", nanoseconds_of([&] { log.fingerprint(); }));
  const auto heartbeat = std::make_shared<Heartbeat>();
  const WorksFor works(heartbeat);
  print("a unit of work that is counted", nanoseconds_of([] { beat(); }));
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / concat("call_cost_", ::getpid());
  {
    Watchdog watchdog({.folder = folder, .size = 2, .heartbeat = heartbeat}, std::make_shared<CallLog>(),
                      [](const std::string&) {});
    print("a step that the watchdog is told of", nanoseconds_of([&] { watchdog.beat(1); }));
  }
  std::filesystem::remove_all(folder);
  const auto event = [] { const TraceSpan span(TraceKind::kOperation, "Contraction"); };
  print("an event that nobody traces", nanoseconds_of(event));
  const auto trace = std::make_shared<EventTrace>();
  const TracesFor traced(trace, "main");
  trace->record(true);
  print("an event that is traced", nanoseconds_of([&] {
          event();
          static int count = 0;
          if (++count % 100'000 == 0) trace->clear();
        }));
  Context context = Context::make_host(Backend::kReference, 1);
  print("an operation that is traced", nanoseconds_of([&] {
          const OperationSpan span(context, "contract", "encoder.block 3");
          static int count = 0;
          if (++count % 100'000 == 0) trace->clear();
        }));
  return 0;
}

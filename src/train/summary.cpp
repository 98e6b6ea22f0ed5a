#include "train/summary.h"

#include <sys/resource.h>

#include <cmath>
#include <fstream>

#include "base/file.h"

namespace jigsaw::inline train {

Json to_json(const RankTotals& totals, int rank) {
  Json sent = Json::object();
  for (int kind = 0; kind < kCollectives; ++kind) {
    sent[name(static_cast<Collective>(kind))] =
        std::llround(totals.traffic.sent_bytes[static_cast<std::size_t>(kind)]);
  }
  Json bytes = Json::object(), messages = Json::object();
  for (int kind = 0; kind < kKinds; ++kind) {
    const Sent& each = totals.traffic.sent[static_cast<std::size_t>(kind)];
    bytes[name(static_cast<Collective>(kind))] = std::llround(each.bytes);
    messages[name(static_cast<Collective>(kind))] = each.messages;
  }
  return {{"rank", rank},
          {"coordinates", totals.coordinates},
          {"parameter_bytes", totals.parameter_bytes},
          {"optimizer_bytes", totals.optimizer_bytes},
          {"peak_memory_bytes", totals.peak_memory_bytes},
          {"peak_activation_bytes", totals.peak_activation_bytes},
          {"file_bytes_read", totals.file_bytes_read},
          {"file_bytes_fetched", totals.file_bytes_fetched},
          {"sent_bytes", sent},
          {"transport_bytes", bytes},
          {"transport_messages", messages},
          {"communication_seconds", totals.traffic.seconds},
          {"wait_seconds", totals.traffic.wait_seconds},
          {"control_seconds", totals.traffic.control_seconds}};
}

std::int64_t peak_resident_bytes() {
  std::ifstream status("/proc/self/status");
  std::string word;
  std::int64_t kibibytes = 0;
  while (status >> word) {
    if (word == "VmHWM:" && status >> kibibytes) return kibibytes * 1024;
  }
  // Without /proc: the same, unless the process that this one was started by was larger.
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss * std::int64_t{1024};
}

std::int64_t peak_memory_bytes(const Context& context) {
  return context.runtime() == nullptr ? peak_resident_bytes() : context.arena().peak_bytes();
}

void write_summary(const std::string& path, Json results, const RankTotals& own, Communicator& communicator,
                   Log& log) {
  const auto texts = communicator.gather_text(to_json(own, communicator.rank()).dump());
  if (communicator.rank() != 0) return;
  Json& ranks = results["ranks"] = Json::array();
  for (const std::string& text : texts) ranks.push_back(Json::parse(text));
  try {
    write_text_atomically(path, results.dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
  } catch (const FileError& error) {
    log.warn(error.what());
  }
}

}  // namespace jigsaw::inline train

#include "train/preflight.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <limits>
#include <map>
#include <set>
#include <tuple>

#include "base/disk.h"
#include "base/error.h"
#include "base/file.h"
#include "base/host.h"
#include "base/text.h"
#include "comm/agreement.h"
#include "config/json.h"
#include "kernels/contraction.h"
#include "kernels/pointwise.h"

namespace jigsaw::inline train {

namespace {

namespace fs = std::filesystem;
using Seconds = std::chrono::duration<double>;

constexpr double kSlow = 0.5;            // of the median
constexpr double kClockTolerance = 1.0;  // seconds
// Seconds by which latencies differ where nothing is wrong: between near pairs and far ones.
constexpr double kLatencyTolerance = 5e-6;

std::string shown(double value, const char* format = "%.3g") {
  char text[32];
  std::snprintf(text, sizeof text, format, value);
  return text;
}

double median(std::vector<double> values) {
  const auto middle = values.begin() + std::ssize(values) / 2;
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

std::string rank_on(const std::vector<RankFacts>& facts, std::size_t rank) {
  return concat("rank ", rank, " on ", facts[rank].host);
}

/// "3 ranks alike, rank 1 on n2 has: …": ranks whose text is not rank 0's.
void refuse_unlike_builds(const std::vector<RankFacts>& facts) {
  for (std::size_t r = 1; r < facts.size(); ++r) {
    if (facts[r].build == facts[0].build) continue;
    throw ConfigError(concat("the ranks run unlike builds: ", rank_on(facts, 0), " has ", facts[0].build,
                             "; ", rank_on(facts, r), " has ", facts[r].build));
  }
}

void judge_output(const std::vector<RankFacts>& facts, const OutputNeed& need, PreflightReport& report) {
  for (std::size_t r = 0; r < facts.size(); ++r) {
    if (const std::optional<Error>& error = facts[r].output_error) {
      refuse_output<ConfigError>(*error, concat("output ", need.output, ": ", rank_on(facts, r),
                                                " cannot write there: ", error->what()));
    }
    if (!facts[r].sees_output)
      throw ConfigError(concat("output ", need.output, ": ", rank_on(facts, r), " does not see what ",
                               rank_on(facts, 0), " writes there; it must be a folder that all nodes share"));
  }
  report.lines.push_back(concat("output: ", need.output, " is written and seen by all ranks; ",
                                human_bytes(std::llround(need.free_bytes)), " free, a checkpoint takes ",
                                human_bytes(std::llround(need.checkpoint_bytes))));
  if (std::string warning = space_warning(need); !warning.empty())
    report.warnings.push_back(std::move(warning));
}

void judge_clocks(const std::vector<RankFacts>& facts, PreflightReport& report) {
  std::vector<double> clocks;
  for (const RankFacts& fact : facts) clocks.push_back(fact.clock);
  const double right = median(clocks);
  std::set<std::string> said;
  for (const RankFacts& fact : facts) {
    const double ahead = fact.clock - right;
    if (std::abs(ahead) > kClockTolerance && said.insert(fact.host).second)
      report.warnings.push_back(concat("the clock of ", fact.host, " is ", shown(std::abs(ahead)), " s ",
                                       ahead > 0 ? "ahead" : "behind", ": times in logs do not compare"));
  }
}

void judge_ranks(const std::vector<RankFacts>& facts, PreflightReport& report) {
  std::map<std::string, int> ranks_of_host;
  std::vector<double> rates;
  for (const RankFacts& fact : facts) {
    ++ranks_of_host[fact.host];
    rates.push_back(fact.flops_per_second);
  }
  const double usual = median(rates);
  report.lines.push_back(
      concat(counted(std::ssize(facts), "rank"), " on ", ranks_of_host.size(),
             ranks_of_host.size() == 1 ? " node" : " nodes",
             usual > 0 ? concat(", ", shown(usual * 1e-9), " GFLOP/s each (median)") : ""));
  const auto [fewest, most] =
      std::minmax_element(ranks_of_host.begin(), ranks_of_host.end(),
                          [](const auto& a, const auto& b) { return a.second < b.second; });
  if (fewest->second != most->second)
    report.warnings.push_back(concat(most->first, " holds ", most->second, " ranks and ", fewest->first, " ",
                                     fewest->second, ": their memory and speed per rank differ"));
  for (std::size_t r = 0; r < facts.size(); ++r) {
    if (rates[r] < kSlow * usual)
      report.warnings.push_back(concat(rank_on(facts, r), " is slow: ", shown(rates[r] * 1e-9),
                                       " GFLOP/s where the median is ", shown(usual * 1e-9),
                                       "; all others wait for it"));
  }
}

/// Two ranks that sent each other messages. Both timed the same ones: the side counts that was held up less.
struct Pair {
  std::size_t first = 0, second = 0;
  double bytes_per_second = 0, messages_per_second = 0;  ///< of long messages, of short ones

  double latency() const { return 1 / messages_per_second; }
};

/// Within a node, or between nodes.
std::vector<Pair> pairs_of(const std::vector<RankFacts>& facts, bool within) {
  std::map<std::pair<std::size_t, std::size_t>, Pair> pairs;
  for (std::size_t r = 0; r < facts.size(); ++r) {
    for (const RankFacts::Link& link : facts[r].links) {
      const auto to = static_cast<std::size_t>(link.to);
      if ((facts[r].host == facts[to].host) != within) continue;
      Pair& pair = pairs[std::minmax(r, to)];
      std::tie(pair.first, pair.second) = std::minmax(r, to);
      pair.bytes_per_second = std::max(pair.bytes_per_second, link.bytes_per_second);
      pair.messages_per_second = std::max(pair.messages_per_second, 1 / link.latency_seconds);
    }
  }
  std::vector<Pair> result;
  for (const auto& [ranks, pair] : pairs) result.push_back(pair);
  return result;
}

/// The median of each rate.
Pair usual_of(const std::vector<Pair>& pairs) {
  std::vector<double> bytes, messages;
  for (const Pair& pair : pairs) {
    bytes.push_back(pair.bytes_per_second);
    messages.push_back(pair.messages_per_second);
  }
  return {0, 0, median(bytes), median(messages)};
}

/// In what a pair is slow, "0.4 GB/s where the median between nodes is 1"; empty when it is not.
std::string slowness(const Pair& pair, const Pair& usual, const char* kind) {
  std::vector<std::string> parts;
  const auto add = [&](double value, const char* unit, double middle) {
    parts.push_back(concat(shown(value), unit, " where the median ", kind, " is ", shown(middle)));
  };
  if (pair.bytes_per_second < kSlow * usual.bytes_per_second)
    add(pair.bytes_per_second * 1e-9, " GB/s", usual.bytes_per_second * 1e-9);
  if (pair.messages_per_second < kSlow * usual.messages_per_second &&
      pair.latency() - usual.latency() > kLatencyTolerance)
    add(pair.latency() * 1e6, " µs", usual.latency() * 1e6);
  return join(parts, "; ");
}

void judge_links(const std::vector<RankFacts>& facts, PreflightReport& report) {
  for (const bool within : {true, false}) {
    const std::vector<Pair> pairs = pairs_of(facts, within);
    if (pairs.empty()) continue;
    const Pair usual = usual_of(pairs);
    const char* kind = within ? "within a node" : "between nodes";
    report.lines.push_back(concat("messages ", kind, ": ", shown(usual.bytes_per_second * 1e-9), " GB/s, ",
                                  shown(usual.latency() * 1e6), " µs (median)"));
    for (const Pair& pair : pairs) {
      const std::string slow = slowness(pair, usual, kind);
      if (slow.empty()) continue;
      report.warnings.push_back(concat("slow messages between ", rank_on(facts, pair.first), " and ",
                                       rank_on(facts, pair.second), ": ", slow));
    }
  }
}

/// Rank 0 writes a file which all others read; each writes one of its own.
void try_output(Communicator& world, const std::string& output, RankFacts& facts) {
  const auto attempt = [&](const auto& work) {
    try {
      work();
    } catch (const Error& error) {
      facts.output_error = error;
    }
  };
  std::string path;
  if (world.rank() == 0) {
    path = (existing_folder(output) / concat(".jigsaw-train-check-", getpid())).string();
    attempt([&] { write_text_atomically(path, path); });
  }
  path = world.broadcast_text(path);
  if (world.rank() > 0) {
    std::string text;
    try {
      text = read_text(path, std::int64_t{1} << 12);
    } catch (const FileError&) {
      // It is not there.
    }
    facts.sees_output = text == path;
    attempt([&] {
      const std::string own = concat(path, "-", world.rank());
      write_text_atomically(own, own);
      std::error_code ignored;
      fs::remove(own, ignored);
    });
  }
  world.barrier();
  std::error_code ignored;
  if (world.rank() == 0) fs::remove(path, ignored);
}

template <typename Work>
double fastest(int tries, Work&& work) {
  double least = std::numeric_limits<double>::infinity();
  for (int i = 0; i < tries; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    work();
    least = std::min(least, Seconds(std::chrono::steady_clock::now() - begin).count());
  }
  return least;
}

double measure_products(const Rank& rank) {
  constexpr std::int64_t kSide = 256;
  constexpr int kTries = 10;
  const ContractionSpec spec = ContractionSpec::parse("mk,nk->mn");
  const Array side = filled(rank.context, {kSide, kSide}, DType::kFloat32, 1.0, Purpose::kWorkspace);
  const double seconds = fastest(kTries, [&] { contract(rank.context, spec, side, side, DType::kFloat32); });
  return 2.0 * kSide * kSide * kSide / seconds;
}

/// In round k, with the rank whose number differs in bit k alone: log2 n rounds reach everybody through
/// others, near ranks and far ones.
std::vector<RankFacts::Link> measure_links(const Rank& rank) {
  constexpr std::int64_t kLong = std::int64_t{1} << 19;  // float32: 2 MiB
  constexpr int kShortTries = 20, kLongTries = 5;
  Communicator& world = rank.mesh.world();
  std::vector<RankFacts::Link> links;
  for (int distance = 1; distance < world.size(); distance *= 2) {
    const int other = world.rank() ^ distance;
    const bool paired = other < world.size();
    const auto seconds = [&](std::int64_t count, int tries) {
      const Array send = filled(rank.context, {count}, DType::kFloat32, 1.0, Purpose::kWorkspace);
      const Message message{other, 0, count};
      const std::span<const Message> messages(&message, paired ? 1 : 0);
      return fastest(tries, [&] { world.exchange(send, messages, messages, paired ? count : 0); });
    };
    const double latency = seconds(1, kShortTries), whole = seconds(kLong, kLongTries);
    if (paired) links.push_back({other, 4.0 * kLong / std::max(whole - latency, 1e-3 * whole), latency});
  }
  return links;
}

Json to_json(const RankFacts& facts) {
  Json links = Json::array();
  for (const RankFacts::Link& link : facts.links)
    links.push_back({link.to, link.bytes_per_second, link.latency_seconds});
  Json error;
  if (facts.output_error) error = {static_cast<int>(facts.output_error->code()), facts.output_error->what()};
  return {facts.host, facts.build, facts.clock, facts.sees_output, facts.flops_per_second, links, error};
}

RankFacts facts_of(const Json& json) {
  RankFacts facts{json[0], json[1], json[2], json[3], {}, json[4], {}};
  for (const Json& link : json[5]) facts.links.push_back({link[0], link[1], link[2]});
  if (const Json& error = json[6]; !error.is_null())
    facts.output_error = Error(error[0].get<ExitCode>(), error[1].get<std::string>());
  return facts;
}

}  // namespace

PreflightReport judge(const std::vector<RankFacts>& facts, const OutputNeed& need) {
  refuse_unlike_builds(facts);
  PreflightReport report;
  judge_ranks(facts, report);
  judge_links(facts, report);
  judge_clocks(facts, report);
  judge_output(facts, need, report);
  return report;
}

void preflight(const Rank& rank, const std::string& build, const OutputNeed& need, Log& log) {
  Communicator& world = rank.mesh.world();
  const Traffic traffic = world.traffic();
  const Tally tally = rank.context.tally();
  RankFacts own;
  own.host = host_name();
  own.build = build;
  try_output(world, need.output, own);
  if (rank.context.device() == Device::kCpu) {
    own.flops_per_second = measure_products(rank);
    own.links = measure_links(rank);
  }
  world.barrier();
  own.clock = Seconds(std::chrono::system_clock::now().time_since_epoch()).count();
  world.traffic() = traffic;
  rank.context.tally() = tally;

  const std::vector<std::string> texts = world.gather_text(to_json(own).dump());
  together(world, [&] {
    if (world.rank() != 0) return;
    std::vector<RankFacts> facts;
    for (const std::string& text : texts) facts.push_back(facts_of(Json::parse(text)));
    const PreflightReport report = judge(facts, need);
    for (const std::string& line : report.lines) log.info(line);
    for (const std::string& warning : report.warnings) log.warn(warning);
  });
}

}  // namespace jigsaw::inline train

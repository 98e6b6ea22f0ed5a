#include "estimate/report.h"

#include <cmath>
#include <cstdio>

#include "base/text.h"
#include "config/config.h"

namespace jigsaw::inline estimate {

namespace {

const char* name(Zero zero) {
  return zero == Zero::kNone ? "none" : zero == Zero::kOptimizer ? "optimizer" : "parameters";
}
const char* name(Recompute recompute) {
  return recompute == Recompute::kNone ? "none" : "block";
}

double samples_per_second(const MeshQuestion& question, const PlannedMesh& mesh) {
  return static_cast<double>(question.configuration.train.batch_size) / mesh.worst.seconds;
}

Json sent_json(const RankEstimate& rank) {
  Json sent = Json::object();
  for (int kind = 0; kind < kCollectives; ++kind)
    sent[jigsaw::name(static_cast<Collective>(kind))] =
        std::llround(rank.sent_bytes[static_cast<std::size_t>(kind)]);
  return sent;
}

Json collectives_json(const RankEstimate& rank) {
  Json list = Json::array();
  for (const auto& [where, traffic] : rank.traffic) {
    list.push_back({{"axes", where.first},
                    {"collective", jigsaw::name(where.second)},
                    {"calls", traffic.calls},
                    {"bytes", std::llround(traffic.bytes)},
                    {"messages", traffic.messages}});
  }
  return list;
}

Json bytes_json(const RankEstimate& rank) {
  return {{"parameter_bytes", rank.parameter_bytes},
          {"gradient_bytes", rank.gradient_bytes},
          {"optimizer_bytes", rank.optimizer_bytes},
          {"peak_activation_bytes", rank.activation_bytes},
          {"workspace_bytes", rank.workspace_bytes},
          {"input_bytes", rank.input_bytes},
          {"memory_bytes", rank.memory_bytes},
          {"flops", rank.flops},
          {"sent_bytes", sent_json(rank)}};
}

Json mesh_json(const MeshQuestion& question, const PlannedMesh& mesh) {
  Json json = {{"mesh", jigsaw::to_json(mesh.mesh)},
               {"zero", name(mesh.zero)},
               {"recompute", name(mesh.recompute)},
               {"accumulate", mesh.accumulate},
               {"fits", mesh.fits},
               {"step_seconds", mesh.worst.seconds},
               {"samples_per_second", samples_per_second(question, mesh)},
               {"compute_seconds", mesh.worst.compute_seconds},
               {"exposed_communication_seconds", mesh.worst.stalled_seconds},
               {"read_seconds", mesh.worst.read_seconds},
               {"read_bytes_per_sample", mesh.worst.file_bytes / mesh.worst.samples_read}};
  json.update(bytes_json(mesh.worst));
  json["collectives"] = collectives_json(mesh.worst);
  return json;
}

std::string choices(const PlannedMesh& mesh) {
  std::vector<std::string> texts;
  if (mesh.zero != Zero::kNone) texts.push_back(concat("zero ", name(mesh.zero)));
  if (mesh.recompute != Recompute::kNone) texts.emplace_back("recompute");
  if (mesh.accumulate > 1) texts.push_back(concat("accumulate ", mesh.accumulate));
  return texts.empty() ? "-" : join(texts, ", ");
}

/// What to give jigsaw-train to run so.
std::string settings(const PlannedMesh& mesh) {
  return concat("--set 'mesh=", jigsaw::to_json(mesh.mesh).dump(), "' --set zero=", name(mesh.zero),
                " --set train.recompute=", name(mesh.recompute), " --set train.accumulate=", mesh.accumulate);
}

std::string gigabytes(double bytes) {
  char text[32];
  std::snprintf(text, sizeof text, bytes < 1e7 ? "%.5f" : "%.2f", 1e-9 * bytes);
  return text;
}

std::string line(const MeshQuestion& question, const std::string& number, const PlannedMesh& mesh) {
  const RankEstimate& rank = mesh.worst;
  char text[320];
  std::snprintf(text, sizeof text, "%4s  %-36s %-32s %10.1f %9.2f %6.0f%% %9s %9s %9s %9s %9s %9s%s\n",
                number.c_str(), to_string(mesh.mesh).c_str(), choices(mesh).c_str(), 1e3 * rank.seconds,
                samples_per_second(question, mesh), 100 * rank.compute_seconds / rank.seconds,
                gigabytes(static_cast<double>(rank.parameter_bytes)).c_str(),
                gigabytes(static_cast<double>(rank.gradient_bytes)).c_str(),
                gigabytes(static_cast<double>(rank.optimizer_bytes)).c_str(),
                gigabytes(static_cast<double>(rank.activation_bytes)).c_str(),
                gigabytes(static_cast<double>(rank.memory_bytes)).c_str(),
                gigabytes(rank.total_sent_bytes()).c_str(),
                !mesh.fits                          ? "  does not fit"
                : rank.read_seconds >= rank.seconds ? "  waits for files"
                                                    : "");
  return text;
}

std::string head() {
  char text[320];
  std::snprintf(text, sizeof text, "%4s  %-36s %-32s %10s %9s %7s %9s %9s %9s %9s %9s %9s\n", "", "mesh",
                "choices", "ms a step", "samples/s", "kernels", "parameters", "gradients", "optimizer",
                "activ.", "memory", "sent");
  return text;
}

std::string traffic_text(const PlannedMesh& mesh) {
  std::string text = "A rank sends in a step on the first of them:\n";
  for (const auto& [where, traffic] : mesh.worst.traffic) {
    char each[200];
    std::snprintf(each, sizeof each, "  %-14s along %-28s %7lld calls %9lld messages %12s GB\n",
                  jigsaw::name(where.second), where.first.c_str(), static_cast<long long>(traffic.calls),
                  static_cast<long long>(traffic.messages), gigabytes(traffic.bytes).c_str());
    text += each;
  }
  return mesh.worst.traffic.empty() ? "" : text;
}

}  // namespace

Json to_json(const MeshQuestion& question, const PlanReport& report) {
  Json json = {{"ranks", question.ranks},
               {"machine", jigsaw::to_json(question.machine)},
               {"memory_limit_bytes", question.memory_bytes},
               {"planned_meshes", report.answer.planned}};
  if (report.smallest > 0) json["smallest_ranks"] = report.smallest;
  if (report.configured) {
    Json& configured = json["configured"] = mesh_json(question, *report.configured);
    Json& ranks = configured["ranks"] = Json::array();
    for (const RankEstimate& rank : report.ranks) {
      Json& each = ranks.emplace_back(Json{{"rank", rank.rank}, {"coordinates", rank.coordinates}});
      each.update(bytes_json(rank));
    }
  }
  json["meshes"] = Json::array();
  for (const PlannedMesh& mesh : report.answer.best) json["meshes"].push_back(mesh_json(question, mesh));
  json["others"] = Json::array();
  for (const MeshBound& mesh : report.answer.others)
    json["others"].push_back(
        {{"mesh", jigsaw::to_json(mesh.mesh)}, {"step_seconds_at_least", mesh.at_least}});
  if (!report.explanations.empty()) json["explanations"] = report.explanations;
  return json;
}

std::string to_text(const MeshQuestion& question, const PlanReport& report) {
  std::string text = concat("On ", counted(question.ranks, "rank"), " of ", question.machine.name);
  if (question.memory_bytes > 0)
    text += concat(" with ", gigabytes(static_cast<double>(question.memory_bytes)), " GB each");
  text += concat("; GB of the rank that has most; a batch of ", question.configuration.train.batch_size,
                 question.configuration.train.rollout.most() > 1
                     ? concat(" over ", question.configuration.train.rollout.most(), " leads")
                     : "",
                 ":\n", head());
  int number = 0;
  for (const PlannedMesh& mesh : report.answer.best) text += line(question, std::to_string(++number), mesh);
  if (report.configured) text += concat("as configured:\n", line(question, "", *report.configured));
  if (!report.answer.best.empty()) {
    const RankEstimate& first = report.answer.best.front().worst;
    text += traffic_text(report.answer.best.front());
    text += concat("It computes ", 1e-12 * first.flops, " TFLOP and reads ",
                   gigabytes(first.file_bytes / first.samples_read),
                   " GB of each of its samples. To run so:\n  ", settings(report.answer.best.front()), "\n");
  }
  if (!report.answer.others.empty())
    text += concat(report.answer.others.size(), " other meshes were not planned, the first of which takes ",
                   1e3 * report.answer.others.front().at_least, " ms at least.\n");
  if (report.smallest > 0)
    text += concat("The smallest number of ranks that fits is ", report.smallest, ".\n");
  for (const std::string& explanation : report.explanations) text += "\n" + explanation;
  return text;
}

}  // namespace jigsaw::inline estimate

#include "commands.h"

namespace jigsaw {

std::function<ExitCode()> declare_train(const CommandOptions& command, const Invocation& invocation);
std::function<ExitCode()> declare_check(const CommandOptions& command, const Invocation& invocation);
std::function<ExitCode()> declare_init(const CommandOptions& command, const Invocation& invocation);
std::function<ExitCode()> declare_predict(const CommandOptions& command, const Invocation& invocation);
std::function<ExitCode()> declare_evaluate(const CommandOptions& command, const Invocation& invocation);
std::function<ExitCode()> declare_compare(const CommandOptions& command, const Invocation& invocation);
std::function<ExitCode()> declare_report(const CommandOptions& command, const Invocation& invocation);
std::function<ExitCode()> declare_plan(const CommandOptions& command, const Invocation& invocation);
std::function<ExitCode()> declare_verify(const CommandOptions& command, const Invocation& invocation);
std::function<ExitCode()> declare_gpu_check(const CommandOptions& command, const Invocation& invocation);
std::function<ExitCode()> declare_stats(const CommandOptions& command, const Invocation& invocation);
std::function<ExitCode()> declare_batch(const CommandOptions& command, const Invocation& invocation);
std::function<ExitCode()> declare_rechunk(const CommandOptions& command, const Invocation& invocation);
std::function<ExitCode()> declare_sample_data(const CommandOptions& command, const Invocation& invocation);
std::function<ExitCode()> declare_config(const CommandOptions& command, const Invocation& invocation);
std::function<ExitCode()> declare_export(const CommandOptions& command, const Invocation& invocation);
std::function<ExitCode()> declare_import(const CommandOptions& command, const Invocation& invocation);
std::function<ExitCode()> declare_inspect(const CommandOptions& command, const Invocation& invocation);
std::function<ExitCode()> declare_rules(const CommandOptions& command, const Invocation& invocation);
std::function<ExitCode()> declare_sweep(const CommandOptions& command, const Invocation& invocation);
std::function<ExitCode()> declare_completion(const CommandOptions& command, const Invocation& invocation);
std::function<ExitCode()> declare_manual(const CommandOptions& command, const Invocation& invocation);

const std::vector<Command>& command_table() {
  static const std::vector<Command> kTable = {
      {"train", "Train, as without a command (options: jigsaw-train --help)", declare_train,
       RunsOn::kEveryRank, true},
      {"check", "Open all that a run would need, plan it, read a batch, and end", declare_check,
       RunsOn::kEveryRank},
      {"init", "Write a first configuration that runs on these data files", declare_init, RunsOn::kFirstRank},
      {"predict", "Write what a trained model predicts, in physical units", declare_predict,
       RunsOn::kEveryRank, true},
      {"evaluate", "Score what a trained model predicts, as a validation without training", declare_evaluate,
       RunsOn::kEveryRank, true},
      {"compare", "Test whether the scores of two evaluations differ by more than chance", declare_compare,
       RunsOn::kFirstRank},
      {"report",
       "Write what runs left as one HTML file: curves, maps, time, memory, the mesh (docs/report.md)",
       declare_report, RunsOn::kFirstRank},
      {"plan", "Print what a step takes on the meshes of N ranks, without data, MPI or memory (docs/plan.md)",
       declare_plan, RunsOn::kEveryRank},
      {"verify",
       "Compare the first steps on these ranks with those on one rank, or on another mesh (docs/plan.md)",
       declare_verify, RunsOn::kEveryRank},
      {"gpu-check", "Try the GPUs of the started ranks and what connects them, and print how fast they are",
       declare_gpu_check, RunsOn::kEveryRank},
      {"stats", "Write the statistics of the training period", declare_stats, RunsOn::kEveryRank},
      {"batch", "Write a batch as the model is given it, for other programs and for a look", declare_batch,
       RunsOn::kEveryRank},
      {"rechunk", "Write the NetCDF files of a configuration in chunks that suit its mesh (docs/reading.md)",
       declare_rechunk, RunsOn::kEveryRank},
      {"sample-data", "Write a small ERA5-shaped data set", declare_sample_data, RunsOn::kFirstRank},
      {"config", "Explain the configuration", declare_config, RunsOn::kFirstRank},
      {"export", "Write the parameters of a checkpoint as safetensors", declare_export, RunsOn::kFirstRank},
      {"import", "Make a checkpoint for --init-from out of safetensors", declare_import, RunsOn::kFirstRank},
      {"inspect", "Print what checkpoints, safetensors or data files hold, and check them", declare_inspect,
       RunsOn::kFirstRank},
      {"rules", "Prove the sharding rules of every operation, and print them", declare_rules,
       RunsOn::kFirstRank},
      {"sweep",
       "Train one run of a search over keys of the configuration (--config, --set, … as for training)",
       declare_sweep, RunsOn::kEveryRank, true},
      {"completion", "Print what makes a shell complete commands and options", declare_completion,
       RunsOn::kFirstRank},
      {"manual", "Print the manual page (jigsaw-train manual | man -l -)", declare_manual,
       RunsOn::kFirstRank},
  };
  return kTable;
}

}  // namespace jigsaw

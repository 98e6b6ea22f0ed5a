#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "base/text.h"
#include "checkpoint/folder.h"
#include "checkpoint/inspect.h"
#include "checkpoint/safetensors.h"
#include "comm/self/self.h"
#include "commands.h"
#include "samples/statistics.h"

namespace jigsaw {

namespace {

struct ExportOptions {
  std::string checkpoint, output;
  bool average = false;
  bool no_verify = false;
};

/// Whole parameters of a checkpoint as safetensors.
ExitCode export_parameters(const ExportOptions& options) {
  Context context = Context::make_host(Backend::kReference, 1);
  const std::unique_ptr<Communicator> self = make_self_communicator(context);
  const Verify verify = options.no_verify ? Verify::kSizesOnly : Verify::kBytes;
  const char* group = options.average ? "average" : "parameters";
  with_checkpoint(options.checkpoint, *self, verify, [&](const FoundCheckpoint& found) {
    int tensors = 0;
    as_checkpoint_error([&] { tensors = export_safetensors(found, group, options.output, context); });
    std::cout << "wrote " << counted(tensors, "tensor") << " of " << found.path << " to " << options.output
              << (options.average ? ", their moving average"
                  : found.stored.find_group("average") != nullptr
                      ? ", the weights of its last step; --average writes their moving average, which "
                        "predict and evaluate take"
                      : "")
              << '\n';
  });
  return ExitCode::kDone;
}

/// The way back: a checkpoint of parameters alone, for --init-from.
ExitCode import_parameters(const std::string& input, const std::string& output) {
  Context context = Context::make_host(Backend::kReference, 1);
  Imported imported;
  const auto check = [](const std::string& text, const std::string& source) {
    Statistics::from_text(text, source);
  };
  as_checkpoint_error([&] { imported = import_safetensors(input, output, context, check); });
  if (const auto more = std::ssize(imported.left_out); more > 0) {
    print_warning(concat(imported.left_out.front(), more > 1 ? concat(" and ", more - 1, " more") : "",
                         more > 1 ? " are" : " is", " of whole numbers, and no parameter: left out"),
                  0, 1);
  }
  std::cout << "wrote " << imported.path << "; a run begins with these parameters by --init-from "
            << imported.path << '\n';
  return ExitCode::kDone;
}

/// Prints what checkpoints and data files hold. @throws CheckpointError  behind them all, of the first that
/// is damaged.
ExitCode inspect_files(const std::vector<std::string>& paths) {
  std::string damage;
  for (const std::string& path : paths) {
    Inspection inspection;
    as_checkpoint_error([&] { inspection = inspect(path); });
    std::cout << inspection.text << std::flush;
    if (damage.empty()) damage = inspection.damage;
  }
  if (!damage.empty()) throw CheckpointError(damage);
  return ExitCode::kDone;
}

}  // namespace

std::function<ExitCode()> declare_export(const CommandOptions& command, const Invocation& /*invocation*/) {
  auto options = std::make_shared<ExportOptions>();
  command.add_option("--checkpoint", options->checkpoint, "The checkpoint's folder").required().not_empty();
  command.add_option("--output", options->output, "The file to write").required().not_empty();
  command.add_flag("--average", options->average, "Their moving average in place of the parameters");
  command.add_flag("--no-verify", options->no_verify, "Do not check the checkpoint's digests first");
  return [options] { return export_parameters(*options); };
}

std::function<ExitCode()> declare_import(const CommandOptions& command, const Invocation& /*invocation*/) {
  auto input = std::make_shared<std::string>(), output = std::make_shared<std::string>();
  command.add_option("--input", *input, "The safetensors file").required().not_empty();
  command.add_option("--output", *output, "Folder for the checkpoint").required().not_empty();
  return [input, output] { return import_parameters(*input, *output); };
}

std::function<ExitCode()> declare_inspect(const CommandOptions& command, const Invocation& /*invocation*/) {
  auto paths = std::make_shared<std::vector<std::string>>();
  command.add_option("paths", *paths, "The files or folders").required().not_empty();
  return [paths] { return inspect_files(*paths); };
}

}  // namespace jigsaw

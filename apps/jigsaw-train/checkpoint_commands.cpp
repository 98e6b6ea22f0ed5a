#include <iostream>

#include "base/text.h"
#include "checkpoint/folder.h"
#include "checkpoint/inspect.h"
#include "checkpoint/safetensors.h"
#include "comm/self/self.h"
#include "commands.h"

namespace jigsaw {

void run_export(const ExportCommand& command) {
  Context context = Context::make_host(Backend::kReference, 1);
  const std::unique_ptr<Communicator> self = make_self_communicator(context);
  const Verify verify = command.no_verify ? Verify::kSizesOnly : Verify::kBytes;
  const FoundCheckpoint found = open_checkpoint(command.checkpoint, *self, verify);
  const char* group = command.average ? "average" : "parameters";
  int tensors = 0;
  as_checkpoint_error([&] { tensors = export_safetensors(found, group, command.output, context); });
  std::cout << "wrote " << tensors << " tensors of " << found.path << " to " << command.output << '\n';
}

void run_import(const ImportCommand& command) {
  Context context = Context::make_host(Backend::kReference, 1);
  std::string path;
  as_checkpoint_error([&] { path = import_safetensors(command.input, command.output, context); });
  std::cout << "wrote " << path << "; a run begins with these parameters by --init-from " << path << '\n';
}

void run_inspect(const std::string& path) {
  Inspection inspection;
  as_checkpoint_error([&] { inspection = inspect(path); });
  std::cout << inspection.text << std::flush;
  if (!inspection.damage.empty()) throw CheckpointError(inspection.damage);
}

}  // namespace jigsaw

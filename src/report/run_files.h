#pragma once
#include <functional>
#include <memory>
#include <string>

#include "base/log.h"
#include "report/event_file.h"
#include "report/examples.h"
#include "train/run_observer.h"

namespace jigsaw::inline report {

struct RunFilesOptions {
  bool report = false;       ///< placement.json, examples.json and .nc, and in the end report.html
  bool tensorboard = false;  ///< tensorboard/events.out.tfevents…
};

/// What a run leaves for eyes, beside its own files. What cannot be written is warned of once each, and the
/// run goes on.
class RunFiles final : public RunObserver {
 public:
  RunFiles(const RunFilesOptions& options, Log& log) : options_(options), log_(log) {}

  void begin(OpenedRun& run, const RunDirectory& directory, std::int64_t step) override;
  bool needs_origin() const override { return origin_; }
  void metrics(const Json& line) override;
  void predicted(std::int64_t batch, int lead, const ShardedTensor& prediction, const Batch& truth) override;
  void validated(std::int64_t step, ValidationResult& result) override;
  void end() override;

 private:
  void add_scalars(const std::string& prefix, const Json& values, std::int64_t step,
                   const std::string& ending);
  void add_images(const Examples& examples);
  /// Does it, or warns of what kept it from being done.
  void try_to(const std::string& what, const std::function<void()>& work);

  RunFilesOptions options_;
  Log& log_;
  std::string folder_;
  bool origin_ = false;
  std::unique_ptr<ExampleCollector> collector_;
  std::unique_ptr<EventFile> events_;  ///< on the rank that writes
  std::vector<std::string> warned_;
};

}  // namespace jigsaw::inline report

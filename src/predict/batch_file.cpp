#include "predict/batch_file.h"

#include <array>
#include <optional>

#include "array/transfer.h"
#include "base/text.h"
#include "files/netcdf_output.h"
#include "samples/dataset.h"

namespace jigsaw::inline predict {

namespace {

class BatchFile {
 public:
  BatchFile(OpenedRun& run, const std::vector<Batch>& parts, const Context& host, const std::string& path)
      : run_(run),
        parts_(parts),
        host_(host),
        file_(path, NetcdfOutput::Format::kNetcdf4),
        wide_(parts.front().input.dtype() == DType::kFloat64) {
    const Shape& input = parts.front().input.shape();
    std::int64_t samples = 0;
    for (const Batch& part : parts) samples += part.input.shape()[0];
    const int sample = add_dimension("sample", samples);
    std::vector<int> space;
    constexpr std::array<const char*, 3> kSpace = {"z", "y", "x"};
    for (int d = 1; d + 1 < input.rank(); ++d)
      space.push_back(
          add_dimension(kSpace[kSpace.size() - static_cast<std::size_t>(input.rank() - 1 - d)], input[d]));
    const int input_channel = add_dimension("input_channel", input.back());
    const int target_channel = add_dimension("target_channel", parts.front().targets.front().shape().back());
    const int lead = add_dimension("lead", std::ssize(parts.front().targets));
    const auto with = [&](std::vector<int> before, int channel) {
      before.insert(before.end(), space.begin(), space.end());
      before.push_back(channel);
      return before;
    };
    const Channels& channels = run.data().channels();
    input_ = add_variable("input", with({sample}, input_channel), channels.inputs);
    target_ = add_variable("target", with({lead, sample}, target_channel), channels.targets);
    if (const auto behind = std::ssize(parts.front().forcings); behind > 0)
      forcing_ = add_variable("forcing", with({add_dimension("lead_behind", behind), sample}, input_channel),
                              channels.inputs);
    add_texts();
    if (const auto* forecasts = dynamic_cast<const Dataset*>(&run.data())) {
      time_ = file_.add_variable("time", NetcdfOutput::Type::kDouble, {sample});
      const Calendar calendar = forecasts->files().calendar();
      file_.add_text(time_, "units",
                     calendar == Calendar::kNone ? "seconds" : "seconds since 1970-01-01 00:00:00");
      if (calendar != Calendar::kNone) file_.add_text(time_, "calendar", name(calendar));
    }
    file_.end_definitions();
  }

  void write() {
    std::int64_t sample = 0;
    std::vector<double> times;
    for (const Batch& part : parts_) {
      put(input_, {}, sample, part.input);
      for (std::size_t lead = 0; lead < part.targets.size(); ++lead)
        put(target_, lead, sample, part.targets[lead]);
      for (std::size_t lead = 0; lead < part.forcings.size(); ++lead)
        put(forcing_, lead, sample, part.forcings[lead]);
      sample += part.input.shape()[0];
      for (const Time time : part.times) times.push_back(static_cast<double>(time));
    }
    if (time_ >= 0) file_.write(time_, times);
    file_.close();
  }

 private:
  int add_dimension(const char* name, std::int64_t extent) {
    return file_.add_dimension(name, static_cast<std::size_t>(extent));
  }

  int add_variable(const char* name, const std::vector<int>& dimensions,
                   const std::vector<Channel>& channels) {
    const int variable = file_.add_variable(
        name, wide_ ? NetcdfOutput::Type::kDouble : NetcdfOutput::Type::kFloat, dimensions);
    std::vector<std::string> names;
    std::vector<double> offsets;
    for (const Channel& channel : channels) {
      names.push_back(channel.name);
      offsets.push_back(static_cast<double>(channel.offset));
    }
    file_.add_text(variable, "channels", Json(names).dump());
    const DataOptions& data = run_.configuration().data;
    if (!data.of_images() && !offsets.empty())
      file_.add_numbers(variable, data.of_sequences() ? "offset_steps" : "offset_seconds", offsets);
    return variable;
  }

  void add_texts() {
    const DataOptions& data = run_.configuration().data;
    file_.add_text(NetcdfOutput::kFile, "statistics", run_.data().statistics().to_text());
    if (!data.of_images())
      file_.add_text(NetcdfOutput::kFile, "predict", data.predict == Predict::kState ? "state" : "increment");
  }

  /// @param lead  the number along the first axis, of a variable that has one.
  void put(int variable, std::optional<std::size_t> lead, std::int64_t sample, const Array& values) {
    Box box;
    if (lead) {
      box.begin.append(static_cast<std::int64_t>(*lead));
      box.extent.append(1);
    }
    for (int d = 0; d < values.rank(); ++d) {
      box.begin.append(d == 0 ? sample : 0);
      box.extent.append(values.shape()[d]);
    }
    const std::vector<double> all = download_values(host_, values);
    if (wide_) {
      file_.write(variable, box, std::span<const double>(all));
    } else {
      const std::vector<float> narrow(all.begin(), all.end());
      file_.write(variable, box, std::span<const float>(narrow));
    }
  }

  OpenedRun& run_;
  const std::vector<Batch>& parts_;
  const Context& host_;
  NetcdfOutput file_;
  bool wide_;
  int input_ = -1, target_ = -1, forcing_ = -1, time_ = -1;
};

}  // namespace

void write_batch(OpenedRun& run, const std::vector<Batch>& parts, const Context& host, OutputFile& output) {
  BatchFile(run, parts, host, output.temporary()).write();
}

}  // namespace jigsaw::inline predict

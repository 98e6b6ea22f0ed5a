#include <filesystem>

#include "base/disk.h"
#include "base/error.h"
#include "base/file.h"
#include "base/output_place.h"
#include "base/progress_bar.h"
#include "base/text.h"
#include "comm/agreement.h"
#include "commands.h"
#include "fields/data_file.h"
#include "fields/new_files.h"
#include "fields/shared_files.h"
#include "files/rechunk.h"
#include "samples/read_layout.h"
#include "samples/statistics.h"
#include "task/objective.h"
#include "task/odd_values.h"
#include "task/opened_run.h"
#include "train/data_report.h"

namespace jigsaw {

namespace {

namespace fs = std::filesystem;

struct StatsOptions {
  ConfigArguments configuration;
  std::string output;
};

struct RechunkOptions {
  ConfigArguments configuration;
  std::string output;  ///< folder
  int ranks = 0;       ///< that are to read the copies; 0: those that were started
  int deflate = 1;
  bool overwrite = false;
};

/// The pieces that a mesh cuts rows and columns into.
Shape pieces_of(const Configuration& configuration, int ranks, const Shape& grid) {
  const MeshOptions mesh = resolved_mesh(configuration.mesh, ranks, grid, {1, 1});
  Shape pieces = Shape::filled(2, 1);
  for (std::size_t d = 0; d < mesh.domain.size() && d < 2; ++d) pieces[static_cast<int>(d)] = mesh.domain[d];
  return pieces;
}

/// Chunks of the horizontal dimensions of a file's fields.
std::map<std::string, std::int64_t> chunks_in(const std::string& path, const Shape& pieces,
                                              External external) {
  std::map<std::string, std::int64_t> chunks;
  DataFile file(open_variables(path, Dimensions::kByName, external));
  for (const FileVariable& variable : file.file().variables()) {
    const FieldAxes axes = file.axes(variable);
    if (!variable.numeric() || !axes.horizontal()) continue;
    if (axes.cells >= 0) {
      constexpr std::int64_t kFewest = std::int64_t{1} << 14;
      const std::string& name = variable.dimensions[static_cast<std::size_t>(axes.cells)];
      const std::int64_t points = variable.shape[axes.cells];
      chunks[name.substr(name.rfind('/') + 1)] = std::min(points, std::max(points / pieces.count(), kFewest));
      continue;
    }
    const Shape extents =
        chunks_for({variable.shape[axes.latitude], variable.shape[axes.longitude]}, pieces, variable.bytes);
    for (const auto& [axis, extent] :
         {std::pair{axes.latitude, extents[0]}, std::pair{axes.longitude, extents[1]}}) {
      // Dimensions carry their groups in our names, and not in NetCDF's.
      const std::string& name = variable.dimensions[static_cast<std::size_t>(axis)];
      chunks[name.substr(name.rfind('/') + 1)] = extent;
    }
  }
  return chunks;
}

/// @throws ConfigError  when no copy may have this name.
void check_place(const std::string& to, const std::vector<std::string>& inputs, bool overwrite) {
  const auto refuse = [&](const std::string& why) { throw ConfigError(concat("--output: ", to, why)); };
  std::error_code error;
  const fs::file_status status = fs::symlink_status(to, error);
  if (status.type() == fs::file_type::not_found) return;
  if (status.type() == fs::file_type::none) refuse(concat(" cannot be written: ", error.message()));
  if (!fs::is_regular_file(status)) refuse(" is no regular file, and is not replaced");
  if (!overwrite) refuse(" is there already; say --overwrite to replace it");
  for (const std::string& from : inputs) {
    if (fs::equivalent(to, from, error)) refuse(" is a file that is read; name another folder");
  }
}

/// The deepest folder that holds all files.
fs::path common_folder(const std::vector<std::string>& paths) {
  fs::path common = fs::absolute(paths.front()).lexically_normal().parent_path();
  const auto holds = [&](const std::string& path) {
    const fs::path within = fs::absolute(path).lexically_normal().lexically_relative(common);
    return *within.begin() != "..";
  };
  for (const std::string& path : paths) {
    while (!holds(path)) common = common.parent_path();
  }
  return common;
}

/// What is to be written, in the order of the files: in folders as theirs.
std::vector<Rechunk> plan_copies(const RechunkOptions& options, const Job& job,
                                 const VariableSources& sources, const std::vector<std::string>& paths) {
  const DataOptions& data = job.configuration.data;
  if (data.makani.given())
    throw ConfigError("rechunk is for NetCDF files that name their dimensions, not for those of data.makani");
  FileSelection selection;
  selection.member = data.member;
  selection.sources = sources;
  selection.regrid = {data.regrid.method, data.regrid.variables, {}, {}};
  const FileOpener open = opener(Dimensions::kByName, data.external());
  // Lists of points have no grid of their own.
  if (FileSet(paths, selection, open).has_lists()) selection.regrid = data.regrid;
  FileSet files(paths, selection, open);
  const Channels channels = make_channels(data, false);
  for (const Channel& channel : channels.targets) files.select(channel.field, true);
  const int ranks = options.ranks > 0 ? options.ranks : job.world.size();
  const Shape pieces = pieces_of(job.configuration, ranks, files.grid().shape());
  std::vector<Rechunk> copies;
  const fs::path common = common_folder(paths);
  for (const std::string& path : paths) {
    std::error_code ignored;
    if (!fs::is_regular_file(path, ignored))
      throw DataError(concat("cannot rechunk ", path, ": it is no NetCDF file"));
    const fs::path place = fs::absolute(path).lexically_normal().lexically_relative(common);
    Rechunk copy{path, (fs::path(options.output) / place).string(), chunks_in(path, pieces, data.external()),
                 options.deflate, data.external()};
    check_place(copy.to, paths, options.overwrite);
    copies.push_back(std::move(copy));
  }
  return copies;
}

std::int64_t bytes_of(const Rechunk& copy) {
  const auto file = open_variables(copy.from, Dimensions::kByName, copy.external);
  std::int64_t bytes = 0;
  for (const FileVariable& variable : file->variables())
    bytes += variable.numeric() ? variable.shape.count() * variable.bytes : 0;
  return bytes;
}

void write_share(const std::vector<Rechunk>& copies, Job& job) {
  std::int64_t all = 1, written = 0;
  const auto first = static_cast<std::size_t>(job.world.rank()),
             step = static_cast<std::size_t>(job.world.size());
  for (std::size_t i = first; i < copies.size(); i += step) all += bytes_of(copies[i]);
  ProgressBar bar(job.log, "rechunk");
  for (std::size_t i = first; i < copies.size(); i += step) {
    rechunk(copies[i], [&](std::int64_t bytes) {
      written += bytes;
      bar.update(written, all);
    });
  }
}

/// Writes the statistics of the training period, for data.normalization.
ExitCode run_stats(const StatsOptions& options) {
  return run_job(options.configuration, [&](Job& job) {
    Configuration configuration = job.configuration;
    configuration.data.normalization.reset();
    together(job.world, [&] {
      if (job.world.rank() != 0) return;
      check_output_place("--output", options.output, "holds no statistics", [](const std::string& path) {
        Statistics::load(path);
        return true;
      });
      try {
        const Replacement attempt(options.output);
      } catch (const FileError& error) {
        refuse_output<ConfigError>(error, concat("command line: --output: ", error.what()));
      }
    });
    DataUse use;
    use.valid = false;
    // Of fields the periods say what is read, of images and sequences the parts that are opened for training.
    use.train = !configuration.data.dims.empty();
    use.pass.cache = cache_folder();
    tell_statistics(use.pass, job.log);
    const auto objective = open_objective(configuration, job.folder, job.world, use);
    together(job.world, [&] {
      if (job.world.rank() != 0) return;
      objective->data().statistics().save(options.output);
      if (const auto odd = odd_values_warning(objective->data().statistics())) job.log.warn(*odd);
      const auto* fields = dynamic_cast<const Dataset*>(&objective->data());
      if (fields == nullptr) return;
      const DataReport report = report_states(*fields);
      for (const std::string& line : report.lines) job.log.info(line);
      for (const std::string& warning : report.warnings) job.log.warn(warning);
    });
    job.log.info(concat("wrote ", options.output, "; data.normalization takes it"));
    return ExitCode::kDone;
  });
}

/// Writes the NetCDF files of a configuration in chunks that suit its mesh; ranks share the files.
ExitCode run_rechunk(const RechunkOptions& options) {
  return run_job(options.configuration, [&](Job& job) {
    const DataOptions& data = job.configuration.data;
    std::vector<Rechunk> copies;
    together(job.world, [&] {
      if (!data.dims.empty())
        throw ConfigError(
            "rechunk is for fields on latitude and longitude, and data.dims makes these images or sequences; "
            "chunks of HDF5 files are set by h5repack -l CHUNK=…");
    });
    std::vector<std::string> paths;
    const auto expand = [&](const std::vector<std::string>& patterns) {
      return expand_together(patterns, job.folder, job.world);
    };
    const VariableSources sources = sources_of(data, expand, paths);
    tell_mesh(job, options.ranks > 0 ? options.ranks : job.world.size());
    probe_new_files(paths, Dimensions::kByName, data.external(), cache_folder(), job.world);
    together(job.world, [&] {
      copies = plan_copies(options, job, sources, paths);
      for (const Rechunk& copy : copies) {
        const fs::path folder = fs::path(copy.to).parent_path();
        std::error_code error;
        fs::create_directories(folder, error);
        if (error)
          refuse_output<ConfigError>(
              error, concat("--output: ", folder.string(), " cannot be made: ", error.message()));
      }
    });
    for (const auto& [dimension, extent] : copies.front().chunks)
      job.log.info(concat("chunks of ", extent, " along ", dimension));
    together(job.world, [&] { write_share(copies, job); });
    job.log.info(concat("wrote ", counted(std::ssize(copies), "file"), " to ", options.output, " and read ",
                        copies.size() == 1 ? "it" : "them", " back"));
    return ExitCode::kDone;
  });
}

}  // namespace

std::function<ExitCode()> declare_stats(const CommandOptions& command, const Invocation& /*invocation*/) {
  auto options = std::make_shared<StatsOptions>();
  add_configuration(command, options->configuration).required();
  command.add_option("--output", options->output, "The file to write (JSON), for data.normalization")
      .required()
      .not_empty();
  return [options] { return run_stats(*options); };
}

std::function<ExitCode()> declare_rechunk(const CommandOptions& command, const Invocation& /*invocation*/) {
  auto options = std::make_shared<RechunkOptions>();
  add_configuration(command, options->configuration).required();
  command.add_option("--output", options->output, "Folder for the copies").required().not_empty();
  command.add_option("--ranks", options->ranks, "That will read them; default: those that are started")
      .within(1, 1 << 20);
  command.add_option("--deflate", options->deflate, "Level of compression; 0: none; default 1").within(0, 9);
  command.add_flag("--overwrite", options->overwrite, "Replace files that are there");
  return [options] { return run_rechunk(*options); };
}

}  // namespace jigsaw

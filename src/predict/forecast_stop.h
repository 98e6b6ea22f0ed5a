#pragma once
#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "comm/communicator.h"
#include "predict/written_leads.h"

namespace jigsaw::inline predict {

/// Whether any rank was asked to stop. Collective. @param stop  not 0 where this one was; or null
bool stop_is_asked(const std::atomic<int>* stop, Communicator& world);

/// How far forecasts came, batch by batch in the order of their starts.
struct ForecastsMade {
  std::int64_t starts = 0, leads = 0;  ///< in the file
  std::int64_t whole = 0;              ///< starts that reached the last step
  std::int64_t states = 0;             ///< starts whose state is in the file of these, if it is kept
  int step = 0;                        ///< the last one of the last batch; of means that of a whole one
  bool stopped = false;
  bool outside = false;                ///< stopped where states left what the model was trained on
  bool kept = false;                   ///< there is a file of states; on the rank that writes
  std::optional<Error> state_failure;  ///< why there is none, where one was to be; on the rank that writes
  std::int64_t steps = 0;              ///< of all forecasts together
  std::int64_t bytes = 0;
};

/// Whether what stands under the name of an output are forecasts that a signal ended before they were whole,
/// as stop_comment() says it in them.
/// @throws ConfigError  for a file that is none of forecasts.
bool is_cut_short(const std::string& path);

/// What the file says of forecasts that were stopped; "" where it lacks nothing all the same.
/// @param starts  of all that were asked for, as text
std::string stop_comment(const ForecastsMade& made, const WrittenLeads& leads,
                         const std::vector<std::string>& starts);
/// What is said of them, with the options that make the rest. @param output  its name. @param there  whether
/// there is a file of that name.
std::string stop_sentence(const ForecastsMade& made, const WrittenLeads& leads,
                          const std::vector<std::string>& starts, const std::string& output, bool there);

}  // namespace jigsaw::inline predict

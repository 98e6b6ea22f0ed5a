#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace jigsaw::inline train {

/// How long a run will still take, from what its steps, validations and saves took so far. Knows no clock:
/// it is told durations, in seconds.
///
/// A step counts as the mean of the latter half of those seen, at least of kFewest; the run's first one,
/// which pays for what happens once, is left out. As long as few were seen, one that took more than twice the
/// median counts as twice the median, so that a hiccup does not decide. Validations and saves count as the
/// mean of those seen; before the first, as expected.
class TimeLeft {
 public:
  /// @param steps           number of the last step.
  /// @param validate_every  validations follow each so manieth step and the last one; 0: none does.
  /// @param save_every      saves likewise.
  TimeLeft(std::int64_t steps, std::int64_t validate_every, std::int64_t save_every);

  void expect_validation(double seconds) { validation_.expected = seconds; }
  void expect_save(double seconds) { save_.expected = seconds; }

  /// What a step took without the validations and saves behind it, in the order of steps.
  void step(double seconds);
  void validation(double seconds) { validation_.add(seconds); }
  /// What a save held the run up.
  void save(double seconds) { save_.add(seconds); }

  /// Seconds for all that follows a step; what comes right behind it (its validation, its save) included or
  /// not. Nothing before a second step was seen.
  std::optional<double> after(std::int64_t step, bool with_its_own) const;

  /// The last line of the opening summary, once: when kEnoughToExpect steps were seen and others follow.
  /// "expected time: 1:02:03 for the 590 steps to come, with their validations and saves".
  std::optional<std::string> expectation(std::int64_t step) const;

 private:
  /// Steps, without the run's first, after which what is expected is said.
  static constexpr std::int64_t kEnoughToExpect = 9;
  static constexpr std::int64_t kFewest = 256;
  /// Steps seen from which on the mean is a mean.
  static constexpr std::size_t kEnough = 64;
  /// Sums that are kept; when there are so many, neighbours are added up.
  static constexpr std::size_t kSums = 128;

  struct Event {
    double sum = 0, expected = 0;
    std::int64_t count = 0;
    void add(double seconds) {
      sum += seconds;
      ++count;
    }
    double seconds() const { return count > 0 ? sum / static_cast<double>(count) : expected; }
  };

  double step_seconds() const;
  /// How often what happens `every` so many steps does from a step on.
  std::int64_t times(std::int64_t every, std::int64_t from) const;

  std::int64_t steps_, validate_every_, save_every_;
  Event validation_, save_;
  bool begun_ = false;
  std::vector<double> first_;  ///< seconds of the first kEnough steps
  std::vector<double> sums_;   ///< of all steps, each over each_ of them; the last may lack some
  std::int64_t each_ = 1, seen_ = 0;
};

}  // namespace jigsaw::inline train

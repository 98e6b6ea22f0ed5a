#include "optim/parameter_average.h"

#include "kernels/copy.h"
#include "kernels/optimizer.h"

namespace jigsaw::inline optim {

ParameterAverage::ParameterAverage(OwnedParameters& owned, double decay) : owned_(owned), decay_(decay) {
  if (decay == 0) return;
  for (const OwnedParameters::Part& part : owned.parts()) {
    const Array values = part.group->owned();
    averages_.emplace_back(owned.rank().context, values.shape(), values.dtype(), Purpose::kOptimizer);
  }
  begin();
}

void ParameterAverage::begin() {
  for (std::size_t i = 0; i < averages_.size(); ++i) {
    const Box all = Box::whole(averages_[i].shape());
    copy_box(owned_.rank().context, owned_.parts()[i].group->owned(), all, averages_[i], all);
  }
}

void ParameterAverage::follow(const Array& numbers) {
  for (std::size_t i = 0; i < averages_.size(); ++i) {
    exponential_average(owned_.rank().context, decay_, numbers, averages_[i],
                        owned_.parts()[i].group->owned());
  }
}

void ParameterAverage::swap() {
  if (!kept()) return;
  Context& context = owned_.rank().context;
  for (std::size_t i = 0; i < averages_.size(); ++i) {
    Array values = owned_.parts()[i].group->owned();
    const Box all = Box::whole(values.shape());
    const Array other = extract_box(context, values, all, Purpose::kWorkspace);
    copy_box(context, averages_[i], all, values, all);
    copy_box(context, other, all, averages_[i], all);
  }
  owned_.share();
}

std::int64_t ParameterAverage::bytes() const {
  std::int64_t bytes = 0;
  for (const Array& average : averages_) bytes += average.bytes();
  return bytes;
}

}  // namespace jigsaw::inline optim

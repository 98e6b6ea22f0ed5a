#include <algorithm>
#include <array>
#include <cctype>
#include <utility>

#include "base/text.h"
#include "report/figures.h"

namespace jigsaw::inline report {

namespace {

bool has_unit(const std::string& units) {
  return !units.empty() && units != "1";
}

constexpr std::array<std::pair<const char*, const char*>, 23> kMeasureWords = {
    {{"rmse", "RMSE"},
     {"mae", "MAE"},
     {"bias", "bias"},
     {"acc", "ACC"},
     {"persistence_rmse", "RMSE of persistence"},
     {"climatology_rmse", "RMSE of the climatology"},
     {"input_rmse", "RMSE of the input"},
     {"vrmse", "VRMSE"},
     {"crps", "CRPS"},
     {"spread", "spread"},
     {"spread_skill", "spread / error"},
     {"crps_skill", "skill of the CRPS"},
     {"csi", "CSI"},
     {"psnr", "PSNR"},
     {"ssim", "SSIM"},
     {"input_psnr", "PSNR of the input"},
     {"input_ssim", "SSIM of the input"},
     {"dice", "Dice"},
     {"mean_dice", "mean Dice"},
     {"foreground_dice", "foreground Dice"},
     {"hd95", "HD95"},
     {"accuracy", "accuracy"},
     {"scored", "share with a truth"}}};

}  // namespace

std::string with_unit(const std::string& number, const std::string& units) {
  return has_unit(units) ? concat(number, " ", units) : number;
}

std::string quantity(const std::string& name, const std::string& units) {
  return has_unit(units) ? concat(name, " (", units, ")") : name;
}

std::string squared(const std::string& units) {
  if (!has_unit(units)) return "";
  const bool alone =
      std::ranges::all_of(units, [](unsigned char c) { return std::isalpha(c) != 0 || c >= 0x80; });
  return alone ? units + "²" : concat("(", units, ")²");
}

std::string words_of(const std::string& measure) {
  const auto known = std::ranges::find(kMeasureWords, measure, [](const auto& entry) { return entry.first; });
  return known == kMeasureWords.end() ? measure : known->second;
}

}  // namespace jigsaw::inline report

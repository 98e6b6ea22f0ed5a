#include <map>

#include "autograd/operations.h"
#include "kernels/contraction.h"
#include "proof/operation_cases.h"

namespace jigsaw {

namespace {

Shape shape_of(const std::string& letters, const std::map<char, std::int64_t>& extents) {
  Shape shape;
  for (const char letter : letters) shape.append(extents.at(letter));
  return shape;
}

OperationCase contraction(const std::string& text) {
  const ContractionSpec spec = ContractionSpec::parse(text);
  std::vector<std::vector<Shape>> inputs;
  // Extents of the letters in turn.
  for (const std::vector<std::int64_t>& cycle : {std::vector<std::int64_t>{3, 5, 4}, {4, 2, 5}, {5, 3, 1}}) {
    std::map<char, std::int64_t> extents;
    for (const char letter : spec.a + spec.b)
      extents.try_emplace(letter, cycle[extents.size() % cycle.size()]);
    inputs.push_back({shape_of(spec.a, extents), shape_of(spec.b, extents)});
  }
  return make_case(text, inputs, [text](Tape& tape, const std::vector<Variable>& x) {
    return contract(tape, text, x[0], x[1]);
  });
}

}  // namespace

std::vector<OperationCase> contraction_cases() {
  std::vector<OperationCase> cases;
  for (const char* text : {"bk,nk->bn", "bhwk,nk->bhwn", "bdhwk,nk->bdhwn",          // linear
                           "bhwcp,ncp->bhwn", "bhwn,cpn->bhwcp",                     // patches in and out
                           "bhwc,thw->btc", "btc,hwt->bhwc",                         // token mixing
                           "bdhwc,tdhw->btc",                                        // of volumes
                           "bqhd,bkhd->bhqk", "bhqk,bkhd->bqhd", "bhwk,bkn->bhwn"})  // two fields
    cases.push_back(contraction(text));
  return cases;
}

}  // namespace jigsaw

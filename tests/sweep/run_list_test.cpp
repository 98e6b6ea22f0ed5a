#include "sweep/run_list.h"

#include <gtest/gtest.h>

#include <thread>

#include "support/temporary_folder.h"

namespace jigsaw {
namespace {

using testing::put_text;
using testing::TemporaryFolder;

TEST(RunList, NumbersStayWhenTheSearchGrows) {
  const TemporaryFolder folder;
  RunList::update(folder.path(), {{{"a", 2}}, {{"a", 3}}});
  const RunList list = RunList::update(folder.path(), {{{"a", 1}}, {{"a", 2}}, {{"a", 3}, {"b", true}}});
  ASSERT_EQ(list.runs().size(), 4U);
  EXPECT_EQ(list.runs()[0].name, "a=2");
  EXPECT_EQ(list.runs()[1].name, "a=3");
  EXPECT_EQ(list.runs()[2].name, "a=1");
  EXPECT_EQ(list.runs()[3].name, "a=3,b=true");
}

TEST(RunList, TasksThatStartTogetherSeeOneList) {
  const TemporaryFolder folder;
  std::vector<std::thread> tasks;
  for (int task = 0; task < 8; ++task) {
    tasks.emplace_back([&folder, task] {
      for (int i = 0; i < 10; ++i) RunList::update(folder.path(), {{{"a", task * 10 + i}}});
    });
  }
  for (std::thread& task : tasks) task.join();
  EXPECT_EQ(RunList::preview(folder.path(), {}).runs().size(), 80U);
}

TEST(RunList, PreviewWritesNothing) {
  const TemporaryFolder folder;
  EXPECT_EQ(RunList::preview(folder.path() + "/new", {{{"a", 1}}}).runs().size(), 1U);
  EXPECT_FALSE(std::filesystem::exists(folder.path() + "/new"));
}

TEST(RunList, FilesThatAreNoListAreRefused) {
  for (const char* text :
       {"", "[]", "{\"format\": 2, \"runs\": []}", "{\"format\": 1, \"runs\": [{\"name\": 3}]}",
        "{\"format\": 1, \"runs\": [{\"name\": \"../x\", \"set\": {}}]}"}) {
    const TemporaryFolder folder;
    put_text(folder.path() + "/sweep.json", text);
    EXPECT_THROW(RunList::update(folder.path(), {{{"a", 1}}}), ConfigError) << text;
    EXPECT_EQ(testing::text_of(folder.path() + "/sweep.json"), text);
  }
}

}  // namespace
}  // namespace jigsaw

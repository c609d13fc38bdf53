// Tables of a profile out of joined records.
#include "profile/build.hpp"

#include <gtest/gtest.h>

namespace etwrelog::profile {
namespace {

constexpr std::uint64_t kCode = 0x7FF6'0000'0000;

const ParallelFor kOneByOne = [](std::size_t count, const std::function<void(std::size_t)> &body) {
  for (std::size_t i = 0; i < count; ++i)
    body(i);
};

// A sample of a thread that has no stack.
void add_sample(Records &records, std::int64_t time, std::uint32_t thread) {
  Subject subject;
  subject.time = time;
  subject.thread = thread;
  subject.ip = kCode + 0x1000;
  records.subjects.push_back(subject);
}

Profile built(Records records, const ReadFrames &read_frames = {}, std::stop_token stop = {}) {
  Profile profile;
  BuildOptions options;
  options.stop = std::move(stop);
  build(records, Clock(), read_frames, options, kOneByOne, profile);
  return profile;
}

// An id is used again: each owner has its own names, of which the last stays.
TEST(ProfileBuild, AThreadHasItsLastNameAndNoneOfAnotherOfItsId) {
  Records records;
  for (const std::int64_t start : {100, 200, 300, 400}) {
    records.threads.push_back({{start, 0}, 1, 80, 8});
    add_sample(records, start + 50, 80);
  }
  add_sample(records, 450, 99); // nothing is known of it but names
  const auto name = [&](std::int64_t time, std::uint32_t tid, const char *text) {
    records.thread_names.push_back({{time, 1}, tid, text});
  };
  name(310, 80, "third");
  name(120, 80, "first");
  name(110, 80, "before");
  name(410, 80, "");
  name(50, 99, "loose");
  name(10, 99, "looser");
  name(320, 80, "");
  const Profile profile = built(std::move(records));
  std::vector<std::string> names;
  for (const ProfileSample &sample : profile.samples)
    names.push_back(profile.threads[sample.thread].name);
  EXPECT_EQ(names, (std::vector<std::string>{"first", "", "third", "", "loose"}));
}

// There are as many copies of such a name as addresses.
TEST(ProfileBuild, NamesThatNobodyGivesAreCutBetweenCharacters) {
  Records records;
  std::string file = "x";
  while (file.size() < 30'000)
    file += "\xC3\xA4";
  ImageRecord image;
  image.pid = 8;
  image.base = kCode;
  image.size = 0x10'0000;
  image.rundown = true;
  image.path = "\\" + file + "\\" + file;
  records.images.push_back(image);
  records.processes.push_back({{10, 0}, 3, 8, file, ""});
  records.threads.push_back({{10, 0}, 3, 80, 8});
  records.thread_names.push_back({{20, 0}, 80, file});
  add_sample(records, 100, 80);
  const Profile profile = built(std::move(records));
  ASSERT_EQ(profile.modules.size(), 1u);
  EXPECT_EQ(profile.modules[0].name, file.substr(0, 1023));
  EXPECT_EQ(profile.modules[0].path, "\\" + file.substr(0, 4095));
  EXPECT_EQ(profile.threads.at(0).name, file.substr(0, 4095));
  EXPECT_EQ(profile.processes.at(0).name, file.substr(0, 1023));
}

TEST(ProfileBuild, StopsOnRequest) {
  Records records;
  add_sample(records, 100, 80);
  records.subjects[0].kernel = 0;
  std::stop_source stop;
  stop.request_stop();
  std::size_t read = 0;
  (void)built(
      std::move(records),
      [&](std::uint32_t, std::vector<std::uint64_t> &frames) {
        frames = {kCode};
        ++read;
      },
      stop.get_token());
  EXPECT_EQ(read, 0u);
}

} // namespace
} // namespace etwrelog::profile

// What the index says of segments is proven by `verify`, which decodes them anyway: whoever asks an archive
// for a time relies on it.
#include "archive/archive.hpp"
#include "archive/wrapper.hpp"
#include "etlz/index.hpp"
#include "tests/support/deflated.hpp"
#include "tests/support/generated.hpp"

#include <gtest/gtest.h>

namespace etwrelog {
namespace {

using Buffer = std::vector<std::uint8_t>;

// The archive with another index, whose checksums are right.
template <class Change> Buffer with_index(const Buffer &archive, Change &&change) {
  const auto footer = etlz::read_footer(Bytes(archive).last(etlz::kFooterSize));
  EXPECT_TRUE(footer);
  const Bytes stored = Bytes(archive).subspan(footer->index_at, footer->index_size);
  Result<etlz::Index> index = etlz::read_index(stored, {1u << 30, 1000, footer->original_size});
  EXPECT_TRUE(index) << index.error().message();
  etlz::IndexWriter writer;
  for (etlz::IndexEntry &entry : index->segments) {
    change(entry);
    writer.add(entry);
  }
  Buffer out(archive.begin(), archive.begin() + static_cast<std::ptrdiff_t>(footer->index_at));
  writer.finish(index->facts, out);
  etlz::Footer changed = *footer;
  changed.index_size = out.size() - footer->index_at;
  out.resize(out.size() + etlz::kFooterSize);
  etlz::write_footer(changed, out.data() + out.size() - etlz::kFooterSize);
  return out;
}

Buffer packed_in_pieces(const Buffer &file) {
  pipeline::ArchiveOptions options;
  options.segment = 1u << 18;
  const auto input = read::memory_input("t.etl", file);
  Buffer archive;
  Result<OutputStream> out = OutputStream::open(Output::memory(archive));
  EXPECT_TRUE(pipeline::pack_file(*input, *out, options));
  EXPECT_TRUE(out->commit());
  return archive;
}

// The archive of a file around one trace, with another archive of that trace in it.
Buffer with_trace(const Buffer &archive, const Buffer &trace) {
  const auto input = read::memory_input("t.etlz", archive);
  const Result<pipeline::WrapperIndex> wrapper = pipeline::read_wrapper_index(*input);
  EXPECT_TRUE(wrapper && wrapper->traces.size() == 1);
  Buffer out(archive.begin(), archive.begin() + etlz::kFileHeaderSize);
  out.insert(out.end(), trace.begin(), trace.end());
  etlz::Footer footer = wrapper->footer;
  footer.index_at = out.size();
  std::vector<etlz::WrappedTrace> traces = wrapper->traces;
  traces[0].archive_size = trace.size();
  Buffer head;
  etlz::write_wrapper_head(traces, head);
  out.insert(out.end(), head.begin(), head.end());
  out.insert(out.end(), archive.begin() + static_cast<std::ptrdiff_t>(wrapper->recipe_at),
             archive.begin() + static_cast<std::ptrdiff_t>(wrapper->recipe_end));
  footer.index_size = out.size() - footer.index_at;
  out.resize(out.size() + etlz::kFooterSize);
  etlz::write_footer(footer, out.data() + out.size() - etlz::kFooterSize);
  return out;
}

TEST(ArchiveIndex, VerifyFindsTimesAndCountsThatAreNotThoseOfTheEvents) {
  const Buffer trace = testing::generated(3u << 20);
  const Buffer archive = packed_in_pieces(trace);
  const Buffer wrapped = testing::gzip_of(trace);
  const Buffer archive_of_wrapped = packed_in_pieces(wrapped);
  ASSERT_TRUE(pipeline::is_wrapped(*read::memory_input("w.etlz", archive_of_wrapped)));

  std::size_t told = 0; // segments of which the index tells all
  const Buffer same = with_index(archive, [&](const etlz::IndexEntry &entry) {
    told += entry.summary.complete && entry.header.original_at != 0 ? 1 : 0;
  });
  ASSERT_GT(told, 0u);
  EXPECT_TRUE(verify(Input::memory("same.etlz", same)));
  EXPECT_TRUE(verify(Input::memory("same.etlz", with_trace(archive_of_wrapped, same))));

  for (const auto change : {+[](etlz::SegmentFacts &facts) { facts.first_time = facts.last_time = 1; },
                            +[](etlz::SegmentFacts &facts) { facts.last_time += 1; },
                            +[](etlz::SegmentFacts &facts) { facts.events += 5; }}) {
    const Buffer lying = with_index(archive, [&](etlz::IndexEntry &entry) {
      if (entry.summary.complete && entry.header.original_at != 0) change(entry.facts);
    });
    const Result<UnpackReport> verified = verify(Input::memory("lying.etlz", lying));
    ASSERT_FALSE(verified);
    EXPECT_NE(verified.error().message().find("its index entry is of other events"), std::string::npos)
        << verified.error().message();
    const Buffer lying_inside = with_trace(archive_of_wrapped, lying);
    const Result<UnpackReport> of_wrapped = verify(Input::memory("lying.etlz", lying_inside));
    ASSERT_FALSE(of_wrapped);
    EXPECT_EQ(of_wrapped.error().what, verified.error().what);
    // The originals are in there all the same.
    Buffer back;
    ASSERT_TRUE(unpack(Input::memory("lying.etlz", lying), Output::memory(back)));
    EXPECT_TRUE(back == trace);
    ASSERT_TRUE(unpack(Input::memory("lying.etlz", lying_inside), Output::memory(back)));
    EXPECT_TRUE(back == wrapped);
    ASSERT_TRUE(unpack(Input::memory("lying.etlz", lying_inside), Output::memory(back),
                       UnpackOptions{.salvage = true}));
    EXPECT_TRUE(back == wrapped);
  }
}

// It knows what the header of a segment says.
TEST(ArchiveIndex, SalvageNeedsNoHeadersOfSegmentsWhereTheIndexIsWhole) {
  const Buffer trace = testing::generated(1u << 20), archive = packed_in_pieces(trace);
  const Result<pipeline::ArchiveIndex> index =
      pipeline::read_archive_index(*read::memory_input("t.etlz", archive));
  ASSERT_TRUE(index);
  ASSERT_GE(index->segments.size(), 3u);
  Buffer bad = archive, back;
  for (const etlz::IndexEntry &segment : index->segments)
    bad[segment.archive_at + 20] ^= 0x10;
  const Result<UnpackReport> failed = unpack(Input::memory("bad.etlz", bad), Output::memory(back));
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().advice, Advice::salvage_archive);
  const auto salvaged = [&] {
    return unpack(Input::memory("bad.etlz", bad), Output::memory(back), {.salvage = true});
  };
  const Result<UnpackReport> all = salvaged();
  ASSERT_TRUE(all) << all.error().message();
  EXPECT_TRUE(back == trace);
  ASSERT_EQ(all->missing.size(), 1u) << "it is not silent";
  EXPECT_EQ(all->missing[0].bytes, 0u);
  // Without the first segment it is no trace any more, and that is said.
  bad[index->segments[0].archive_at + etlz::kSegmentHeaderSize + 100] ^= 0x10;
  const Result<UnpackReport> rest = salvaged();
  ASSERT_TRUE(rest) << rest.error().message();
  const std::uint64_t lost = index->segments[0].header.original_size;
  EXPECT_TRUE(back == Buffer(trace.begin() + static_cast<std::ptrdiff_t>(lost), trace.end()));
  ASSERT_EQ(rest->missing.size(), 1u);
  EXPECT_EQ(rest->missing[0].bytes, lost);
  EXPECT_NE(rest->missing[0].why.find("nothing reads the rest"), std::string::npos);
}

// Of all segments that a reader may leave out.
template <class Change> Buffer with_summaries(const Buffer &archive, Change &&change) {
  bool changed = false;
  Buffer out = with_index(archive, [&](etlz::IndexEntry &entry) {
    if (!entry.summary.complete || entry.header.original_at == 0 || changed) return;
    changed = change(entry);
  });
  EXPECT_TRUE(changed);
  return out;
}

TEST(ArchiveIndex, VerifyFindsProcessesEventsAndBuffersThatAreLeftOutOrInvented) {
  const Buffer archive = packed_in_pieces(testing::generated(3u << 20));
  using Entry = etlz::IndexEntry;
  struct Case {
    const char *expected; // of the error: what is in the segment
    bool (*change)(Entry &);
  };
  const auto remove_first = [](auto &list) {
    if (list.empty()) return false;
    list.erase(list.begin());
    return true;
  };
  static constexpr auto kRemoveFirst = remove_first;
  const Case cases[] = {
      {"events of process ", [](Entry &e) { return kRemoveFirst(e.summary.owners.processes); }},
      {"events of thread ", [](Entry &e) { return kRemoveFirst(e.summary.owners.threads); }},
      {"events of thread ",
       [](Entry &e) {
         if (e.summary.owners.threads.empty()) return false;
         e.summary.owners.threads.back().from += 1;
         return true;
       }},
      {"events of the system as a whole", [](Entry &e) { return ++e.summary.owners.of_nobody != 0; }},
      {"bytes of events", [](Entry &e) { return ++e.summary.event_bytes != 0; }},
      {"an event of ",
       [](Entry &e) {
         Buffer &bytes = e.summary.bytes;
         if (!e.summary.state.empty()) bytes.erase(bytes.begin(), bytes.begin() + e.summary.state[0].size);
         return kRemoveFirst(e.summary.state);
       }},
      {"others",
       [](Entry &e) {
         if (e.summary.state.empty()) return false;
         e.summary.bytes.back() ^= 1;
         return true;
       }},
      {"others",
       [](Entry &e) { // one more, of the first one's bytes
         if (e.summary.state.empty()) return false;
         SegmentSummary::Event more = e.summary.state.back();
         const Buffer bytes(e.summary.bytes.begin() + more.from,
                            e.summary.bytes.begin() + more.from + more.size);
         more.at += 8;
         more.from = static_cast<std::uint32_t>(e.summary.bytes.size());
         e.summary.bytes.insert(e.summary.bytes.end(), bytes.begin(), bytes.end());
         e.summary.state.push_back(more);
         return true;
       }},
      {"its buffers",
       [](Entry &e) {
         e.buffer_headers[format::kBufferHeaderSize / 2] ^= 1;
         return true;
       }},
      {"its buffers",
       [](Entry &e) {
         e.parts.back().buffer = false;
         e.buffer_headers.resize(e.buffer_headers.size() - format::kBufferHeaderSize);
         return true;
       }},
  };
  for (const Case &of : cases) {
    const Buffer lying = with_summaries(archive, of.change);
    const Result<UnpackReport> verified = verify(Input::memory("lying.etlz", lying));
    SCOPED_TRACE(&of - cases);
    ASSERT_FALSE(verified);
    EXPECT_NE(verified.error().message().find("its index entry is of other events"), std::string::npos)
        << verified.error().message();
    EXPECT_NE(verified.error().expected.find(of.expected), std::string::npos) << verified.error().message();
  }
}

TEST(ArchiveIndex, VerifyTakesAnIndexThatNamesMoreThanItMust) {
  const Buffer archive = packed_in_pieces(testing::generated(3u << 20));
  const Buffer more = with_summaries(archive, [](etlz::IndexEntry &entry) {
    if (!entry.summary.owners.complete) return false;
    entry.summary.owners.processes.push_back(0xFFFF'FFF0);
    entry.summary.owners.carried = true;
    return true;
  });
  EXPECT_TRUE(verify(Input::memory("more.etlz", more)));
}

} // namespace
} // namespace etwrelog

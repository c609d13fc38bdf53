// Archives of wrapped traces, with right checksums: the first byte chooses what the rest of the input is.
//   0  the streams of the recipe, their sizes in front     1  a chunk of it, as it is stored
//   2  the list of the traces                              3  a file to pack: it comes back
// Nothing may crash, hang or take more memory than it is given.
#include "archive/wrapper.hpp"
#include "tests/fuzz/archive_parts.hpp"
#include "tests/support/deflated.hpp"

#include <algorithm>
#include <cstdlib>

namespace {

using namespace etwrelog;
using testing::ArchiveBytes;

constexpr std::uint64_t kMemory = 96u << 20; // a small archive takes 80 MiB

pipeline::ArchiveOptions options() {
  pipeline::ArchiveOptions how;
  how.run.threads = 1;
  how.run.memory = kMemory;
  return how;
}

struct Base {
  ArchiveBytes front; // file header and the archive of the trace
  etlz::WrappedTrace trace;
  std::uint64_t original = 0;
  etlz::ContentHash content{};
};

const Base &base() {
  static const Base made = [] {
    const ArchiveBytes trace = testing::compressible_trace(); // that of the seeds
    const ArchiveBytes inner = testing::packed(trace, true), wrapper = testing::gzip_of(trace);
    Base b;
    b.original = wrapper.size();
    etlz::ContentHasher hasher;
    hasher.update(wrapper);
    b.content = hasher.finish();
    etlz::FileHeader header;
    header.wrapped = true;
    header.original_size = b.original;
    b.front.resize(etlz::kFileHeaderSize);
    etlz::write_file_header(header, b.front.data());
    b.front.insert(b.front.end(), inner.begin(), inner.end());
    b.trace = {"a.etl", inner.size(), trace.size()};
    return b;
  }();
  return made;
}

ArchiveBytes sealed(Bytes list, Bytes recipe) {
  ArchiveBytes out = base().front;
  etlz::Footer footer;
  footer.index_at = out.size();
  out.insert(out.end(), list.begin(), list.end());
  out.insert(out.end(), recipe.begin(), recipe.end());
  footer.index_size = out.size() - footer.index_at;
  footer.original_size = base().original;
  footer.content = base().content;
  std::uint8_t fixed[etlz::kFooterSize];
  etlz::write_footer(footer, fixed);
  out.insert(out.end(), std::begin(fixed), std::end(fixed));
  return out;
}

ArchiveBytes usual_list() {
  ArchiveBytes list;
  etlz::write_wrapper_head({&base().trace, 1}, list);
  return list;
}

ArchiveBytes chunk_of_streams(Bytes in) {
  std::array<Bytes, etlz::kRecipeStreams> streams;
  if (in.size() < streams.size()) return {};
  Bytes sizes = in.first(streams.size());
  in = in.subspan(streams.size());
  for (Bytes &stream : streams) {
    stream = in.first(std::min<std::size_t>(sizes.front(), in.size()));
    sizes = sizes.subspan(1);
    in = in.subspan(stream.size());
  }
  ArchiveBytes chunk;
  etlz::ChunkCoder().pack(streams, Level::normal, chunk);
  return chunk;
}

ArchiveBytes chunk_as_stored(Bytes in) {
  ArchiveBytes chunk(etlz::kChunkHeadSize);
  store(chunk.data(), std::uint64_t{in.size()});
  store(chunk.data() + 8, etlz::hash64(in));
  chunk.insert(chunk.end(), in.begin(), in.end());
  return chunk;
}

ArchiveBytes list_of(Bytes in) {
  ArchiveBytes list = usual_list();
  list.resize(etlz::kWrapperHeadSize);
  list.insert(list.end(), in.begin(), in.end());
  store(list.data() + 8, std::uint64_t{in.size()});
  store(list.data() + 16, etlz::hash64(in));
  etlz::seal(list.data(), etlz::kWrapperHeadSize);
  return list;
}

void use(const ArchiveBytes &archive) {
  const auto input = read::memory_input("fuzz", archive);
  pipeline::ArchiveOptions how = options();
  static_cast<void>(pipeline::unpack_file(*input, nullptr, how));
  how.check_first = how.salvage = true;
  static_cast<void>(pipeline::unpack_file(*input, nullptr, how));
  static_cast<void>(pipeline::open_archives(read::memory_input("fuzz", archive), kMemory));
}

class Collecting final : public ByteSink {
public:
  Result<void> write(Bytes bytes) override {
    all.insert(all.end(), bytes.begin(), bytes.end());
    return {};
  }
  ArchiveBytes all;
};

void pack_and_unpack(Bytes file) {
  const ArchiveBytes bytes(file.begin(), file.end());
  Collecting archive, back;
  if (!pipeline::pack_file(*read::memory_input("fuzz", bytes), archive, options())) std::abort();
  if (!pipeline::unpack_file(*read::memory_input("fuzz", archive.all), &back, options())) std::abort();
  if (back.all != bytes) std::abort();
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size) {
  if (size < 1) return 0;
  const Bytes rest(data + 1, size - 1);
  switch (data[0] & 3) {
  case 0: use(sealed(usual_list(), chunk_of_streams(rest))); break;
  case 1: use(sealed(usual_list(), chunk_as_stored(rest))); break;
  case 2: use(sealed(list_of(rest), {})); break;
  default: pack_and_unpack(rest);
  }
  return 0;
}

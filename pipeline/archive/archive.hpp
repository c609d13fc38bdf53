// Packing a file into an .etlz archive, and back.
//   read segments (serial) -> encode and check (parallel) -> write (serial, in file order)
//   read segments (serial) -> check and decode (parallel) -> write (serial, in file order)
// The archive does not depend on the number of threads.
#pragma once

#include "archive/summary.hpp"
#include "etwrelog/archive.hpp"
#include "run/runner.hpp"
#include "source/archive_input.hpp"
#include "source/segment_reader.hpp"

namespace etwrelog::pipeline {

struct PackCoder : Coder {
  Summarizer summarizer;
  SegmentOwners owners;
};

// What one file leaves for the next. Any thread.
struct Workspace {
  base::Pool<PackCoder> packers;
  CoderPool coders;
  BytePool byte_pool;
};

// A workspace of the caller's, or one of its own.
class WorkspaceUse {
public:
  explicit WorkspaceUse(Workspace *given) : given_(given) {
    if (given == nullptr) given_ = &own_.emplace();
  }
  Workspace *operator->() const { return given_; }
  Workspace &operator*() const { return *given_; }

private:
  std::optional<Workspace> own_;
  Workspace *given_;
};

// Knows where in the archive it is.
class CountedSink final : public ByteSink {
public:
  explicit CountedSink(ByteSink &sink) : sink_(sink) {}
  [[nodiscard]] Result<void> write(Bytes bytes) override { return append(bytes); }
  [[nodiscard]] Result<void> append(Bytes bytes) {
    size_ += bytes.size();
    return sink_.write(bytes);
  }
  [[nodiscard]] std::uint64_t size() const { return size_; }

private:
  ByteSink &sink_;
  std::uint64_t size_ = 0;
};

// What the original is called, as far as its archive has to tell: unpacking gives it that ending again.
enum class OriginalName : std::uint8_t { unknown, etl, other };

struct ArchiveOptions {
  Level level = Level::normal;           // fast is no faster: it is taken for normal
  bool verify = true;                    // pack: decode every segment again before it is written
  std::size_t segment = 0;               // pack: decoded bytes of a segment; 0: what the level has
  std::uint64_t count_from = 128u << 20; // pack: size of a trace whose statistics go into the index
  bool counts = false;                   // pack: or of any size
  bool salvage = false;                  // unpack: take what is whole
  bool check_first = false; // unpack: write nothing before all checksums of what is stored were compared
  RunOptions run;           // its progress counts bytes of the original
  std::vector<ColumnCost> *explain = nullptr; // pack: bytes in and out per column, summed
  Workspace *workspace = nullptr;             // of the caller's, for many files
  OriginalName name = OriginalName::unknown;  // pack

  // etlz::FileHeader::other_name. `plain_trace`: no other file, and no wrapper.
  [[nodiscard]] bool other_name(bool plain_trace) const {
    return name != OriginalName::unknown && (name == OriginalName::etl) != plain_trace;
  }
};

// Appends the archive to `out`, which the caller commits.
[[nodiscard]] Result<PackReport> pack_file(const read::Input &input, ByteSink &out,
                                           const ArchiveOptions &options);

// Of all bytes of an input.
[[nodiscard]] Result<ContentHash> hash_of(const read::Input &input, const std::stop_token &stop);

// One part of what pack_file makes, and all parts as one: part.cpp.
inline constexpr std::size_t kPartEndSize = 80; // bytes of its header, and of its trailer
[[nodiscard]] Result<PackReport> pack_part(const read::Input &input, PartNumber part, ByteSink &out,
                                           const ArchiveOptions &options);
[[nodiscard]] Result<PackReport> join_parts(std::span<const std::unique_ptr<read::Input>> parts,
                                            ByteSink &out, const RunOptions &run);

// Writes the original to `out`, or only checks everything when `out` is null. When salvaging, missing ranges
// are left out of the output: what is written is whole segments, one after the other.
[[nodiscard]] Result<UnpackReport> unpack_file(const read::Input &archive, ByteSink *out,
                                               const ArchiveOptions &options);

} // namespace etwrelog::pipeline

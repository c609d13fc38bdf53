#include "profile/images.hpp"

#include "base/sort_unique.hpp"
#include "etwrelog/format.hpp"
#include "profile/timeline.hpp"

#include <algorithm>
#include <map>

namespace etwrelog::profile {

std::string_view last_part(std::string_view path) {
  std::size_t at = path.size(); // find_last_of() calls a function for each character
  while (at > 0 && path[at - 1] != '\\' && path[at - 1] != '/')
    --at;
  return path.substr(at);
}

ModuleIdentity identity_of(const Images::Image &image) {
  ModuleIdentity made;
  made.path = image.path;
  made.size = static_cast<std::uint32_t>(std::min<std::uint64_t>(image.size, UINT32_MAX));
  made.time_stamp = image.time_stamp;
  if (image.identity == nullptr) return made;
  made.pdb_name = image.identity->pdb_name;
  made.pdb_guid = image.identity->guid;
  made.pdb_age = image.identity->age;
  if (made.time_stamp == 0) made.time_stamp = image.identity->time_stamp;
  return made;
}

namespace {

// Plays image events: what lies at a base of a process until something else does or it leaves.
class Player {
public:
  explicit Player(std::vector<Images::Image> &images) : images_(images) {}

  void enters(ImageRecord &record) {
    OfProcess &process = processes_[record.pid];
    const auto [place, fresh] = process.live.try_emplace(record.base, images_.size());
    if (!fresh) {
      if (record.rundown) return; // known already
      images_[place->second].to = record.at.time;
      place->second = images_.size();
    }
    if (!record.rundown) make_room(process, place, record);
    add(record, record.rundown ? earliest(process, record.base) : record.at.time, kForever);
  }
  void leaves(ImageRecord &record) {
    OfProcess &process = processes_[record.pid];
    const auto place = process.live.find(record.base);
    if (place == process.live.end()) { // its load was not seen
      if (record.rundown) process.live[record.base] = images_.size();
      add(record, earliest(process, record.base), record.rundown ? kForever : record.at.time);
    } else if (!record.rundown) {
      images_[place->second].to = record.at.time;
      process.live.erase(place);
    }
    if (!record.rundown) process.left[record.base] = record.at.time;
  }
  void process_starts(std::uint32_t pid, std::int64_t time) {
    OfProcess &process = processes_[pid];
    for (const auto &[base, image] : process.live)
      images_[image].to = time;
    process = {};
    process.started = time;
  }

private:
  using Live = std::map<std::uint64_t, std::size_t>; // by base
  struct OfProcess {
    std::int64_t started = kBeginning;
    Live live;
    std::unordered_map<std::uint64_t, std::int64_t, base::SeededHash> left; // when, where something was
  };

  // No two images lie in one place: what does where another is loaded had left, though nobody saw it.
  void make_room(OfProcess &process, Live::iterator loaded, const ImageRecord &record) {
    const std::int64_t last = record.at.time == kBeginning ? kBeginning : record.at.time - 1;
    const auto leave = [&](Live::iterator at) {
      images_[at->second].to = last;
      process.left[at->first] = last;
      return process.live.erase(at);
    };
    for (auto at = std::next(loaded); at != process.live.end() && at->first - record.base < record.size;)
      at = leave(at);
    for (auto at = loaded; at != process.live.begin();) {
      --at;
      if (record.base - at->first >= images_[at->second].size) break;
      at = leave(at);
    }
  }

  // Since when an image whose load was not seen may have been there: not before its process, nor before what
  // lay at its base had left.
  [[nodiscard]] static std::int64_t earliest(const OfProcess &process, std::uint64_t base) {
    const auto left = process.left.find(base);
    if (left == process.left.end()) return process.started;
    return left->second == kForever ? kForever : left->second + 1;
  }
  void add(ImageRecord &record, std::int64_t from, std::int64_t to) {
    images_.push_back(
        {from, to, record.base, record.size, record.pid, record.time_stamp, std::move(record.path), nullptr});
  }
  std::vector<Images::Image> &images_;
  std::unordered_map<std::uint32_t, OfProcess, base::SeededHash> processes_;
};

} // namespace

void Images::build(std::vector<ImageRecord> records, std::span<const ProcessRecord> processes,
                   std::vector<IdentityRecord> &identities) {
  std::ranges::sort(records, {}, &ImageRecord::at);
  std::vector<std::pair<Instant, std::uint32_t>> starts;
  for (const ProcessRecord &process : processes)
    if (process.opcode == 1) starts.emplace_back(process.at, process.pid);
  std::ranges::sort(starts);
  Player player(images_);
  std::size_t next = 0;
  for (ImageRecord &record : records) {
    for (; next < starts.size() && starts[next].first < record.at; ++next)
      player.process_starts(starts[next].second, starts[next].first.time);
    record.leaves ? player.leaves(record) : player.enters(record);
  }
  for (; next < starts.size(); ++next)
    player.process_starts(starts[next].second, starts[next].first.time);
  index();
  identify(identities);
}

void Images::index() {
  std::ranges::stable_sort(images_, {}, [](const Image &i) { return std::tuple(i.pid, i.base, i.from); });
  reach_.resize(images_.size());
  for (std::uint32_t i = 0; i < images_.size(); ++i) {
    const Image &image = images_[i];
    if (image.base > 0xFFFF'FFFF) pointer_size_ = 8;
    Range &range = ranges_[image.pid];
    if (range.count++ == 0) range.first = i;
    const std::uint64_t end =
        image.base + image.size < image.base ? ~std::uint64_t{0} : image.base + image.size;
    reach_[i] = range.count == 1 ? end : std::max(end, reach_[i - 1]);
    std::vector<std::int64_t> &changes = changes_[image.pid];
    if (image.from != kBeginning) changes.push_back(image.from);
    if (image.to != kForever) changes.push_back(image.to + 1);
  }
  for (auto &[pid, changes] : changes_)
    base::sort_unique(changes);
  for (const auto &[pid, range] : ranges_)
    if (overlap_much(reach_, range.first, range.count, [&](std::uint32_t i) { return images_[i].base; }))
      index_overlapping(pid, range);
}

// At any one time the image with the highest base wins where several are.
void Images::index_overlapping(std::uint32_t pid, const Range &range) {
  const std::vector<std::int64_t> &changes = changes_[pid];
  Stretches<Piece> stretches(changes.size() + 1);
  for (std::uint32_t i = range.first; i < range.first + range.count; ++i)
    if (const Image &image = images_[i]; image.size != 0 && image.from <= image.to)
      stretches.add(stretch_at(changes, image.from), stretch_at(changes, image.to), {image.base, i});
  stretches.for_each_node([&](std::vector<Piece> &node) { node = pieces_of(node); });
  overlapping_.emplace(pid, std::move(stretches));
}

// `images`: in order of their bases.
std::vector<Images::Piece> Images::pieces_of(const std::vector<Piece> &images) const {
  constexpr std::uint64_t kEnd = ~std::uint64_t{0};
  std::vector<Piece> pieces, open; // open: the winner, and before it who wins when it has ended
  const auto put = [&](std::uint64_t address, std::uint32_t image) {
    if (pieces.empty() || pieces.back().address != address) pieces.push_back({address, image});
    pieces.back().image = image;
  };
  const auto last_of = [&](const Piece &piece) { // its last address
    const Image &image = images_[piece.image];
    return image.size - 1 > kEnd - image.base ? kEnd : image.base + image.size - 1;
  };
  const auto close_before = [&](std::uint64_t address) {
    while (!open.empty() && last_of(open.back()) < address) {
      const std::uint64_t last = last_of(open.back());
      while (!open.empty() && last_of(open.back()) <= last)
        open.pop_back();
      put(last + 1, open.empty() ? kNone : open.back().image);
    }
  };
  for (const Piece &image : images) {
    close_before(image.address);
    put(image.address, image.image);
    open.push_back(image);
  }
  close_before(kEnd);
  return pieces;
}

// Of several identities at one base the last that was written while the image was there. One from another
// time is taken only where no other image at that base can be meant.
void Images::identify(std::vector<IdentityRecord> &identities) {
  std::ranges::sort(identities, {}, [](const IdentityRecord &i) { return std::tuple(i.pid, i.base, i.at); });
  // A merge writes the time stamp and the PDB of an image as two events, one behind the other.
  std::size_t kept = 0;
  for (std::size_t i = 0; i < identities.size(); ++i) {
    IdentityRecord &record = identities[i];
    const bool stamp_only = record.pdb_name.empty() && record.guid == Guid{};
    const bool follows =
        kept > 0 && identities[kept - 1].pid == record.pid && identities[kept - 1].base == record.base;
    if (follows && !stamp_only && record.time_stamp == 0 && identities[kept - 1].guid == Guid{}) {
      record.time_stamp = identities[kept - 1].time_stamp;
      identities[kept - 1] = std::move(record);
    } else if (follows && stamp_only && identities[kept - 1].time_stamp == 0) {
      identities[kept - 1].time_stamp = record.time_stamp;
    } else {
      if (kept != i) identities[kept] = std::move(record);
      ++kept;
    }
  }
  identities.resize(kept);
  const auto same_base = [](const auto &one, const Image &image) {
    return one.pid == image.pid && one.base == image.base;
  };
  for (std::size_t i = 0; i < images_.size(); ++i) {
    Image &image = images_[i];
    const bool first = i == 0 || !same_base(images_[i - 1], image),
               last = i + 1 == images_.size() || !same_base(images_[i + 1], image);
    const auto fits = [&](const IdentityRecord &record) {
      const bool other_build =
          record.time_stamp != 0 && image.time_stamp != 0 && record.time_stamp != image.time_stamp;
      return same_base(record, image) && !other_build;
    };
    const auto behind = std::ranges::upper_bound(
        identities, std::tuple(image.pid, image.base, Instant{image.to, ~std::uint64_t{0}}), {},
        [](const IdentityRecord &record) { return std::tuple(record.pid, record.base, record.at); });
    const IdentityRecord *before = behind == identities.begin() ? nullptr : &*std::prev(behind);
    const IdentityRecord *after = behind == identities.end() ? nullptr : &*behind;
    if (before != nullptr && fits(*before) && before->at.time >= image.from)
      image.identity = before;
    else if (last && after != nullptr && fits(*after))
      image.identity = after;
    else if (first && before != nullptr && fits(*before))
      image.identity = before;
  }
}

std::uint32_t Images::find(std::uint32_t pid, std::int64_t time, std::uint64_t address) const {
  const auto range = ranges_.find(pid);
  if (range == ranges_.end()) return kNone;
  if (const auto overlapping = overlapping_.find(pid); overlapping != overlapping_.end()) {
    std::uint32_t best = kNone;
    const auto take = [&](const std::vector<Piece> &pieces) {
      const auto behind = std::ranges::upper_bound(pieces, address, {}, &Piece::address);
      if (behind == pieces.begin() || std::prev(behind)->image == kNone) return;
      const std::uint32_t image = std::prev(behind)->image;
      if (best == kNone || image > best) best = image; // they are numbered in order of their bases
    };
    overlapping->second.visit(stretch_at(changes_.at(pid), time), take);
    return best;
  }
  const auto begin = images_.begin() + range->second.first, end = begin + range->second.count;
  auto behind = std::upper_bound(begin, end, address,
                                 [](std::uint64_t at, const Image &image) { return at < image.base; });
  while (behind != begin) {
    --behind;
    const auto i = static_cast<std::uint32_t>(behind - images_.begin());
    if (reach_[i] <= address) return kNone;
    if (address - behind->base < behind->size && behind->from <= time && time <= behind->to) return i;
  }
  return kNone;
}

std::uint32_t Images::find_kernel(std::int64_t time, std::uint64_t address) const {
  if (!format::is_kernel_address(address, pointer_size_)) return kNone;
  const std::uint32_t idle = find(0, time, address), system = find(4, time, address);
  if (idle == kNone || system == kNone) return idle == kNone ? system : idle;
  const auto rank = [&](std::uint32_t i) { return std::pair(images_[i].base, images_[i].from); };
  return rank(system) > rank(idle) ? system : idle;
}

std::uint32_t Images::epoch(std::uint32_t pid, std::int64_t time, TimeRange &valid) const {
  const auto changes = changes_.find(pid);
  return changes == changes_.end() ? 0 : count_changes(changes->second, time, valid);
}

} // namespace etwrelog::profile

// Words of a text and their ids: cut at white space, as Python's str.split() cuts, and looked up.
// The same in Python: text/word_index.py. tests/text/test_word_index.py compares the two.

#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

namespace unrolled {

// How many bytes of white space a UTF-8 text has at p, 0 if none.
inline int space_at(const unsigned char* p, const unsigned char* end) {
    if (*p < 0x80) return *p == ' ' || (*p >= 0x09 && *p <= 0x0D) || (*p >= 0x1C && *p <= 0x1F);
    if (*p == 0xC2) return end - p >= 2 && (p[1] == 0x85 || p[1] == 0xA0) ? 2 : 0;
    if (*p < 0xE1 || *p > 0xE3 || end - p < 3) return 0;
    const int code = (*p & 0xF) << 12 | (p[1] & 0x3F) << 6 | (p[2] & 0x3F);
    const bool space = code == 0x1680 || (code >= 0x2000 && code <= 0x200A) || code == 0x2028 ||
                       code == 0x2029 || code == 0x202F || code == 0x205F || code == 0x3000;
    return space ? 3 : 0;
}

// A hash table with open addressing; ids are given in the order of arrival.
class WordIndex {
   public:
    WordIndex() : slots_(1 << 10), begin_{0} {}

    int32_t size() const { return int32_t(begin_.size()) - 1; }

    std::string_view word(int32_t id) const {
        return {letters_.data() + begin_[id], size_t(begin_[id + 1] - begin_[id])};
    }

    // The id of a word; one that is new gets the next if `unknown` is negative, else `unknown`.
    int32_t id(std::string_view word, int32_t unknown) {
        const uint64_t hash = hashed(word);
        size_t place = hash >> shift_;
        for (; slots_[place].id >= 0; place = (place + 1) & (slots_.size() - 1))
            if (slots_[place].tag == uint32_t(hash) && this->word(slots_[place].id) == word)
                return slots_[place].id;
        return unknown < 0 ? add(word, hash, place) : unknown;
    }

    // The ids of a line's words, appended.
    void read(std::string_view line, int32_t unknown, std::vector<int32_t>& ids) {
        auto p = reinterpret_cast<const unsigned char*>(line.data());
        const auto end = p + line.size();
        while (p < end) {
            if (const int space = space_at(p, end)) {
                p += space;
                continue;
            }
            const auto start = p;
            while (p < end && (*p > 0xE3 || (*p > ' ' && *p < 0x80) || !space_at(p, end))) ++p;
            ids.push_back(id({reinterpret_cast<const char*>(start), size_t(p - start)}, unknown));
        }
    }

   private:
    struct Slot {
        uint32_t tag = 0;
        int32_t id = -1;
    };

    // Eight bytes at a time, the last eight perhaps twice; the factors are those of splitmix64
    // (Steele et al. 2014).
    static uint64_t hashed(std::string_view word) {
        const char* p = word.data();
        const size_t size = word.size();
        uint64_t hash = size * 0x9E3779B97F4A7C15ull;
        if (size < 8) return mixed(hash, short_word(p, size));
        for (size_t i = 0; i + 8 < size; i += 8) hash = mixed(hash, load<uint64_t>(p + i));
        return mixed(hash, load<uint64_t>(p + size - 8));
    }

    static uint64_t short_word(const char* p, size_t size) {
        if (size >= 4) return load<uint32_t>(p) | uint64_t(load<uint32_t>(p + size - 4)) << 32;
        if (size == 0) return 0;
        return load<uint8_t>(p) | load<uint8_t>(p + size / 2) << 8 |
               load<uint8_t>(p + size - 1) << 16;
    }

    template <typename T>
    static T load(const char* p) {
        T value;
        std::memcpy(&value, p, sizeof(T));
        return value;
    }

    static uint64_t mixed(uint64_t hash, uint64_t piece) {
        hash = (hash ^ piece) * 0xBF58476D1CE4E5B9ull;
        hash = (hash ^ hash >> 27) * 0x94D049BB133111EBull;
        return hash ^ hash >> 31;
    }

    int32_t add(std::string_view word, uint64_t hash, size_t place) {
        slots_[place] = {uint32_t(hash), size()};
        letters_ += word;
        begin_.push_back(int64_t(letters_.size()));
        if (size_t(size()) * 2 > slots_.size()) grow();
        return size() - 1;
    }

    void grow() {
        slots_.assign(slots_.size() * 2, Slot{});
        --shift_;
        for (int32_t i = 0; i < size(); ++i) {
            const uint64_t hash = hashed(word(i));
            size_t place = hash >> shift_;
            while (slots_[place].id >= 0) place = (place + 1) & (slots_.size() - 1);
            slots_[place] = {uint32_t(hash), i};
        }
    }

    std::vector<Slot> slots_;
    int shift_ = 54;  // 64 - log2 of the slots
    std::string letters_;
    std::vector<int64_t> begin_;  // where each word begins in letters_, and the end
};

}  // namespace unrolled

// The words that letters.hpp finds are those that a loop over characters finds, and no byte beyond a text is read,
// whatever bytes there are.
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "../letters.hpp"

using Words = std::vector<std::vector<std::string>>;

static std::vector<uint32_t> table(bool small) {
    std::vector<uint32_t> read(0x500, ' ');
    read['\n'] = '\n';
    for (int c = 'a'; c <= 'z'; ++c) read[c] = c, read[c - 32] = small ? c : c - 32;
    read[0xE9] = 0xE9, read[0xC9] = small ? 0xE9 : 0xC9, read[0x416] = 0x436;
    return read;
}

// Of text whose characters are ASCII or two bytes long.
static Words naive(const std::string& text, const std::vector<uint32_t>& read) {
    Words lines;
    std::vector<std::string> line;
    std::string word;
    const auto end_word = [&] {
        if (!word.empty()) line.push_back(word);
        word.clear();
    };
    for (size_t at = 0; at < text.size(); ++at) {
        uint32_t code = uint8_t(text[at]);
        if (code >= 0x80) code = (code & 0x1F) << 6 | (uint8_t(text[++at]) & 0x3F);
        const uint32_t letter = code < read.size() ? read[code] : ' ';
        if (letter != ' ' && letter != '\n') {
            if (letter < 0x80) word.push_back(char(letter));
            else word.push_back(char(0xC0 | letter >> 6)), word.push_back(char(0x80 | (letter & 0x3F)));
            continue;
        }
        end_word();
        if (letter == '\n') lines.push_back(line), line.clear();
    }
    return lines;
}

// The text lies in memory of just its size: the sanitiser sees a read beyond it.
static Words found(const std::string& text, const std::vector<uint32_t>& read) {
    const std::unique_ptr<char[]> exact(new char[text.size()]);
    std::copy(text.begin(), text.end(), exact.get());
    unrolled::WordIndex index;
    std::vector<int32_t> ids;
    std::vector<int64_t> lengths;
    unrolled::LetterReader(read.data(), read.size()).read({exact.get(), text.size()}, index, ids, lengths);
    Words lines;
    size_t at = 0;
    for (const int64_t length : lengths) {
        lines.emplace_back();
        for (int64_t k = 0; k < length; ++k) lines.back().emplace_back(index.word(ids[at++]));
    }
    return lines;
}

int main() {
    std::mt19937 random(1);
    const std::vector<std::string> pieces = {"a", "Zebra", "e", "incomprehensible", "M", "\u00e9", "\u00c9",
                                             "\u0416", "\u00bf", " ", " ", ". ", "\n", "@", "[", "`", "{"};
    for (int trial = 0; trial < 20000; ++trial) {
        const auto read = table(trial % 2);
        std::string text, bytes;
        for (int k = int(random() % 20); k > 0; --k) text += pieces[random() % pieces.size()];
        text += '\n';
        if (found(text, read) != naive(text, read)) {
            std::printf("letters: not the words of '%s'\n", text.c_str());
            return 1;
        }
        for (int k = int(random() % 30); k > 0; --k) bytes.push_back(char(random()));
        found(bytes, read);
    }
    std::puts("letters: ok");
}

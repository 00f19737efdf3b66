// GloVe's published loop, written plainly: threads run over shuffled pairs and write to shared vectors without
// locks, one pair at a time, AdaGrad for every number.
//
//   c++ -std=c++17 -O3 -march=native -funroll-loops -pthread benchmarks/glove_loop.cpp -o glove_loop
//
// benchmarks/glove.py does that, and runs it:
//
//   glove_loop PAIRS VECTORS words size threads epochs rate x_max power seed
//
// PAIRS holds records of (int32 row, int32 column, double count) in random order; VECTORS is written: rows of
// float32, word and context summed. Prints the seconds of each epoch and the mean loss.
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <thread>
#include <vector>

struct Pair {
    int32_t row, column;
    double count;
};

struct Model {
    int size;
    std::vector<double> weights, squares;  // words, then contexts; a bias behind each vector

    Model(int words, int size, unsigned seed) : size(size) {
        weights.resize(2 * size_t(words) * (size + 1));
        squares.assign(weights.size(), 1.0);
        std::mt19937 random(seed);
        std::uniform_real_distribution<double> draw(-0.5, 0.5);
        for (double& weight : weights) weight = draw(random) / size;
    }

    double learn(const Pair& pair, int words, double rate, double x_max, double power) {
        const size_t a = size_t(pair.row) * (size + 1), b = (size_t(words) + pair.column) * (size + 1);
        double error = weights[a + size] + weights[b + size] - std::log(pair.count);
        for (int k = 0; k < size; ++k) error += weights[a + k] * weights[b + k];
        const double weighted = (pair.count > x_max ? 1.0 : std::pow(pair.count / x_max, power)) * error;
        const double step = rate * weighted;
        for (int k = 0; k < size; ++k) {
            const double at_a = step * weights[b + k], at_b = step * weights[a + k];
            weights[a + k] -= at_a / std::sqrt(squares[a + k]);
            weights[b + k] -= at_b / std::sqrt(squares[b + k]);
            squares[a + k] += at_a * at_a;
            squares[b + k] += at_b * at_b;
        }
        weights[a + size] -= step / std::sqrt(squares[a + size]);
        weights[b + size] -= step / std::sqrt(squares[b + size]);
        squares[a + size] += step * step;
        squares[b + size] += step * step;
        return weighted * error;
    }
};

static std::vector<Pair> read(const char* path) {
    std::FILE* file = std::fopen(path, "rb");
    if (!file) std::exit(1);
    std::fseek(file, 0, SEEK_END);
    std::vector<Pair> pairs(size_t(std::ftell(file)) / sizeof(Pair));
    std::rewind(file);
    if (std::fread(pairs.data(), sizeof(Pair), pairs.size(), file) != pairs.size()) std::exit(1);
    std::fclose(file);
    return pairs;
}

static void write(const char* path, const Model& model, int words) {
    std::FILE* file = std::fopen(path, "wb");
    if (!file) std::exit(1);
    for (int word = 0; word < words; ++word)
        for (int k = 0; k < model.size; ++k) {
            const size_t a = size_t(word) * (model.size + 1) + k;
            const float sum = float(model.weights[a] + model.weights[a + size_t(words) * (model.size + 1)]);
            std::fwrite(&sum, sizeof sum, 1, file);
        }
    std::fclose(file);
}

int main(int, char** argv) {
    const std::vector<Pair> pairs = read(argv[1]);
    const int words = std::atoi(argv[3]), size = std::atoi(argv[4]), threads = std::atoi(argv[5]);
    const int epochs = std::atoi(argv[6]);
    const double rate = std::atof(argv[7]), x_max = std::atof(argv[8]), power = std::atof(argv[9]);
    Model model(words, size, unsigned(std::atoi(argv[10])));
    for (int epoch = 0; epoch < epochs; ++epoch) {
        const auto begun = std::chrono::steady_clock::now();
        std::vector<double> loss(threads, 0.0);
        std::vector<std::thread> team;
        for (int t = 0; t < threads; ++t)
            team.emplace_back([&, t] {
                double sum = 0;
                for (size_t at = pairs.size() * t / threads; at < pairs.size() * (t + 1) / threads; ++at)
                    sum += model.learn(pairs[at], words, rate, x_max, power);
                loss[t] = sum;
            });
        for (std::thread& member : team) member.join();
        double total = 0;
        for (double part : loss) total += part;
        const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begun;
        std::printf("%.6f %.6f\n", seconds.count(), total / double(pairs.size()));
        std::fflush(stdout);
    }
    write(argv[2], model, words);
}

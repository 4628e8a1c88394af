// Attention of blocks of queries to blocks of keys: the scores of a block stay in the nearest caches.
//
// The backward pass recomputes them from the logsumexp of each query: T. Dao et al., FlashAttention, arXiv 2205.14135.
#pragma once

#include <algorithm>
#include <vector>

#include "loops.hpp"
#include "matrices.hpp"
#include "sums.hpp"

namespace retrograd {

constexpr npy_intp QUERIES = 64, KEYS = 256;  // sizes of a block
constexpr npy_intp CHUNKS = 8, CHUNK = 256;   // fewer units are cut into CHUNKS, of at least CHUNK queries

// An operand: strides in bytes of the leading dimensions, which all operands share, of rows, and within a row.
struct Operand {
    char* at = nullptr;
    std::vector<npy_intp> front;
    npy_intp row = 0, column = 0;
    bool pairs = false;  // a mask with the concatenated (query, key) pairs of all components
};

enum Role { Q, K, V, ATTN_MASK, ATTN_BIAS, OUT, SUMS, G, OF_SUMS, DQ, DK, DV, DSCORES, ROLES };

// The operands' matrices of one component; the unit's queries are those from `first` to `last`.
struct Unit {
    Matrix of[ROLES];
    npy_intp first, last, keys;
};

struct Call {
    Operand operands[ROLES];
    std::vector<npy_intp> front;
    const npy_int64 *queries, *keys;  // offsets of the components' rows
    std::vector<npy_intp> pairs;      // offset of each component's pairs
    npy_intp components, fronts, longest_queries, longest_keys, e, d, chunk, chunks;
    double scale;
    bool causal;

    // The chunks depend on the sizes alone, so that results do not depend on the number of threads.
    void plan() {
        npy_intp units = fronts * components, most = units < CHUNKS && units > 0 ? CHUNKS / units : 1;
        chunks = std::max<npy_intp>(1, std::min(most, longest_queries / CHUNK));
        chunk = (longest_queries + chunks - 1) / chunks;
    }
    npy_intp items() const { return fronts * components * chunks; }

    Unit unit(npy_intp item) const {
        npy_intp part = item % chunks, component = item / chunks % components, front_index = item / chunks / components;
        npy_intp queries_begin = queries[component], keys_begin = keys[component];
        npy_intp length = queries[component + 1] - queries_begin;
        Unit out;
        out.keys = keys[component + 1] - keys_begin;
        out.first = std::min(part * chunk, length);
        out.last = std::min(out.first + chunk, length);
        for (int k = 0; k < ROLES; k++) {
            const Operand& operand = operands[k];
            bool of_keys = k == K || k == V || k == DK || k == DV, mask = k == ATTN_MASK || k == ATTN_BIAS || k == DSCORES;
            npy_intp begin = of_keys ? keys_begin : mask ? 0 : queries_begin;
            char* at = operand.at ? operand.at + begin * operand.row + front_offset(operand, front_index) : nullptr;
            out.of[k] = {at, operand.row, operand.column};
            npy_intp in_pairs = pairs[component] * operand.column, row = out.keys * operand.column;
            if (operand.pairs && at) out.of[k] = {at + in_pairs, row, operand.column};
        }
        return out;
    }

private:
    npy_intp front_offset(const Operand& operand, npy_intp front_index) const {
        npy_intp step = 0;
        for (std::size_t k = front.size(); k-- > 0; front_index /= front[k]) step += front_index % front[k] * operand.front[k];
        return step;
    }
};

// The work of one thread: items from `begin` to `end`; each has its own sums in `partial`, unless that is null.
template <class T>
struct Items {
    const Call* call;
    npy_intp begin, end;
    T* partial;
};

// The sums for keys and values, of a thread or of an item.
template <class T>
struct Sums {
    T *k, *v;
};

// Widths are multiples of every vector size, so that the layout of partial sums does not depend on it.
inline npy_intp wide(npy_intp n) { return round_up(n, 16); }
inline npy_intp room_for_sums(const Call& call) { return round_up(call.longest_keys, KEYS) * (wide(call.e) + wide(call.d)); }
template <class T>
Sums<T> sums_at(const Call& call, T* at) {
    return {at, at + round_up(call.longest_keys, KEYS) * wide(call.e)};
}

// ------------------------------------------------------------------------------------------------------- scores

// A block of scores: `rows` queries of a unit from `first` on, `keys` keys from `key` on.
struct Block {
    npy_intp first, rows, key, keys;
};

// Adds the additive mask to a row of scores, and sets -inf where keys are masked out, and after the last key.
template <class T>
INLINE void restrict_row_inline(const Call* of, const Unit* at, Block block, npy_intp i, npy_intp width, T* row) {
    const Call& call = *of;
    const Unit& unit = *at;
    npy_intp query = block.first + i, key_end = block.keys;
    if (call.causal) key_end = std::max<npy_intp>(0, std::min(key_end, query + 1 - block.key));
    const Matrix &bias = unit.of[ATTN_BIAS], &mask = unit.of[ATTN_MASK];
    if (bias.at && bias.column == sizeof(T)) {
        const T* x = &bias.number<T>(query, block.key);
        for (npy_intp j = 0; j < key_end; j++) row[j] += x[j];
    } else if (bias.at) {
        for (npy_intp j = 0; j < key_end; j++) row[j] += bias.number<T>(query, block.key + j);
    }
    if (mask.at && mask.column == 1) {
        const npy_bool* x = &mask.number<npy_bool>(query, block.key);
        for (npy_intp j = 0; j < key_end; j++) row[j] = x[j] ? row[j] : T(-INFINITY);
    } else if (mask.at) {
        for (npy_intp j = 0; j < key_end; j++)
            if (!mask.number<npy_bool>(query, block.key + j)) row[j] = T(-INFINITY);
    }
    for (npy_intp j = key_end; j < width; j++) row[j] = T(-INFINITY);
}

template <class T, int bytes>
INLINE void restrict_row(const Call& call, const Unit& unit, Block block, npy_intp i, npy_intp width, T* row) {
    outlined<bytes, restrict_row_inline<T>, restrict_row_inline<T>, restrict_row_inline<T>>(&call, &unit, block, i, width,
                                                                                            row);
}

// The state of a thread that processes the blocks of its units.  It is a template of the vector width, so that the
// compiler inlines all of it into one function.
template <class T, int bytes>
struct Work {
    using Of = Tile<T, bytes>;
    const Call& call;
    const npy_intp e, d;
    Unit unit;

    INLINE explicit Work(const Call& of) : call(of), e(of.e), d(of.d) {}

    INLINE Matrix from(Role role, npy_intp first) const {
        const Matrix& whole = unit.of[role];
        return {whole.at + first * whole.row, whole.row, whole.column};
    }

    // Returns the end of the keys that these queries attend to.
    INLINE npy_intp key_end(npy_intp first, npy_intp rows) const {
        return call.causal ? std::min(unit.keys, first + rows) : unit.keys;
    }

    INLINE Block block(npy_intp first, npy_intp key) const {
        npy_intp rows = std::min(QUERIES, unit.last - first);
        return {first, rows, key, std::min(KEYS, key_end(first, rows) - key)};
    }
};

// ------------------------------------------------------------------------------------------------------ forward

template <class T, int bytes>
struct Forward : Work<T, bytes> {
    using Base = Work<T, bytes>;
    using typename Base::Of;
    using Base::call, Base::e, Base::d, Base::unit;
    const npy_intp width = round_up(d, Of::LANES), keys = round_up(call.longest_keys, Of::PANEL);
    AlignedArray<T> room = aligned_array<T>(QUERIES * (e + width + KEYS) + keys * (e + width));
    T *const q = room.get(), *const out = q + QUERIES * e, *const scores = out + QUERIES * width;
    T *const k = scores + QUERIES * KEYS, *const v = k + keys * e;
    T top[QUERIES];        // the largest score of each query so far,
    double sum[QUERIES];   // and the sum of exponentials

    INLINE explicit Forward(const Call& of) : Base(of) {}

    INLINE void run(npy_intp item) {
        unit = call.unit(item);
        npy_intp all = this->key_end(unit.first, unit.last - unit.first);
        copy_transposed<T, bytes>(unit.of[K], all, e, k);
        copy_rows<T, bytes>(unit.of[V], all, d, T(1), v, width, all);
        for (npy_intp first = unit.first; first < unit.last; first += QUERIES) {
            npy_intp rows = std::min(QUERIES, unit.last - first), key_end = this->key_end(first, rows);
            begin(first, rows);
            for (npy_intp key = 0; key < key_end; key += KEYS) process_block(this->block(first, key));
            for (npy_intp i = 0; i < rows; i++) finish(first + i, i);
        }
    }

    INLINE void begin(npy_intp first, npy_intp rows) {
        npy_intp filled = round_up(rows, Of::ROWS);
        copy_rows<T, bytes>(this->from(Q, first), rows, e, T(call.scale), q, e, filled);
        std::fill(out, out + filled * width, T(0));
        std::fill(top, top + rows, T(-INFINITY));
        std::fill(sum, sum + rows, 0.0);
    }

    INLINE void process_block(Block block) {
        npy_intp filled = round_up(block.rows, Of::ROWS), columns = round_up(block.keys, Of::PANEL);
        Right<T> keys{k + block.key * e, Of::PANEL, e * Of::PANEL}, values{v + block.key * width, width, Of::PANEL};
        product<T, bytes>({filled, columns, e, false}, {q, e, 1}, keys, scores, KEYS);
        for (npy_intp i = 0; i < block.rows; i++) {
            restrict_row<T, bytes>(call, unit, block, i, columns, scores + i * KEYS);
            exponentiate(i, columns);
        }
        product<T, bytes>({filled, width, block.keys, true}, {scores, KEYS, 1}, values, out, width);
    }

    // Replaces scores by exponentials; rescales earlier sums where a larger score has come (online softmax).
    INLINE void exponentiate(npy_intp i, npy_intp columns) {
        T *row = scores + i * KEYS, most = std::max(top[i], largest(row, columns));
        T shift = most == T(-INFINITY) ? T(0) : most;
        if (most != top[i] && sum[i] != 0) {
            T factor = exp_of_negative(top[i] - shift);
            sum[i] *= factor;
            for (npy_intp j = 0; j < width; j++) out[i * width + j] *= factor;
        }
        sum[i] += exponentials(row, shift, row, columns);
        top[i] = most;
    }

    INLINE void finish(npy_intp query, npy_intp i) {
        bool no_keys = sum[i] == 0;
        T shift = top[i] == T(-INFINITY) ? T(0) : top[i];
        put_rows<T, bytes>(out + i * width, width, no_keys ? T(0) : T(1 / sum[i]), this->from(OUT, query), 1, d);
        unit.of[SUMS].template number<T>(query, 0) = no_keys ? T(0) : shift + T(std::log(sum[i]));
    }
};

template <class T, int bytes>
INLINE void attend(const Items<T>& items) {
    Forward<T, bytes> work(*items.call);
    for (npy_intp item = items.begin; item < items.end; item++) work.run(item);
}

// ----------------------------------------------------------------------------------------------------- backward

// Replaces scores by weights P, and the cotangents D of weights by those of scores, P (D + level).
template <class T>
INLINE void backward_row(T* weights, T* score_grads, T sum, T level, npy_intp width) {
    IN_ANY_ORDER
    for (npy_intp j = 0; j < width; j++) {
        weights[j] = exp_of_negative(weights[j] - sum);
        score_grads[j] = weights[j] * (score_grads[j] + level);
    }
}

template <class T, int bytes>
struct Backward : Work<T, bytes> {
    using Base = Work<T, bytes>;
    using typename Base::Of;
    using Base::call, Base::e, Base::d, Base::unit;
    const npy_intp wide_e = wide(e), wide_d = wide(d), keys = round_up(call.longest_keys, KEYS);
    AlignedArray<T> room = aligned_array<T>(QUERIES * (2 * wide_e + wide_d + 2 * KEYS) + keys * (e + d + wide_e));
    T *const q = room.get(), *const g = q + QUERIES * wide_e, *const dq = g + QUERIES * wide_d;
    T *const weights = dq + QUERIES * wide_e, *const score_grads = weights + QUERIES * KEYS;
    T *const k_transposed = score_grads + QUERIES * KEYS, *const v_transposed = k_transposed + keys * e;
    T* const k = v_transposed + keys * d;
    T level[QUERIES];
    Sums<T> sums;

    INLINE explicit Backward(const Call& of) : Base(of) {}

    INLINE void run(npy_intp item, T* for_sums) {
        unit = call.unit(item);
        sums = sums_at(call, for_sums);
        begin();
        for (npy_intp first = unit.first; first < unit.last; first += QUERIES) {
            npy_intp rows = std::min(QUERIES, unit.last - first), key_end = this->key_end(first, rows);
            begin_rows(first, rows);
            for (npy_intp key = 0; key < key_end; key += KEYS) backward_block(this->block(first, key));
            if (unit.of[DQ].at) put_rows<T, bytes>(dq, wide_e, T(call.scale), this->from(DQ, first), rows, e);
        }
    }

    INLINE void begin() {
        npy_intp all = this->key_end(unit.first, unit.last - unit.first);
        copy_transposed<T, bytes>(unit.of[K], all, e, k_transposed);
        copy_transposed<T, bytes>(unit.of[V], all, d, v_transposed);
        copy_rows<T, bytes>(unit.of[K], all, e, T(1), k, wide_e, all);
        std::fill(sums.k, sums.k + unit.keys * wide_e, T(0));
        std::fill(sums.v, sums.v + unit.keys * wide_d, T(0));
    }

    INLINE void begin_rows(npy_intp first, npy_intp rows) {
        npy_intp filled = round_up(rows, Of::ROWS);
        copy_rows<T, bytes>(this->from(Q, first), rows, e, T(call.scale), q, wide_e, filled);
        copy_rows<T, bytes>(this->from(G, first), rows, d, T(1), g, wide_d, filled);
        std::fill(dq, dq + filled * wide_e, T(0));
        const Matrix out = this->from(OUT, first), of_sums = this->from(OF_SUMS, first);
        for (npy_intp i = 0; i < rows; i++) {
            const T* row = g + i * wide_d;
            level[i] = of_sums.template number<T>(i, 0) -
                       T(summed<T>(d, [=](npy_intp j) { return row[j] * out.template number<T>(i, j); }));
        }
    }

    INLINE void backward_block(Block block) {
        npy_intp filled = round_up(block.rows, Of::ROWS), columns = round_up(block.keys, Of::PANEL);
        Right<T> to_keys{k_transposed + block.key * e, Of::PANEL, e * Of::PANEL};
        Right<T> to_values{v_transposed + block.key * d, Of::PANEL, d * Of::PANEL};
        product<T, bytes>({filled, columns, e, false}, {q, wide_e, 1}, to_keys, weights, KEYS);
        product<T, bytes>({filled, columns, d, false}, {g, wide_d, 1}, to_values, score_grads, KEYS);
        for (npy_intp i = 0; i < block.rows; i++) {
            restrict_row<T, bytes>(call, unit, block, i, columns, weights + i * KEYS);
            T sum = unit.of[SUMS].template number<T>(block.first + i, 0);
            backward_row(weights + i * KEYS, score_grads + i * KEYS, sum, level[i], columns);
        }
        sum_up(block);
    }

    INLINE void sum_up(Block block) {
        npy_intp key_rows = round_up(block.keys, Of::ROWS), filled = round_up(block.rows, Of::ROWS);
        T *dv = sums.v + block.key * wide_d, *dk = sums.k + block.key * wide_e;
        Right<T> of_g{g, wide_d, Of::PANEL}, of_q{q, wide_e, Of::PANEL}, keys{k + block.key * wide_e, wide_e, Of::PANEL};
        if (unit.of[DV].at) product<T, bytes>({key_rows, wide_d, block.rows, true}, {weights, 1, KEYS}, of_g, dv, wide_d);
        if (unit.of[DK].at) product<T, bytes>({key_rows, wide_e, block.rows, true}, {score_grads, 1, KEYS}, of_q, dk, wide_e);
        if (unit.of[DQ].at) product<T, bytes>({filled, wide_e, block.keys, true}, {score_grads, KEYS, 1}, keys, dq, wide_e);
        if (unit.of[DSCORES].at) {
            Matrix to = this->from(DSCORES, block.first);
            to.at += block.key * to.column;
            put_rows<T, bytes>(score_grads, KEYS, T(1), to, block.rows, block.keys);
        }
    }
};

// Writes the sums for the keys of a unit.
template <class T, int bytes>
INLINE void put_sums(const Call& call, const Unit& unit, T* for_sums) {
    Sums<T> sums = sums_at(call, for_sums);
    if (unit.of[DK].at) put_rows<T, bytes>(sums.k, wide(call.e), T(1), unit.of[DK], unit.keys, call.e);
    if (unit.of[DV].at) put_rows<T, bytes>(sums.v, wide(call.d), T(1), unit.of[DV], unit.keys, call.d);
}

template <class T, int bytes>
INLINE void attend_grad(const Items<T>& items) {
    const npy_intp size = room_for_sums(*items.call);
    const AlignedArray<T> own = aligned_array<T>(items.partial ? 0 : size);
    Backward<T, bytes> work(*items.call);
    for (npy_intp item = items.begin; item < items.end; item++) {
        work.run(item, items.partial ? items.partial + item * size : own.get());
        if (!items.partial) put_sums<T, bytes>(*items.call, work.unit, own.get());
    }
}

}  // namespace retrograd

// Attention of blocks of queries to blocks of keys: scores are made, used and forgotten in the nearest caches.
//
// The way back makes them again, from the logarithms of the sums of exponentials: T. Dao et al., FlashAttention, arXiv
// 2205.14135.
#pragma once

#include <algorithm>
#include <memory>
#include <vector>

#include "loops.hpp"
#include "matrices.hpp"
#include "sums.hpp"

namespace retrograd {

constexpr npy_intp QUERIES = 64, KEYS = 256;  // of a block
constexpr npy_intp CHUNKS = 8, CHUNK = 256;   // a call of fewer units is cut into so many, of at least so many queries

// An operand: steps in bytes along the dimensions in front, which all operands share, from row to row and in a row.
struct Operand {
    char* at = nullptr;
    std::vector<npy_intp> front;
    npy_intp row = 0, column = 0;
    bool pairs = false;  // a mask whose rows are the pairs of a query and a key of each component, one behind the other
};

enum Role { Q, K, V, ALLOWED, ADDED, OUT, SUMS, G, OF_SUMS, DQ, DK, DV, DSCORES, ROLES };

// The operands' matrices for the queries and keys of one component, of which those from `first` to `last` look.
struct Unit {
    Matrix of[ROLES];
    npy_intp first, last, keys;
};

struct Call {
    Operand operands[ROLES];
    std::vector<npy_intp> front;
    const npy_int64 *queries, *keys;  // where the rows of each component begin, and where the last ones end
    std::vector<npy_intp> pairs;      // in front of those of each component
    npy_intp components, fronts, longest_queries, longest_keys, e, d, chunk, chunks;
    double scale;
    bool causal;

    // Of which parts of the work there are so many depends on the sizes alone, so that digits do not on the threads.
    void plan() {
        npy_intp units = fronts * components, most = units < CHUNKS && units > 0 ? CHUNKS / units : 1;
        chunks = std::max<npy_intp>(1, std::min(most, longest_queries / CHUNK));
        chunk = (longest_queries + chunks - 1) / chunks;
    }
    npy_intp items() const { return fronts * components * chunks; }

    Unit unit(npy_intp item) const {
        npy_intp part = item % chunks, component = item / chunks % components, place = item / chunks / components;
        npy_intp queries_begin = queries[component], keys_begin = keys[component];
        npy_intp length = queries[component + 1] - queries_begin;
        Unit out;
        out.keys = keys[component + 1] - keys_begin;
        out.first = std::min(part * chunk, length);
        out.last = std::min(out.first + chunk, length);
        for (int k = 0; k < ROLES; k++) {
            const Operand& operand = operands[k];
            bool of_keys = k == K || k == V || k == DK || k == DV, mask = k == ALLOWED || k == ADDED || k == DSCORES;
            npy_intp begin = of_keys ? keys_begin : mask ? 0 : queries_begin;
            char* at = operand.at ? operand.at + begin * operand.row + at_place(operand, place) : nullptr;
            out.of[k] = {at, operand.row, operand.column};
            if (operand.pairs && at) out.of[k] = {at + pairs[component] * operand.column, out.keys * operand.column, operand.column};
        }
        return out;
    }

private:
    npy_intp at_place(const Operand& operand, npy_intp place) const {
        npy_intp step = 0;
        for (std::size_t k = front.size(); k-- > 0; place /= front[k]) step += place % front[k] * operand.front[k];
        return step;
    }
};

// What one thread does: the items from `begin` to `end`; each has room of its own for sums, if `partial` is some.
template <class T>
struct Items {
    const Call* call;
    npy_intp begin, end;
    T* partial;
};

// The numbers of keys and values that a thread sums up, or an item.
template <class T>
struct Sums {
    T *k, *v;
};

// Widths that fit vectors of all sizes, so that partial sums do not depend on them.
inline npy_intp wide(npy_intp n) { return whole(n, 16); }
inline npy_intp room_for_sums(const Call& call) { return whole(call.longest_keys, KEYS) * (wide(call.e) + wide(call.d)); }
template <class T>
Sums<T> sums_at(const Call& call, T* at) {
    return {at, at + whole(call.longest_keys, KEYS) * wide(call.e)};
}

// ------------------------------------------------------------------------------------------------------- scores

// Queries of a unit from `first` on, and keys.
struct Block {
    npy_intp first, rows, key, keys;
};

// Scores with what is added; -inf where a query may not look, and behind the last key.
template <class T>
INLINE void restrict_row(const Call& call, const Unit& unit, const Block& block, npy_intp i, npy_intp width, T* row) {
    npy_intp query = block.first + i, seen = block.keys;
    if (call.causal) seen = std::max<npy_intp>(0, std::min(seen, query + 1 - block.key));
    const Matrix &added = unit.of[ADDED], &allowed = unit.of[ALLOWED];
    if (added.at && added.column == sizeof(T)) {
        const T* x = &added.number<T>(query, block.key);
        for (npy_intp j = 0; j < seen; j++) row[j] += x[j];
    } else if (added.at) {
        for (npy_intp j = 0; j < seen; j++) row[j] += added.number<T>(query, block.key + j);
    }
    if (allowed.at && allowed.column == 1) {
        const npy_bool* x = &allowed.number<npy_bool>(query, block.key);
        for (npy_intp j = 0; j < seen; j++) row[j] = x[j] ? row[j] : T(-INFINITY);
    } else if (allowed.at) {
        for (npy_intp j = 0; j < seen; j++) row[j] = allowed.number<npy_bool>(query, block.key + j) ? row[j] : T(-INFINITY);
    }
    for (npy_intp j = seen; j < width; j++) row[j] = T(-INFINITY);
}

// The blocks of keys that some of `rows` queries from `first` on may see.
inline npy_intp seen_by(const Call& call, const Unit& unit, npy_intp first, npy_intp rows) {
    return call.causal ? std::min(unit.keys, first + rows) : unit.keys;
}

// ------------------------------------------------------------------------------------------------------ forward

// What goes through the blocks of keys with a query: its largest score so far, and the sum of exponentials.
template <class T>
struct Running {
    T top;
    double sum;
};

// Scores become exponentials; what was summed up before shrinks where a larger score has come.
template <class T>
INLINE void exponentiate(T* row, npy_intp width, Running<T>& running, T* out, npy_intp d) {
    T top = std::max(running.top, largest(row, width)), shift = top == T(-INFINITY) ? T(0) : top;
    if (top != running.top && running.sum != 0) {
        T factor = exp_of_negative(running.top - shift);
        running.sum *= factor;
        for (npy_intp j = 0; j < d; j++) out[j] *= factor;
    }
    running.sum += exponentials(row, shift, row, width);
    running.top = top;
}

template <class T>
INLINE void finish_row(const Unit& unit, npy_intp query, const Running<T>& running, const T* out, npy_intp d) {
    bool nowhere = running.sum == 0;
    T scale = nowhere ? T(0) : T(1 / running.sum);
    put_rows(out, d, scale, {unit.of[OUT].at + query * unit.of[OUT].row, 0, unit.of[OUT].column}, 1, d);
    T shift = running.top == T(-INFINITY) ? T(0) : running.top;
    unit.of[SUMS].number<T>(query, 0) = nowhere ? T(0) : shift + T(std::log(running.sum));
}

template <class T, int bytes>
INLINE void attend(const Items<T>& items) {
    using Of = Tile<T, bytes>;
    const Call& call = *items.call;
    const npy_intp e = call.e, d = call.d, width = whole(d, Of::LANES), keys = whole(call.longest_keys, Of::PANEL);
    std::unique_ptr<T[]> room(new T[QUERIES * (e + width + KEYS) + keys * (e + width)]);
    T *q = room.get(), *out = q + QUERIES * e, *scores = out + QUERIES * width, *k = scores + QUERIES * KEYS, *v = k + keys * e;
    Running<T> running[QUERIES];
    for (npy_intp item = items.begin; item < items.end; item++) {
        const Unit unit = call.unit(item);
        npy_intp all = seen_by(call, unit, unit.first, unit.last - unit.first);
        copy_turned(unit.of[K], all, e, k, Of::PANEL);
        copy_rows(unit.of[V], all, d, T(1), v, width, all);
        for (npy_intp first = unit.first; first < unit.last; first += QUERIES) {
            npy_intp rows = std::min(QUERIES, unit.last - first), filled = whole(rows, Of::ROWS);
            npy_intp seen = seen_by(call, unit, first, rows);
            copy_rows({unit.of[Q].at + first * unit.of[Q].row, unit.of[Q].row, unit.of[Q].column}, rows, e, T(call.scale), q, e, filled);
            std::fill(out, out + filled * width, T(0));
            std::fill(running, running + rows, Running<T>{T(-INFINITY), 0});
            for (npy_intp key = 0; key < seen; key += KEYS) {
                Block block{first, rows, key, std::min(KEYS, seen - key)};
                npy_intp columns = whole(block.keys, Of::PANEL);
                product<T, bytes, false>(filled, columns, e, {q, e, 1}, {k + key * e, Of::PANEL, e * Of::PANEL}, scores, KEYS);
                for (npy_intp i = 0; i < rows; i++) {
                    restrict_row(call, unit, block, i, columns, scores + i * KEYS);
                    exponentiate(scores + i * KEYS, columns, running[i], out + i * width, width);
                }
                product<T, bytes, true>(filled, width, block.keys, {scores, KEYS, 1}, {v + key * width, width, Of::PANEL}, out, width);
            }
            for (npy_intp i = 0; i < rows; i++) finish_row(unit, first + i, running[i], out + i * width, d);
        }
    }
}

// ----------------------------------------------------------------------------------------------------- backward

// Scores become weights P, and the cotangents of weights, D, those of scores: P (D + level).
template <class T>
INLINE void pull_row(T* weights, T* pulled, T sum, T level, npy_intp width) {
    IN_ANY_ORDER
    for (npy_intp j = 0; j < width; j++) {
        weights[j] = exp_of_negative(weights[j] - sum);
        pulled[j] = weights[j] * (pulled[j] + level);
    }
}

template <class T, int bytes>
INLINE void attend_grad(const Items<T>& items) {
    using Of = Tile<T, bytes>;
    const Call& call = *items.call;
    const npy_intp e = call.e, d = call.d, wide_e = wide(e), wide_d = wide(d), keys = whole(call.longest_keys, KEYS);
    std::unique_ptr<T[]> room(new T[QUERIES * (2 * wide_e + wide_d + 2 * KEYS) + keys * (e + d + wide_e)]);
    std::unique_ptr<T[]> own(items.partial ? nullptr : new T[room_for_sums(call)]);
    T *q = room.get(), *g = q + QUERIES * wide_e, *dq = g + QUERIES * wide_d, *weights = dq + QUERIES * wide_e;
    T *pulled = weights + QUERIES * KEYS, *k_turned = pulled + QUERIES * KEYS, *v_turned = k_turned + keys * e;
    T* k = v_turned + keys * d;
    for (npy_intp item = items.begin; item < items.end; item++) {
        const Unit unit = call.unit(item);
        const bool some_q = unit.of[DQ].at, some_k = unit.of[DK].at, some_v = unit.of[DV].at;
        Sums<T> sums = sums_at(call, items.partial ? items.partial + item * room_for_sums(call) : own.get());
        std::fill(sums.k, sums.k + unit.keys * wide_e, T(0));
        std::fill(sums.v, sums.v + unit.keys * wide_d, T(0));
        npy_intp all = seen_by(call, unit, unit.first, unit.last - unit.first);
        copy_turned(unit.of[K], all, e, k_turned, Of::PANEL);
        copy_turned(unit.of[V], all, d, v_turned, Of::PANEL);
        copy_rows(unit.of[K], all, e, T(1), k, wide_e, all);
        for (npy_intp first = unit.first; first < unit.last; first += QUERIES) {
            npy_intp rows = std::min(QUERIES, unit.last - first), filled = whole(rows, Of::ROWS);
            npy_intp seen = seen_by(call, unit, first, rows);
            auto from = [&](Role role) {
                return Matrix{unit.of[role].at + first * unit.of[role].row, unit.of[role].row, unit.of[role].column};
            };
            copy_rows(from(Q), rows, e, T(call.scale), q, wide_e, filled);
            copy_rows(from(G), rows, d, T(1), g, wide_d, filled);
            T level[QUERIES];
            for (npy_intp i = 0; i < rows; i++) {
                const Matrix out = from(OUT);
                const T* row = g + i * wide_d;
                level[i] = unit.of[OF_SUMS].number<T>(first + i, 0) - T(summed<T>(d, [=](npy_intp j) { return row[j] * out.number<T>(i, j); }));
            }
            std::fill(dq, dq + filled * wide_e, T(0));
            for (npy_intp key = 0; key < seen; key += KEYS) {
                Block block{first, rows, key, std::min(KEYS, seen - key)};
                npy_intp columns = whole(block.keys, Of::PANEL);
                product<T, bytes, false>(filled, columns, e, {q, wide_e, 1}, {k_turned + key * e, Of::PANEL, e * Of::PANEL}, weights, KEYS);
                product<T, bytes, false>(filled, columns, d, {g, wide_d, 1}, {v_turned + key * d, Of::PANEL, d * Of::PANEL}, pulled, KEYS);
                for (npy_intp i = 0; i < rows; i++) {
                    restrict_row(call, unit, block, i, columns, weights + i * KEYS);
                    pull_row(weights + i * KEYS, pulled + i * KEYS, unit.of[SUMS].number<T>(first + i, 0), level[i], columns);
                }
                npy_intp taken = whole(block.keys, Of::ROWS);
                if (some_v) product<T, bytes, true>(taken, wide_d, rows, {weights, 1, KEYS}, {g, wide_d, Of::PANEL}, sums.v + key * wide_d, wide_d);
                if (some_k) product<T, bytes, true>(taken, wide_e, rows, {pulled, 1, KEYS}, {q, wide_e, Of::PANEL}, sums.k + key * wide_e, wide_e);
                if (some_q) product<T, bytes, true>(filled, wide_e, block.keys, {pulled, KEYS, 1}, {k + key * wide_e, wide_e, Of::PANEL}, dq, wide_e);
                if (unit.of[DSCORES].at) {
                    Matrix to = from(DSCORES);
                    to.at += key * to.column;
                    put_rows(pulled, KEYS, T(1), to, rows, block.keys);
                }
            }
            if (some_q) put_rows(dq, wide_e, T(call.scale), from(DQ), rows, e);
        }
        if (items.partial) continue;
        if (some_k) put_rows(sums.k, wide_e, T(1), unit.of[DK], unit.keys, e);
        if (some_v) put_rows(sums.v, wide_d, T(1), unit.of[DV], unit.keys, d);
    }
}

}  // namespace retrograd

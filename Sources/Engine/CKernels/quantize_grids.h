// Quantisation with grids; included after quantize_rows.h, once for each instruction set.
//
// A vector of 4 or 8 magnitudes is one of the entries of a grid. For a scale s, the weighted square error of an entry g is
// Σw·t² − 2s·a + s²·b with a = Σw·t·g and b = Σw·g², which do not depend on s: they are computed once for all entries, so that every
// entry is compared for every scale. Signs are stored apart; in some types, the number of negative ones in 8 is even: then the
// smallest element has the wrong sign.

/// For all entries of a grid: a and b of a vector with the targets t.
INLINE void NAME(entry_sums)(const ck_grid *grid, const float *t, const float *w, float *a, float *b) {
    for (int e = 0; e < grid->count; e += 16) {
        v16 sa = {0}, sb = {0};
        for (int i = 0; i < grid->width; i++) {
            v16 level = NAME(load)(grid->levels + i * grid->count + e);
            sa += level * (w[i] * t[i]);
            sb += level * level * w[i];
        }
        memcpy(a + e, &sa, sizeof sa);
        memcpy(b + e, &sb, sizeof sb);
    }
}

/// The entry with the smallest error for a scale.
INLINE int NAME(best_entry)(const ck_grid *grid, const float *a, const float *b, float scale) {
    v16 best = -INFINITY - (v16){0}, index = {0}, at = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    for (int e = 0; e < grid->count; e += 16, at += 16.0f) {
        v16 gain = 2 * NAME(load)(a + e) - scale * NAME(load)(b + e);
        m16 better = gain > best;
        m16 bits, other;
        memcpy(&bits, &gain, sizeof bits), memcpy(&other, &best, sizeof other);
        bits = (bits & better) | (other & ~better);
        memcpy(&best, &bits, sizeof bits);
        memcpy(&bits, &at, sizeof bits), memcpy(&other, &index, sizeof other);
        bits = (bits & better) | (other & ~better);
        memcpy(&index, &bits, sizeof bits);
    }
    int chosen = 0;
    float most = -INFINITY;
    // Of equal ones the first counts, on every instruction set.
    for (int lane = 0; lane < 16; lane++)
        if (best[lane] > most || (best[lane] == most && (int)index[lane] < chosen)) most = best[lane], chosen = (int)index[lane];
    return chosen;
}

/// What a scale takes from the error of a group if its elements could have any levels, and the best scale for these levels.
INLINE float NAME(free_gain)(const ck_grid *grid, const float *t, const float *w, float scale, float *solved) {
    v16 sa = {0}, sb = {0};
    for (int i = 0; i < grid->group; i += 16) {
        v16 at = NAME(load)(t + i) / scale, wi = NAME(load)(w + i), level = grid->steps[0] - (v16){0};
        for (int k = 1; k < grid->step_count; k++)
            level += NAME(select)(at > 0.5f * (grid->steps[k - 1] + grid->steps[k]), grid->steps[k] - grid->steps[k - 1]);
        sa += wi * level * NAME(load)(t + i), sb += wi * level * level;
    }
    float a = NAME(sum)(sa), b = NAME(sum)(sb);
    *solved = b > 0 ? a / b : 0;
    return a > 0 && b > 0 ? a * (a / b) : 0;
}

/// What a scale takes from the error of a group with the best entries for it.
INLINE float NAME(gain)(const ck_grid *grid, int vectors, const float *a, const float *b, float scale, int *entries, float *sa, float *sb) {
    *sa = *sb = 0;
    for (int v = 0; v < vectors; v++) {
        entries[v] = NAME(best_entry)(grid, a + v * grid->count, b + v * grid->count, scale);
        *sa += a[v * grid->count + entries[v]], *sb += b[v * grid->count + entries[v]];
    }
    return 2 * scale * *sa - scale * scale * *sb;
}

/// A block of 256 elements: x ≈ d · (2 · scale + 1) · level, with scales from 0 to 15.
static TARGET void NAME(grid_block)(const float *x, const float *w, const ck_grid *grid, ck_grid_block *out) {
    const int vectors = grid->group / grid->width, groups = 256 / grid->group;
    // All vectors of a group.
    float a[8 * 1024], b[8 * 1024], t[256], scales[16], most = 0;
    int entries[8];
    for (int start = 0; start < 256; start += 8) {
        uint8_t signs = 0;
        int smallest = 0;
        for (int i = 0; i < 8; i++) {
            float value = x[start + i], magnitude = fabsf(value);
            t[start + i] = magnitude;
            if (value < 0) signs |= (uint8_t)(1 << i);
            if (w[start + i] * magnitude * magnitude < w[start + smallest] * t[start + smallest] * t[start + smallest]) smallest = i;
        }
        if (grid->has_even_signs && __builtin_popcount(signs) % 2) {
            signs ^= (uint8_t)(1 << smallest);
            t[start + smallest] = -t[start + smallest];
        }
        out->signs[start / 8] = signs;
    }
    for (int g = 0; g < groups; g++) {
        const float *tg = t + g * grid->group, *wg = w + g * grid->group;
        float largest = 0, best = 0, usual = 0, solved, sa, sb;
        for (int i = 0; i < grid->group; i++) largest = tg[i] > largest ? tg[i] : largest;
        scales[g] = 0;
        if (largest == 0) continue;
        // About where the best scale is, without the grid.
        for (int step = 0; step < 12; step++) {
            float gained = NAME(free_gain)(grid, tg, wg, largest / (grid->largest * (0.65f + 0.06f * (float)step)), &solved);
            if (gained > best) best = gained, usual = solved;
        }
        if (usual == 0) continue;
        for (int v = 0; v < vectors; v++)
            NAME(entry_sums)(grid, tg + v * grid->width, wg + v * grid->width, a + v * grid->count, b + v * grid->count);
        best = 0;
        for (int step = 0; step < 5; step++) {
            // Three near it, then the best one solved twice.
            float scale = step < 3 ? usual * (0.94f + 0.06f * (float)step) : scales[g];
            NAME(gain)(grid, vectors, a, b, scale, entries, &sa, &sb);
            float gained = sa > 0 && sb > 0 ? sa * (sa / sb) : 0;
            if (gained > best) best = gained, scales[g] = sa / sb;
            else if (step >= 3) break;
        }
        most = scales[g] > most ? scales[g] : most;
    }
    float d = NAME(half)(most / 31);
    for (int g = 0; g < groups; g++) {
        float s = d > 0 ? 0.5f * (scales[g] / d - 1) + 0.5f : 0;
        out->scale[g] = (int)(s < 0 ? 0 : s > 15 ? 15 : s);
    }
    // First the scale of the block is solved, then the neighbours of the scales are tried with it.
    for (int pass = 0; pass < 2; pass++) {
        float da = 0, db = 0;
        for (int g = 0; g < groups; g++) {
            for (int v = 0; v < vectors; v++)
                NAME(entry_sums)(grid, t + g * grid->group + v * grid->width, w + g * grid->group + v * grid->width, a + v * grid->count,
                                 b + v * grid->count);
            int scale = out->scale[g], chosen = scale;
            float best = -INFINITY, sa, sb, chosen_a = 0, chosen_b = 0;
            for (int s = scale - pass; s <= scale + pass; s++) {
                if (s < 0 || s > 15) continue;
                float gained = NAME(gain)(grid, vectors, a, b, d * (float)(2 * s + 1), entries, &sa, &sb);
                if (!(gained > best)) continue;
                best = gained, chosen = s, chosen_a = sa, chosen_b = sb;
                for (int v = 0; v < vectors; v++) out->entries[g * vectors + v] = (uint16_t)entries[v];
            }
            out->scale[g] = chosen;
            da += (float)(2 * chosen + 1) * chosen_a, db += (float)((2 * chosen + 1) * (2 * chosen + 1)) * chosen_b;
        }
        if (pass || !(db > 0)) break;
        float next = NAME(half)(da / db);
        if (next > 0) d = next;
    }
    out->d = d;
}

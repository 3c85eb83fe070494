// Row programs of EVCLUS with many clusters on a GPU: rows are lists of (cluster, mass), as
// evdist/kernels/sparse_rows.py has them, and a warp solves the program of one row.
//
// The algorithm is that of evdist/evclus/rows/sparse_sweep.py: columns for the empty set, Omega and
// the clusters that the row names; then, unless `promise` is infinite, the gradient of all clusters
// that its partners name, of which the one with the most negative multiplier becomes a column, until
// there is none. Masses are on the grid, conflicts exact in float64, and a row is kept only where its
// own terms fall.
//
// A lane owns every 32nd partner: its masses in the columns (A), its conflict, its residual. Sums
// over partners are sums over lanes, always in the same order. Sums over the entries of a cluster,
// which lanes add in any order, are made in whole numbers.
//
// Compiled with -DPER=<partners of a lane>, -DW=<columns of a program>, and -DWEIGHTED, -DLISTED (the
// partners are given one by one), -DFAR (sums by cluster lie in global memory) as wanted. With
// -DLANES=1 a warp is one thread and the source runs on a CPU: tests/gpu/host_kernels.py.

typedef long long i64;
typedef unsigned short u16;

#ifndef LANES
#define LANES 32
#endif

// Those of evdist/kernels/sparse_rows.py.
#define WORDS 32
#define SLOTS 20
#define FIRST_ID 4
#define FIRST_MASS 8
#define ID_AT(q) (FIRST_ID + (q) + ((q) >= 12 ? 16 : 0))
#define MASS_AT(q) (FIRST_MASS + (q) + ((q) >= 8 ? 4 : 0))
#define FREE 0x7F60
#define QUADS (SLOTS / 4)

// Those of evdist/kernels/simplex.py and sweep.py.
#define GRID 16777216.0
#define PROXIMAL 1e-11
#define NOISE 1e-6
#define TOL 1e-8
#define MAX_ROUNDS 200

#define TRIANGLE (W * (W + 1) / 2)
#define AT(a, b) ((a) >= (b) ? (a) * ((a) + 1) / 2 + (b) : (b) * ((b) + 1) / 2 + (a))
// Place of a lane's partner number j, and whether there is one: beyond the last place lanes read the
// last one, with weight zero.
#define OWNS(j) ((j) * LANES + LANE < k)
#define PLACE(j) (OWNS(j) ? (j) * LANES + LANE : k - 1)
// Clusters that become columns after one look at their gradients, at most.
#define ENTRANTS 4
#define KEYS 64
// A lane's numbers lie in registers where they are few.
#if PER <= 8
#define UNROLL _Pragma("unroll")
#else
#define UNROLL _Pragma("unroll 1")
#endif
// The kernel waits for its own code where that is long: loops that need no unrolling have none.
#define ROLL _Pragma("unroll 1")
// Blocks that a multiprocessor shall hold: with more a thread's numbers fall out of its registers.
#ifndef BLOCKS
#if PER <= 4 && W <= 16
#define BLOCKS 4
#else
#define BLOCKS 1
#endif
#endif

#if LANES == 32
#define LANE ((int)(threadIdx.x & 31))
#define WARP ((int)(blockIdx.x * (blockDim.x >> 5) + (threadIdx.x >> 5)))
#define IN_BLOCK ((int)(threadIdx.x >> 5))
#define SYNC __syncwarp()
// The rest of a row comes into the cache while its first words are waited for.
#define FETCH(row) \
    asm volatile("prefetch.global.L2 [%0]; prefetch.global.L2 [%1];" ::"l"(row + 8), "l"(row + 16))
extern __shared__ double shared_room[];
__device__ __forceinline__ double warp_sum(double x) {
#pragma unroll
    for (int far = 16; far; far >>= 1) x += __shfl_xor_sync(~0u, x, far);
    return x;
}
__device__ __forceinline__ i64 warp_max(i64 x) {
#pragma unroll
    for (int far = 16; far; far >>= 1) {
        i64 other = __shfl_xor_sync(~0u, x, far);
        x = other > x ? other : x;
    }
    return x;
}
#else
#define LANE 0
#define WARP ((int)blockIdx.x)
#define IN_BLOCK 0
#define SYNC
#define FETCH(row)
static double shared_room[1];
static inline double warp_sum(double x) { return x; }
static inline i64 warp_max(i64 x) { return x; }
static inline int atomicAdd(int* at, int x) { int old = *at; *at = old + x; return old; }
static inline int atomicExch(int* at, int x) { int old = *at; *at = x; return old; }
#endif

// Sums over the lanes of eight numbers each, into out[0 .. count - 1]: lanes exchange halves, so
// that nine exchanges do the work of forty.
template <typename real>
__device__ __forceinline__ void put_sums(real* v, double* out, int count) {
#if LANES == 32
    int lane = LANE;
#define EXCHANGE(half, far)                                                                      \
    _Pragma("unroll") for (int i = 0; i < half; i++) {                                           \
        real keep = lane & far ? v[i + half] : v[i], send = lane & far ? v[i] : v[i + half];     \
        v[i] = keep + __shfl_xor_sync(~0u, send, far);                                           \
    }
    EXCHANGE(4, 16)
    EXCHANGE(2, 8)
    EXCHANGE(1, 4)
    v[0] += __shfl_xor_sync(~0u, v[0], 2);
    v[0] += __shfl_xor_sync(~0u, v[0], 1);
    int which = (lane >> 4 & 1) * 4 + (lane >> 3 & 1) * 2 + (lane >> 2 & 1);
    if (!(lane & 3) && which < count) out[which] = v[0];
#else
    for (int i = 0; i < count; i++) out[i] = v[i];
#endif
}

// What the lanes of a warp share; A follows, (W, k) float32, then sums by cluster, (c,) int32.
struct Room {
    double S[TRIANGLE], L[TRIANGLE];
    double g[W], m[W], now[W], d[W], y[W], z[W], inverse[W];
    int cluster[W], work[W], key[KEYS];
};

// The slots 4 q .. 4 q + 3 of a row: two numbers in a word, and masses.
struct Quad {
    uint2 ids;
    float4 mass;
};

__device__ __forceinline__ Quad load_quad(const float* row, int q) {
    Quad out;
    out.ids = *(const uint2*)(row + ID_AT(4 * q) / 2);
    out.mass = *(const float4*)(row + MASS_AT(4 * q));
    return out;
}

__device__ __forceinline__ int id_of(const Quad& quad, int e) {
    return (e & 2 ? quad.ids.y : quad.ids.x) >> (e & 1 ? 16 : 0) & 0xFFFF;
}

__device__ __forceinline__ float mass_of(const Quad& quad, int e) {
    return e & 2 ? (e & 1 ? quad.mass.w : quad.mass.z) : (e & 1 ? quad.mass.y : quad.mass.x);
}

// The column of a cluster, -1 for none.
__device__ __forceinline__ int column_of(const int* key, int a) {
    int at = a & (KEYS - 1), found;
    while ((found = key[at]) >= 0) {
        if (found >> 8 == a) return found & 255;
        at = (at + 1) & (KEYS - 1);
    }
    return -1;
}

__device__ __forceinline__ void add_key(int* key, int a, int column) {
    int at = a & (KEYS - 1);
    while (key[at] >= 0) at = (at + 1) & (KEYS - 1);
    key[at] = a << 8 | column;
}

// Row i's own clusters as keys of columns 2, 3, ..., with their masses; returns how many columns.
// Where there are more than `most`, nothing but the number.
__device__ __forceinline__ int own_columns(
    const float* row, int most, int* key, int* cluster, double* m) {
ROLL
    for (int a = LANE; a < KEYS; a += LANES) key[a] = -1;
    SYNC;
    const u16* ids = (const u16*)row;
#if LANES == 32
    int lane = LANE, q = lane < SLOTS ? lane : 0;
    float mass = row[MASS_AT(q)], head = row[lane & 1];
    int a = ids[ID_AT(q)], columns = 2 + __popc(__ballot_sync(~0u, lane < SLOTS && mass > 0.0f));
    if (columns > most) return columns;
    if (lane < 2) m[lane] = head;
    if (lane < columns - 2) {
        if (cluster) cluster[2 + lane] = a;
        m[2 + lane] = mass;
        int at = a & (KEYS - 1);
        while (atomicCAS(key + at, -1, a << 8 | (2 + lane)) != -1) at = (at + 1) & (KEYS - 1);
    }
#else
    int columns = 2;
    while (columns < 2 + SLOTS && row[MASS_AT(columns - 2)] > 0.0f) columns++;
    if (columns > most) return columns;
    m[0] = row[0];
    m[1] = row[1];
ROLL
    for (int p = 2; p < columns; p++) {
        if (cluster) cluster[p] = ids[ID_AT(p - 2)];
        m[p] = row[MASS_AT(p - 2)];
        add_key(key, ids[ID_AT(p - 2)], p);
    }
#endif
    SYNC;
    return columns;
}

// Where the partners of rows stand: base, lim and shift (k,) as in rows.cu. The first `near`
// shifts are along the places of a colour, the others along a random order of them (size,), whose
// inverse leads back; with near = 0 all are along the places. LISTED: partners lie where
// their dissimilarities lie.
struct Graph {
    const int *base, *lim, *shift, *order, *inverse, *listed;
    int near, size, k;
};

__device__ __forceinline__ int partner_of(const Graph& graph, int h, int t, i64 column) {
#ifdef LISTED
    return h < graph.k ? graph.listed[column] : -1;
#else
    if (h >= graph.k) return -1;
    bool far = graph.near && h >= graph.near;
    int p = (far ? graph.order[t] : t) + graph.shift[h];
    p -= p >= graph.size ? graph.size : 0;
    if (far) p = graph.inverse[p];
    return p < graph.lim[h] ? graph.base[h] + p : -1;
#endif
}

// 1 / x for x > 0 but for the last bits: a step need not be rounded.
__device__ __forceinline__ double reciprocal(double x) {
    if (!(x > 1e-30 && x < 1e30)) return 1.0 / x;
    double y = 1.0f / (float)x;
    y *= 2.0 - x * y;
    return y * (2.0 - x * y);
}

// Step d of the working set that minimises d'(S + eps)d / 2 + g'd with 1'd = 0: LDL' with the lanes
// side by side, two solves. Returns the least pivot relative to the mean diagonal.
__device__ __noinline__ double equality_step(Room* room, int s, double ridge) {
    double mean = 0.0, diagonal = 0.0, share = 1.0 / s, least = 1e300;
ROLL
    for (int a = 0; a < s; a++) {
        int p = room->work[a];
        diagonal += room->S[AT(p, p)];
        mean += room->g[p];
    }
    diagonal *= share;
    mean *= share;
    double eps = ridge * diagonal + 1e-200;
    SYNC;
ROLL
    for (int a = LANE; a < s; a += LANES) {
        int p = room->work[a];
ROLL
        for (int b = 0; b <= a; b++) {
            int q = room->work[b];
            room->L[AT(a, b)] = room->S[AT(p, q)] + (a == b ? eps : 0.0);
        }
        // Only differences of g matter, as 1'd = 0.
        room->y[a] = mean - room->g[p];
        room->z[a] = 1.0;
    }
    double num = 0.0, den = 0.0;
ROLL
    for (int b = 0; b < s; b++) {
        SYNC;
        double pivot = room->L[AT(b, b)];
        least = pivot < least ? pivot : least;
        // Rounding can push the last pivots of a singular S below the proximal term.
        double inverse = reciprocal(pivot > eps ? pivot : eps), y = room->y[b], z = room->z[b];
        num += y * z * inverse;
        den += z * z * inverse;
        if (LANE == 0) room->inverse[b] = inverse;
ROLL
        for (int a = b + 1 + LANE; a < s; a += LANES) {
            double scaled = room->L[AT(a, b)] * inverse;
            room->y[a] -= scaled * y;
            room->z[a] -= scaled * z;
ROLL
            for (int p = b + 1; p <= a; p++) room->L[AT(a, p)] -= scaled * room->L[AT(p, b)];
        }
    }
    double nu = -num / den, drift = 0.0;
    SYNC;
ROLL
    for (int a = LANE; a < s; a += LANES)
        room->d[a] = (room->y[a] + nu * room->z[a]) * room->inverse[a];
ROLL
    for (int a = s - 1; a >= 0; a--) {
        SYNC;
        double da = room->d[a];
        drift += da;
ROLL
        for (int b = LANE; b < a; b += LANES) room->d[b] -= room->L[AT(a, b)] * room->inverse[b] * da;
    }
    drift *= share;
    SYNC;
ROLL
    for (int a = LANE; a < s; a += LANES) room->d[a] -= drift;
    SYNC;
    return diagonal > 0.0 ? least / diagonal : 1.0;
}

// As `minimise_on_working_set` of evdist/kernels/simplex.py: moves `now` and g; returns the
// component that should enter, -1 for none. All lanes see the same numbers and decide the same.
__device__ __noinline__ int minimise(Room* room, int columns, int* size) {
    int s = *size;
    unsigned in = 0;
    double scale = 0.0, nu = 0.0;
ROLL
    for (int a = 0; a < s; a++) {
        int p = room->work[a];
        in |= 1u << p;
        scale = fmax(scale, room->S[AT(p, p)]);
    }
ROLL
    for (int p = 0; p < columns; p++) scale = fmax(scale, fabs(room->g[p]));
    double tol = TOL * scale;
ROLL
    for (int round = 0; round < MAX_ROUNDS + W; round++) {
        for (double ridge = PROXIMAL; equality_step(room, s, ridge) < NOISE; ridge = NOISE)
            if (ridge == NOISE) break;
        double step = 1.0, far = 0.0;
        int block = -1;
ROLL
        for (int a = 0; a < s; a++) {
            double d = room->d[a], m = room->now[room->work[a]];
            if (d < 0.0 && m + step * d < 0.0) {
                step = m / -d;
                block = a;
            }
        }
ROLL
        for (int a = 0; a < s; a++) far = fmax(far, fabs(step * room->d[a]));
ROLL
        for (int p = LANE; p < columns; p += LANES) {
            double sum = 0.0;
ROLL
            for (int a = 0; a < s; a++) sum += step * room->d[a] * room->S[AT(room->work[a], p)];
            room->g[p] += sum;
        }
        SYNC;
ROLL
        for (int a = LANE; a < s; a += LANES) {
            int p = room->work[a];
            double moved = room->now[p] + step * room->d[a];
            room->now[p] = a == block || moved < 0.0 ? 0.0 : moved;
        }
        SYNC;
        if (block >= 0) {
            in &= ~(1u << room->work[block]);
            s--;
            SYNC;
            if (LANE == 0)
ROLL
                for (int p = block; p < s; p++) room->work[p] = room->work[p + 1];
            SYNC;
            continue;
        }
        // On the working set the gradient is now constant up to rounding: the multiplier nu.
        double spread = 0.0;
        nu = 0.0;
ROLL
        for (int a = 0; a < s; a++) nu += room->g[room->work[a]];
        nu /= s;
ROLL
        for (int a = 0; a < s; a++) spread = fmax(spread, fabs(room->g[room->work[a]] - nu));
        if (spread <= tol || far <= 1e-15) break;
    }
    int enter = -1;
    double worst = nu - tol;
ROLL
    for (int p = 0; p < columns; p++)
        if (!(in >> p & 1) && room->g[p] < worst) {
            worst = room->g[p];
            enter = p;
        }
    *size = s;
    return enter;
}

// What a lane knows of its partners: positions (-1 for none), 1 - m(Omega), dissimilarities,
// weights, the largest mass on a cluster without a column; conflicts of the row as it is, and
// residuals.
struct Mine {
    int at[PER];
    float base[PER], goal[PER], w[PER], other[PER];
    double kappa[PER], r[PER];
};

// out[j] = sum_p x[p] A[p][t]: conflicts, exact where x is on the grid.
__device__ __forceinline__ void dots(
    const float* A, const double* x, int columns, int k, double* out) {
UNROLL
    for (int j = 0; j < PER; j++) out[j] = 0.0;
ROLL
    for (int p = 0; p < columns; p++, A += k) {
        double xp = x[p];
UNROLL
        for (int j = 0; j < PER; j++) out[j] += xp * (double)A[PLACE(j)];
    }
}

// Row p of S, from the columns 0 .. p, in float32 as on threads: NOISE is what this leaves.
__device__ __forceinline__ void gram_row(
    const float* A, const Mine& mine, int p, int k, double* S) {
ROLL
    for (int first = 0; first <= p; first += 8) {
        float v[8];
#pragma unroll
        for (int i = 0; i < 8; i++) v[i] = 0.0f;
UNROLL
        for (int j = 0; j < PER; j++) {
            int t = PLACE(j);
            float x = mine.w[j] * A[p * k + t];
#pragma unroll
            for (int i = 0; i < 8; i++)
                if (first + i <= p) v[i] += x * A[(first + i) * k + t];
        }
        put_sums(v, S + p * (p + 1) / 2 + first, p + 1 - first);
    }
}

// The partners' masses in the columns there are.
__device__ __forceinline__ void fill_columns(
    const float* T, const Room* room, int columns, Mine& mine, int k, float* A) {
    unsigned alive[(PER + 31) / 32] = {0};
UNROLL
    for (int j = 0; j < PER; j++) {
        if (!OWNS(j)) continue;
        bool there = mine.at[j] >= 0;
        A[PLACE(j)] = there ? 1.0f : 0.0f;
        A[k + PLACE(j)] = there ? T[(i64)mine.at[j] * WORDS] : 0.0f;
        if (there) alive[j >> 5] |= 1u << (j & 31);
    }
ROLL
    for (int p = 2; p < columns; p++)
UNROLL
        for (int j = 0; j < PER; j++)
            if (OWNS(j)) A[p * k + PLACE(j)] = mine.base[j];
ROLL
    for (int q = 0; q < QUADS; q++) {
        Quad quad[PER];
        bool more = false;
UNROLL
        for (int j = 0; j < PER; j++)
            if (alive[j >> 5] >> (j & 31) & 1) quad[j] = load_quad(T + (i64)mine.at[j] * WORDS, q);
UNROLL
        for (int j = 0; j < PER; j++) {
            if (!(alive[j >> 5] >> (j & 31) & 1)) continue;
ROLL
            for (int e = 0; e < 4; e++) {
                float mass = mass_of(quad[j], e);
                if (mass <= 0.0f) break;
                int p = column_of(room->key, id_of(quad[j], e));
                if (p >= 0)
                    A[p * k + PLACE(j)] = mine.base[j] - mass;
                else
                    mine.other[j] = fmaxf(mine.other[j], mass);
            }
            if (quad[j].mass.w > 0.0f)
                more = true;
            else
                alive[j >> 5] &= ~(1u << (j & 31));
        }
        if (!more) break;
    }
    SYNC;
}

// Clusters a without a column whose sum_t r_t s_t(a) seems to be above `least` / fix, the largest
// first: into `found`, ENTRANTS at most; returns how many. A lane offers one of those that it looks
// at. G (c,) is zero before and after.
__device__ __forceinline__ int best_entrants(
    const float* T, const Room* room, const Mine& mine, int c, double least, double fix, int* G,
    int* found) {
    unsigned alive[(PER + 31) / 32] = {0};
UNROLL
    for (int j = 0; j < PER; j++)
        if (mine.other[j] > 0.0f) alive[j >> 5] |= 1u << (j & 31);
ROLL
    for (int q = 0; q < QUADS; q++) {
        Quad quad[PER];
        bool more = false;
UNROLL
        for (int j = 0; j < PER; j++)
            if (alive[j >> 5] >> (j & 31) & 1) quad[j] = load_quad(T + (i64)mine.at[j] * WORDS, q);
UNROLL
        for (int j = 0; j < PER; j++) {
            if (!(alive[j >> 5] >> (j & 31) & 1)) continue;
            float unit = (float)(mine.r[j] * fix);
ROLL
            for (int e = 0; e < 4; e++) {
                float mass = mass_of(quad[j], e);
                int a = id_of(quad[j], e);
                if (mass <= 0.0f) break;
                // Most partners name the row's own clusters: these would wait for each other.
                if (column_of(room->key, a) < 0) atomicAdd(G + a, (int)rintf(unit * mass));
            }
            if (quad[j].mass.w > 0.0f)
                more = true;
            else
                alive[j >> 5] &= ~(1u << (j & 31));
        }
        if (!more) break;
    }
    SYNC;
    // A sum and its cluster in one number: of equal sums the first cluster.
    const i64 none = -(1LL << 62);
    i64 best = none;
#ifdef FAR
UNROLL
    for (int j = 0; j < PER; j++) {
        if (mine.at[j] < 0) continue;
        const float* row = T + (i64)mine.at[j] * WORDS;
ROLL
        for (int q = 0; q < QUADS; q++) {
            Quad quad = load_quad(row, q);
ROLL
            for (int e = 0; e < 4; e++) {
                if (mass_of(quad, e) <= 0.0f) break;
                // The first entry of a cluster takes its sum, the others find zero.
                int a = id_of(quad, e), total = atomicExch(G + a, 0);
                if (total && total > least) {
                    i64 mark = (i64)total * 65536 + (0xFFFF - a);
                    best = mark > best ? mark : best;
                }
            }
            if (quad.mass.w <= 0.0f) break;
        }
    }
#else
ROLL
    for (int a = LANE; a < c; a += LANES) {
        int total = G[a];
        G[a] = 0;
        if (total && total > least) {
            i64 mark = (i64)total * 65536 + (0xFFFF - a);
            best = mark > best ? mark : best;
        }
    }
#endif
    int count = 0;
    SYNC;
#pragma unroll
    for (int e = 0; e < ENTRANTS; e++) {
        i64 most = warp_max(best);
        found[e] = 0xFFFF - (int)(most & 0xFFFF);
        if (most != none) count++;
        if (most == best) best = none;
    }
    return count;
}

// Cluster a as column p: the partners' masses and its gradient, which is returned.
__device__ __forceinline__ double fill_column(
    const float* T, int a, int p, const Mine& mine, int k, float* A) {
    double sum = 0.0;
    float value[PER];
    unsigned alive[(PER + 31) / 32] = {0};
UNROLL
    for (int j = 0; j < PER; j++) {
        value[j] = mine.base[j];
        if (mine.at[j] >= 0) alive[j >> 5] |= 1u << (j & 31);
    }
ROLL
    for (int q = 0; q < QUADS; q++) {
        Quad quad[PER];
        bool more = false;
UNROLL
        for (int j = 0; j < PER; j++)
            if (alive[j >> 5] >> (j & 31) & 1) quad[j] = load_quad(T + (i64)mine.at[j] * WORDS, q);
UNROLL
        for (int j = 0; j < PER; j++) {
            if (!(alive[j >> 5] >> (j & 31) & 1)) continue;
ROLL
            for (int e = 0; e < 4; e++)
                if (id_of(quad[j], e) == a) value[j] -= mass_of(quad[j], e);
            if (id_of(quad[j], 3) < a)  // they ascend
                more = true;
            else
                alive[j >> 5] &= ~(1u << (j & 31));
        }
        if (!more) break;
    }
UNROLL
    for (int j = 0; j < PER; j++) {
        if (OWNS(j)) A[p * k + PLACE(j)] = value[j];
        sum += mine.r[j] * (double)value[j];
    }
    SYNC;
    return warp_sum(sum);
}

// At most SLOTS clusters keep mass; what the least of them lose goes to the largest.
__device__ __forceinline__ void keep_largest(double* m, int columns) {
    int count = 0;
ROLL
    for (int p = 2; p < columns; p++) count += m[p] > 0.0;
    for (; count > SLOTS; count--) {
        int least = -1, most = -1;
ROLL
        for (int p = 2; p < columns; p++) {
            if (m[p] > 0.0 && (least < 0 || m[p] < m[least])) least = p;
            if (most < 0 || m[p] > m[most]) most = p;
        }
        m[most] += m[least];
        m[least] = 0.0;
    }
}

// Masses to the grid; the first of the largest takes what the others lose.
__device__ __forceinline__ void quantise(double* m, int columns) {
    double part = 0.0;
    i64 best = -1;
ROLL
    for (int p = LANE; p < columns; p += LANES) {
        double units = floor(m[p] * GRID + 0.5);
        i64 mark = (i64)units * 64 + (63 - p);
        m[p] = units;
        part += units;
        best = mark > best ? mark : best;
    }
    double total = warp_sum(part);
    int big = 63 - (int)(warp_max(best) & 63);
ROLL
    for (int p = LANE; p < columns; p += LANES)
        m[p] = (m[p] + (p == big ? GRID - total : 0.0)) / GRID;
}

__device__ __forceinline__ void write_row(float* row, const Room* room, int columns) {
    u16* ids = (u16*)row;
    int count = 0;
ROLL
    for (int p = 2; p < columns; p++) count += room->now[p] > 0.0;
    if (LANE == 0) {
        row[0] = (float)room->now[0];
        row[1] = (float)room->now[1];
    }
ROLL
    for (int p = 2 + LANE; p < columns; p += LANES) {
        if (room->now[p] <= 0.0) continue;
        int rank = 0, a = room->cluster[p];
ROLL
        for (int q = 2; q < columns; q++) rank += room->now[q] > 0.0 && room->cluster[q] < a;
        ids[ID_AT(rank)] = (u16)a;
        row[MASS_AT(rank)] = (float)room->now[p];
    }
ROLL
    for (int q = count + LANE; q < SLOTS; q += LANES) {
        ids[ID_AT(q)] = (u16)(FREE + q);
        row[MASS_AT(q)] = 0.0f;
    }
}

// Minimise over the rows of a colour, the others fixed: at places 0 .. rows - 1, or at `places`, or
// at the first *count of these. A row that last brought less than `skip` is left alone; `promise` is
// that of sparse_sweep.update_sparse. Rows whose
// program has more than W columns are noted in `wide`, their number in *n_wide; without `wide` they
// do with W. Dissimilarities are those of positions from `first` on, h stride + (i - first) along for
// partner h of position i; fix makes whole numbers of r s. A warp has `bytes` of room, in `scratch` or else in shared memory, and
// c numbers of `sums` (FAR).
extern "C" __global__ void __launch_bounds__(128, BLOCKS) update(
    float* T, const float* delta, const float* weight, float* change, const int* base,
    const int* lim, const int* shift, const int* order, const int* inverse, const int* listed,
    const int* places, const int* count, int* wide, int* n_wide, char* scratch, int* sums,
    i64 first, i64 stride, i64 along, double skip, double promise, double fix,
    int lo, int rows, int size, int k, int near, int c, int bytes, int warps) {
    if (WARP >= warps) return;
    Room* room = (Room*)(scratch ? scratch + (i64)WARP * bytes
                                 : (char*)shared_room + (i64)IN_BLOCK * bytes);
    float* A = (float*)(room + 1);
    Graph graph = {base, lim, shift, order, inverse, listed, near, size, k};
#ifdef FAR
    int* G = sums + (i64)WARP * c;
#else
    int* G = (int*)(A + W * k);
ROLL
    for (int a = LANE; a < c; a += LANES) G[a] = 0;
#endif
    if (count) rows = *count;
    for (int number = WARP; number < rows; number += warps) {
        int t = places ? places[number] : number;
        i64 i = (i64)lo + t;
        if (-(double)change[i] < skip) {
            SYNC;
            if (LANE == 0) change[i] = 0.0f;
            continue;
        }
        float* row = T + i * WORDS;
        SYNC;
        int columns = own_columns(row, W, room->key, room->cluster, room->m), size_w = 0;
        bool room_left = columns <= W;
        double pairs = 0.0;  // their weight
        Mine mine;
        if (room_left) {
UNROLL
            for (int j = 0; j < PER; j++) {
                int h = j * LANES + LANE;
                i64 entry = h * stride + (i - first) * along;
                int at = partner_of(graph, h, t, entry);
                mine.at[j] = at;
                mine.base[j] = mine.goal[j] = mine.w[j] = mine.other[j] = 0.0f;
                if (at >= 0) {
                    FETCH(T + (i64)at * WORDS);
                    mine.base[j] = 1.0f - T[(i64)at * WORDS + 1];
                    mine.goal[j] = delta[entry];
#ifdef WEIGHTED
                    mine.w[j] = weight[i] * weight[at];
#else
                    mine.w[j] = 1.0f;
#endif
                }
            }
            fill_columns(T, room, columns, mine, k, A);
            double v[8];
UNROLL
            for (int j = 0; j < PER; j++) pairs += (double)mine.w[j];
            pairs = warp_sum(pairs);
            dots(A, room->m, columns, k, mine.kappa);
UNROLL
            for (int j = 0; j < PER; j++)
                mine.r[j] = (double)mine.w[j] * (mine.kappa[j] - (double)mine.goal[j]);
ROLL
            for (int p0 = 0; p0 < columns; p0 += 8) {
#pragma unroll
                for (int e = 0; e < 8; e++) {
                    v[e] = 0.0;
                    if (p0 + e < columns)
UNROLL
                        for (int j = 0; j < PER; j++)
                            v[e] += mine.r[j] * (double)A[(p0 + e) * k + PLACE(j)];
                }
                put_sums(v, room->g + p0, columns - p0);
            }
            SYNC;
ROLL
            for (int p = 0; p < columns; p++)
                if (room->m[p] > 0.0) {
                    if (LANE == 0) room->work[size_w] = p;
                    size_w++;
                }
ROLL
            for (int p = LANE; p < columns; p += LANES) room->now[p] = room->m[p];
            SYNC;
        }
        for (int round = 0, made = 0; room_left && round < MAX_ROUNDS; round++) {
ROLL
            for (; made < columns; made++) gram_row(A, mine, made, k, room->S);
            SYNC;
            for (int inner = 0; inner < MAX_ROUNDS; inner++) {
                int enter = minimise(room, columns, &size_w);
                if (enter < 0) break;
                if (LANE == 0) room->work[size_w] = enter;
                size_w++;
                SYNC;
            }
            if (promise > 1e300 || (promise > 0.0 && round > 0)) break;
            dots(A, room->now, columns, k, mine.r);
UNROLL
            for (int j = 0; j < PER; j++)
                mine.r[j] = (double)mine.w[j] * (mine.r[j] - (double)mine.goal[j]);
            // The multiplier of the working set less tolerance and slack: a gradient below may enter.
            double nu = 0.0, scale = 0.0;
ROLL
            for (int a = 0; a < size_w; a++) {
                int p = room->work[a];
                nu += room->g[p];
                scale = fmax(scale, room->S[AT(p, p)]);
            }
ROLL
            for (int p = 0; p < columns; p++) scale = fmax(scale, fabs(room->g[p]));
            double below = nu / size_w - TOL * scale - promise * pairs;
            // The gradient of cluster a is sum_t r_t (base_t - s_t(a)), and s_t(a) <= other_t: where
            // that is enough there is no need to look at each of them.
            double common = 0.0, reach = 0.0;
UNROLL
            for (int j = 0; j < PER; j++) {
                common += mine.r[j] * (double)mine.base[j];
                reach += fmax(mine.r[j], 0.0) * (double)mine.other[j];
            }
            common = warp_sum(common);
            if (common - warp_sum(reach) >= below) break;
            int entrant[ENTRANTS], added = 0;
            int offered =
                best_entrants(T, room, mine, c, (common - below) * fix, fix, G, entrant);
ROLL
            for (int e = 0; e < offered; e++) {
                if (columns == W) {
                    room_left = !wide;
                    break;
                }
                double gradient = fill_column(T, entrant[e], columns, mine, k, A);
                if (gradient >= below) continue;  // it was the rounding of the sums
                if (LANE == 0) {
                    room->cluster[columns] = entrant[e];
                    add_key(room->key, entrant[e], columns);
                    room->g[columns] = gradient;
                    room->now[columns] = 0.0;
                    room->work[size_w] = columns;
                }
                SYNC;
                size_w++;
                columns++;
                added++;
            }
            if (!added || !room_left) break;
        }
        if (!room_left) {
            if (LANE == 0) {
                if (wide)
                    wide[atomicAdd(n_wide, 1)] = t;
                else
                    change[i] = 0.0f;
            }
            continue;
        }
        SYNC;
        if (LANE == 0 && columns > 2 + SLOTS) keep_largest(room->now, columns);
        SYNC;
        quantise(room->now, columns);
        SYNC;
        double gain = 0.0;
        dots(A, room->now, columns, k, mine.r);
UNROLL
        for (int j = 0; j < PER; j++) {
            double after = mine.r[j], before = mine.kappa[j];
            gain += (double)mine.w[j] * (after - before) *
                    (after + before - 2.0 * (double)mine.goal[j]);
        }
        gain = warp_sum(gain);
        if (gain < 0.0) write_row(row, room, columns);
        if (LANE == 0) change[i] = gain < 0.0 ? (float)gain : 0.0f;
    }
}

// out[row]: sum over the pairs of the row of w (kappa - delta)^2; conflicts are exact. Rows are those
// at places place .. place + rows - 1 of the colour that begins at lo.
extern "C" __global__ void __launch_bounds__(128) losses(
    const float* T, const float* delta, const float* weight, double* out, const int* base,
    const int* lim, const int* shift, const int* order, const int* inverse, const int* listed,
    char* scratch, i64 first, i64 stride, i64 along, int lo, int place, int rows, int size, int k, int near, int bytes,
    int warps) {
    if (WARP >= warps) return;
    double* own = (double*)(scratch ? scratch + (i64)WARP * bytes
                                    : (char*)shared_room + (i64)IN_BLOCK * bytes);
    int* key = (int*)(own + 2 + SLOTS);
    Graph graph = {base, lim, shift, order, inverse, listed, near, size, k};
    for (int number = WARP; number < rows; number += warps) {
        int t = place + number;
        i64 i = (i64)lo + t;
        const float* row = T + i * WORDS;
        SYNC;
        own_columns(row, 2 + SLOTS, key, 0, own);
        double rest = 1.0 - own[0] - own[1], sum = 0.0;
        for (int h = LANE; h < k; h += LANES) {
            i64 entry = h * stride + (i - first) * along;
            int at = partner_of(graph, h, t, entry);
            if (at < 0) continue;
            const float* other = T + (i64)at * WORDS;
            double kappa = own[0] + own[1] * (double)other[0] + rest * (1.0 - (double)other[1]);
ROLL
            for (int q = 0; q < QUADS; q++) {
                Quad quad = load_quad(other, q);
                for (int e = 0; e < 4; e++) {
                    float mass = mass_of(quad, e);
                    if (mass <= 0.0f) break;
                    int p = column_of(key, id_of(quad, e));
                    if (p >= 0) kappa -= own[p] * (double)mass;
                }
                if (quad.mass.w <= 0.0f) break;
            }
            double r = kappa - (double)delta[entry];
#ifdef WEIGHTED
            sum += (double)(weight[i] * weight[at]) * r * r;
#else
            sum += r * r;
#endif
        }
        sum = warp_sum(sum);
        if (LANE == 0) out[number] = sum;
    }
}

// Masses of all n rows to the grid; clusters that lose theirs are no longer named.
extern "C" __global__ void __launch_bounds__(128) settle(float* T, i64 n) {
    i64 i = (i64)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float* row = T + i * WORDS;
    u16* ids = (u16*)row;
    double m[2 + SLOTS], total = 0.0;
    int big = 0, count = 0;
    for (int a = 0; a < 2 + SLOTS; a++) {
        m[a] = floor((double)row[a < 2 ? a : MASS_AT(a - 2)] * GRID + 0.5);
        total += m[a];
        if (m[a] > m[big]) big = a;
    }
    m[big] += GRID - total;
    row[0] = (float)(m[0] / GRID);
    row[1] = (float)(m[1] / GRID);
    for (int a = 2; a < 2 + SLOTS; a++)
        if (m[a] > 0.0) {
            ids[ID_AT(count)] = ids[ID_AT(a - 2)];
            row[MASS_AT(count)] = (float)(m[a] / GRID);
            count++;
        }
    for (; count < SLOTS; count++) {
        ids[ID_AT(count)] = (u16)(FREE + count);
        row[MASS_AT(count)] = 0.0f;
    }
}

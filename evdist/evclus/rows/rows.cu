// Row programs of EVCLUS on a GPU: one thread per row, the whole program in its registers.
// More than 16 focal sets do not fit there: then S is made in tiles of 8 x 8 that do, and kept in
// the thread's own memory, where the working set alone is read.
//
// Partners of consecutive rows are consecutive positions (evdist/kernels/graph.py), so the 32
// threads of a warp read 32 neighbouring numbers: the gather is a set of streams. A table of f
// numbers per position lies in tiles of 32 positions, (tiles, f, 32): number j of position i is
// at (i / 32) 32 f + 32 j + i % 32, and one address serves all f loads.
//
// Up to 16 focal sets everything is float32, which any GPU does at full speed. A row is changed only
// where its gain exceeds a bound of all rounding errors in it, so the objective falls in exact
// arithmetic too. With more (MANY), the program is solved and the gain computed in float64.
//
// A pair may have several residuals, VIEWS of them, each with a matrix C of its own (Bootclus has
// two). Then a position has as many rows of the table, which is VIEWS tables one behind the other,
// and the lists of partners hold each as often: k counts residuals.
//
// Compiled with -DF=<focal sets>, and -DVIEWS, -DWEIGHTED, -DLINKED, -DHALF as wanted; `distances` with
// -DNEAR or -DLISTED. Symbols are those of evdist/evclus/rows/sweep.py: S = Sigma = A' W A (lower triangle), g = A' W (A m - delta).

typedef long long i64;

#ifndef VIEWS
#define VIEWS 1
#endif

#define TRIANGLE (F * (F + 1) / 2)
#define AT(a, b) ((a) >= (b) ? (a) * ((a) + 1) / 2 + (b) : (b) * ((b) + 1) / 2 + (a))

// Masses are multiples of 2^-24; UNIT is the unit roundoff of float32.
#define GRID 16777216
#define UNIT 5.9604645e-8f
// Proximal term of a step, relative to the mean diagonal of S: what float32 sums can tell.
#define RIDGE 1e-6f
// Error of the optimality conditions, relative to the scale of S and g.
#define TOL 2.4e-7f
// Partners whose distances are summed at the same time.
#define AT_ONCE 8
// Beyond this many focal sets a thread works in its own memory, with loops. So it does where pairs
// have several residuals: the mean square that intervals leave may be 1e-6 and less, and float64
// tells gains that float32 does not.
#define MANY (F > 16 || VIEWS > 1)
#define BLOCK 8
#if MANY
#define UNROLL _Pragma("unroll 1")
typedef double real;
// Those of evdist/kernels/simplex.py and sweep.py; NOISE is the relative error of S.
#define PROXIMAL 1e-11
#define NOISE 2e-6
#define FINE 1e-8
#else
#define UNROLL _Pragma("unroll")
typedef float real;
#endif

#ifdef HALF
typedef unsigned short delta_t;
__device__ inline float load_delta(const delta_t* p) {
    float x;
    asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(*p));
    return x;
}
__device__ inline delta_t as_delta(float x) {
    delta_t h;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h) : "f"(x));
    return h;
}
#else
typedef float delta_t;
__device__ inline float load_delta(const delta_t* p) { return *p; }
__device__ inline delta_t as_delta(float x) { return x; }
#endif

__device__ inline i64 tile(i64 i, int width) { return (i >> 5) * 32 * width + (i & 31); }

// Partner h of the rows at place t of their colour: base, lim and shift (k,) tell where the
// partners' colour begins, how many positions it has, and how far they are shifted. Where there is
// no partner the answer is `none`: a table has a row of zeros behind its last one.
__device__ inline int partner(
    const int* base, const int* lim, const int* shift, int h, int k, int t, int size, int none) {
    if (h >= k) return none;
    int p = t + shift[h];
    p -= p >= size ? size : 0;
    return p < lim[h] ? base[h] + p : none;
}

__device__ inline void load_row(const float* table, int at, float* A) {
    const float* from = table + tile(at, F);
#pragma unroll
    for (int a = 0; a < F; a++) A[a] = from[32 * a];
}

#if !MANY

// A pair's share of S and g.
__device__ inline void add_pair(
    const float* A, float goal, const float* m, float w, float* S, float* g, float* gaps) {
    float r = -goal;
#pragma unroll
    for (int a = 0; a < F; a++) r += A[a] * m[a];
#ifdef WEIGHTED
    r *= w;
#endif
    *gaps += fabsf(r);
#pragma unroll
    for (int a = 0; a < F; a++) {
#ifdef WEIGHTED
        float y = w * A[a];
#else
        float y = A[a];
#endif
#pragma unroll
        for (int b = 0; b <= a; b++) S[AT(a, b)] += y * A[b];
        g[a] += A[a] * r;
    }
}

// S and g; `total` sums the weights, `gaps` the absolute residuals. By turns, a pair is loaded
// while the other is added. Sums are kept in arrays of one thread: in registers.
__device__ inline void gram(
    const float* table, const delta_t* delta, i64 stride, const float* weight, float own,
    const float* mass, const int* base, const int* lim, const int* shift, int t, int size, int k,
    int none, float* S_out, float* g_out, float* total, float* gaps) {
    float A[F], B[F], S[TRIANGLE], g[F], m[F], off = 0.0f, wa = 1.0f, wb = 1.0f;
    *total = 0.0f;
#pragma unroll
    for (int a = 0; a < TRIANGLE; a++) S[a] = 0.0f;
#pragma unroll
    for (int a = 0; a < F; a++) {
        g[a] = 0.0f;
        m[a] = mass[a];
    }
    int at = partner(base, lim, shift, 0, k, t, size, none);
    int next = partner(base, lim, shift, 1, k, t, size, none);
    load_row(table, at, A);
    float goal = load_delta(delta);  // zero where there is no partner
    for (int h = 0; h < k; h += 2) {
        load_row(table, next, B);
        float goal_b = h + 1 < k ? load_delta(delta + stride) : 0.0f;
#ifdef WEIGHTED
        wa = at == none ? 0.0f : own * weight[at];
        wb = next == none ? 0.0f : own * weight[next];
        *total += wa + wb;
#endif
        at = partner(base, lim, shift, h + 2, k, t, size, none);
        next = partner(base, lim, shift, h + 3, k, t, size, none);
        add_pair(A, goal, m, wa, S, g, &off);
        delta += 2 * stride;
        load_row(table, at, A);
        goal = h + 2 < k ? load_delta(delta) : 0.0f;
        add_pair(B, goal_b, m, wb, S, g, &off);
    }
#ifndef WEIGHTED
    *total = k;
#endif
    *gaps = off;
#pragma unroll
    for (int a = 0; a < TRIANGLE; a++) S_out[a] = S[a];
#pragma unroll
    for (int a = 0; a < F; a++) g_out[a] = g[a];
}

// The minimiser d of d'Sd/2 + g'd with 1'd = 0 on the working set W (bits): LDL' and two solves.
// A component outside W has a unit pivot and a zero right-hand side, so that all threads do the
// same work at the same places.
__device__ inline void equality_step(const float* S, const float* g, unsigned W, float* d) {
    float L[TRIANGLE], y[F], z[F];
    float mean = 0.0f, eps = 0.0f, count = 0.0f;
#pragma unroll
    for (int a = 0; a < F; a++)
        if (W >> a & 1) {
            mean += g[a];
            eps += S[AT(a, a)];
            count += 1.0f;
        }
    float share = 1.0f / count;
    mean *= share;
    eps = eps * share * RIDGE + 1e-30f;
    float num = 0.0f, den = 0.0f;
#pragma unroll
    for (int a = 0; a < F; a++) {
        bool in = W >> a & 1;
        float pivot = S[AT(a, a)] + eps;
        // Only differences of g matter, as 1'd = 0.
        float ya = in ? mean - g[a] : 0.0f, za = in ? 1.0f : 0.0f;
#pragma unroll
        for (int b = 0; b < a; b++) {
            float x = in && (W >> b & 1) ? S[AT(a, b)] : 0.0f;
#pragma unroll
            for (int p = 0; p < b; p++) x -= L[AT(a, p)] * L[AT(b, p)];
            L[AT(a, b)] = x;  // still unscaled
        }
#pragma unroll
        for (int b = 0; b < a; b++) {
            float scaled = L[AT(a, b)] * L[AT(b, b)];
            pivot -= scaled * L[AT(a, b)];
            L[AT(a, b)] = scaled;
            ya -= scaled * y[b];
            za -= scaled * z[b];
        }
        // Rounding can push the last pivots of a singular S below the proximal term.
        float inverse = in ? 1.0f / fmaxf(pivot, eps) : 1.0f;
        L[AT(a, a)] = inverse;
        y[a] = ya;
        z[a] = za;
        num += ya * za * inverse;
        den += za * za * inverse;
    }
    float nu = -num / den, drift = 0.0f;
#pragma unroll
    for (int a = F - 1; a >= 0; a--) {
        float x = (y[a] + nu * z[a]) * L[AT(a, a)];
#pragma unroll
        for (int p = a + 1; p < F; p++) x -= L[AT(p, a)] * d[p];
        d[a] = x;
        drift += x;
    }
    drift *= share;
#pragma unroll
    for (int a = 0; a < F; a++)
        if (W >> a & 1) d[a] -= drift;
}

// Active-set minimiser on the simplex from m; g follows. Where S and the factors do not fit into
// the registers together, it is a function apart, so that the sums of S are not pushed out of them.
#if F > 12
#define APART __noinline__
#else
#define APART inline
#endif
__device__ APART void minimise(const float* S, float* g, float* m, int rounds) {
    float d[F];
    unsigned W = 0;
    float scale = 0.0f;
#pragma unroll
    for (int a = 0; a < F; a++) {
        if (m[a] > 0.0f) W |= 1u << a;
        scale = fmaxf(scale, fmaxf(S[AT(a, a)], fabsf(g[a])));
    }
    const float tol = TOL * scale;
    for (int round = 0; round < rounds; round++) {
        equality_step(S, g, W, d);
        float length = 1.0f;
        int block = -1;
#pragma unroll
        for (int a = 0; a < F; a++)
            if (d[a] < 0.0f && m[a] + length * d[a] < 0.0f) {
                length = m[a] / -d[a];
                block = a;
            }
#pragma unroll
        for (int a = 0; a < F; a++) {
            d[a] *= length;
            m[a] = a == block ? 0.0f : fmaxf(m[a] + d[a], 0.0f);
        }
        float nu = 0.0f, count = 0.0f;
#pragma unroll
        for (int a = 0; a < F; a++) {
            float v = g[a];
#pragma unroll
            for (int b = 0; b < F; b++) v += S[AT(a, b)] * d[b];
            g[a] = v;
            if (W >> a & 1) {
                nu += v;
                count += 1.0f;
            }
        }
        if (block >= 0) {
            W &= ~(1u << block);
            continue;
        }
        float worst = nu / count - tol;
        int enter = -1;
#pragma unroll
        for (int a = 0; a < F; a++)
            if (!(W >> a & 1) && g[a] < worst) {
                worst = g[a];
                enter = a;
            }
        if (enter < 0) break;
        W |= 1u << enter;
    }
}

#else

// S and g; the residuals are exact. S is summed in tiles of 8 x 8 that fit into registers.
__device__ inline void gram(
    const float* table, const delta_t* delta, i64 stride, const float* weight, float own,
    const float* m, const int* base, const int* lim, const int* shift, int t, int size, int k,
    int none, float* S, real* g, float* total, float* gaps) {
    for (int a = 0; a < F; a++) g[a] = 0.0;
    for (int h = 0; h < k; h++, delta += stride) {
        int at = partner(base, lim, shift, h, k, t, size, -1);
        if (at < 0) continue;
        const float* from = table + tile(at, F);
        double r = -(double)load_delta(delta);
        for (int a = 0; a < F; a++) r += (double)from[32 * a] * m[a];
#ifdef WEIGHTED
        r *= own * weight[at];
#endif
        for (int a = 0; a < F; a++) g[a] += from[32 * a] * r;
    }
    for (int a0 = 0; a0 < F; a0 += BLOCK)
        for (int b0 = 0; b0 <= a0; b0 += BLOCK) {
            float sums[BLOCK][BLOCK], A[BLOCK], B[BLOCK];
#pragma unroll
            for (int a = 0; a < BLOCK; a++)
#pragma unroll
                for (int b = 0; b < BLOCK; b++) sums[a][b] = 0.0f;
            for (int h = 0; h < k; h++) {
                int at = partner(base, lim, shift, h, k, t, size, -1);
                if (at < 0) continue;
                const float* from = table + tile(at, F);
                float w = 1.0f;
#ifdef WEIGHTED
                w = own * weight[at];
#endif
#pragma unroll
                for (int a = 0; a < BLOCK; a++) {
                    A[a] = a0 + a < F ? w * from[32 * (a0 + a)] : 0.0f;
                    B[a] = b0 + a < F ? from[32 * (b0 + a)] : 0.0f;
                }
#pragma unroll
                for (int a = 0; a < BLOCK; a++)
#pragma unroll
                    for (int b = 0; b < BLOCK; b++) sums[a][b] += A[a] * B[b];
            }
#pragma unroll
            for (int a = 0; a < BLOCK; a++)
#pragma unroll
                for (int b = 0; b < BLOCK; b++)
                    if (a0 + a < F && b0 + b <= a0 + a) S[AT(a0 + a, b0 + b)] = sums[a][b];
        }
}

// The step of above on the components work[0 .. s - 1]; d and L go by place in `work`. Returns the
// smallest pivot relative to the mean diagonal: not above `ridge` where S is singular.
__device__ inline double equality_step(
    const float* S, const double* g, const int* work, int s, double ridge, double* L, double* y,
    double* z, double* d) {
    double mean = 0.0, diagonal = 0.0, share = 1.0 / s, least = 1e300;
    for (int a = 0; a < s; a++) {
        mean += g[work[a]];
        diagonal += S[AT(work[a], work[a])];
    }
    mean *= share;
    diagonal *= share;
    double eps = ridge * diagonal + 1e-200, num = 0.0, den = 0.0;
    for (int a = 0; a < s; a++) {
        int i = work[a];
        double pivot = S[AT(i, i)] + eps, ya = mean - g[i], za = 1.0;
        for (int b = 0; b < a; b++) {
            double x = S[AT(i, work[b])];
            for (int p = 0; p < b; p++) x -= L[AT(a, p)] * L[AT(b, p)];
            L[AT(a, b)] = x;
        }
        for (int b = 0; b < a; b++) {
            double scaled = L[AT(a, b)] * L[AT(b, b)];
            pivot -= scaled * L[AT(a, b)];
            L[AT(a, b)] = scaled;
            ya -= scaled * y[b];
            za -= scaled * z[b];
        }
        least = pivot < least ? pivot : least;
        double inverse = 1.0 / (pivot > eps ? pivot : eps);
        L[AT(a, a)] = inverse;
        y[a] = ya;
        z[a] = za;
        num += ya * za * inverse;
        den += za * za * inverse;
    }
    double nu = -num / den, drift = 0.0;
    for (int a = s - 1; a >= 0; a--) {
        double x = (y[a] + nu * z[a]) * L[AT(a, a)];
        for (int p = a + 1; p < s; p++) x -= L[AT(p, a)] * d[p];
        d[a] = x;
        drift += x;
    }
    drift *= share;
    for (int a = 0; a < s; a++) d[a] -= drift;
    return diagonal > 0.0 ? least / diagonal : 1.0;
}

// Active-set minimiser on the simplex from m; g follows. Many focal sets make S all but singular:
// steps along its flat directions need float64, as on the CPU.
__device__ inline void minimise(const float* S, double* g, float* m, int rounds) {
    double L[TRIANGLE], y[F], z[F], d[F];
    int work[F], s = 0;
    bool in[F];
    double scale = 0.0;
    for (int a = 0; a < F; a++) {
        in[a] = m[a] > 0.0f;
        if (in[a]) work[s++] = a;
        scale = fmax(scale, fmax((double)S[AT(a, a)], fabs(g[a])));
    }
    const double tol = FINE * scale;
    for (int round = 0; round < rounds; round++) {
        if (equality_step(S, g, work, s, PROXIMAL, L, y, z, d) < NOISE)
            equality_step(S, g, work, s, NOISE, L, y, z, d);
        double length = 1.0, size = 0.0;
        int block = -1;
        for (int a = 0; a < s; a++)
            if (d[a] < 0.0 && m[work[a]] + length * d[a] < 0.0) {
                length = m[work[a]] / -d[a];
                block = a;
            }
        for (int a = 0; a < s; a++) {
            int j = work[a];
            // What m takes up of the step, in float32, is what g has to follow.
            double goal = m[j] + length * d[a];
            float now = a == block || goal < 0.0 ? 0.0f : (float)goal;
            double move = (double)now - m[j];
            m[j] = now;
            size = fmax(size, fabs(move));
            for (int b = 0; b < F; b++) g[b] += S[AT(b, j)] * move;
        }
        if (block >= 0) {
            in[work[block]] = false;
            s--;
            for (int a = block; a < s; a++) work[a] = work[a + 1];
            continue;
        }
        double nu = 0.0, spread = 0.0;
        for (int a = 0; a < s; a++) nu += g[work[a]];
        nu /= s;
        for (int a = 0; a < s; a++) spread = fmax(spread, fabs(g[work[a]] - nu));
        if (spread > tol && size > 1e-7) continue;
        double worst = nu - tol;
        int enter = -1;
        for (int a = 0; a < F; a++)
            if (!in[a] && g[a] < worst) {
                worst = g[a];
                enter = a;
            }
        if (enter < 0) break;
        in[enter] = true;
        work[s++] = enter;
    }
}

// The exact change of a row's terms when m comes in the place of old.
__device__ inline double change_of_squares(
    const float* table, const delta_t* delta, i64 stride, const float* weight, float own,
    const float* m, const float* old, const int* base, const int* lim, const int* shift, int t,
    int size, int k) {
    double gain = 0.0;
    for (int h = 0; h < k; h++, delta += stride) {
        int at = partner(base, lim, shift, h, k, t, size, -1);
        if (at < 0) continue;
        const float* from = table + tile(at, F);
        double before = 0.0, moved = 0.0, w = 1.0;
        for (int a = 0; a < F; a++) {
            before += (double)from[32 * a] * old[a];
            moved += (double)from[32 * a] * ((double)m[a] - old[a]);
        }
#ifdef WEIGHTED
        w = own * weight[at];
#endif
        gain += w * moved * (2.0 * before + moved - 2.0 * load_delta(delta));
    }
    return gain;
}

#endif

// Multiples of 2^-24 of sum one; the largest component absorbs what the others lose.
__device__ inline void put_on_grid(float* m) {
    int total = 0, big = 0, most = -1;
UNROLL
    for (int a = 0; a < F; a++) {
        int q = (int)(m[a] * (float)GRID + 0.5f);
        total += q;
        if (q > most) {
            most = q;
            big = a;
        }
        m[a] = q * (1.0f / GRID);
    }
    float rest = (most + GRID - total) * (1.0f / GRID);
UNROLL
    for (int a = 0; a < F; a++) m[a] = a == big ? rest : m[a];
}

// Minimise over rows of one colour, the others fixed: those at places chosen[0 .. rows - 1] of it,
// or at 0 .. rows - 1 where `chosen` is null; the colour begins at lo. `change` receives the gain,
// zero or negative. `extra` (tiles, F, 32) is half the gradient of the links' penalty. Column j of
// delta (k, stride) belongs to position first + j. blockIdx.y counts problems of one graph that
// stand one behind the other.
extern "C" __global__ void __launch_bounds__(128) update(
    float* mass, float* table, const delta_t* delta, const float* weight, const float* extra,
    float* change, const float* C, const int* base, const int* lim, const int* shift,
    const int* chosen, i64 n, i64 first, i64 stride, int lo, int rows, int size, int k,
    int rounds) {
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    if (t >= rows) return;
    if (chosen) t = chosen[t];
    i64 q = blockIdx.y, i = t + lo, room = (n / 32 + 1) * 32 * F;
    mass += q * room + tile(i, F);
    table += q * room * VIEWS;
    delta += q * stride * k + i - first;
    float m[F], S[TRIANGLE], total, gaps;
    real g[F];
UNROLL
    for (int a = 0; a < F; a++) m[a] = mass[32 * a];
#ifdef WEIGHTED
    float own = weight[i];
#else
    float own = 1.0f;
#endif
    gram(table, delta, stride, weight, own, m, base, lim, shift, t, size, k, (int)n, S, g, &total,
         &gaps);
#ifdef LINKED
UNROLL
    for (int a = 0; a < F; a++) g[a] += extra[tile(i, F) + 32 * a];
#endif
    float old[F];
UNROLL
    for (int a = 0; a < F; a++) old[a] = m[a];
#if !MANY
    float g_old[F];
#pragma unroll
    for (int a = 0; a < F; a++) g_old[a] = g[a];
#endif
    minimise(S, g, m, rounds);
    put_on_grid(m);
#if MANY
    double gain = change_of_squares(table, delta, stride, weight, own, m, old, base, lim, shift, t,
                                    size, k);
#ifdef LINKED
    for (int a = 0; a < F; a++)
        gain += 2.0 * (double)extra[tile(i, F) + 32 * a] * ((double)m[a] - old[a]);
#endif
    bool better = gain < 0.0;
#else
    // gain = d'(2 g + S d), and how far rounding may have carried it: sums of k products, and
    // conflicts that are off by F roundings each.
    float gain = 0.0f, spread = 0.0f, moved = 0.0f, steep = 0.0f;
UNROLL
    for (int a = 0; a < F; a++) {
#ifdef LINKED
        steep = fmaxf(steep, fabsf(extra[tile(i, F) + 32 * a]));
#endif
        float v = 2.0f * g_old[a], size_v = 0.0f, da = m[a] - old[a];
UNROLL
        for (int b = 0; b < F; b++) {
            v += S[AT(a, b)] * (m[b] - old[b]);
            size_v += S[AT(a, b)] * fabsf(m[b] - old[b]);
        }
        gain += da * v;
        spread += fabsf(da) * size_v;
        moved += fabsf(da);
    }
    float terms = k + 2 * F + 4;
    float doubt = terms * spread + 2.0f * moved * ((F + 4) * total + terms * (gaps + steep));
    bool better = gain + UNIT * doubt < 0.0f;
#endif
    change[q * n + i] = better ? (float)gain : 0.0f;
    if (!better) return;
    table += tile(i, F);
UNROLL
    for (int a = 0; a < F; a++) mass[32 * a] = m[a];
    for (int v = 0; v < VIEWS; v++, table += room, C += F * F) {
UNROLL
        for (int a = 0; a < F; a++) {
            float x = 0.0f;  // m C is exact on the grid, in any order
UNROLL
            for (int b = 0; b < F; b++) x += m[b] * C[b * F + a];
            table[32 * a] = x;
        }
    }
}

// Give each row lo .. lo + rows - 1 of `mass` the minimiser of its own program against a fixed
// table of landmarks, from the best single focal set. Row r of these meets landmarks
// (spread (place + r) + shift) mod size; column r of delta (k, stride) has its dissimilarities.
extern "C" __global__ void __launch_bounds__(128) assign(
    float* mass, const float* table, const delta_t* delta, const int* base, const int* lim,
    const int* shift, i64 stride, int lo, int rows, i64 place, int spread, int size, int k,
    int rounds) {
    int r = blockIdx.x * blockDim.x + threadIdx.x;
    if (r >= rows) return;
    int t = (int)((place + r) * spread % size);
    float m[F], S[TRIANGLE], total, gaps;
    real g[F];
UNROLL
    for (int a = 0; a < F; a++) m[a] = 0.0f;
    gram(table, delta + r, stride, 0, 1.0f, m, base, lim, shift, t, size, k, size, S, g, &total,
         &gaps);
    int best = 0;
    real least = S[0] + 2 * g[0];
UNROLL
    for (int a = 1; a < F; a++) {
        real value = S[AT(a, a)] + 2 * g[a];
        if (value < least) {
            least = value;
            best = a;
        }
    }
UNROLL
    for (int b = 0; b < F; b++)
        if (b == best) {
            m[b] = 1.0f;
UNROLL
            for (int a = 0; a < F; a++) g[a] += S[AT(a, b)];
        }
    minimise(S, g, m, rounds);
    put_on_grid(m);
    mass += tile((i64)lo + r, F);
UNROLL
    for (int a = 0; a < F; a++) mass[32 * a] = m[a];
}

// out[problem, row]: sum over the row's pairs of w (kappa - delta)^2; conflicts are exact. Rows are
// those at places place .. place + rows - 1 of the colour that begins at lo.
extern "C" __global__ void __launch_bounds__(128) objective(
    const float* mass, const float* table, const delta_t* delta, const float* weight, double* out,
    const int* base, const int* lim, const int* shift, i64 n, i64 first, i64 stride, int lo,
    int place, int rows, int size, int k) {
    int row = blockIdx.x * blockDim.x + threadIdx.x, t = row + place;
    if (row >= rows) return;
    i64 q = blockIdx.y, i = t + lo, room = (n / 32 + 1) * 32 * F;
    mass += q * room + tile(i, F);
    table += q * room * VIEWS;
    delta += q * stride * k + i - first;
    double m[F], sum = 0.0;
    float A[F];
UNROLL
    for (int a = 0; a < F; a++) m[a] = mass[32 * a];
    for (int h = 0; h < k; h++, delta += stride) {
        int at = partner(base, lim, shift, h, k, t, size, -1);
        if (at < 0) continue;
        load_row(table, at, A);
        double r = -(double)load_delta(delta);
UNROLL
        for (int a = 0; a < F; a++) r += m[a] * A[a];
#ifdef WEIGHTED
        r *= r * (double)(weight[i] * weight[at]);
        sum += r;
#else
        sum += r * r;
#endif
    }
    out[q * rows + row] = sum;
}

// Partners of `distances` that are not a shift away. NEAR: the shifts after the first `near` are along
// a random order of the places, whose inverse leads back. LISTED: partner h of the row in column r is
// listed[h stride + r], -1 for none.
#if defined(NEAR)
#define PLACED , const int *order, const int *inverse, int near
#elif defined(LISTED)
#define PLACED , const int *listed
#else
#define PLACED
#endif

// Dissimilarities of rows lo .. lo + rows - 1 of `mine` to their partners among `others`, both
// tiles of d numbers; out (k, stride) is filled from column `first` on. With gamma > 0 they are
// transformed, phi(d) = 1 - exp(-gamma d^2), k-CEVCLUS eq. (5). `sum` and `end` are those of
// evdist/kernels/distances.py. Terms are added in one order: d(i, j) = d(j, i) in every bit.
extern "C" __global__ void __launch_bounds__(128) distances(
    const float* mine, const float* others, delta_t* out, const int* base, const int* lim,
    const int* shift, i64 stride, i64 lo, i64 first, int rows, i64 place, int spread, int size,
    int k, int d, int sum, int end, double gamma PLACED) {
    int r = blockIdx.x * blockDim.x + threadIdx.x, h0 = blockIdx.y * AT_ONCE;
    if (r >= rows) return;
    int t = (int)((place + r) * spread % size);
    const float* x = mine + tile(lo + r, d);
    const float* y[AT_ONCE];
    bool there[AT_ONCE];
    float D[AT_ONCE];
#pragma unroll
    for (int q = 0; q < AT_ONCE; q++) {
#if defined(NEAR)
        int h = h0 + q, far = h >= near;
        int p = h < k ? (far ? order[t] : t) + shift[h] : 0;
        p -= p >= size ? size : 0;
        if (far) p = inverse[p];
        int at = h < k && p < lim[h] ? base[h] + p : -1;
#elif defined(LISTED)
        int at = h0 + q < k ? listed[(h0 + q) * stride + first + r] : -1;
#else
        int at = partner(base, lim, shift, h0 + q, k, t, size, -1);
#endif
        there[q] = at >= 0;
        y[q] = others + tile(there[q] ? at : 0, d);
        D[q] = 0.0f;
    }
    for (int c = 0; c < d; c++) {
        float xc = x[32 * (i64)c];
#pragma unroll
        for (int q = 0; q < AT_ONCE; q++) {
            float yc = y[q][32 * (i64)c], gap = fabsf(xc - yc);
            if (sum == 0 || sum == 4)
                D[q] += gap * gap;
            else if (sum == 1)
                D[q] += gap;
            else if (sum == 2)
                D[q] = fmaxf(D[q], gap);
            else
                D[q] += xc != yc ? 1.0f : 0.0f;
        }
    }
    float mine_root = x[32 * (i64)(d - 1)];  // of the noise floor, where there is one
#pragma unroll
    for (int q = 0; q < AT_ONCE; q++) {
        if (h0 + q >= k) break;
        float x = D[q];
        if (sum == 4) {  // squares less the noise floors, whose roots are the last numbers
            float h = mine_root, g = y[q][32 * (i64)(d - 1)], gap = h - g;
            // In order of size: a fused product is then the same for both rows of a pair.
            float less = fminf(h, g), more = fmaxf(h, g);
            x = fmaxf(x - (gap * gap + (less * less + more * more)), 0.0f);
        }
        if (end == 1) x = sqrtf(x);
        if (end == 2) x *= 0.5f;
        if (end == 3) x /= d;
        if (gamma > 0.0) x = (float)-expm1(-gamma * x * (double)x);
        out[(h0 + q) * stride + first + r] = as_delta(there[q] ? x : 0.0f);
    }
}

#ifdef REPLICATES

__device__ inline float from_bits(int x) {
    union { int i; float f; } u;
    u.i = x;
    return u.f;
}

__device__ inline int to_bits(float x) {
    union { int i; float f; } u;
    u.f = x;
    return u.i;
}

// The quantile of v between its sorted values number `place` and place + 1, by halving an interval
// of bit patterns, whose order is that of numbers that are not negative: `_neighbours` of
// evdist/bootclus/interval_kernel.py.
__device__ inline double quantile(
    const float* v, int place, double part, float least, float most) {
    int under = to_bits(least) - 1, upto = to_bits(most), count = REPLICATES;
    while (upto - under > 1 && count != place + 1) {
        int middle = under + (upto - under) / 2, n = 0;
        float bound = from_bits(middle);
#pragma unroll 8
        for (int b = 0; b < REPLICATES; b++) n += v[b] <= bound;
        if (n > place) {
            upto = middle;
            count = n;
        } else
            under = middle;
    }
    float end = from_bits(upto), value = least, after = most;
    for (int b = 0; b < REPLICATES; b++) {
        if (v[b] <= end)
            value = fmaxf(value, v[b]);
        else
            after = fminf(after, v[b]);
    }
    if (count > place + 1) after = value;  // several are the same
    double found = (double)value + part * ((double)after - (double)value);
    return found < 1.0 ? found : 1.0;  // rounding may carry a sum of products beyond one
}

// Percentile intervals of the probability that two objects belong together, Bootclus algorithm 1,
// one thread per pair. Column lo + t of out (2 k, n) receives the lower bounds P^l of the pairs of
// the row at place t, then 1 - P^u, eq. (13); rows are those at places place .. place + rows - 1.
// `post`, tiles of c REPLICATES numbers, holds the objects at some places of every colour, `first`
// and those that follow it in a ring of `size`; own and base[h] are where those of the row's colour
// and of its partner's begin. `live` has a bit for each component that is not zero throughout.
extern "C" __global__ void __launch_bounds__(128) intervals(
    const float* post, const i64* live, float* out, const int* base, const int* lim,
    const int* shift, i64 n, int lo, int own, int place, int first, int rows, int size, int k, int c,
    int low, int high, double low_part, double high_part) {
    int r = blockIdx.x * blockDim.x + threadIdx.x, h = blockIdx.y;
    if (r >= rows) return;
    int t = place + r, p = t + shift[h];
    p -= p >= size ? size : 0;
    out += h * n + lo + t;
    if (p >= lim[h]) {
        out[0] = out[k * n] = 0.0f;
        return;
    }
    i64 mine = own + (t < first ? t + size : t) - first;
    i64 other = base[h] + (p < first ? p + size : p) - first;
    i64 shared = live[mine] & live[other];
    const float* x = post + tile(mine, c * REPLICATES);
    const float* y = post + tile(other, c * REPLICATES);
    float v[REPLICATES];
    for (int b = 0; b < REPLICATES; b++) v[b] = 0.0f;
    for (int a = 0; a < c; a++, x += 32 * REPLICATES, y += 32 * REPLICATES)
        if (shared >> (a & 63) & 1) {
#pragma unroll 8
            for (int b = 0; b < REPLICATES; b++) v[b] += x[32 * b] * y[32 * b];
        }
    float least = v[0], most = v[0];
    for (int b = 1; b < REPLICATES; b++) {
        least = fminf(least, v[b]);
        most = fmaxf(most, v[b]);
    }
    out[0] = (float)quantile(v, low, low_part, least, most);
    out[k * n] = (float)(1.0 - quantile(v, high, high_part, least, most));
}

#endif

"""Kernels with one thing wrong, as changes of their text. Longer than the line budget: it is a table."""

from __future__ import annotations

from dataclasses import dataclass

from bench.problems import Problem
from tcgemm.emulator import rungs

REACHED = "::tcgemm::emulator::reached()"
WRONG_RESULT = "wrong_result"

TAIL = Problem("tail", 70, 45, 41, layout="NT", distribution="integers")  # by element: rows of 41 halves
ALIGNED_TAIL = Problem("aligned tail", 70, 48, 41, layout="NT", pad_a=7, pad_b=7, distribution="integers")
DEEP = Problem("deep", 33, 20, 200, layout="NN", pad_b=4, distribution="integers")
DEEP_TAIL = Problem("deep tail", 33, 20, 200, layout="NT", distribution="integers")
DEEP_INSIDE = Problem("deep inside", 256, 128, 448, layout="NT", distribution="integers")
ONE_OVER = Problem("one over", 20, 20, 33, layout="NT", distribution="integers")


@dataclass(frozen=True)
class Mutant:
    """`changes`: (file below csrc/, text, what replaces it)."""

    name: str
    algo: str
    problem: Problem
    caught_by: str
    changes: tuple[tuple[str, str, str], ...]


STAGED = "kernels/wmma_staged.cu"
PIPELINED = "kernels/wmma_pipelined.cu"
GLOBAL = "kernels/wmma_global.cu"
SIMT = "kernels/simt_regtile_vec4.cu"
TILE = "device/tile.cuh"
STORE = "device/wmma_store.cuh"
MMA = "kernels/mma_sync.cu"
MMA_STORE = "device/mma_store.cuh"
SWIZZLE = "device/swizzle.cuh"

_ALL = (
    Mutant(
        "barrier after the load removed",
        "wmma_staged",
        TAIL,
        "race",
        ((STAGED, "__syncthreads();  // both tiles are full", f"{REACHED};"),),
    ),
    Mutant(
        "barrier before the next load removed",
        "wmma_staged",
        TAIL,
        "race",
        ((STAGED, "__syncthreads();  // all reads done", f"{REACHED};  // all reads done"),),
    ),
    Mutant(
        "last K step dropped",
        "wmma_staged",
        ONE_OVER,
        WRONG_RESULT,
        ((STAGED, "k0 < a.cols; k0 += Tile::BK", f"({REACHED}, k0 + 1 < a.cols); k0 += Tile::BK"),),
    ),
    Mutant(
        "pad one short",
        "wmma_staged",
        ALIGNED_TAIL,
        "misaligned",
        (
            (STAGED, "int PAD = 8>", "int PAD = 7>"),
            (STAGED, 'static_assert((BK + PAD) % 8 == 0, "WMMA', 'static_assert(true, "WMMA'),
            (
                STAGED,
                "  const SharedSpan<T> tile_a = shared_a,",
                f"  {REACHED};\n  const SharedSpan<T> tile_a = shared_a,",
            ),
        ),
    ),
    Mutant(
        "barrier in a branch",
        "wmma_staged",
        TAIL,
        "divergent_barrier",
        ((STAGED, "__syncthreads();  // both tiles are full", f"{REACHED}; if (warp < 2) __syncthreads();"),),
    ),
    Mutant(
        "warps outside C return early",
        "wmma_staged",
        TAIL,
        "divergent_barrier",
        (
            (
                STAGED,
                "  FragmentC acc[Tile::kFragsM][Tile::kFragsN];",
                f"  if ({REACHED}, m0 + warp_m >= c.rows) return;\n  FragmentC acc[Tile::kFragsM][Tile::kFragsN];",
            ),
        ),
    ),
    Mutant(
        "accumulators not cleared",
        "wmma_staged",
        TAIL,
        "uninitialised_fragment",
        ((STAGED, "fill_fragment(acc[i][j], 0.0f)", REACHED),),
    ),
    Mutant(
        "guard of k dropped",
        "wmma_staged",
        TAIL,
        "out_of_bounds",
        ((TILE, "row < rows && col < cols, T(0.0f)", f"({REACHED}, row < rows), T(0.0f)"),),
    ),
    Mutant(
        "guard of the rows with <=",
        "wmma_staged",
        TAIL,
        "out_of_bounds",
        ((TILE, "row < rows && col < cols, T(0.0f)", f"({REACHED}, row <= rows) && col < cols, T(0.0f)"),),
    ),
    Mutant(
        "chunk at the edge one too long",
        "wmma_staged",
        ALIGNED_TAIL,
        "out_of_bounds",
        ((TILE, "min(max(k - along(), 0), kChunk)", f"min(max(({REACHED}, k - along() + 1), 0), kChunk)"),),
    ),
    Mutant(
        "store stride unequal to load stride",
        "wmma_staged",
        TAIL,
        "uninitialised_shared",
        ((TILE, "tile[line * Shape::kLd + along] =", f"tile[({REACHED}, line) * (Shape::kLd - 8) + along] ="),),
    ),
    Mutant(
        "store stride beyond the tile",
        "wmma_staged",
        TAIL,
        "shared_out_of_bounds",
        ((TILE, "tile[line * Shape::kLd + along] =", f"tile[({REACHED}, line) * (Shape::kLd + 8) + along] ="),),
    ),
    Mutant(
        "guard of C's columns dropped",
        "wmma_staged",
        TAIL,
        "out_of_bounds",
        ((STORE, "row < c.rows && col < c.cols, scratch[e]", f"({REACHED}, row < c.rows), scratch[e]"),),
    ),
    Mutant(
        "scratch read without __syncwarp",
        "wmma_staged",
        TAIL,
        "race",
        ((STORE, "__syncwarp();  // the scratch tile is full", f"{REACHED};"),),
    ),
    Mutant(
        "scratch overwritten without __syncwarp",
        "wmma_staged",
        TAIL,
        "race",
        ((STORE, "__syncwarp();  // all reads done; the next accumulator", f"{REACHED};  //"),),
    ),
    Mutant(
        "lanes read the transpose",
        "wmma_staged",
        TAIL,
        WRONG_RESULT,
        ((STORE, "scratch[e]);", f"scratch[({REACHED}, e % kWmmaDim * kWmmaDim + e / kWmmaDim)]);"),),
    ),
    Mutant(
        "half of C stored twice, half never",
        "wmma_staged",
        TAIL,
        "never_written",
        (
            (
                STORE,
                "row0 + i * kWmmaDim, col0 + j * kWmmaDim, acc[i][j]",
                f"({REACHED}, row0), col0 + j * kWmmaDim, acc[i][j]",
            ),
        ),
    ),
    Mutant(
        "C written twice",
        "wmma_staged",
        TAIL,
        "written_twice",
        (
            (
                STORE,
                "row0 + i * kWmmaDim, col0 + j * kWmmaDim, acc[i][j]",
                f"({REACHED}, row0), col0 + j * kWmmaDim, acc[i][j]",
            ),
        ),
    ),
    Mutant(
        "wait one stage late",
        "wmma_pipelined",
        DEEP_TAIL,
        "unwaited_copy",
        ((PIPELINED, "cp_async_wait<kStages - 2>();", f"{REACHED}; cp_async_wait<kStages - 1>();"),),
    ),
    Mutant(
        "no barrier after the wait",
        "wmma_pipelined",
        DEEP_TAIL,
        "race",
        ((PIPELINED, "__syncthreads();               // so have", f"{REACHED};  // so have"),),
    ),
    Mutant(
        "next step into the stage in use",
        "wmma_pipelined",
        DEEP_TAIL,
        "unwaited_copy",
        ((PIPELINED, "const Ring stage(index);", f"const Ring stage(({REACHED}, index + 1) % kStages);"),),
    ),
    Mutant(
        "scratch laid over a ring in use",
        "wmma_pipelined",
        DEEP_TAIL,
        "race",
        (
            (
                PIPELINED,
                "  __syncthreads();\n  const SharedSpan<float> scratch",
                f"  {REACHED};\n  const SharedSpan<float> scratch",
            ),
        ),
    ),
    Mutant(
        "cp.async from an unaligned address",
        "wmma_pipelined",
        DEEP_TAIL.but(offset_a=1),
        "misaligned",
        ((TILE, "reads_by_16_bytes(x, dtype, rows, cols)};", "true};"), (PIPELINED, "  // Place.", f"  {REACHED};")),
    ),
    Mutant(
        "edge fragment straight from memory",
        "wmma_global",
        TAIL.but(pad_a=7, pad_b=7),
        "out_of_bounds",
        ((GLOBAL, "row0 + kWmmaDim <= x.rows && col0 + kWmmaDim <= x.cols", f"({REACHED}, true)"),),
    ),
    Mutant(
        "fragment from an unaligned base",
        "wmma_global",
        DEEP_TAIL.but(offset_a=8),
        "misaligned",
        (
            (
                GLOBAL,
                "reinterpret_cast<uintptr_t>(x.data) % 32 == 0;",
                "reinterpret_cast<uintptr_t>(x.data) % 16 == 0;",
            ),
            (GLOBAL, "  // Place.", f"  {REACHED};"),
        ),
    ),
    Mutant(
        "scratch tile read without __syncwarp",
        "wmma_global",
        TAIL,
        "race",
        ((GLOBAL, "__syncwarp();  // the scratch tile is full", f"{REACHED};"),),
    ),
    Mutant(
        "two warps share a scratch tile",
        "wmma_global",
        TAIL,
        "race",
        (
            (
                GLOBAL,
                "scratch.from(warp * kFragmentElements)",
                f"scratch.from(({REACHED}, warp) / 2 * kFragmentElements)",
            ),
        ),
    ),
    Mutant(
        "stage overwritten without a barrier",
        "simt_regtile_vec4",
        TAIL.but(dtype="float32"),
        "race",
        ((SIMT, "__syncthreads();  // the stage is full", f"{REACHED};  // the stage is full"),),
    ),
    Mutant(
        "guard of k with <=",
        "simt_regtile_vec4",
        TAIL.but(dtype="float32"),
        "out_of_bounds",
        ((SIMT, "row < across_end && kk < k_end,", f"row < across_end && ({REACHED}, kk <= k_end),"),),
    ),
    Mutant(
        "guard of the rows dropped",
        "simt_regtile_vec4",
        TAIL.but(dtype="float32"),
        "out_of_bounds",
        ((SIMT, "row < across_end && kk < k_end,", f"({REACHED}, kk < k_end),"),),
    ),
    Mutant(
        "odd pad under float4 reads",
        "simt_regtile_vec4",
        TAIL.but(dtype="float32"),
        "misaligned",
        ((SIMT, "constexpr int kLd = BM + 4;", "constexpr int kLd = BM + 3;"), (SIMT, "  // Place.", f"  {REACHED};")),
    ),
    Mutant(
        "fragment read at another stride than stored",
        "simt_regtile_vec4",
        TAIL.but(dtype="float32"),
        "uninitialised_shared",
        (
            (
                SIMT,
                "load_vec<kVec>(tile, kk * kLd + first + half);",
                f"load_vec<kVec>(tile, ({REACHED}, kk) * (kLd + 4) + first + half);",
            ),
        ),
    ),
    Mutant(
        "patch of another thread",
        "simt_regtile_vec4",
        TAIL.but(dtype="float32"),
        WRONG_RESULT,
        (
            (
                SIMT,
                "load_frag(frag_a, tile_a, kk, thread_m, kHalfM);",
                f"load_frag(frag_a, tile_a, kk, ({REACHED}, thread_n), kHalfM);",
            ),
        ),
    ),
    Mutant(
        "no barrier between two tiles",
        "mma_sync",
        DEEP_TAIL,
        "race",
        (
            (
                MMA,
                "          cp_async_wait<Form::kStages - 2>();\n          __syncthreads();",
                f"          cp_async_wait<Form::kStages - 2>();\n          {REACHED};",
            ),
        ),
    ),
    Mutant(
        "the ring's wait one stage late",
        "mma_sync",
        DEEP_TAIL,
        "unwaited_copy",
        (
            (
                MMA,
                "          cp_async_wait<Form::kStages - 2>();\n          __syncthreads();",
                f"          {REACHED};\n          cp_async_wait<Form::kStages - 1>();\n          __syncthreads();",
            ),
        ),
    ),
    Mutant(
        "a copy without bounds behind the end of k",
        "mma_sync",
        DEEP_INSIDE,
        "out_of_bounds",
        (
            (
                MMA,
                "static_cast<int>(a.k / Form::BK) - (Form::kStages - 1) : 0;",
                f"({REACHED}, static_cast<int>(a.k / Form::BK) - (Form::kStages - 2)) : 0;",
            ),
        ),
    ),
    Mutant(
        "lanes of another layout store",
        "mma_sync",
        TAIL,
        WRONG_RESULT,
        ((MMA_STORE, "row0 + lane / 4, col_of_lane", f"row0 + ({REACHED}, (lane / 4 + 1) % 8), col_of_lane"),),
    ),
    Mutant(
        "chunks read where they were not put",
        "mma_sync",
        DEEP_TAIL,
        WRONG_RESULT,
        ((SWIZZLE, "((tile + first) ^ k) + outer", f"({REACHED}, tile + first + k) + outer"),),
    ),
    Mutant(
        "rows that ldmatrix cannot take",
        "mma_sync",
        DEEP_TAIL,
        "misaligned",
        ((SWIZZLE, "((tile + first) ^ k) + outer", f"({REACHED}, (tile + first) ^ k) + 4 + outer"),),
    ),
)

# A row of the table may come later than its mutants.
MUTANTS = tuple(mutant for mutant in _ALL if mutant.algo in rungs())

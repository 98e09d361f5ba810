//! `sparse_csr` and `sparse_coo`. Spec: formats/sparse_csr, formats/sparse_coo.

use zt::DType;

use super::{Case, Stage, accepted, bad, valid};
use crate::draft::{Draft, Item, Part, le_f32, le_u64};
use crate::frames::{frame, unsized_frame};

const CSR: &str = "formats/sparse_csr";
const COO: &str = "formats/sparse_coo";

pub(super) fn cases() -> Vec<Case> {
    [csr(), csr_contents(), coo(), index_types()].concat()
}

/// [[0, 5, 0], [7, 0, 9]] by rows.
fn matrix() -> Item {
    Item::csr(&[2, 3], &[5, 7, 9], &[1, 0, 2], &[0, 1, 3])
}

fn csr() -> Vec<Case> {
    let size = |name, about, item: Item, role| {
        bad(name, CSR, about, "shape_size_mismatch", item).at("bad", role)
    };
    let missing = |name, about, role: &str| {
        let mut item = matrix();
        item.parts.retain(|part| part.role != role);
        bad(name, CSR, about, "missing_component", item)
    };
    vec![
        valid(
            "csr_small",
            CSR,
            "two rows of one and two values",
            Draft::v1_2().with("w", matrix()),
        ),
        valid(
            "csr_extra_role",
            CSR,
            "a role that the format does not know",
            Draft::v1_2().with("w", matrix().part(Part::new("note", DType::U8, b"x"))),
        ),
        valid(
            "csr_unknown_logical_values",
            CSR,
            "values of an unknown logical type, fewer elements than indices",
            {
                let values = Part::new("values", DType::U8, &[0x57, 9]).logical("u4x2");
                Draft::v1_2().with("w", matrix().replace(values))
            },
        ),
        valid("csr_complex_values", CSR, "values of two elements each", {
            let values = Part::new("values", DType::F32, &le_f32(&[1., 2., 3., 4., 5., 6.]));
            Draft::v1_2().with("w", matrix().replace(values.logical("complex64")))
        }),
        valid(
            "csr_11_zstd",
            "legacy",
            "version 1.1: all three components zstd without lengths, with and without content size",
            {
                let zstd = |part: Part, sized: bool| {
                    let frames =
                        if sized { frame(&part.decoded) } else { unsized_frame(&part.decoded) };
                    part.frames(frames)
                };
                let item = matrix()
                    .change("values", |part| zstd(part, true))
                    .change("indices", |part| zstd(part, false))
                    .change("indptr", |part| zstd(part, true));
                Draft::v1_1().with("w", item)
            },
        ),
        missing("csr_without_values", "no `values`", "values"),
        missing("csr_without_indices", "no `indices`", "indices"),
        missing("csr_without_indptr", "no `indptr`", "indptr"),
        bad("csr_role_in_capitals", CSR, "`Indptr` is not `indptr`", "missing_component", {
            let mut item = matrix();
            "Indptr".clone_into(&mut item.parts[2].role);
            item
        }),
        size("csr_rank_0", "a shape of no dimensions", Item::csr(&[], &[], &[], &[0]), None),
        size(
            "csr_2_64_minus_1_rows",
            "rows + 1 overflows to the 0 pointers that are there",
            Item::csr(&[u64::MAX, 1], &[], &[], &[]),
            None,
        ),
        size(
            "csr_one_pointer_more",
            "rows + 2 pointers",
            Item::csr(&[2, 3], &[5, 7, 9], &[1, 0, 2], &[0, 1, 3, 3]),
            None,
        ),
        size(
            "csr_one_index_less",
            "three values, two indices",
            Item::csr(&[2, 3], &[5, 7, 9], &[1, 0], &[0, 1, 2]),
            None,
        ),
        size(
            "csr_half_an_index",
            "indices of 23 bytes",
            matrix().replace(Part::new("indices", DType::U64, &[0; 23])),
            Some("indices"),
        ),
    ]
}

fn csr_contents() -> Vec<Case> {
    let value = |name, about, item: Item, role| {
        bad(name, CSR, about, "index_value", item).stage(Stage::Verify).at("bad", Some(role))
    };
    let pointers = |name, about, indptr: &[u64]| {
        value(name, about, Item::csr(&[2, 3], &[5, 7, 9], &[1, 0, 2], indptr), "indptr")
    };
    let columns = |name, about, indices: &[u64]| {
        value(name, about, Item::csr(&[2, 3], &[5, 7, 9], indices, &[0, 1, 3]), "indices")
    };
    let why = "the order is free, and equal positions add up";
    vec![
        pointers("csr_first_pointer_1", "the first pointer is 1", &[1, 1, 3]),
        pointers("csr_pointer_falls", "the second pointer is more than the third", &[0, 4, 3]),
        pointers(
            "csr_last_pointer_less",
            "the last pointer is one less than there are values",
            &[0, 1, 2],
        ),
        pointers(
            "csr_last_pointer_more",
            "the last pointer is one more than there are values",
            &[0, 1, 4],
        ),
        columns("csr_column_is_columns", "a column equal to the number of columns", &[1, 0, 3]),
        columns("csr_column_2_64_minus_1", "a column of 2^64 - 1", &[u64::MAX, 0, 2]),
        accepted(
            "csr_columns_unsorted",
            CSR,
            "the columns of a row fall",
            why,
            Draft::v1_2().with("w", Item::csr(&[1, 3], &[1, 2, 3], &[2, 1, 0], &[0, 3])),
        ),
        accepted(
            "csr_columns_repeat",
            CSR,
            "one column twice in a row",
            why,
            Draft::v1_2().with("w", Item::csr(&[1, 3], &[1, 2], &[1, 1], &[0, 2])),
        ),
        valid(
            "csr_no_rows_no_values",
            CSR,
            "no rows: one pointer, 0",
            Draft::v1_2().with("w", Item::csr(&[0, 5], &[], &[], &[0])),
        ),
        value(
            "csr_no_columns_one_value",
            "a value in a matrix without columns",
            Item::csr(&[1, 0], &[1], &[0], &[0, 1]),
            "indices",
        ),
        valid(
            "csr_huge_and_empty",
            CSR,
            "2^60 columns, nothing stored",
            Draft::v1_2().with("w", Item::csr(&[2, 1 << 60], &[], &[], &[0, 0, 0])),
        ),
        valid(
            "csr_huge_last_column",
            CSR,
            "2^60 columns, the last one stored",
            Draft::v1_2().with("w", Item::csr(&[1, 1 << 60], &[1], &[(1 << 60) - 1], &[0, 1])),
        ),
    ]
}

fn coo() -> Vec<Case> {
    let size = |name, about, item: Item| bad(name, COO, about, "shape_size_mismatch", item);
    let value = |name, about, item: Item| {
        bad(name, COO, about, "index_value", item).stage(Stage::Verify).at("bad", Some("coords"))
    };
    let missing = |name, about, role: &str| {
        let mut item = Item::coo(&[2, 3], &[5], &[1, 2]);
        item.parts.retain(|part| part.role != role);
        bad(name, COO, about, "missing_component", item)
    };
    let draft = |item| Draft::v1_2().with("w", item);
    vec![
        valid(
            "coo_dimension_major",
            COO,
            "rows first, then columns",
            draft(Item::coo(&[2, 3], &[5, 7, 9], &[0, 1, 1, 1, 0, 2])),
        ),
        valid(
            "coo_rank_4",
            COO,
            "four dimensions",
            draft(Item::coo(&[2, 2, 2, 9], &[1, 2], &[0, 1, 0, 1, 0, 1, 0, 8])),
        ),
        valid(
            "coo_extent_0_nothing_stored",
            COO,
            "an extent of 0, nothing stored",
            draft(Item::coo(&[3, 0], &[], &[])),
        ),
        accepted(
            "coo_repeated",
            COO,
            "one position three times",
            "equal positions add up",
            draft(Item::coo(&[2], &[1, 2, 3], &[1, 1, 1])),
        ),
        accepted(
            "coo_rank_0",
            COO,
            "a scalar stored twice, which takes no coordinates",
            "rank × nnz is 0",
            draft(Item::coo(&[], &[1, 2], &[])),
        ),
        missing("coo_without_values", "no `values`", "values"),
        missing("coo_without_coords", "no `coords`", "coords"),
        size(
            "coo_one_coordinate_less",
            "three coordinates for two values in two dimensions",
            Item::coo(&[2, 3], &[1, 2], &[0, 1, 0]),
        ),
        size(
            "coo_coords_of_another_rank",
            "two coordinates for one value in three dimensions",
            Item::coo(&[2, 3, 4], &[1], &[0, 1]),
        ),
        value(
            "coo_extent_0_one_stored",
            "an extent of 0, one value stored",
            Item::coo(&[3, 0], &[1], &[0, 0]),
        ),
        value(
            "coo_row_is_rows",
            "a row equal to the number of rows",
            Item::coo(&[2, 3], &[1], &[2, 0]),
        ),
        value(
            "coo_transposed",
            "columns first, then rows",
            Item::coo(&[2, 3], &[5, 7, 9], &[1, 0, 2, 0, 1, 1]),
        ),
    ]
}

fn index_types() -> Vec<Case> {
    let why = "real files have it, and the dtype says how to read it";
    let le = |width: usize, values: &[u64]| -> Vec<u8> {
        values.iter().flat_map(|value| value.to_le_bytes()[..width].to_vec()).collect()
    };
    let typed = |dtype: DType, indices: &[u64], indptr: &[u64]| {
        let part = |role, values| Part::new(role, dtype, &le(dtype.byte_len(), values));
        matrix().replace(part("indices", indices)).replace(part("indptr", indptr))
    };
    let tolerated = |name, about, dtype| {
        let item = typed(dtype, &[1, 0, 2], &[0, 1, 3]);
        accepted(name, CSR, about, why, Draft::v1_2().with("w", item))
    };
    let refused = |name, about, part: Part| {
        let role = part.role.clone();
        bad(name, CSR, about, "index_dtype", matrix().replace(part)).at("bad", Some(&role))
    };
    vec![
        tolerated("csr_indices_u8", "indices and pointers of u8", DType::U8),
        tolerated("csr_indices_i16", "indices and pointers of i16", DType::I16),
        tolerated("csr_indices_u32", "indices and pointers of u32", DType::U32),
        tolerated("csr_indices_i64", "indices and pointers of i64", DType::I64),
        bad(
            "csr_index_minus_1",
            CSR,
            "indices of i32, one of them -1",
            "index_value",
            typed(DType::I32, &[1, u64::MAX, 2], &[0, 1, 3]),
        )
        .stage(Stage::Verify)
        .at("bad", Some("indices")),
        bad(
            "csr_pointer_minus_1",
            CSR,
            "pointers of i8, the second -1",
            "index_value",
            typed(DType::I8, &[1, 0, 2], &[0, u64::MAX, 3]),
        )
        .stage(Stage::Verify)
        .at("bad", Some("indptr")),
        accepted("coo_coords_u16", COO, "coordinates of u16", why, {
            let coords = Part::new("coords", DType::U16, &le(2, &[1, 2]));
            Draft::v1_2().with("w", Item::coo(&[2, 3], &[5], &[]).replace(coords))
        }),
        refused(
            "csr_indices_f32",
            "indices of f32",
            Part::new("indices", DType::F32, &le_f32(&[1., 0., 2.])),
        ),
        refused(
            "csr_indptr_bool",
            "pointers of bool",
            Part::new("indptr", DType::Bool, &[0, 1, 1]),
        ),
        refused(
            "csr_indices_logical",
            "indices of u8 that are f8_e5m2",
            Part::new("indices", DType::U8, &[1, 0, 2]).logical("f8_e5m2"),
        ),
        bad(
            "coo_coords_bf16",
            COO,
            "coordinates of bf16",
            "index_dtype",
            Item::coo(&[2, 3], &[5], &[]).replace(Part::new("coords", DType::BF16, &[0; 4])),
        )
        .at("bad", Some("coords")),
        valid("csr_indices_named_u64", "§7.2", "indices whose `type` is \"u64\"", {
            Draft::v1_2().with(
                "w",
                matrix()
                    .replace(Part::new("indices", DType::U64, &le_u64(&[1, 0, 2])).logical("u64")),
            )
        }),
    ]
}

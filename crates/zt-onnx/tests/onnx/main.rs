//! ONNX models that are written field by field. Models of the ONNX library are in `conformance`.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod constants;
mod draft;
mod external;
mod graphs;
mod limits;
mod values;

//! URLs where the build has no clients of stores.
#![cfg(not(feature = "remote"))]
#![allow(clippy::unwrap_used, reason = "tests")]

mod common;

use common::zt;

#[test]
fn a_url_is_refused_by_a_build_without_stores() {
    let refused = zt(["ls", "s3://models/m.zt", "--json"]);
    assert_eq!(refused.error_code(), "unsupported");
}

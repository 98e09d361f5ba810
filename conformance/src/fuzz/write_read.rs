//! Files of our own writer, read back.

use crate::decisions::Decisions;
use crate::generate;

/// Decisions about a file: written, read back value for value, and now and then written with other
/// threads, whose starting takes longer than all the rest.
pub fn round_trip(bytes: &[u8]) {
    let file = generate::file(&mut Decisions::new(bytes));
    let written = file.write(None).expect("what is generated can be written");
    if bytes.len().is_multiple_of(32) {
        let again = file.write(2).expect("as before");
        assert!(again == written, "two threads write other bytes");
    }
    file.assert_is(&written);
}

//! Seals that a stranger wrote.

use std::sync::Arc;

use zt::{Memory, Source, Span};
use zt_seal::{Seal, SealedSource};

/// A seal. If it is accepted, it has exactly these bytes, its lookups agree, and a file that does not have its bytes
/// is refused where it is read.
pub fn seal(bytes: &[u8]) {
    let Ok(seal) = Seal::from_bytes(bytes) else {
        return;
    };
    assert_eq!(seal.to_bytes().expect("it was read"), bytes, "a seal has one encoding");
    let _ = seal.only_model();
    for model in &seal.models {
        assert!(seal.files_of(model).iter().all(|at| *at < seal.files.len()));
    }
    let seal = Arc::new(seal);
    for (at, file) in seal.files.iter().enumerate().take(4) {
        assert_eq!(seal.position(&file.path), Some(at));
        let ends = (0..file.leaf_count().min(4)).filter_map(|leaf| file.leaf_span(leaf));
        assert!(ends.map(Span::end).is_sorted());
        assert!(file.leaf_span(file.leaf_count()).is_none());
        let Ok(byte_len) = usize::try_from(file.byte_len.min(4 << 20)) else { continue };
        let source = SealedSource::new(Memory::new(vec![0; byte_len]), Arc::clone(&seal), at);
        let Ok(source) = source else {
            let is_empty = byte_len == 0 && !file.has_leaf(0, &[]);
            assert!(file.byte_len > 4 << 20 || is_empty);
            continue;
        };
        let mut read = vec![1; byte_len];
        if source.read_at(0, &mut read).is_ok() {
            assert!(read.iter().all(|byte| *byte == 0));
            assert!(file.leaf_count() > 1 || file.has_leaf(0, &read));
        }
    }
}

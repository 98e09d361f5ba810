//! Files that may be damaged, repaired.

use std::sync::Arc;

use zt::repair::{Fate, Recovery, RepairOptions, Verdict};
use zt::{File, Memory, Storage, VerifyOptions};

use super::in_memory::InMemory;
use super::limits;

/// A file that may be damaged: looked at, mended in place, what is left of it saved.
pub fn repair(bytes: &[u8]) {
    let options = RepairOptions::new().limits(limits()).threads(1);
    let storage = Arc::new(InMemory::new(bytes.to_vec()));
    let recovery = zt::repair::repair_storage(Arc::clone(&storage) as Arc<dyn Storage>, &options)
        .expect("bytes in memory can be read");
    let after = storage.bytes();
    if recovery.verdict() == Verdict::Mendable {
        let again = zt::repair::examine(Memory::new(after), &options).expect("as before");
        assert_eq!(again.verdict(), Verdict::Sound);
        let fates = |recovery: &Recovery| -> Vec<_> {
            let objects = recovery.objects().iter();
            objects.map(|o| (o.name.clone(), o.fate)).collect()
        };
        assert_eq!(fates(&again), fates(&recovery));
    } else {
        assert!(after == bytes, "changed, and not repaired");
    }
    let Ok((saved, byte_len)) = recovery.save_to(Vec::new(), None) else {
        assert!(recovery.generation().is_none(), "what is there is saved");
        return;
    };
    assert_eq!(saved.len() as u64, byte_len);
    let saved = File::from_bytes(saved).expect("what was saved reads");
    let mut objects = recovery.objects().iter();
    let kept = objects.clone().filter(|object| object.fate != Fate::Lost);
    assert_eq!(saved.len(), kept.count());
    assert!(objects.all(|object| (object.fate != Fate::Lost) == saved.get(&object.name).is_some()));
    let report = saved.verify(&VerifyOptions::default()).expect("no stop");
    let mut problems = report.problems.iter();
    assert!(problems.all(|problem| problem.code() != "digest-mismatch"));
}

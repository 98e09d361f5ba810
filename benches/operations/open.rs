//! Opening a file of very many objects and reading one of them.

use std::path::Path;

use zt::{FileSource, Source, Verify};

use crate::contest::timed;
use crate::contestants::{
    Digest, Storage, expect_bytes, ours, peer_safetensors, peer_ztensor1, peer_ztensor2,
};
use crate::operations::read::publish;
use crate::{Contest, Result, Role, Workload};

pub(super) fn find<'a>(workload: &'a Workload, folder: &'a Path) -> Result<Contest<'a>> {
    let all = &workload.tensors;
    let title = format!("open a file of {} objects and read one", all.len());
    let mut contest = Contest::new("open-find", title, None);
    let wanted = all.get(all.len() / 2).ok_or("no tensors")?;
    let [ours, theirs, second, safe] =
        ["ours.zt", "theirs.zt", "second.zt", "peer.safetensors"].map(|name| folder.join(name));
    publish(&ours, workload, Storage::Raw)?;
    peer_ztensor1::write(&theirs, all, Storage::Raw, Digest::None)?;
    peer_ztensor2::write(&second, all, Storage::Raw)?;
    peer_safetensors::write(&safe, all)?;
    let file = ours::open(&ours, Verify::OnRead)?;
    let manifest = file.data_region().ok_or("no data region")?.end();

    let mut add = |role, name, read: Box<dyn Fn() -> Result<Vec<u8>> + 'a>| {
        contest.add(role, name, move |check| {
            let (took, found) = timed(&read)?;
            if check {
                expect_bytes(wanted, &found)?;
            }
            Ok(took)
        });
    };
    for (name, path) in [("zt", &ours), ("zt, file of ztensor 1.2.3", &theirs)] {
        let path = path.clone();
        let read = move || {
            let file = ours::open(&path, Verify::OnRead)?;
            Ok(file.tensor(&wanted.name)?.bytes("data")?.to_vec())
        };
        add(Role::Ours, name, Box::new(read));
    }
    let path = ours.clone();
    let read = move || {
        let file = ours::open_map(&path, Verify::OnRead)?;
        Ok(file.tensor(&wanted.name)?.bytes("data")?.to_vec())
    };
    add(Role::Ours, "zt, mapped", Box::new(read));
    let read = move || Ok(peer_ztensor1::open(&theirs)?.read(&wanted.name, true)?);
    add(Role::Peer, peer_ztensor1::NAME, Box::new(read));
    let read = move || {
        let file = peer_ztensor2::open_map(&second)?;
        Ok(file.tensor(&wanted.name)?.data()?.bytes()?.into_owned())
    };
    add(Role::Peer, peer_ztensor2::NAME, Box::new(read));
    let read = move || {
        let file = peer_safetensors::Mapped::open(&safe)?;
        Ok(file.parse()?.tensor(&wanted.name)?.data().to_vec())
    };
    add(Role::Peer, peer_safetensors::NAME, Box::new(read));
    contest.add(Role::Limit, "pread of the manifest", move |_| {
        let read = || {
            let source = FileSource::open(&ours)?;
            let mut bytes = vec![0; (source.byte_len() - manifest) as usize];
            source.read_at(manifest, &mut bytes)?;
            Ok::<_, crate::Error>(bytes)
        };
        Ok(timed(read)?.0)
    });
    contest.owes(1.0 / 0.15, peer_safetensors::NAME);
    contest.owes(10.0, peer_ztensor1::NAME);
    Ok(contest)
}

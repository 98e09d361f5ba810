//! Owner and permissions of a file that replaces another.

use std::fs::{self, File};
use std::io;

/// Gives a file the owner, the group and the permissions of the file that it replaces, as far as
/// this process may. Otherwise no user gains a permission.
///
/// [`AtomicFile`](crate::foreign::AtomicFile) does this itself. Call it if you replace a file by other
/// means.
///
/// # Errors
///
/// The system's, if the file belongs to another user.
#[cfg(unix)]
pub fn keep_access(file: &File, replaced: &fs::Metadata) -> io::Result<()> {
    use std::os::unix::fs::{MetadataExt, PermissionsExt, fchown};
    let (uid, gid) = (Some(replaced.uid()), Some(replaced.gid()));
    let mut mode = replaced.mode();
    let new = file.metadata()?;
    if (new.uid(), new.gid()) != (replaced.uid(), replaced.gid())
        // Only the administrator may give files to another user. Others may give them to a group of
        // theirs.
        && fchown(file, uid, gid).is_err()
    {
        mode = for_another_owner(mode);
        if fchown(file, None, gid).is_err() {
            mode = for_another_group(mode);
        }
    }
    // The mode is set after the owner, because a change of the owner clears bits, as may the
    // process's mask.
    file.set_permissions(fs::Permissions::from_mode(mode))
}

/// The part of `mode` that is kept if the owner cannot be set: no set-user-id and set-group-id
/// bits, which would run the file as another user or group.
#[cfg(unix)]
const fn for_another_owner(mode: u32) -> u32 {
    mode & !0o6000
}

/// The part of `mode` that is kept if the group cannot be set. The new group and all others may
/// only do what both the old group and all others might.
#[cfg(unix)]
const fn for_another_group(mode: u32) -> u32 {
    let all = mode & (mode >> 3) & 0o7;
    (mode & !0o77) | (all << 3) | all
}

/// Gives a file the permissions of the one that it replaces.
///
/// # Errors
///
/// The system's.
#[cfg(not(unix))]
pub fn keep_access(file: &File, replaced: &fs::Metadata) -> io::Result<()> {
    file.set_permissions(replaced.permissions())
}

#[cfg(all(test, unix))]
mod tests {
    #[test]
    fn another_group_gets_only_the_rights_of_all() {
        let modes = [0o640, 0o644, 0o660, 0o664, 0o604, 0o757, 0o600, 0o777];
        let expected = [0o600, 0o644, 0o600, 0o644, 0o600, 0o755, 0o600, 0o777];
        assert_eq!(modes.map(super::for_another_group), expected);
        assert_eq!(super::for_another_group(0o100_640), 0o100_600);
    }

    #[test]
    fn set_id_bits_are_dropped_for_another_owner() {
        let modes = [0o104_755, 0o102_750, 0o106_711, 0o101_777, 0o100_640];
        let expected = [0o100_755, 0o100_750, 0o100_711, 0o101_777, 0o100_640];
        assert_eq!(modes.map(super::for_another_owner), expected);
    }
}

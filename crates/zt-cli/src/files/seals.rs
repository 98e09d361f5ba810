//! Seals and signatures, which options name.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use zt::Error;
use zt_model::seal::{Contents, Fault, Files, Made, PublicKey, Seal, SealOptions, Statement, seal};
use zt_model::{Beside, LocationOptions};

use crate::failure::Failure;
use crate::files::kinds;
use crate::files::remote::{self, RemoteArgs, location};
use crate::output::progress::Progress;

/// The most bytes of a key file.
const KEY: u64 = 64 << 10;

/// The seal at a path or a URL.
pub(crate) fn read(path: &Path, options: &LocationOptions<'_>) -> Result<Arc<Seal>, Failure> {
    let too_long = |byte_len| Fault::TooLong { byte_len, limit: Seal::MAX_LEN }.into();
    let bytes = short(path, Seal::MAX_LEN, options, too_long).map_err(Failure::Refused)?;
    let refused = |error: Error| Failure::Refused(error.with_path(path));
    Ok(Arc::new(Seal::from_bytes(&bytes).map_err(refused)?))
}

/// The bytes of a file that has at most `limit`.
fn short(
    path: &Path,
    limit: u64,
    options: &LocationOptions<'_>,
    too_long: impl FnOnce(u64) -> Error,
) -> zt::Result<Vec<u8>> {
    let byte_len = path.metadata().map_or(0, |metadata| metadata.len());
    if byte_len > limit {
        return Err(too_long(byte_len).with_path(path));
    }
    location(path).read(limit, options).map_err(|error| error.with_path(path))
}

/// The bytes of a key or a proof, which is refused where it is read if it is too long.
pub(crate) fn small(path: &Path, options: &LocationOptions<'_>) -> Result<Vec<u8>, Failure> {
    let too_long = |_| std::io::Error::from(std::io::ErrorKind::FileTooLarge).into();
    Ok(short(path, KEY, options, too_long)?)
}

/// What the key has signed in the signature at a path or a URL.
pub(crate) fn signed(
    signature: &Path,
    key: &Path,
    options: &LocationOptions<'_>,
) -> Result<(Statement, PublicKey), Failure> {
    remote::expect_local(key, "the key must be a file of this machine")?;
    let public = PublicKey::from_bytes(&small(key, options)?);
    let public = public.map_err(|error| error.with_path(key))?;
    let too_long = |_| std::io::Error::from(std::io::ErrorKind::FileTooLarge).into();
    let bytes = short(signature, Statement::MAX_LEN, options, too_long)?;
    let statement = Statement::open(&bytes, &public);
    Ok((statement.map_err(|error| error.with_path(signature))?, public))
}

/// A seal that was made now.
pub(crate) struct Sealed {
    pub(crate) made: Made,
    pub(crate) files: Files,
    /// The path of the file that was sealed with its shards; `None` for a folder.
    pub(crate) file: Option<PathBuf>,
}

/// Seals a file, a set, a folder or the file of a URL. `out` is no part of the folder. `signed`: what to look for
/// beside it, also in a folder that cannot be listed.
pub(crate) fn make(
    file: &Path,
    out: Option<&Path>,
    signed: Option<&Statement>,
    threads: Option<usize>,
    remote: &RemoteArgs,
) -> Result<Sealed, Failure> {
    let place = location(file);
    let options = remote::options(remote);
    let top = signed.and_then(|signed| signed.paths().find(|path| !path.contains('/')));
    let Beside { files, name, found, .. } = place.beside(top, &options)?;
    let contents = match (&name, signed) {
        (None, Some(signed)) if place.is_url() => signed.contents(),
        (None, signed) => {
            let mut contents = Contents::of_folder(kinds::table(), file, out)?;
            // Others also sign hidden files.
            let more = signed.map(Statement::contents).unwrap_or_default().files;
            contents.files.extend(more.into_iter().filter(|path| files.path_of(path).is_file()));
            contents.files.sort_unstable();
            contents.files.dedup();
            contents
        }
        (Some(name), _) => {
            let opened = place.open(&options);
            match opened {
                Ok(input) => Contents::of_input(&input, files.path())?,
                // A file that is no model has bytes.
                Err(error) if error.code() == zt::codes::UNKNOWN_KIND => Contents::of_file(name),
                Err(error) => return Err(Failure::Refused(error)),
            }
        }
    };
    let progress = Progress::new(contents.byte_len(&files));
    let report = |bytes| progress.report(bytes);
    let options = SealOptions::new().threads(threads).progress(zt::Progress::new(&report));
    let made = seal(kinds::table(), &files, &contents, &options)?;
    Ok(Sealed { made, files, file: name.map(|_| found) })
}

/// The parity file of a seal.
pub(crate) fn parity_of(seal: &Path) -> PathBuf {
    let mut name = seal.as_os_str().to_owned();
    name.push(".parity");
    name.into()
}

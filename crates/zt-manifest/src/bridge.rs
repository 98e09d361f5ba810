//! Converting values to and from `serde`'s types, through CBOR bytes.

use ciborium::{de, ser};
use serde::{Serialize, de::DeserializeOwned};

use crate::cbor::{Cursor, Encoder, MAX_NESTING, Scanner};
use crate::error::{Error, Misuse, Result};
use crate::value::Value;

/// The most levels that are deserialized, the default of [`crate::Limits::nesting`]. A level takes up to
/// 16 KiB of stack in a debug build, and a thread may have only 1 MiB.
const LEVELS: usize = 64;

impl Value {
    /// `source` as a value, encoded by `ciborium`. Structs become maps with their fields' names as keys,
    /// byte strings need `serde_bytes`, `None` and `()` become [`Value::Null`].
    ///
    /// # Errors
    ///
    /// `misuse`, always the caller's fault: `source` returns an error, has a map with a duplicate key, or is
    /// nested deeper than [`MAX_NESTING`](crate::MAX_NESTING).
    ///
    /// ```
    /// use zt_manifest::Value;
    ///
    /// #[derive(serde::Serialize, serde::Deserialize, PartialEq, Debug)]
    /// struct Training {
    ///     steps: u64,
    ///     rate: f64,
    /// }
    ///
    /// let training = Training { steps: 20_000, rate: 3e-4 };
    /// let value = Value::serialized(&training)?;
    /// assert_eq!(value.as_map().and_then(|map| map.get("steps")), Some(&Value::Unsigned(20_000)));
    /// assert_eq!(value.deserialized::<Training>()?, training);
    /// # Ok::<(), zt_manifest::Error>(())
    /// ```
    pub fn serialized<T: Serialize + ?Sized>(source: &T) -> Result<Value> {
        let mut bytes = Vec::new();
        ciborium::into_writer(source, &mut bytes).map_err(|error| match error {
            ser::Error::Value(message) => misuse(message),
            ser::Error::Io(error) => misuse(error.to_string()),
        })?;
        if u32::try_from(bytes.len()).is_err() {
            return Err(misuse("a value of more than 4 GiB".into()));
        }
        let mut scanner = Scanner::new(&bytes, 0, MAX_NESTING);
        let scanned = scanner.item(0).and_then(|()| scanner.end());
        let value = scanned.and_then(|()| Cursor::new(&bytes).value());
        value.map_err(|flaw| match flaw.into_error(&bytes) {
            Error::DuplicateKey { key, .. } if !key.is_empty() => {
                misuse(format!("the key {key:?} occurs twice in one map"))
            }
            Error::DuplicateKey { .. } => misuse("a key occurs twice in one map".into()),
            other => misuse(other.to_string()),
        })
    }

    /// This value as a `T`, decoded by `ciborium`. Numbers convert if nothing is lost, bignums if they fit.
    /// Fields that `T` does not have are ignored.
    ///
    /// # Errors
    ///
    /// `attribute` if the value is not of that type, or if it is nested deeper than 64 levels.
    pub fn deserialized<T: DeserializeOwned>(&self) -> Result<T> {
        let mut encoder = Encoder::default();
        encoder.value(self, 0, LEVELS).map_err(|misuse| match misuse {
            Misuse::Nesting { .. } => Error::Convert { message: misuse.to_string() },
            other => other.into(),
        })?;
        // A list counts twice where `T` keeps tags.
        let limit = 2 * LEVELS;
        let read = de::from_reader_with_recursion_limit(encoder.out.as_slice(), limit);
        read.map_err(|error| match error {
            // Only the message: `ciborium` displays the whole error as Rust syntax.
            de::Error::Semantic(_, message) => Error::Convert { message },
            other => Error::Convert { message: other.to_string() },
        })
    }
}

fn misuse(message: String) -> Error {
    Misuse::Value { message }.into()
}

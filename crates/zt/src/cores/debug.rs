//! `Debug` for types with fields that are large, or have no `Debug`.

/// Implements `Debug` with the name of the type and some fields: `fields!(File, |file| kind: file.kind)`.
macro_rules! fields {
    ($type:ident $(<$($lifetime:lifetime),*>)?, |$this:ident| $($field:ident: $value:expr),*) => {
        impl std::fmt::Debug for $type $(<$($lifetime),*>)? {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                let $this = self;
                let mut debug = f.debug_struct(stringify!($type));
                $(debug.field(stringify!($field), &$value);)*
                debug.finish_non_exhaustive()
            }
        }
    };
}
pub(crate) use fields;

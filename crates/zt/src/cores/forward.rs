//! Methods of a source that stands before another one.

/// Calls the methods of the same names of a field.
macro_rules! forward {
    ($field:ident: $($method:ident($($argument:ident: $type:ty)?) $(-> $result:ty)?),*) => {
        $(fn $method(&self $(, $argument: $type)?) $(-> $result)? {
            self.$field.$method($($argument)?)
        })*
    };
}
pub(crate) use forward;

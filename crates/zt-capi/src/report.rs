//! Lists of problems and warnings.

use crate::error::zt_error;

/// Problems or warnings, in the order of the data. It never changes.
pub struct zt_report(pub(crate) Vec<zt_error>);

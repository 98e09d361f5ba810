//! How URLs are reached.

use clap::Args;

/// The options of every command that takes URLs.
#[derive(Debug, Default, Args)]
pub(crate) struct RemoteArgs {
    /// Allow unencrypted connections, for URLs that begin with http://
    #[arg(long, display_order = 83)]
    pub(crate) allow_http: bool,

    /// Print at the end how many requests stores were sent, and how many bytes came back
    #[arg(long, display_order = 84)]
    pub(crate) requests: bool,
}

//! Files of the Hub: a server that redirects to another, which serves them.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is the failure of the test")]

mod common;

use common::{CALLS, Server, is_within, model, run_within};
use zt_remote::{Remote, RemoteOptions};

#[test]
fn a_file_of_the_hub_is_read_from_the_site_that_it_redirects_to() {
    let name = "a_file_of_the_hub_is_read_from_the_site_that_it_redirects_to";
    if is_within(name) {
        let url = "hf://owner/repository@main/m.zt";
        for (_, call) in CALLS {
            call(Remote::open(url, &RemoteOptions::new()).unwrap()).unwrap();
        }
        let error = Remote::open("hf://owner/repository/n.zt", &RemoteOptions::new()).unwrap_err();
        let text = error.to_string();
        assert!(!text.contains("secret") && !text.contains("token"), "{text}");
        return;
    }
    let site = Server::with("m.zt", model());
    let hub = Server::redirecting(&site);
    let endpoint = format!("http://127.0.0.1:{}", hub.port);
    run_within(name, &[("HF_ENDPOINT", &*endpoint), ("HF_TOKEN", "token")]);
    assert!(hub.requests().len() >= site.requests().len());
    assert!(!site.requests().is_empty());
    // The token is for the Hub alone.
    assert_eq!(hub.headers("authorization").len(), hub.requests().len());
    assert!(site.headers("authorization").is_empty());
}

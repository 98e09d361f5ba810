//! Settings of AWS, from the files and variables of its own tools.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is the failure of the test")]

mod common;

use std::fs;

use common::{Server, is_within, model, run_within};

#[test]
fn the_profile_of_the_user_has_keys_region_and_endpoint() {
    let name = "the_profile_of_the_user_has_keys_region_and_endpoint";
    if is_within(name) {
        zt_remote::open("s3://models/m.zt").unwrap();
        return;
    }
    let server = Server::with("m.zt", model());
    let folder = tempfile::tempdir().unwrap();
    let keys = "aws_access_key_id = KEY\naws_secret_access_key = secret\n";
    fs::create_dir(folder.path().join(".aws")).unwrap();
    let credentials = folder.path().join(".aws/credentials");
    fs::write(credentials, format!("[work]\n{keys}")).unwrap();
    let endpoint = format!("http://127.0.0.1:{}", server.port);
    let config = format!("[profile work]\nregion = eu-north-1\nendpoint_url = {endpoint}\n");
    fs::write(folder.path().join(".aws/config"), config).unwrap();
    let home = folder.path().display().to_string();

    run_within(name, &[("HOME", &*home), ("AWS_PROFILE", "work")]);
    // The environment has precedence, for each setting by itself.
    let variables = [
        ("HOME", &*home),
        ("AWS_PROFILE", "work"),
        ("AWS_ACCESS_KEY_ID", "OTHER"),
        ("AWS_SECRET_ACCESS_KEY", "other"),
        ("AWS_REGION", "us-west-1"),
    ];
    run_within(name, &variables);
    // And it can name the server by itself.
    let variables = [
        ("AWS_ENDPOINT_URL", &*endpoint),
        ("AWS_ACCESS_KEY_ID", "THIRD"),
        ("AWS_SECRET_ACCESS_KEY", "third"),
        ("HOME", "nowhere"),
    ];
    run_within(name, &variables);
    let signed = server.headers("authorization");
    let begins = [("KEY/", "/eu-north-1/"), ("OTHER/", "/us-west-1/"), ("THIRD/", "/us-east-1/")];
    assert_eq!(signed.len(), begins.len());
    for (signed, (key, region)) in signed.iter().zip(begins) {
        let is_right = signed.contains(&format!("Credential={key}")) && signed.contains(region);
        assert!(is_right, "{signed}");
    }
}

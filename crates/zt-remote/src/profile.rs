//! Profiles of AWS, in the files of its own tools.
//!
//! ```text
//! ~/.aws/credentials   [NAME]           aws_access_key_id, aws_secret_access_key, aws_session_token
//! ~/.aws/config        [profile NAME]   the same, region, endpoint_url, services
//!                      [services NAME]  s3 = (indented) endpoint_url
//! ```

use std::collections::HashMap;
use std::path::PathBuf;
use std::{env, fs, io};

use zt::Result;

use crate::error::Fault;

/// The longest file that is read. Files of AWS are far shorter.
const LONGEST: u64 = 1 << 20;

/// The settings of one profile.
#[derive(Debug, Default)]
pub(crate) struct Profile {
    pub(crate) credentials: Option<Credentials>,
    pub(crate) region: Option<String>,
    pub(crate) endpoint: Option<String>,
}

/// The keys of an account.
#[derive(Debug)]
pub(crate) struct Credentials {
    pub(crate) id: String,
    pub(crate) secret: String,
    pub(crate) token: Option<String>,
}

type Section = HashMap<String, String>;

/// The sections of a file, by their names.
type Sections = HashMap<String, Section>;

/// Keys of a profile for ways to get credentials that are unsupported here.
const UNSUPPORTED: &[&str] =
    &["credential_process", "role_arn", "sso_session", "sso_start_url", "login_session"];

impl Profile {
    /// The profile that `AWS_PROFILE` names, or the default one, which need not exist.
    ///
    /// # Errors
    ///
    /// Code `path` if there is no such profile, or if it gets its credentials in an unsupported way.
    pub(crate) fn of_environment() -> Result<Self> {
        let named = variable("AWS_PROFILE").or_else(|| variable("AWS_DEFAULT_PROFILE"));
        let credentials = sections("AWS_SHARED_CREDENTIALS_FILE", "credentials")?;
        let config = sections("AWS_CONFIG_FILE", "config")?;
        Self::of(named.as_deref(), &credentials, &config)
    }

    fn of(named: Option<&str>, credentials: &Sections, config: &Sections) -> Result<Self> {
        let name = named.unwrap_or("default");
        let configured = config.get(&format!("profile {name}"));
        let configured = match name {
            "default" => configured.or_else(|| config.get("default")),
            _ => configured,
        };
        let keys = credentials.get(name);
        if named.is_some() && keys.is_none() && configured.is_none() {
            let why = format!("there is no profile \"{name}\" in the files of AWS");
            return Err(Fault::settings(&why).into());
        }
        let from = |section: Option<&Section>| {
            let section = section?;
            Some(Credentials {
                id: section.get("aws_access_key_id")?.clone(),
                secret: section.get("aws_secret_access_key")?.clone(),
                token: section.get("aws_session_token").cloned(),
            })
        };
        let credentials = from(keys).or_else(|| from(configured));
        let unsupported = UNSUPPORTED
            .iter()
            .find(|key| configured.is_some_and(|section| section.contains_key(**key)));
        if let (None, Some(key), true) = (&credentials, unsupported, named.is_some()) {
            let why = format!(
                "the profile \"{name}\" has {key}, which is not supported: \
                 `aws configure export-credentials` gives keys for the environment"
            );
            return Err(Fault::settings(&why).into());
        }
        let value = |key: &str| configured.and_then(|section| section.get(key).cloned());
        let services = value("services").and_then(|name| config.get(&format!("services {name}")));
        let of_s3 = services.and_then(|services| services.get("s3.endpoint_url").cloned());
        Ok(Profile {
            credentials,
            region: value("region"),
            endpoint: of_s3.or_else(|| value("endpoint_url")),
        })
    }
}

fn variable(name: &str) -> Option<String> {
    env::var(name).ok().filter(|value| !value.is_empty())
}

/// The sections of the file that `named` names, or of `name` in the user's folder for AWS. A file that
/// does not exist has none.
fn sections(named: &str, name: &str) -> Result<Sections> {
    let path = match variable(named) {
        Some(path) => PathBuf::from(path),
        None => match variable("HOME").or_else(|| variable("USERPROFILE")) {
            Some(home) => PathBuf::from(home).join(".aws").join(name),
            None => return Ok(Sections::new()),
        },
    };
    let text = match fs::metadata(&path) {
        Ok(file) if file.len() <= LONGEST => fs::read_to_string(&path),
        Ok(_) => Err(io::ErrorKind::FileTooLarge.into()),
        Err(error) => Err(error),
    };
    match text {
        Ok(text) => Ok(parse(&text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Sections::new()),
        Err(error) => {
            let why = format!("{}: {error}", path.display());
            Err(Fault::settings(&why).into())
        }
    }
}

/// Indented lines belong to the key above them: `s3 =` and `  endpoint_url = ...` give `s3.endpoint_url`.
fn parse(text: &str) -> Sections {
    let mut sections = Sections::new();
    let (mut section, mut outer) = (String::new(), String::new());
    for line in text.lines() {
        let trimmed = line.trim();
        if trimmed.is_empty() || trimmed.starts_with(['#', ';']) {
            continue;
        }
        if let Some((name, _)) = trimmed.strip_prefix('[').and_then(|s| s.split_once(']')) {
            let words: Vec<_> = name.split_whitespace().collect();
            section = words.join(" ").replace('"', "");
            sections.entry(section.clone()).or_default();
            continue;
        }
        let Some((key, value)) = trimmed.split_once('=') else {
            continue;
        };
        let (key, value) = (key.trim().to_ascii_lowercase(), value.trim().to_owned());
        let key = match line.starts_with([' ', '\t']) {
            true => format!("{outer}.{key}"),
            false => {
                outer.clone_from(&key);
                key
            }
        };
        if let Some(section) = sections.get_mut(&section) {
            section.insert(key, value);
        }
    }
    sections
}

#[cfg(test)]
mod tests {
    use super::{Profile, parse};

    const CREDENTIALS: &str = "
# keys
[default]
aws_access_key_id = A
aws_secret_access_key=B=C
[work]
aws_access_key_id = D
aws_secret_access_key = E
aws_session_token = F
";

    const CONFIG: &str = "
[default]
region = eu-central-1
[profile work]
region = us-west-2
endpoint_url = https://all.example
services = ours
[profile  \"role\"]
role_arn = arn:aws:iam::1:role/x
[services ours]
s3 =
  endpoint_url = https://s3.example
";

    fn profile(named: Option<&str>) -> zt::Result<Profile> {
        Profile::of(named, &parse(CREDENTIALS), &parse(CONFIG))
    }

    #[test]
    fn the_named_profile_is_read() {
        let default = profile(None).unwrap();
        assert_eq!(default.credentials.unwrap().secret, "B=C");
        assert_eq!(default.region.unwrap(), "eu-central-1");
        assert_eq!(default.endpoint, None);
        let work = profile(Some("work")).unwrap();
        assert_eq!(work.credentials.unwrap().token.unwrap(), "F");
        assert_eq!(work.endpoint.unwrap(), "https://s3.example");
    }

    #[test]
    fn a_profile_that_cannot_be_used_is_an_error() {
        for name in ["none", "role"] {
            let error = profile(Some(name)).unwrap_err();
            assert_eq!(error.code(), "path");
            assert!(error.to_string().contains(name), "{error}");
        }
        assert!(Profile::of(None, &parse(""), &parse("")).is_ok());
    }
}

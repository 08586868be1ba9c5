//! What a server is started with, or connected to: everything that is not in its definition.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use reqwest::header::{AUTHORIZATION, HeaderName, HeaderValue};
use spinney_kernel::definition::{HttpAddress, ServerAuth};
use spinney_kernel::primitives::{AgentId, BlobHash, ServerName, TreeId};

use super::login::ServerLogins;
use super::permissions::ServerPermissions;
use crate::folders::HiddenFolders;
use crate::network::Outbound;
use crate::packages::PackageCache;
use crate::sandbox::{BoxLauncher, BoxTierChoice};
use crate::workspace::Workspaces;

#[derive(Clone)]
pub(super) enum ServerStart {
    Process(ProcessStart),
    Http(HttpStart),
}

/// What a program is started with.
#[derive(Clone)]
pub(super) struct ProcessStart {
    pub(super) launcher: Arc<BoxLauncher>,
    pub(super) tier: BoxTierChoice,
    pub(super) hidden: HiddenFolders,
    pub(super) outbound: Arc<dyn Outbound>,
    /// Where servers are that are packages.
    pub(super) packages: Option<PackageCache>,
    pub(super) place: ServerPlace,
    /// With values.
    pub(super) environment: Vec<(OsString, OsString)>,
}

/// Where the folder of a server is, in the workspace of its tree.
#[derive(Clone)]
pub(super) struct ServerPlace {
    pub(super) root: Arc<Path>,
    pub(super) tree: TreeId,
    pub(super) server: ServerName,
    /// The agent that has it to itself.
    pub(super) agent: Option<Box<[AgentId]>>,
}

impl ServerPlace {
    /// The folder, which is made if it is missing. This may take a moment.
    ///
    /// # Errors
    /// Why there is none.
    pub(super) fn folder(&self) -> Result<PathBuf, String> {
        let name = match &self.agent {
            None => self.server.to_string(),
            Some(agent) => {
                let path: Vec<&str> = agent.iter().map(AgentId::as_str).collect();
                let hash = BlobHash::digest(path.join("/").as_bytes());
                format!("{}.{}", self.server, &hash.as_str()[..16])
            }
        };
        let made =
            Workspaces::below(&self.root, self.tree).and_then(|all| all.server_folder(&self.root, &name));
        made.map_err(|fault| {
            format!("server `{server}` has no folder: {}", fault.source, server = fault.place)
        })
    }
}

impl ServerStart {
    /// The same for one agent alone.
    pub(super) fn for_agent(&self, agent: &[AgentId]) -> Self {
        let mut start = self.clone();
        if let Self::Process(start) = &mut start {
            start.place.agent = Some(agent.into());
        }
        start
    }
}

/// What a server elsewhere is connected to with.
#[derive(Clone)]
pub(super) struct HttpStart {
    pub(super) address: HttpAddress,
    pub(super) outbound: Arc<dyn Outbound>,
    /// Its key, never printed.
    pub(super) auth: Option<(HeaderName, HeaderValue)>,
    /// Where its token is, if no key is named.
    pub(super) logins: Option<Arc<dyn ServerLogins>>,
}

impl HttpStart {
    /// With the key that the user allows, if one is asked for.
    ///
    /// # Errors
    /// If the key is not set, or cannot be sent.
    pub(super) fn new(
        address: &HttpAddress,
        permissions: &ServerPermissions,
        outbound: Arc<dyn Outbound>,
        logins: Option<Arc<dyn ServerLogins>>,
    ) -> Result<Self, String> {
        let auth = address.auth.as_ref().map(|auth| key_header(auth, permissions)).transpose()?;
        let logins = logins.filter(|_| auth.is_none());
        Ok(Self { address: address.clone(), outbound, auth, logins })
    }

    /// What is sent with each request: the key, or the token of a login.
    pub(super) async fn header(&self) -> Result<Option<(HeaderName, HeaderValue)>, String> {
        let (None, Some(logins)) = (&self.auth, &self.logins) else { return Ok(self.auth.clone()) };
        let Some(token) = logins.token(self.address.url.clone()).await? else { return Ok(None) };
        let value = HeaderValue::from_str(&format!("Bearer {token}"));
        let mut value = value.map_err(|_| "the token of its login cannot be sent".to_owned())?;
        value.set_sensitive(true);
        Ok(Some((AUTHORIZATION, value)))
    }
}

fn key_header(
    auth: &ServerAuth,
    permissions: &ServerPermissions,
) -> Result<(HeaderName, HeaderValue), String> {
    let variable = &auth.key_env;
    let value = permissions.environment.get(variable).and_then(Option::as_ref);
    let value = value.ok_or_else(|| format!("its key is not set: set {variable}"))?;
    let unusable = || format!("the value of {variable} cannot be sent as a key");
    let value = value.to_str().map(str::trim).filter(|value| !value.is_empty()).ok_or_else(unusable)?;
    let (name, value) = match &auth.header {
        Some(header) => (header.parse().map_err(|_| unusable())?, value.to_owned()),
        None => (AUTHORIZATION, format!("Bearer {value}")),
    };
    let mut value = HeaderValue::from_str(&value).map_err(|_| unusable())?;
    value.set_sensitive(true);
    Ok((name, value))
}

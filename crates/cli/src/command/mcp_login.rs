//! `spinney mcp login`: the login of a person at a server elsewhere, in a browser.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow, bail};
use spinney::clock::{Clock, SystemClock};
use spinney::rng::secret;
use spinney::tree_file::nearest;
use spinney_drivers::mcp::LoginRequest;
use spinney_drivers::network::SystemOutbound;
use spinney_host::server_packages;
use spinney_host::user::logins;
use spinney_kernel::definition::ServerAddress;
use spinney_server::login_redirect::LoginRedirect;
use spinney_terminal::out;
use tokio::time::timeout;

use crate::args::McpLogin;
use crate::exit::Exit;

/// How long a person has.
const LOGIN_TIMEOUT: Duration = Duration::from_secs(600);

pub(super) async fn login(home: &Path, args: &McpLogin) -> Result<Exit> {
    let url = url(home, args)?;
    if args.remove {
        let text = if logins::forget(&url)? { "removed the login at" } else { "there is no login at" };
        out::line(&format!("{text} {url}"))?;
        return Ok(Exit::Completed);
    }
    let redirect = LoginRedirect::bind().await.context("no port is free for the browser")?;
    let random = [secret()?, secret()?];
    let places = (url.as_str(), redirect.address());
    let begun =
        LoginRequest::begin(Arc::new(SystemOutbound::default()), places, args.client_id.clone(), random);
    let request = begun.await.map_err(|why| anyhow!("{url}: {why}"))?;
    out::note(&format!("log in at {}, in a browser on this machine:", request.issuer()));
    out::line(&request.address())?;
    let answer = timeout(LOGIN_TIMEOUT, redirect.answer(request.state())).await;
    let answer =
        answer.map_err(|_| anyhow!("nobody logged in within {} minutes", LOGIN_TIMEOUT.as_secs() / 60))?;
    let answer = answer.map_err(|why| anyhow!("{url}: {why}"))?;
    let tokens = request.finish(answer, SystemClock::new().now_ms()).await;
    logins::keep(&tokens.map_err(|why| anyhow!("{url}: {why}"))?)?;
    out::line(&format!("logged in at {url}"))?;
    Ok(Exit::Completed)
}

/// The URL itself, or that of a server of the file.
fn url(home: &Path, args: &McpLogin) -> Result<String> {
    let name = &args.server;
    if name.starts_with("https://") || name.starts_with("http://") {
        return Ok(name.clone());
    }
    let Some(file) = &args.file else {
        bail!("`{name}` is not a URL: write the tree file that has this server after it")
    };
    let servers = server_packages::read_file(file, home)?.servers;
    let Some((_, server)) = servers.iter().find(|(known, _)| known.as_str() == name) else {
        bail!(
            "unknown server `{name}`: {}",
            nearest::help(name, servers.keys().map(|known| known.as_str()), "servers")
        )
    };
    match &server.address {
        ServerAddress::Http(address) => Ok(address.url.clone()),
        ServerAddress::Command(_) => bail!("server `{name}` runs on this machine, so there is no login"),
    }
}

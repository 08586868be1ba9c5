//! `spinney mcp install`: fetches the servers of a tree file that are packages, after a question that names each with its
//! version.

use std::path::Path;

use anyhow::{Result, bail};
use spinney_drivers::packages::{Package, PackageIndex};
use spinney_host::server_packages::{self, PackageLock, PackagedServer, UserPackages};
use spinney_host::shell_word;
use spinney_kernel::definition::Definition;
use spinney_kernel::primitives::ServerName;
use spinney_terminal::out;
use spinney_terminal::question::{self, YesOrNo};
use spinney_view::wording::counted;

use crate::args::McpInstall;
use crate::exit::Exit;
use crate::hint;

pub(super) async fn install(home: &Path, args: &McpInstall) -> Result<Exit> {
    let all = server_packages::packaged(&server_packages::read_file(&args.file, home)?);
    if all.is_empty() {
        out::line(&format!("{} names no servers that npx or uvx would download", args.file.display()))?;
        return Ok(Exit::Completed);
    }
    let packages = UserPackages::new().await?;
    let wanted = wanted(&packages, all).await?;
    let mut lock = PackageLock::beside(&args.file)?;
    let mut open = Vec::new();
    for (server, package) in wanted {
        if packages.has(&package, &lock)? && args.allow_scripts.is_empty() {
            out::line(&format!("{server}: {package} is installed"))?;
        } else {
            open.push((server, package));
        }
    }
    agree(&packages, &open, args)?;
    for (server, package) in &open {
        out::note(&format!("installing {package} from {}", packages.url(package.index)));
        let done = packages.install(package, &lock, &args.allow_scripts).await?;
        lock.record(package, done.lock)?;
        out::line(&format!(
            "{server}: {package} is installed, with its hashes in {}",
            lock.path().display()
        ))?;
    }
    Ok(Exit::Completed)
}

/// What the servers need, each at a version.
async fn wanted(packages: &UserPackages, all: Vec<PackagedServer>) -> Result<Vec<(ServerName, Package)>> {
    let mut wanted = Vec::new();
    for PackagedServer { server, command } in all {
        let package = match command {
            Ok(command) => command.package,
            Err(why) => bail!("server `{server}` cannot be installed: {why}"),
        };
        if package.version.is_none() {
            let newest = package.at(&packages.newest(&package).await?);
            bail!(
                "server `{server}`: {package} is named without a version, so that it could change at any time: write `{}`, which is the newest",
                newest.spec()
            );
        }
        wanted.push((server, package));
    }
    Ok(wanted)
}

/// Asks for all packages that were not named.
fn agree(packages: &UserPackages, open: &[(ServerName, Package)], args: &McpInstall) -> Result<()> {
    let is_named = |package: &Package| args.allow_package.contains(&package.spec());
    let unnamed: Vec<_> = open.iter().filter(|(_, package)| !is_named(package)).collect();
    if unnamed.is_empty() {
        return Ok(());
    }
    let lines: Vec<String> =
        unnamed.iter().map(|(server, package)| format!("  {package}, for server `{server}`")).collect();
    let mut indexes: Vec<PackageIndex> = unnamed.iter().map(|(_, package)| package.index).collect();
    indexes.dedup();
    let from: Vec<&str> = indexes.into_iter().map(|index| packages.url(index)).collect();
    let scripts = match args.allow_scripts.as_slice() {
        [] => "none of their scripts is run".to_owned(),
        scripts => format!("the scripts of {} are run", scripts.join(", ")),
    };
    let question = format!(
        "{} names {}:\n{}\nThey are fetched from {} in a box, with everything that they need, and {scripts}.",
        args.file.display(),
        counted(unnamed.len() as u64, "package"),
        lines.join("\n"),
        from.join(" and "),
    );
    match question::ask(&format!("{question}\nInstall this?")) {
        YesOrNo::Yes => Ok(()),
        YesOrNo::No => bail!("nothing was installed: you said no"),
        YesOrNo::NotAsked => {
            let options: Vec<String> = unnamed
                .iter()
                .map(|(_, package)| format!("--allow-package {}", shell_word::of_word(&package.spec())))
                .collect();
            bail!("{question}\nNothing was installed. If you trust this, add {}", options.join(" "))
        }
    }
}

/// Refuses a tree with servers that are not installed, and says what installs them.
pub(super) fn check_installed(definition: &Definition, file: &Path) -> Result<()> {
    let missing = server_packages::missing(definition);
    let Some((server, why)) = missing.first() else { return Ok(()) };
    bail!("server `{server}`: {why}; install it first: {}", hint::install(file))
}

//! The first process of a box: it makes the box, starts the command in it, and takes the exits of everything that the
//! command leaves behind. In namespaces it is process 1, whose end is the end of all others.

use std::ffi::{CString, OsStr};
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::Mode;
use rustix::io::{Errno, retry_on_intr};
use rustix::process::{
    Gid, Pid, Resource, Rlimit, Signal, Uid, WaitOptions, getpid, getrlimit, kill_process_group,
    set_child_subreaper, set_parent_process_death_signal, wait,
};
use rustix::stdio::{dup2_stderr, dup2_stdin, dup2_stdout};

use super::calls::{ExecList, child_signals, exit_now, signal_all, start_before_exec};
use super::command::{CommandPlan, ProgramPlan, become_command};
use super::confinement::BoxLimits;
use super::exact_path::open_exact;
use super::kill::kill_below;
use super::landlock::{Access, Ruleset, Tcp};
use super::mounts;
use super::network::hand_out_listeners;
use super::order::{BoxOrder, Presence, Walls};
use super::process_limit::ProcessLimit;
use super::report::{BoxReport, BoxUsage, Reason};
use super::requests::GuardRequest;
use super::step::BoxStep;
use super::terminal;
use super::usage::THREADS_PER_PROCESS;
use super::watch::{drain, ready};

/// Open files of a process in a box.
const FILES_DEFAULT: u64 = 1_024;
const FILES_MAX: u64 = 4_096;
const UMASK_MAX: u32 = 0o777;

/// What the first process has from its guard.
pub(super) struct Inside<'a> {
    pub(super) order: &'a BoxOrder,
    /// Closes when the guard is gone.
    pub(super) guard: OwnedFd,
    pub(super) reports: OwnedFd,
    /// Where the command sends what its guard answers by.
    pub(super) forks: OwnedFd,
    pub(super) nothing: OwnedFd,
    /// Who the guard is.
    pub(super) user: (Uid, Gid),
    /// Where the sockets are handed out through which the box may connect.
    pub(super) network: Option<OwnedFd>,
    /// Where the terminal of a program is.
    pub(super) terminal: Option<OwnedFd>,
}

/// A step that failed.
pub(super) struct Failed {
    pub(super) step: BoxStep,
    pub(super) error: io::Error,
}

/// Turns an error into that of a step.
pub(super) trait During<T> {
    fn during(self, step: BoxStep) -> Result<T, Failed>;
}

impl<T, E: Into<io::Error>> During<T> for Result<T, E> {
    fn during(self, step: BoxStep) -> Result<T, Failed> {
        self.map_err(|error| Failed { step, error: error.into() })
    }
}

pub(super) fn inside(mut given: Inside<'_>) -> ! {
    let ways = (given.network.take(), given.terminal.take());
    match make_and_follow(&given, ways) {
        Ok(report) => report.say(&given.reports),
        Err(Failed { step, error }) => BoxReport::failed(step, &error).say(&given.reports),
    }
    if given.order.walls != Walls::Namespaces {
        end_everything();
    }
    exit_now(0)
}

fn make_and_follow(
    given: &Inside<'_>,
    (network, terminal): (Option<OwnedFd>, Option<OwnedFd>),
) -> Result<BoxReport, Failed> {
    let Inside { order, guard, reports, forks, nothing, user, .. } = given;
    if order.walls == Walls::Namespaces {
        mounts::map_user(*user).during(BoxStep::UserMap)?;
        if order.program.is_some() {
            let most = order.processes_max.saturating_mul(THREADS_PER_PROCESS);
            ProcessLimit::here().set(user.0, most).during(BoxStep::Limits)?;
        }
        mounts::enter(order)?;
        if let Some(network) = network {
            let served = u16::try_from(order.served_port).ok().filter(|port| *port > 0);
            hand_out_listeners(&network, served).during(BoxStep::Proxy)?;
        }
        end_with_guard(guard).during(BoxStep::Session)?;
    } else {
        set_child_subreaper(Some(getpid())).during(BoxStep::Order)?;
    }
    let wanted = order.program.and_then(|program| program.terminal);
    let terminal = match (&wanted, &terminal) {
        (Some(order), Some(to)) => Some(terminal::make(order, to).during(BoxStep::Terminal)?),
        _ => None,
    };
    let workspace = order.grants.first().map_or(Path::new("/"), |grant| grant.path.as_path());
    let plan = CommandPlan {
        rules: rules(order)?,
        filter: &order.filter,
        limits: limits(order, user.0),
        folder: text(if order.folder.as_os_str().is_empty() { workspace } else { &order.folder })
            .during(BoxStep::Folder)?,
        candidates: candidates(order).during(BoxStep::Exec)?,
        arguments: ExecList::new(texts(&order.arguments).during(BoxStep::Exec)?),
        environment: ExecList::new(environment(order, workspace).during(BoxStep::Exec)?),
        walls: order.walls,
        program: order.program.map(|program| ProgramPlan {
            umask: Mode::from_raw_mode(u32::try_from(program.umask).unwrap_or(UMASK_MAX) & UMASK_MAX),
            terminal: terminal
                .as_ref()
                .zip(wanted)
                .map(|(terminal, order)| (terminal.as_fd(), order.streams)),
        }),
        reports: reports.as_fd(),
        forks: forks.as_fd(),
    };
    let children = child_signals().during(BoxStep::Session)?;
    let command = start_before_exec(&mut || become_command(&plan)).during(BoxStep::Session)?;
    drop(plan);
    // Only what is in the box has it: its end is seen when they have ended.
    drop(terminal);
    BoxReport::Started { group: command.as_raw_nonzero().get() }.say(reports);
    let release = || -> io::Result<()> {
        dup2_stdin(nothing)?;
        dup2_stdout(nothing)?;
        dup2_stderr(nothing)?;
        Ok(())
    };
    release().during(BoxStep::Session)?;
    let status = follow(command, guard, &children, order.walls).during(BoxStep::Session)?;
    Ok(BoxReport::Ended { status, reason: Reason::Command, usage: BoxUsage::default() })
}

/// The kernel ends this process, and its namespace with it, when the guard ends. `follow` notices that as well, but only
/// after the command is executed, which may wait for a slow disk.
fn end_with_guard(guard: &OwnedFd) -> io::Result<()> {
    set_parent_process_death_signal(Some(Signal::KILL))?;
    let mut gone = [PollFd::new(guard, PollFlags::IN)];
    // It may have ended before that.
    match retry_on_intr(|| poll(&mut gone, Some(&Timespec::default())))? {
        0 => Ok(()),
        _ => Err(io::ErrorKind::BrokenPipe.into()),
    }
}

/// Waits for the end of the command, or of the guard, and kills the command's group at once. While the group has a member,
/// its number is given to no other; without one it is given again only after all others.
fn follow(command: Pid, guard: &OwnedFd, children: &OwnedFd, walls: Walls) -> io::Result<i32> {
    let status = loop {
        let [is_asked, has_ended] = ready([guard.as_fd(), children.as_fd()])?;
        if is_asked {
            let mut byte = [0];
            match rustix::io::read(guard, &mut byte) {
                Ok(1..) if walls == Walls::Namespaces => {
                    if let Some(signal) = GuardRequest::from_byte(byte[0]).signal() {
                        signal_all(signal);
                    }
                }
                Err(Errno::INTR) => {}
                // The guard is gone.
                Ok(_) | Err(_) => break libc::SIGKILL,
            }
        }
        if has_ended {
            drain(children);
            if let Some(status) = reap(command)? {
                break status;
            }
        }
    };
    let _ = kill_process_group(command, Signal::KILL);
    Ok(status)
}

/// Takes the exits of the command and of what it left behind.
fn reap(command: Pid) -> io::Result<Option<i32>> {
    loop {
        match wait(WaitOptions::NOHANG) {
            Ok(Some((pid, status))) if pid == command => return Ok(Some(status.as_raw())),
            Ok(Some(_)) | Err(Errno::INTR) => {}
            Ok(None) => return Ok(None),
            Err(error) => return Err(error.into()),
        }
    }
}

/// Without a namespace nothing but this ends what the command has left. What cannot be killed ends with what it waits for.
fn end_everything() {
    loop {
        match wait(WaitOptions::NOHANG) {
            Err(Errno::CHILD) => return,
            Ok(None) => kill_below(getpid()),
            _ => {}
        }
    }
}

fn rules(order: &BoxOrder) -> Result<Option<Ruleset>, Failed> {
    let tcp = match order.walls {
        Walls::None => return Ok(None),
        Walls::Landlock => Tcp::Refused,
        Walls::Namespaces => Tcp::InsideOnly,
    };
    let rules = Ruleset::new(order.landlock_abi, tcp).during(BoxStep::Rules)?;
    for (grant, index) in order.grants.iter().zip(0..) {
        let allowed = match grant.presence {
            Presence::Exact => {
                open_exact(grant.inside()).and_then(|opened| rules.allow_opened(&opened, grant.access))
            }
            Presence::Required | Presence::IfThere => rules.allow(grant.inside(), grant.access),
        };
        match allowed {
            Err(error) if grant.presence == Presence::IfThere && is_absent(&error) => {}
            allowed => allowed.during(BoxStep::Grant { index })?,
        }
    }
    if order.walls == Walls::Namespaces {
        for folder in mounts::PRIVATE_FOLDERS {
            rules.allow(Path::new(folder), Access::Write).during(BoxStep::Rules)?;
        }
        for folder in &order.private {
            rules.allow(folder, Access::Write).during(BoxStep::Rules)?;
        }
        if order.program.is_some() {
            rules.allow(Path::new(mounts::TERMINALS), Access::Terminal).during(BoxStep::Rules)?;
        }
        rules.allow(Path::new("/proc"), Access::ReadData).during(BoxStep::Rules)?;
    }
    Ok(Some(rules))
}

/// Whether a path is missing, or its user may not even see it.
pub(super) fn is_absent(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory | io::ErrorKind::PermissionDenied
    )
}

fn limits(order: &BoxOrder, user: Uid) -> Vec<(Resource, Rlimit)> {
    let exactly = |most: u64| Rlimit { current: Some(most), maximum: Some(most) };
    let most = |resource: Resource, most: u64| getrlimit(resource).maximum.map_or(most, |now| now.min(most));
    let (files, files_max) = match order.program {
        Some(program) => {
            (program.open_files, getrlimit(Resource::Nofile).maximum.unwrap_or(program.open_files))
        }
        None => (FILES_DEFAULT, most(Resource::Nofile, FILES_MAX)),
    };
    let mut limits = vec![
        (Resource::Core, exactly(0)),
        (Resource::Nofile, Rlimit { current: Some(files.min(files_max)), maximum: Some(files_max) }),
        (Resource::Msgqueue, exactly(0)),
    ];
    if order.disk_bytes_max != BoxLimits::UNLIMITED {
        limits.push((Resource::Fsize, exactly(most(Resource::Fsize, order.disk_bytes_max))));
    }
    // Elsewhere it would count every process of the user, and it never counts those of root.
    if order.walls == Walls::Namespaces && !user.is_root() {
        let threads = order.processes_max.saturating_mul(THREADS_PER_PROCESS);
        limits.push((Resource::Nproc, exactly(most(Resource::Nproc, threads))));
    }
    limits
}

/// Where the command may be, in the order in which it is looked for.
fn candidates(order: &BoxOrder) -> io::Result<Vec<CString>> {
    let Some(command) = order.arguments.first() else { return Ok(Vec::new()) };
    if !order.file.as_os_str().is_empty() {
        return Ok(vec![text(&order.file)?]);
    }
    if command.as_bytes().contains(&b'/') {
        return Ok(vec![text(command)?]);
    }
    order.search.iter().map(|folder| text(Path::new(folder).join(command))).collect()
}

fn environment(order: &BoxOrder, workspace: &Path) -> io::Result<Vec<CString>> {
    let mut home = b"HOME=".to_vec();
    home.extend_from_slice(workspace.as_os_str().as_bytes());
    let mut variables = texts(&order.environment)?;
    if !variables.iter().any(|variable| variable.to_bytes().starts_with(b"HOME=")) {
        variables.push(CString::new(home)?);
    }
    Ok(variables)
}

fn texts<T: AsRef<OsStr>>(all: &[T]) -> io::Result<Vec<CString>> {
    all.iter().map(text).collect()
}

fn text(one: impl AsRef<OsStr>) -> io::Result<CString> {
    Ok(CString::new(one.as_ref().as_bytes())?)
}

//! The last steps before the command, in the process that becomes it. It shares the memory of the first process, which waits,
//! so nothing in here allocates.

use std::ffi::CString;
use std::io;
use std::os::fd::{AsFd as _, BorrowedFd};

use libc::sock_filter;
use rustix::fs::Mode;
use rustix::io::Errno;
use rustix::process::{Resource, Rlimit, chdir, geteuid, ioctl_tiocsctty, setpgid, setrlimit, setsid, umask};
use rustix::stdio::{dup2_stderr, dup2_stdin, dup2_stdout};
use rustix::thread::{
    CapabilitiesSecureBits, CapabilitySet, CapabilitySets, capabilities, clear_ambient_capability_set,
    remove_capability_from_bounding_set, set_capabilities, set_capabilities_secure_bits, set_no_new_privs,
};

use super::calls::{
    ExecList, close_others_on_exec, exec, exit_now, reset_signals, run_when_idle, seccomp_filter,
};
use super::forks::hand_over;
use super::inside::{During as _, Failed};
use super::landlock::Ruleset;
use super::order::Walls;
use super::report::BoxReport;
use super::step::BoxStep;

/// Everything that is needed from here on.
pub(super) struct CommandPlan<'a> {
    pub(super) rules: Option<Ruleset>,
    pub(super) filter: &'a [sock_filter],
    pub(super) limits: Vec<(Resource, Rlimit)>,
    pub(super) folder: CString,
    pub(super) candidates: Vec<CString>,
    pub(super) arguments: ExecList,
    pub(super) environment: ExecList,
    pub(super) walls: Walls,
    pub(super) program: Option<ProgramPlan<'a>>,
    pub(super) reports: BorrowedFd<'a>,
    /// To the guard, which answers before a process is made.
    pub(super) forks: BorrowedFd<'a>,
}

/// What a program of a person has otherwise.
pub(super) struct ProgramPlan<'a> {
    pub(super) umask: Mode,
    /// Its terminal, and which of its standard streams that is.
    pub(super) terminal: Option<(BorrowedFd<'a>, [bool; 3])>,
}

/// Says what failed, if something does.
pub(super) fn become_command(plan: &CommandPlan<'_>) -> ! {
    let report = match restrict(plan) {
        Err(Failed { step, error }) => BoxReport::failed(step, &error),
        Ok(()) if plan.candidates.is_empty() => BoxReport::Ready,
        Ok(()) => BoxReport::failed(BoxStep::Exec, &run(plan)),
    };
    report.say(plan.reports);
    exit_now(127)
}

fn restrict(plan: &CommandPlan<'_>) -> Result<(), Failed> {
    match &plan.program {
        None => {
            // The session is the guard's, so the scheduler weighs both together.
            setpgid(None, None).during(BoxStep::Session)?;
            umask(Mode::WGRP | Mode::WOTH);
        }
        Some(program) => {
            setsid().during(BoxStep::Session)?;
            umask(program.umask);
            if let Some((terminal, streams)) = &program.terminal {
                take_terminal(*terminal, *streams).during(BoxStep::Session)?;
            }
        }
    }
    reset_signals().during(BoxStep::Session)?;
    for (resource, limit) in &plan.limits {
        setrlimit(*resource, *limit).during(BoxStep::Limits)?;
    }
    chdir(plan.folder.as_c_str()).during(BoxStep::Folder)?;
    if plan.walls != Walls::None {
        drop_capabilities().during(BoxStep::Capabilities)?;
        set_no_new_privs(true).during(BoxStep::Privileges)?;
        if let Some(rules) = &plan.rules {
            rules.restrict().during(BoxStep::Landlock)?;
        }
    }
    close_others_on_exec().during(BoxStep::Session)?;
    // The guard gets its turn at once, however many processes a box has. No process of a box can change this. Until here
    // everything is ours, and waits for nothing else. A person waits for what a program does, and its guard only counts it.
    if plan.program.is_none() {
        run_when_idle().during(BoxStep::Limits)?;
    }
    if plan.walls != Walls::None {
        let listener = seccomp_filter(plan.filter).during(BoxStep::SystemCalls)?;
        hand_over(plan.forks, listener.as_fd()).during(BoxStep::SystemCalls)?;
    }
    Ok(())
}

/// Makes a terminal that of this session, and puts it in the place of standard streams.
fn take_terminal(terminal: BorrowedFd<'_>, [stdin, stdout, stderr]: [bool; 3]) -> io::Result<()> {
    ioctl_tiocsctty(terminal)?;
    if stdin {
        dup2_stdin(terminal)?;
    }
    if stdout {
        dup2_stdout(terminal)?;
    }
    if stderr {
        dup2_stderr(terminal)?;
    }
    Ok(())
}

/// Also those that the next program would get: root has every capability of the bounding set after an exec.
pub(super) fn drop_capabilities() -> io::Result<()> {
    let none = CapabilitySets {
        effective: CapabilitySet::empty(),
        permitted: CapabilitySet::empty(),
        inheritable: CapabilitySet::empty(),
    };
    clear_ambient_capability_set()?;
    if capabilities(None)?.effective.contains(CapabilitySet::SETPCAP) {
        let locked = CapabilitiesSecureBits::NO_ROOT
            | CapabilitiesSecureBits::NO_ROOT_LOCKED
            | CapabilitiesSecureBits::NO_SETUID_FIXUP
            | CapabilitiesSecureBits::NO_SETUID_FIXUP_LOCKED
            | CapabilitiesSecureBits::NO_CAP_AMBIENT_RAISE
            | CapabilitiesSecureBits::NO_CAP_AMBIENT_RAISE_LOCKED;
        set_capabilities_secure_bits(locked)?;
        for number in 0..64 {
            match remove_capability_from_bounding_set(CapabilitySet::from_bits_retain(1 << number)) {
                // The kernel knows no more.
                Err(Errno::INVAL) => break,
                removed => removed?,
            }
        }
    } else if geteuid().is_root() {
        return Err(Errno::PERM.into());
    }
    Ok(set_capabilities(None, none)?)
}

/// Why none of the places has a program that runs: the first reason that is not its absence.
fn run(plan: &CommandPlan<'_>) -> io::Error {
    let mut reason = io::Error::from_raw_os_error(libc::ENOENT);
    for candidate in &plan.candidates {
        let error = exec(candidate, &plan.arguments, &plan.environment);
        let is_missing = matches!(error.raw_os_error(), Some(libc::ENOENT | libc::ENOTDIR));
        if !is_missing && reason.raw_os_error() == Some(libc::ENOENT) {
            reason = error;
        }
    }
    reason
}

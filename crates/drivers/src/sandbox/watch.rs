//! The guard of a box: the process between us and the box. It starts the box, samples what it uses, and ends all of it
//! when the command ends, when a limit or the time is reached, when it is asked to, and when the process that started it
//! is gone. It is not in the box, and nothing in a box can signal it.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::{Errno, retry_on_intr};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{
    Pid, Signal, WaitOptions, getegid, geteuid, getpid, kill_process, kill_process_group,
    set_child_subreaper, setsid, wait,
};
use rustix::stdio::{dup2_stderr, dup2_stdin, dup2_stdout};

use super::calls::{ALL_NAMESPACES, Forked, NO_NAMESPACES, child_signals, exit_now, fork};
use super::confinement::BoxLimits;
use super::descriptors;
use super::exact_path::open_exact;
use super::forks::Forks;
use super::inside::{During as _, Failed, Inside, inside};
use super::kill::kill_below;
use super::order::{BoxOrder, Presence, Walls};
use super::report::{BoxReport, REPORT_BYTES, Reason};
use super::requests::GuardRequest;
use super::reserved::ReservedNames;
use super::step::BoxStep;
use super::ticks::{TICK_MS, Ticks};
use super::usage::{Growth, Sampler};

/// What cannot be killed within this time waits for a device, and ends with that wait.
const KILL_TICKS: u64 = 5_000 / TICK_MS;

/// Everything of a guard. Its standard input is a socket from the process that started it; its standard output and error
/// are the command's.
pub(super) fn watch() -> io::Result<()> {
    let control = io::stdin().as_fd().try_clone_to_owned()?;
    // Away from terminals and groups, whose signals are not for a guard. It may lead a group already.
    let _ = setsid();
    let report = guard(&control).unwrap_or_else(|Failed { step, error }| BoxReport::failed(step, &error));
    report.say(&control);
    Ok(())
}

fn guard(control: &OwnedFd) -> Result<BoxReport, Failed> {
    let (mut order, given) = receive(control).during(BoxStep::Order)?;
    // What is granted is where a path leads now, whatever becomes of its links.
    for (grant, index) in order.grants.iter_mut().zip(0..) {
        match grant.presence {
            Presence::Required => {
                grant.path = fs::canonicalize(&grant.path).during(BoxStep::Grant { index })?;
            }
            Presence::Exact => drop(open_exact(&grant.path).during(BoxStep::Grant { index })?),
            Presence::IfThere => {}
        }
    }
    // Until everything in the box has ended.
    let reserved = ReservedNames::make(&order.reserved).during(BoxStep::HiddenPath)?;
    order.read_only.extend(reserved.paths());
    let guard = Guard::start(control, &order, given).during(BoxStep::Order)?;
    guard.follow(&order).during(BoxStep::Order)
}

/// What comes with an order.
struct Given {
    /// The command's standard input.
    stdin: OwnedFd,
    /// Where the sockets of a box with a network are handed out.
    network: Option<OwnedFd>,
    /// Where the terminal of a program is.
    terminal: Option<OwnedFd>,
}

fn receive(control: &OwnedFd) -> io::Result<(BoxOrder, Given)> {
    let (_, descriptors) = descriptors::receive(control, &mut [0])?;
    let mut descriptors = descriptors.into_iter();
    let (Some(order), Some(stdin)) = (descriptors.next(), descriptors.next()) else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    let mut bytes = Vec::new();
    File::from(order).read_to_end(&mut bytes)?;
    let order = BoxOrder::from_bytes(&bytes)?;
    let has_terminal = order.program.is_some_and(|program| program.terminal.is_some());
    let mut next = |is_sent: bool| -> io::Result<Option<OwnedFd>> {
        is_sent.then(|| descriptors.next().ok_or(io::ErrorKind::InvalidInput.into())).transpose()
    };
    let (network, terminal) = (next(order.has_proxy)?, next(has_terminal)?);
    Ok((order, Given { stdin, network, terminal }))
}

struct Guard<'a> {
    control: &'a OwnedFd,
    walls: Walls,
    /// The first process of the box, which starts the command.
    first: Pid,
    /// What it says.
    reports: OwnedFd,
    /// Tells the first process what is asked for, and by its end that we are gone.
    alive: OwnedFd,
    /// Of the command and, without namespaces, of everything in the box.
    group: Option<Pid>,
    last: Option<BoxReport>,
    children: OwnedFd,
    ticks: Ticks,
    sampler: Sampler,
    forks: Forks,
}

impl<'a> Guard<'a> {
    fn start(
        control: &'a OwnedFd,
        order: &BoxOrder,
        Given { stdin, network, terminal }: Given,
    ) -> io::Result<Self> {
        set_child_subreaper(Some(getpid()))?;
        let sampler = Sampler::new(order)?;
        let (guard, alive) = pipe_with(PipeFlags::CLOEXEC)?;
        let (reports, report_to) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
        let nothing: OwnedFd = File::options().read(true).write(true).open("/dev/null")?.into();
        let children = child_signals()?;
        let forks = Forks::new()?;
        let user = (geteuid(), getegid());
        let namespaces = if order.walls == Walls::Namespaces { ALL_NAMESPACES } else { NO_NAMESPACES };
        let first = match fork(namespaces) {
            Err(error) => {
                let report = BoxReport::failed(BoxStep::Namespaces, &error);
                report.say(&report_to);
                // A child that has ended at once says the same as one that cannot begin.
                match fork(NO_NAMESPACES)? {
                    Forked::Child => exit_now(1),
                    Forked::Parent(first) => first,
                }
            }
            Ok(Forked::Child) => {
                // The socket is the guard's alone: its end must tell that the guard is gone.
                let is_ready = dup2_stdin(&stdin).is_ok();
                drop(stdin);
                drop((alive, reports, children, sampler));
                close_copy(control);
                if is_ready {
                    inside(Inside {
                        order,
                        guard,
                        reports: report_to,
                        forks: forks.into_box_end(),
                        nothing,
                        user,
                        network,
                        terminal,
                    });
                }
                exit_now(1)
            }
            Ok(Forked::Parent(first)) => first,
        };
        // The box has its own copies until its sockets and its terminal are handed out.
        drop((stdin, network, terminal));
        dup2_stdin(&nothing)?;
        dup2_stdout(&nothing)?;
        dup2_stderr(&nothing)?;
        let ticks = Ticks::new()?;
        // A program may run for days: nothing of it is sampled without a limit.
        let is_sampled = order.timeout_ms != u64::MAX
            || order.memory_bytes_max != BoxLimits::UNLIMITED
            || order.disk_bytes_max != BoxLimits::UNLIMITED;
        if is_sampled {
            ticks.start()?;
        }
        Ok(Self {
            control,
            walls: order.walls,
            first,
            reports,
            alive,
            group: None,
            last: None,
            children,
            ticks,
            sampler,
            forks,
        })
    }

    fn follow(mut self, order: &BoxOrder) -> io::Result<BoxReport> {
        let timeout_ticks = order.timeout_ms.div_ceil(TICK_MS);
        let reason = loop {
            let sources =
                [self.control.as_fd(), self.children.as_fd(), self.ticks.as_fd(), self.forks.source()];
            let [asked, ended, ticked, forks] = ready(sources)?;
            if ended && self.reap()? {
                break Reason::Command;
            }
            if asked {
                match self.asked() {
                    GuardRequest::End => break Reason::Asked,
                    // If it is gone, its end is seen next.
                    request => drop(rustix::io::write(&self.alive, &[request.byte()])),
                }
            }
            if forks && let Some(limit) = self.forks.answer(&mut self.sampler, self.first, self.walls)? {
                break limit;
            }
            if ticked {
                if self.ticks.now() >= timeout_ticks {
                    break Reason::Timeout;
                }
                if let Some(limit) = self.sample() {
                    break limit;
                }
            }
        };
        self.read_reports();
        if matches!(self.last, Some(BoxReport::Ended { .. })) {
            // The first process has killed the group, whose number may be another's by now.
            self.group = None;
        }
        self.kill_all()?;
        self.read_reports();
        let usage = self.sampler.usage();
        Ok(match self.last {
            Some(BoxReport::Ended { status, .. }) => BoxReport::Ended { status, reason, usage },
            Some(other) if reason == Reason::Command => other,
            // It was killed, by us or from outside.
            _ => BoxReport::Ended { status: libc::SIGKILL, reason, usage },
        })
    }

    /// An unread message would hide our report behind an error.
    fn asked(&self) -> GuardRequest {
        let mut byte = [0];
        match rustix::io::read(self.control, &mut byte) {
            Ok(1..) => GuardRequest::from_byte(byte[0]),
            Ok(_) | Err(_) => GuardRequest::End,
        }
    }

    /// Takes the exits of children. Whether the first process of the box has ended.
    fn reap(&self) -> io::Result<bool> {
        drain(&self.children);
        loop {
            match wait(WaitOptions::NOHANG) {
                Ok(Some((pid, _))) if pid == self.first => return Ok(true),
                Ok(Some(_)) | Err(Errno::INTR) => {}
                Ok(None) => return Ok(false),
                Err(Errno::CHILD) => return Ok(true),
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Then nothing of the box is left.
    fn kill_all(&mut self) -> io::Result<()> {
        self.ticks.start()?;
        let until = self.ticks.now().saturating_add(KILL_TICKS);
        // Before an exit is taken: the number is the group's for certain then.
        if let Some(group) = self.group.take() {
            let _ = kill_process_group(group, Signal::KILL);
        }
        loop {
            match wait(WaitOptions::NOHANG) {
                Err(Errno::CHILD) => return Ok(()),
                Ok(Some(_)) | Err(Errno::INTR) => continue,
                Err(error) => return Err(error.into()),
                Ok(None) => {}
            }
            if self.ticks.now() >= until {
                return Ok(());
            }
            match self.walls {
                // The kernel ends a namespace of processes with its first one, all at once.
                Walls::Namespaces => {
                    let _ = kill_process(self.first, Signal::KILL);
                }
                Walls::None | Walls::Landlock => kill_below(getpid()),
            }
            let [ended, _] = ready([self.children.as_fd(), self.ticks.as_fd()])?;
            if ended {
                drain(&self.children);
            }
        }
    }

    /// Only what runs without walls makes processes unasked: it is counted as soon as it seems to have too many.
    fn sample(&mut self) -> Option<Reason> {
        let growth = if self.walls == Walls::None { Growth::Unasked } else { Growth::Asked };
        if growth == Growth::Unasked && self.sampler.is_suspicious() {
            return self.sampler.sample_now(self.first, &self.ticks, growth);
        }
        self.sampler.tick(self.first, &self.ticks, growth)
    }

    /// What the box has said until now. What went wrong stays.
    fn read_reports(&mut self) {
        let mut bytes = [0; REPORT_BYTES];
        while let Ok(REPORT_BYTES) = rustix::io::read(&self.reports, &mut bytes) {
            match BoxReport::from_bytes(&bytes) {
                Some(BoxReport::Started { group }) if self.walls != Walls::Namespaces => {
                    self.group = Pid::from_raw(group);
                }
                Some(BoxReport::Started { .. }) => {}
                _ if matches!(self.last, Some(BoxReport::NotStarted { .. } | BoxReport::Ready)) => {}
                report => self.last = report,
            }
        }
    }
}

/// Which of some descriptors have something to say; waits until one has.
pub(super) fn ready<const N: usize>(descriptors: [BorrowedFd<'_>; N]) -> io::Result<[bool; N]> {
    let mut polled = descriptors.map(|descriptor| PollFd::from_borrowed_fd(descriptor, PollFlags::IN));
    retry_on_intr(|| poll(&mut polled, None))?;
    Ok(std::array::from_fn(|at| !polled[at].revents().is_empty()))
}

/// Forgets the signals that were noticed.
pub(super) fn drain(signals: &OwnedFd) {
    let mut buffer = [0; 1_024];
    while rustix::io::read(signals, &mut buffer).is_ok_and(|read| read > 0) {}
}

/// Closes this process' copy of a descriptor that its parent keeps.
fn close_copy(descriptor: &OwnedFd) {
    super::calls::close_borrowed(descriptor.as_fd());
}

//! System calls that no safe library has for us. Everything unsafe of the sandbox is in this file; nothing in here
//! allocates, so all of it may stand between a fork and an exec.

#![expect(unsafe_code, reason = "forks, filters and rules of the kernel have no safe interface")]

use std::ffi::{CStr, CString, c_char, c_int, c_long, c_uint, c_void};
use std::io;
use std::mem::size_of;
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, FromRawFd as _, OwnedFd};
use std::ptr::{null, null_mut};

use rustix::io::Errno;
use rustix::process::{Pid, Signal};

use super::forks::Made;

/// What is known after a fork.
pub(super) enum Forked {
    Child,
    Parent(Pid),
}

/// The stack of a process that only becomes another program.
const STACK_BYTES: usize = 128 << 10;

/// Namespaces that a child begins in.
pub(super) const NO_NAMESPACES: c_int = 0;
pub(super) const ALL_NAMESPACES: c_int = libc::CLONE_NEWUSER
    | libc::CLONE_NEWPID
    | libc::CLONE_NEWNET
    | libc::CLONE_NEWNS
    | libc::CLONE_NEWIPC
    | libc::CLONE_NEWUTS;

/// A copy of this process, which must have one thread only.
pub(super) fn fork(namespaces: c_int) -> io::Result<Forked> {
    let flags = c_long::from(namespaces | libc::SIGCHLD);
    // SAFETY: without a new stack and without shared memory this is a fork. The order of the last two arguments differs
    // between machines; both are zero.
    let pid =
        unsafe { libc::syscall(libc::SYS_clone, flags, 0 as c_long, 0 as c_long, 0 as c_long, 0 as c_long) };
    match checked(pid)? {
        0 => Ok(Forked::Child),
        pid => {
            let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
            pid.map(Forked::Parent).ok_or_else(|| io::ErrorKind::InvalidData.into())
        }
    }
}

/// What is known after a fork whose child can be watched.
pub(super) enum ForkedWithHandle {
    Child,
    Parent(Pid, OwnedFd),
}

/// A copy of this process, which must have one thread only.
pub(super) fn fork_with_handle() -> io::Result<ForkedWithHandle> {
    let mut handle: c_int = -1;
    let flags = c_long::from(libc::CLONE_PIDFD | libc::SIGCHLD);
    // SAFETY: as in `fork`. The kernel writes the handle of the child into the third argument, on every machine.
    let pid = unsafe {
        libc::syscall(libc::SYS_clone, flags, 0 as c_long, &raw mut handle, 0 as c_long, 0 as c_long)
    };
    match checked(pid)? {
        0 => Ok(ForkedWithHandle::Child),
        pid => {
            let handle = owned(handle.into())?;
            let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
            pid.map(|pid| ForkedWithHandle::Parent(pid, handle))
                .ok_or_else(|| io::ErrorKind::InvalidData.into())
        }
    }
}

/// Children of this process disappear when they end.
pub(super) fn forget_children() -> io::Result<()> {
    set_child_action(libc::SIG_IGN)
}

/// Children of this process wait to be collected, as usual.
pub(super) fn collect_children() -> io::Result<()> {
    set_child_action(libc::SIG_DFL)
}

fn set_child_action(action: libc::sighandler_t) -> io::Result<()> {
    // SAFETY: no handler is installed.
    if unsafe { libc::signal(libc::SIGCHLD, action) } == libc::SIG_ERR {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

/// Runs a function in a new process that shares the memory of this one, which waits until the new one has become another
/// program or has ended, with the number that the function returns. That saves the copy of everything that is mapped here.
pub(super) fn start_before_exec(run: &mut dyn FnMut() -> c_int) -> io::Result<Pid> {
    extern "C" fn begin(run: *mut c_void) -> c_int {
        // SAFETY: it is the pointer that was given to `clone` below, whose caller waits.
        let run = unsafe { &mut *run.cast::<&mut dyn FnMut() -> c_int>() };
        run()
    }
    let mut stack = vec![0_u128; STACK_BYTES / size_of::<u128>()];
    let mut run = run;
    let argument: *mut &mut dyn FnMut() -> c_int = &raw mut run;
    // SAFETY: the stack grows down from the end of its memory, which is aligned. Memory and function live until the new
    // process has left both, because this one waits for that. This process has one thread, so nothing else uses the memory.
    let pid = unsafe {
        libc::clone(
            begin,
            stack.as_mut_ptr_range().end.cast(),
            libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD,
            argument.cast(),
        )
    };
    let pid = checked(pid.into())?;
    i32::try_from(pid).ok().and_then(Pid::from_raw).ok_or_else(|| io::ErrorKind::InvalidData.into())
}

/// Ends this process without running anything of it.
pub(super) fn exit_now(code: c_int) -> ! {
    // SAFETY: takes a number and does not return.
    unsafe { libc::_exit(code) }
}

/// A list of texts as `execve` takes it.
pub(super) struct ExecList {
    /// Into `_texts`, whose memory does not move, with a null at the end.
    pointers: Vec<*const c_char>,
    _texts: Vec<CString>,
}

impl ExecList {
    pub(super) fn new(texts: Vec<CString>) -> Self {
        let pointers = texts.iter().map(|text| text.as_ptr()).chain([null()]).collect();
        Self { pointers, _texts: texts }
    }
}

/// Becomes another program, or says why not.
pub(super) fn exec(path: &CStr, arguments: &ExecList, environment: &ExecList) -> io::Error {
    // SAFETY: both lists end with a null, and their texts live as long as they do.
    unsafe { libc::execve(path.as_ptr(), arguments.pointers.as_ptr(), environment.pointers.as_ptr()) };
    io::Error::last_os_error()
}

/// Every descriptor but the standard streams is closed by the next exec.
pub(super) fn close_others_on_exec() -> io::Result<()> {
    let first: c_uint = 3;
    // SAFETY: takes numbers.
    let done = unsafe { libc::syscall(libc::SYS_close_range, first, c_uint::MAX, libc::CLOSE_RANGE_CLOEXEC) };
    checked(done).map(drop)
}

/// Every signal as a new program expects it.
pub(super) fn reset_signals() -> io::Result<()> {
    for signal in 1..=64 {
        // SAFETY: no handler is installed. Two signals cannot be changed, and a few are the C library's: they are default.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
    }
    // SAFETY: an empty set is a valid value, and the pointer lives during the call.
    let done = unsafe {
        let mut none = std::mem::zeroed();
        libc::sigemptyset(&raw mut none);
        libc::sigprocmask(libc::SIG_SETMASK, &raw const none, null_mut())
    };
    checked(done.into()).map(drop)
}

/// The ends of children as something to wait for. From now on they interrupt nothing.
pub(super) fn child_signals() -> io::Result<OwnedFd> {
    // SAFETY: the set is initialized before it is used, and lives during the calls.
    let descriptor = unsafe {
        let mut children = std::mem::zeroed();
        libc::sigemptyset(&raw mut children);
        libc::sigaddset(&raw mut children, libc::SIGCHLD);
        checked(libc::sigprocmask(libc::SIG_BLOCK, &raw const children, null_mut()).into())?;
        libc::signalfd(-1, &raw const children, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK)
    };
    owned(descriptor.into())
}

/// What a ruleset of Landlock handles. Older kernels know only its beginning.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub(super) struct RulesetAttributes {
    pub(super) files: u64,
    pub(super) network: u64,
    pub(super) scoped: u64,
}

#[repr(C, packed)]
struct PathBeneath {
    allowed: u64,
    parent: c_int,
}

const LANDLOCK_VERSION: c_uint = 1;
const LANDLOCK_PATH_BENEATH: c_int = 1;

pub(super) fn landlock_abi() -> io::Result<u32> {
    let nothing: *const c_void = null();
    // SAFETY: with this flag the kernel takes no attributes.
    let abi = unsafe {
        libc::syscall(libc::SYS_landlock_create_ruleset, nothing, 0 as libc::size_t, LANDLOCK_VERSION)
    };
    Ok(u32::try_from(checked(abi)?).unwrap_or(0))
}

/// `fields` is how many of the attributes the kernel knows.
pub(super) fn landlock_ruleset(attributes: RulesetAttributes, fields: usize) -> io::Result<OwnedFd> {
    let size = fields.min(3) * size_of::<u64>();
    let none: c_uint = 0;
    // SAFETY: the attributes live during the call and are at least as long as it says.
    let ruleset =
        unsafe { libc::syscall(libc::SYS_landlock_create_ruleset, &raw const attributes, size, none) };
    owned(ruleset)
}

pub(super) fn landlock_allow(
    ruleset: BorrowedFd<'_>,
    parent: BorrowedFd<'_>,
    allowed: u64,
) -> io::Result<()> {
    let rule = PathBeneath { allowed, parent: parent.as_raw_fd() };
    let none: c_uint = 0;
    // SAFETY: the rule lives during the call and has the layout that its kind promises.
    let done = unsafe {
        let ruleset = ruleset.as_raw_fd();
        libc::syscall(libc::SYS_landlock_add_rule, ruleset, LANDLOCK_PATH_BENEATH, &raw const rule, none)
    };
    checked(done).map(drop)
}

/// Restricts this process forever. Needs `no_new_privs`.
pub(super) fn landlock_restrict(ruleset: BorrowedFd<'_>) -> io::Result<()> {
    let none: c_uint = 0;
    // SAFETY: takes numbers.
    let done = unsafe { libc::syscall(libc::SYS_landlock_restrict_self, ruleset.as_raw_fd(), none) };
    checked(done).map(drop)
}

/// Whether filters may answer with an error.
pub(super) fn seccomp_is_there() -> io::Result<()> {
    let action: u32 = libc::SECCOMP_RET_ERRNO;
    let none: c_uint = 0;
    // SAFETY: the number lives during the call.
    let done =
        unsafe { libc::syscall(libc::SYS_seccomp, libc::SECCOMP_GET_ACTION_AVAIL, none, &raw const action) };
    checked(done).map(drop)
}

/// Filters the system calls of this process forever. Needs `no_new_privs`. The holder of the returned descriptor
/// answers the calls that the filter leaves open; when it is closed, they fail.
pub(super) fn seccomp_filter(program: &[libc::sock_filter]) -> io::Result<OwnedFd> {
    let len = u16::try_from(program.len()).map_err(|_| io::ErrorKind::InvalidInput)?;
    let program = libc::sock_fprog { len, filter: program.as_ptr().cast_mut() };
    // A call that the guard has read is not begun again for a signal that does not kill.
    let flags = libc::SECCOMP_FILTER_FLAG_NEW_LISTENER | libc::SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV;
    // SAFETY: the kernel copies the program, which lives during the call, and changes nothing.
    let listener =
        unsafe { libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, flags, &raw const program) };
    owned(listener)
}

/// A call that waits for an answer.
pub(super) struct AskedCall {
    id: u64,
    pub(super) by: Option<Pid>,
    pub(super) made: Made,
}

/// The next call of a listener that has one. None if its process was killed meanwhile.
pub(super) fn asked_call(listener: BorrowedFd<'_>) -> io::Result<Option<AskedCall>> {
    // SAFETY: all zeroes are a valid value, and what the kernel asks for; it lives during the call.
    let (received, asked) = unsafe {
        let mut asked: libc::seccomp_notif = std::mem::zeroed();
        let received = libc::ioctl(listener.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_RECV, &raw mut asked);
        (received, asked)
    };
    match checked(received.into()) {
        Err(error) if matches!(error.raw_os_error(), Some(libc::ENOENT | libc::EINTR)) => Ok(None),
        Err(error) => Err(error),
        Ok(_) => {
            let is_clone = c_long::from(asked.data.nr) == libc::SYS_clone;
            let is_thread = is_clone && asked.data.args[0] & libc::CLONE_THREAD as u64 != 0;
            let made = if is_thread { Made::Thread } else { Made::Process };
            let by = Pid::from_raw(asked.pid.cast_signed());
            Ok(Some(AskedCall { id: asked.id, by, made }))
        }
    }
}

/// Lets a call happen, or fail. Its arguments are numbers, which nothing can change meanwhile.
pub(super) fn answer_call(
    listener: BorrowedFd<'_>,
    call: &AskedCall,
    answer: Result<(), Errno>,
) -> io::Result<()> {
    let (error, flags) = match answer {
        Ok(()) => (0, libc::SECCOMP_USER_NOTIF_FLAG_CONTINUE as u32),
        Err(errno) => (-errno.raw_os_error(), 0),
    };
    let answer = libc::seccomp_notif_resp { id: call.id, val: 0, error, flags };
    // SAFETY: the answer lives during the call.
    let done =
        unsafe { libc::ioctl(listener.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_SEND, &raw const answer) };
    match checked(done.into()) {
        // It was killed meanwhile.
        Err(error) if error.raw_os_error() == Some(libc::ENOENT) => Ok(()),
        done => done.map(drop),
    }
}

/// Adds attributes to a mount and everything mounted below it.
pub(super) fn restrict_mounts(path: &CStr, attributes: u64) -> io::Result<()> {
    let attributes = libc::mount_attr { attr_set: attributes, attr_clr: 0, propagation: 0, userns_fd: 0 };
    // SAFETY: path and attributes live during the call.
    let done = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            libc::AT_FDCWD,
            path.as_ptr(),
            libc::AT_RECURSIVE,
            &raw const attributes,
            size_of::<libc::mount_attr>(),
        )
    };
    checked(done).map(drop)
}

/// Starts the loopback interface of a new network namespace.
pub(super) fn start_loopback(socket: impl AsFd) -> io::Result<()> {
    // SAFETY: all zeroes are a valid value; the kernel reads the name and the flags, which are set.
    let done = unsafe {
        let mut request: libc::ifreq = std::mem::zeroed();
        request.ifr_name[0] = b'l' as c_char;
        request.ifr_name[1] = b'o' as c_char;
        #[expect(clippy::cast_possible_truncation, reason = "the flags of interfaces have 16 bits")]
        {
            request.ifr_ifru.ifru_flags = (libc::IFF_UP | libc::IFF_RUNNING) as libc::c_short;
        }
        libc::ioctl(socket.as_fd().as_raw_fd(), libc::SIOCSIFFLAGS as _, &raw const request)
    };
    checked(done.into()).map(drop)
}

fn checked(result: c_long) -> io::Result<c_long> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

fn owned(descriptor: c_long) -> io::Result<OwnedFd> {
    let descriptor = checked(descriptor)?;
    let descriptor = c_int::try_from(descriptor).map_err(|_| io::ErrorKind::InvalidData)?;
    // SAFETY: the kernel has just made it for us.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
}

/// Signals every process that this one may signal, but itself: in a namespace of processes, all of them from its first one.
pub(super) fn signal_all(signal: Signal) {
    // SAFETY: takes numbers. There may be no process.
    unsafe { libc::kill(-1, signal.as_raw()) };
}

/// The group of a process. None if it has ended, or if its group is outside of our namespace.
pub(super) fn group_of(process: Pid) -> Option<Pid> {
    // SAFETY: takes a number.
    let group = unsafe { libc::getpgid(process.as_raw_nonzero().get()) };
    (group > 0).then(|| Pid::from_raw(group)).flatten()
}

/// Lets every other process run first.
pub(super) fn run_when_idle() -> io::Result<()> {
    let priority = libc::sched_param { sched_priority: 0 };
    // SAFETY: the parameters live during the call.
    checked(unsafe { libc::sched_setscheduler(0, libc::SCHED_IDLE, &raw const priority) }.into()).map(drop)
}

/// Closes the copy that a forked process has of its parent's descriptor. The process must not use it any more.
pub(super) fn close_borrowed(descriptor: BorrowedFd<'_>) {
    // SAFETY: the owner of the descriptor is the parent's, which this process never drops: it execs or exits.
    unsafe { libc::close(descriptor.as_raw_fd()) };
}

//! Which system calls a box may make, as a program for the kernel's filter. Everything is allowed but what leads out of a
//! box, reaches other processes, or has no use in one and often had holes.
//!
//! A call that programs do without gets `ENOSYS`, as on an older kernel, and they take another way. The rest gets `EPERM`.

use libc::{BPF_ALU, BPF_AND, BPF_JEQ, BPF_JSET, BPF_K, ENOSYS, EPERM, c_long, sock_filter};

use super::filter_program::{FilterProgram, allow, answer, ask, jump, load, load_high, statement};
use super::process_limit::ProcessLimit;

/// Where a box runs decides what it may do with the network and with numbers of processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Surroundings {
    /// The network, the processes and the files of the machine.
    Machine(ModeChanges),
    /// Its own namespaces.
    Namespaces,
    /// The same for a program of a person: it may begin sessions, and no limit counts its memory.
    Program(ProcessLimit),
}

/// Changes of modes, owners, times and attributes, which Landlock does not restrict: every path that the user owns is within
/// reach.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ModeChanges {
    /// Not even of what is open: root owns the system's files, which every box may open.
    Refused,
    /// Of what is open, and so was granted.
    OfOpenFiles,
    /// A person gave this up.
    Allowed,
}

/// Calls that libc does not name on every machine have the same number everywhere since Linux 5.1.
const OPEN_TREE_ATTR: c_long = 467;
const SETXATTRAT: c_long = 463;
const REMOVEXATTRAT: c_long = 466;
const FILE_SETATTR: c_long = 469;
const LISTMOUNT: c_long = 458;
const LSM_SET_SELF_ATTR: c_long = 460;

const MISSING: [c_long; 6] = [
    // Its flags are in memory, where a filter cannot see them. The C library falls back to `clone`.
    libc::SYS_clone3,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    // The mode of a new file is in memory as well.
    libc::SYS_openat2,
    libc::SYS_memfd_secret,
];

/// Memory without a path, which no limit of a folder or a process counts.
const MISSING_WITH_LIMITS: c_long = libc::SYS_memfd_create;
/// The scheduler gives each session its share: with many of them a box would leave nothing to its guard.
const REFUSED_WITH_LIMITS: c_long = libc::SYS_setsid;

const REFUSED: [c_long; 67] = [
    // Other processes.
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_process_madvise,
    libc::SYS_process_mrelease,
    libc::SYS_pidfd_getfd,
    libc::SYS_kcmp,
    libc::SYS_move_pages,
    libc::SYS_migrate_pages,
    // Namespaces and mounts.
    libc::SYS_unshare,
    libc::SYS_setns,
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_open_tree,
    OPEN_TREE_ATTR,
    libc::SYS_move_mount,
    libc::SYS_mount_setattr,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    LISTMOUNT,
    // Files without their path.
    libc::SYS_open_by_handle_at,
    libc::SYS_name_to_handle_at,
    libc::SYS_fanotify_init,
    libc::SYS_fanotify_mark,
    // Keys of the user.
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
    // Programs in the kernel, and what made holes in it.
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_personality,
    LSM_SET_SELF_ATTR,
    // Memory and messages that outlive their processes, or that others share by number or name.
    libc::SYS_shmget,
    libc::SYS_shmat,
    libc::SYS_shmctl,
    libc::SYS_msgget,
    libc::SYS_msgsnd,
    libc::SYS_msgrcv,
    libc::SYS_msgctl,
    libc::SYS_mq_open,
    libc::SYS_mq_unlink,
    // The machine.
    libc::SYS_kexec_load,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_reboot,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_acct,
    libc::SYS_quotactl,
    libc::SYS_quotactl_fd,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_clock_adjtime,
    libc::SYS_adjtimex,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    libc::SYS_syslog,
    libc::SYS_vhangup,
    libc::SYS_nfsservctl,
    libc::SYS_lookup_dcookie,
    libc::SYS_kexec_file_load,
    libc::SYS_set_mempolicy_home_node,
];

#[cfg(target_arch = "x86_64")]
const REFUSED_HERE: [c_long; 7] = [
    libc::SYS_iopl,
    libc::SYS_ioperm,
    libc::SYS_modify_ldt,
    libc::SYS_uselib,
    libc::SYS_ustat,
    libc::SYS_sysfs,
    libc::SYS__sysctl,
];
#[cfg(not(target_arch = "x86_64"))]
const REFUSED_HERE: [c_long; 0] = [];

/// What would reach processes and sockets of the machine.
const REFUSED_ON_MACHINE: [c_long; 12] = [
    libc::SYS_socket,
    libc::SYS_connect,
    libc::SYS_bind,
    libc::SYS_listen,
    libc::SYS_accept,
    libc::SYS_accept4,
    // Semaphores are shared by number.
    libc::SYS_semget,
    libc::SYS_semop,
    libc::SYS_semtimedop,
    libc::SYS_semctl,
    // It reveals the names of files in any folder.
    libc::SYS_inotify_add_watch,
    // The box is one group of processes, which is stopped and killed at once.
    libc::SYS_setpgid,
];

const MODES_BY_PATH: [c_long; 10] = [
    libc::SYS_fchmodat,
    libc::SYS_fchmodat2,
    libc::SYS_fchownat,
    libc::SYS_setxattr,
    libc::SYS_lsetxattr,
    libc::SYS_removexattr,
    libc::SYS_lremovexattr,
    SETXATTRAT,
    REMOVEXATTRAT,
    FILE_SETATTR,
];
#[cfg(target_arch = "x86_64")]
const MODES_BY_PATH_HERE: [c_long; 6] = [
    libc::SYS_chmod,
    libc::SYS_chown,
    libc::SYS_lchown,
    libc::SYS_utime,
    libc::SYS_utimes,
    libc::SYS_futimesat,
];
#[cfg(not(target_arch = "x86_64"))]
const MODES_BY_PATH_HERE: [c_long; 0] = [];

/// Calls that set the mode of a file, and which argument it is. No box makes a program that runs as its owner.
const WITH_MODE: [(c_long, u32); 5] = [
    (libc::SYS_fchmod, 1),
    (libc::SYS_fchmodat, 2),
    (libc::SYS_fchmodat2, 2),
    (libc::SYS_openat, 3),
    (libc::SYS_mknodat, 2),
];
#[cfg(target_arch = "x86_64")]
const WITH_MODE_HERE: [(c_long, u32); 4] =
    [(libc::SYS_chmod, 1), (libc::SYS_open, 2), (libc::SYS_creat, 1), (libc::SYS_mknod, 1)];
#[cfg(not(target_arch = "x86_64"))]
const WITH_MODE_HERE: [(c_long, u32); 0] = [];

const MODES_OF_OPEN_FILES: [c_long; 4] =
    [libc::SYS_fchmod, libc::SYS_fchown, libc::SYS_fsetxattr, libc::SYS_fremovexattr];

/// Changes a process that is named by its first argument; zero is the caller.
const ON_ITSELF_ONLY: [c_long; 5] = [
    libc::SYS_prlimit64,
    libc::SYS_sched_setaffinity,
    libc::SYS_sched_setscheduler,
    libc::SYS_sched_setparam,
    libc::SYS_sched_setattr,
];

/// Other ways to make a process than `clone`.
#[cfg(target_arch = "x86_64")]
const FORKS_HERE: [c_long; 2] = [libc::SYS_fork, libc::SYS_vfork];
#[cfg(not(target_arch = "x86_64"))]
const FORKS_HERE: [c_long; 0] = [];

/// Of the sockets of a box with its own network.
const FAMILIES: [i32; 3] = [libc::AF_UNIX, libc::AF_INET, libc::AF_INET6];
const TIOCSTI: u32 = 0x5412;
const TIOCLINUX: u32 = 0x541c;
const PRIORITY_OF_PROCESS: u32 = 0;
const IO_PRIORITY_OF_PROCESS: u32 = 1;
const SET_ID_BITS: u32 = 0o6000;
const SOCKET_TYPE_BITS: u32 = 0xf;
const NEW_NAMESPACES: u32 = 0x7e02_0000;

/// The filter of a box.
pub(super) fn filter(surroundings: Surroundings) -> Vec<sock_filter> {
    let mut program = FilterProgram::default();
    for call in MISSING {
        program.when(call, &[answer(ENOSYS)]);
    }
    if !matches!(surroundings, Surroundings::Program(_)) {
        program.when(MISSING_WITH_LIMITS, &[answer(ENOSYS)]);
        program.when(REFUSED_WITH_LIMITS, &[answer(EPERM)]);
    }
    for call in REFUSED.into_iter().chain(REFUSED_HERE) {
        program.when(call, &[answer(EPERM)]);
    }
    let forked = if surroundings == Surroundings::Program(ProcessLimit::Kernel) { allow() } else { ask() };
    program.when(libc::SYS_clone, &[load(0), jump(BPF_JSET, NEW_NAMESPACES, 0, 1), answer(EPERM), forked]);
    for call in FORKS_HERE {
        program.when(call, &[forked]);
    }
    for (call, mode) in WITH_MODE.into_iter().chain(WITH_MODE_HERE) {
        program.when_also(call, &[load(mode), jump(BPF_JSET, SET_ID_BITS, 0, 1), answer(EPERM)]);
    }
    // Text that seems to be typed by the person at a terminal.
    let injected =
        [load(1), jump(BPF_JEQ, TIOCSTI, 1, 0), jump(BPF_JEQ, TIOCLINUX, 0, 1), answer(EPERM), allow()];
    program.when(libc::SYS_ioctl, &injected);
    match surroundings {
        Surroundings::Machine(modes) => {
            refuse_machine(&mut program);
            refuse_modes(&mut program, modes);
        }
        Surroundings::Namespaces => {
            program.when(libc::SYS_socket, &only(load(0), u32::MAX, &FAMILIES.map(i32::cast_unsigned)));
        }
        Surroundings::Program(_) => program.when(libc::SYS_socket, &families_and_routes()),
    }
    program.compile()
}

fn refuse_machine(program: &mut FilterProgram) {
    for call in REFUSED_ON_MACHINE {
        program.when(call, &[answer(EPERM)]);
    }
    for call in ON_ITSELF_ONLY {
        program.when(call, &only(load(0), u32::MAX, &[0]));
    }
    for (call, process) in
        [(libc::SYS_setpriority, PRIORITY_OF_PROCESS), (libc::SYS_ioprio_set, IO_PRIORITY_OF_PROCESS)]
    {
        let on_itself =
            [load(0), jump(BPF_JEQ, process, 0, 2), load(1), jump(BPF_JEQ, 0, 1, 0), answer(EPERM), allow()];
        program.when(call, &on_itself);
    }
    // Datagrams can be sent to any socket that has a path, also from one end of a pair.
    let streams = [libc::SOCK_STREAM, libc::SOCK_SEQPACKET].map(i32::cast_unsigned);
    program.when(libc::SYS_socketpair, &only(load(1), SOCKET_TYPE_BITS, &streams));
    program.when(libc::SYS_sendto, &zero(4));
}

fn refuse_modes(program: &mut FilterProgram, modes: ModeChanges) {
    if modes == ModeChanges::Allowed {
        return;
    }
    for call in MODES_BY_PATH.into_iter().chain(MODES_BY_PATH_HERE) {
        program.when(call, &[answer(EPERM)]);
    }
    // Without a path it changes the times of an open file.
    program.when(libc::SYS_utimensat, &zero(1));
    for call in MODES_OF_OPEN_FILES {
        match modes {
            ModeChanges::Refused => program.when(call, &[answer(EPERM)]),
            ModeChanges::OfOpenFiles | ModeChanges::Allowed => {}
        }
    }
}

/// The families of sockets, and the question which interfaces there are: many servers ask it before they listen.
fn families_and_routes() -> [sock_filter; 9] {
    let [unix, inet, inet6] = FAMILIES.map(i32::cast_unsigned);
    [
        load(0),
        // To the last line, which allows.
        jump(BPF_JEQ, unix, 6, 0),
        jump(BPF_JEQ, inet, 5, 0),
        jump(BPF_JEQ, inet6, 4, 0),
        jump(BPF_JEQ, libc::AF_NETLINK.cast_unsigned(), 0, 2),
        load(2),
        jump(BPF_JEQ, libc::NETLINK_ROUTE.cast_unsigned(), 1, 0),
        answer(EPERM),
        allow(),
    ]
}

/// Allows the call if all of an argument is zero.
fn zero(argument: u32) -> [sock_filter; 6] {
    let (low, high) = (load(argument), load_high(argument));
    [low, jump(BPF_JEQ, 0, 0, 2), high, jump(BPF_JEQ, 0, 1, 0), answer(EPERM), allow()]
}

/// Allows the call if a part of an argument has one of some values.
fn only(load: sock_filter, bits: u32, values: &[u32]) -> Vec<sock_filter> {
    let mut block = vec![load, statement(BPF_ALU | BPF_AND | BPF_K, bits)];
    let count = values.len();
    block.extend(values.iter().enumerate().map(|(at, value)| {
        // To the last line, which allows; past those that are left and the refusal.
        let rest = u8::try_from(count - at).unwrap_or(u8::MAX);
        jump(BPF_JEQ, *value, rest, 0)
    }));
    block.extend([answer(EPERM), allow()]);
    block
}

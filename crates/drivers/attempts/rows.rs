//! The table of attempts: what is tried, and what must stop it without and with namespaces.

use std::ffi::CString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::process::{Command, ExitCode};

use libc::c_long;

use crate::acts;
use crate::calls::{call, exit_now, fork};
use crate::scene::Scene;

/// The exit code of an attempt that was stopped.
pub(crate) const STOPPED: i32 = 7;

/// What it achieved, or what stopped it.
pub(crate) type Tried = Result<String, String>;
pub(crate) type Act = fn(&Scene) -> Tried;

/// What stops an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    Landlock,
    /// The filter of system calls.
    Filter,
    /// It is not there, or on a read-only mount.
    Mounts,
    /// Processes and networks of others are not there.
    Namespaces,
    Capabilities,
    /// Nothing was handed to the box.
    Absence,
    Limits,
}

impl Stop {
    /// Whether an attempt that ended like this was stopped by it.
    pub(crate) fn explains(self, said: &str) -> bool {
        let reasons: &[&str] = match self {
            // A path that this machine does not have cannot be read either.
            Self::Landlock => &["unharmed", "EACCES", "EPERM", "EXDEV", "ENOENT", "ESRCH"],
            Self::Filter => &["EPERM", "ENOSYS", "SIGSYS"],
            Self::Mounts => &[
                "ENOENT",
                "EROFS",
                "EACCES",
                "EXDEV",
                "ENOTDIR",
                "EBUSY",
                // A name that is taken by a mount.
                "EEXIST",
                "EISDIR",
                "ENOTEMPTY",
            ],
            Self::Namespaces => &["ESRCH", "ENOENT", "ECONNREFUSED", "ENETUNREACH", "EADDRNOTAVAIL"],
            Self::Capabilities => &["EPERM", "EACCES", "ENOENT"],
            Self::Absence => &["nothing"],
            Self::Limits => &["EPERM", "EINVAL", "SIGXFSZ"],
        };
        reasons.contains(&said)
    }
}

#[derive(Clone)]
enum Kind {
    Read,
    Append,
    Create,
    List,
    Execute,
    Call(c_long),
    Family(c_long),
    Act(Act),
}

pub(crate) struct Row {
    pub(crate) name: String,
    stops: [Stop; 2],
    kind: Kind,
    target: String,
}

impl Row {
    fn new(verb: &str, target: &str, stops: [Stop; 2], kind: Kind) -> Self {
        Self { name: format!("{verb} {target}"), stops, kind, target: target.to_owned() }
    }

    pub(crate) fn stop(&self, has_namespaces: bool) -> Stop {
        self.stops[usize::from(has_namespaces)]
    }

    /// Whether it signals or looks for a process outside, which Landlock keeps inside from version 6 on.
    pub(crate) fn is_signal(&self) -> bool {
        let is_process = |part| self.target.contains(part);
        self.stops[0] == Stop::Landlock
            && matches!(self.kind, Kind::Act(_))
            && ["another process", "the parent", "signal everything"].into_iter().any(is_process)
    }

    fn attempt(&self, scene: &Scene) -> Tried {
        let path = scene.filled(&self.target);
        match self.kind {
            Kind::Read => read(&path),
            Kind::Append => {
                OpenOptions::new().append(true).open(path).map_err(why).map(|_| "opened".to_owned())
            }
            Kind::Create => File::create_new(path).map_err(why).map(|_| "created".to_owned()),
            Kind::List => fs::read_dir(path).map_err(why).map(|entries| format!("{} names", entries.count())),
            Kind::Execute => {
                Command::new(path).output().map_err(why).map(|output| format!("ran: {}", output.status))
            }
            Kind::Call(number) => match call(number, [-1; 6]) {
                Err(error) if error.raw_os_error() != Some(libc::EFAULT) => Err(why(error)),
                reached => Ok(format!("reached: {reached:?}")),
            },
            Kind::Family(family) => {
                let socket = call(libc::SYS_socket, [family, libc::SOCK_RAW.into(), 0, 0, 0, 0]);
                socket.map_err(why).map(|_| "a socket".to_owned())
            }
            Kind::Act(act) => act(scene),
        }
    }
}

fn read(path: &Path) -> Tried {
    let mut bytes = [0; 64];
    let read = File::open(path).and_then(|mut file| file.read(&mut bytes));
    read.map_err(why).map(|count| format!("read {count} bytes"))
}

/// The name of an error.
#[expect(clippy::needless_pass_by_value, reason = "errors are mapped with it")]
pub(crate) fn why(error: io::Error) -> String {
    let names = [
        (libc::EPERM, "EPERM"),
        (libc::ENOENT, "ENOENT"),
        (libc::ESRCH, "ESRCH"),
        (libc::EACCES, "EACCES"),
        (libc::EBUSY, "EBUSY"),
        (libc::EXDEV, "EXDEV"),
        (libc::ENOTDIR, "ENOTDIR"),
        (libc::EROFS, "EROFS"),
        (libc::ENOSYS, "ENOSYS"),
        (libc::EINVAL, "EINVAL"),
        (libc::ECONNREFUSED, "ECONNREFUSED"),
        (libc::ENETUNREACH, "ENETUNREACH"),
        (libc::EADDRNOTAVAIL, "EADDRNOTAVAIL"),
    ];
    let name = names.iter().find(|(errno, _)| error.raw_os_error() == Some(*errno));
    name.map_or_else(|| error.to_string(), |(_, name)| (*name).to_owned())
}

/// One attempt, from inside of a box.
pub(crate) fn attempt(name: &str, scene: &Scene) -> ExitCode {
    let row = all().into_iter().find(|row| row.name == name).unwrap();
    match row.attempt(scene) {
        Err(stopped_by) => {
            println!("{stopped_by}");
            ExitCode::from(u8::try_from(STOPPED).unwrap())
        }
        Ok(achieved) => {
            println!("OUT: {achieved}");
            ExitCode::SUCCESS
        }
    }
}

pub(crate) fn all() -> Vec<Row> {
    use Stop::{Capabilities, Filter, Landlock, Mounts, Namespaces};
    let paths = |verb: &'static str, kind: Kind, stops: [Stop; 2], targets: &'static [&'static str]| {
        targets.iter().map(move |target| Row::new(verb, target, stops, kind.clone())).collect::<Vec<_>>()
    };
    let mut rows = paths("read", Kind::Read, [Landlock, Mounts], &READ);
    rows.extend(paths("read", Kind::Read, [Landlock, Namespaces], &READ_OF_VICTIM));
    rows.extend(paths("read", Kind::Read, [Landlock, Capabilities], &READ_OF_KERNEL));
    rows.extend(paths("list", Kind::List, [Landlock, Mounts], &LIST));
    rows.extend(paths("write", Kind::Append, [Landlock, Mounts], &WRITE));
    rows.extend(paths("create", Kind::Create, [Landlock, Mounts], &CREATE));
    rows.extend(paths(
        "run",
        Kind::Execute,
        [Landlock, Mounts],
        &["{root}/outside/script.sh", "{root}/home/keys.env"],
    ));
    rows.extend(acts::ALL.iter().map(|(name, stops, act)| Row::new("act", name, *stops, Kind::Act(*act))));
    rows.extend(
        FAMILIES.iter().map(|(name, number)| Row::new("socket", name, [Filter; 2], Kind::Family(*number))),
    );
    rows.extend(CALLS.iter().map(|(name, number)| Row::new("call", name, [Filter; 2], Kind::Call(*number))));
    rows
}

/// Uses up what there is.
pub(crate) fn bomb(kind: &str) -> ExitCode {
    match kind {
        "fork" => loop {
            let _ = fork();
        },
        // Every process in its own session, so no group has them.
        "fork-sessions" => loop {
            if matches!(fork(), Ok(None)) {
                let _ = call(libc::SYS_setsid, [0; 6]);
            }
        },
        // Only one at any time, which is never there when it is looked for.
        "fork-chain" => loop {
            if matches!(fork(), Ok(Some(_))) {
                exit_now(0);
            }
        },
        "memory" => {
            let mut kept = Vec::new();
            loop {
                kept.push(vec![1_u8; 1 << 20]);
            }
        }
        "memory-forks" => {
            for _ in 0..8 {
                if matches!(fork(), Ok(None)) {
                    return bomb("memory");
                }
            }
            loop {
                std::thread::park();
            }
        }
        "disk" => fill(|at| format!("bomb-{at}"), |_| ()),
        "disk-unlinked" => fill(|at| format!("bomb-{at}"), |path| fs::remove_file(path).unwrap()),
        "disk-one-file" => {
            let block = vec![1_u8; 1 << 20];
            let mut file = File::create("bomb").unwrap();
            loop {
                if io::Write::write_all(&mut file, &block).is_err() {
                    return ExitCode::FAILURE;
                }
            }
        }
        "disk-names" => {
            for at in 0_u64.. {
                File::create(format!("name-{at}")).unwrap();
            }
            ExitCode::SUCCESS
        }
        _ => ExitCode::from(2),
    }
}

/// Writes files of 4 MiB forever.
fn fill(name: impl Fn(u64) -> String, written: impl Fn(&Path)) -> ! {
    let block = vec![1_u8; 1 << 20];
    let mut open = Vec::new();
    for at in 0.. {
        let path = name(at);
        let mut file = File::create(&path).unwrap();
        written(path.as_ref());
        for _ in 0..4 {
            io::Write::write_all(&mut file, &block).unwrap();
        }
        open.push(file);
    }
    unreachable!()
}

/// A path for a call.
pub(crate) fn text(path: &Path) -> CString {
    CString::new(path.as_os_str().as_bytes()).unwrap()
}

const READ: [&str; 30] = [
    "{root}/sibling/outputs/secret.txt",
    "{root}/home/journal.db",
    "{root}/home/keys.env",
    "{root}/secret.txt",
    "{root}/outside/plain.txt",
    "{root}/workspace/../sibling/outputs/secret.txt",
    "{root}/workspace/./.././home/keys.env",
    "{root}/workspace/planted-link",
    "{root}/workspace/planted-folder/keys.env",
    "{root}/workspace/planted-folder/../secret.txt",
    "{root}/readable/../home/keys.env",
    "/usr/..{root}/home/keys.env",
    "/usr/bin/../../{root}/home/journal.db",
    "/etc/shadow",
    "/etc/gshadow",
    "/etc/sudoers",
    "/etc/machine-id",
    "/etc/fstab",
    "/etc/crontab",
    "/etc/resolv.conf",
    "/etc/environment",
    "/etc/ssh/sshd_config",
    "/var/log/wtmp",
    "/var/lib/dpkg/status",
    "/sys/kernel/notes",
    "/sys/class/net/lo/address",
    "/dev/mem",
    "/dev/kmsg",
    "/dev/tty",
    "/dev/ptmx",
];

const READ_OF_VICTIM: [&str; 8] = [
    "/proc/{victim}/environ",
    "/proc/{victim}/cmdline",
    "/proc/{victim}/maps",
    "/proc/{victim}/mem",
    "/proc/{victim}/status",
    "/proc/{victim}/stat",
    "/proc/{victim}/root/etc/passwd",
    "/proc/{victim}/cwd/secret.txt",
];

const READ_OF_KERNEL: [&str; 6] = [
    "/proc/kcore",
    "/proc/kmsg",
    "/proc/1/environ",
    "/proc/1/mem",
    "/proc/1/root/etc/passwd",
    "/proc/1/cwd/etc/passwd",
];

const LIST: [&str; 12] = [
    "/",
    "/dev",
    "/sys",
    "/etc",
    "/var",
    "/run",
    "/boot",
    "{root}",
    "{root}/home",
    "{root}/sibling",
    "{root}/workspace/..",
    "{root}/workspace/planted-folder",
];

const WRITE: [&str; 23] = [
    "{root}/home/keys.env",
    "{root}/home/journal.db",
    "{root}/sibling/outputs/secret.txt",
    "{root}/secret.txt",
    "{root}/workspace/planted-link",
    "{root}/readable/file.txt",
    "/etc/passwd",
    "/etc/group",
    "/etc/hosts",
    "/etc/ld.so.cache",
    "/usr/bin/env",
    "/bin/sh",
    "/dev/mem",
    "/dev/kmsg",
    "/proc/sys/kernel/core_pattern",
    "/proc/sys/kernel/modprobe",
    "/proc/sys/vm/drop_caches",
    "/proc/sysrq-trigger",
    "/proc/self/uid_map",
    "/proc/self/oom_score_adj",
    "/proc/{victim}/oom_score_adj",
    "/sys/kernel/uevent_helper",
    "/sys/power/state",
];

const CREATE: [&str; 11] = [
    "{root}/new",
    "{root}/home/new",
    "{root}/sibling/outputs/new",
    "{root}/readable/new",
    "{root}/workspace/planted-folder/new",
    "/etc/new",
    "/usr/new",
    "/usr/local/bin/new",
    "/var/tmp/new",
    "/run/new",
    "/new",
];

const FAMILIES: [(&str, c_long); 14] = [
    ("netlink", 16),
    ("packet", 17),
    ("alg", 38),
    ("vsock", 40),
    ("bluetooth", 31),
    ("key", 15),
    ("can", 29),
    ("tipc", 30),
    ("rds", 21),
    ("xdp", 44),
    ("infiniband", 27),
    ("nfc", 39),
    ("qualcomm", 42),
    ("smc", 43),
];

const CALLS: [(&str, c_long); 52] = [
    ("clone3", libc::SYS_clone3),
    ("io_uring_setup", libc::SYS_io_uring_setup),
    ("io_uring_enter", libc::SYS_io_uring_enter),
    ("io_uring_register", libc::SYS_io_uring_register),
    ("memfd_create", libc::SYS_memfd_create),
    ("memfd_secret", libc::SYS_memfd_secret),
    ("openat2", libc::SYS_openat2),
    ("ptrace", libc::SYS_ptrace),
    ("process_vm_readv", libc::SYS_process_vm_readv),
    ("process_vm_writev", libc::SYS_process_vm_writev),
    ("process_madvise", libc::SYS_process_madvise),
    ("pidfd_getfd", libc::SYS_pidfd_getfd),
    ("kcmp", libc::SYS_kcmp),
    ("unshare", libc::SYS_unshare),
    ("setns", libc::SYS_setns),
    ("mount", libc::SYS_mount),
    ("umount2", libc::SYS_umount2),
    ("pivot_root", libc::SYS_pivot_root),
    ("chroot", libc::SYS_chroot),
    ("open_tree", libc::SYS_open_tree),
    ("move_mount", libc::SYS_move_mount),
    ("mount_setattr", libc::SYS_mount_setattr),
    ("fsopen", libc::SYS_fsopen),
    ("fsmount", libc::SYS_fsmount),
    ("fspick", libc::SYS_fspick),
    ("open_by_handle_at", libc::SYS_open_by_handle_at),
    ("name_to_handle_at", libc::SYS_name_to_handle_at),
    ("fanotify_init", libc::SYS_fanotify_init),
    ("keyctl", libc::SYS_keyctl),
    ("add_key", libc::SYS_add_key),
    ("request_key", libc::SYS_request_key),
    ("bpf", libc::SYS_bpf),
    ("perf_event_open", libc::SYS_perf_event_open),
    ("userfaultfd", libc::SYS_userfaultfd),
    ("personality", libc::SYS_personality),
    ("shmget", libc::SYS_shmget),
    ("msgget", libc::SYS_msgget),
    ("mq_open", libc::SYS_mq_open),
    ("kexec_load", libc::SYS_kexec_load),
    ("init_module", libc::SYS_init_module),
    ("finit_module", libc::SYS_finit_module),
    ("delete_module", libc::SYS_delete_module),
    ("reboot", libc::SYS_reboot),
    ("swapon", libc::SYS_swapon),
    ("acct", libc::SYS_acct),
    ("quotactl", libc::SYS_quotactl),
    ("settimeofday", libc::SYS_settimeofday),
    ("clock_settime", libc::SYS_clock_settime),
    ("sethostname", libc::SYS_sethostname),
    ("syslog", libc::SYS_syslog),
    ("vhangup", libc::SYS_vhangup),
    ("move_pages", libc::SYS_move_pages),
];

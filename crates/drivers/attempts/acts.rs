//! Attempts that take more than one step.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Read as _};
use std::net::{TcpListener, TcpStream, ToSocketAddrs as _, UdpSocket};
use std::os::fd::AsRawFd as _;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _, symlink};
use std::os::unix::net::{SocketAddr, UnixDatagram, UnixStream};
use std::path::Path;
use std::time::Duration;

use libc::c_long;

use crate::calls::{address, call, call_as_i386, call_as_x32, owned};
use crate::rows::{Act, Stop, Tried, text, why};
use crate::scene::SECRET;

use Stop::{Absence, Capabilities, Filter, Landlock, Limits, Mounts, Namespaces};

pub(crate) const ALL: [(&str, [Stop; 2], Act); 76] = [
    // Links, renames, removal.
    ("hard link of a secret", [Landlock, Mounts], |s| {
        done(fs::hard_link(s.path("home/keys.env"), s.path("workspace/h")))
    }),
    ("hard link of a readable file", [Landlock, Mounts], |s| {
        done(fs::hard_link(s.path("readable/file.txt"), s.path("workspace/h")))
    }),
    ("hard link out", [Landlock, Mounts], |s| {
        File::create(s.path("workspace/own")).unwrap();
        done(fs::hard_link(s.path("workspace/own"), s.path("sibling/outputs/own")))
    }),
    ("rename in", [Landlock, Mounts], |s| done(fs::rename(s.path("secret.txt"), s.path("workspace/r")))),
    ("rename out", [Landlock, Mounts], |s| {
        File::create(s.path("workspace/own")).unwrap();
        done(fs::rename(s.path("workspace/own"), s.path("outside/own")))
    }),
    ("rename over a secret", [Landlock, Mounts], |s| {
        File::create(s.path("workspace/own")).unwrap();
        done(fs::rename(s.path("workspace/own"), s.path("home/keys.env")))
    }),
    ("rename of the workspace", [Landlock, Mounts], |s| {
        done(fs::rename(s.path("workspace"), s.path("elsewhere")))
    }),
    ("exchange with a secret", [Landlock, Mounts], |s| {
        File::create(s.path("workspace/own")).unwrap();
        let (own, other) = (text(&s.path("workspace/own")), text(&s.path("home/keys.env")));
        let here = c_long::from(libc::AT_FDCWD);
        let exchange = c_long::from(libc::RENAME_EXCHANGE);
        tried(call(
            libc::SYS_renameat2,
            [here, address(own.as_c_str()), here, address(other.as_c_str()), exchange, 0],
        ))
    }),
    ("read through a new link", [Landlock, Mounts], |s| {
        symlink(s.path("home/keys.env"), s.path("workspace/made")).unwrap();
        done(fs::read(s.path("workspace/made")))
    }),
    ("write through a new link", [Landlock, Mounts], |s| {
        symlink(s.path("home/keys.env"), s.path("workspace/made-too")).unwrap();
        done(OpenOptions::new().append(true).open(s.path("workspace/made-too")))
    }),
    ("create through a dangling link", [Landlock, Mounts], |s| {
        symlink(s.path("home/made"), s.path("workspace/dangling")).unwrap();
        done(File::create(s.path("workspace/dangling")))
    }),
    ("remove a secret", [Landlock, Mounts], |s| done(fs::remove_file(s.path("secret.txt")))),
    ("remove a readable file", [Landlock, Mounts], |s| done(fs::remove_file(s.path("readable/file.txt")))),
    ("remove a folder", [Landlock, Mounts], |s| done(fs::remove_dir_all(s.path("sibling")))),
    ("remove the control socket", [Landlock, Mounts], |s| done(fs::remove_file(s.path("home/control.sock")))),
    ("make a folder", [Landlock, Mounts], |s| done(fs::create_dir(s.path("outside/folder")))),
    ("make a link outside", [Landlock, Mounts], |s| done(symlink("/etc", s.path("outside/link")))),
    ("truncate a secret", [Landlock, Mounts], |s| {
        let path = text(&s.path("home/keys.env"));
        tried(call(libc::SYS_truncate, [address(path.as_c_str()), 0, 0, 0, 0, 0]))
    }),
    ("truncate a readable file", [Landlock, Mounts], |s| {
        let path = text(&s.path("readable/file.txt"));
        tried(call(libc::SYS_truncate, [address(path.as_c_str()), 0, 0, 0, 0, 0]))
    }),
    ("climb with chdir", [Landlock, Mounts], |s| {
        std::env::set_current_dir(s.path("workspace")).unwrap();
        std::env::set_current_dir("..").map_err(why)?;
        done(fs::read("home/keys.env"))
    }),
    ("climb from a handle", [Landlock, Mounts], |s| {
        let folder = OpenOptions::new()
            .read(true)
            .custom_flags(libc::O_PATH)
            .open(s.path("workspace"))
            .map_err(why)?;
        let path = text(Path::new("../home/keys.env"));
        tried(call(libc::SYS_openat, [folder.as_raw_fd().into(), address(path.as_c_str()), 0, 0, 0, 0]))
    }),
    ("link to a handle of a secret", [Landlock, Mounts], |s| {
        let flags = libc::O_PATH | libc::O_NOFOLLOW;
        let secret =
            OpenOptions::new().read(true).custom_flags(flags).open(s.path("home/keys.env")).map_err(why)?;
        let (empty, own) = (text(Path::new("")), text(&s.path("workspace/from-handle")));
        let (here, flag) = (c_long::from(libc::AT_FDCWD), c_long::from(libc::AT_EMPTY_PATH));
        let from = secret.as_raw_fd().into();
        tried(call(
            libc::SYS_linkat,
            [from, address(empty.as_c_str()), here, address(own.as_c_str()), flag, 0],
        ))
    }),
    ("write a readable file through its descriptor", [Landlock, Mounts], |s| {
        let readable = File::open(s.path("readable/file.txt")).unwrap();
        done(OpenOptions::new().append(true).open(format!("/proc/self/fd/{}", readable.as_raw_fd())))
    }),
    ("the machine through its own root", [Landlock, Mounts], |s| {
        done(fs::read(Path::new("/proc/self/root").join(s.path("home/keys.env").strip_prefix("/").unwrap())))
    }),
    ("the machine through its own folder", [Landlock, Mounts], |_| {
        done(fs::read("/proc/self/cwd/../home/keys.env"))
    }),
    ("a device", [Landlock, Landlock], |s| {
        let (path, kind) = (text(&s.path("workspace/device")), c_long::from(libc::S_IFCHR | 0o600));
        let here = c_long::from(libc::AT_FDCWD);
        tried(call(libc::SYS_mknodat, [here, address(path.as_c_str()), kind, 0x0101, 0, 0]))
    }),
    ("a block device", [Landlock, Landlock], |s| {
        let (path, kind) = (text(&s.path("workspace/disk")), c_long::from(libc::S_IFBLK | 0o600));
        let here = c_long::from(libc::AT_FDCWD);
        tried(call(libc::SYS_mknodat, [here, address(path.as_c_str()), kind, 0x0800, 0, 0]))
    }),
    // Modes, owners, times, names.
    ("mode of a secret", [Filter, Mounts], |s| {
        done(fs::set_permissions(s.path("home/keys.env"), Permissions::from_mode(0o777)))
    }),
    ("mode of a readable file", [Filter, Mounts], |s| {
        done(fs::set_permissions(s.path("readable/file.txt"), Permissions::from_mode(0o777)))
    }),
    ("owner of a secret", [Filter, Mounts], |s| {
        done(std::os::unix::fs::chown(s.path("home/keys.env"), None, Some(0)))
    }),
    ("times of a secret", [Filter, Mounts], |s| {
        let (path, here) = (text(&s.path("home/keys.env")), c_long::from(libc::AT_FDCWD));
        tried(call(libc::SYS_utimensat, [here, address(path.as_c_str()), 0, 0, 0, 0]))
    }),
    ("attribute of a secret", [Filter, Mounts], |s| {
        let (path, name) = (text(&s.path("home/keys.env")), c"user.x");
        tried(call(libc::SYS_setxattr, [address(path.as_c_str()), address(name), address("x"), 1, 0, 0]))
    }),
    ("a program that runs as its owner", [Filter, Filter], |s| {
        let own = File::create(s.path("workspace/set-id")).unwrap();
        done(own.set_permissions(Permissions::from_mode(0o4755)))
    }),
    ("a new program that runs as its owner", [Filter, Filter], |s| {
        done(
            OpenOptions::new()
                .write(true)
                .create_new(true)
                .mode(0o4755)
                .open(s.path("workspace/made-set-id")),
        )
    }),
    ("names in a folder, by watching it", [Filter, Mounts], |s| {
        let watch = owned(call(libc::SYS_inotify_init1, [0; 6]).map_err(why)?);
        let path = text(&s.path("home"));
        tried(call(
            libc::SYS_inotify_add_watch,
            [watch.as_raw_fd().into(), address(path.as_c_str()), 0x100, 0, 0, 0],
        ))
    }),
    // Sockets.
    ("tcp to the machine", [Filter, Namespaces], |s| done(TcpStream::connect(("127.0.0.1", s.tcp)))),
    ("tcp to another address of the machine", [Filter, Namespaces], |s| {
        done(TcpStream::connect(("127.0.0.2", s.tcp)))
    }),
    ("tcp over ipv6", [Filter, Namespaces], |s| done(TcpStream::connect(("::1", s.tcp)))),
    ("tcp to the world", [Filter, Namespaces], |_| done(TcpStream::connect(("192.0.2.1", 80)))),
    ("udp to the machine", [Filter, Namespaces], |s| answered_udp(("127.0.0.1", s.udp))),
    ("udp to the world", [Filter, Namespaces], |_| answered_udp(("192.0.2.1", 53))),
    ("a name from dns", [Filter, Namespaces], |_| match ("example.org", 80).to_socket_addrs() {
        Ok(found) => Ok(format!("{found:?}")),
        // The library hides the reason; what it would have used has it.
        Err(_) => answered_udp(("192.0.2.53", 53)),
    }),
    ("a raw socket", [Filter, Capabilities], |_| {
        tried(call(
            libc::SYS_socket,
            [libc::AF_INET.into(), libc::SOCK_RAW.into(), libc::IPPROTO_ICMP.into(), 0, 0, 0],
        ))
    }),
    ("a raw socket over ipv6", [Filter, Capabilities], |_| {
        tried(call(libc::SYS_socket, [libc::AF_INET6.into(), libc::SOCK_RAW.into(), 58, 0, 0, 0]))
    }),
    ("the control socket", [Filter, Mounts], |s| done(UnixStream::connect(s.path("home/control.sock")))),
    ("a log socket", [Filter, Mounts], |s| {
        let socket = UnixDatagram::unbound().map_err(why)?;
        done(socket.send_to(b"x", s.path("home/log.sock")))
    }),
    ("a log socket from a pair", [Filter, Mounts], |s| {
        let (one, _other) = UnixDatagram::pair().map_err(why)?;
        done(one.send_to(b"x", s.path("home/log.sock")))
    }),
    ("an abstract socket", [Filter, Namespaces], |s| {
        done(UnixStream::connect_addr(&SocketAddr::from_abstract_name(&s.abstract_name).unwrap()))
    }),
    ("an abstract socket from a pair", [Filter, Namespaces], |s| {
        let (one, _other) = UnixDatagram::pair().map_err(why)?;
        done(one.send_to_addr(b"x", &SocketAddr::from_abstract_name(&s.abstract_name).unwrap()))
    }),
    ("the docker socket", [Filter, Mounts], |_| done(UnixStream::connect("/run/docker.sock"))),
    ("the system bus", [Filter, Mounts], |_| done(UnixStream::connect("/run/dbus/system_bus_socket"))),
    ("the journal of the system", [Filter, Mounts], |_| {
        done(UnixStream::connect("/run/systemd/journal/stdout"))
    }),
    ("an address of the machine", [Filter, Namespaces], |_| done(TcpListener::bind("192.0.2.1:0"))),
    // Processes.
    ("end another process", [Landlock, Namespaces], |s| signal(s.victim, libc::SIGTERM)),
    ("look for another process", [Landlock, Namespaces], |s| signal(s.victim, 0)),
    ("stop the parent", [Landlock, Landlock], |_| signal(parent(), libc::SIGSTOP)),
    ("end the parent", [Landlock, Landlock], |_| signal(parent(), libc::SIGKILL)),
    ("signal everything", [Landlock, Landlock], |_| {
        // The kernel says yes to this if it could signal none of them; the table looks whether they live.
        let _ = signal(-1, libc::SIGTERM);
        Err("unharmed".to_owned())
    }),
    ("end a thread of another process", [Landlock, Namespaces], |s| {
        let victim = c_long::from(s.victim);
        tried(call(libc::SYS_tgkill, [victim, victim, libc::SIGTERM.into(), 0, 0, 0]))
    }),
    ("end another process by its handle", [Landlock, Namespaces], |s| {
        let handle = owned(call(libc::SYS_pidfd_open, [s.victim.into(), 0, 0, 0, 0, 0]).map_err(why)?);
        tried(call(
            libc::SYS_pidfd_send_signal,
            [handle.as_raw_fd().into(), libc::SIGTERM.into(), 0, 0, 0, 0],
        ))
    }),
    ("limits of another process", [Filter, Namespaces], |s| {
        let none = [0_u64; 2];
        let files = c_long::from(libc::RLIMIT_NOFILE);
        tried(call(libc::SYS_prlimit64, [s.victim.into(), files, address(&none), 0, 0, 0]))
    }),
    ("processors of another process", [Filter, Namespaces], |s| {
        let first = [1_u64; 16];
        tried(call(libc::SYS_sched_setaffinity, [s.victim.into(), 128, address(&first), 0, 0, 0]))
    }),
    ("priority of another process", [Filter, Namespaces], |s| {
        tried(call(libc::SYS_setpriority, [0, s.victim.into(), 19, 0, 0, 0]))
    }),
    ("io priority of another process", [Filter, Namespaces], |s| {
        tried(call(libc::SYS_ioprio_set, [1, s.victim.into(), 3 << 13, 0, 0, 0]))
    }),
    // Rights.
    ("a new user namespace", [Filter, Filter], |_| {
        tried(call(libc::SYS_clone, [c_long::from(libc::CLONE_NEWUSER | libc::SIGCHLD), 0, 0, 0, 0, 0]))
    }),
    ("another user", [Capabilities, Limits], |_| tried(call(libc::SYS_setuid, [1_234, 0, 0, 0, 0, 0]))),
    ("other groups", [Capabilities, Capabilities], |_| {
        let group = [0_u32];
        tried(call(libc::SYS_setgroups, [1, address(&group), 0, 0, 0, 0]))
    }),
    ("privileges by running a program", [Absence, Absence], |_| {
        match call(libc::SYS_prctl, [libc::PR_GET_NO_NEW_PRIVS.into(), 0, 0, 0, 0, 0]) {
            Ok(1) => Err("nothing".to_owned()),
            other => Ok(format!("{other:?}")),
        }
    }),
    ("privileges back", [Limits, Limits], |_| {
        tried(call(libc::SYS_prctl, [libc::PR_SET_NO_NEW_PRIVS.into(), 0, 0, 0, 0, 0]))
    }),
    ("a core dump", [Limits, Limits], |_| {
        let unlimited = [u64::MAX; 2];
        let core = c_long::from(libc::RLIMIT_CORE);
        tried(call(libc::SYS_prlimit64, [0, core, address(&unlimited), 0, 0, 0]))
    }),
    ("calls of 32-bit programs", [Filter, Filter], |_| ended_by_filter(call_as_i386())),
    ("calls of x32 programs", [Filter, Filter], |_| ended_by_filter(call_as_x32())),
    ("text typed into the terminal", [Filter, Filter], |_| {
        tried(call(libc::SYS_ioctl, [0, 0x5412, address("x"), 0, 0, 0]))
    }),
    // What was left open or set.
    ("open descriptors", [Absence, Absence], |_| {
        let open =
            (3..4_096).find(|fd| call(libc::SYS_fcntl, [*fd, libc::F_GETFD.into(), 0, 0, 0, 0]).is_ok());
        open.map_or_else(|| Err("nothing".to_owned()), |fd| Ok(format!("{fd} is open")))
    }),
    ("variables", [Absence, Absence], |_| {
        let known = ["PATH", "HOME", "LANG", "TERM"];
        let is_odd =
            |(name, value): &(String, String)| !known.contains(&name.as_str()) || value.contains(SECRET);
        std::env::vars()
            .find(is_odd)
            .map_or_else(|| Err("nothing".to_owned()), |variable| Ok(format!("{variable:?}")))
    }),
    ("more input than was given", [Limits, Limits], |_| {
        let mut rest = Vec::new();
        io::stdin().read_to_end(&mut rest).unwrap();
        assert!(rest.is_empty());
        tried(call(libc::SYS_ftruncate, [0, 4_096, 0, 0, 0, 0]))
    }),
];

fn done<T>(result: io::Result<T>) -> Tried {
    result.map_err(why).map(|_| "done".to_owned())
}

fn tried(result: io::Result<c_long>) -> Tried {
    result.map_err(why).map(|value| format!("returned {value}"))
}

fn parent() -> i32 {
    i32::try_from(std::os::unix::process::parent_id()).unwrap()
}

fn signal(pid: i32, signal: i32) -> Tried {
    tried(call(libc::SYS_kill, [pid.into(), signal.into(), 0, 0, 0, 0]))
}

/// Sends, and waits for an answer or an error: what has no receiver did not get out.
fn answered_udp(to: (&str, u16)) -> Tried {
    let socket = UdpSocket::bind("0.0.0.0:0").map_err(why)?;
    socket.set_read_timeout(Some(Duration::from_secs(2))).unwrap();
    socket.connect(to).map_err(why)?;
    socket.send(b"x").map_err(why)?;
    done(socket.recv(&mut [0; 8]))
}

/// The filter kills what calls as a program of another machine. A kernel without such programs ends it as well.
fn ended_by_filter(ended: io::Result<i32>) -> Tried {
    match ended.map_err(why)? {
        code if code == 128 + libc::SIGSYS || code == 128 + libc::SIGSEGV => Err("SIGSYS".to_owned()),
        code => Ok(format!("ended with {code}")),
    }
}

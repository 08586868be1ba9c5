//! System calls as a hostile program makes them.
#![expect(unsafe_code, reason = "an attempt makes calls that no library offers")]

use std::io;
use std::os::fd::{FromRawFd as _, OwnedFd};

use libc::c_long;

/// Makes a call with numbers.
pub(crate) fn call(number: c_long, arguments: [c_long; 6]) -> io::Result<c_long> {
    let [a, b, c, d, e, f] = arguments;
    // SAFETY: what is passed is either a number or points to memory of the caller that lives longer than the call.
    let result = unsafe { libc::syscall(number, a, b, c, d, e, f) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

/// The address of something, for a call.
pub(crate) fn address<T: ?Sized>(of: &T) -> c_long {
    (&raw const *of).cast::<u8>() as c_long
}

pub(crate) fn owned(descriptor: c_long) -> OwnedFd {
    // SAFETY: a call has just made it.
    unsafe { OwnedFd::from_raw_fd(i32::try_from(descriptor).unwrap()) }
}

/// A copy of this process; whether this is the child.
pub(crate) fn fork() -> io::Result<Option<i32>> {
    // SAFETY: this program has one thread.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        0 => Ok(None),
        child => Ok(Some(child)),
    }
}

pub(crate) fn exit_now(code: i32) -> ! {
    // SAFETY: takes a number.
    unsafe { libc::_exit(code) }
}

/// A call of 32-bit programs, in a child: `getpid`. How the child ended.
#[cfg(target_arch = "x86_64")]
pub(crate) fn call_as_i386() -> io::Result<i32> {
    in_child(|| {
        let mut result: i64 = 20;
        // SAFETY: the call takes no arguments and changes no memory; the registers that it may change are named.
        unsafe {
            std::arch::asm!("int 0x80", inout("rax") result, out("r8") _, out("r9") _, out("r10") _, out("r11") _);
        }
        result > 0
    })
}

/// A call of x32 programs, in a child: `getpid`.
#[cfg(target_arch = "x86_64")]
pub(crate) fn call_as_x32() -> io::Result<i32> {
    in_child(|| call(0x4000_0000 | libc::SYS_getpid, [0; 6]).is_ok())
}

/// The exit code of a child that does something, or 128 and its signal.
pub(crate) fn in_child(act: impl FnOnce() -> bool) -> io::Result<i32> {
    let Some(child) = fork()? else { exit_now(i32::from(act())) };
    let mut status = 0;
    // SAFETY: the status lives during the call.
    unsafe { libc::waitpid(child, &raw mut status, 0) };
    Ok(if libc::WIFSIGNALED(status) { 128 + libc::WTERMSIG(status) } else { libc::WEXITSTATUS(status) })
}

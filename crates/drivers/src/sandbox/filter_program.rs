//! A filter of system calls as the kernel runs it: classic BPF that finds the number of a call by binary search. For each
//! new filter the kernel walks it once for every call that exists, so a row of comparisons would cost as much as starting
//! a program.

use std::collections::BTreeMap;

use libc::{
    BPF_ABS, BPF_JA, BPF_JEQ, BPF_JGE, BPF_JMP, BPF_K, BPF_LD, BPF_RET, BPF_W, SECCOMP_RET_ALLOW,
    SECCOMP_RET_ERRNO, SECCOMP_RET_KILL_PROCESS, SECCOMP_RET_USER_NOTIF, c_long, sock_filter,
};

#[cfg(target_arch = "x86_64")]
const ARCHITECTURE: u32 = 0xc000_003e;
#[cfg(target_arch = "aarch64")]
const ARCHITECTURE: u32 = 0xc000_00b7;
#[cfg(target_arch = "riscv64")]
const ARCHITECTURE: u32 = 0xc000_00f3;

/// Calls of x32, which have the numbers of x86-64 with this bit.
#[cfg(target_arch = "x86_64")]
const X32: u32 = 0x4000_0000;

// Offsets in `seccomp_data`. All three machines are little-endian.
const NUMBER: u32 = 0;
const ARCH: u32 = 4;
const ARGUMENTS: u32 = 16;

/// What is done with calls, by their number. Every other call is allowed.
#[derive(Default)]
pub(super) struct FilterProgram {
    blocks: BTreeMap<u32, Block>,
}

#[derive(Default)]
struct Block {
    lines: Vec<sock_filter>,
    /// Every way through it ends with an answer, so that nothing more can be said about the call.
    is_closed: bool,
}

impl FilterProgram {
    /// `block` ends with an answer on every way through it. What was said about the call before comes first.
    pub(super) fn when(&mut self, call: c_long, block: &[sock_filter]) {
        self.add(call, block, true);
    }

    /// The same for a block that may fall through.
    pub(super) fn when_also(&mut self, call: c_long, block: &[sock_filter]) {
        self.add(call, block, false);
    }

    fn add(&mut self, call: c_long, block: &[sock_filter], closes: bool) {
        let Ok(call) = u32::try_from(call) else { return };
        let known = self.blocks.entry(call).or_default();
        if !known.is_closed {
            known.lines.extend_from_slice(block);
            known.is_closed = closes;
        }
    }

    /// Kills what calls as a program of another machine: its numbers mean other calls.
    pub(super) fn compile(self) -> Vec<sock_filter> {
        let mut lines =
            vec![load_word(ARCH), jump(BPF_JEQ, ARCHITECTURE, 1, 0), ret(SECCOMP_RET_KILL_PROCESS)];
        lines.push(load_word(NUMBER));
        #[cfg(target_arch = "x86_64")]
        lines.extend([jump(BPF_JGE, X32, 0, 1), ret(SECCOMP_RET_KILL_PROCESS)]);
        lines.extend(search(&self.ranges()));
        lines
    }

    /// Blocks, each from a first number on, in their order.
    fn ranges(self) -> Vec<(u32, Vec<sock_filter>)> {
        let mut starts = BTreeMap::from([(0, vec![allow()])]);
        for (call, Block { mut lines, is_closed }) in self.blocks {
            if !is_closed {
                lines.push(allow());
            }
            starts.insert(call, lines);
            starts.insert(call + 1, vec![allow()]);
        }
        let mut ranges: Vec<_> = starts.into_iter().collect();
        ranges.dedup_by(|(_, next), (_, lines)| is_same(lines, next));
        ranges
    }
}

/// The lines that find the block of a number, which is loaded, and the blocks.
fn search(ranges: &[(u32, Vec<sock_filter>)]) -> Vec<sock_filter> {
    let (below, above) = ranges.split_at(ranges.len() / 2);
    let Some((start, block)) = above.first() else { return Vec::new() };
    if below.is_empty() {
        return block.clone();
    }
    let (below, above) = (search(below), search(above));
    let mut lines = match u8::try_from(below.len()) {
        Ok(length) => vec![jump(BPF_JGE, *start, length, 0)],
        // Only a jump without a condition goes further.
        Err(_) => {
            let length = u32::try_from(below.len()).unwrap_or(u32::MAX);
            vec![jump(BPF_JGE, *start, 0, 1), statement(BPF_JMP | BPF_JA, length)]
        }
    };
    lines.extend(below);
    lines.extend(above);
    lines
}

fn is_same(one: &[sock_filter], other: &[sock_filter]) -> bool {
    let fields = |line: &sock_filter| (line.code, line.jt, line.jf, line.k);
    one.iter().map(fields).eq(other.iter().map(fields))
}

/// The lower half of an argument.
pub(super) fn load(argument: u32) -> sock_filter {
    load_word(ARGUMENTS + 8 * argument)
}

pub(super) fn load_high(argument: u32) -> sock_filter {
    load_word(ARGUMENTS + 8 * argument + 4)
}

fn load_word(offset: u32) -> sock_filter {
    statement(BPF_LD | BPF_W | BPF_ABS, offset)
}

pub(super) fn answer(errno: i32) -> sock_filter {
    ret(SECCOMP_RET_ERRNO | errno.cast_unsigned())
}

/// The guard decides.
pub(super) fn ask() -> sock_filter {
    ret(SECCOMP_RET_USER_NOTIF)
}

pub(super) fn allow() -> sock_filter {
    ret(SECCOMP_RET_ALLOW)
}

fn ret(action: u32) -> sock_filter {
    statement(BPF_RET | BPF_K, action)
}

pub(super) fn statement(code: u32, k: u32) -> sock_filter {
    jump_with(code, k, 0, 0)
}

pub(super) fn jump(condition: u32, k: u32, jt: u8, jf: u8) -> sock_filter {
    jump_with(BPF_JMP | condition | BPF_K, k, jt, jf)
}

fn jump_with(code: u32, k: u32, jt: u8, jf: u8) -> sock_filter {
    sock_filter { code: u16::try_from(code).unwrap_or(u16::MAX), jt, jf, k }
}

#[cfg(test)]
mod tests {
    use libc::{BPF_ALU, BPF_AND, BPF_JSET};
    use proptest::prelude::*;

    use super::*;

    /// What the program answers to a call with one argument, and how many lines it took.
    fn run(program: &[sock_filter], call: u32, argument: u32) -> (u32, usize) {
        let (mut at, mut loaded, mut steps) = (0, 0, 0);
        loop {
            let line = program[at];
            let code = u32::from(line.code);
            at += 1;
            steps += 1;
            let is_true = match code {
                code if code == BPF_RET | BPF_K => return (line.k, steps),
                code if code == BPF_LD | BPF_W | BPF_ABS => {
                    loaded = match line.k {
                        NUMBER => call,
                        ARCH => ARCHITECTURE,
                        _ => argument,
                    };
                    continue;
                }
                code if code == BPF_ALU | BPF_AND | BPF_K => {
                    loaded &= line.k;
                    continue;
                }
                code if code == BPF_JMP | BPF_JA => {
                    at += usize::try_from(line.k).unwrap();
                    continue;
                }
                code if code == BPF_JMP | BPF_JEQ | BPF_K => loaded == line.k,
                code if code == BPF_JMP | BPF_JGE | BPF_K => loaded >= line.k,
                code if code == BPF_JMP | BPF_JSET | BPF_K => loaded & line.k != 0,
                code => panic!("{code:x}"),
            };
            at += usize::from(if is_true { line.jt } else { line.jf });
        }
    }

    /// What a program says about a call: an error, or one only where a bit of its argument is set.
    #[derive(Clone, Copy, Debug)]
    enum Said {
        Refused(i32),
        WithBit(i32),
    }

    fn said() -> impl Strategy<Value = Said> {
        prop_oneof![(1..4).prop_map(Said::Refused), (1..4).prop_map(Said::WithBit)]
    }

    proptest! {
        /// However many calls there are and wherever they lie, each has the first answer that was said about it.
        #[test]
        fn every_call_has_its_own_answer(rules in prop::collection::vec((0_u32..700, said()), 0..600)) {
            let mut program = FilterProgram::default();
            for (call, said) in &rules {
                match said {
                    Said::Refused(errno) => program.when((*call).into(), &[answer(*errno)]),
                    Said::WithBit(errno) => {
                        program.when_also((*call).into(), &[load(0), jump(BPF_JSET, 1, 0, 1), answer(*errno)]);
                    }
                }
            }
            let program = program.compile();
            for (call, argument) in (0..710).flat_map(|call| [(call, 0), (call, 1)]) {
                let first = rules.iter().find_map(|(said_of, said)| match said {
                    Said::Refused(errno) if *said_of == call => Some(answer(*errno).k),
                    Said::WithBit(errno) if *said_of == call && argument == 1 => Some(answer(*errno).k),
                    _ => None,
                });
                let (got, steps) = run(&program, call, argument);
                prop_assert_eq!(got, first.unwrap_or(allow().k), "call {}", call);
                prop_assert!(steps < 40, "{} steps", steps);
            }
        }
    }

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn calls_of_another_machine_kill() {
        let program = FilterProgram::default().compile();
        assert_eq!(run(&program, X32 | 1, 0).0, SECCOMP_RET_KILL_PROCESS);
    }
}

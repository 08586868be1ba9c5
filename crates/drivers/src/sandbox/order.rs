//! The orders to the helper of a box, as bytes: it runs before anything that could read more than that.

use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

use libc::sock_filter;

use super::landlock::Access;

/// What surrounds the command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Walls {
    /// Nothing: only its processes are guarded and limited.
    None,
    Landlock,
    Namespaces,
}

/// A path of the machine that is there inside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Grant {
    pub(super) path: PathBuf,
    pub(super) access: Access,
    pub(super) presence: Presence,
    /// Where it is inside, if not at its own path.
    pub(super) at: Option<PathBuf>,
}

impl Grant {
    /// At its own path.
    pub(super) fn new(path: PathBuf, access: Access, presence: Presence) -> Self {
        Self { path, access, presence, at: None }
    }

    /// Where it is inside.
    pub(super) fn inside(&self) -> &Path {
        self.at.as_deref().unwrap_or(&self.path)
    }
}

/// A file that is only there inside, in a private folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PrivateFile {
    pub path: PathBuf,
    pub bytes: Vec<u8>,
}

/// What a program of a person has otherwise than a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BoxedProgramOrder {
    pub(super) umask: u64,
    /// Its limit of open files.
    pub(super) open_files: u64,
    pub(super) terminal: Option<TerminalOrder>,
}

/// A terminal that is made in the box.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TerminalOrder {
    pub(super) rows: u16,
    pub(super) columns: u16,
    /// Which of the standard streams it is.
    pub(super) streams: [bool; 3],
}

/// Whether a path must exist.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Presence {
    Required,
    /// Not every machine has it.
    IfThere,
    /// It must, and no link may be in its path.
    Exact,
}

/// Everything about one command.
#[derive(Clone, Debug)]
pub(super) struct BoxOrder {
    pub(super) walls: Walls,
    pub(super) landlock_abi: u32,
    /// The first one is the workspace.
    pub(super) grants: Vec<Grant>,
    pub(super) hidden: Vec<PathBuf>,
    pub(super) read_only: Vec<PathBuf>,
    pub(super) reserved: Vec<PathBuf>,
    /// Empty folders in memory.
    pub(super) private: Vec<PathBuf>,
    pub(super) files: Vec<PrivateFile>,
    /// Where the command begins; the workspace, if it is empty.
    pub(super) folder: PathBuf,
    /// The command. If it is empty, everything is made ready and nothing is started.
    pub(super) arguments: Vec<OsString>,
    /// The file of the command, if it is not looked for by its name; else empty.
    pub(super) file: PathBuf,
    /// `NAME=VALUE`.
    pub(super) environment: Vec<OsString>,
    pub(super) search: Vec<OsString>,
    /// Whether a descriptor comes along through which the socket of the box is handed out.
    pub(super) has_proxy: bool,
    /// A port of its loopback that is handed out beside the proxy; none if zero.
    pub(super) served_port: u64,
    /// If it is one.
    pub(super) program: Option<BoxedProgramOrder>,
    pub(super) filter: Vec<sock_filter>,
    pub(super) processes_max: u64,
    pub(super) memory_bytes_max: u64,
    pub(super) disk_bytes_max: u64,
    pub(super) timeout_ms: u64,
}

impl BoxOrder {
    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(8_192);
        let put = &mut bytes;
        put_number(put, self.walls as u64);
        put_number(put, self.landlock_abi.into());
        put_number(put, self.grants.len() as u64);
        for grant in &self.grants {
            put_bytes(put, grant.path.as_os_str().as_bytes());
            put_number(put, grant.access as u64);
            put_number(put, grant.presence as u64);
            put_bytes(put, grant.at.as_ref().map_or(&[], |at| at.as_os_str().as_bytes()));
        }
        put_paths(put, &self.hidden);
        put_paths(put, &self.read_only);
        put_paths(put, &self.reserved);
        put_paths(put, &self.private);
        put_number(put, self.files.len() as u64);
        for file in &self.files {
            put_bytes(put, file.path.as_os_str().as_bytes());
            put_bytes(put, &file.bytes);
        }
        put_bytes(put, self.folder.as_os_str().as_bytes());
        put_bytes(put, self.file.as_os_str().as_bytes());
        for list in [&self.arguments, &self.environment, &self.search] {
            put_paths(put, list);
        }
        put_number(put, u64::from(self.has_proxy));
        put_number(put, self.served_port);
        put_number(put, u64::from(self.program.is_some()));
        if let Some(program) = &self.program {
            put_number(put, program.umask);
            put_number(put, program.open_files);
            put_number(put, u64::from(program.terminal.is_some()));
            if let Some(terminal) = &program.terminal {
                put_number(put, terminal.rows.into());
                put_number(put, terminal.columns.into());
                terminal.streams.iter().for_each(|stream| put_number(put, u64::from(*stream)));
            }
        }
        put_number(put, self.filter.len() as u64);
        for line in &self.filter {
            put.extend_from_slice(&line.code.to_le_bytes());
            put.extend_from_slice(&[line.jt, line.jf]);
            put.extend_from_slice(&line.k.to_le_bytes());
        }
        for number in [self.processes_max, self.memory_bytes_max, self.disk_bytes_max, self.timeout_ms] {
            put_number(put, number);
        }
        bytes
    }

    pub(super) fn from_bytes(bytes: &[u8]) -> io::Result<Self> {
        let mut from = Reader(bytes);
        let walls = from.choice(&[Walls::None, Walls::Landlock, Walls::Namespaces])?;
        let landlock_abi = u32::try_from(from.number()?).unwrap_or(0);
        let grants = from.list(|from| {
            Ok(Grant {
                path: from.path()?,
                access: from.choice(&[
                    Access::Read,
                    Access::Write,
                    Access::Device,
                    Access::ReadData,
                    Access::Terminal,
                ])?,
                presence: from.choice(&[Presence::Required, Presence::IfThere, Presence::Exact])?,
                at: Some(from.path()?).filter(|at| !at.as_os_str().is_empty()),
            })
        })?;
        Ok(Self {
            walls,
            landlock_abi,
            grants,
            hidden: from.list(Reader::path)?,
            read_only: from.list(Reader::path)?,
            reserved: from.list(Reader::path)?,
            private: from.list(Reader::path)?,
            files: from
                .list(|from| Ok(PrivateFile { path: from.path()?, bytes: from.text()?.into_vec() }))?,
            folder: from.path()?,
            file: from.path()?,
            arguments: from.list(Reader::text)?,
            environment: from.list(Reader::text)?,
            search: from.list(Reader::text)?,
            has_proxy: from.choice(&[false, true])?,
            served_port: from.number()?,
            program: from.some(Reader::program)?,
            filter: from.list(Reader::line)?,
            processes_max: from.number()?,
            memory_bytes_max: from.number()?,
            disk_bytes_max: from.number()?,
            timeout_ms: from.number()?,
        })
    }
}

fn put_number(bytes: &mut Vec<u8>, number: u64) {
    bytes.extend_from_slice(&number.to_le_bytes());
}

fn put_bytes(bytes: &mut Vec<u8>, text: &[u8]) {
    put_number(bytes, text.len() as u64);
    bytes.extend_from_slice(text);
}

fn put_paths<T: AsRef<Path>>(bytes: &mut Vec<u8>, texts: &[T]) {
    put_number(bytes, texts.len() as u64);
    texts.iter().for_each(|text| put_bytes(bytes, text.as_ref().as_os_str().as_bytes()));
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, count: usize) -> io::Result<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count).ok_or(io::ErrorKind::UnexpectedEof)?;
        self.0 = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> io::Result<[u8; N]> {
        self.take(N)?.try_into().map_err(|_| io::ErrorKind::UnexpectedEof.into())
    }

    fn number(&mut self) -> io::Result<u64> {
        self.array().map(u64::from_le_bytes)
    }

    fn text(&mut self) -> io::Result<OsString> {
        let length = usize::try_from(self.number()?).map_err(|_| io::ErrorKind::UnexpectedEof)?;
        Ok(OsString::from_vec(self.take(length)?.to_vec()))
    }

    fn path(&mut self) -> io::Result<PathBuf> {
        self.text().map(PathBuf::from)
    }

    fn choice<T: Copy>(&mut self, choices: &[T]) -> io::Result<T> {
        let chosen = usize::try_from(self.number()?).ok().and_then(|at| choices.get(at));
        chosen.copied().ok_or_else(|| io::ErrorKind::InvalidData.into())
    }

    fn small_number(&mut self) -> io::Result<u16> {
        u16::try_from(self.number()?).map_err(|_| io::ErrorKind::InvalidData.into())
    }

    fn some<T>(&mut self, read: impl FnOnce(&mut Self) -> io::Result<T>) -> io::Result<Option<T>> {
        self.choice(&[false, true])?.then(|| read(self)).transpose()
    }

    fn program(&mut self) -> io::Result<BoxedProgramOrder> {
        Ok(BoxedProgramOrder {
            umask: self.number()?,
            open_files: self.number()?,
            terminal: self.some(Self::terminal)?,
        })
    }

    fn terminal(&mut self) -> io::Result<TerminalOrder> {
        let (rows, columns) = (self.small_number()?, self.small_number()?);
        let mut stream = || self.choice(&[false, true]);
        Ok(TerminalOrder { rows, columns, streams: [stream()?, stream()?, stream()?] })
    }

    fn line(&mut self) -> io::Result<sock_filter> {
        let code = u16::from_le_bytes(self.array()?);
        let [jt, jf] = self.array()?;
        Ok(sock_filter { code, jt, jf, k: u32::from_le_bytes(self.array()?) })
    }

    fn list<T>(&mut self, mut read: impl FnMut(&mut Self) -> io::Result<T>) -> io::Result<Vec<T>> {
        (0..self.number()?).map(|_| read(self)).collect()
    }
}

//! What there is to get at outside of a box.

use std::fs;
use std::net::{TcpListener, UdpSocket};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::fs::symlink;
use std::os::unix::net::{SocketAddr, UnixDatagram, UnixListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};

/// What nothing in a box may read.
pub(crate) const SECRET: &str = "the-secret-of-this-scene";

/// Where it is, as an attempt knows it.
#[derive(Debug)]
pub(crate) struct Scene {
    pub(crate) root: PathBuf,
    pub(crate) tcp: u16,
    pub(crate) udp: u16,
    pub(crate) abstract_name: String,
    pub(crate) victim: i32,
}

impl Scene {
    pub(crate) fn from_words(words: &[&str]) -> Self {
        let [root, tcp, udp, abstract_name, victim] = words else { panic!("{words:?}") };
        Self {
            root: root.into(),
            tcp: tcp.parse().unwrap(),
            udp: udp.parse().unwrap(),
            abstract_name: (*abstract_name).to_owned(),
            victim: victim.parse().unwrap(),
        }
    }

    pub(crate) fn to_words(&self) -> Vec<String> {
        let Self { root, tcp, udp, abstract_name, victim } = self;
        vec![
            root.display().to_string(),
            tcp.to_string(),
            udp.to_string(),
            abstract_name.clone(),
            victim.to_string(),
        ]
    }

    pub(crate) fn path(&self, below: &str) -> PathBuf {
        self.root.join(below)
    }

    /// A path with `{root}` and `{victim}` filled in.
    pub(crate) fn filled(&self, template: &str) -> PathBuf {
        let root = self.root.display().to_string();
        template.replace("{root}", &root).replace("{victim}", &self.victim.to_string()).into()
    }
}

/// The real thing, which must be as it was after all attempts.
pub(crate) struct Outside {
    pub(crate) scene: Scene,
    tcp: TcpListener,
    udp: UdpSocket,
    control: UnixListener,
    log: UnixDatagram,
    named: UnixListener,
    victim: Child,
}

impl Outside {
    pub(crate) fn new(root: &Path) -> Self {
        for folder in ["workspace", "sibling/outputs", "home", "readable", "outside"] {
            fs::create_dir_all(root.join(folder)).unwrap();
        }
        let secrets = [
            "sibling/outputs/secret.txt",
            "home/journal.db",
            "home/keys.env",
            "outside/plain.txt",
            "secret.txt",
        ];
        for file in secrets {
            fs::write(root.join(file), SECRET).unwrap();
        }
        fs::write(root.join("readable/file.txt"), "granted").unwrap();
        fs::write(root.join("outside/script.sh"), "#!/bin/sh\necho ran\n").unwrap();
        symlink(root.join("home/keys.env"), root.join("workspace/planted-link")).unwrap();
        symlink(root.join("home"), root.join("workspace/planted-folder")).unwrap();
        let (tcp, udp) = (TcpListener::bind("127.0.0.1:0").unwrap(), UdpSocket::bind("127.0.0.1:0").unwrap());
        let abstract_name = format!("spinney-scene-{}", std::process::id());
        let named =
            UnixListener::bind_addr(&SocketAddr::from_abstract_name(&abstract_name).unwrap()).unwrap();
        let victim = Command::new("sleep").arg("86400").env("VICTIMS_SECRET", SECRET).spawn().unwrap();
        let scene = Scene {
            root: root.to_owned(),
            tcp: tcp.local_addr().unwrap().port(),
            udp: udp.local_addr().unwrap().port(),
            abstract_name,
            victim: i32::try_from(victim.id()).unwrap(),
        };
        let control = UnixListener::bind(root.join("home/control.sock")).unwrap();
        let log = UnixDatagram::bind(root.join("home/log.sock")).unwrap();
        Self { scene, tcp, udp, control, log, named, victim }
    }

    /// What an attempt changed or reached.
    pub(crate) fn damage(&mut self) -> Vec<String> {
        let mut damage = Vec::new();
        self.tcp.set_nonblocking(true).unwrap();
        self.udp.set_nonblocking(true).unwrap();
        self.control.set_nonblocking(true).unwrap();
        self.named.set_nonblocking(true).unwrap();
        self.log.set_nonblocking(true).unwrap();
        let mut buffer = [0; 64];
        let reached = [
            ("tcp", self.tcp.accept().is_ok()),
            ("udp", self.udp.recv_from(&mut buffer).is_ok()),
            ("control socket", self.control.accept().is_ok()),
            ("abstract socket", self.named.accept().is_ok()),
            ("log socket", self.log.recv(&mut buffer).is_ok()),
            ("victim ended", self.victim.try_wait().unwrap().is_some()),
        ];
        damage
            .extend(reached.iter().filter(|(_, is_reached)| *is_reached).map(|(name, _)| (*name).to_owned()));
        for file in [
            "sibling/outputs/secret.txt",
            "home/journal.db",
            "home/keys.env",
            "outside/plain.txt",
            "secret.txt",
        ] {
            if fs::read_to_string(self.scene.path(file)).ok().as_deref() != Some(SECRET) {
                damage.push(file.to_owned());
            }
        }
        let mut names: Vec<_> = ["", "sibling", "home", "outside", "readable"]
            .iter()
            .flat_map(|folder| fs::read_dir(self.scene.path(folder)).unwrap())
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        let expected = [
            "control.sock",
            "file.txt",
            "home",
            "journal.db",
            "keys.env",
            "log.sock",
            "outputs",
            "outside",
            "plain.txt",
            "readable",
            "script.sh",
            "secret.txt",
            "sibling",
            "workspace",
        ];
        if names != expected {
            damage.push(format!("files: {names:?}"));
        }
        damage
    }
}

impl Drop for Outside {
    fn drop(&mut self) {
        let _ = self.victim.kill();
        let _ = self.victim.wait();
    }
}

//! The file of keys: a line a version, its number and 64 hexadecimal digits. Written whole, beside and then in its place,
//! so that a crash never leaves half of it behind.

use crate::clock::Ids;
use std::{
    collections::BTreeMap,
    fs::{self, File, OpenOptions},
    io::{self, Write},
    os::unix::fs::OpenOptionsExt,
    path::Path,
};

/// The random bytes of each version, from which its keys are derived.
pub(super) type Masters = BTreeMap<i64, [u8; 32]>;

/// The highest number of a version, which a seal has to hold.
const MOST: i64 = u32::MAX as i64;

/// Reads the file.
pub(super) fn read(path: &Path) -> io::Result<Masters> {
    parse(&fs::read_to_string(path)?).map_err(|why| io::Error::new(io::ErrorKind::InvalidData, why))
}

/// Reads the file, making it with a first version where it is missing.
pub(super) fn read_or_make(path: &Path, ids: &dyn Ids) -> io::Result<Masters> {
    match read(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let _alone = alone(path)?;
            // Another process may have been first; then its key counts.
            match read(path) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    let mut master = [0; 32];
                    ids.fill(&mut master);
                    let masters = Masters::from([(super::FIRST, master)]);
                    write(path, &masters)?;
                    Ok(masters)
                }
                read => read,
            }
        }
        read => read,
    }
}

/// Changes the file, one process after the other.
pub(super) fn change<T>(path: &Path, change: impl FnOnce(&mut Masters) -> T) -> io::Result<T> {
    let _alone = alone(path)?;
    let mut masters = read(path)?;
    let done = change(&mut masters);
    write(path, &masters)?;
    Ok(done)
}

/// Holds other processes off until it is dropped. It is the folder that is locked: the file itself is replaced.
fn alone(path: &Path) -> io::Result<File> {
    let folder = File::open(folder_of(path))?;
    folder.lock()?;
    Ok(folder)
}

fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

fn write(path: &Path, masters: &Masters) -> io::Result<()> {
    let beside = path.with_extension("new");
    let mut new = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&beside)?;
    for (number, master) in masters {
        writeln!(new, "{number} {}", blake3::Hash::from_bytes(*master).to_hex())?;
    }
    new.sync_all()?;
    fs::rename(&beside, path)?;
    File::open(folder_of(path))?.sync_all()
}

/// Understands the file's text. A file with nothing but 64 digits holds the first version.
fn parse(text: &str) -> Result<Masters, String> {
    const HOW: &str = "each line of the secret key file must hold a version and 64 hexadecimal digits";
    let mut masters = Masters::new();
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let (number, digits) = line.split_once(' ').unwrap_or(("1", line));
        let number = number.parse().ok().filter(|number| (super::FIRST..=MOST).contains(number));
        let master = blake3::Hash::from_hex(digits.trim()).ok();
        let (Some(number), Some(master)) = (number, master) else { return Err(HOW.into()) };
        if masters.insert(number, *master.as_bytes()).is_some() {
            return Err(format!("the secret key file holds version {number} twice"));
        }
    }
    if masters.is_empty() { Err(HOW.into()) } else { Ok(masters) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_understood_whole_or_not_at_all() {
        let (one, two) = ("ab".repeat(32), "cd".repeat(32));
        assert_eq!(parse(&format!("{one}\n")).unwrap().keys().collect::<Vec<_>>(), [&1]);
        let both = parse(&format!("1 {one}\n\n 7  {two}\n")).unwrap();
        assert_eq!(both.into_iter().collect::<Vec<_>>(), [(1, [0xab; 32]), (7, [0xcd; 32])]);
        let bad = ["", "\n", "short", &format!("1 {one}\n1 {two}"), &format!("0 {one}"), &format!("x {one}")];
        for text in
            bad.iter().copied().chain([format!("1 {one}\n2 half").as_str(), &format!("5000000000 {one}")])
        {
            assert!(parse(text).is_err(), "{text:?}");
        }
    }
}

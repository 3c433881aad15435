//! The sample catalog, carried by the binary so that it works from any folder.

use std::{
    fs::{self, File},
    io::{self, Write},
    os::unix::fs::{OpenOptionsExt, PermissionsExt},
    path::{Path, PathBuf},
};

/// A file of the sample catalog: its path, its mode, what it holds.
struct Sample {
    path: &'static str,
    mode: u32,
    text: &'static str,
}

const FILES: &[Sample] = &[
    Sample {
        path: "git-repository/offering.yaml",
        mode: 0o644,
        text: include_str!("../../../catalog/git-repository/offering.yaml"),
    },
    Sample {
        path: "git-repository/provision",
        mode: 0o755,
        text: include_str!("../../../catalog/git-repository/provision"),
    },
    Sample {
        path: "service-starter/offering.yaml",
        mode: 0o644,
        text: include_str!("../../../catalog/service-starter/offering.yaml"),
    },
    Sample {
        path: "tls-certificate/offering.yaml",
        mode: 0o644,
        text: include_str!("../../../catalog/tls-certificate/offering.yaml"),
    },
    Sample {
        path: "tls-certificate/provision",
        mode: 0o755,
        text: include_str!("../../../catalog/tls-certificate/provision"),
    },
];

/// Writes what is missing or differs, each file at once and as a whole.
pub(super) fn write(data: &Path) -> io::Result<PathBuf> {
    let catalog = std::path::absolute(data)?.join("catalog");
    for sample in FILES {
        let path = catalog.join(sample.path);
        let Some(folder) = path.parent() else { continue };
        fs::create_dir_all(folder)?;
        if !is_right(&path, sample) {
            put(&path, sample)?;
        }
    }
    Ok(catalog)
}

fn is_right(path: &Path, sample: &Sample) -> bool {
    let mode = fs::metadata(path).map(|about| about.permissions().mode() & 0o777);
    mode.is_ok_and(|mode| mode == sample.mode)
        && fs::read(path).is_ok_and(|bytes| bytes == sample.text.as_bytes())
}

fn put(path: &Path, sample: &Sample) -> io::Result<()> {
    // Two servers may start at once on one folder; each has a file of its own until the rename.
    let aside = path.with_extension(format!("new-{}", std::process::id()));
    let write = || -> io::Result<()> {
        let mut file =
            File::options().write(true).create(true).truncate(true).mode(sample.mode).open(&aside)?;
        file.write_all(sample.text.as_bytes())?;
        file.set_permissions(fs::Permissions::from_mode(sample.mode))?;
        file.sync_all()?;
        fs::rename(&aside, path)
    };
    write().inspect_err(|_| {
        // What is left aside is no part of the catalog; the error that matters is the first.
        let _ = fs::remove_file(&aside);
    })
}

#[cfg(test)]
mod tests;
